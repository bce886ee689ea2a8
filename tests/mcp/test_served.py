"""A toolset that is served, seen by a client that knows nothing of lutumpy (rule MCP7)."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.types import AudioContent, EmbeddedResource, ImageContent, TextContent
from mcp_toolkit import SECONDS
from served import PNG, RAN, App, Move, Moves, Secrets, Weather

from lutumpy import (
    Complete,
    DeclarationError,
    DynamicTool,
    Later,
    Reject,
    RunNormally,
    ToolAvailability,
    ToolMetadata,
    ToolResult,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.execution import Dispatcher
from lutumpy.mcp import mcp_server

CONTEXT = {"user": "Ada"}


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def serve(hooks: Any = None, **options: Any) -> Any:
    return mcp_server(App, hooks=hooks, dispatch=Dispatcher(App, context=CONTEXT), **options)


async def call(server: Any, name: str, arguments: Any = None, mode: str = "auto") -> Any:
    async with Client(server, mode=mode) as client:
        return await client.call_tool(name, arguments)


def text_of(result: Any) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def test_the_list_has_descriptions_schemas_and_hints_of_effects_MCP7() -> None:
    async with Client(serve(version="1.2", instructions="Be kind.")) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert client.instructions == "Be kind."
    assert list(listed) == ["weather", "greet", "draw", "lines", "wait"]
    for definition in App.definitions():
        tool = listed[definition.name]
        assert tool.description == definition.description
        assert tool.input_schema == definition.input_schema
    hints = {
        name: (tool.annotations.read_only_hint, tool.annotations.idempotent_hint)
        for name, tool in listed.items()
        if tool.annotations is not None
    }
    assert hints == {
        "weather": (True, True),
        "greet": (False, True),
        "draw": (False, False),
        "lines": (False, False),
        "wait": (False, False),
    }
    # Only results whose root is an object have a place of their own.
    assert [name for name, tool in listed.items() if tool.output_schema] == ["weather"]
    assert "user" not in str(listed["greet"].input_schema)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_object_is_text_and_structured_content_MCP7(mode: str) -> None:
    result = await call(serve(), "weather", {"city": "Oslo"}, mode)
    assert text_of(result) == '{"city":"Oslo","temperature":7.5}'
    assert result.structured_content == {"city": "Oslo", "temperature": 7.5}
    assert not result.is_error


async def test_other_values_are_text_alone_MCP7() -> None:
    result = await call(serve(), "lines", {"count": 2})
    assert (text_of(result), result.structured_content) == ('["line","line"]', None)


@tool_fn(late=True)
async def forecast(city: str) -> Weather:
    """Forecast, which may take hours."""
    if city == "Oslo":
        return Weather(city=city, temperature=1.0)
    raise Later("about an hour")


@tool_fn(late=True)
async def letter(city: str) -> str:
    """Ask by letter."""
    raise Later


class Slow(Toolset):
    forecast = tool(forecast)
    letter = tool(letter)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_promise_is_no_error_and_announces_nothing_to_the_client_MCP7(mode: str) -> None:
    async with Client(mcp_server(Slow), mode=mode) as client:
        # A result that is no object yet has no place where an output schema is listed.
        assert [tool.output_schema for tool in (await client.list_tools()).tools] == [None, None]
        told = [await client.call_tool(name, {"city": "Rome"}) for name in ("forecast", "letter")]
        ready = await client.call_tool("forecast", {"city": "Oslo"})
    running = "The call is running. Its result isn't sent here: don't make the call again"
    for result in told:
        assert (result.is_error, result.structured_content) == (False, None)
        assert running in text_of(result)
        assert "later message" not in text_of(result)
    assert text_of(told[0]).endswith("\nabout an hour")
    assert text_of(ready) == '{"city":"Oslo","temperature":1.0}'
    assert not ready.is_error


async def test_parts_are_blocks_MCP7() -> None:
    text, image, sound, file = (await call(serve(), "draw", {"what": "a cat"})).content
    assert text == TextContent(text="a cat")
    assert isinstance(image, ImageContent)
    assert (image.data, image.mime_type) == ("iVBORw0KGgo=", "image/png")
    assert isinstance(sound, AudioContent)
    assert isinstance(file, EmbeddedResource)
    assert file.resource.uri == "result:///plan.pdf"
    assert PNG.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "Tool call rejected: city: Field required"),
        (None, "Tool call rejected: city: Field required"),
        ({"city": "Oslo", "x": 1}, "Tool call rejected: x: Extra inputs are not permitted"),
    ],
)
async def test_arguments_go_through_the_toolsets_own_decoder_MCP7(
    arguments: Any, text: str
) -> None:
    result = await call(serve(), "weather", arguments)
    assert (text_of(result), result.is_error) == (text, True)
    assert RAN == []


async def test_a_repair_of_arguments_holds_here_too_C5() -> None:
    result = await call(serve(), "lines", {"count": "2"})
    assert text_of(result) == '["line","line"]'


async def test_unknown_tools_and_those_not_served_are_rejected_MCP7() -> None:
    server = mcp_server(Secrets, dispatch=Dispatcher(Secrets, context=CONTEXT))
    for name in ("greet", "nothing"):
        result = await call(server, name, {"name": "Bo"})
        assert result.is_error
        assert text_of(result) == (
            f"Tool call rejected: There is no tool named {name!r}. Available tools: weather."
        )
    assert RAN == []


async def test_available_says_what_is_served() -> None:
    server = serve(available=ToolAvailability.only(App.lines))
    async with Client(server) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["lines"]
        assert (await client.call_tool("weather", {"city": "Oslo"})).is_error
    assert RAN == []


async def test_the_text_of_an_exception_never_leaves_K6(caplog: pytest.LogCaptureFixture) -> None:
    result = await call(serve(), "weather", {"city": "Atlantis"})
    assert (text_of(result), result.is_error) == ("Atlantis has no weather", True)
    result = await call(serve(), "weather", {"city": "Hades"})
    assert (text_of(result), result.is_error) == ("The tool failed with ValueError.", True)


async def test_skip_parameters_come_from_the_requests_context_MCP7() -> None:
    seen: list[str] = []

    def context(request: Any) -> dict[str, str]:
        seen.append(request.method)
        return {"user": "Grace"}

    async def later(request: Any) -> dict[str, str]:
        return {"user": "Hedy"}

    assert text_of(await call(mcp_server(App, context=context), "greet", {"name": "Bo"})) == (
        "Grace greets Bo"
    )
    assert seen == ["tools/call"]
    assert text_of(await call(mcp_server(App, context=later), "greet", {"name": "Bo"})) == (
        "Hedy greets Bo"
    )


async def test_a_context_that_lacks_a_value_or_raises_tells_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(request: Any) -> dict[str, str]:
        raise KeyError("secret-token")

    contexts: list[Any] = [broken, lambda request: {}]
    for context in contexts:
        result = await call(mcp_server(App, context=context), "greet", {"name": "Bo"})
        assert (text_of(result), result.is_error) == ("The tool could not be run.", True)
    assert RAN == []
    assert "secret-token" in caplog.text


# --- hooks --------------------------------------------------------------------------------------


async def test_a_hook_rejects_before_anything_runs_MCP7() -> None:
    hooks = App.hooks()

    @hooks.on(App.weather)
    def refuse(metadata: ToolMetadata, input: Any) -> Any:
        return Reject("not today")

    result = await call(serve(hooks), "weather", {"city": "Oslo"})
    assert (text_of(result), result.is_error) == ("Tool call rejected: not today", True)
    assert RAN == []


async def test_a_hook_answers_or_edits_MCP7() -> None:
    hooks = App.hooks()

    @hooks.on(App.weather)
    async def decide(metadata: ToolMetadata, input: Any) -> Any:
        if input.city == "Rome":
            return Complete(Weather(city="Rome", temperature=30))
        return RunNormally.edited(city="Bergen")

    result = await call(serve(hooks), "weather", {"city": "Rome"})
    assert result.structured_content == {"city": "Rome", "temperature": 30.0}
    assert RAN == []
    result = await call(serve(hooks), "weather", {"city": "Oslo"})
    assert result.structured_content == {"city": "Bergen", "temperature": 7.5}
    assert RAN == [("weather", "Bergen")]


@pytest.mark.parametrize(
    "decision", [ValueError("secret"), "not a decision", Complete("no weather")]
)
async def test_a_hook_that_fails_lets_nothing_through_MCP7(
    decision: Any, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = App.hooks()

    @hooks.on(App.weather)
    def decide(metadata: ToolMetadata, input: Any) -> Any:
        if isinstance(decision, Exception):
            raise decision
        return decision

    result = await call(serve(hooks), "weather", {"city": "Oslo"})
    assert result.is_error
    assert "secret" not in text_of(result)
    assert RAN == []


async def test_general_hooks_of_nested_toolsets_decide_MCP7() -> None:
    from lutumpy import hook_impl

    class NoDrawing:
        @hook_impl
        def any_tool_hook(self, metadata: ToolMetadata, call: Any) -> Any:
            return Reject("no drawing")

    hooks = App.hooks()
    hooks.inner.register(NoDrawing())
    assert text_of(await call(serve(hooks), "draw", {"what": "x"})) == (
        "Tool call rejected: no drawing"
    )
    assert not (await call(serve(hooks), "weather", {"city": "Oslo"})).is_error


async def test_review_hooks_see_results_MCP7() -> None:
    from lutumpy import hook_impl

    class Redacts:
        @hook_impl
        def any_result_hook(self, metadata: ToolMetadata, result: ToolResult) -> Any:
            return replace(result, content=str(result.content).replace("Oslo", "████"))

    class Fails:
        @hook_impl
        def any_result_hook(self, metadata: ToolMetadata, result: ToolResult) -> Any:
            raise ValueError("secret")

    hooks = App.hooks()
    hooks.register(Redacts())
    result = await call(serve(hooks), "weather", {"city": "Oslo"})
    assert result.structured_content == {"city": "████", "temperature": 7.5}
    assert "Oslo" not in str(result)
    failing = App.hooks()
    failing.register(Fails())
    result = await call(serve(failing), "weather", {"city": "Oslo"})
    assert result.is_error
    assert text_of(result) == "The result of this call can't be shown. What it did stands."


async def test_a_reviewed_text_that_is_not_of_the_output_schema_is_an_error_MCP7() -> None:
    from lutumpy import hook_impl

    class Hides:
        @hook_impl
        def any_result_hook(self, metadata: ToolMetadata, result: ToolResult) -> Any:
            return replace(result, content="[hidden]")

    hooks = App.hooks()
    hooks.register(Hides())
    result = await call(serve(hooks), "weather", {"city": "Oslo"})
    assert (text_of(result), result.structured_content) == ("[hidden]", None)
    assert result.is_error


async def test_description_hooks_word_the_list_MCP7() -> None:
    hooks = App.hooks()

    @hooks.describe(App.weather)
    async def word(definition: Any) -> str:
        return "Weather, in kelvin."

    async with Client(serve(hooks)) as client:
        assert (await client.list_tools()).tools[0].description == "Weather, in kelvin."

    @hooks.describe(App.lines)
    def fail(definition: Any) -> str:
        raise ValueError("secret")

    async with Client(serve(hooks)) as client:
        with pytest.raises(MCPError, match=r"^The tools can't be listed\.$"):
            await client.list_tools()


async def test_a_cancelled_request_cancels_the_tool(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    async with Client(serve(), mode="legacy") as client:
        with anyio.move_on_after(0.2):
            await client.call_tool("wait", {"seconds": 3600.0})
        with anyio.fail_after(SECONDS):
            while RAN != [("cancelled", 3600.0)]:
                await anyio.sleep(0.01)
        assert not (await client.call_tool("lines", {"count": 1})).is_error


async def test_equal_calls_of_unknown_outcome_are_not_held_against_other_clients() -> None:
    """The executor would refuse the second one; here nobody knows whether they mean the same."""
    dispatch = Dispatcher(App, context=CONTEXT)

    @dispatch.on(App.lines)
    def fail(input: Any) -> list[str]:
        raise ValueError("x")

    server = mcp_server(App, dispatch=dispatch)
    texts = [text_of(await call(server, "lines", {"count": 1})) for _ in range(2)]
    assert texts[0] == texts[1]
    assert "The outcome is unknown" in texts[0]


async def test_a_toolset_that_was_filled_at_run_time_is_served_with_hooks_of_its_class() -> None:
    from lutumpy import DynamicInput, DynamicOutput, ToolCall, dynamic

    class Place(Toolset[ToolCall[DynamicInput, DynamicOutput]]):
        more = dynamic()

    async def run(arguments: dict[str, Any]) -> str:
        return f"ran {arguments['a']}"

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    filled = Place.with_dynamic_tools({Place.more: [DynamicTool("one", "One.", schema, run=run)]})
    hooks = Place.hooks()

    @hooks.on(Place.more)
    def decide(metadata: ToolMetadata, input: DynamicInput) -> Any:
        return Reject("no 13") if input.values["a"] == 13 else RunNormally()

    server = mcp_server(filled, hooks=hooks)
    assert text_of(await call(server, "one", {"a": 1})) == "ran 1"
    assert text_of(await call(server, "one", {"a": 13})) == "Tool call rejected: no 13"
    assert text_of(await call(server, "one", {})) == "Tool call rejected: a: Field required"


def test_mistakes_are_told_when_the_server_is_made() -> None:
    with pytest.raises(DeclarationError, match="nothing runs 'move'"):
        mcp_server(Moves)
    with pytest.raises(DeclarationError, match="needs the context value 'user'"):
        mcp_server(App)
    with pytest.raises(DeclarationError, match="runs no tools of App"):
        mcp_server(App, dispatch=Dispatcher(Moves))
    with pytest.raises(DeclarationError, match="decides about no tools of App"):
        mcp_server(App, dispatch=Dispatcher(App, context=CONTEXT), hooks=Moves.hooks())
    with pytest.raises(TypeError, match="dispatch= takes a Dispatcher"):
        mcp_server(App, dispatch=App)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="hooks= takes"):
        mcp_server(App, dispatch=Dispatcher(App, context=CONTEXT), hooks=App)  # type: ignore[arg-type]
    assert Move.__doc__
