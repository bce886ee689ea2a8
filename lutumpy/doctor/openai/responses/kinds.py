"""What kind of item it is, and who wrote it: what the repairs of pairing share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lutumpy.doctor.editor import Editor, Path
from lutumpy.rules.openai.responses import kinds

__all__ = ["TEXT_OUTPUTS", "call_id_of", "is_by_model", "kind_of", "outputs_by_call"]

TEXT_OUTPUTS: Mapping[str, str] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
"""Calls that a text answers, and the type of that output."""


def kind_of(item: Any) -> str:
    """The type of an item; messages may come without one. Empty for everything else."""
    if not isinstance(item, dict):
        return ""
    kind = item.get("type")
    if isinstance(kind, str):
        return kind
    return "message" if kind is None and "role" in item else ""


def is_by_model(item: Any) -> bool:
    """Whether the model wrote an item."""
    return kind_of(item) != "" and kinds.is_by_model(item)


def call_id_of(item: Any) -> str | None:
    """The id by which a call and its output know each other."""
    return kinds.id_of_call(item) if isinstance(item, dict) else None


def outputs_by_call(editor: Editor, indices: Iterable[int]) -> dict[str, list[Path]]:
    """The places of some outputs, by the id of the call that each answers."""
    found: dict[str, list[Path]] = {}
    for index in indices:
        call_id = call_id_of(editor.get((index,)))
        if call_id is not None:
            found.setdefault(call_id, []).append((index,))
    return found
