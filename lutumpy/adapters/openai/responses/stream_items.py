"""The output items of a streamed reply: which item an event is about, and what it is so far."""

# Two things are hard. Hosts identify items in different ways: some give all items one index, others
# change an item's id on the way. So the id is looked up first, and then the index.
#
# And a call has an index in the finished turn that depends on what comes before it: a call that
# the provider may have run itself counts only if the reply has no output of it. Until that is
# known, the calls after it have no index:
#
#   the item                              | is it a call of the turn?
#   --------------------------------------+----------------------------------------------------
#   a function or custom call             | yes, once its name is known
#   a search for tools                    | if the client is to run it
#   another call that a client may run,   | if the reply has no output of it: known when the
#   or an item of no known type that      | output comes, and otherwise at the end of the reply
#   looks like a call                     |
#   anything else                         | no

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.openai.merged_object import join_text
from lutumpy.adapters.openai.reply_fields import mapping, model_text, text
from lutumpy.adapters.openai.responses.decode import CALLS, is_for_client, output_of
from lutumpy.plain.json_values import copied
from lutumpy.rules.openai.responses.items import ITEM_TYPES

__all__ = ["StreamedItem", "StreamedItems", "texts_of"]

# Calls for the client of which nothing but their beginning has to be known.
_REPORTED_AT_ONCE = ("mcp_approval_request", "tool_search_call")

# For each kind of part, the field of the item that it belongs to, and the field of its text.
_PLACES = {
    "output_text": ("content", "text"),
    "refusal": ("content", "refusal"),
    "summary_text": ("summary", "text"),
    "reasoning_text": ("content", "text"),
}


class StreamedItem:
    """One output item as far as it has arrived."""

    __slots__ = ("_kinds", "arguments", "call", "done", "item", "parts", "reported")

    def __init__(self, item: dict[str, Any]) -> None:
        self.item: dict[str, Any] = item
        self.done: bool = False
        self.arguments: list[str] = []
        self.parts: dict[tuple[str, int], list[str]] = {}
        self._kinds: set[str] = set()
        self.call: int | None = None
        """Which call of the turn it is, once that is known."""
        self.reported: int = 0
        """How many characters of its arguments were reported."""

    @property
    def kind(self) -> str:
        """The item's type."""
        return text(self.item.get("type")) or ""

    def add_text(self, kind: str, index: Any, delta: str) -> bool:
        """Take a delta of a part's text.

        Returns:
            Whether it begins a part that is not the first one of this kind.
        """
        key = (kind, index if type(index) is int else 0)
        deltas = self.parts.get(key)
        is_further = deltas is None and kind in self._kinds
        if deltas is None:
            deltas = self.parts[key] = []
            self._kinds.add(kind)
        deltas.append(delta)
        return is_further

    def has_text(self, kind: str) -> bool:
        """Whether any delta of a part of this kind has come."""
        return kind in self._kinds

    def text_of_arguments(self) -> str:
        """The arguments so far."""
        if self.kind not in CALLS:
            return ""
        if self.done or not self.arguments:
            return model_text(self.item.get(CALLS[self.kind][1]))
        return join_text(self.arguments)

    def whole(self) -> dict[str, Any]:
        """The item as a whole reply would have it."""
        if self.done:
            return self.item
        item = dict(self.item)
        if self.kind in CALLS:
            item[CALLS[self.kind][1]] = self.text_of_arguments()
        for (kind, _), deltas in sorted(self.parts.items(), key=lambda part: part[0][1]):
            field, name = _PLACES[kind]
            if deltas:
                item[field] = [*(item.get(field) or ()), {"type": kind, name: join_text(deltas)}]
        return item


class StreamedItems:
    """All items in the order of the reply, and the indexes of the calls among them."""

    __slots__ = (
        "_by_id",
        "_by_index",
        "_call_count",
        "_ordered",
        "counted",
        "items",
        "open_functions",
        "outputs",
    )

    def __init__(self) -> None:
        self.items: list[StreamedItem] = []
        self.outputs: set[str] = set()
        """The ids of the calls whose outputs are among the items."""
        self.open_functions: dict[str, StreamedItem] = {}
        """The function calls whose arguments may still arrive, by the item's id."""
        self._by_index: dict[int, StreamedItem] = {}
        self._by_id: dict[str, StreamedItem] = {}
        self.counted: int = 0
        """Of how many items, from the first one, it is known whether they are calls."""
        self._call_count = 0
        # Whether the indexes of the events are the places of the items. If not, calls have no index
        # before the end.
        self._ordered = True

    def begin(self, event: Mapping[str, Any], item: dict[str, Any]) -> StreamedItem:
        """Add an item, which may be whole or just have begun."""
        entry = StreamedItem(copied(item))
        index = event.get("output_index")
        if type(index) is int:
            self._ordered = self._ordered and index == len(self.items)
            self._by_index[index] = entry
        if (item_id := text(item.get("id"))) is not None:
            self._by_id[item_id] = entry
            if entry.kind == "function_call":
                self.open_functions[item_id] = entry
            else:
                self.open_functions.pop(item_id, None)
        self.items.append(entry)
        self._note_output(item)
        return entry

    def end(self, event: Mapping[str, Any], item: dict[str, Any]) -> StreamedItem:
        """Take a complete item, whether or not it was begun before."""
        entry = self._find(event, item.get("id"))
        if entry is None or entry.done:
            entry = self.begin(event, item)
        begun_as = text(entry.item.get("id"))
        if begun_as is not None and self.open_functions.get(begun_as) is entry:
            del self.open_functions[begun_as]
        entry.item = copied(item)
        entry.done = True
        self._note_output(item)
        return entry

    def about(self, event: Mapping[str, Any], kind: str) -> StreamedItem:
        """The item of this type that a delta belongs to; it begins now if a host left that out."""
        entry = self._find(event, event.get("item_id"))
        if entry is not None and not entry.done and entry.kind == kind:
            return entry
        item: dict[str, Any] = {"type": kind}
        if (item_id := text(event.get("item_id"))) is not None:
            item["id"] = item_id
        return self.begin(event, item)

    def number_calls(self) -> list[StreamedItem]:
        """Give calls their indexes as far as they are known; gives the calls that got one now."""
        found: list[StreamedItem] = []
        while self._ordered and self.counted < len(self.items):
            entry = self.items[self.counted]
            is_call = self._is_call(entry)
            if is_call is None:
                break
            if is_call:
                entry.call = self._call_count
                self._call_count += 1
                found.append(entry)
            self.counted += 1
        return found

    def _find(self, event: Mapping[str, Any], item_id: Any) -> StreamedItem | None:
        # See above: the id first, then the index.
        entry = self._by_id.get(item_id) if isinstance(item_id, str) else None
        if entry is None and type(index := event.get("output_index")) is int:
            entry = self._by_index.get(index)
        return entry

    def _note_output(self, item: Mapping[str, Any]) -> None:
        if (answered := output_of(item)) is not None:
            self.outputs.add(answered)

    def _is_call(self, entry: StreamedItem) -> bool | None:
        """Whether an item is a call of the turn, as `OutputReading` finds; `None`: not known."""
        kind = entry.kind
        if kind in CALLS:
            # If a host leaves the beginning of an item out, the name comes with its end.
            return True if entry.done or text(entry.item.get("name")) else None
        found = is_for_client(entry.item, kind)
        if found is None:
            return False if entry.item.get("call_id") in self.outputs else None
        if not entry.done and (kind not in ITEM_TYPES or (found and kind not in _REPORTED_AT_ONCE)):
            return None  # fields that come with the end of the item may tell otherwise
        return found


def texts_of(item: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The texts in a complete item, each with the kind of its part."""
    found: list[tuple[str, str]] = []
    content = item.get("content")
    if item.get("type") == "message" and isinstance(content, str) and content:
        found.append(("output_text", content))
    for field in ("summary", "content"):
        parts = item.get(field)
        for part in parts if isinstance(parts, list) else []:
            kind = mapping(part).get("type")
            if isinstance(kind, str) and kind in _PLACES and _PLACES[kind][0] == field:
                text_of_part = part.get(_PLACES[kind][1])
                if isinstance(text_of_part, str):
                    found.append((kind, text_of_part))
    return found
