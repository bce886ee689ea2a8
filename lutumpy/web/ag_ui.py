"""The event stream of AG-UI, version 1."""

# Event types, and what a client does with them: npm `@ag-ui/core` and `@ag-ui/client` 1.0.0
# (`verify`, `apply/default`). A run of this protocol is one response; what is begun in it has to be
# ended in it. Where a client has to forget something, it is sent all messages again, which replace
# its own (`MESSAGES_SNAPSHOT`): there is no other way back.
#
# Each text and each reasoning is a message of its own. The calls of a step hang on the text before
# them, or on a message without text that has the id of the first of them.

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lutumpy.durable import StoredEvent
from lutumpy.durable.log import LoopEnded, RunFailed, RunStopped, RunWaits, ShownMessage
from lutumpy.plain import json_values
from lutumpy.web.frames import Frame, encode_data
from lutumpy.web.inbound import NewMessage, question_id
from lutumpy.web.parts import (
    CallAnswered,
    CallBegan,
    CallEnded,
    CallGrew,
    CallInput,
    CallIsHeld,
    CallPart,
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
    Step,
    StepBegan,
    StepEnded,
    StepReset,
    StepRewritten,
    Task,
    TaskEnded,
    TextPart,
    ValueGiven,
)
from lutumpy.web.show import Show
from lutumpy.web.view import View

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["AGUIStream", "ag_ui_messages"]

Event = dict[str, Any]

_ANSWER: Mapping[str, JsonValue] = {
    "approved": {"type": "boolean"},
    "input": {"type": "object"},
    "reason": {"type": "string"},
}


class AGUIStream:
    """A conversation's events as one run of AG-UI. It does no I/O.

    Each response has one of its own. It is given the whole log from its beginning on, also what the
    client has seen, since it may have to send all messages again; events are sent from those behind
    `after` on.

    Args:
        scope: The conversation's id: the client's `threadId`.
        run_id: The client's `runId`.
        show: What is shown.
        after: The number of the last event that the client has seen.
        snapshot: Whether it begins with all messages as they were at that moment: for a client that
            comes again, whatever it has seen.
        is_over: Whether nothing follows: it ends as the log does then, with its beginning.
        pending: A message of the client that nobody has taken yet: it comes last in all messages.
        waiting: What else nobody has taken yet, also of others: it comes before that.

    Attributes:
        ended: Whether the run is over.
    """

    headers: Mapping[str, str] = {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
    }
    """The headers of the response."""

    def __init__(
        self,
        scope: str,
        run_id: str,
        *,
        show: Show | None = None,
        after: int = 0,
        snapshot: bool = False,
        is_over: bool = False,
        pending: NewMessage | None = None,
        waiting: Sequence[ShownMessage] = (),
    ) -> None:
        self.ended: bool = False
        self._run = {"threadId": scope, "runId": run_id}
        self._after = after
        self._snapshot = snapshot
        self._view = View(scope, Show() if show is None else show)
        self._started = False
        self._is_over = is_over
        self._pending = pending
        self._waiting = waiting
        self._told: set[str] = set()  # the calls of which a promise was told
        # How the log ends, as far as the client has seen it.
        self._end_before: RunEnded | None = None
        # What has to be ended before the run is: the step, the message, the calls.
        self._step: Step | None = None
        self._open: dict[str, Event] = {}

    def feed(self, stored: StoredEvent, *, superseded: bool = False) -> tuple[Frame, ...]:
        """What an event adds to the response.

        Args:
            stored: The event.
            superseded: Whether it is known that its task goes on behind it: the end of a run isn't
                the end of the response then.
        """
        if self.ended:
            return ()
        if stored.seq <= self._after:
            self._end_before = None
            for change in self._view.apply(stored):
                if isinstance(change, RunEnded) and not superseded:
                    self._end_before = change
            return ()
        events = list(self.begin())
        for change in self._view.apply(stored):
            if not (isinstance(change, RunEnded) and superseded):
                events += self._encode(change)
        data = b"".join(map(encode_data, events))
        return (Frame(stored.seq, data),) if data else ()

    def begin(self) -> Iterator[Event]:
        """The events that come first, once: the caller may send them before there is any other."""
        if self._started:
            return
        self._started = True
        yield {"type": "RUN_STARTED", **self._run}
        if self._snapshot:
            yield self._all_messages()
            yield from self._tell_promises(self._view.open_promises())
        if self._is_over and self._end_before is not None:
            yield from self._encode(self._end_before)
            return
        yield from self._resume_step()

    def end(self, event: RunFailed | RunStopped) -> bytes:
        """The end of the response where the log has none for it: the run took no notice of it."""
        return b"".join(map(encode_data, [*self.begin(), *self._encode(RunEnded(event))]))

    def _resume_step(self) -> Iterator[Event]:
        """Open what is going on at this moment."""
        task = self._view.task
        step = task.steps[-1] if task is not None and task.steps else None
        if task is None or step is None or step.ended:
            return
        yield from self._begin_step(step)
        if not self._snapshot:
            return
        for part in step.parts:
            if isinstance(part, TextPart) and part.open:
                yield from self._encode(PartBegan(part))
                yield from self._encode(PartGrew(part, part.text))
            elif isinstance(part, CallPart) and not part.complete:
                yield from self._encode(CallBegan(part))
                if part.arguments:
                    yield from self._encode(CallGrew(part, part.arguments))

    def _begin_step(self, step: Step) -> Iterator[Event]:
        yield from self._close()
        self._step = step
        yield {"type": "STEP_STARTED", "stepName": f"round {step.number}"}

    # --- changes -----------------------------------------------------------------------------

    def _encode(self, change: Change) -> Iterator[Event]:
        if isinstance(change, MessagesShown):
            if self._is_news(change.messages):
                yield self._all_messages()
        elif isinstance(change, StepBegan):
            yield from self._begin_step(change.step)
        elif isinstance(change, (StepEnded, TaskEnded)):  # of a run that failed, none was said
            yield from self._close()
        elif isinstance(change, StepRewritten):
            yield from self._close_parts()
            yield self._all_messages()
        elif isinstance(change, StepReset):
            yield from self._close_parts()
            # A client keeps reasoning that the snapshot doesn't have, so that is made empty.
            yield self._all_messages(
                [
                    {"id": self._part_id(part), "role": "reasoning", "content": ""}
                    for part in change.dropped
                    if isinstance(part, TextPart) and part.kind == "reasoning"
                ]
            )
        elif isinstance(change, (PartBegan, PartGrew, PartEnded)):
            yield from self._encode_text(change)
        elif isinstance(change, (CallBegan, CallGrew, CallInput, CallEnded)):
            yield from self._encode_call(change)
        elif isinstance(change, (CallAnswered, CallIsHeld)):
            if isinstance(change, CallAnswered) and not change.call.automatic:
                value = {"toolCallId": change.call.call_id, "approved": change.call.approved}
                yield {"type": "CUSTOM", "name": "approval", "value": value}
        elif isinstance(change, PromiseChanged):
            yield from self._tell_promises([change.part])
        elif isinstance(change, QuestionChanged):
            yield {"type": "CUSTOM", "name": "question", "value": change.part.data}
        elif isinstance(change, ValueGiven):
            yield {"type": "CUSTOM", "name": "value", "value": change.value}
        elif isinstance(change, RunEnded):
            yield from self._close()
            if isinstance(change.event, RunWaits):
                yield from self._tell_what_is_awaited(change.event)
            self.ended = True
            yield self._encode_end(change.event)

    def _tell_promises(self, promises: Iterable[PromisePart]) -> Iterator[Event]:
        for part in promises:
            self._told.add(part.call_id)
            yield {"type": "CUSTOM", "name": "promise", "value": dict(part.data)}

    def _tell_what_is_awaited(self, event: RunWaits) -> Iterator[Event]:
        """Tell what the run waits for, where that was promised in another one."""
        awaited = {*event.promised} - self._told
        promises = self._view.open_promises()
        yield from self._tell_promises([part for part in promises if part.call_id in awaited])

    def _is_news(self, messages: Sequence[ShownMessage]) -> bool:
        """Whether the client hasn't seen messages that are answered now: one of somebody else has
        waited. A client that begins with nothing new and without a snapshot has said them itself.
        """
        if self._pending is None:
            return self._snapshot
        return any(message.id != self._pending.id for message in messages)

    def _encode_text(self, change: PartBegan | PartGrew | PartEnded) -> Iterator[Event]:
        part = change.part
        message_id = self._part_id(part)
        is_text = part.kind == "text"
        kind = "TEXT_MESSAGE" if is_text else "REASONING_MESSAGE"
        if isinstance(change, PartBegan):
            role = "assistant" if is_text else "reasoning"
            yield {"type": f"{kind}_START", "messageId": message_id, "role": role}
            self._open[message_id] = {"type": f"{kind}_END", "messageId": message_id}
        elif isinstance(change, PartGrew):
            yield {"type": f"{kind}_CONTENT", "messageId": message_id, "delta": change.text}
        elif message_id in self._open:
            yield self._open.pop(message_id)

    def _encode_call(self, change: CallBegan | CallGrew | CallInput | CallEnded) -> Iterator[Event]:
        call = change.call
        named = {"toolCallId": call.call_id}
        if isinstance(change, CallBegan):
            parent = self._id(_parent(self._parts(), call))
            yield {
                "type": "TOOL_CALL_START",
                **named,
                "toolCallName": call.tool,
                "parentMessageId": parent,
            }
            self._open[call.call_id] = {"type": "TOOL_CALL_END", **named}
        elif isinstance(change, CallGrew):
            yield {"type": "TOOL_CALL_ARGS", **named, "delta": change.text}
        elif isinstance(change, CallInput):
            yield from self._close_parts()
            if call.edited:  # arguments can't be sent again
                yield self._all_messages()
        else:
            yield from self._close_parts()
            result = {**named, "messageId": self._result_id(call), "content": _result(call)}
            yield {"type": "TOOL_CALL_RESULT", **result, "role": "tool"}

    def _close_parts(self) -> Iterator[Event]:
        """End what is open in the step."""
        opened, self._open = self._open, {}
        yield from opened.values()

    def _close(self) -> Iterator[Event]:
        yield from self._close_parts()
        if self._step is not None:
            yield {"type": "STEP_FINISHED", "stepName": f"round {self._step.number}"}
            self._step = None

    def _encode_end(self, event: LoopEnded | RunWaits | RunFailed | RunStopped) -> Event:
        if isinstance(event, RunFailed):
            return {"type": "RUN_ERROR", "message": "The run failed.", "code": event.kind}
        outcome: Event = {"type": "success"}
        if isinstance(event, RunStopped):
            outcome = {"type": "cancelled"}
        elif isinstance(event, RunWaits):
            interrupts = [*self._interrupts(), *self._questions(event.asked)]
            if interrupts:  # else results have to come, and nobody is asked
                outcome = {"type": "interrupt", "interrupts": interrupts}
        return {"type": "RUN_FINISHED", **self._run, "outcome": outcome}

    def _interrupts(self) -> list[Event]:
        """The calls that wait for a person."""
        return [
            {
                "id": part.approval_id,
                "reason": "approval",
                "message": part.question or f"May {part.tool} run?",
                "toolCallId": part.call_id,
                "responseSchema": _response_schema(part),
            }
            for part in self._parts()
            if isinstance(part, CallPart) and part.status == "held"
        ]

    def _questions(self, asked: Sequence[str]) -> Iterator[Event]:
        """What servers ask a person, each as one interrupt (rule W9a)."""
        for part in self._parts():
            if not isinstance(part, QuestionPart) or part.answered or part.call_id not in asked:
                continue
            for key, question in part.questions.items():
                texts = [str(question[name]) for name in ("message", "url") if name in question]
                yield {
                    "id": question_id(part.call_id, part.leg, key),
                    "reason": "question",
                    "message": "\n".join(texts),
                    "toolCallId": part.call_id,
                    "responseSchema": question.get("form") or {"type": "object"},
                }

    # --- messages ----------------------------------------------------------------------------

    def _parts(self) -> list[Any]:
        task = self._view.task
        return list(task.steps[-1].parts) if task is not None and task.steps else []

    def _id(self, place: str) -> str:
        task = self._view.task
        return place if task is None else f"{task.id}.{place}"

    def _part_id(self, part: TextPart) -> str:
        return self._id(_place(part))

    def _result_id(self, call: CallPart) -> str:
        # A late result may be of a call that an earlier task made.
        for task in reversed(self._view.tasks):
            if any(part is call for step in task.steps for part in step.parts):
                return f"{task.id}.{call.id}.result"
        return f"{self._id(call.id)}.result"

    def _all_messages(self, more: Sequence[Event] = ()) -> Event:
        messages = [*ag_ui_messages(self._view.tasks), *more]
        known = {each["id"] for each in messages}
        for message in (*self._waiting, *([self._pending] if self._pending else ())):
            if message.id not in known:
                known.add(message.id)
                messages.append({"id": message.id, "role": "user", "content": message.text})
        return {"type": "MESSAGES_SNAPSHOT", "messages": messages}


def ag_ui_messages(tasks: list[Task]) -> list[dict[str, JsonValue]]:
    """Tasks as messages of AG-UI: what a client has when it has read their runs.

    What is still open isn't in it.
    """
    messages: list[dict[str, Any]] = []
    for task in tasks:
        for index, message in enumerate(task.messages):
            place = message.id or f"{task.id}.user{index}"
            messages.append({"id": place, "role": "user", "content": message.text})
        for step in task.steps:
            messages += _step_messages(task, step)
    return messages


def _step_messages(task: Task, step: Step) -> Iterator[Event]:
    found: dict[str, Event] = {}
    results: dict[int, Event] = {}
    for part in step.parts:
        if isinstance(part, TextPart):
            if not part.open:
                role = "assistant" if part.kind == "text" else "reasoning"
                message_id = f"{task.id}.{_place(part)}"
                found[message_id] = {"id": message_id, "role": role, "content": part.text}
            continue
        if not isinstance(part, CallPart) or not part.complete:
            continue
        parent = f"{task.id}.{_parent(step.parts, part)}"
        message = found.setdefault(parent, {"id": parent, "role": "assistant"})
        function = {"name": part.tool, "arguments": _arguments(part)}
        calls = message.setdefault("toolCalls", [])
        calls.append({"id": part.call_id, "type": "function", "function": function})
        if part.ended:
            result = {"id": f"{task.id}.{part.id}.result", "role": "tool"}
            named = {**result, "toolCallId": part.call_id, "content": _result(part)}
            results[part.result_number] = named
    yield from found.values()
    for number in sorted(results):
        yield results[number]


def _place(part: TextPart) -> str:
    """The place of a message in its task; a text never takes that of a reasoning."""
    return part.id if part.kind == "text" else f"{part.id}.reasoning"


def _parent(parts: list[Any], call: CallPart) -> str:
    """The place of the message that a call hangs on: the text before it, else the first call."""
    parent = ""
    for part in parts:
        if isinstance(part, TextPart):
            parent = part.id if part.kind == "text" else ""
        elif isinstance(part, CallPart) and not parent:
            parent = part.id
        if part is call:
            break
    return parent


def _arguments(call: CallPart) -> str:
    if not call.edited:
        return call.arguments
    text: str = json.dumps(json_values.clean(call.input), ensure_ascii=False)
    return text


def _result(call: CallPart) -> str:
    """What a message of a result says."""
    if call.status in ("issue", "rejected"):
        return call.reason or "The call was not run."
    if isinstance(call.content, str):
        return call.content
    if call.content is None:
        return "The tool failed." if call.status == "error" else "Done."
    text: str = json.dumps(json_values.clean(call.content), ensure_ascii=False)
    return text


def _response_schema(call: CallPart) -> dict[str, JsonValue]:
    """What the answer to an interrupt looks like (rule W9); an edited input is one of the tool."""
    properties: dict[str, JsonValue] = {**_ANSWER}
    if call.schema:
        properties["input"] = dict(call.schema)
    return {
        "type": "object",
        "properties": properties,
        "required": ["approved"],
        "additionalProperties": False,
    }
