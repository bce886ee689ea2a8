"""A loop swallows no error, and wherever it stops, the session is valid for another loop."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from loop_toolkit import (
    ANSWER,
    WITHHELD,
    Desk,
    Journal,
    OtherDesk,
    Reviewer,
    Runner,
    asked,
    call,
    calls,
    check_valid,
    dispatcher,
    look,
    results,
    script,
)

from lutumpy import (
    AdapterError,
    Completed,
    HookError,
    InvalidToolConstraints,
    LutumpyError,
    RunNormally,
    Session,
    StaleRoundError,
    ToolAvailability,
    ToolDecision,
    ToolRequirement,
    ToolResult,
    Transcript,
    TranscriptError,
    hook_impl,
)
from lutumpy.execution import Dispatcher
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import (
    LoopEnded,
    LoopEvent,
    RequestStarted,
    RoundCommitted,
    RoundDecoded,
    RoundExecuted,
    RoundPlanned,
    UncommittedRoundError,
    run_tools_sync,
)
from lutumpy.testing import Failure, Reply

ROUND = calls(look("cat", "c1"), look("dog", "c2"))


def goes_on(run: Runner, session: Session, rounds: int = 0) -> None:
    """The session is valid, and another loop answers."""
    check_valid(session)
    done = run(session, script(*[ROUND] * rounds, ANSWER))
    assert (done.stopped_by, done.rounds) == ("answer", rounds)
    check_valid(session)


# --- before anything is sent -------------------------------------------------------------


@pytest.mark.parametrize("name", ["max_rounds", "max_repeats", "token_budget"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "3", True, float("nan")])
def test_a_limit_that_is_no_positive_number_is_refused(name: str, value: Any, run: Runner) -> None:
    llm = script(ANSWER)
    with pytest.raises(ValueError, match=f"{name}=.*nothing was sent"):
        run(asked(), llm, **{name: value})
    assert llm.requests == []


def test_max_rounds_is_a_number(run: Runner) -> None:
    with pytest.raises(ValueError, match="max_rounds=None"):
        run(asked(), script(ANSWER), max_rounds=None)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"dispatch": Dispatcher(OtherDesk, context={"journal": Journal()})}, LutumpyError),
        ({"dispatch": Dispatcher(Desk, context={"journal": Journal()})}, LutumpyError),
        ({"dispatch": {}}, TypeError),
        ({"hooks": OtherDesk.hooks()}, HookError),
        ({"hooks": 3}, HookError),
        ({"executor": Desk}, TypeError),
        ({"scope": 3}, TypeError),
        ({"on_progress": "print"}, TypeError),
        ({"on_event": 1}, TypeError),
        ({"available": ToolAvailability.only(OtherDesk.count)}, InvalidToolConstraints),
        ({"require": ToolRequirement.specific(Desk.hidden)}, InvalidToolConstraints),
        ({"describe": {OtherDesk.count: "x"}}, InvalidToolConstraints),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_sent(
    options: dict[str, Any], error: type[Exception], run: Runner
) -> None:
    session, llm, events = asked(), script(ANSWER), []
    with pytest.raises(error):
        run(session, llm, **{"on_progress": events.append, **options})
    assert (llm.requests, events, len(session.transcript)) == ([], [], 1)
    goes_on(run, session)


def test_a_toolset_that_is_not_covered_is_refused_by_name(run: Runner) -> None:
    with pytest.raises(LutumpyError, match="write"):
        run(asked(), script(ANSWER), dispatch=Dispatcher(Desk, context={"journal": Journal()}))


def test_events_need_a_model_that_streams(run: Runner) -> None:
    class Plain:
        respond = respond_sync = None

    with pytest.raises(TypeError, match="Plain has no open_stream"):
        run(asked(), Plain(), on_event=print)


def test_the_sync_form_refuses_what_is_async() -> None:
    run = Runner("sync")

    async def policy(call: BaseToolCall) -> ToolDecision:
        return RunNormally(call.input)

    async def callback(event: Any) -> None: ...

    class Policy:
        @hook_impl
        async def count_hook(self, input: Any) -> ToolDecision:
            return RunNormally(input)

    class Reviewer:
        @hook_impl
        async def any_result_hook(self, result: ToolResult) -> None: ...

    class Describer:
        @hook_impl
        async def count_description_hook(self, definition: Any) -> str | None: ...

    llm = script(ANSWER)
    for hooks in (
        policy,
        *[Desk.hooks().with_hooks(plugin()) for plugin in (Policy, Reviewer, Describer)],
    ):
        with pytest.raises(HookError, match=r"is async"):
            run(asked(), llm, hooks=hooks)
    for name in ("on_progress", "on_event"):
        with pytest.raises(TypeError, match=f"{name}= is async"):
            run(asked(), llm, **{name: callback})
    assert llm.requests == []
    with pytest.raises(TypeError, match="gave an awaitable"):
        run(asked(), llm, on_progress=lambda event: callback(event))


def test_the_sync_form_is_refused_inside_an_event_loop(backend: str) -> None:
    llm = script(ANSWER)

    async def main() -> None:
        with pytest.raises(RuntimeError, match="inside a running event loop: await run_tools"):
            run_tools_sync(asked(), llm, tools=Desk, dispatch=dispatcher())

    anyio.run(main, backend=backend)
    assert llm.requests == []


def test_the_sync_form_works_in_a_worker_thread_of_an_event_loop(backend: str) -> None:
    async def main() -> None:
        done = await anyio.to_thread.run_sync(
            lambda: Runner("sync")(asked(), script(ROUND, ANSWER))
        )
        assert done.rounds == 1

    anyio.run(main, backend=backend)


# --- requests that fail ------------------------------------------------------------------


def test_a_failed_request_leaves_the_rounds_before_it(run: Runner, api: str) -> None:
    session = asked()
    with pytest.raises(AdapterError) as caught:
        run(session, script(ROUND, Failure(500, "down"), api=api))
    assert caught.value.status == 500
    assert len(results(session)) == 2
    goes_on(run, session)


def test_nothing_to_answer_is_an_error_of_the_transcript(run: Runner) -> None:
    session = Session()
    with pytest.raises(TranscriptError):
        run(session, script(ANSWER))
    assert len(session.transcript) == 0


def test_a_session_that_moved_on_during_the_last_request_keeps_the_answer_in_the_error(
    run: Runner,
) -> None:
    session = asked()

    def meanwhile(api: Any, body: Any) -> Reply:
        session.push_user("One more thing.")
        return ANSWER

    with pytest.raises(StaleRoundError) as caught:
        run(session, script(ROUND, meanwhile))
    assert caught.value.result.text == ANSWER.text
    goes_on(run, session)


# --- hooks that fail ---------------------------------------------------------------------


@pytest.mark.parametrize("failing", ["policy", "registry"])
def test_a_hook_that_fails_discards_the_round_with_nothing_executed_H4(
    failing: str, run: Runner
) -> None:
    def fails(call: BaseToolCall) -> ToolDecision:
        if call.metadata.name == "count":
            raise ConnectionError("the policy server is down")
        return RunNormally(call.input)

    class Fails:
        @hook_impl
        def any_tool_hook(self, call: BaseToolCall) -> ToolDecision:
            return fails(call)

    session, journal = asked(), Journal()
    hooks: Any = fails if failing == "policy" else Desk.hooks().with_hooks(Fails())
    with pytest.raises(HookError, match=r"policy server.*the loop has discarded the round"):
        run(
            session,
            script(ROUND, calls(look("cow"), call("count", text="x"))),
            journal,
            hooks=hooks,
        )
    assert "look_up cow" not in journal.ran
    assert len(results(session)) == 2, "the round before is there"
    goes_on(run, session)


def test_a_description_hook_that_fails_passes_with_nothing_open(run: Runner) -> None:
    hooks, journal = Desk.hooks(), Journal()

    @hooks.describe(Desk.count)
    def words(definition: Any) -> str | None:
        if journal.ran:
            raise ValueError("no words")
        return None

    session = asked()
    with pytest.raises(HookError, match="no words"):
        run(session, script(ROUND), journal, hooks=hooks)
    assert len(results(session)) == 2
    goes_on(run, session)


def test_results_are_reviewed_before_the_model_sees_them(run: Runner) -> None:
    session, llm = asked(), script(calls(look("cat"), look("unknown")), ANSWER)
    done = run(session, llm, hooks=Desk.hooks().with_hooks(Reviewer()))
    assert done.stopped_by == "answer"
    assert results(session) == [("ok", "[seen] cat means tac"), ("error", "[seen] no such word")]


@pytest.mark.parametrize("error", [ConnectionError, KeyboardInterrupt])
def test_a_review_that_fails_withholds_the_results_and_keeps_the_round(
    error: type[BaseException], run: Runner
) -> None:
    session, journal = asked(), Journal()
    reply = calls(look("cat"), look("secret"), look("dog"), call("nope"))
    expected: type[BaseException] = HookError if error is ConnectionError else KeyboardInterrupt
    with pytest.raises(expected, match="the scanner is down"):
        run(session, script(reply), journal, hooks=Desk.hooks().with_hooks(Reviewer(error=error)))
    first, second, third, unknown = results(session)
    assert first == ("ok", "[seen] cat means tac")
    assert second == third == ("error", WITHHELD)
    assert unknown[0] == "rejected"
    assert "terces" not in json.dumps(session.dump())
    goes_on(run, session)


def test_the_text_of_a_tool_error_is_reviewed_as_well(run: Runner) -> None:
    session = asked()
    with pytest.raises(HookError):
        run(
            session,
            script(calls(look("unknown"))),
            hooks=Desk.hooks().with_hooks(Reviewer("no such word")),
        )
    assert results(session) == [("error", WITHHELD)]


def test_what_the_executor_says_of_an_unknown_outcome_is_never_withheld(run: Runner) -> None:
    """The model must be told that the tool may have taken effect."""
    session, journal = asked(), Journal()

    def breaks() -> None:
        raise ValueError

    journal.during["write"] = breaks
    with pytest.raises(HookError):
        run(
            session,
            script(calls(call("write", text="x"))),
            journal,
            hooks=Desk.hooks().with_hooks(Reviewer("unknown")),
        )
    ((status, text),) = results(session)
    assert status == "error"
    assert "The outcome is unknown" in text


def test_a_review_may_leave_a_result_as_it_is(run: Runner) -> None:
    class Leaves:
        @hook_impl
        def any_result_hook(self, result: ToolResult) -> None: ...

    session = asked()
    run(session, script(calls(look("cat")), ANSWER), hooks=Desk.hooks().with_hooks(Leaves()))
    assert results(session) == [("ok", "cat means tac")]


def test_an_interrupt_in_the_commit_itself_leaves_nothing_open(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    session = asked()
    with monkeypatch.context() as patch:
        patch.setattr(Transcript, "append_turn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(session, script(calls(look("cat"))))
    goes_on(run, session)


# --- callbacks that fail -----------------------------------------------------------------


class Stop(BaseException):
    """Not an `Exception`, as an interrupt."""


@pytest.mark.sweep
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, Stop])
@pytest.mark.parametrize(
    ("kind", "ran", "committed"),
    [
        (RequestStarted, False, 0),
        (RoundDecoded, False, 0),
        (RoundPlanned, False, 0),
        (RoundExecuted, True, 2),
        (RoundCommitted, True, 2),
        (LoopEnded, True, 2),
    ],
)
@pytest.mark.parametrize("hooks", [None, Desk.hooks().with_hooks(Reviewer())])
def test_a_progress_callback_that_raises_loses_nothing_that_ran(
    kind: Any, ran: bool, committed: int, hooks: Any, error: type[BaseException], run: Runner
) -> None:
    def fails(event: LoopEvent) -> None:
        if isinstance(event, kind):
            raise error("no terminal")

    session, journal = asked(), Journal()
    with pytest.raises(error, match="no terminal"):
        run(session, script(ROUND, ANSWER), journal, hooks=hooks, on_progress=fails)
    assert bool(journal.ran) is ran
    marks = "[seen] " if hooks is not None else ""
    assert (
        results(session)
        == [("ok", f"{marks}cat means tac"), ("ok", f"{marks}dog means god")][:committed]
    )
    if kind is not LoopEnded:
        goes_on(run, session)


def events_of(reply: Reply, api: str) -> int:
    session, seen = asked(), []
    Runner("sync")(session, script(reply, api=api), max_rounds=1, on_event=seen.append)
    return len(seen)


@pytest.mark.sweep
@pytest.mark.parametrize("reply", [ROUND, ANSWER])
def test_an_event_callback_that_raises_at_any_event_leaves_no_round_open(
    reply: Reply, run: Runner, api: str
) -> None:
    for at in range(events_of(reply, api)):
        session, journal, seen = asked(), Journal(), []

        def fails(event: Any, at: int = at, seen: list[Any] = seen) -> None:
            seen.append(event)
            if len(seen) > at:
                raise RuntimeError("no terminal")

        with pytest.raises(RuntimeError, match="no terminal"):
            run(session, script(reply, api=api), journal, on_event=fails)
        assert journal.ran == []
        # An answer is in the session once it is complete, which the last event says.
        answered = reply is ANSWER and isinstance(seen[-1], Completed)
        assert len(session.turns()) == answered
        if not answered:
            goes_on(run, session, rounds=1)


# --- a session that is changed meanwhile -------------------------------------------------


def test_what_ran_is_committed_after_what_was_pushed_meanwhile_K4(run: Runner, api: str) -> None:
    session, journal = asked(), Journal()
    journal.during["look_up"] = lambda: session.push_user("And hurry.")
    done = run(session, script(calls(look("cat")), ANSWER, api=api), journal)
    assert (done.rounds, done.stopped_by) == (1, "answer")
    assert [type(item).__name__ for item in session.transcript] == [
        "Message", "Message", "AssistantTurn", "ToolResults", "AssistantTurn",
    ]  # fmt: skip
    check_valid(session)


def test_results_without_a_place_are_in_the_error(run: Runner) -> None:
    session, journal = asked(), Journal()

    def replaced() -> None:
        session.transcript = asked("Something else.").transcript

    journal.during["look_up"] = replaced
    with pytest.raises(UncommittedRoundError, match="ran look_up could not be committed") as caught:
        run(session, script(calls(look("cat", "c1"))), journal)
    assert isinstance(caught.value.__cause__, StaleRoundError)
    assert [result.content for result in caught.value.results] == ["cat means tac"]
    assert caught.value.turn.calls[0].id == "c1"
    goes_on(run, session)


def test_an_id_that_was_used_meanwhile_is_replaced_and_no_result_is_lost(
    run: Runner,
) -> None:  # K4 C6
    session, journal = asked(), Journal()
    other = script(calls(look("dog", "c1")), ANSWER)
    journal.during["look_up"] = lambda: journal.during.clear() or another()

    def another() -> None:
        outcome: Any = session.text_turn(other, tools=Desk).collect_sync()
        outcome.round.commit(session, [one.complete("x") for one in outcome.round.calls])

    run(session, script(calls(look("cat", "c1")), ANSWER), journal)
    assert results(session) == [("ok", "x"), ("ok", "cat means tac")]
    session.push_user("And now?")
    goes_on(run, session)


def test_an_interrupt_matters_more_than_a_round_without_a_place(
    run: Runner, caplog: pytest.LogCaptureFixture
) -> None:
    session, journal = asked(), Journal()

    def fails(event: LoopEvent) -> None:
        if isinstance(event, RoundExecuted):
            session.transcript = asked("Something else.").transcript
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(session, script(calls(look("cat"))), journal, on_progress=fails)
    assert "could not be committed" in caplog.text
    goes_on(run, session)


def test_the_error_of_an_uncommitted_round_can_be_pickled() -> None:
    import copy

    session = asked()
    outcome: Any = session.text_turn(script(calls(look("cat"))), tools=Desk).collect_sync()
    error = UncommittedRoundError(outcome.round.turn, [outcome.round.calls[0].complete("x")], "why")
    twin = copy.copy(error)
    assert (str(twin), twin.results, twin.turn) == (str(error), error.results, error.turn)
    outcome.round.discard()
