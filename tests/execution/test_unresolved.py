"""A tool with the effect `once` that may have run is not run again before somebody has decided."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from execution_toolkit import App, asked, call, calls, dispatcher, outcomes, start, text

from lutumpy import ToolError, ToolMetadata
from lutumpy.execution import ToolExecutor


class Unsure:
    """Fails once, works afterwards."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error or ConnectionError("secret")
        self.ran: list[int] = []

    async def __call__(self, input: Any) -> int:
        self.ran.append(input.n)
        if len(self.ran) == 1:
            raise self.error
        return int(input.n)


async def test_an_equal_call_is_refused_until_it_is_decided() -> None:
    unsure = Unsure()
    dispatch = dispatcher(send=unsure)
    executor = ToolExecutor()
    (first,) = await executor.run([call("send", 1, id="a")], dispatch)
    assert (first.outcome, first.status) == ("maybe_executed", "error")
    for arguments in ('{"n": 1}', '{"n":1.0}'):
        again: Any = App.parse(ToolMetadata("b", "send", arguments))
        (refused,) = await executor.run([again], dispatch)
        assert (refused.outcome, refused.status, refused.attempts) == ("rejected", "rejected", 0)
        assert text(refused).startswith(
            "Tool call rejected: An equal call (a) may have taken effect already"
        )
    assert unsure.ran == [1]
    # Other arguments, other tools, other scopes are not concerned.
    others = [call("send", 2, id="c"), call("save", 1, id="d")]
    assert outcomes(await executor.run(others, dispatch)) == ["ok", "ok"]
    assert outcomes(await executor.run([call("send", 1, id="e")], dispatch, scope="other")) == [
        "ok"
    ]

    assert [(u.scope, u.metadata.id) for u in executor.unresolved] == [("", "a")]
    assert [u.metadata.id for u in executor.resolve(call("send", 1, id="z"))] == ["a"]
    assert executor.unresolved == ()
    assert outcomes(await executor.run([call("send", 1, id="f")], dispatch)) == ["ok"]
    with pytest.raises(LookupError, match="no call of 'send' with these arguments is unresolved"):
        executor.resolve(call("send", 1))


async def test_a_refused_call_can_be_committed() -> None:
    executor = ToolExecutor()
    session, round = start(asked("send", {"n": 1}, "a"), asked("send", {"n": 1}, "b"))
    results = await executor.run(round.calls[:1], dispatcher(send=Unsure()))
    results += await executor.run(round.calls[1:], dispatcher())
    round.commit(session, results)
    results: Any = session.transcript[-1]
    assert [result.status for result in results.results] == ["error", "rejected"]


async def test_it_holds_within_one_run_as_well() -> None:
    unsure = Unsure()
    asked = [call("send", 1, id="a"), call("send", 1, id="b")]
    results = await ToolExecutor(max_concurrency=1).run(asked, dispatcher(send=unsure))
    assert outcomes(results) == ["maybe_executed", "rejected"]
    assert unsure.ran == [1]


@pytest.mark.parametrize("name", ["look", "save"])
async def test_tools_that_may_be_repeated_are_never_unresolved(name: str) -> None:
    executor = ToolExecutor()
    dispatch = dispatcher(**{name: Unsure()})
    assert outcomes(await executor.run([call(name)], dispatch)) == ["failed"]
    assert outcomes(await executor.run([call(name)], dispatch)) == ["ok"]


async def test_a_tool_error_says_that_nothing_is_open() -> None:
    executor = ToolExecutor()
    dispatch = dispatcher(send=Unsure(ToolError("no such city")))
    assert outcomes(await executor.run([call("send")], dispatch)) == ["failed"]
    assert outcomes(await executor.run([call("send")], dispatch)) == ["ok"]


async def test_a_cancelled_call_is_unresolved_too() -> None:
    async def send(input: Any) -> int:
        await anyio.sleep_forever()
        return 0

    executor = ToolExecutor(scope="conversation 1")
    asked = calls("send_slowly", "send")
    with anyio.move_on_after(1.0):
        await executor.run(asked, dispatcher(send_slowly=send, send=send))
    assert [(u.scope, u.metadata.id) for u in executor.unresolved] == [
        ("conversation 1", "call_0"),
        ("conversation 1", "call_1"),
    ]
    results = await executor.run([call("send_slowly", 0, id="x")], dispatcher())
    assert outcomes(results) == ["rejected"]


async def test_there_are_several_ways_to_name_what_is_decided() -> None:
    executor = ToolExecutor(scope="a")

    async def leave_open(scope: str | None = None) -> None:
        (result,) = await executor.run([call("send", 1)], dispatcher(send=Unsure()), scope=scope)
        assert result.outcome == "maybe_executed"

    await leave_open()
    executor.resolve(executor.unresolved[0])
    await leave_open()
    executor.resolve(ToolMetadata("any", "send", '{ "n": 1.0 }'))
    await leave_open("b")
    with pytest.raises(LookupError):
        executor.resolve(call("send", 1))
    executor.resolve(call("send", 1), scope="b")
    await leave_open()
    await leave_open("b")
    assert [u.scope for u in executor.resolve_scope("b")] == ["b"]
    assert executor.resolve_scope("b") == ()
    assert [u.scope for u in executor.unresolved] == ["a"]
    assert repr(executor) == "<ToolExecutor, 1 unresolved calls>"


async def test_an_edited_call_is_another_one_than_the_model_wrote() -> None:
    executor = ToolExecutor()
    plain = call("send", 1)
    edited = plain.with_input(type(plain.input)(n=9))
    assert outcomes(await executor.run([edited], dispatcher(send=Unsure()))) == ["maybe_executed"]
    assert outcomes(await executor.run([edited], dispatcher())) == ["rejected"]
    assert outcomes(await executor.run([plain], dispatcher())) == ["ok"]
    with pytest.raises(LookupError):
        executor.resolve(plain)
    executor.resolve(plain.metadata)
    assert outcomes(await executor.run([edited], dispatcher())) == ["ok"]


async def test_what_is_maybe_executed_is_not_run_by_a_resume() -> None:
    executor = ToolExecutor()
    unsure = Unsure()
    asked = [call("send", 1)]
    first = await executor.run(asked, dispatcher(send=unsure))
    executor.resolve(asked[0])
    assert await executor.run(asked, dispatcher(send=unsure), resume=executor.report) == first
    assert unsure.ran == [1]
