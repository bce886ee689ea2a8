"""A toolset that is served and read back is the same toolset."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_toolkit import run_call
from served import App

from lutumpy import ToolDef, ToolMetadata
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.mcp import McpTools, mcp_server

CONTEXT = {"user": "Ada"}
SERVED = mcp_server(App, dispatch=Dispatcher(App, context=CONTEXT))


def shown(definition: ToolDef) -> Any:
    """What a model is shown of a tool, its effect, and its results where the protocol has them."""
    output = definition.output_schema
    is_object = output is not None and output.get("type") == "object"
    effect = definition.options.effect
    return (
        definition.name,
        definition.description,
        definition.input_schema,
        output if is_object else None,
        effect,
    )


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_definitions_are_equal(mode: str) -> None:
    options = {"mode": mode}
    async with McpTools(SERVED, trust_hints=True, client_options=options) as source:
        annotations = source.tools[0].definition.options.annotations
        assert annotations == {
            "title": "Weather",
            "readOnlyHint": True,
            "idempotentHint": True,
            "openWorldHint": True,
        }
        back = [shown(definition) for definition in source.toolset.definitions()]
        assert back == [shown(definition) for definition in App.definitions()]
        assert source.skipped == {}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("weather", '{"city": "Oslo", "days": 3}'),
        ("weather", '{"city": "Atlantis"}'),
        ("weather", '{"city": "Hades"}'),
        ("greet", '{"name": "Bo"}'),
        ("lines", '{"count": 3}'),
        ("lines", '{"count": "3"}'),
        ("lines", '{"count": 0}'),
        ("draw", '{"what": "a cat"}'),
    ],
)
async def test_results_and_errors_are_equal(name: str, arguments: str) -> None:
    call = App.parse(ToolMetadata("c1", name, arguments))
    (direct,) = await ToolExecutor().run([call], Dispatcher(App, context=CONTEXT))
    async with McpTools(SERVED, trust_hints=True) as source:
        back = await run_call(source, name, arguments)
    assert (back.content, back.status) == (direct.content, direct.status)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("weather", "{}"), ("weather", '{"city": "Oslo", "x": 1}'), ("lines", '{"count": "x"}')],
)
async def test_wrong_arguments_are_told_of_the_same_fields(name: str, arguments: str) -> None:
    from lutumpy import InvalidArgumentsError

    async with McpTools(SERVED) as source:
        places = []
        for toolset in (App, source.toolset):
            with pytest.raises(InvalidArgumentsError) as raised:
                toolset.parse(ToolMetadata("c1", name, arguments))
            places.append([line.partition(":")[0] for line in raised.value.detail.splitlines()])
        assert places[0] == places[1]
