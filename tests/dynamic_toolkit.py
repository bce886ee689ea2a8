"""Tools that are known at run time, for the tests of several folders."""

from __future__ import annotations

from typing import Any

from lutumpy import DynamicTool, ToolInput, Toolset, dynamic, nested, tool, tool_fn, tool_input

CITY = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city"],
    "additionalProperties": False,
}


def weather_tool(name: str = "get-weather", **settings: Any) -> DynamicTool:
    return DynamicTool(name, "The weather of a city.", CITY, **settings)


@tool_fn
def search(query: str) -> str:
    """Search the web."""
    return query


@tool_input(name="read_file")
class ReadFile(ToolInput[str]):
    """Read a file."""

    path: str


class DataTools(Toolset):
    read_file = tool(ReadFile)
    plugins = dynamic()


class AppTools(Toolset):
    more = dynamic()
    search = tool(search)
    data = nested(DataTools)
