"""A toolset with tools of every kind, to be served."""

from __future__ import annotations

from typing import Annotated, Any

import anyio
from pydantic import BaseModel, Field

from lutumpy import (
    FilePart,
    ImagePart,
    Skip,
    TextPart,
    ToolError,
    ToolInput,
    Toolset,
    nested,
    tool,
    tool_fn,
    tool_input,
)

PNG = b"\x89PNG\r\n\x1a\n"
RAN: list[tuple[str, Any]] = []
"""What ran, with its arguments."""


class Weather(BaseModel):
    """What the weather is."""

    city: str
    temperature: float


@tool_fn(effect="read", annotations={"title": "Weather", "openWorldHint": True})
def weather(city: str, days: int = 1) -> Weather:
    """Weather of a city.

    Args:
        city: The city's name.
        days: How many days ahead.
    """
    RAN.append(("weather", city))
    if city == "Atlantis":
        raise ToolError("Atlantis has no weather")
    if city == "Hades":
        raise ValueError("the password is hunter2")
    return Weather(city=city, temperature=7.5 * days)


@tool_fn(effect="idempotent")
async def greet(name: str, user: Skip[str]) -> str:
    """Greet somebody.

    Args:
        name: Who is greeted.
    """
    RAN.append(("greet", name))
    return f"{user} greets {name}"


@tool_fn
def draw(what: str) -> list[TextPart | ImagePart | FilePart]:
    """Draw something.

    Args:
        what: What is drawn.
    """
    return [
        TextPart(what),
        ImagePart(PNG, "image/png"),
        FilePart(b"RIFF", "audio/wav"),
        FilePart(b"%PDF", "application/pdf", filename="plan.pdf"),
    ]


@tool_fn
async def wait(seconds: float) -> str:
    """Wait.

    Args:
        seconds: How long.
    """
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        RAN.append(("cancelled", seconds))
        raise
    return "waited"


@tool_fn
def lines(count: int) -> list[str]:
    """Some lines.

    Args:
        count: How many.
    """
    return ["line"] * count


@tool_input
class Move(ToolInput[None]):
    """Move a thing.

    Attributes:
        to: Where to.
    """

    to: Annotated[str, Field(description="Where to.")]


class Inner(Toolset):
    draw = tool(draw)


class App(Toolset):
    weather = tool(weather)
    greet = tool(greet)
    inner = nested(Inner)
    lines = tool(lines)
    wait = tool(wait)


class Secrets(Toolset):
    weather = tool(weather)
    greet = tool(greet, off=True)


class Moves(Toolset):
    move = tool(Move)
