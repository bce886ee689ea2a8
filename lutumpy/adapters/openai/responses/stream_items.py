"""The output items of a streamed Responses answer: which item an event is about, and what the item is so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.openai.merged_object import join
from lutumpy.adapters.openai.reply_fields import mapping, model_text, text
from lutumpy.adapters.openai.responses.decode import CALLS, CLIENT_RUN, output_of

__all__ = ["StreamedItem", "StreamedItems", "parts_of"]

# Where the pieces of a part belong in its item, and what its text is called there.
_PLACES = {
    "output_text": ("content", "text"),
    "refusal": ("content", "refusal"),
    "summary_text": ("summary", "text"),
    "reasoning_text": ("content", "text"),
}


class StreamedItem:
    """One output item as far as it has arrived."""

    __slots__ = ("_kinds", "arguments", "call", "done", "item", "parts", "told")

    def __init__(self, item: dict[str, Any]) -> None:
        self.item: dict[str, Any] = item
        self.done: bool = False
        self.arguments: list[str] = []
        self.parts: dict[tuple[str, int], list[str]] = {}
        self._kinds: set[str] = set()
        self.call: int | None = None
        """Which call of the turn it is, once that is known."""
        self.told: int = 0
        """How many characters of its arguments were told."""

    @property
    def kind(self) -> str:
        """The item's type."""
        return text(self.item.get("type")) or ""

    def add_part(self, kind: str, index: Any, piece: str) -> bool:
        """Take a piece of a part; whether it is the first one of a further part of this kind."""
        key = (kind, index if type(index) is int else 0)
        pieces = self.parts.get(key)
        further = pieces is None and kind in self._kinds
        if pieces is None:
            pieces = self.parts[key] = []
            self._kinds.add(kind)
        pieces.append(piece)
        return further

    def said(self, kind: str) -> bool:
        """Whether any piece of this kind has come."""
        return kind in self._kinds

    def text_of_arguments(self) -> str:
        """The arguments so far."""
        if self.kind not in CALLS:
            return ""
        given = self.item.get(CALLS[self.kind][1])
        if self.done or not self.arguments:
            return model_text(given)
        return join(self.arguments)

    def whole(self) -> dict[str, Any]:
        """The item as it would stand in a whole answer."""
        if self.done:
            return self.item
        item = dict(self.item)
        if self.kind in CALLS:
            item[CALLS[self.kind][1]] = self.text_of_arguments()
        for (kind, _), pieces in sorted(self.parts.items(), key=lambda part: part[0][1]):
            field, name = _PLACES[kind]
            if pieces:
                item[field] = [*(item.get(field) or ()), {"type": kind, name: join(pieces)}]
        return item


class StreamedItems:
    """All of them, in the order of the answer.

    Also counts the calls among them, in step with the decoder of whole answers. A call that the provider may have run
    itself counts only when the answer has no output of it: until that is known, the calls after it have no number.
    """

    __slots__ = (
        "_by_id",
        "_by_index",
        "_calls",
        "_ordered",
        "counted",
        "items",
        "open_functions",
        "outputs",
    )

    def __init__(self) -> None:
        self.items: list[StreamedItem] = []
        self.outputs: set[str] = set()
        self.open_functions: dict[str, StreamedItem] = {}
        """The function calls whose arguments may still arrive, by the item's id."""
        self._by_index: dict[int, StreamedItem] = {}
        self._by_id: dict[str, StreamedItem] = {}
        self.counted: int = 0
        """Of how many items it is known whether they are calls."""
        self._calls = 0
        self._ordered = True

    def begin(self, event: Mapping[str, Any], item: dict[str, Any]) -> StreamedItem:
        """Add an item."""
        entry = StreamedItem(item)
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
        """Take an item that is complete, begun before or not."""
        entry = self._find(event, item.get("id"))
        if entry is None or entry.done:
            entry = self.begin(event, item)
        begun_as = text(entry.item.get("id"))
        if begun_as is not None and self.open_functions.get(begun_as) is entry:
            del self.open_functions[begun_as]
        entry.item = item
        entry.done = True
        self._note_output(item)
        return entry

    def about(self, event: Mapping[str, Any], kind: str) -> StreamedItem:
        """The item that a piece belongs to; a host may leave its beginning out."""
        entry = self._find(event, event.get("item_id"))
        if entry is not None and not entry.done and entry.kind == kind:
            return entry
        item: dict[str, Any] = {"type": kind}
        if (item_id := text(event.get("item_id"))) is not None:
            item["id"] = item_id
        return self.begin(event, item)

    def count(self) -> list[StreamedItem]:
        """The calls whose number has become known."""
        found: list[StreamedItem] = []
        while self._ordered and self.counted < len(self.items):
            entry = self.items[self.counted]
            is_call = self._is_call(entry)
            if is_call is None:
                break
            if is_call:
                entry.call = self._calls
                self._calls += 1
                found.append(entry)
            self.counted += 1
        return found

    def _find(self, event: Mapping[str, Any], item_id: Any) -> StreamedItem | None:
        # The id first, as some hosts give all items one index; then the index, as others change the id on the way.
        entry = self._by_id.get(item_id) if isinstance(item_id, str) else None
        if entry is None and type(index := event.get("output_index")) is int:
            entry = self._by_index.get(index)
        return entry

    def _note_output(self, item: Mapping[str, Any]) -> None:
        if (answered := output_of(item)) is not None:
            self.outputs.add(answered)

    def _is_call(self, entry: StreamedItem) -> bool | None:
        kind = entry.kind
        if kind in CALLS:
            # A host may leave its beginning out; then its name comes with its end.
            return True if entry.done or text(entry.item.get("name")) else None
        if kind not in CLIENT_RUN:
            return False
        if kind == "tool_search_call":
            return entry.item.get("execution") == "client"
        call_id = entry.item.get("call_id")
        if not isinstance(call_id, str):
            return True if entry.done or kind == "mcp_approval_request" else None
        return False if call_id in self.outputs else None


def parts_of(item: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The texts in a complete item: kind of the part and its text."""
    found: list[tuple[str, str]] = []
    content = item.get("content")
    if item.get("type") == "message" and isinstance(content, str) and content:
        found.append(("output_text", content))
    for field in ("summary", "content"):
        parts = item.get(field)
        for part in parts if isinstance(parts, list) else []:
            kind = mapping(part).get("type")
            if isinstance(kind, str) and kind in _PLACES and _PLACES[kind][0] == field:
                piece = part.get(_PLACES[kind][1])
                if isinstance(piece, str):
                    found.append((kind, piece))
    return found
