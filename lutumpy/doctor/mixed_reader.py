"""Reads what any API wrote in a history of one API, however mixed."""

# What is hard: nothing in a history says which API wrote an entry, and the APIs share words. So
# an object is recognized by its type and its keys, and the same object means different things
# depending on whose history it stands in:
#
#     in a history of     `tool_use` in a content   `function_call` as an entry   `tool_calls`
#     Chat Completions    foreign                   foreign                       its own
#     Responses           foreign                   its own                       foreign
#     Messages            its own                   foreign                       foreign
#
# The reader knows the spelling of the history's API (`own`) and those of all APIs in the table,
# so it recognizes the calls of an API that was added while the program runs.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from lutumpy.apis import by_name
from lutumpy.doctor.pieces import Call, Opaque, OwnPart, Piece, Result, Text, type_of
from lutumpy.doctor.spelling import PartReader, ResultReader, Spelling
from lutumpy.doctor.wording import as_text

__all__ = ["MixedReader", "reader_for"]

# Agent frameworks write calls of this type where Chat Completions has its own.
_FRAMEWORK_CALL = "tool_call"


def reader_for(own: Spelling) -> MixedReader:
    """The reader of histories of an API, with the spellings of all APIs that have one now."""
    others = [getattr(module, "SPELLING", None) for module in by_name("repairs").values()]
    known = [spelling for spelling in others if isinstance(spelling, Spelling)]
    if own not in known:
        known.append(own)
    return _reader(own, tuple(known))


@lru_cache(maxsize=16)
def _reader(own: Spelling, known: tuple[Spelling, ...]) -> MixedReader:
    return MixedReader(own, known)


class MixedReader:
    """Reads entries and parts of any API, for a history of one.

    Attributes:
        own: The spelling of the history's API.
        any_parts: Types of parts that any API puts into contents.
        readable: Types of parts that say or show something.
    """

    def __init__(self, own: Spelling, known: tuple[Spelling, ...]) -> None:
        self.own = own
        self._known = known
        self._readers: dict[str, PartReader] = {}
        self._calls: dict[str, PartReader] = {}
        self._message_calls: dict[str, PartReader] = {}
        self._results: dict[str, ResultReader] = {}
        self._part_keys: dict[str, str] = {}
        self._role_names: dict[str, str] = {}
        entries: set[str] = set()
        parts: set[str] = set()
        for spelling in known:
            self._readers.update(spelling.readers)
            self._calls.update(spelling.calls)
            self._message_calls.update(spelling.message_calls)
            self._results.update(spelling.results)
            self._part_keys.update(spelling.part_keys)
            self._role_names.update(spelling.role_names)
            entries |= spelling.entries
            parts |= spelling.parts | spelling.other_parts
        self.any_parts: frozenset[str] = frozenset(parts)
        self.readable: frozenset[str] = frozenset(self._readers)
        pairing = frozenset([*self._calls, *self._results])
        self._foreign_in_content = pairing - own.in_content
        self._foreign_beside_content = frozenset(self._calls) | {_FRAMEWORK_CALL}
        # A call or a result that stands alone in the list is an entry there, as in Responses.
        self._foreign_entries = (entries | pairing) - own.entries
        self._id_keys = tuple(dict.fromkeys([spelling.result_id_key for spelling in known]))
        self.result_roles: frozenset[str] = frozenset(
            [role for spelling in known for role in spelling.result_roles]
        )

    # --------------------------------------------------------- recognizing

    def kind_of(self, value: Any) -> str:
        """The type of a part; of one without a `type` what its only key stands for."""
        kind = type_of(value)
        if kind or not isinstance(value, Mapping) or len(value) != 1:
            return kind
        return next((self._part_keys[key] for key in value if key in self._part_keys), "")

    def _kinds_in(self, content: Any) -> frozenset[str]:
        """The types of the parts of a content."""
        if not isinstance(content, list):
            return frozenset()
        return frozenset([self.kind_of(part) for part in content]) - {""}

    def role_of(self, entry: Mapping[str, Any]) -> str | None:
        """The role of a message, given or shown by its keys; `None` for an item without one."""
        role = entry.get("role")
        if isinstance(role, str):
            return self._role_names.get(role, role)
        if isinstance(entry.get("type"), str):
            return None
        for spelling in self._known:
            role = spelling.shown_role(entry)
            if role is not None:
                return role
        return None

    def is_result(self, entry: Mapping[str, Any]) -> bool:
        """Whether an entry is nothing but a result."""
        role = self.role_of(entry)
        if role is None:
            return type_of(entry) in self._results
        return role in self.result_roles

    def holds_foreign_calls(self, entry: Any) -> bool:
        """Whether a message or an item has calls or results in another API's spelling."""
        if not isinstance(entry, Mapping):
            return False
        role = self.role_of(entry)
        if role is None:
            return self._is_foreign_entry(entry)
        if self._kinds_in(entry.get("content")) & self._foreign_in_content:
            return True
        if self.own.has_foreign_calls(entry, role, self._foreign_beside_content, self._id_keys):
            return True
        others = [spelling for spelling in self._known if spelling is not self.own]
        return any(spelling.has_calls(entry, role) for spelling in others)

    def _is_foreign_entry(self, entry: Mapping[str, Any]) -> bool:
        kind = type_of(entry)
        if kind in self._foreign_entries:
            return True
        if kind not in self.own.results or kind not in self.own.entries:
            return False
        # An output of this very API, whose id stands under another API's key.
        if self.own.result_id_key in entry:
            return False
        return any(isinstance(entry.get(key), str) for key in self._id_keys)

    def unnamed_result_ids(self, messages: list[Any]) -> dict[int, str]:
        """Ids for results that name their call in another way than by an id, by message."""
        found: dict[int, str] = {}
        for spelling in self._known:
            found.update(spelling.unnamed_result_ids(messages))
        return found

    # ------------------------------------------------------------- reading

    def read_entry(
        self, entry: Mapping[str, Any], number: int, unnamed_id: str | None = None
    ) -> tuple[str, list[Piece]]:
        """The role of a message or an item, and its pieces.

        Args:
            entry: The message.
            number: Its index in the list.
            unnamed_id: The id that its call gets, when the result names it in another way.
        """
        role = self.role_of(entry)
        if role is None:
            piece = self.read_part(entry)
            return ("user" if isinstance(piece, Result) else "assistant"), [piece]
        content = entry.get("content")
        if role in self.result_roles and not self._kinds_in(content) & self._results.keys():
            return "user", [self._read_result_message(entry, role, unnamed_id)]
        pieces: list[Piece]
        if isinstance(content, str) and content:
            pieces = [Text(content)]
        else:
            pieces = list(self._read_parts(content))
        # Some programs write a call both in the content and beside it: once is enough.
        called = {call_id for piece in pieces if (call_id := _call_id_of(piece)) is not None}
        for spelling in self._known:
            for piece in spelling.read_beside_content(entry, number, self.read_part):
                if _call_id_of(piece) not in called:
                    pieces.append(piece)
        return ("user" if role in self.result_roles else role), pieces

    def _read_result_message(
        self, message: Mapping[str, Any], role: str, unnamed_id: str | None
    ) -> Piece:
        spelling = next(known for known in self._known if role in known.result_roles)
        call_id = self._result_id(message, spelling) if unnamed_id is None else unnamed_id
        return spelling.read_result_message(message, call_id, self._read_content)

    def _result_id(self, result: Mapping[str, Any], spelling: Spelling) -> Any:
        """The id that a result answers: under the key of its own API, or else of another one."""
        for key in (spelling.result_id_key, *self._id_keys):
            if result.get(key) is not None:
                return result[key]
        return None

    def read_part(self, part: Any) -> Piece:
        """A part, a block, a call or an item, by its type."""
        if not isinstance(part, Mapping):
            return Opaque(part)
        kind = self.kind_of(part)
        if kind in self._calls:
            return self._read_call(kind, part)
        if kind in self._results:
            return self._read_result(kind, part)
        piece = self._read_message_call(kind, part)
        if piece is not None:
            return piece
        if kind in self.own.parts:
            return OwnPart(part)
        reader = self._readers.get(kind)
        piece = reader(part) if reader is not None else None
        return piece if piece is not None else Opaque(part)

    def _read_call(self, kind: str, part: Mapping[str, Any]) -> Piece:
        piece = self._calls[kind](part)
        if piece is None:
            return Opaque(part)
        if kind in self.own.in_content:
            return OwnPart(part, call_id=_call_id_of(piece))
        return piece

    def _read_result(self, kind: str, part: Mapping[str, Any]) -> Piece:
        spelling = next(known for known in self._known if kind in known.results)
        call_id = self._result_id(part, spelling)
        if part.get(spelling.result_id_key) is None and call_id is not None:
            part = {**part, spelling.result_id_key: call_id}
        return self._results[kind](part, self._read_content)

    def _read_message_call(self, kind: str, part: Mapping[str, Any]) -> Piece | None:
        """A call as it stands beside a content: with a body under its type, or flat."""
        for known, reader in self._message_calls.items():
            if kind == known or (not kind and isinstance(part.get(known), Mapping)):
                piece = reader(part)
                if piece is not None:
                    return piece
        if isinstance(part.get("name"), str) and ("arguments" in part or "args" in part):
            # Agent frameworks write calls without a body around name and arguments.
            call_id = part.get("id", part.get("call_id"))
            return Call(call_id, part["name"], part.get("arguments", part.get("args")))
        return None

    def _read_content(self, content: Any) -> str | tuple[Piece, ...]:
        if content is None or isinstance(content, str):
            return content or ""
        if type_of(content) in self.any_parts:
            content = [content]
        return tuple(self._read_parts(content)) if isinstance(content, list) else as_text(content)

    def _read_parts(self, content: Any) -> Iterator[Piece]:
        for part in content if isinstance(content, list) else ():
            if isinstance(part, Mapping):
                yield self.read_part(part)
            elif part not in (None, ""):
                yield Text(part if isinstance(part, str) else as_text(part))


def _call_id_of(piece: Piece) -> str | None:
    call_id = piece.call_id if isinstance(piece, (Call, OwnPart)) else None
    return call_id if isinstance(call_id, str) else None
