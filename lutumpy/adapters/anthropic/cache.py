"""Breakpoints of the provider's prompt cache, at the end of what the next request begins with.

A breakpoint is one more member of a tool or of a content block. It is spliced into bytes that are
ready, so that nothing else changes.
"""

# What is hard here
# -----------------
# The provider reads a request in the order tools, system, messages, and can keep what it has read
# up to each breakpoint. A breakpoint pays only where later requests are the same up to there:
#
#   | place    | where                                         | not when                       |
#   |----------|-----------------------------------------------|--------------------------------|
#   | tools    | the last tool without `defer_loading`         | a deferred tool can't have one |
#   | system   | the last block before anything ephemeral      | `extra` holds a `system`       |
#   | messages | the last message before anything ephemeral    | `extra` holds `messages`, or   |
#   |          | whose last block takes one                    | an answer is sent as a prefill |
#
# And the request must stay legal:
#
#   * at most four breakpoints, those of the user and of an imported history among them; where room
#     is short, the longest prefix wins: messages, then system, then tools (`request.py`);
#   * none beside a top-level `cache_control` of the user's, which sets them at the provider;
#   * none of ours (five minutes) before one of the user's that lasts an hour: the API refuses it.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.anthropic.limits import MAX_BREAKPOINTS

__all__ = [
    "FreeBreakpoints",
    "count_breakpoints",
    "mark",
    "mark_last_tool",
    "mark_offered",
    "takes_breakpoint",
]

Place: TypeAlias = Literal["tools", "system", "messages"]

_BREAKPOINT = {"type": "ephemeral"}
_MARK = b',"cache_control":' + encode(_BREAKPOINT)
_USER = b'{"role":"user",'
_ASSISTANT = b'{"role":"assistant",'

# Blocks that are known to take one; thinking takes none, of unknown kinds nobody knows.
_MARKABLE = frozenset(
    {
        "document",
        "image",
        "mcp_tool_use",
        "search_result",
        "server_tool_use",
        "text",
        "tool_result",
        "tool_use",
    }
)

# The order in which the provider reads a request.
_ORDER: tuple[Place, ...] = ("tools", "system", "messages")


class FreeBreakpoints:
    """How many breakpoints a request can still take, and where.

    Args:
        extra: The user's own parameters: what they hold is theirs, and counts.
        sent: How many breakpoints the encoded conversation holds.
        tools: The offered tools that may hold further ones of the user's.
    """

    __slots__ = ("_first", "_free", "_own")

    def __init__(self, extra: Mapping[str, Any], sent: int, tools: Sequence[Any] = ()) -> None:
        if not extra and not tools:
            self._own: frozenset[str] = frozenset()
            self._free = MAX_BREAKPOINTS - sent
            self._first = 0
            return
        own: dict[Place, list[Any]] = {
            place: _find_breakpoints(extra.get(place)) for place in _ORDER
        }
        own["tools"] += _find_breakpoints(tools)
        self._own = frozenset({place for place in ("system", "messages") if place in extra})
        self._free = MAX_BREAKPOINTS - sent - sum([len(found) for found in own.values()])
        if "cache_control" in extra:
            self._free = 0
        # One of five minutes must not come before one of an hour.
        lasting = [
            index
            for index, place in enumerate(_ORDER)
            if any(_is_long_lived(found) for found in own[place])
        ]
        self._first = max(lasting, default=0)

    def at(self, place: Place) -> bool:
        """Whether one can be set there."""
        return self._free > 0 and place not in self._own and _ORDER.index(place) >= self._first

    def take(self) -> None:
        """One was set."""
        self._free -= 1


def mark(data: bytes, closing: bytes) -> bytes:
    """Ready JSON with a breakpoint in its last object.

    Args:
        data: A JSON text.
        closing: What follows the members of that object, as `}]}` in a message.
    """
    return data[: -len(closing)] + _MARK + closing


def mark_last_tool(tools: Any) -> list[Any] | None:
    """The user's own tools with a breakpoint on the last one that takes any, or `None` when none
    does.
    """
    if not isinstance(tools, (list, tuple)):
        return None
    marked = list(tools)
    for index in range(len(marked) - 1, -1, -1):
        tool = marked[index]
        # "Tools with defer_loading=true cannot have cache_control set": they aren't part of the
        # prefix.
        if isinstance(tool, Mapping) and not tool.get("defer_loading"):
            marked[index] = {
                "cache_control": _BREAKPOINT,
                **tool,
            }  # where the user set one, or none, that holds
            return marked
    return None


def mark_offered(tools: bytes) -> bytes:
    """The offered tools with a breakpoint on the last one that takes any."""
    if b'"defer_loading"' not in tools and b'"cache_control"' not in tools:
        return mark(tools, b"}]")
    marked = mark_last_tool(json_values.decode(tools))
    return tools if marked is None else encode(marked)


def takes_breakpoint(message: bytes, *, as_read: bool = False) -> bool:
    """Whether the last block of a message, its content a list of blocks, takes a breakpoint.

    Args:
        message: The message.
        as_read: It was read from a history, and not made here.
    """
    if not as_read:
        if message.startswith(_USER):
            return True  # made here, of blocks that all do
        if not message.startswith(_ASSISTANT):
            return False
    fields = json_values.decode(message)
    content = fields.get("content")
    block = content[-1] if isinstance(content, list) and content else None
    if not isinstance(block, dict) or fields.get("role") == "system" or "cache_control" in block:
        return False
    kind, text = block.get("type"), block.get("text")
    if kind == "text" and not (isinstance(text, str) and text.strip()):
        return False
    return kind in _MARKABLE or (isinstance(kind, str) and kind.endswith("_tool_result"))


def count_breakpoints(blocks: Any) -> int:
    """How many breakpoints content blocks hold, those inside of results too; a null is none."""
    return len(_find_breakpoints(blocks))


def _find_breakpoints(value: Any) -> list[Any]:
    """The breakpoints in tools, system blocks, messages or content blocks."""
    found: list[Any] = []
    for block in (
        value if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else ()
    ):
        if isinstance(block, Mapping):
            if block.get("cache_control") is not None:
                found.append(block["cache_control"])
            found += _find_breakpoints(block.get("content"))
    return found


def _is_long_lived(found: Any) -> bool:
    return isinstance(found, Mapping) and found.get("ttl") not in (None, "5m")
