"""What checkers refuse of tools that are known at run time: each marked line.

Nothing is run.
"""

from typing import Any

from lutumpy import (
    DynamicInput,
    DynamicOutput,
    DynamicTool,
    Model,
    OutputSchema,
    Session,
    ToolCall,
    ToolInput,
    Toolset,
    dynamic,
    tool,
    tool_input,
)


@tool_input(name="read_file")
class ReadFile(ToolInput[str]):
    """Read a file."""

    path: str


class AppTools(Toolset[ToolCall[ReadFile, str] | ToolCall[DynamicInput, DynamicOutput]]):
    read_file = tool(ReadFile)
    more = dynamic()


class Others(Toolset[ToolCall[DynamicInput, DynamicOutput]]):
    more = dynamic()


async def checked(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


schema: dict[str, Any] = {"type": "object"}
weather = DynamicTool("weather", "The weather.", schema)

DynamicTool("weather", schema)  # refused
DynamicTool("weather", "The weather.", "{}")  # refused
DynamicTool("weather", "The weather.", schema, effect="always")  # refused
DynamicTool("weather", "The weather.", schema, validate=checked)  # refused
DynamicTool("weather", "The weather.", schema, timeout="1")  # refused
Toolset.of("Github", [ReadFile])  # refused
Toolset.of([weather])  # refused
AppTools.with_dynamic_tools({AppTools.more: [ReadFile]})  # refused
AppTools.with_dynamic_tools({Others.more: [weather]})  # refused
AppTools.with_dynamic_tools({AppTools.read_file: [weather]})  # refused
AppTools.with_dynamic_tools([weather])  # refused
dynamic(weather)  # refused
AppTools.more[0]  # refused
weather.name = "rain"  # refused
DynamicInput({"a": object()})  # refused


def complete(call: ToolCall[ReadFile, str] | ToolCall[DynamicInput, DynamicOutput]) -> None:
    if AppTools.more.matches(call):
        call.complete(object())  # refused
        call.input.path  # refused
    elif AppTools.read_file.matches(call):
        call.complete({"a": 1})  # refused


OutputSchema("route")  # refused
OutputSchema("route", [1])  # refused
OutputSchema("route", schema, "A route.")  # refused
OutputSchema("route", schema, strict="yes")  # refused


async def structured(session: Session, llm: Model, route: OutputSchema) -> str:
    result = await session.structured_turn(llm, route).collect()
    session.structured_turn(llm, route, tools=[weather])  # refused
    return result.value  # refused
