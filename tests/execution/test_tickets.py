"""Calls that run in a worker: a ticket goes there as JSON, and an outcome comes back."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from execution_toolkit import App, Look, asked, call, calls, dispatcher, outcomes, start
from hypothesis import given
from hypothesis import strategies as st

from lutumpy import CallTicket, ToolError, ToolResult, Toolset, tool
from lutumpy.execution import (
    ExecutionResult,
    IdempotencyKey,
    ToolExecutor,
    call_of_ticket,
    run_ticket,
)
from lutumpy.tools import call_arguments, idempotency_key, make_ticket


def ticket_of(one: Any, scope: str = "s") -> CallTicket:
    equal_to = call_arguments(one)
    key = idempotency_key(one, scope, equal_to, 0)
    made = make_ticket(one, scope=scope, key=key, equal_to=equal_to)
    return CallTicket.load(json.loads(json.dumps(made.dump())))


async def test_p18_a_ticket_is_run_and_its_outcome_comes_back() -> None:
    keys: list[str] = []

    async def save(input: Any, key: IdempotencyKey) -> int:
        keys.append(str(key))
        return int(input.n) + 1

    ticket = ticket_of(call("save", 4))
    outcome = json.loads(json.dumps(await run_ticket(ticket, App, dispatcher(save=save))))
    assert keys == [ticket.key]
    result = ExecutionResult.load(outcome, call("save", 4))
    assert (result.outcome, result.content, result.output, result.attempts) == ("ok", "5", 5, 1)
    # With the ticket alone, the tool isn't known.
    assert ExecutionResult.load(outcome, ticket).output is None
    assert isinstance(ToolResult.load(outcome, ticket), ExecutionResult)


async def test_p9_the_call_of_a_ticket_is_the_call_that_was_decided_on() -> None:
    _, round = start(asked("send", {"n": 1}, "a"), asked("send", {"n": 1}, "b"))
    for one in round.calls:
        ticket = ticket_of(one)
        loaded = call_of_ticket(ticket, App)
        assert (loaded.metadata, loaded.input) == (one.metadata, one.input)
        assert ticket_of(loaded) == ticket  # place and occurrence included
        assert ticket_of(loaded, "another scope").key == ticket.key
    round.discard()


async def test_p18_another_tool_of_the_name_is_failed_and_not_run() -> None:
    ran: list[int] = []

    class Later(Toolset):
        look = tool(Look, provider={"anthropic": {"cache_control": {"type": "ephemeral"}}})

    async def look(input: Any) -> int:
        ran.append(1)
        return 1

    good = ticket_of(call("look"))
    dump = good.dump()
    for changes in (
        {"tool_digest": "sha256:other"},
        {"tool": "gone"},
        {"input": {"n": "many"}},
        {"input": [1]},
        {"input": None},
        {"at": "no hex"},
    ):
        ticket = CallTicket.load({**dump, **changes})
        outcome = await run_ticket(ticket, App, dispatcher(look=look))
        assert (outcome["outcome"], outcome["status"]) == ("failed", "error")
        assert "not run" in str(outcome["content"])
    assert ran == []
    # What one API is told of a member isn't what the tool was decided by.
    assert call_of_ticket(good, Later).selector is Later.look


async def test_p18_exceptions_travel_as_names_and_texts_for_the_model_as_they_are() -> None:
    async def broken(input: Any) -> int:
        raise ConnectionError("secret")

    async def told(input: Any) -> int:
        raise ToolError("no such city")

    executor = ToolExecutor()
    dispatch = dispatcher(send=broken, look=told)
    first, second = [ticket_of(one) for one in calls("send", "look")]
    outcome = await run_ticket(first, App, dispatch, executor=executor)
    assert "secret" not in json.dumps(outcome)
    assert (outcome["outcome"], outcome["error"]) == ("maybe_executed", "ConnectionError")
    assert ExecutionResult.load(outcome, first).error is None
    outcome = await run_ticket(second, App, dispatch, executor=executor)
    assert (outcome["outcome"], outcome["content"]) == ("failed", "no such city")
    assert outcomes([ExecutionResult.load(outcome, second)]) == ["failed"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outcome": "perhaps"}, "its outcome is 'perhaps'"),
        ({"attempts": -1}, "attempts"),
        ({"attempts": True}, "attempts"),
        ({"latency": math.nan}, "latency"),
        ({"latency": -1}, "latency"),
        ({"latency": "1"}, "latency"),
        ({"status": "fine"}, "status"),
        ({"status": []}, "status"),
        ({"content": 3}, "content"),
        ({"content": []}, "content"),
        ({"content": [{"part": "no"}]}, "unknown part"),
        ({"rejection_reason": 3}, "rejection_reason"),
    ],
)
def test_p18_a_hostile_outcome_is_refused_and_named(changes: Any, message: str) -> None:
    one = call("look")
    good = ExecutionResult(one.metadata, "1").dump()
    with pytest.raises(ValueError, match=message) as caught:
        ToolResult.load({**good, **changes}, one)
    assert "call 'call_1'" in str(caught.value)
    assert "nothing was loaded" in str(caught.value)


def test_a_dump_without_an_outcome_is_no_result_of_the_executor() -> None:
    one = call("look")
    dump = one.complete(1).dump()
    assert type(ToolResult.load(dump, one)) is ToolResult
    with pytest.raises(ValueError, match="has no outcome"):
        ExecutionResult.load(dump, one)
    for missing in ("status", "content"):
        with pytest.raises(ValueError, match=f"'{missing}'.* is missing"):
            ToolResult.load({k: v for k, v in dump.items() if k != missing}, one)
    with pytest.raises(ValueError, match="nothing was loaded"):
        ToolResult.load([], one)  # type: ignore[arg-type]


def test_a_result_without_a_clock_can_be_dumped() -> None:
    one = call("look")
    dump = ExecutionResult(one.metadata, "1", latency=math.nan).dump()
    assert json.loads(json.dumps(dump, allow_nan=False))["latency"] == 0.0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON, st.sampled_from(["input", "at", "tool", "occurrence", "timeout", "is_text", "effect"]))
def test_p18_no_ticket_raises_anything_but_a_clear_error(value: Any, name: str) -> None:
    dump = ticket_of(call("look")).dump()
    try:
        ticket = CallTicket.load({**dump, name: value})
    except ValueError:
        return
    try:
        call_of_ticket(ticket, App)
    except (LookupError, ValueError):
        return
