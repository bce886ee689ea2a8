"""The cost of a round is in proportion to its calls, counted in function calls (rule E5)."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from counting import calls_made

from lutumpy import NeedsTools, Session, Skip, ToolRound, Toolset, Transcript, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.core import call_place as origins
from lutumpy.execution import Dispatcher, IdempotencyKey, ToolExecutor, run
from lutumpy.tools import call_arguments


@tool_fn
async def pay(n: int, *, key: Skip[IdempotencyKey]) -> str:
    """Pay."""
    return key


class App(Toolset):
    pay_tool = tool(pay)


ADAPTERS: list[Any] = [OpenAIChat, OpenAIResponses, AnthropicMessages]


def round_of(count: int, distinct: int | None = None) -> tuple[Session, ToolRound[Any]]:
    session = Session()
    session.push_user("pay")
    calls = [
        {
            "id": f"c{k}",
            "type": "function",
            "function": {"name": "pay", "arguments": f'{{"n": {k % (distinct or count)}}}'},
        }
        for k in range(count)
    ]
    reply = {
        "choices": [
            {"finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": calls}}
        ]
    }
    outcome = App.offer().read(OpenAIChat.response(reply), session)
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


def without_origin(calls: Any) -> list[Any]:
    """The calls as made by hand, or parsed: their place in a conversation isn't known."""
    bare = [copy.copy(call) for call in calls]
    for call in bare:
        call.origin = None
    return bare


@pytest.mark.parametrize("known", [True, False], ids=["origin", "no origin"])
@pytest.mark.parametrize("distinct", [None, 3], ids=["all differ", "many equal"])
def test_the_arguments_of_a_keyed_call_are_compared_a_fixed_number_of_times(
    known: bool, distinct: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any) -> Any:
            nonlocal looked
            looked += 1
            return function(*args)

        return count

    values = origins.json_values
    monkeypatch.setattr(values, "canonical_arguments", counted(values.canonical_arguments))
    monkeypatch.setattr(run, "call_arguments", counted(call_arguments))

    def work(count: int) -> int:
        nonlocal looked
        looked = 0
        _, round = round_of(count, distinct)
        calls = round.calls if known else without_origin(round.calls)
        results = ToolExecutor().run_sync(calls, Dispatcher(App))
        assert len({result.output for result in results}) == count
        round.discard()
        return looked

    assert work(200) <= 2.01 * work(100) <= 2.01 * 6 * 100


def test_what_the_executor_does_is_linear_in_calls_with_a_key() -> None:
    def work(count: int) -> int:
        _, round = round_of(count)
        executor = ToolExecutor(deduplicate=True)
        dispatch = Dispatcher(App)
        dispatch.close()
        function_calls = calls_made(lambda: executor.run_sync(round.calls, dispatch))
        function_calls += calls_made(lambda: executor.report.results(round.calls))
        function_calls += calls_made(
            lambda: executor.run_sync(round.calls, dispatch, resume=executor.report)
        )
        function_calls += calls_made(
            lambda: ToolExecutor().run_sync(without_origin(round.calls), dispatch)
        )
        round.discard()
        return function_calls

    assert work(200) <= 2.2 * work(100)


def test_keys_without_an_origin_count_equal_calls_in_call_order() -> None:
    _, round = round_of(6, distinct=2)
    bare = without_origin(round.calls)
    keys = [result.output for result in ToolExecutor().run_sync(bare, Dispatcher(App))]
    assert len(set(keys)) == 6
    # The same however many other calls stand between them.
    alone = [call for call in bare if call.input.n == 0]  # type: ignore[attr-defined]
    assert [result.output for result in ToolExecutor().run_sync(alone, Dispatcher(App))] == keys[
        ::2
    ]
    round.discard()


def test_a_round_of_many_calls_is_decided_committed_and_kept_in_linear_time() -> None:
    def work(count: int) -> int:
        session, round = round_of(count)
        hooks = App.hooks()
        total = 0

        def decide() -> None:
            plan = round.apply_hooks_sync(hooks)
            results = [call.complete("paid") for call in reversed(plan.pending)]
            plan.commit(session, results)

        total += calls_made(decide)
        for adapter in ADAPTERS:
            total += calls_made(lambda adapter=adapter: adapter.request(session.transcript))
        dump = session.dump()
        total += calls_made(lambda: Session.load(dump))
        return total

    assert work(200) <= 2.2 * work(100)


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses", "anthropic_messages"])
@pytest.mark.parametrize("given", ["in order", "reversed"])
def test_a_history_of_many_calls_is_read_in_linear_time(api: Any, given: str) -> None:
    adapter = {a.api: a for a in ADAPTERS}[api]

    def lines_run(count: int) -> int:
        session, round = round_of(count)
        round.commit(session, [call.complete("paid") for call in round.calls])
        history = json.loads(json.dumps(adapter.messages(session.transcript)))
        if api == "openai_chat":
            # OpenAI itself takes 128 calls in a message, so they were sent in several messages;
            # histories of other hosts have one.
            turns = [entry for entry in history if entry["role"] == "assistant"]
            turns[0]["tool_calls"] = [call for turn in turns for call in turn["tool_calls"]]
            history = [
                entry for entry in history if entry["role"] != "assistant" or entry is turns[0]
            ]
        answers = [
            e for e in history if e.get("role") == "tool" or e.get("type") == "function_call_output"
        ]
        if given == "reversed" and answers:
            history[-len(answers) :] = answers[::-1]
        lines = 0

        def trace(frame: Any, event: str, argument: Any) -> Any:
            nonlocal lines
            lines += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            transcript = Transcript.from_messages(api, history)
        finally:
            sys.settrace(before)
        assert len(transcript.turns()[0].calls) == count
        return lines

    lines_run(10)  # what is made once is made now
    assert lines_run(200) <= 2.2 * lines_run(100)
