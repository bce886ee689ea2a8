"""The toolset that the tests of loops share, and one way to call all forms of the loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
from every_api import ADAPTERS, CHECKS
from pydantic import BaseModel

from lutumpy import (
    Session,
    Skip,
    ToolError,
    ToolInput,
    ToolMetadata,
    ToolResult,
    Toolset,
    TranscriptError,
    hook_impl,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.execution import Dispatcher
from lutumpy.loops import LoopResult, run_tools, run_tools_sync
from lutumpy.models import ToolResults
from lutumpy.testing import Call, Reply, ScriptedModel

FORMS = ["asyncio", "trio", "sync"]
WITHHELD = (
    "The tool ran, and what it did stands, but what it said is withheld: it could not be reviewed."
)


class Journal:
    """What the tools did, in order; and what they do on the way, by tool name."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.during: dict[str, Callable[[], Any]] = {}

    def note(self, what: str) -> None:
        self.ran.append(what)
        if (action := self.during.get(what.split(maxsplit=1)[0])) is not None:
            action()


@tool_fn(effect="read")
async def look_up(word: str, *, journal: Skip[Journal]) -> str:
    """Look a word up."""
    journal.note(f"look_up {word}")
    await anyio.lowlevel.checkpoint()
    if word == "unknown":
        raise ToolError("no such word")
    if word == "broken":
        raise ValueError("secret path /etc")
    return f"{word} means {word[::-1]}"


@tool_fn(effect="read")
def count(text: str, *, journal: Skip[Journal]) -> int:
    """Count letters."""
    journal.note(f"count {text}")
    return len(text)


@tool_fn
async def wait_for_ever(*, journal: Skip[Journal]) -> str:
    """Never ends."""
    journal.note("wait_for_ever")
    await anyio.sleep_forever()
    return "never"


@tool_fn
def hidden(*, journal: Skip[Journal]) -> None:
    """Is not offered by default."""
    journal.note("hidden")


class Note(BaseModel):
    number: int


@tool_input(name="write")
class Write(ToolInput[Note]):
    """Write a note."""

    text: str
    color: str = "white"


class Desk(Toolset):
    look_up = tool(look_up)
    count = tool(count)
    wait_for_ever = tool(wait_for_ever)
    write = tool(Write)
    hidden = tool(hidden, off=True)


class OtherDesk(Toolset):
    count = tool(count)


def dispatcher(journal: Journal | None = None) -> Dispatcher[Desk]:
    """Covers the desk; the tools write into the journal."""
    journal = Journal() if journal is None else journal
    dispatch = Dispatcher(Desk, context={"journal": journal})

    @dispatch.on(Desk.write)
    async def _(input: Write) -> Note:
        journal.note(f"write {input.text}")
        return Note(number=len(journal.ran))

    return dispatch


class Reviewer:
    """Marks every result, and fails at one that holds the text `failing`."""

    def __init__(
        self, failing: str = "terces", error: type[BaseException] = ConnectionError
    ) -> None:
        self.failing, self.error = failing, error

    @hook_impl
    def any_result_hook(self, metadata: ToolMetadata, result: ToolResult) -> ToolResult:
        if self.failing in str(result.content):
            raise self.error("the scanner is down")
        return replace(result, content=f"[seen] {result.content}")


class Runner:
    """Calls one form of the loop; `self.form` is `asyncio`, `trio` or `sync`."""

    def __init__(self, form: str) -> None:
        self.form: str = form

    @property
    def is_async(self) -> bool:
        return self.form != "sync"

    def __call__(
        self, session: Session, llm: Any, journal: Journal | None = None, **options: Any
    ) -> LoopResult:
        options = {"tools": Desk, "dispatch": dispatcher(journal), **options}
        if self.form == "sync":
            return run_tools_sync(session, llm, **options)
        return anyio.run(partial(run_tools, session, llm, **options), backend=self.form)


def asked(question: str = "What is it?") -> Session:
    session = Session()
    session.push_user(question)
    return session


def call(name: str, call_id: str | None = None, **arguments: Any) -> Call:
    return Call(name, arguments, id=call_id)


def look(word: str, call_id: str | None = None) -> Call:
    return call("look_up", call_id, word=word)


def calls(*each: Call, **more: Any) -> Reply:
    return Reply(calls=each, **more)


def script(*entries: Any, api: Any = "openai_chat") -> ScriptedModel:
    return ScriptedModel(entries, api=api)


ANSWER = Reply(text="It is a word.", usage=(10, 5))


def results(session: Session) -> list[tuple[str, str]]:
    """Status and text of every result in the session, in order."""
    items = [item for item in session.transcript if isinstance(item, ToolResults)]
    return [(result.status, result.text) for item in items for result in item.results]


def check_valid(session: Session) -> None:
    """Every API takes the transcript as it is, or with one more question (rule K5)."""
    for api, adapter in ADAPTERS.items():
        asking = session.fork()
        try:
            body = adapter.request(asking.transcript, Desk.offer(), model="m")
        except TranscriptError:
            asking.push_user("And?")
            body = adapter.request(asking.transcript, Desk.offer(), model="m")
        refused = [p for p in CHECKS[api]({"model": "m", **body}) if p.certainty == "refused"]
        assert refused == [], (api, refused)
