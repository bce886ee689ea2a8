"""Lists of the test server, a page at a time."""

from __future__ import annotations

from lutumpy.errors import Problem
from lutumpy.testing.api_server import Json, Refused

__all__ = ["index_after", "unknown_item", "write_page"]


def index_after(items: list[Json], item_id: str | None) -> int:
    """Where a list goes on after an item; 0 for no item.

    Raises:
        Refused: the list has no such item.
    """
    if item_id is None:
        return 0
    for index, item in enumerate(items):
        if item.get("id") == item_id:
            return index + 1
    raise Refused(unknown_item(item_id))


def unknown_item(item_id: str) -> Problem:
    """The refusal of a request for an item that isn't there."""
    message = f"Item with id '{item_id}' not found."
    return Problem("responses.item", "item_id", message, "refused", status=404)


def write_page(items: list[Json], *, has_more: bool) -> Json:
    """A part of a list, with the ids between which it is."""
    first = items[0]["id"] if items else None
    last = items[-1]["id"] if items else None
    return {"data": items, "first_id": first, "last_id": last, "has_more": has_more}
