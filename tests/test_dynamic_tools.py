"""What runs tools that are known at run time."""

from typing import Any

import pytest
from dynamic_toolkit import AppTools, ReadFile, weather_tool

from lutumpy import (
    DeclarationError,
    NeedsTools,
    Session,
    ToolMetadata,
    ToolRound,
    Toolset,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import Dispatcher, IdempotencyKey, ToolExecutor
from lutumpy.loops import run_tools, run_tools_sync
from lutumpy.testing import Call, Reply, ScriptedModel, render


async def forecast(
    arguments: dict[str, Any], *, units: str, key: IdempotencyKey, about: ToolMetadata
) -> dict[str, Any]:
    return {"city": arguments["city"], "units": units, "key": bool(key), "id": about.id}


def plain(arguments: dict[str, Any]) -> str:
    return f"sunny in {arguments['city']}"


def start(tools: Any, *calls: Call) -> tuple[Session, ToolRound[Any]]:
    session = Session()
    session.push_user("Go.")
    reply = render(Reply(calls=calls), "openai_chat", number=1, model="m")
    outcome = tools.offer().read(OpenAIChat.response(reply), session)
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


async def contents(tools: Any, dispatch: Any, *calls: Call) -> list[Any]:
    session, round = start(tools, *calls)
    results = await ToolExecutor().run(round.calls, dispatch)
    round.commit(session, results)
    return [(result.status, result.content) for result in results]


def complete(dispatch: Dispatcher[Any]) -> Dispatcher[Any]:
    @dispatch.on(AppTools.data.read_file)
    def read(input: ReadFile) -> str:
        return "text of " + input.path

    return dispatch


def weather(name: str = "get-weather") -> Call:
    return Call(name, {"city": "Oslo"}, id=f"c_{name}")


async def test_a_dispatcher_serves_what_is_made_of_its_toolset() -> None:
    tools = AppTools.with_dynamic_tools(
        {AppTools.more: [weather_tool(run=forecast), weather_tool("plain", run=plain)]}
    )
    dispatch = complete(Dispatcher(AppTools, context={"units": "C"}))
    calls = [
        weather(),
        weather("plain"),
        Call("search", {"query": "x"}),
        Call("read_file", {"path": "a"}),
    ]
    assert await contents(tools, dispatch, *calls) == [
        ("ok", '{"city":"Oslo","units":"C","key":true,"id":"c_get-weather"}'),
        ("ok", "sunny in Oslo"),
        ("ok", "x"),
        ("ok", "text of a"),
    ]
    # And so does one of the new class itself.
    own = Dispatcher(tools, context={"units": "F"})
    own.on(AppTools.data.read_file)(lambda input: "other")  # type: ignore[arg-type]
    own.on(tools.more["plain"])(lambda input: f"by hand, {input.values['city']}")
    assert await contents(tools, own, weather("plain")) == [("ok", "by hand, Oslo")]


async def test_otherwise_runs_every_tool_without_code_of_its_own_Y8c() -> None:
    tools = AppTools.with_dynamic_tools(
        {AppTools.more: [weather_tool(run=plain), weather_tool("bare")]}
    )
    dispatch = Dispatcher(AppTools, context={"units": "C"})

    @dispatch.otherwise
    async def run(call: Any, units: str) -> str:
        return f"{call.metadata.name} {sorted(call.arguments)} {units}"

    calls = [
        weather(),
        weather("bare"),
        Call("read_file", {"path": "a"}),
        Call("search", {"query": "x"}),
    ]
    assert await contents(tools, dispatch, *calls) == [
        ("ok", "sunny in Oslo"),
        ("ok", "bare ['city'] C"),
        ("ok", "read_file ['path'] C"),
        ("ok", "x"),
    ]
    assert await contents(tools, dispatch.with_context({"units": "F"}), weather("bare")) == [
        ("ok", "bare ['city'] F")
    ]


def test_there_is_one_otherwise_and_it_takes_a_call() -> None:
    dispatch = Dispatcher(AppTools)
    with pytest.raises(DeclarationError):
        dispatch.otherwise(lambda: None)
    dispatch.otherwise(lambda call: None)
    with pytest.raises(DeclarationError, match="already"):
        dispatch.otherwise(lambda call: None)
    dispatch.close()
    with pytest.raises(DeclarationError, match="no more handlers"):
        dispatch.otherwise(lambda call: None)


async def test_what_nothing_runs_is_said_before_anything_is_run() -> None:
    tools = AppTools.with_dynamic_tools({AppTools.more: [weather_tool("bare")]})
    dispatch = complete(Dispatcher(AppTools))
    _, round = start(tools, weather("bare"))
    with pytest.raises(DeclarationError, match=r"nothing runs 'bare'.*nothing was run"):
        await ToolExecutor().run(round.calls, dispatch)
    round.discard()
    with pytest.raises(DeclarationError, match="doesn't run all that was added"):
        dispatch.check(tools)
    other = Toolset.of("Other", [weather_tool(run=plain)])
    with pytest.raises(DeclarationError, match="runs no tools of Other"):
        dispatch.check(other)


def test_a_missing_value_of_the_context_is_said_for_added_tools_too() -> None:
    tools = AppTools.with_dynamic_tools({AppTools.more: [weather_tool(run=forecast)]})
    with pytest.raises(DeclarationError, match="needs the context value 'units'"):
        complete(Dispatcher(AppTools)).check(tools)


def script() -> ScriptedModel:
    return ScriptedModel([Reply(calls=[weather()]), Reply(text="Sunny.")])


async def test_the_whole_loop_runs_static_and_dynamic_tools() -> None:
    tools = AppTools.with_dynamic_tools({AppTools.more: [weather_tool(run=plain)]})
    hooks = AppTools.hooks()
    dispatch = complete(Dispatcher(AppTools))
    session = Session()
    session.push_user("Weather?")
    result = await run_tools(session, script(), tools=tools, dispatch=dispatch, hooks=hooks)
    assert (result.text, result.rounds) == ("Sunny.", 1)


def test_the_whole_loop_runs_them_without_an_event_loop() -> None:
    tools = AppTools.with_dynamic_tools({AppTools.more: [weather_tool(run=plain)]})
    dispatch = complete(Dispatcher(AppTools))
    session = Session()
    session.push_user("Weather?")
    assert run_tools_sync(session, script(), tools=tools, dispatch=dispatch).text == "Sunny."
