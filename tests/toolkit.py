"""Toolsets that tests of several folders offer, where any tool would do."""

from __future__ import annotations

from lutumpy import ToolInput, Toolset, tool, tool_input


@tool_input(name="weather")
class Weather(ToolInput[str]):
    """Get the weather."""

    city: str
    days: int = 1


class WeatherTools(Toolset):
    weather = tool(Weather)


@tool_input(name="write")
class Write(ToolInput[None]):
    """Write a file."""

    text: str


class Files(Toolset):
    write = tool(Write)


@tool_input(name="look")
class Look(ToolInput[str]):
    """Look."""

    n: int


class LookTools(Toolset):
    look = tool(Look)


@tool_input(name="a")
class A(ToolInput[str]):
    """A."""


class OneTool(Toolset):
    a = tool(A)
