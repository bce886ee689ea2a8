"""Calls of kinds that nobody knows: what looks like one, and which of them wait for an answer.

An API gets new kinds of calls while programs with an older library ask it. What looks like a call
and isn't answered in the same reply is a call for the client all the same: it becomes an issue
(rule C8), so that a loop goes on and the next request holds an answer to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from lutumpy.core.items import Block, CallBlock
from lutumpy.core.streaming import CallDelta
from lutumpy.plain.json_values import clean_text, encode_text

__all__ = [
    "UnknownCalls",
    "calls_in_fields",
    "deltas_of_waiting",
    "has_outcome",
    "unknown_call",
    "wanted_by",
]

# Where APIs write what a call is to do, in the order of preference, and what came of one.
_WANTED = ("arguments", "input", "args", "parameters", "operation", "action", "actions")
# Words for kinds of calls: `foo_call`, `fooUse`.
_CALL_WORD = re.compile(r"(?:call|invocation|request|use)s?\Z", re.IGNORECASE)
_OUTCOMES = ("output", "outputs", "result", "results", "response", "content", "error")


def has_outcome(item: Mapping[str, Any]) -> bool:
    """Whether an item says what came of a call: an output, or a call that the provider has run."""
    return any(item.get(field) is not None for field in _OUTCOMES)


def wanted_by(item: Mapping[str, Any]) -> Any:
    """What a call is to do, wherever it says so; `None` if nowhere."""
    return next((item[field] for field in _WANTED if item.get(field) is not None), None)


def unknown_call(
    kind: str,
    item: Mapping[str, Any],
    call_id: Any,
    position: int,
    id_field: str | None = None,
    *,
    name_tells: bool = False,
    place_tells: bool = False,
) -> CallBlock | None:
    """The call in a block of no known kind; `None` if it doesn't look like one.

    An id alone has every item, and a name many. A call has two of four: an id, a name, what it is
    to do, and a word for its kind that says so.

    Args:
        kind: The provider's word for the block.
        item: What the block holds.
        call_id: Its id, of any type.
        position: The block's index in the native form.
        id_field: Where its id is there, if not where those of other calls do.
        name_tells: Nothing but a call has a name in this API.
        place_tells: Nothing but a call can be at its place.
    """
    name, wanted = item.get("name"), wanted_by(item)
    known_id = call_id if isinstance(call_id, str) else ""
    known_name = name if isinstance(name, str) else ""
    says_what = isinstance(wanted, (dict, str, list))
    says_kind = _CALL_WORD.search(kind) is not None
    signs = bool(known_id) + bool(known_name) + says_what + says_kind
    is_certain = place_tells or (name_tells and bool(known_name))
    if has_outcome(item) or not (signs >= 2 or is_certain):
        return None
    if wanted is None:
        arguments = ""
    else:
        arguments = wanted if isinstance(wanted, str) else encode_text(wanted)
    return CallBlock(
        clean_text(known_id),
        clean_text(known_name or kind),
        clean_text(arguments),
        clean_text(kind),
        as_object=True,
        position=position,
        id_field=id_field,
    )


def calls_in_fields(fields: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The calls that are in a message under keys that nobody knows, each with its key.

    An object there is a call if it has a name and says what it is to do, and not what came of it.
    """
    found: list[tuple[str, Mapping[str, Any]]] = []
    for key, value in fields.items():
        if isinstance(value, (dict, list)):
            inner = value if isinstance(value, list) else [value]
            found += [(key, one) for one in inner if isinstance(one, dict) and _is_named_call(one)]
    return found


def _is_named_call(item: Mapping[str, Any]) -> bool:
    is_named = isinstance(item.get("name"), str) and item["name"] != ""
    return is_named and wanted_by(item) is not None and not has_outcome(item)


class UnknownCalls:
    """What looks like calls in a reply, until it is known what the provider has run itself.

    Args:
        results: In a history, the ids of the calls that have results there, or their names where
            they have no ids: what has none is not a call then. `None` for a reply, whose calls have
            no results yet.
    """

    __slots__ = ("_answered", "_found", "_results")

    def __init__(self, results: AbstractSet[str] | None = None) -> None:
        self._found: list[tuple[int, CallBlock]] = []
        self._answered: set[str] = set()
        self._results = results

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, place: int, call: CallBlock) -> None:
        """Note what looks like a call.

        Args:
            place: Its index among the blocks of the turn.
            call: The call that it would be.
        """
        self._found.append((place, call))

    def note_answer(self, call_id: Any) -> None:
        """Note that the reply holds an answer to the call of this id, of any type."""
        if isinstance(call_id, str):
            self._answered.add(clean_text(call_id))

    def ids(self) -> set[str]:
        """The ids of those that nothing answers so far."""
        return {call.id for _, call in self._found} - self._answered

    def settle(self, blocks: list[Block], calls: list[CallBlock]) -> list[CallBlock]:
        """Put the calls that nothing answers among the others, in the order of the reply.

        Args:
            blocks: The blocks of the turn, changed here.
            calls: The calls among them, changed here.

        Returns:
            The calls that were put there.
        """
        found, self._found = self._found, []
        waiting = [(place, call) for place, call in found if self._waits(call)]
        for place, call in waiting:
            blocks[place] = call
            calls.append(call)
        if waiting:
            calls.sort(key=_position_of)
        return [call for _, call in waiting]

    def _waits(self, call: CallBlock) -> bool:
        if self._results is not None:
            return (call.id or call.name) in self._results
        return not call.id or call.id not in self._answered


def deltas_of_waiting(calls: Sequence[CallBlock], reported: int) -> list[CallDelta]:
    """Whole calls as deltas of a stream, for those that had to wait until their index was known.

    Args:
        calls: All calls of the reply.
        reported: How many of them have deltas already.
    """
    return [
        CallDelta(index, call.id, call.name, call.arguments, call.kind)
        for index, call in enumerate(calls[reported:], reported)
    ]


def _position_of(call: CallBlock) -> int:
    return call.position
