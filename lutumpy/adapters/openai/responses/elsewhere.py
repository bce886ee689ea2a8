"""Items of one host of Responses as another one takes them (rules OR2 and OR3)."""

from __future__ import annotations

from typing import Any

from lutumpy.rules.openai.responses.moves import ITEM_KEYS, PART_KEYS

__all__ = ["fit_items"]


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
        if kind not in ITEM_KEYS:
            if kind not in left:
                left.append(str(kind))
            continue
        fitted = {key: item[key] for key in ITEM_KEYS[kind] if item.get(key) is not None}
        if isinstance(fitted.get("content"), list):
            fitted["content"] = [_fit_part(part) for part in fitted["content"]]
        kept.append(fitted)
    return kept, left


def _fit_part(part: Any) -> Any:
    keys = PART_KEYS.get(str(part.get("type"))) if isinstance(part, dict) else None
    return part if keys is None else {key: part[key] for key in keys if key in part}
