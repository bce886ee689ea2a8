"""What becomes of the calls of a step (rules W3, W8 and W9a)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from lutumpy.durable.log import (
    CallAsked,
    CallDecided,
    CallDelivered,
    CallHeld,
    CallPromised,
    RoundDecoded,
    RoundExecuted,
    RoundPlanned,
    ShownCall,
    ShownIssue,
    ShownRejection,
    ShownResult,
)
from lutumpy.web.answers import begin_call
from lutumpy.web.parts import (
    CallAnswered,
    CallEnded,
    CallInput,
    CallIsHeld,
    CallPart,
    CallRests,
    CallStatus,
    Change,
    Changes,
    PromiseChanged,
    PromisePart,
    QuestionChanged,
    QuestionPart,
    Step,
    Task,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = [
    "apply_step",
    "ask",
    "change_promise",
    "end_promised",
    "find_promise",
    "go_on",
    "rest",
]


def apply_step(
    step: Step,
    event: RoundDecoded | RoundPlanned | CallHeld | CallDecided | RoundExecuted,
) -> Iterator[Change]:
    if isinstance(event, RoundDecoded):
        for call in (*event.calls, *event.approvals):
            yield from _know_input(step, call)
        for issue in event.issues:
            yield from _refuse_issue(step, issue)
    elif isinstance(event, RoundPlanned):
        yield from _plan(step, event)
    elif isinstance(event, CallHeld):
        yield from _hold(step, event)
    elif isinstance(event, CallDecided):
        yield from _decide(step, event)
    else:
        for result in event.results:
            yield from _end_call(step, result)


def rest(step: Step) -> Iterator[Change]:
    """The run has ended. Where nobody is asked, its calls aren't ones with an answer any more: a
    client that waits for all answers would send them, again and again (rules W8 and W19).
    """
    calls = step.calls()
    for part in () if any(part.status == "held" for part in calls) else calls:
        if part.status == "ready" and part.approved is not None and not part.rests:
            part.rests = True
            yield CallRests(part)


def _find_call(step: Step, call_id: str, tool: str) -> Changes[CallPart]:
    """The part of a call; it is made where the answer showed none, as for a provider's own call."""
    found = step.call(call_id)
    if found is None:
        found = yield from begin_call(step, call_id, tool)
        found.complete = True
    return found


def _know_input(step: Step, call: ShownCall) -> Iterator[Change]:
    part = yield from _find_call(step, call.call_id, call.tool)
    if part.ended or (part.status != "streaming" and part.input == call.input):
        return
    part.input, part.edited = call.input, call.edited
    if part.status == "streaming":
        part.status = "ready"
    yield CallInput(part)


def _refuse_issue(step: Step, issue: ShownIssue) -> Iterator[Change]:
    part = yield from _find_call(step, issue.call_id, issue.tool)
    if not part.ended:
        part.reason = issue.detail or issue.reason
        yield _end_part(step, part, "issue")


def _plan(step: Step, event: RoundPlanned) -> Iterator[Change]:
    for call in (*event.pending, *event.approvals, *event.held):
        yield from _know_input(step, call)
    for issue in event.issues:
        yield from _refuse_issue(step, issue)
    for result in event.handled:
        yield from _know_input(step, result.call)
        yield from _end_call(step, result)
    for rejection in event.rejected:
        yield from _reject(step, rejection)
    if event.held:
        # Somebody is asked about this step: what needs no answer is answered, so that a client
        # that waits for all answers has them (rule W8).
        held = {call.call_id for call in event.held}
        for part in step.calls():
            if part.call_id not in held and not part.ended:
                yield from _answer(part, True)


def _reject(step: Step, rejection: ShownRejection) -> Iterator[Change]:
    yield from _know_input(step, rejection.call)
    part = yield from _find_call(step, rejection.call.call_id, rejection.call.tool)
    if part.ended:
        return
    yield from _answer(part, False, rejection.reason)
    yield _end_part(step, part, "rejected")


def _answer(part: CallPart, approved: bool, reason: str = "") -> Iterator[Change]:
    """Say that nobody has to be asked about a call, unless somebody was."""
    if part.approved is not None:
        return
    part.automatic = not part.approval_id
    part.approval_id = part.approval_id or f"auto:{part.call_id}"
    part.approved, part.reason = approved, reason
    yield CallAnswered(part)


def change_promise(task: Task, step: Step, event: CallPromised | CallDelivered) -> Change:
    """A promise, or what became of it: in its part, where the task has it."""
    if isinstance(event, CallPromised):
        call_id, tool = event.call.call_id, event.call.tool
        data: dict[str, JsonValue] = {"note": event.note, "until": event.until, "state": "open"}
    else:
        call_id, tool = event.call_id, event.tool
        data = {"state": event.outcome, "reason": event.reason}
    shown: dict[str, JsonValue] = {"toolCallId": call_id, "tool": tool, **data}
    found = find_promise(task, call_id)
    if found is None:
        part = PromisePart(call_id, shown)
        step.parts.append(part)
    else:
        _, part = found
        part.data = shown
    return PromiseChanged(part)


def find_promise(task: Task, call_id: str) -> tuple[Step, PromisePart] | None:
    """The part of a promise in a task, and its step."""
    for step in task.steps:
        for part in step.parts:
            if isinstance(part, PromisePart) and part.call_id == call_id:
                return step, part
    return None


def end_promised(tasks: Sequence[Task], event: CallDelivered) -> Iterator[Change]:
    """A late result ends its call, where the round has gone on without it."""
    for step in reversed([step for task in tasks for step in task.steps]):
        part = step.call(event.call_id)
        if part is not None and part.promised and not part.ended:
            call = ShownCall(event.call_id, event.tool, part.arguments)
            yield from _end_call(step, ShownResult(call, event.outcome, event.content, event.cut))
            return


def ask(step: Step, event: CallAsked) -> Iterator[Change]:
    """A server asks something before a call goes on; what it asked before and doesn't now is
    answered.
    """
    call = event.call
    legs: dict[int, dict[str, dict[str, JsonValue]]] = {}
    for question in event.questions:
        legs.setdefault(question.leg, {})[question.key] = {
            "message": question.message,
            **({} if question.url is None else {"url": question.url}),
            **({} if question.form is None else {"form": dict(question.form)}),
        }
    yield from go_on(step, call.call_id, but=legs)
    known = {part.leg for part in _questions_of(step, call.call_id)}
    for leg, questions in legs.items():
        if leg not in known:
            part = QuestionPart(call.call_id, call.tool, leg, questions)
            step.parts.append(part)
            yield QuestionChanged(part)


def go_on(step: Step, call_id: str, *, but: Collection[int] = ()) -> Iterator[Change]:
    """A call has gone on, so what was asked before is answered, but for these legs."""
    for part in _questions_of(step, call_id):
        if not part.answered and part.leg not in but:
            part.answered = True
            yield QuestionChanged(part)


def _questions_of(step: Step, call_id: str) -> list[QuestionPart]:
    return [
        part for part in step.parts if isinstance(part, QuestionPart) and part.call_id == call_id
    ]


def _end_part(step: Step, part: CallPart, status: CallStatus) -> Change:
    part.result_number = len([each for each in step.calls() if each.ended])
    part.status = status
    return CallEnded(part)


def _hold(step: Step, event: CallHeld) -> Iterator[Change]:
    yield from _know_input(step, event.call)
    part = yield from _find_call(step, event.call.call_id, event.call.tool)
    if part.ended or part.approved is not None or part.approval_id == event.approval_id:
        return
    part.status, part.approval_id = "held", event.approval_id
    part.question, part.schema = event.reason, event.schema
    yield CallIsHeld(part)


def _decide(step: Step, event: CallDecided) -> Iterator[Change]:
    part = yield from _find_call(step, event.call.call_id, event.call.tool)
    if part.ended or part.approved is not None:
        return
    part.approval_id = part.approval_id or event.approval_id
    part.approved = event.decision != "reject"
    part.status = "ready"
    if event.decision == "edited" and part.input != event.call.input:
        part.input, part.edited = event.call.input, True
        yield CallInput(part)
    part.reason = event.reason
    yield CallAnswered(part)
    if event.decision == "reject":
        yield _end_part(step, part, "rejected")


def _end_call(step: Step, result: ShownResult) -> Iterator[Change]:
    part = yield from _find_call(step, result.call.call_id, result.call.tool)
    if part.ended:
        return
    if part.status == "streaming":
        yield from _know_input(step, result.call)
    if result.status == "promised":
        # What it says is for the model: a call that has promised goes on.
        part.promised = True
        yield from go_on(step, part.call_id)
        return
    status: CallStatus = "ok"
    if result.status == "rejected":
        yield from _answer(part, False, str(result.content or ""))
        status = "rejected"
    elif result.status != "ok":
        status = "error"
    part.content = result.content
    yield from go_on(step, part.call_id)
    yield _end_part(step, part, status)
