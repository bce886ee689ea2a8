"""What a watcher has seen of a conversation: its log, as messages and parts that grow.

Every front end is an encoding of this: it is given each change, and can ask for the whole state.
"""

# What is hard here: watchers look at different moments. One sees an answer word by word, one comes
# when it is whole; one sees an answer that its process took to the grave, one only the next try.
# All of them have to end with the same messages (rule W4). So:
#
#   - Deltas are a preview. `Completed` is the truth: parts that it continues are continued, and
#     anything else is taken back (`StepReset`) and written again (rule W6).
#   - `Restarted` takes a preview back, unless the answer is complete (rule W7).
#   - Ids are made of places in the conversation, never counted by what a watcher saw.
#   - What happens to a call is said once, whichever of several events says it first.
#
# A round is a step, and a task, which begins with messages of the user, is one assistant message
# (rule W5).

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lutumpy.durable import StoredEvent
from lutumpy.durable.log import (
    CallAsked,
    CallDecided,
    CallDelivered,
    CallHeld,
    CallPromised,
    Completed,
    Delta,
    DurableEvent,
    LoopEnded,
    MessagesTaken,
    RequestStarted,
    Restarted,
    RoundCommitted,
    RoundDecoded,
    RoundExecuted,
    RoundPlanned,
    RunFailed,
    RunStopped,
    RunWaits,
)
from lutumpy.web.answers import complete_answer, grow_answer
from lutumpy.web.calls import apply_step, ask, change_promise, end_promised, find_promise, rest
from lutumpy.web.parts import (
    Change,
    Changes,
    MessagesShown,
    PromisePart,
    RunEnded,
    Step,
    StepBegan,
    StepEnded,
    StepReset,
    Task,
    TaskBegan,
    TaskEnded,
    ValueGiven,
)
from lutumpy.web.show import Show, ShownLog

__all__ = ["View"]


class View:
    """A conversation, as far as its log was read.

    Args:
        scope: The conversation's id.
        show: What is shown of it.
    """

    def __init__(self, scope: str, show: Show) -> None:
        self.tasks: list[Task] = []
        self._scope = scope
        self._shown = ShownLog(show)

    @property
    def task(self) -> Task | None:
        """The task that is read."""
        return self.tasks[-1] if self.tasks else None

    def open_promises(self) -> list[PromisePart]:
        """The calls whose results are still to come."""
        parts = [part for task in self.tasks for step in task.steps for part in step.parts]
        promises = [part for part in parts if isinstance(part, PromisePart)]
        return [part for part in promises if part.data["state"] == "open"]

    def apply(self, stored: StoredEvent) -> Iterator[Change]:
        """What an event changes, in order. Each change is in the state when it is given."""
        event = self._shown.apply(stored.load())
        if event is None:
            return
        task = self.task
        if task is not None and stored.task < task.number:
            # Messages are told before the commit that takes them, and the commit ends the round
            # before them.
            task = next((each for each in self.tasks if each.number == stored.task), None)
            if task is None:
                return
        elif task is None or task.number != stored.task:
            if task is not None and task.ending is None:
                yield TaskEnded(task)
            is_first = isinstance(event, MessagesTaken)
            name = str(stored.seq) if is_first else f"task{stored.task}"
            task = Task(stored.task, f"{self._scope}.{name}")
            self.tasks.append(task)
            yield TaskBegan(task)
        yield from self._apply(task, stored.round, event)

    def _apply(self, task: Task, number: int, event: DurableEvent) -> Iterator[Change]:
        if isinstance(event, MessagesTaken):
            task.messages += event.messages
            yield MessagesShown(event.messages)
        elif isinstance(event, (LoopEnded, RunWaits, RunFailed, RunStopped)):
            yield from self._end(task, event)
        elif isinstance(event, (Delta, Completed, RequestStarted)):
            task.ending = None
            if isinstance(event, Delta) and event.kind == "Started":
                return
            step = yield from _find_step(task, number)
            if isinstance(event, Delta):
                yield from grow_answer(step, event)
            elif isinstance(event, Completed):
                yield from complete_answer(step, event)
        elif isinstance(event, CallPromised):
            step = yield from _find_step(task, number)
            yield change_promise(task, step, event)
        elif isinstance(event, CallDelivered):
            yield from end_promised(self.tasks, event)
            yield from _deliver(self.tasks, task, number, event)
        elif isinstance(event, CallAsked):
            task.ending = None
            step = yield from _find_step(task, number)
            yield from ask(step, event)
        elif isinstance(event, Restarted):
            yield from _restart(task, event.round)
        elif isinstance(event, RoundCommitted):
            step = yield from _find_step(task, number)
            if not step.ended:
                yield _end_step(step)
        elif isinstance(event, (RoundDecoded, RoundPlanned, CallHeld, CallDecided, RoundExecuted)):
            if not isinstance(event, CallDecided):
                task.ending = None
            step = yield from _find_step(task, number)
            yield from apply_step(step, event)

    def _end(
        self, task: Task, event: LoopEnded | RunWaits | RunFailed | RunStopped
    ) -> Iterator[Change]:
        task.ending = event
        if task.steps:
            yield from rest(task.steps[-1])
        if isinstance(event, LoopEnded):
            if task.steps and not task.steps[-1].ended:
                yield _end_step(task.steps[-1])
            if event.value is not None:
                task.value = event.value
                yield ValueGiven(event.value)
        yield RunEnded(event)


def _find_step(task: Task, number: int) -> Changes[Step]:
    """The step of a round; the one before it has ended then, whether or not that was said."""
    if task.steps and task.steps[-1].number == number:
        return task.steps[-1]
    if task.steps and not task.steps[-1].ended:
        yield _end_step(task.steps[-1])
    step = Step(number)
    task.steps.append(step)
    yield StepBegan(step)
    return step


def _deliver(
    tasks: Sequence[Task], task: Task, number: int, event: CallDelivered
) -> Iterator[Change]:
    """A late result is told where its promise was: no answer of the model comes with it.

    Front ends can change the message of the task alone; those before it are for who comes later.
    """
    for earlier in tasks:
        promised = find_promise(earlier, event.call_id)
        if earlier is not task and promised is not None:
            change_promise(earlier, promised[0], event)
    found = find_promise(task, event.call_id)
    step = found[0] if found is not None else (yield from _find_step(task, number))
    yield change_promise(task, step, event)


def _end_step(step: Step) -> Change:
    step.ended = True
    return StepEnded(step)


def _restart(task: Task, number: int) -> Iterator[Change]:
    step = task.steps[-1] if task.steps else None
    if step is None or step.number != number or step.complete or not step.parts:
        return
    dropped, step.parts = tuple(step.parts), []
    yield StepReset(step, dropped)
