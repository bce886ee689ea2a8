"""Items of one host of Responses as another one takes them (rules OR2 and OR3)."""

from __future__ import annotations

from typing import Any

__all__ = ["fit_items"]

# What the API's schema knows of an assistant's message and of the calls that a client runs, without
# ids, which name what the host has stored.
_KEYS = {
    "message": ("type", "role", "status", "phase", "content"),
    "function_call": ("type", "call_id", "name", "namespace", "arguments", "status"),
    "custom_tool_call": ("type", "call_id", "name", "namespace", "input", "status"),
}
_PART_KEYS = {"output_text": ("type", "text", "annotations"), "refusal": ("type", "refusal")}


def fit_items(items: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The items of another host's answer, as far as the API's schema goes.

    Reasoning is sealed for the host that gave it, and what the host has run itself is known to it
    alone.

    Args:
        items: The items.

    Returns:
        The items that go, and the kinds of those that don't.
    """
    kept: list[dict[str, Any]] = []
    left: list[str] = []
    for item in items:
        kind = item.get("type", "message")
        if kind not in _KEYS:
            if kind not in left:
                left.append(str(kind))
            continue
        fitted = {key: item[key] for key in _KEYS[kind] if item.get(key) is not None}
        if isinstance(fitted.get("content"), list):
            fitted["content"] = [_fit_part(part) for part in fitted["content"]]
        kept.append(fitted)
    return kept, left


def _fit_part(part: Any) -> Any:
    keys = _PART_KEYS.get(str(part.get("type"))) if isinstance(part, dict) else None
    return part if keys is None else {key: part[key] for key in keys if key in part}
