"""Functions of one text as tools: their members, calls, hooks and handlers.

Both checkers accept it; nothing is run.
"""

from collections.abc import Coroutine
from typing import Any

from typing_extensions import assert_never, assert_type

from lutumpy import (
    Complete,
    HandledTool,
    Lark,
    NeedsTools,
    Regex,
    Reject,
    RejectedToolCall,
    RunNormally,
    Selector,
    Session,
    Skip,
    ToolCall,
    ToolDecision,
    ToolMetadata,
    ToolResult,
    Toolset,
    hook_impl,
    text_tool,
    tool,
    tool_fn,
)
from lutumpy.execution import Dispatcher


class Database: ...


@text_tool(format=Lark('start: "select" /.+/'), timeout=3.0, effect="read")
async def run_sql(query: str, *, db: Skip[Database]) -> list[str]:
    """Run a query."""
    return []


@text_tool(name="dial", format=Regex("[0-9]+"))
def dial(number: str) -> bool:
    """Dial."""
    return True


@text_tool
def note(text: str) -> None:
    """Note."""


@tool_fn
def look(n: int) -> str:
    """Look."""
    return ""


class Desk(Toolset[ToolCall[str, list[str]] | ToolCall[str, bool] | ToolCall[str, None]]):
    run_sql = tool(run_sql)
    dial = tool(dial)
    note = tool(note, off=True)


class Mixed(Toolset):
    run_sql = tool(run_sql)
    look = tool(look)


assert_type(dial("1"), bool)
assert_type(Desk.run_sql, Selector[Desk, str, list[str]])
assert_type(Desk.dial, Selector[Desk, str, bool])
assert_type(run_sql.format, Lark | Regex | None)


def handle(
    call: ToolCall[str, list[str]] | ToolCall[str, bool] | ToolCall[str, None],
) -> ToolResult:
    assert_type(call.input, str)
    if Desk.run_sql.matches(call):
        assert_type(call, ToolCall[str, list[str]])
        return call.complete([call.input])
    if Desk.dial.matches(call):
        return call.with_input("112").complete(True)
    if Desk.note.matches(call):
        return call.complete(None)
    assert_never(call)


def own_call() -> Coroutine[Any, Any, list[str]]:
    return run_sql("select 1", db=Database())


async def turn(session: Session, llm: Any) -> None:
    assert_type(await run_sql("a", db=Database()), list[str])
    outcome = await session.text_turn(llm, tools=Desk).collect()
    if isinstance(outcome, NeedsTools):
        outcome.round.commit(session, [handle(call) for call in outcome.round.calls])
    other = await session.text_turn(llm, tools=Mixed).collect()
    if isinstance(other, NeedsTools):
        for found in other.round.calls:
            if Mixed.run_sql.matches(found):
                assert_type(found.input, str)


hooks = Desk.hooks()


@hooks.on(Desk.run_sql)
async def guard(metadata: ToolMetadata, input: str) -> ToolDecision[str, list[str]]:
    if "drop" in input:
        return Reject("no dropping")
    if input == "select 1":
        return Complete(["1"])
    return RunNormally(input.strip())


class Plugin:
    @hook_impl
    def dial_hook(self, metadata: ToolMetadata, input: str) -> ToolDecision[str, bool]:
        return RunNormally()


def report(handled: HandledTool, rejected: RejectedToolCall) -> None:
    if Desk.dial.matches(handled):
        assert_type(handled.input, str)
        assert_type(handled.output, bool)
    if Desk.dial.matches(rejected):
        assert_type(rejected.call.input, str)


dispatch = Dispatcher(Desk, context={"db": Database()})


@dispatch.on(Desk.dial)
async def dial_for_real(input: str) -> bool:
    return bool(input)
