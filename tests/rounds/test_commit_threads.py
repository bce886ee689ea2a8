"""Of several threads exactly one closes a round (rule K4), wherever they meet.

A session belongs to one thread at a time, but a round may be closed by two: by workers that were
handed the same task, or by a time limit that discards what another thread is committing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from interleaving import NEVER, SteppedThread
from profiles import examples

from lutumpy import (
    HookError,
    NeedsTools,
    RoundClosedError,
    RunNormally,
    Session,
    ToolRound,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.models import AssistantTurn, ToolResults

LAST = 20
pytestmark = pytest.mark.scaled
MOST = examples(240)  # places at which a thread is stopped, of those of a step


@tool_fn
def lookup(key: str) -> str:
    """Look something up."""
    return key


class Tools(Toolset):
    lookup = tool(lookup)


def turn(calls: int = 1) -> AssistantTurn:
    function = {"name": "lookup", "arguments": '{"key":"a"}'}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": f"call_{n}", "type": "function", "function": function} for n in range(calls)
        ],
    }
    return OpenAIChat.response({"choices": [{"message": message, "finish_reason": "tool_calls"}]})


TURN, EQUAL_CALLS = turn(), turn(3)


class Scene:
    """A session with an open round, and what a thread may do with that."""

    def __init__(self, answer: AssistantTurn = TURN) -> None:
        self.session = Session()
        self.session.push_user("Look up a.")
        outcome = Tools.offer().read(answer, self.session)
        assert isinstance(outcome, NeedsTools)
        self.round: ToolRound[Any] = outcome.round
        self.plans: list[Any] = []  # kept, so that none is dropped

    def commit(self, text: str = "first") -> str:
        self.round.commit(self.session, [call.complete(text) for call in self.round.calls])
        return text

    def commit_at_the_end(self) -> str:
        results = [call.complete("rebased") for call in self.round.calls]
        self.round.commit(self.session, results, rebase=True)
        return "rebased"

    def discard(self) -> str:
        self.round.discard()
        return "nothing"

    def plan_and_commit(self) -> str:
        plan = self.round.apply_hooks_sync(lambda call: RunNormally())
        self.plans.append(plan)
        plan.commit(self.session, [call.complete("planned") for call in plan.pending])
        return "planned"

    def suspend(self) -> str:
        self.round.suspend(scope="conversation")
        return "nothing"

    def written(self) -> str:
        """The result that the transcript has; `nothing` if the round isn't in it."""
        found = [item for item in self.session.transcript if isinstance(item, ToolResults)]
        turns = self.session.turns()
        assert len(found) == len(turns) <= 1
        if not found:
            return "nothing"
        content = found[0].results[0].content
        assert isinstance(content, str)
        return content


def commit_other(scene: Scene) -> str:
    return scene.commit("second")


Step = Callable[[Scene], str]
RIVALS: list[tuple[Step, Step]] = [
    (Scene.commit, commit_other),
    (Scene.commit, Scene.commit_at_the_end),
    (Scene.commit_at_the_end, Scene.commit),
    (Scene.commit, Scene.discard),
    (Scene.discard, Scene.commit),
    (Scene.discard, Scene.discard),
    (Scene.commit, Scene.plan_and_commit),
    (Scene.plan_and_commit, Scene.commit),
    (Scene.plan_and_commit, Scene.plan_and_commit),
    (Scene.commit, Scene.suspend),
    (Scene.suspend, Scene.commit),
    (Scene.suspend, Scene.suspend),
    (Scene.suspend, Scene.plan_and_commit),
    (Scene.plan_and_commit, Scene.suspend),
    (Scene.plan_and_commit, Scene.discard),
    (Scene.discard, Scene.plan_and_commit),
]


def length_of(step: Step, event: str) -> int:
    """How many lines or byte codes of the package a step runs through."""
    end = 64
    while True:
        scene = Scene()
        thread = SteppedThread(lambda: step(scene), end, event)  # noqa: B023
        thread.finish()
        if not thread.stopped:
            return thread.passed
        end *= 2


def places(step: Step, event: str, most: int) -> Iterator[int]:
    """So many places of all of it, and each of the last ones, where a step is decided."""
    end = length_of(step, event)
    return iter([*range(0, end, max(1, end // most)), *range(max(0, end - LAST), end)])


def check_one_closed(scene: Scene, *threads: SteppedThread) -> None:
    """One succeeded, the transcript has what that one wrote, and the others know that they lost."""
    done = [thread.result for thread in threads if thread.error is None]
    lost = [thread.error for thread in threads if thread.error is not None]
    assert len(done) == 1, (done, lost)
    for error in lost:
        deciding = isinstance(error, HookError) and "already deciding" in str(error)
        assert deciding or isinstance(error, RoundClosedError), error
    assert scene.written() == done[0]
    with pytest.raises(RoundClosedError):
        scene.commit()
    with pytest.raises(RoundClosedError):
        scene.discard()


@pytest.mark.slow
@pytest.mark.parametrize(("one", "other"), RIVALS)
def test_one_of_two_threads_closes_a_round_wherever_the_first_is_stopped_K4(
    one: Step, other: Step
) -> None:
    for event in ("line", "opcode"):
        for place in places(one, event, MOST // len(RIVALS)):
            scene = Scene()
            first = SteppedThread(lambda: one(scene), place, event)  # noqa: B023
            second = SteppedThread(lambda: other(scene), NEVER, event)  # noqa: B023
            second.finish()
            first.finish()
            check_one_closed(scene, first, second)


@pytest.mark.slow
def test_one_of_two_threads_closes_a_round_wherever_both_are_stopped_K4() -> None:
    most = examples(24)
    for place in places(Scene.commit, "line", most):
        for other in places(commit_other, "line", most):
            scene = Scene()
            first = SteppedThread(scene.commit, place, "line")
            second = SteppedThread(lambda: commit_other(scene), other, "line")  # noqa: B023
            first.finish()
            second.finish()
            check_one_closed(scene, first, second)


def test_what_is_cut_off_while_another_thread_was_refused_can_be_closed_again_K3a_K4() -> None:
    """The other thread has lost to one that didn't finish; the round is open, and says so."""
    refused = 0
    for place in places(Scene.commit, "opcode", MOST):
        scene = Scene()
        first = SteppedThread(scene.commit, place, "opcode")
        second = SteppedThread(scene.discard, NEVER, "opcode")
        first.finish(KeyboardInterrupt())
        second.finish()
        if second.error is None:
            assert first.error is not None or not first.stopped
            assert "discarded" in repr(scene.round)
            continue
        assert isinstance(second.error, RoundClosedError)
        refused += 1
        if "open" in repr(scene.round):
            assert scene.written() == "nothing"
            scene.commit("again")
            assert scene.written() == "again"
        else:
            assert scene.written() == "first"
    assert refused


def test_a_round_that_is_closed_while_a_thread_closes_it_is_refused_at_once() -> None:
    """Also in the same thread, where a signal's handler or a finalizer may come to it."""
    messages: set[str] = set()
    for place in places(Scene.commit, "line", MOST):
        scene = Scene()
        first = SteppedThread(scene.commit, place, "line")
        try:
            scene.commit("second")
        except RoundClosedError as error:
            messages.add(str(error))
        first.finish()
    assert any("at this very moment" in message for message in messages)
    assert any("committed before" in message for message in messages)


def test_the_keys_of_equal_calls_are_the_same_for_threads_that_ask_at_once() -> None:
    def dump(unused: Scene) -> str:
        unused.discard()
        scene = Scene(EQUAL_CALLS)
        expected.append(scene.round.dump(scope="conversation"))
        return scene.discard()

    expected: list[object] = []
    for place in places(dump, "line", examples(150)):
        scene = Scene(EQUAL_CALLS)
        threads = [
            SteppedThread(lambda: scene.round.dump(scope="conversation"), stop, "line")  # noqa: B023
            for stop in (place, NEVER)
        ]
        for thread in threads:
            thread.finish()
        assert [thread.result for thread in threads] == expected[:1] * 2
        scene.discard()


def test_threads_that_run_freely_close_each_round_once_K4() -> None:
    """Four of them, with the shortest turns that the interpreter has; without its lock, at once."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(examples(150)):
            close_at_once()
    finally:
        sys.setswitchinterval(before)


def close_at_once() -> None:
    scene, gate = Scene(), threading.Barrier(4)
    outcomes: list[str | BaseException] = []

    def work(text: str) -> None:
        results = [call.complete(text) for call in scene.round.calls]
        gate.wait()
        try:
            scene.round.commit(scene.session, results)
        except BaseException as error:
            outcomes.append(error)
        else:
            outcomes.append(text)

    threads = [threading.Thread(target=work, args=(f"thread {n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert len(outcomes) == 4
    assert all(isinstance(o, RoundClosedError) for o in outcomes if not isinstance(o, str))
    assert [scene.written()] == done
