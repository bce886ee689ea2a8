"""Calls that a hook holds for a person, in a loop in memory: `decide_held=`, in every form."""

from __future__ import annotations

from typing import Any

import pytest
from loop_toolkit import (
    ANSWER,
    Journal,
    Runner,
    asked,
    calls,
    check_valid,
    look,
    results,
    script,
)

from lutumpy import Complete, Hold, HookError, Reject, RunNormally
from lutumpy.hooks import BaseToolCall


def hold_all(call: BaseToolCall) -> Any:
    return Hold(f"a person decides about {call.metadata.name}")


def test_held_calls_are_decided_by_whoever_is_asked(run: Runner, api: str) -> None:
    session, journal, asked_about = asked(), Journal(), []

    def decide(call: BaseToolCall) -> Any:
        asked_about.append(call.arguments["word"])
        return {
            "yes": RunNormally(),
            "other": RunNormally.edited(word="dog"),
            "known": Complete("known already"),
        }.get(call.arguments["word"], Reject("not today"))

    words = ["yes", "other", "known", "no"]
    llm = script(calls(*[look(word) for word in words]), ANSWER, api=api)
    done = run(session, llm, journal, hooks=hold_all, decide_held=decide)
    assert (done.stopped_by, asked_about) == ("answer", words)
    assert sorted(journal.ran) == ["look_up dog", "look_up yes"]
    assert [status for status, _ in results(session)] == ["ok", "ok", "ok", "rejected"]
    check_valid(session)


def test_who_is_asked_may_be_async(run: Runner) -> None:
    async def decide(call: BaseToolCall) -> Any:
        return RunNormally()

    llm = script(calls(look("cat")), ANSWER)
    if run.is_async:
        done = run(asked(), llm, hooks=hold_all, decide_held=decide)
        assert (done.rounds, done.stopped_by) == (1, "answer")
    else:
        with pytest.raises(TypeError, match="decide_held= is async"):
            run(asked(), llm, hooks=hold_all, decide_held=decide)


@pytest.mark.parametrize("decision", [Hold("still"), True, None, Complete(7)])
def test_what_is_no_decision_runs_nothing(run: Runner, decision: Any) -> None:
    session, journal = asked(), Journal()
    with pytest.raises(HookError):
        run(
            session,
            script(calls(look("cat"))),
            journal,
            hooks=hold_all,
            decide_held=lambda call: decision,
        )
    assert (journal.ran, len(session.transcript)) == ([], 1)
    check_valid(session)


def test_an_error_of_who_is_asked_propagates_and_runs_nothing(run: Runner) -> None:
    session, journal = asked(), Journal()

    def decide(call: BaseToolCall) -> Any:
        raise LookupError("nobody is there")

    with pytest.raises(LookupError, match="nobody is there"):
        run(session, script(calls(look("cat"))), journal, hooks=hold_all, decide_held=decide)
    assert (journal.ran, len(session.transcript)) == ([], 1)
    assert run(session, script(ANSWER)).stopped_by == "answer"


def test_without_anybody_to_ask_a_held_call_is_an_error(run: Runner) -> None:
    with pytest.raises(HookError, match="give it decide_held="):
        run(asked(), script(calls(look("cat"))), hooks=hold_all)
    with pytest.raises(TypeError, match="decide_held= takes a callable, not str"):
        run(asked(), script(), decide_held="ann")
