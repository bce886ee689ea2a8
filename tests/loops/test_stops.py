"""Why a loop stops, what it returns then, and that the session can always go on.

With every form of the loop, on every API.
"""

from __future__ import annotations

from typing import Any

import pytest
from loop_toolkit import (
    ANSWER,
    Journal,
    Runner,
    asked,
    call,
    calls,
    check_valid,
    look,
    results,
    script,
)

from lutumpy import AdapterError, Reject, RunNormally, Usage
from lutumpy.execution import ToolExecutor
from lutumpy.loops import LoopResult, RoundCommitted
from lutumpy.testing import Call, Failure, Reply, ScriptedModel


def test_an_answer_ends_the_loop(run: Runner, api: str) -> None:
    session, journal = asked(), Journal()
    llm = script(calls(look("cat"), call("count", text="four"), usage=(20, 4)), ANSWER, api=api)
    done = run(session, llm, journal)
    assert (done.text, done.rounds, done.stopped_by) == ("It is a word.", 1, "answer")
    assert done.result is not None
    assert done.result.turn is session.turns()[-1]
    assert done.usage.total_tokens == 20 + 4 + 10 + 5
    assert sorted(journal.ran) == ["count four", "look_up cat"]
    assert results(session) == [("ok", "cat means tac"), ("ok", "4")]
    check_valid(session)


def test_an_answer_without_calls_is_no_round(run: Runner) -> None:
    done = run(asked(), script(ANSWER))
    assert (done.rounds, done.stopped_by, done.usage.output_tokens) == (0, "answer", 5)


def test_the_usage_is_that_of_this_loop_alone(run: Runner) -> None:
    session = asked()
    session.add_usage(Usage(100, 100, 200))
    done = run(session, script(calls(look("cat"), usage=(20, 4)), ANSWER))
    assert done.usage.total_tokens == 39
    assert session.usage.total_tokens == 239


def test_issues_alone_are_a_round_and_are_answered(run: Runner, api: str) -> None:
    session = asked()
    llm = script(
        calls(Call("look_upp", {"word": "cat"}), call("count", text=["no", "text"])),
        ANSWER,
        api=api,
    )
    done = run(session, llm)
    assert (done.rounds, done.stopped_by) == (1, "answer")
    (unknown, text), (invalid, _) = results(session)
    assert (unknown, invalid) == ("rejected", "rejected")
    assert "Did you mean look_up?" in text


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("reply", "stopped_by"),
    [
        (Reply(text="Yes."), "answer"),
        (Reply(text="Yes.", finish="stop"), "answer"),
        (Reply(refusal="I won't."), "refusal"),
        (Reply(text="I", finish="content_filter"), "refusal"),
        (Reply(text="And then", finish="length"), "length"),
    ],
)
def test_the_finish_reason_of_an_answer_says_why_it_stopped(
    reply: Reply, stopped_by: str, run: Runner, api: str
) -> None:
    if api == "ollama_chat" and stopped_by == "refusal":
        stopped_by = "answer"  # this API has no word for a refusal, nor for a filter's end
    session = asked()
    done = run(session, script(calls(look("cat")), reply, api=api))
    assert (done.stopped_by, done.rounds, done.text) == (stopped_by, 1, session.turns()[-1].text)
    assert done.result is not None
    assert done.result.turn is session.turns()[-1]
    check_valid(session)


def test_an_unknown_finish_reason_is_an_answer(run: Runner) -> None:
    message = {"role": "assistant", "content": "Yes."}
    body = {
        "id": "x",
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "bored", "message": message}],
    }
    done = run(asked(), script(body))
    assert (done.stopped_by, done.text) == ("answer", "Yes.")
    assert done.result is not None
    assert done.result.finish_reason == "unknown"


@pytest.mark.parametrize(
    ("content", "reason", "stopped_by"),
    [
        ("", "bored", "unknown"),
        (" \n", "bored", "unknown"),
        (None, None, "unknown"),
        # The generation broke off.
        ("So f", "error", "unknown"),
        ("Yes.", None, "answer"),
        ("", "stop", "answer"),
    ],
)
def test_an_unknown_end_is_an_answer_only_with_a_text_that_is_whole(
    run: Runner, content: str | None, reason: str | None, stopped_by: str
) -> None:
    message = {"role": "assistant", "content": content}
    body = {
        "id": "x",
        "model": "m",
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
    }
    done = run(asked(), script(body))
    assert done.stopped_by == stopped_by
    assert done.result is not None
    assert done.result.turn.provider_finish_reason == reason


def test_a_compaction_pauses_the_loop_and_another_one_goes_on_with_it_C10(run: Runner) -> None:
    session = asked()
    compaction = {"type": "compaction", "content": "A question about a word."}
    pause = {
        "id": "msg_1",
        "model": "m",
        "role": "assistant",
        "content": [compaction],
        "stop_reason": "compaction",
    }
    llm = script(pause, calls(look("cat")), ANSWER, api="anthropic_messages")
    paused = run(session, llm)
    assert (paused.stopped_by, paused.rounds, paused.text) == ("paused", 0, "")
    done = run(session, llm)
    assert (done.stopped_by, done.rounds) == ("answer", 1)
    check_valid(session)


def test_a_background_reply_ends_the_loop_with_an_error_and_nothing_is_written(run: Runner) -> None:
    session = asked()
    queued = {
        "id": "resp_9",
        "model": "m",
        "status": "queued",
        "background": True,
        "output": [],
        "usage": None,
    }
    with pytest.raises(AdapterError, match="resp_9 is queued"):
        run(session, script(queued, api="openai_responses"))
    assert session.turns() == []
    assert [request.response_id for request in session.unsettled] == ["resp_9"]


def test_the_budget_includes_what_failed_and_abandoned_requests_cost_U1(run: Runner) -> None:
    """A hook, a tool or a callback may make requests of its own on the same session."""
    session, journal = asked(), Journal()
    start = {"input_tokens": 500, "output_tokens": 1}
    events = [
        {
            "type": "message_start",
            "message": {"id": "msg_1", "model": "m", "content": [], "usage": start},
        }
    ]
    dying = ScriptedModel([[*events, Failure(500, "gone")]], api="anthropic_messages")

    def summarize(event: Any) -> None:
        if isinstance(event, RoundCommitted):
            with pytest.raises(AdapterError), session.text_turn(dying).stream_sync() as stream:
                list(stream)

    llm = script(calls(look("a"), usage=(20, 9)), ANSWER)
    done = run(session, llm, journal, token_budget=100, on_progress=summarize)
    assert (done.stopped_by, done.rounds, done.usage.total_tokens) == ("budget", 1, 530)
    assert len(session.unsettled) == 1


def test_a_request_that_fails_in_a_loop_is_counted_U1(run: Runner) -> None:
    session = asked()
    llm = script(calls(look("a"), usage=(20, 9)), Failure(500, "gone"))
    with pytest.raises(AdapterError):
        run(session, llm)
    assert (session.usage.total_tokens, len(session.unsettled)) == (29, 1)


def test_an_event_callback_that_raises_leaves_the_stream_and_it_is_counted_U1(run: Runner) -> None:
    session = asked()

    def stop(event: Any) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        run(
            session,
            script(Reply(text="Hello there", usage=(20, 9)), api="anthropic_messages"),
            on_event=stop,
        )
    assert session.usage.input_tokens == 20
    assert len(session.unsettled) == 1


def test_a_paused_turn_stops_the_loop_and_another_one_goes_on_with_it_C10(run: Runner) -> None:
    session = asked()
    llm = script(
        Reply(text="Searching.", finish="paused"),
        calls(look("cat")),
        ANSWER,
        api="anthropic_messages",
    )
    paused = run(session, llm)
    assert (paused.stopped_by, paused.rounds, paused.text) == ("paused", 0, "Searching.")
    done = run(session, llm)
    assert (done.stopped_by, done.rounds) == ("answer", 1)
    check_valid(session)


def test_the_round_limit_stops_after_so_many_committed_rounds(run: Runner, api: str) -> None:
    session = asked()
    llm = script(
        calls(look("a"), text="one"),
        calls(look("b"), text="two"),
        calls(look("c")),
        ANSWER,
        api=api,
    )
    done = run(session, llm, max_rounds=2)
    assert (done.rounds, done.stopped_by, done.text, done.result) == (2, "round_limit", "two", None)
    assert len(llm.requests) == 2
    assert len(results(session)) == 2
    check_valid(session)
    more = run(session, llm)
    assert (more.rounds, more.stopped_by) == (1, "answer")


def test_the_limit_is_15_rounds_when_nothing_is_said(run: Runner) -> None:
    llm = script(*[calls(look(f"w{k}")) for k in range(20)])
    assert run(asked(), llm).rounds == 15
    assert len(llm.requests) == 15


def test_the_budget_is_checked_before_each_further_request(run: Runner, api: str) -> None:
    session, journal = asked(), Journal()
    llm = script(calls(look("a"), usage=(40, 9)), calls(look("b"), usage=(40, 11)), ANSWER, api=api)
    done = run(session, llm, journal, token_budget=100)
    assert (done.rounds, done.stopped_by, done.usage.total_tokens) == (2, "budget", 100)
    assert journal.ran == ["look_up a", "look_up b"], "the open round is executed, and committed"
    assert len(llm.requests) == 2
    check_valid(session)


def test_an_answer_above_the_budget_is_an_answer(run: Runner) -> None:
    done = run(asked(), script(ANSWER), token_budget=1)
    assert done.stopped_by == "answer"


# --- the repeat breaker ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spellings", "why"),
    [
        (
            ['{"word": "unknown"}', '{ "word" :"unknown" }', '{"word":"\\u0075nknown"}'],
            "the tool fails",
        ),
        (['{"word": 1}', '{"word": 1.0}', '{"word":1}'], "the arguments are invalid"),
        (['{"word', '{"word', '{"word'], "the arguments are broken"),
    ],
)
def test_the_same_failing_call_three_times_stops_the_loop(
    spellings: list[str], why: str, run: Runner
) -> None:
    session = asked()
    llm = script(
        *[calls(Call("look_up", text), text=f"try {k}") for k, text in enumerate(spellings)], ANSWER
    )
    done = run(session, llm)
    assert (done.rounds, done.stopped_by, done.text) == (3, "repeat", "try 2"), why
    assert len(results(session)) == 3, "it stops after the commit"
    check_valid(session)


def test_an_unknown_tool_counts_as_well(run: Runner, api: str) -> None:
    done = run(asked(), script(*[calls(Call("nope"))] * 5, api=api))
    assert (done.rounds, done.stopped_by) == (3, "repeat")


def test_a_call_that_a_hook_rejects_again_and_again_counts(run: Runner) -> None:
    done = run(asked(), script(*[calls(look("x"))] * 5), hooks=lambda call: Reject("no"))
    assert (done.rounds, done.stopped_by) == (3, "repeat")


def test_other_arguments_are_another_call(run: Runner) -> None:
    wrong: list[Any] = [1, 2, True, [1], {"a": 1}, None]
    done = run(asked(), script(*[calls(call("count", text=value)) for value in wrong], ANSWER))
    assert (done.rounds, done.stopped_by) == (6, "answer")


def test_a_call_that_works_may_be_repeated(run: Runner) -> None:
    done = run(asked(), script(*[calls(look("x"))] * 5, ANSWER))
    assert (done.rounds, done.stopped_by) == (5, "answer")


def test_repeats_within_one_round_count_once(run: Runner) -> None:
    bad = call("count", text=1)
    done = run(asked(), script(calls(bad, bad, bad), calls(bad, bad), ANSWER))
    assert (done.rounds, done.stopped_by) == (2, "answer")


def test_a_duplicate_that_the_executor_skipped_is_no_failure_E5(run: Runner) -> None:
    session = asked()
    executor = ToolExecutor(deduplicate=True)
    done = run(session, script(*[calls(look("x"), look("x"))] * 4, ANSWER), executor=executor)
    assert (done.rounds, done.stopped_by) == (4, "answer")
    assert results(session)[1] == ("rejected", "Tool call rejected: Duplicate tool call skipped.")


def test_failures_of_an_earlier_loop_do_not_count(run: Runner) -> None:
    session = asked()
    first = run(session, script(*[calls(look("unknown"))] * 2, ANSWER))
    session.push_user("Again.")
    second = run(session, script(*[calls(look("unknown"))] * 2, ANSWER))
    assert (first.stopped_by, second.stopped_by) == ("answer", "answer")


def test_the_number_of_repeats_can_be_set_or_left_open(run: Runner) -> None:
    replies = [calls(look("unknown"))] * 6
    assert run(asked(), script(*replies), max_repeats=1).rounds == 1
    assert run(asked(), script(*replies, ANSWER), max_repeats=None).stopped_by == "answer"


def test_a_repeat_is_told_before_the_budget_and_that_before_the_round_limit(run: Runner) -> None:
    def stopped_by(**limits: Any) -> str:
        return run(asked(), script(calls(look("unknown"))), **limits).stopped_by

    assert stopped_by(max_repeats=1, token_budget=1, max_rounds=1) == "repeat"
    assert stopped_by(token_budget=1, max_rounds=1) == "budget"
    assert stopped_by(max_rounds=1) == "round_limit"


def test_a_result_is_a_value(run: Runner) -> None:
    first, second = (run(asked(), script(ANSWER)) for _ in range(2))
    assert first == second
    assert isinstance(first, LoopResult)
    with pytest.raises(AttributeError):
        first.text = "other"  # type: ignore[misc]


def test_a_call_that_was_cut_is_answered_and_the_loop_goes_on_C7(run: Runner, api: str) -> None:
    session = asked()
    llm = script(
        Reply(calls=[look("cat"), Call("look_up", '{"wo')], finish="length"), ANSWER, api=api
    )
    done = run(session, llm, hooks=lambda call: RunNormally(call.input))
    assert (done.rounds, done.stopped_by) == (1, "answer")
    assert [status for status, _ in results(session)] == ["ok", "rejected"]
