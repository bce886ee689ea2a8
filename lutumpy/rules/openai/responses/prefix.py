"""What Responses binds reasoning to, from GPT-6.2 on: everything that comes before an item of it.

Sources: the vendor's pages "Keep the prefix unchanged" and "Using GPT-6.2", and the types of its
SDK (3.54). Bound are `tools`, `text.format` and each earlier item of the input. Not bound are
`instructions`, which come after the input there, any other parameter, and the `id` and `status`
that the API puts on items. What comes before a compaction of the API's own isn't bound any more.
Whether a text equals its one part isn't established: here they differ, the careful side.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from lutumpy.rules.bound_blocks import BoundBlock, ReasoningBinding, write_bound
from lutumpy.rules.openai.models import binds_reasoning, version
from lutumpy.rules.problem import is_object, items, mapping, text

__all__ = ["find_bound", "reasoning_binding"]

_UNBOUND = ("id", "status")


def reasoning_binding() -> ReasoningBinding:
    """How Responses binds reasoning. Nobody is refused: what doesn't fit is taken away."""
    words = "{}: reasoning behind a changed prefix is removed (prefix_mismatch)."
    unbound = frozenset(_UNBOUND)
    return ReasoningBinding(find_bound, version, binds_reasoning, _refuses, words, unbound)


def _refuses(model: str | None) -> None:
    return None


def find_bound(body: Mapping[str, Any], answer: Any = None) -> list[BoundBlock]:
    """The reasoning of a request in order, each item with the digest of what comes before it.

    Args:
        body: The request, with all that the API holds before its input.
        answer: The `output` that answered it, if that is wanted as well.
    """
    output_format = (mapping(body.get("text")) or {}).get("format")
    head = write_bound([body.get("tools") or [], output_format])
    running = hashlib.sha256(head)
    found: list[BoundBlock] = []
    for path, item in _items_of(body, answer):
        kind = item.get("type") if is_object(item) else None
        if kind == "reasoning":
            item_id = text(item.get("id")) or ""
            seal = text(item.get("encrypted_content")) or item_id
            is_new = path.startswith("output.")
            found.append(BoundBlock(path, seal, running.hexdigest(), is_new, item_id))
            continue
        if kind == "compaction":
            running = hashlib.sha256(head)
        if is_object(item):
            item = {key: value for key, value in item.items() if key not in _UNBOUND}
        running.update(write_bound(item))
    return found


def _items_of(body: Mapping[str, Any], answer: Any) -> Iterator[tuple[str, Any]]:
    sent = body.get("input")
    if isinstance(sent, str):
        yield "input", {"role": "user", "content": sent}
    for index, item in enumerate(items(sent)):
        yield f"input.{index}", item
    for index, item in enumerate(items(answer)):
        yield f"output.{index}", item
