"""The ids of output items: which ones may be sent back, and what becomes of the items around one that may not.

OpenAI refuses an id without its type's prefix, over 64 characters, or sent twice. It also ties items together by their ids:
an item that has one must come with the reasoning it was sent with, and a reasoning item with the item it led to. Without
ids it asks for neither, so where a tie is broken, the ids after it go as well.
"""

from __future__ import annotations

from typing import Any

from lutumpy.rules.openai.responses.limits import ID_PREFIXES, MAX_ITEM_ID

__all__ = ["fit_ids", "ids_fit"]


def ids_fit(items: list[dict[str, Any]]) -> bool:
    """Whether the items of one turn can be sent with their ids as they are."""
    seen: set[str] = set()
    for item in items:
        item_id = item.get("id")
        if item_id is None:
            continue
        if not _fits(item_id, item.get("type"), seen):
            return False
        seen.add(item_id)
    return True


def fit_ids(items: list[dict[str, Any]], seen: set[str]) -> list[dict[str, Any]]:
    """The items of one turn with no id that would be refused after the ids in `seen`; the ids sent are added to it."""
    fitted: list[dict[str, Any]] = []
    foreign = _of_another_host(items)
    broken = False
    for item in items:
        item_id = item.get("id")
        kind = item.get("type")
        fits = item_id is None or _fits(item_id, "" if foreign else kind, seen)
        if kind == "mcp_approval_request":
            # Its id is what the approval names, so it is never dropped.
            fitted.append(item)
        elif fits and not (broken and item_id is not None):
            if item_id is None:
                item = {name: value for name, value in item.items() if name != "id"}
            else:
                seen.add(item_id)
            fitted.append(item)
        elif kind == "reasoning":
            broken = True
            if item.get("encrypted_content") or item.get("content"):
                fitted.append(_without_id(item))
        else:
            if kind == "message":
                broken = _drop_tied_reasoning(fitted) or broken
            fitted.append(_without_id(item))
    return fitted


def _fits(item_id: Any, kind: Any, seen: set[str]) -> bool:
    return (
        type(item_id) is str
        and 0 < len(item_id) <= MAX_ITEM_ID
        and item_id.startswith(ID_PREFIXES.get(kind, ""))
        and item_id not in seen
    )


def _of_another_host(items: list[dict[str, Any]]) -> bool:
    """Whether a compatible host made the items, with ids of its own making: those go back to it as they came.

    OpenAI itself never sends a message or reasoning whose id lacks its prefix.
    """
    found = False
    for item in items:
        item_id, prefix = item.get("id"), ID_PREFIXES.get(item.get("type", ""))
        if not isinstance(item_id, str) or prefix is None:
            continue
        if item_id.startswith(prefix):
            return False
        found = found or item["type"] in ("message", "reasoning")
    return found


def _without_id(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "id"}


def _drop_tied_reasoning(fitted: list[dict[str, Any]]) -> bool:
    """Leave out the reasoning at the end that would miss the message which loses its id; whether there was any."""
    found = False
    while fitted and fitted[-1].get("type") == "reasoning" and fitted[-1].get("id"):
        fitted.pop()
        found = True
    return found
