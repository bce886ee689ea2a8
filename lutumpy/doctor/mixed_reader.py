"""Reads what any API wrote in a history of one API, however mixed."""

# What is hard: nothing in a history says which API wrote an entry, and the APIs share words. So
# an object is recognized by its type and its keys, and the same object means different things
# depending on whose history it is in:
#
#     in a history of     `tool_use` in a content   `function_call` as an entry   `tool_calls`
#     Chat Completions    foreign                   foreign                       its own
#     Responses           foreign                   its own                       foreign
#     Messages            its own                   foreign                       foreign
#
# The reader knows the spelling of the history's API (`own`) and those of all APIs in the table,
# so it recognizes the calls of an API that was added while the program runs. Each message and each
# part is read by exactly one spelling, however many would recognize it:
#
#     1. the history's own, where it finds calls or results
#     2. of the built-in ones the one that finds most of them, and of equal ones the first
#     3. an added one, only for what none of those knows: a type, a role, or calls where they see
#        none
#
# So an installed package changes nothing about what a built-in spelling reads.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from lutumpy.apis import by_name, is_built_in
from lutumpy.doctor.pieces import (
    Call,
    Media,
    Opaque,
    OwnPart,
    Piece,
    Result,
    Text,
    add_to_result,
    type_of,
)
from lutumpy.doctor.spelling import PartReader, ResultReader, Spelling
from lutumpy.doctor.wording import as_text

__all__ = ["MixedReader", "ResultLookup", "reader_for"]

# Agent frameworks write calls of this type where Chat Completions has its own.
_FRAMEWORK_CALL = "tool_call"

_COMMON_ROLES = frozenset({"system", "developer", "user", "assistant"})

_Value = TypeVar("_Value")


def reader_for(own: Spelling) -> MixedReader:
    """The reader of histories of an API, with the spellings of all APIs that have one now."""
    built_in: list[Spelling] = []
    added: list[Spelling] = []
    for api, module in by_name("repairs").items():
        spelling = getattr(module, "SPELLING", None)
        if isinstance(spelling, Spelling) and spelling is not own:
            (built_in if is_built_in(api) else added).append(spelling)
    return _reader(own, tuple(built_in), tuple(added))


@lru_cache(maxsize=16)
def _reader(
    own: Spelling, built_in: tuple[Spelling, ...], added: tuple[Spelling, ...]
) -> MixedReader:
    return MixedReader(own, built_in, added)


@dataclass(frozen=True, slots=True)
class ResultLookup:
    """What results don't say themselves, but their calls do.

    Attributes:
        ids: Ids for results that name their call in another way than by an id, by message.
        custom: Results of calls with free text: the message of each, and the id in it.
    """

    ids: Mapping[int, str]
    custom: frozenset[tuple[int, str]]

    def is_custom(self, message: int, call_id: Any) -> bool:
        """Whether the result with this id answers a call with free text."""
        return isinstance(call_id, str) and (message, call_id) in self.custom


class MixedReader:
    """Reads entries and parts of any API, for a history of one.

    Attributes:
        own: The spelling of the history's API.
        any_parts: Types of parts that any API puts into contents.
        readable: Types of parts that say or show something.
        result_roles: Roles of messages that are results.
    """

    def __init__(
        self, own: Spelling, built_in: tuple[Spelling, ...], added: tuple[Spelling, ...]
    ) -> None:
        self.own = own
        self._known = (own, *built_in)
        self._added = added
        self._readers: dict[str, PartReader] = {}
        self._calls: dict[str, PartReader] = {}
        self._message_calls: dict[str, PartReader] = {}
        self._added_message_calls: dict[str, PartReader] = {}
        self._results: dict[str, ResultReader] = {}
        self._result_id_keys: dict[str, str] = {}
        self._part_keys: dict[str, str] = {}
        self._role_names: dict[str, str] = {}
        self._roles: dict[str, Spelling] = {}
        entries: set[str] = set()
        parts: set[str] = set()
        taken: frozenset[str] = frozenset()
        for spelling in (*self._known, *added):
            is_added = spelling in added
            if is_added:
                # What is known already keeps its meaning.
                kinds = [*self._readers, *self._calls, *self._results, *self._message_calls]
                taken = frozenset([*kinds, *entries, *parts, *self._part_keys.values(), "message"])
            calls = self._added_message_calls if is_added else self._message_calls
            _add(self._readers, spelling.readers, taken)
            _add(self._calls, spelling.calls, taken)
            _add(calls, spelling.message_calls, taken)
            _add(self._results, spelling.results, taken)
            id_keys = dict.fromkeys(spelling.results, spelling.result_id_key)
            _add(self._result_id_keys, id_keys, taken)
            keys = frozenset(self._message_calls) if is_added else frozenset[str]()
            _add(self._part_keys, spelling.part_keys, keys)
            roles = dict.fromkeys(spelling.result_roles, spelling)
            known_roles = frozenset([*_COMMON_ROLES, *self._role_names, *self._roles])
            names = spelling.role_names
            _add(self._role_names, names, known_roles if is_added else frozenset())
            _add(self._roles, roles, known_roles if is_added else frozenset())
            entries |= spelling.entries - taken
            parts |= (spelling.parts | spelling.other_parts) - taken
        self.any_parts: frozenset[str] = frozenset(parts)
        self.readable: frozenset[str] = frozenset(self._readers)
        self.result_roles: frozenset[str] = frozenset(self._roles)
        pairing = frozenset([*self._calls, *self._results])
        self._pairing = pairing
        self._foreign_in_content = pairing - own.in_content
        beside = self._message_calls.keys() - own.message_calls.keys()
        self._foreign_beside_content = frozenset([*self._calls, *beside, _FRAMEWORK_CALL])
        # A call or a result that stands alone in the list is an entry there, as in Responses.
        self._foreign_entries = (entries | pairing) - own.entries
        self._id_keys = tuple(dict.fromkeys([known.result_id_key for known in self._known]))

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
        for spelling in (*self._known, *self._added):
            role = spelling.shown_role(entry)
            if role is not None:
                return role
        return None

    def _spelling_of(self, message: Mapping[str, Any], role: str) -> Spelling | None:
        """The one spelling that reads what a message calls or answers beside its content."""
        known = [spelling for spelling in self._known if spelling.has_calls(message, role)]
        if len(known) > 1:
            found = {spelling: self._count_calls(spelling, message, role) for spelling in known}
            return self.own if found.get(self.own) else max(known, key=found.__getitem__)
        if known:
            return known[0]
        if self._kinds_in(message.get("content")) & self._pairing:
            return None
        if self._roles.get(role) in self._added:
            return self._roles[role]
        for spelling in self._added:
            if spelling.has_calls(message, role) and self._count_calls(spelling, message, role):
                return spelling
        return None

    def _count_calls(self, spelling: Spelling, message: Mapping[str, Any], role: str) -> int:
        """How much a spelling reads of calls and results in a message, beside the parts of it."""
        pieces = spelling.read_beside_content(message, 0, self.read_part)
        # Who finds the id of a call as well reads it better than who finds none.
        named = [piece for piece in pieces if isinstance(piece, (Call, Result, OwnPart))]
        count = sum([1 if _lacks_id(piece) else 2 for piece in named])
        if self._roles.get(role) is spelling:
            # The whole message is one, if it says something where this API looks.
            count += 2 * (spelling.content_key in message or spelling.result_id_key in message)
        return count

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
        spelling = self._spelling_of(entry, role)
        if spelling is self.own:
            # Its own results under the role that another API has for them.
            return role in self.result_roles and role not in self.own.result_roles
        return spelling is not None

    def says_elsewhere(self, entry: Any) -> bool:
        """Whether a message says or shows something where another API has it and this one doesn't
        look, as the parts of generateContent or the images of Ollama.
        """
        if not isinstance(entry, Mapping) or self.role_of(entry) is None:
            return False
        spelling = self._spelling_beside(entry, 0)
        if spelling is None or spelling is self.own:
            return False
        # Beside a content only what can be read is said; under a key for contents everything is.
        is_content = spelling.content_key != self.own.content_key and spelling.content_key in entry
        said = (Text, Media, Opaque) if is_content else (Text, Media)
        pieces = spelling.read_beside_content(entry, 0, self.read_part)
        return any(isinstance(piece, said) for piece in pieces)

    def _is_foreign_entry(self, entry: Mapping[str, Any]) -> bool:
        kind = type_of(entry)
        if kind in self._foreign_entries:
            return True
        if kind not in self.own.results or kind not in self.own.entries:
            return False
        # An output of this very API, whose id is under another API's key.
        if self.own.result_id_key in entry:
            return False
        return any(isinstance(entry.get(key), str) for key in self._id_keys)

    def look_up_results(self, messages: list[Any]) -> ResultLookup:
        """Look up in all messages what their results don't say."""
        ids = self._unnamed_result_ids(messages)
        custom = self._custom_results(messages, ids) if self.own.tells_custom_results else ()
        return ResultLookup(ids, frozenset(custom))

    def _custom_results(
        self, messages: list[Any], unnamed_ids: Mapping[int, str]
    ) -> Iterator[tuple[int, str]]:
        kinds = _CallKinds()
        for index, message in enumerate(messages):
            if not isinstance(message, Mapping):
                continue
            role, pieces = self.read_entry(message, index, unnamed_ids.get(index))
            if role != "assistant":
                kinds.end_turn()
            for piece in pieces:
                call_id = _call_id_of(piece)
                if call_id is not None:
                    kinds.call(call_id, is_custom=isinstance(piece, Call) and piece.is_custom)
                elif isinstance(piece, Result) and kinds.answers_custom(piece.call_id):
                    yield index, piece.call_id

    def _unnamed_result_ids(self, messages: list[Any]) -> dict[int, str]:
        found: dict[int, str] = {}
        for spelling in self._known:
            found = {**spelling.unnamed_result_ids(messages), **found}
        for spelling in self._added:
            ids = spelling.unnamed_result_ids(messages)
            found.update({at: ids[at] for at in ids if self._is_read_by(spelling, messages[at])})
        return found

    def _is_read_by(self, spelling: Spelling, entry: Any) -> bool:
        role = self.role_of(entry) if isinstance(entry, Mapping) else None
        return role is not None and self._spelling_of(entry, role) is spelling

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
        spelling = self._spelling_of(entry, role)
        is_result = role in self._roles and spelling in (None, self._roles[role])
        if is_result and not self._kinds_in(content) & self._results.keys():
            return "user", [self._read_result_message(entry, role, unnamed_id)]
        pieces: list[Piece]
        if isinstance(content, str) and content:
            pieces = [Text(content)]
        else:
            pieces = list(self._read_parts(content))
        # Some programs write a call both in the content and beside it: once is enough.
        called = {call_id for piece in pieces if (call_id := _call_id_of(piece)) is not None}
        spelling = spelling or self._spelling_beside(entry, number)
        if spelling is not None:
            for piece in spelling.read_beside_content(entry, number, self.read_part):
                if _call_id_of(piece) not in called:
                    pieces.append(piece)
        return ("user" if role in self.result_roles else role), pieces

    def _read_result_message(
        self, message: Mapping[str, Any], role: str, unnamed_id: str | None
    ) -> Piece:
        spelling = self._roles[role]
        call_id = unnamed_id
        if call_id is None:
            call_id = self._result_id(message, spelling.result_id_key)
        result = spelling.read_result_message(message, call_id, self._read_content)
        # APIs share the role: what only one of them has beside a content shows that it is its.
        beside = [one.read_beside_result(message) for one in (*self._known, *self._added)]
        shown = next((pieces for pieces in beside if pieces), [])
        return add_to_result(result, shown) if shown and isinstance(result, Result) else result

    def _spelling_beside(self, message: Mapping[str, Any], number: int) -> Spelling | None:
        """The first spelling that reads something beside the content of a message without calls."""
        for spelling in (*self._known, *self._added):
            # Front ends write one content under two keys, of which this API reads its own.
            is_content = spelling is not self.own and spelling.content_key != "content"
            if is_content and message.get("content"):
                continue
            if spelling.read_beside_content(message, number, self.read_part):
                return spelling
        return None

    def _result_id(self, result: Mapping[str, Any], own_key: str) -> Any:
        """The id that a result answers: under the key of its own API, or else of another one."""
        for key in (own_key, *self._id_keys):
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
        own_key = self._result_id_keys[kind]
        call_id = self._result_id(part, own_key)
        if part.get(own_key) is None and call_id is not None:
            part = {**part, own_key: call_id}
        return self._results[kind](part, self._read_content)

    def _read_message_call(self, kind: str, part: Mapping[str, Any]) -> Piece | None:
        """A call as it stands beside a content: with a body under its type, or flat."""
        piece = _read_body(self._message_calls, kind, part)
        if piece is not None:
            return piece
        if isinstance(part.get("name"), str) and ("arguments" in part or "args" in part):
            # Agent frameworks write calls without a body around name and arguments.
            call_id = part.get("id", part.get("call_id"))
            return Call(call_id, part["name"], part.get("arguments", part.get("args")))
        return _read_body(self._added_message_calls, kind, part)

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


class _CallKinds:
    """Which kind of call a result answers.

    Hosts use an id again, also for a call of the other kind: a result is for the calls of the last
    turn with its id, in their order.
    """

    __slots__ = ("_of_id", "_of_turn")

    def __init__(self) -> None:
        self._of_id: dict[str, list[bool]] = {}
        self._of_turn: set[str] = set()

    def end_turn(self) -> None:
        """Somebody else speaks, or a result comes."""
        self._of_turn = set()

    def call(self, call_id: str, *, is_custom: bool) -> None:
        """A call, with free text or without."""
        if call_id not in self._of_turn:
            self._of_turn.add(call_id)
            self._of_id[call_id] = []
        self._of_id[call_id].append(is_custom)

    def answers_custom(self, call_id: Any) -> bool:
        """Whether the next result with this id answers a call with free text."""
        kinds = self._of_id.get(call_id) if isinstance(call_id, str) else None
        if not kinds:
            return False
        return kinds.pop(0) if len(kinds) > 1 else kinds[0]


def _add(table: dict[str, _Value], more: Mapping[str, _Value], taken: frozenset[str]) -> None:
    """Add what a table lacks, without the keys that are taken."""
    for key, value in more.items():
        if key not in taken:
            table.setdefault(key, value)


def _read_body(
    readers: Mapping[str, PartReader], kind: str, part: Mapping[str, Any]
) -> Piece | None:
    for known, reader in readers.items():
        if kind == known or (not kind and isinstance(part.get(known), Mapping)):
            piece = reader(part)
            if piece is not None:
                return piece
    return None


def _lacks_id(piece: Piece) -> bool:
    return isinstance(piece, Call) and _call_id_of(piece) is None


def _call_id_of(piece: Piece) -> str | None:
    call_id = piece.call_id if isinstance(piece, (Call, OwnPart)) else None
    return call_id if isinstance(call_id, str) else None
