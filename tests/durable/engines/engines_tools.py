"""The tools that the tests of engines run in workers, which are processes of their own."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import anyio

from lutumpy import CallTicket, DynamicTool, Later, Skip, Toolset, tool, tool_fn
from lutumpy.execution import Dispatcher, IdempotencyKey
from lutumpy.tools import Asked, asking

__all__ = ["Changed", "Desk", "Hotel", "Notes", "Studio", "dispatcher"]


class Notes:
    """What tools did outside: a file of lines that every process appends to."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "notes.jsonl"

    def write(self, what: str, **more: Any) -> None:
        line = json.dumps({"what": what, "pid": os.getpid(), "at": time.monotonic(), **more})
        with self.file.open("a") as file:
            file.write(line + "\n")

    def read(self, what: str) -> list[dict[str, Any]]:
        if not self.file.exists():
            return []
        lines = [json.loads(line) for line in self.file.read_text().splitlines()]
        return [line for line in lines if line["what"] == what]

    async def wait_for(self, what: str, count: int = 1) -> None:
        with anyio.fail_after(60):
            while len(self.read(what)) < count:
                await anyio.sleep(0.02)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@tool_fn(effect="read")
async def look(word: str, *, notes: Skip[Notes]) -> str:
    """Look a word up."""
    notes.write("look", word=word)
    if word.startswith("slow"):
        await anyio.sleep(0.5)
    notes.write("looked", word=word)
    return f"{word} means {word[::-1]}"


@tool_fn(effect="once", timeout=60)
async def charge(amount: int, *, notes: Skip[Notes]) -> str:
    """Charge somebody. 11 kills its process before the effect, 13 after it, 20 takes a while."""
    if amount == 11:
        die()
    notes.write("charge", amount=amount)
    if amount == 13:
        die()
    if amount == 20:
        await anyio.sleep(2)
    if amount == 99:
        raise SystemExit("a tool that wants to end its worker")
    return f"charged {amount}"


@tool_fn(effect="idempotent", timeout=60)
async def save(title: str, *, notes: Skip[Notes], key: Skip[IdempotencyKey]) -> str:
    """Save something. The first time it is fatal, it kills its process."""
    notes.write("save", key=str(key))
    if title == "fatal" and len(notes.read("save")) == 1:
        die()
    return f"saved {title}"


@tool_fn(effect="idempotent", timeout=60)
async def wait(seconds: float, *, notes: Skip[Notes], key: Skip[IdempotencyKey]) -> str:
    """Wait for a while."""
    notes.write("wait", key=str(key))
    await anyio.sleep(seconds)
    notes.write("waited")
    return "waited"


class Desk(Toolset):
    look = tool(look)
    charge = tool(charge)
    save = tool(save)
    wait = tool(wait)


@tool_fn(effect="once", name="charge")
async def charge_more(amount: int, tip: int = 0, *, notes: Skip[Notes]) -> str:
    """Charge somebody, and a tip."""
    notes.write("charge", amount=amount)
    return f"charged {amount}"


class Changed(Toolset):
    """The tools of another release: `charge` is another one."""

    look = tool(look)
    charge = tool(charge_more)
    save = tool(save)


@tool_fn(effect="once", late=True)
async def render(scene: str, *, notes: Skip[Notes], ticket: Skip[CallTicket]) -> str:
    """Render a scene. Its result comes later, to whoever has the ticket."""
    notes.write("render", ticket=ticket.dump())
    raise Later("soon")


class Studio(Toolset):
    render = tool(render)


async def book(arguments: dict[str, Any], notes: Notes, ticket: CallTicket) -> str:
    """Book a seat, in a name that is asked for, as a server of MCP does."""
    notes.write("book", leg=ticket.leg)
    resume: Any = ticket.resume
    if resume is None:
        raise Asked("desk", {"who": {"message": "Who?", "form": FORM}}, {"seat": 7})
    return f"seat {resume['seat']} for {resume['answers']['who']['content']['name']}"


FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
Hotel = Toolset.of(
    "Hotel", [DynamicTool("book", "Book a seat.", {"type": "object"}, run=asking(book))]
)


def dispatcher(tools: type[Toolset[Any]], folder: Path) -> Dispatcher[Any]:
    return Dispatcher(tools, context={"notes": Notes(folder)})
