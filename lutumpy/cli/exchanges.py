"""Requests in a file with their answers behind them, put together as exchanges."""

# What is hard: some recorders write an exchange on several lines: the request, and then its answer,
# which is a line of its own for each event when it was streamed. So a value isn't yet a document:
#
#     behind                             a value that is          goes
#     a request, a list of messages      an answer or an event    into its exchange
#     an answer that has begun           anything but a document  into the same exchange
#     anything else                      an answer or an event    to its neighbours of this kind:
#                                                                 one fault, not one for each event
#
# A request waits for the value behind it, so one more value than before is in memory, and a whole
# answer where there is one.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lutumpy.apis import serving
from lutumpy.cli.answers import api_of_answer, is_event
from lutumpy.cli.reading import BadValue, Value
from lutumpy.cli.recognition import apis_of_messages, has_conversation, is_message

__all__ = ["join_exchanges"]


@dataclass(slots=True)
class _Held:
    """A value that others may belong to, and these."""

    first: Value
    rest: list[Value] = field(default_factory=list)


def join_exchanges(found: Iterator[Value | BadValue]) -> Iterator[Value | BadValue]:
    """The values of a file, with each request and the answer behind it as one exchange, and each
    answer without a request as one value.
    """
    held: _Held | None = None
    for entry in found:
        if isinstance(entry, Value) and held is not None and _belongs_to(entry.value, held):
            held.rest.append(entry)
            continue
        if held is not None:
            yield _join(held)
            held = None
        if isinstance(entry, Value):
            held = _Held(entry)
        else:
            yield entry
    if held is not None:
        yield _join(held)


def _belongs_to(value: Any, held: _Held) -> bool:
    if held.rest or _is_answer(held.first.value):
        return not _is_document(value)
    return _is_unanswered(held.first.value) and _is_answer(value)


def _is_document(value: Any) -> bool:
    """Whether a value is something of its own, and no part of an answer."""
    if not isinstance(value, Mapping):
        return True
    # An event may have a key that is a conversation's in a request.
    if is_event(value):
        return False
    names_itself = "request" in value or "body" in value or value.get("format") is not None
    return names_itself or has_conversation(value) or is_message(value)


def _is_answer(value: Any) -> bool:
    """Whether a value is an answer, an event of one, or an error in its place."""
    if _is_document(value):
        return False
    return api_of_answer(value) is not None or isinstance(value.get("error"), Mapping)


def _is_unanswered(value: Any) -> bool:
    """Whether a value is a request, or a conversation, whose answer may come after it."""
    if isinstance(value, list):
        return any(map(is_message, value))
    if not isinstance(value, Mapping) or value.get("format") is not None:
        return False
    if "request" in value:
        return value.get("response") is None
    return _is_document(value) and not is_message(value)


def _join(held: _Held) -> Value:
    """The one value that these are together."""
    if not held.rest:
        return held.first
    first = held.first.value
    answer: Any = [entry.value for entry in held.rest]
    joined: Any
    if _is_answer(first):
        joined = [first, *answer]
    else:
        answer = answer[0] if len(answer) == 1 else answer
        exchange = first if isinstance(first, Mapping) and "request" in first else None
        request = {"request": _as_request(first, answer)} if exchange is None else exchange
        joined = {**request, "response": answer}
    between = ",\n" if held.first.form == "element" else "\n"
    text = between.join([held.first.text, *(entry.text for entry in held.rest)])
    return replace(held.first, value=joined, text=text)


def _as_request(value: Any, answer: Any) -> Mapping[str, Any]:
    """A request body; of a bare list, one with its messages."""
    if isinstance(value, Mapping):
        return value
    api = api_of_answer(answer) or apis_of_messages(value)[0]
    return {serving(api, "rules").SHAPE.messages_key: value}
