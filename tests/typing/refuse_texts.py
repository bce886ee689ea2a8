"""Each line marked `# refused` is an error for mypy --strict and pyright; no other line is.

Nothing of it is run.
"""

from accept_texts import Desk, Mixed, dial, run_sql
from typing_extensions import assert_never

from lutumpy import (
    Complete,
    Lark,
    RunNormally,
    ToolCall,
    ToolDecision,
    ToolMetadata,
    ToolRequirement,
    ToolResult,
    text_tool,
)


def of_number(n: int) -> None: ...


def of_nothing() -> None: ...


text_tool(of_number)  # refused
text_tool(of_nothing)  # refused
text_tool(format="a+")  # refused
Lark(3)  # refused
dial(3)  # refused
run_sql("a", db=3)  # refused


def handle(call: ToolCall[str, list[str]] | ToolCall[str, bool]) -> ToolResult:
    if Desk.run_sql.matches(call):
        call.input.value  # refused
        call.with_input(3)  # refused
        return call.complete(True)  # refused
    assert_never(call)  # refused


hooks = Desk.hooks()


@hooks.on(Desk.run_sql)  # refused
def of_bytes(metadata: ToolMetadata, input: bytes) -> ToolDecision[bytes, list[str]]:
    return RunNormally(input)


@hooks.on(Desk.dial)
def wrong_output(metadata: ToolMetadata, input: str) -> ToolDecision[str, bool]:
    return Complete("yes")  # refused


Desk.offer(require=ToolRequirement.specific(Mixed.run_sql))  # refused
