"""What kind of item it is, and who wrote it: what the repairs of pairing share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.openai.responses.sequence import AFTER_REASONING

__all__ = ["TEXT_OUTPUTS", "is_by_model", "kind_of"]

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
    kind = kind_of(item)
    return kind in AFTER_REASONING or (kind == "message" and item.get("role") == "assistant")
