"""What Messages binds reasoning to: everything that comes before a block, digested.

Sources: the vendor's pages "Preserved thinking" and "Prefix checks", and the types of its SDK
(2.12). Bound are `system`, `tools` and each message before the block. Not bound are marks for the
cache, effort, any other parameter, and a deferred tool that nothing has referenced by then.
Whether a text equals its one text block isn't established: here they differ, the careful side.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from lutumpy.rules.bound_blocks import BoundBlock, ReasoningBinding, write_bound
from lutumpy.rules.claude import BOUND_ELSEWHERE, binds_reasoning, refuses_changed_prefix, version
from lutumpy.rules.problem import is_object, items, mapping, text

__all__ = ["THINKING", "find_bound", "reasoning_binding", "seal_of"]

THINKING = ("thinking", "redacted_thinking")
"""The kinds of block that are bound."""

_UNBOUND = frozenset({"cache_control", "output_config"})


def reasoning_binding() -> ReasoningBinding:
    """How Messages binds reasoning."""
    return ReasoningBinding(
        find_bound, version, binds_reasoning, refuses_changed_prefix, BOUND_ELSEWHERE, _UNBOUND
    )


def seal_of(block: Mapping[str, Any]) -> str:
    """What a block of reasoning is known by."""
    return text(block.get("signature")) or text(block.get("data")) or ""


def find_bound(body: Mapping[str, Any], answer: Any = None) -> list[BoundBlock]:
    """The reasoning of a request in order, each block with the digest of what comes before it.

    Args:
        body: The request.
        answer: The `content` that answered it, if that is wanted as well.
    """
    tools = _Tools(body.get("tools"))
    running = hashlib.sha256(write_bound(_without_unbound(body.get("system"))))
    found: list[BoundBlock] = []
    for path, role, part in _parts_of(body, answer):
        if is_object(part) and part.get("type") in THINKING:
            digest = running.copy()
            digest.update(tools.bound())
            is_new = path.startswith("content.")
            found.append(BoundBlock(path, seal_of(part), digest.hexdigest(), is_new))
            continue
        tools.reference(part)
        running.update(write_bound([role, _without_unbound(part)]))
    return found


def _parts_of(body: Mapping[str, Any], answer: Any) -> Iterator[tuple[str, Any, Any]]:
    """Place, role and content of all blocks; neighbours of one role are one turn."""
    for index, message in enumerate(items(body.get("messages"))):
        if not is_object(message):
            continue
        content, role = message.get("content"), [message.get("role"), message.get("clear_at")]
        if isinstance(content, str):
            yield f"messages.{index}.content", role, content
        for number, block in enumerate(items(content)):
            yield f"messages.{index}.content.{number}", role, block
    for number, block in enumerate(items(answer)):
        yield f"content.{number}", ["assistant", None], block


class _Tools:
    """The tools of a request, of which the deferred ones count from their first reference on."""

    def __init__(self, tools: Any) -> None:
        self._tools = [tool for tool in items(tools) if is_object(tool)]
        self._deferred = {
            str(tool.get("name")) for tool in self._tools if tool.get("defer_loading") is True
        }
        self._referenced: set[str] = set()
        self._bytes: bytes | None = None

    def reference(self, part: Any) -> None:
        """Note the deferred tools that a block refers to."""
        if self._deferred - self._referenced:
            named = {name for name in _names_in(part) if name in self._deferred}
            if not named <= self._referenced:
                self._referenced |= named
                self._bytes = None

    def bound(self) -> bytes:
        """The tools that are bound by now."""
        if self._bytes is None:
            bound = [
                _without_unbound(tool)
                for tool in self._tools
                if tool.get("defer_loading") is not True or tool.get("name") in self._referenced
            ]
            self._bytes = write_bound(bound)
        return self._bytes


def _names_in(part: Any) -> Iterator[str]:
    """The names of the tools that a block refers to, calls, changes and finds."""
    block = mapping(part)
    if block is None:
        return
    kind = block.get("type")
    if kind == "tool_use" or kind == "tool_reference":
        for key in ("name", "tool_name"):
            if isinstance(block.get(key), str):
                yield block[key]
    yield from _names_in(block.get("tool"))
    content = block.get("content")
    for inner in (content, *items(content)):
        if is_object(inner):
            yield from _names_in(inner)
            for reference in items(inner.get("tool_references")):
                yield from _names_in(reference)


def _without_unbound(value: Any) -> Any:
    """A copy without what isn't bound."""
    if is_object(value):
        return {
            key: inner if key == "input" else _without_unbound(inner)
            for key, inner in value.items()
            if key not in _UNBOUND
        }
    return (
        [_without_unbound(inner) for inner in value] if isinstance(value, (list, tuple)) else value
    )
