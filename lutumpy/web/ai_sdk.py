"""The UI message stream of Vercel's AI SDK, versions 6 and 7."""

# Chunks, the states of tool parts and what a client does with them: npm `ai` 7.0.173,
# `uiMessageChunkSchema` and `processUIMessageStream`.
#
# A part of a step is where its first chunk came. A tool part is found by its call id; each
# chunk sets its state, so an input that is sent again puts it back to `input-available`, and the
# answer to a question has to be sent again behind it.
#
# Version 6 (6.0.0) refuses a stream with a chunk or a field that it doesn't know. It has neither
# answers to questions nor their reasons:
#
#   what happens                   7                               6
#   -----------------------------  ------------------------------  --------------------------------
#   a call is held                 request, with the reason        request
#   it is approved                 response                        its input again, as for one that
#                                                                  runs
#   it, or another, is refused     response (behind an automatic   denied (behind a request, where
#                                  request), denied                nobody was asked: pages expect
#                                                                  that such a call has an approval)
#   one beside it needs no answer  automatic request, response     -
#   the run is stopped             abort, with who did             abort

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from lutumpy.durable import StoredEvent
from lutumpy.durable.log import LoopEnded, RunFailed, RunStopped, RunWaits
from lutumpy.web.frames import Frame, encode_data
from lutumpy.web.parts import (
    CallAnswered,
    CallBegan,
    CallEnded,
    CallGrew,
    CallInput,
    CallIsHeld,
    CallPart,
    CallRests,
    Change,
    MessagesShown,
    PartBegan,
    PartEnded,
    PartGrew,
    PromiseChanged,
    PromisePart,
    QuestionChanged,
    QuestionPart,
    RunEnded,
    StepBegan,
    StepEnded,
    StepReset,
    StepRewritten,
    Task,
    TaskBegan,
    TaskEnded,
    TextPart,
    ValueGiven,
)
from lutumpy.web.show import Show
from lutumpy.web.view import View

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["AISDKStream", "ui_messages"]

_DONE = b"data: [DONE]\n\n"
# By `LoopResult.stopped_by`; any other word is `other`.
_FINISH: Mapping[str, str] = {"answer": "stop"}

_ENDINGS = frozenset({"finish", "abort", "error"})

Chunk = dict[str, Any]


class AISDKStream:
    """The events of one task as the stream that `useChat` reads. It does no I/O.

    Each watcher has one of its own for each response. It is given the events of the task from its
    beginning on, also those that the watcher has seen: what is sent begins behind `after`.

    Args:
        scope: The conversation's id.
        show: What is shown.
        sdk: The client's major version: 7, or 6, which can't take a step back. Where that is
            needed, the response ends (`broken`), and the client comes again. Nor does 6 show why a
            person is asked, that a call beside a held one needs no answer, or who refused or
            stopped what.
        after: The number of the last event that the watcher has seen; 0 for a whole replay.

    Attributes:
        ended: Whether the response is over.
        broken: Whether it was broken off.

    Raises:
        ValueError: `sdk` is another number.
    """

    headers: Mapping[str, str] = {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-vercel-ai-ui-message-stream": "v1",
        "x-accel-buffering": "no",
    }
    """The headers of the response."""

    def __init__(
        self, scope: str, *, show: Show | None = None, sdk: Literal[6, 7] = 7, after: int = 0
    ) -> None:
        if sdk not in (6, 7):
            raise ValueError(f"sdk= is 6 or 7, not {sdk!r}")
        self.ended: bool = False
        self.broken: bool = False
        self._sdk = sdk
        self._after = after
        self._view = View(scope, Show() if show is None else show)
        self._number: int | None = None  # of the task
        self._started = False

    def feed(self, stored: StoredEvent, *, superseded: bool = False) -> tuple[Frame, ...]:
        """What an event adds to the response.

        Args:
            stored: The event.
            superseded: Whether it is known that its task goes on behind it: the end of a run isn't
                the end of the response then.
        """
        if self.ended:
            return ()
        self._number = stored.task if self._number is None else self._number
        if stored.task < self._number:  # a last word about the task before
            return ()
        if stored.task > self._number:  # the next task has a response of its own
            self.ended = True
            finish = encode_data({"type": "finish", "finishReason": "stop"})
            return (Frame(stored.seq, finish + _DONE),)
        chunks: list[Chunk] = []
        # Each change is encoded when it is made: those behind it may change the same call again.
        for change in self._view.apply(stored):
            if stored.seq <= self._after or (superseded and isinstance(change, RunEnded)):
                continue
            if isinstance(change, StepReset) and self._sdk == 6:
                self.ended = self.broken = True
                break
            chunks += _encode(change, self._sdk)
        self.ended = self.ended or any(chunk["type"] in _ENDINGS for chunk in chunks)
        data = b"".join(map(encode_data, self._begin(chunks)))
        if self.ended and not self.broken:
            data += _DONE
        return (Frame(stored.seq, data),) if data else ()

    def end(
        self, event: RunFailed | RunStopped | RunWaits, promises: Iterable[PromisePart] = ()
    ) -> bytes:
        """The end of the response where the log has none for it: the run took no notice of it.

        Args:
            event: How the run has ended.
            promises: What the response waits for. They are told and not kept: the response has no
                message that they could be parts of.
        """
        self.ended = True
        told = [{**_promise_part(part), "transient": True} for part in promises]
        return b"".join(map(encode_data, [*told, _encode_end(event, self._sdk)])) + _DONE

    def _begin(self, chunks: list[Chunk]) -> list[Chunk]:
        """The chunks, behind the beginning of the response, which says which message it is of."""
        task = self._view.task
        if not chunks or self._started or task is None:
            return chunks
        self._started = True
        is_begun = chunks[0]["type"] == "start"
        return chunks if is_begun else [{"type": "start", "messageId": task.id}, *chunks]


def _encode(change: Change, sdk: int) -> Iterator[Chunk]:
    """The chunks of a change."""
    if isinstance(change, PartGrew):  # nearly all are
        yield {"type": f"{change.part.kind}-delta", "id": change.part.id, "delta": change.text}
    elif isinstance(change, TaskBegan):
        yield {"type": "start", "messageId": change.task.id}
    elif isinstance(change, StepBegan):
        yield {"type": "start-step"}
    elif isinstance(change, StepReset):
        yield {"type": "reset-step"}
    elif isinstance(change, StepEnded):
        yield {"type": "finish-step"}
    elif isinstance(change, PartBegan):
        yield {"type": f"{change.part.kind}-start", "id": change.part.id}
    elif isinstance(change, PartEnded):
        yield {"type": f"{change.part.kind}-end", "id": change.part.id}
    elif isinstance(change, PromiseChanged):
        yield _promise_part(change.part)
    elif isinstance(change, QuestionChanged):
        yield _question_part(change.part)
    elif isinstance(change, ValueGiven):
        yield {"type": "data-value", "id": "value", "data": change.value}
    elif isinstance(change, RunEnded):
        yield _encode_end(change.event, sdk)
    elif not isinstance(change, (MessagesShown, TaskEnded, StepRewritten)):
        yield from _encode_call(change, sdk)


def _encode_call(
    change: CallBegan | CallGrew | CallInput | CallIsHeld | CallAnswered | CallRests | CallEnded,
    sdk: int,
) -> Iterator[Chunk]:
    call = change.call
    named = {"toolCallId": call.call_id, "toolName": call.tool}
    if isinstance(change, CallBegan):
        yield {"type": "tool-input-start", **named}
    elif isinstance(change, CallGrew):
        delta = {"toolCallId": call.call_id, "inputTextDelta": change.text}
        yield {"type": "tool-input-delta", **delta}
    elif isinstance(change, (CallInput, CallRests)):
        yield {"type": "tool-input-available", **named, "input": _input(call)}
        if call.approval_id and call.approved is None:
            yield _request(call, sdk)
        elif call.approved is not None and sdk > 6 and not call.rests:
            yield _response(call)
    elif isinstance(change, CallIsHeld):
        yield _request(call, sdk)
    elif isinstance(change, CallAnswered):
        yield from _encode_answer(call, sdk)
    elif call.status == "issue":
        wrong = {"input": call.arguments, "errorText": call.reason}
        yield {"type": "tool-input-error", **named, **wrong}
    elif call.status == "rejected":
        yield {"type": "tool-output-denied", "toolCallId": call.call_id}
    elif call.status == "error":
        text = call.content if isinstance(call.content, str) else "The tool failed."
        yield {"type": "tool-output-error", "toolCallId": call.call_id, "errorText": text}
    else:
        output = {"toolCallId": call.call_id, "output": call.content}
        yield {"type": "tool-output-available", **output}


def _encode_answer(call: CallPart, sdk: int) -> Iterator[Chunk]:
    if sdk > 6:
        if call.automatic:
            yield _request(call, sdk)
        yield _response(call)
    elif call.automatic and not call.approved:
        yield _request(call, sdk)
    elif call.approved and not call.automatic:
        named = {"toolCallId": call.call_id, "toolName": call.tool}
        yield {"type": "tool-input-available", **named, "input": _input(call)}


def _input(call: CallPart) -> JsonValue:
    return {} if call.input is None else call.input


def _request(call: CallPart, sdk: int) -> Chunk:
    asked: Chunk = {"approvalId": call.approval_id, "toolCallId": call.call_id}
    if sdk > 6:
        if call.automatic:
            asked["isAutomatic"] = True
        if call.question:
            asked["reason"] = call.question
    return {"type": "tool-approval-request", **asked}


def _response(call: CallPart) -> Chunk:
    answered: Chunk = {"approvalId": call.approval_id, "approved": call.approved is True}
    if call.reason and call.approved is False:
        answered["reason"] = call.reason
    return {"type": "tool-approval-response", **answered}


def _encode_end(event: LoopEnded | RunWaits | RunFailed | RunStopped, sdk: int) -> Chunk:
    if isinstance(event, LoopEnded):
        return {"type": "finish", "finishReason": _FINISH.get(event.stopped_by, "other")}
    if isinstance(event, RunWaits):
        return {"type": "finish", "finishReason": "tool-calls"}
    if isinstance(event, RunStopped):
        return {"type": "abort", **({"reason": f"stopped by {event.by}"} if sdk > 6 else {})}
    return {"type": "error", "errorText": f"The run failed. ({event.kind})"}


# --- whole messages ----------------------------------------------------------------------------


def ui_messages(tasks: Iterable[Task], *, sdk: Literal[6, 7] = 7) -> list[dict[str, JsonValue]]:
    """Tasks as UI messages: what a client has when it has read their streams.

    Args:
        tasks: The tasks.
        sdk: The client's major version: 6 doesn't know calls that need no answer, nor why a person
            is asked.
    """
    messages: list[dict[str, Any]] = []
    for task in tasks:
        for index, message in enumerate(task.messages):
            texts: list[Chunk] = [{"type": "text", "text": message.text}] if message.text else []
            names: list[Chunk] = [
                {"type": "data-file", "data": {"name": name}} for name in message.files
            ]
            place = message.id or f"{task.id}.user{index}"
            messages.append({"id": place, "role": "user", "parts": [*texts, *names]})
        parts: list[Chunk] = []
        for step in task.steps:
            parts.append({"type": "step-start"})
            parts += [_part(part, sdk) for part in step.parts]
        if task.value is not None:
            parts.append({"type": "data-value", "id": "value", "data": task.value})
        if parts:
            messages.append({"id": task.id, "role": "assistant", "parts": parts})
    return messages


def _part(part: TextPart | CallPart | PromisePart | QuestionPart, sdk: int) -> Chunk:
    if isinstance(part, TextPart):
        return _text_part(part)
    if isinstance(part, QuestionPart):
        return _question_part(part)
    return _tool_part(part, sdk) if isinstance(part, CallPart) else _promise_part(part)


def _promise_part(part: PromisePart) -> Chunk:
    return {"type": "data-promise", "id": part.call_id, "data": dict(part.data)}


def _question_part(part: QuestionPart) -> Chunk:
    # A client replaces the part with this id, so each leg has its own.
    return {"type": "data-question", "id": f"{part.call_id}:{part.leg}", "data": part.data}


def _text_part(part: TextPart) -> Chunk:
    state = "streaming" if part.open else "done"
    named = {"id": part.id} if part.kind == "reasoning" else {}
    return {"type": part.kind, **named, "text": part.text, "state": state}


def _tool_part(call: CallPart, sdk: int) -> Chunk:
    """A tool part in the state that its last chunk gave it."""
    part: Chunk = {"type": f"tool-{call.tool}", "toolCallId": call.call_id}
    part["state"] = _state(call, sdk)
    if call.status == "issue":
        part["input"] = call.arguments
    elif call.status != "streaming":
        part["input"] = _input(call)
    is_told = sdk > 6 or not (call.approved and (call.automatic or call.status == "ready"))
    if call.approval_id and is_told:
        approval: Chunk = {"id": call.approval_id}
        if call.automatic and sdk > 6:
            approval["isAutomatic"] = True
        if call.question and sdk > 6:
            approval["requestReason"] = call.question
        if call.approved is not None:
            approval["approved"] = call.approved
            if call.reason and not call.approved:
                approval["reason"] = call.reason
        part["approval"] = approval
    if call.status == "ok":
        part["output"] = call.content
    elif call.status == "error":
        part["errorText"] = call.content if isinstance(call.content, str) else "The tool failed."
    elif call.status == "issue":
        part["errorText"] = call.reason
    return part


def _state(call: CallPart, sdk: int) -> str:
    if call.status == "streaming":
        return "input-streaming"
    if call.status == "held":
        return "approval-requested"
    if call.status == "ready":
        is_answered = call.approved is not None and not call.rests and sdk > 6
        return "approval-responded" if is_answered else "input-available"
    if call.status == "rejected":
        return "output-denied"
    return "output-available" if call.status == "ok" else "output-error"
