"""Limits and handlers of tools that are known at run time hold for each new set of them."""

from __future__ import annotations

from typing import Any

import anyio

from lutumpy import DynamicInput, DynamicTool, ToolMetadata, Toolset, dynamic, tool, tool_fn
from lutumpy.execution import Dispatcher, ToolExecutor

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Gauge:
    """Counts what runs at once."""

    def __init__(self) -> None:
        self.running = self.most = 0

    async def __call__(self, arguments: dict[str, Any]) -> str:
        self.running += 1
        self.most = max(self.most, self.running)
        await anyio.sleep(1)
        self.running -= 1
        return "from the tool"


@tool_fn(effect="read")
async def look(n: int) -> str:
    """Look."""
    return "looked"


class AppTools(Toolset):
    look = tool(look)
    more = dynamic()
    others = dynamic()


def with_tools(run: Any, *names: str) -> type[AppTools]:
    made = [DynamicTool(name, "One of them.", SCHEMA, run=run, effect="read") for name in names]
    return AppTools.with_dynamic_tools({AppTools.more: made})


def calls(toolset: type[AppTools], name: str, count: int) -> list[Any]:
    return [toolset.parse(ToolMetadata(f"{name}{i}", name, '{"n": 1}')) for i in range(count)]


async def test_a_limit_holds_for_the_tool_of_that_name_in_each_new_set_E1() -> None:
    limited = with_tools(None, "find").more["find"]
    executor = ToolExecutor(limits={limited: 1})
    for others in ([], ["send"]):
        gauge = Gauge()
        tools = with_tools(gauge, *others, "find")
        await executor.run(calls(tools, "find", 3), Dispatcher(tools))
        assert gauge.most == 1
    gauge = Gauge()
    tools = with_tools(gauge, "send")
    await executor.run(calls(tools, "send", 3), Dispatcher(tools))
    assert gauge.most == 3


async def test_the_same_name_in_another_place_has_no_limit_of_it_E1() -> None:
    gauge = Gauge()
    executor = ToolExecutor(limits={with_tools(None, "find").more["find"]: 1})
    find = DynamicTool("find", "Another one.", SCHEMA, run=gauge, effect="read")
    tools = AppTools.with_dynamic_tools({AppTools.others: [find]})
    await executor.run(calls(tools, "find", 3), Dispatcher(tools))
    assert gauge.most == 3


async def test_a_handler_runs_the_tool_of_that_name_in_each_new_set() -> None:
    dispatch = Dispatcher(AppTools)

    @dispatch.on(with_tools(None, "find").more["find"])
    async def find(input: DynamicInput) -> str:
        return f"handled {input.values}"

    for others in ([], ["send"]):
        tools = with_tools(Gauge(), *others, "find")
        results = await ToolExecutor().run(calls(tools, "find", 1), dispatch)
        assert [result.content for result in results] == ["handled {'n': 1}"]
    results = await ToolExecutor().run(calls(tools, "send", 1), dispatch)
    assert [result.content for result in results] == ["from the tool"]
    results = await ToolExecutor().run(calls(tools, "look", 1), dispatch)
    assert [result.content for result in results] == ["looked"]
