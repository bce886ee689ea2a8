"""What checkers know of tools that are known at run time, and of output schemas.

mypy --strict and pyright accept it; nothing is run.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue
from typing_extensions import assert_never, assert_type

from lutumpy import (
    DynamicGroup,
    DynamicInput,
    DynamicOutput,
    DynamicTool,
    Finished,
    Model,
    NeedsTools,
    OutputSchema,
    Selector,
    Session,
    TextPart,
    ToolCall,
    ToolInput,
    ToolMetadata,
    Toolset,
    TurnResult,
    dynamic,
    tool,
    tool_input,
)
from lutumpy.models import TextTurn, ToolTurn


@tool_input(name="read_file")
class ReadFile(ToolInput[str]):
    """Read a file."""

    path: str


class AppTools(Toolset[ToolCall[ReadFile, str] | ToolCall[DynamicInput, DynamicOutput]]):
    read_file = tool(ReadFile)
    more = dynamic()


class Only(Toolset[ToolCall[DynamicInput, DynamicOutput]]):
    more = dynamic(off=True)


async def find(arguments: dict[str, Any]) -> JsonValue:
    query: JsonValue = arguments["query"]
    return query


def check(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


schema: dict[str, Any] = {"type": "object"}
weather = DynamicTool("weather", "The weather.", schema, run=find, validate=check, effect="read")
plain = DynamicTool("plain", "Plain.", {"type": "object", "properties": {}})
assert_type(weather.name, str)
assert_type(weather.renamed("rain"), DynamicTool)

Github = Toolset.of("Github", [weather, plain], prefix="gh_")
assert_type(Github, type[Toolset[ToolCall[DynamicInput, DynamicOutput]]])

assert_type(AppTools.more, DynamicGroup[AppTools])
offered = AppTools.with_dynamic_tools({AppTools.more: [weather]})
assert_type(offered, type[AppTools])
assert_type(offered.more, DynamicGroup[AppTools])
assert_type(offered.more["weather"], Selector[AppTools, DynamicInput, DynamicOutput])
extended = AppTools.extended(gh=Github, one=weather)
assert_type(extended, type[AppTools])


async def rounds(session: Session, llm: Model) -> None:
    outcome = await session.text_turn(llm, tools=offered).collect()
    if isinstance(outcome, Finished):
        return
    assert_type(
        outcome, NeedsTools[ToolCall[ReadFile, str] | ToolCall[DynamicInput, DynamicOutput]]
    )
    for call in outcome.round.calls:
        if AppTools.read_file.matches(call):
            assert_type(call, ToolCall[ReadFile, str])
            call.complete(call.input.path)
        elif AppTools.more.matches(call):
            assert_type(call, ToolCall[DynamicInput, DynamicOutput])
            assert_type(call.input.values, Mapping[str, JsonValue])
            call.complete({"a": [1, None, "text"]})
            call.complete([TextPart("text")])
            call.complete(None)
        else:
            assert_never(call)


async def alone(session: Session, llm: Model) -> None:
    outcome = await session.text_turn(llm, tools=Github).collect()
    if isinstance(outcome, NeedsTools):
        for call in outcome.round.calls:
            assert_type(call, ToolCall[DynamicInput, DynamicOutput])
    call = Only.parse(ToolMetadata("c1", "weather", "{}"))
    assert_type(call, ToolCall[DynamicInput, DynamicOutput])


def made(values: Mapping[str, JsonValue]) -> DynamicInput:
    return DynamicInput(values)


route = OutputSchema("route", {"type": "array"}, description="A route.", strict=False)


async def structured(session: Session, llm: Model) -> JsonValue:
    turn = session.structured_turn(llm, route, temperature=0.5)
    assert_type(turn, TextTurn[JsonValue])
    result = await turn.collect()
    assert_type(result, TurnResult[JsonValue])
    assert_type(result.value_error, str | None)
    assert_type(result.refusal, str | None)
    with_tools = session.structured_turn(llm, route, tools=Github)
    assert_type(with_tools, ToolTurn[ToolCall[DynamicInput, DynamicOutput], JsonValue])
    typed = session.structured_turn(llm, ReadFile)
    assert_type(typed, TextTurn[ReadFile])
    return result.value
