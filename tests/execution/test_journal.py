"""The executor tells a journal of each call, before it starts and after it has ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from execution_toolkit import asked, call, calls, dispatcher, outcomes, start, text
from pydantic import SecretStr

from lutumpy import CallTicket, ToolInput, ToolMetadata, ToolResult, Toolset, tool, tool_input
from lutumpy.errors import TakenOverError
from lutumpy.execution import (
    Begun,
    Dispatcher,
    ExecutionReport,
    ExecutionResult,
    ToolExecutor,
    UnresolvedCall,
)


class Journal:
    """Keeps what it is told, in order; a test says what it answers."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.tickets: dict[str, CallTicket] = {}
        self.results: dict[str, ExecutionResult] = {}
        self.on_begin: Callable[[CallTicket], Any] = lambda ticket: Begun("test")
        self.on_end: Callable[[CallTicket], Any] = lambda ticket: None
        self.slow_begin = self.slow_end = 0.0

    async def begin(self, ticket: CallTicket) -> Begun | ToolResult:
        self.told.append(("begin", ticket.call_id))
        self.tickets[ticket.call_id] = ticket
        await anyio.sleep(self.slow_begin)
        answer: Begun | ToolResult = self.on_begin(ticket)
        return answer

    async def end(self, ticket: CallTicket, result: ExecutionResult) -> None:
        await anyio.sleep(self.slow_end)
        self.on_end(ticket)
        self.told.append(("end", ticket.call_id))
        self.results[ticket.call_id] = result


def fail(error: BaseException) -> Callable[[CallTicket], Any]:
    def raise_it(ticket: CallTicket) -> Any:
        raise error

    return raise_it


async def test_p5_a_call_begins_in_the_journal_before_its_tool_starts() -> None:
    journal = Journal()

    async def send(input: Any) -> int:
        journal.told.append(("tool", "call_1"))
        return 1

    executor = ToolExecutor(journal=journal, scope="17")
    (result,) = await executor.run([call("send", 1)], dispatcher(send=send))
    assert journal.told == [("begin", "call_1"), ("tool", "call_1"), ("end", "call_1")]
    assert journal.results["call_1"] is result
    ticket = journal.tickets["call_1"]
    assert (ticket.scope, ticket.tool, ticket.input, ticket.effect) == (
        "17",
        "send",
        {"n": 1},
        "once",
    )


async def test_p9_the_key_of_the_ticket_is_the_key_that_the_tool_is_given() -> None:
    from lutumpy.execution import IdempotencyKey

    seen: list[str] = []

    async def send(input: Any, key: IdempotencyKey) -> int:
        seen.append(str(key))
        return 1

    journal = Journal()
    _, round = start(asked("send", {"n": 1}, "a"), asked("send", {"n": 1}, "b"))
    await ToolExecutor(scope="s").run(round.calls, dispatcher(send=send), journal=journal)
    round.discard()
    # Trio starts tasks in an order of its own.
    assert sorted(seen) == sorted([journal.tickets["a"].key, journal.tickets["b"].key])
    assert seen[0] != seen[1]
    assert [journal.tickets[name].occurrence for name in "ab"] == [0, 1]
    # One that was fixed before is never computed again.
    fixed = call("send", 1)
    fixed.key, fixed.equal_to = "k" * 64, "as it was"
    await ToolExecutor(scope="other").run([fixed], dispatcher(send=send), journal=journal)
    assert seen[-1] == "k" * 64
    assert journal.tickets["call_1"].equal_to == "as it was"


async def test_p7_what_the_journal_knows_settles_a_call_without_running_it() -> None:
    ran: list[int] = []

    async def tool_code(input: Any) -> int:
        ran.append(input.n)
        return 5

    first = ExecutionResult(
        ToolMetadata("call_0", "send", '{"n": 0}'), "unknown", "error", outcome="maybe_executed"
    )
    known: dict[str, ToolResult] = {
        "call_0": first,
        "call_1": ToolResult(ToolMetadata("call_1", "save", '{"n": 1}'), "7"),
        "call_2": ToolResult(ToolMetadata("call_2", "look", "{}"), "bad", "error"),
    }
    journal = Journal()
    journal.on_begin = lambda ticket: known[ticket.call_id]
    executor = ToolExecutor(journal=journal)
    dispatch = dispatcher(send=tool_code, save=tool_code, look=tool_code)
    results = await executor.run(calls("send", "save", "look"), dispatch)
    assert ran == []
    assert outcomes(results) == ["maybe_executed", "ok", "failed"]
    assert results[0] is first
    assert results[1].output == 7  # read back by the type of the tool
    assert [kind for kind, _ in journal.told] == ["begin"] * 3
    assert [known.metadata.id for known in executor.unresolved] == ["call_0"]


@pytest.mark.parametrize("name", ["begin", "end"])
async def test_p4_what_the_journal_raises_ends_the_run(name: str) -> None:
    ran: list[int] = []

    async def handler(input: Any) -> int:
        ran.append(input.n)
        return 1

    journal = Journal()
    setattr(journal, f"on_{name}", fail(TakenOverError("taken over")))
    executor = ToolExecutor(max_concurrency=1, journal=journal)
    asked = calls("send", "send", "send")
    with pytest.raises(TakenOverError):
        await executor.run(asked, dispatcher(send=handler))
    assert ran == ([] if name == "begin" else [0])
    results = executor.report.results(asked)
    # Of the first nobody knows what became of it: the journal gave no answer.
    assert outcomes(results) == ["maybe_executed", "not_started", "not_started"]
    assert journal.results == {}


async def test_an_answer_of_another_kind_ends_the_run() -> None:
    journal = Journal()
    journal.on_begin = lambda ticket: True
    with pytest.raises(TypeError, match="gave bool, not Begun or a result; call 'call_1'"):
        await ToolExecutor(journal=journal).run([call("send")], dispatcher())


async def test_p19_a_cancelled_once_call_is_recorded_and_a_repeatable_one_left_open() -> None:
    async def forever(input: Any) -> int:
        await anyio.sleep_forever()
        return 0

    journal = Journal()
    journal.slow_end = 0.5
    asked = calls("send_slowly", "save", "look", "send")
    handlers = dict.fromkeys(("send_slowly", "save", "look", "send"), forever)
    executor = ToolExecutor(max_concurrency=3, journal=journal)
    with anyio.move_on_after(1.0):
        await executor.run(asked, dispatcher(**handlers))
    ended = [name for kind, name in journal.told if kind == "end"]
    assert ended == ["call_0"]
    assert journal.results["call_0"].outcome == "maybe_executed"
    assert ("begin", "call_3") not in journal.told
    results = executor.report.results(asked)
    assert outcomes(results) == ["maybe_executed", "interrupted", "interrupted", "not_started"]


async def test_p19_a_journal_that_fails_or_hangs_doesnt_keep_a_cancellation() -> None:
    async def forever(input: Any) -> int:
        await anyio.sleep_forever()
        return 0

    dispatch = dispatcher(send_slowly=forever)
    journal = Journal()
    journal.on_end = fail(ConnectionError("gone"))
    with anyio.move_on_after(1.0) as scope:
        await ToolExecutor(journal=journal).run([call("send_slowly")], dispatch)
    assert scope.cancelled_caught
    journal.slow_end = 1e6
    begun = anyio.current_time()
    with anyio.move_on_after(1.0):
        await ToolExecutor(journal=journal).run([call("send_slowly")], dispatch)
    assert anyio.current_time() - begun < 20


async def test_p19_a_cancellation_waits_for_the_end_of_a_call_that_is_being_recorded() -> None:
    journal = Journal()
    journal.slow_end = 5.0
    report = ExecutionReport()
    with anyio.move_on_after(1.0):
        await ToolExecutor(journal=journal).run([call("send", 3)], dispatcher(), report=report)
    assert journal.results["call_1"].outcome == "ok"
    assert outcomes(report.results([call("send", 3)])) == ["ok"]


async def test_p5_a_cancellation_while_the_journal_is_asked_leaves_the_outcome_open() -> None:
    """It may have run before, in another process: the journal had not answered yet."""
    ran: list[int] = []

    async def handler(input: Any) -> int:
        ran.append(input.n)
        return 1

    journal = Journal()
    journal.slow_begin = 100.0
    asked = calls("send", "save", "look")
    executor = ToolExecutor(journal=journal)
    with anyio.move_on_after(1.0):
        await executor.run(asked, dispatcher(send=handler, save=handler, look=handler))
    results = executor.report.results(asked)
    assert ran == []
    assert outcomes(results) == ["maybe_executed", "interrupted", "interrupted"]
    assert "before it was known whether the tool had run already" in text(results[0])
    assert journal.results == {}  # whoever goes on asks the journal


async def test_p5_a_call_that_was_begun_too_late_isnt_started() -> None:
    ran: list[int] = []

    async def handler(input: Any) -> int:
        ran.append(input.n)
        return 1

    with anyio.CancelScope() as scope:
        journal = Journal()

        def cancel(ticket: CallTicket) -> Begun:
            scope.cancel()
            return Begun("test")

        journal.on_begin = cancel
        executor = ToolExecutor(journal=journal)
        await executor.run([call("send")], dispatcher(send=handler))
    assert ran == []
    assert outcomes(executor.report.results([call("send")])) == ["not_started"]


@tool_input(name="login")
class Login(ToolInput[None]):
    """Log in."""

    password: SecretStr


class Secrets(Toolset):
    login = tool(Login)


async def test_p12_an_input_that_doesnt_survive_json_is_refused_before_anything_runs() -> None:
    secret: Any = Secrets.parse(ToolMetadata("a", "login", '{"password": "x"}'))
    dispatch = Dispatcher(Secrets)

    @dispatch.on(Secrets.login)
    async def login(input: Login) -> None:
        return None

    journal = Journal()
    with pytest.raises(ValueError, match=r"'a' of 'login' doesn't survive JSON.*password"):
        await ToolExecutor(journal=journal).run([secret], dispatch)
    assert journal.told == []
    assert outcomes(await ToolExecutor().run([secret], dispatch)) == ["ok"]


async def test_e8_calls_of_unknown_outcome_are_known_to_the_next_process() -> None:
    """E8"""

    async def broken(input: Any) -> int:
        raise ConnectionError

    first = ToolExecutor(scope="17")
    await first.run([call("send", 1, id="a")], dispatcher(send=broken))
    dumped = [entry.dump() for entry in first.unresolved]
    loaded = [UnresolvedCall.load(entry) for entry in dumped]
    assert loaded == list(first.unresolved)
    second = ToolExecutor(scope="17", unresolved=loaded)
    assert outcomes(await second.run([call("send", 1, id="b")], dispatcher())) == ["rejected"]
    second.resolve(call("send", 1))
    assert outcomes(await second.run([call("send", 1, id="c")], dispatcher())) == ["ok"]
    with pytest.raises(TypeError, match="takes UnresolvedCalls, not dict"):
        ToolExecutor(unresolved=dumped)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        3,
        {},
        {"scope": "a", "arguments": "b", "call": {"id": "a", "name": "b"}},
        {"scope": 1, "arguments": "b", "call": {"id": "a", "name": "b", "arguments": "{}"}},
        {"scope": "a", "arguments": "b", "call": None},
    ],
)
def test_e8_a_damaged_dump_of_an_unresolved_call_says_what_is_wrong(data: Any) -> None:
    with pytest.raises(ValueError, match="the dump of an unresolved call is invalid"):
        UnresolvedCall.load(data)


def test_e8_an_unresolved_call_of_a_text_tool_stays_one() -> None:
    entry = UnresolvedCall("s", ToolMetadata.of_text("a", "sql", "select 1"), "x")
    assert UnresolvedCall.load(entry.dump()) == entry
    assert UnresolvedCall.load(entry.dump()).metadata.is_text


def test_e8_an_unresolved_call_that_was_kept_as_the_model_spelled_it_is_equal_to_others() -> None:
    """E8: earlier releases kept calls so that were given up."""
    for metadata, equal_to in (
        (ToolMetadata("a", "send", '{"to": "x", "n": 1.0}'), '{"n":1,"to":"x"}'),
        (ToolMetadata.of_text("a", "sql", "select 1"), '{"input":"select 1"}'),
    ):
        kept = UnresolvedCall("s", metadata, metadata.arguments)
        assert UnresolvedCall.load(kept.dump()).equal_to == equal_to


async def test_e8_an_edited_call_of_unknown_outcome_says_what_it_began_with() -> None:
    """E8: its `arguments` are one text, JSON, also in a dump of an earlier release."""

    async def broken(input: Any) -> int:
        raise ConnectionError

    executor = ToolExecutor(scope="17")
    edited = call("send", 900, id="a").holding(call("send", 90).input)
    await executor.run([edited], dispatcher(send=broken))
    (kept,) = executor.unresolved
    assert json.loads(kept.metadata.arguments) == {"n": 900}
    assert json.loads(kept.arguments) == {"n": 90}
    assert kept.dump()["arguments"] == '{"n":900}\n{"n":90}'
    assert UnresolvedCall.load(kept.dump()) == kept
    # What is compared is both: what the model wrote, and what ran.
    again = ToolExecutor(scope="17", unresolved=[kept])
    assert outcomes(await again.run([call("send", 900, id="b")], dispatcher())) == ["ok"]
    assert outcomes(await again.run([call("send", 90, id="c")], dispatcher())) == ["ok"]
    equal = call("send", 900, id="d").holding(call("send", 90).input)
    assert outcomes(await again.run([equal], dispatcher())) == ["rejected"]
