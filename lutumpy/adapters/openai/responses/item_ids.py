"""The ids of output items: which may be sent back, and what happens around one that may not."""

# OpenAI refuses an id without the prefix of its type, one that is too long, and one that is sent
# twice. It also ties items together by their ids: an item with an id must come with the reasoning
# that led to it, and reasoning with the item that it led to. Of items without ids it asks neither.
# So where such a tie breaks, the ids after it are left out as well:
#
#   an item whose id doesn't fit      | what is sent                          | the ids after it
#   ----------------------------------+---------------------------------------+-----------------
#   a request for an approval         | the item: the approval names its id   | stay
#   reasoning with its text           | the item without its id               | left out
#   reasoning without                 | nothing                               | left out
#   a message                         | the item without its id; reasoning    | left out, if there
#                                     | right before it is left out           | was such reasoning
#   any other                         | the item without its id               | stay

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
    """The items of one turn, without ids that OpenAI would refuse.

    Args:
        items: The items; they are not changed.
        seen: The ids that were sent before. Those that are sent now are added.
    """
    fitted: list[dict[str, Any]] = []
    is_foreign = _are_of_another_host(items)
    # Whether a tie is broken, so that no further id may be sent.
    broken = False
    for item in items:
        item_id = item.get("id")
        kind = item.get("type")
        fits = item_id is None or _fits(item_id, "" if is_foreign else kind, seen)
        if kind == "mcp_approval_request":
            fitted.append(item)
        elif fits and item_id is None:
            fitted.append(_without_id(item))
        elif fits and not broken:
            seen.add(item["id"])
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


def _are_of_another_host(items: list[dict[str, Any]]) -> bool:
    """Whether a compatible host made the items, with ids of its own: these go back as they came.

    OpenAI itself never sends a message or reasoning without the prefix of its type.
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
    """Leave out reasoning at the end: the message that it led to loses its id.

    Returns:
        Whether there was any.
    """
    found = False
    while fitted and fitted[-1].get("type") == "reasoning" and fitted[-1].get("id"):
        fitted.pop()
        found = True
    return found
