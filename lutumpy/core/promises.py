"""Calls that are answered later: the promise in place of a result, and the item that keeps it.

A call of a committed turn has one result right after it, as every API wants. Where the result comes
later, a placeholder stands there, and the call is open. The late result is an item of its own: a
user message that says whose result it is. An API that knows open calls gets it in another form.

    turn    results           ...    message (late)
    call    status promised          the late result: the call isn't open any more
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field
from datetime import datetime
from typing import Any, Literal

from lutumpy.core.items import (
    AssistantTurn,
    Message,
    Part,
    ResultBlock,
    TextPart,
    ToolMetadata,
    ToolResults,
    Verbatim,
)
from lutumpy.errors import TranscriptError
from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass

__all__ = [
    "LATE_HEADER",
    "LateReason",
    "LateResult",
    "Promise",
    "PromisedCall",
    "check_late",
    "detached",
    "header_of",
    "late_message",
    "placeholder",
    "promised_calls",
    "restored_message",
    "without_call",
]

LateReason = Literal["delivered", "expired"]
"""Why there is a late item: the result was delivered, or it did not come in time."""

_PLAIN = re.compile(r"[\w.:/+-]+")
_LONGEST_NOTE = 1000


@dataclass(frozen=True, slots=True)
class Promise:
    """What is known of a call whose result comes later.

    Attributes:
        note: What the model is told beside the fact, such as "about an hour".
        handle: What the program needs to find the work again: JSON. The model isn't shown it.
        since: When it was promised.
        until: When it is given up; `None` for never.
        tool_digest: `ToolDef.digest` of the tool that was called.
        tool: The tool itself, while it is known; it isn't dumped.
        equal_to: A text that is the same for equal calls (`call_arguments`), where a store keeps
            the call and hooks or people edited it; `None` where what the model wrote tells that.
    """

    note: str = ""
    # JSON objects have no hash.
    handle: Any = field(default=None, hash=False)
    since: datetime | None = None
    until: datetime | None = None
    tool_digest: str | None = None
    tool: Any = field(default=None, compare=False, repr=False)
    equal_to: str | None = field(default=None, repr=False)

    def __copy__(self) -> Promise:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Promise:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # As in a dump: the class of a function's input is one that no module holds.
        known = self.note, self.handle, self.since, self.until, self.tool_digest
        return Promise, (*known, None, self.equal_to)


@dataclass(frozen=True, slots=True)
class PromisedCall:
    """One open call, as a transcript keeps it.

    Attributes:
        call_id: Its id.
        name: The tool's name.
        arguments: The text of its arguments as the model wrote them.
        kind: The kind of the call, `function` or `custom`.
        promise: What is known of it.
        is_detached: Its round isn't in the transcript, which is a window.
    """

    call_id: str
    name: str
    arguments: str
    kind: str
    promise: Promise
    is_detached: bool = False

    @property
    def metadata(self) -> ToolMetadata:
        """Which call it is."""
        make = ToolMetadata.of_text if self.kind == "custom" else ToolMetadata
        return make(self.call_id, self.name, self.arguments)


@dataclass(frozen=True, slots=True)
class LateResult:
    """What makes a message a late item.

    Attributes:
        result: The result, as it would have come after its call.
        header: The text before it in the message: whose result it is, in brackets.
        reason: Why it is there.
        is_detached: The round of its call isn't in this transcript, so it is a message everywhere.
    """

    result: ResultBlock
    header: str
    reason: LateReason = "delivered"
    is_detached: bool = False


def placeholder(name: str, call_id: str, note: str) -> str:
    """The result of an open call on an API that wants one (rule LR5)."""
    text = (
        f"[Call {_quote(call_id)} of {_quote(name)} is running. Its result comes by itself in a "
        "later message: don't make the call again, and don't guess the result.]"
    )
    note = json_values.clean_text(note).strip()
    if len(note) > _LONGEST_NOTE:
        note = note[:_LONGEST_NOTE] + "..."
    return f"{text}\n{note}" if note else text


def promised_calls(turn: AssistantTurn, results: ToolResults) -> list[PromisedCall]:
    """The calls of a turn that are open, in call order."""
    calls = [call for call in turn.calls if call.answerable]
    return [
        PromisedCall(call.id, call.name, call.arguments, call.kind, result.promise or Promise())
        for call, result in zip(calls, results.results, strict=True)
        if result.status == "promised"
    ]


def late_message(
    call: PromisedCall,
    result: ResultBlock,
    reason: LateReason = "delivered",
) -> Message:
    """The late item with the result of an open call.

    It names the arguments of a call whose round isn't in the transcript.

    Args:
        call: The call.
        result: Its result.
        reason: Why it is there.
    """
    header = header_of(
        call.call_id,
        call.name,
        failed=result.status == "error",
        made_with=call.arguments if call.is_detached else None,
    )
    return _make_message(LateResult(result, header, reason, call.is_detached))


def check_late(
    messages: Iterable[Message], open_calls: Iterable[PromisedCall]
) -> list[tuple[PromisedCall, ResultBlock]]:
    """The open calls that late items answer, each with its result.

    Raises:
        TranscriptError: one answers a call that isn't open, or two answer the same.
    """
    known = {call.call_id: call for call in open_calls}
    answered: list[tuple[PromisedCall, ResultBlock]] = []
    for message in messages:
        late = message.late
        if late is None:
            continue
        call = known.pop(late.result.call_id, None)
        if call is None and late.is_detached:
            continue
        if call is None or (call.name, call.kind) != (late.result.name, late.result.kind):
            raise TranscriptError(
                f"a late result of call {late.result.call_id!r} of {late.result.name!r}, and no "
                "such call is open; the transcript is unchanged"
            )
        answered.append((call, late.result))
    return answered


def restored_message(late: LateResult, verbatim: Verbatim | None = None) -> Message:
    """The message of a late result that was read from a dump or a history.

    Args:
        late: The late result.
        verbatim: The entries of the history that it was read from.
    """
    return _make_message(late, verbatim)


LATE_HEADER = r"\[Late result of call [^\]\n]*\]"
"""What `header_of` gives: a pattern for the start of a text."""


def header_of(
    call_id: str, name: str, *, failed: bool = False, made_with: str | None = None
) -> str:
    """What comes before a late result in its message: whose it is, in brackets.

    Args:
        call_id: The id of the call.
        name: The tool's name.
        failed: Whether the call failed.
        made_with: Its arguments, where the call isn't in the conversation any more.
    """
    maker = "" if made_with is None else f", made with {_on_one_line(made_with)}"
    end = ", which failed" if failed else ""
    return f"[Late result of call {_quote(call_id)} of {_quote(name)}{maker}{end}]"


def _make_message(late: LateResult, verbatim: Verbatim | None = None) -> Message:
    content = late.result.content
    parts: tuple[Part, ...]
    if isinstance(content, str):
        parts = (TextPart(f"{late.header}\n{content}" if content else late.header),)
    else:
        parts = (TextPart(late.header), *content)
    return Message("user", parts, verbatim=verbatim, late=late)


def detached(message: Message, arguments: str | None) -> Message:
    """A late item as it stands in a window without its call: with the arguments (rule LR17).

    Args:
        message: The late item.
        arguments: Those of its call; `None` where they aren't known any more.
    """
    late = message.late
    assert late is not None
    if late.is_detached or arguments is None:
        return message
    result = late.result
    call = PromisedCall(result.call_id, result.name, arguments, result.kind, Promise(), True)
    return late_message(call, result, late.reason)


def without_call(open_calls: Iterable[PromisedCall], ids: Iterable[str]) -> tuple[Any, ...]:
    """The open calls but those with these ids."""
    gone = set(ids)
    return tuple([call for call in open_calls if call.call_id not in gone])


def _quote(text: str) -> str:
    """An id or a name inside brackets: as it is, or as a JSON string."""
    return text if _PLAIN.fullmatch(text) else _on_one_line(json_values.encode_text(text))


def _on_one_line(text: str) -> str:
    text = json_values.clean_text(text)
    return " ".join(text.split()).replace("]", "\\u005d") if text.strip() else "no arguments"
