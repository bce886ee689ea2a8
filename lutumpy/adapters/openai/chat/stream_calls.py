"""The calls of a streamed chat message: which delta belongs to which (S2), and when one is done."""

# OpenAI gives each call an index, and sends its id and name with the first delta. Compatible hosts
# leave the index out, give all calls the same one, send id and name with every delta, or send them
# late. So none of the three can be trusted alone; `_find` asks, in this order:
#
#   the delta has              | it belongs to
#   ---------------------------+------------------------------------------------------------------
#   a known index              | that call, unless its id is another one: then to the call with the
#                              | delta's id, if the name fits
#   a new index, a known id    | the call with this id, if the delta has no name
#   no index, a known id       | the call with this id
#   no index, another id       | the current call, if that has no id yet; else to a new call
#   no index, no id            | the current call
#
# and a delta begins a new call all the same, when its name is not the call's, when both an id and a
# name are new, or when it begins another object after the call's arguments were a whole one.
#
# A call is complete when the model stops, or when the next one begins and nothing can follow its
# arguments. The last call of a reply that was cut is never complete (rule C2a). One that is
# complete was told, and may run already: what still comes for it is dropped.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic_core import from_json

from lutumpy.adapters.openai.chat.decode import decode_call
from lutumpy.adapters.openai.merged_object import MergedObject
from lutumpy.adapters.openai.reply_fields import filled, model_text, text
from lutumpy.core.items import CallBlock
from lutumpy.core.streaming import CallDelta, CallDone, Delta
from lutumpy.plain.json_values import copied

__all__ = ["StreamedCalls"]

_GROWING = frozenset({"arguments", "input"})
_NOTHING_GROWS: frozenset[str] = frozenset()
# What holds a call's name and arguments, and the field of the arguments in it.
_BODIES = {"function": "arguments", "custom": "input"}


class _Call:
    """One call as far as it has arrived."""

    __slots__ = ("arguments", "bodies", "done", "fields", "id", "index", "name")

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name: str | None = None
        self.fields = MergedObject(_NOTHING_GROWS)
        self.bodies: dict[str, MergedObject] = {}
        self.done = False
        # The list that the deltas of a function's arguments are in, once there are any, and until
        # the call is done.
        self.arguments: list[str] | None = None

    def has_whole_arguments(self) -> bool:
        """Whether the arguments so far are a JSON object, so that only white space can follow."""
        function = self.bodies.get("function")
        deltas = function.text_deltas("arguments") if function is not None else ()
        # Looked at first, so that arguments are rarely parsed while they grow.
        last = next((delta for delta in reversed(deltas) if delta and not delta.isspace()), "")
        if not last.rstrip().endswith("}"):
            return False
        try:
            return isinstance(from_json("".join(deltas)), dict)
        except (ValueError, TypeError):
            return False  # not JSON; a TypeError is for a text with a lone surrogate

    def kind(self) -> str:
        """The kind of a call with a body `custom`, as `decode_call` finds it in the entry."""
        stated_kind = text(self.fields.get("type"))
        return stated_kind or ("function" if "function" in self.bodies else "custom")

    def entry(self) -> dict[str, Any]:
        """The entry of `tool_calls` in a whole message."""
        entry: dict[str, Any] = {} if self.id is None else {"id": self.id}
        entry.update(self.fields.whole())
        for key, body in self.bodies.items():
            entry[key] = body.whole()
        return entry

    def block(self) -> CallBlock:
        """The call as a finished turn has it."""
        found: list[CallBlock] = []
        decode_call(self.entry(), found, {})
        return replace(found[0], position=self.index)


class StreamedCalls:
    """The calls of one message, in the order in which they began."""

    __slots__ = ("_by_id", "_by_index", "_calls", "_current", "_no_calls")

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        # Entries that are not objects; the decoder of whole replies keeps them too.
        self._no_calls: list[Any] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        # The call that the last delta belonged to.
        self._current: _Call | None = None

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def all_done(self) -> bool:
        """Whether there are calls, and each is complete."""
        return bool(self._calls) and all(call.done for call in self._calls)

    def add(self, delta: Any, out: list[Delta]) -> None:
        """Take one entry of `tool_calls` in a message's delta."""
        if not isinstance(delta, dict):
            if delta is not None:
                self._no_calls.append(copied(delta))
            return
        index = delta.get("index")
        if type(index) is not int:
            index = None
        call_id = delta.get("id")
        if call_id is not None:
            call_id = model_text(call_id) or None
        name, arguments = _name_and_arguments(delta)
        call = self._find(index, call_id, name, arguments)
        if call is None:
            is_empty = call_id is None and name is None and not arguments
            if is_empty and not _has_other_fields(delta):
                return
            call = self._begin(index, out)
        self._current = call
        if call.done:
            return
        if call_id is not None and call.id is None:
            call.id = call_id
            self._by_id[call_id] = call
        if name is not None:
            call.name = name
        self._merge(call, delta)
        kind = call.kind() if "custom" in call.bodies else "function"
        out.append(CallDelta(call.index, call.id or "", call.name or "", arguments, kind))

    def take_arguments(self, index: Any, arguments: Any) -> int | None:
        """Take a delta that has an index and a function's arguments, and nothing else.

        Returns:
            Which call of the message it belongs to. `None`, with nothing taken, if that function
            has not begun, or if the values are of other types.
        """
        if type(index) is not int or type(arguments) is not str:
            return None
        call = self._by_index.get(index)
        if call is None or (deltas := call.arguments) is None:
            return None
        self._current = call
        deltas.append(arguments)
        return call.index

    def finish(self, is_cut: bool, out: list[Delta]) -> None:
        """The model has stopped: complete every call, but not the last one of a cut reply."""
        for call in self._calls[:-1] if is_cut else self._calls:
            self._complete(call, out)

    def entries(self) -> list[Any]:
        """The `tool_calls` of a whole message."""
        return [*[call.entry() for call in self._calls], *self._no_calls]

    def _begin(self, index: int | None, out: list[Delta]) -> _Call:
        if self._calls:
            last = self._calls[-1]
            # Hosts may mix the deltas of several calls, and send ids late. So the call before is
            # complete only if nothing of it can still come.
            if last.id and last.name and last.has_whole_arguments():
                self._complete(last, out)
        call = _Call(len(self._calls))
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _complete(self, call: _Call, out: list[Delta]) -> None:
        if not call.done:
            call.done, call.arguments = True, None
            block = call.block()
            if block.kind not in _BODIES and block.arguments:
                # Where a call of another kind says what it is to do is known when it is whole.
                out.append(CallDelta(call.index, block.id, block.name, block.arguments, block.kind))
            out.append(CallDone(call.index, block))

    def _find(
        self, index: int | None, call_id: str | None, name: str | None, arguments: str
    ) -> _Call | None:
        """The call that a delta belongs to; `None` if it begins a call. See the table above."""
        known = self._by_id.get(call_id) if call_id is not None else None
        if index is not None:
            call = self._by_index.get(index)
            has_other_id = call is not None and call.id is not None and call.id != call_id
            if call is None or (call_id is not None and has_other_id):
                name_fits = name is None or (
                    call is not None and known is not None and known.name == name
                )
                if known is not None and name_fits:
                    return known
        elif known is not None:
            call = known
        else:
            call = self._current
            if call is not None and call_id is not None and call.id is not None:
                return None
        if call is None:
            return None
        if name is not None and call.name is not None and name != call.name:
            return None
        if call_id is not None and call_id == call.id:
            return call
        if call_id is not None and call.id is not None and name is not None:
            return None
        # What is left has a late id or name, a name that was sent before, or (some hosts) a fresh
        # id in every delta of one call. After whole arguments, others begin another call.
        repeats = call_id is not None or name is not None
        if repeats and arguments.lstrip().startswith("{") and call.has_whole_arguments():
            return None
        return call

    def _merge(self, call: _Call, delta: Mapping[str, Any]) -> None:
        for key, value in delta.items():
            if key in ("index", "id"):
                continue
            if key not in _BODIES or not isinstance(value, dict):
                call.fields.add_field(key, value)
                continue
            body = call.bodies.get(key)
            if body is None:
                body = call.bodies[key] = MergedObject(_GROWING)
            for field, inner in value.items():
                if field in _GROWING and inner is not None and not isinstance(inner, str):
                    inner = model_text(inner)
                body.add_field(field, inner)
            if key == "function":
                call.arguments = body.growing_list("arguments")


def _name_and_arguments(delta: Mapping[str, Any]) -> tuple[str | None, str]:
    found: tuple[str | None, str] = None, ""
    for key, arguments in _BODIES.items():
        body = delta.get(key)
        # A host may fill in both, one of them with empty texts.
        if isinstance(body, dict) and body and found == (None, ""):
            found = text(body.get("name")), model_text(body.get(arguments))
    return found


def _has_other_fields(delta: Mapping[str, Any]) -> bool:
    """Whether a delta holds something beside what every delta of a call has."""
    usual = ("index", "id", "type", "function")
    return any(filled(value) for key, value in delta.items() if key not in usual)
