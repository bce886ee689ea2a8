"""Running the function that was called, in programs with and without an event loop."""

from typing import Any

import pytest
from pydantic import BaseModel

from lutumpy import Skip, ToolMetadata, Toolset, tool, tool_fn, tool_input


@tool_fn
def double(number: int, *, by: Skip[int] = 2) -> int:
    """Double a number."""
    return number * by


@tool_fn
async def halve(number: int) -> float:
    """Halve a number."""
    return number / 2


@tool_input(output=int)
class Count(BaseModel):
    """Count."""

    number: int


class Numbers(Toolset):
    double = tool(double)
    halve = tool(halve)
    count = tool(Count, output=int)


def call(name: str) -> Any:
    return Numbers.parse(ToolMetadata("c1", name, '{"number": 4}'))


def test_a_plain_function_runs_without_an_event_loop() -> None:
    assert call("double").call_sync() == 8
    assert call("double").call_sync(by=3) == 12
    with pytest.raises(TypeError, match="no Skip parameter"):
        call("double").call_sync(other=3)


def test_an_async_function_is_not_started_by_it() -> None:
    with pytest.raises(TypeError, match=r"'halve' is async: write `await call\.call\(\)`"):
        call("halve").call_sync()


def test_an_input_class_has_no_function_to_run() -> None:
    with pytest.raises(TypeError, match="declared by its input class"):
        call("count").call_sync()


async def test_call_runs_both_kinds() -> None:
    assert await call("double").call() == 8
    assert await call("halve").call() == 2.0
