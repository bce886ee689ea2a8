"""The tool calls of a streamed chat message: which piece belongs to which call (rule S2), and when a call is complete.

OpenAI gives each call an index, and its id and name with the first piece. Compatible hosts leave the index out, give all
calls the same one, repeat id and name with every piece, or send them late; so all three tell calls apart, together.
"""

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

__all__ = ["StreamedCalls"]

_ARGUMENTS = frozenset({"arguments", "input"})
_PLAIN: frozenset[str] = frozenset()
_BODIES = ("function", "custom")


class _Call:
    """One call as far as it has arrived."""

    __slots__ = ("bodies", "done", "fields", "id", "index", "name", "pieces")

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name: str | None = None
        self.fields = MergedObject(_PLAIN)
        self.bodies: dict[str, MergedObject] = {}
        self.done = False
        # Those of the function's arguments, once there are any.
        self.pieces: list[str] | None = None

    def closed(self) -> bool:
        """Whether the arguments so far are a JSON object, so that nothing but white space can follow."""
        function = self.bodies.get("function")
        pieces = function.pieces("arguments") if function is not None else ()
        last = next((piece for piece in reversed(pieces) if piece and not piece.isspace()), "")
        if not last.rstrip().endswith("}"):
            return False
        try:
            return isinstance(from_json("".join(pieces)), dict)
        except (ValueError, TypeError):  # a lone surrogate makes it no string for the parser
            return False

    def entry(self) -> dict[str, Any]:
        """As it would stand in a whole message."""
        entry: dict[str, Any] = {} if self.id is None else {"id": self.id}
        entry.update(self.fields.whole())
        for key, body in self.bodies.items():
            entry[key] = body.whole()
        return entry

    def block(self) -> CallBlock:
        found: list[CallBlock] = []
        decode_call(self.entry(), found, {})
        return replace(found[0], position=self.index)


class StreamedCalls:
    """The calls of one message, in the order in which they began."""

    __slots__ = ("_by_id", "_by_index", "_calls", "_current", "_odd")

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._odd: list[Any] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._current: _Call | None = None

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, piece: Any, out: list[Delta]) -> None:
        """Take one entry of a delta's `tool_calls`."""
        if not isinstance(piece, dict):
            if piece is not None:
                self._odd.append(piece)
            return
        index = piece.get("index")
        if type(index) is not int:
            index = None
        call_id = piece.get("id")
        if call_id is not None:
            call_id = model_text(call_id) or None
        name, arguments = _told(piece)
        call = self._find(index, call_id, name, arguments)
        if call is None:
            if call_id is None and name is None and not arguments and not _says_more(piece):
                return
            call = self._begin(index, out)
        self._current = call
        if call_id is not None and call.id is None:
            call.id = call_id
            self._by_id[call_id] = call
        if name is not None:
            call.name = name
        self._gather(call, piece)
        out.append(CallDelta(call.index, call.id or "", call.name or "", arguments))

    def take(self, index: Any, arguments: Any) -> int | None:
        """Take a piece of the arguments of a function that began before, with nothing but its index; `None` if it isn't one.

        Gives which call it is.
        """
        if type(index) is not int or type(arguments) is not str:
            return None
        call = self._by_index.get(index)
        if call is None or (pieces := call.pieces) is None:
            return None
        self._current = call
        pieces.append(arguments)
        return call.index

    def finish(self, cut: bool, out: list[Delta]) -> None:
        """The model has stopped: every call is complete, but for the last one of an answer that was cut (rule C2a)."""
        for call in self._calls[:-1] if cut else self._calls:
            self._complete(call, out)

    def entries(self) -> list[Any]:
        """As they would stand in a whole message."""
        return [*[call.entry() for call in self._calls], *self._odd]

    def _begin(self, index: int | None, out: list[Delta]) -> _Call:
        if self._calls and (last := self._calls[-1]).id and last.name and last.closed():
            # Only a call with nothing left to come: pieces of several calls may still be mixed, and ids come late.
            self._complete(last, out)
        call = _Call(len(self._calls))
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _complete(self, call: _Call, out: list[Delta]) -> None:
        if not call.done:
            call.done = True
            out.append(CallDone(call.index, call.block()))

    def _find(
        self, index: int | None, call_id: str | None, name: str | None, arguments: str
    ) -> _Call | None:
        """The call that a piece belongs to; `None` when it begins one."""
        if index is not None:
            call = self._by_index.get(index)
            if call is None or (call_id is not None and call.id is not None and call.id != call_id):
                known = self._by_id.get(call_id) if call_id is not None else None
                if known is not None and (
                    name is None or (call is not None and known.name == name)
                ):
                    return known
        else:
            call = self._by_id.get(call_id) if call_id is not None else None
            if call is None:
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
        # What is left carries a late id or name, a name said again, or (some hosts) a fresh id with every piece of one
        # call. After whole arguments, the beginning of other ones says that it is another call.
        if (
            (call_id is not None or name is not None)
            and arguments.lstrip().startswith("{")
            and call.closed()
        ):
            return None
        return call

    def _gather(self, call: _Call, piece: Mapping[str, Any]) -> None:
        for key, value in piece.items():
            if key in ("index", "id"):
                continue
            if key in _BODIES and isinstance(value, dict):
                body = call.bodies.get(key)
                if body is None:
                    body = call.bodies[key] = MergedObject(_ARGUMENTS)
                for field, inner in value.items():
                    if field in _ARGUMENTS and inner is not None and not isinstance(inner, str):
                        inner = model_text(inner)
                    body.put(field, inner)
                if key == "function":
                    call.pieces = body.gathering("arguments")
            else:
                call.fields.put(key, value)


def _told(piece: Mapping[str, Any]) -> tuple[str | None, str]:
    """The name and the arguments that a piece carries."""
    for key, arguments in (("function", "arguments"), ("custom", "input")):
        body = piece.get(key)
        if isinstance(body, dict) and body:
            return text(body.get("name")), model_text(body.get(arguments))
    return None, ""


def _says_more(piece: Mapping[str, Any]) -> bool:
    return any(
        filled(value)
        for key, value in piece.items()
        if key not in ("index", "id", "type", "function")
    )
