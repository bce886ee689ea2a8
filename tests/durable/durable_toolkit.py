"""What the tests of durable loops share: tools with a ledger, a model that answers by where the
conversation stands, and wrappers that crash.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel

from lutumpy import (
    CallTicket,
    Hold,
    RunNormally,
    Session,
    Skip,
    ToolDecision,
    ToolError,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.durable import DurableLoop, LocalRunner, MemoryStore
from lutumpy.execution import Begun, Dispatcher, ExecutionResult, IdempotencyKey
from lutumpy.hooks import BaseToolCall
from lutumpy.models import Message, ToolResults
from lutumpy.testing import Call, Reply, ScriptedModel

FORMS = ["asyncio", "trio", "sync"]
SCOPE = "conversation 17"


class Ledger:
    """What tools did outside, in order; and what they do on the way, by tool."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.keys: list[str] = []
        self.during: dict[str, Callable[[], Any]] = {}

    async def note(self, what: str) -> None:
        self.done.append(what)
        action = self.during.get(what.split(maxsplit=1)[0])
        if action is not None:
            returned = action()
            if isinstance(returned, Awaitable):
                await returned

    def count(self, what: str) -> int:
        return self.done.count(what)


@tool_fn(effect="read")
async def look(word: str, *, ledger: Skip[Ledger]) -> str:
    """Look a word up."""
    await ledger.note(f"look {word}")
    if word == "unknown":
        raise ToolError("no such word")
    return f"{word} means {word[::-1]}"


@tool_fn(effect="once")
async def charge(amount: int, memo: str = "", *, ledger: Skip[Ledger]) -> str:
    """Charge somebody."""
    await ledger.note(f"charge {amount}")
    return f"charged {amount}"


@tool_fn(effect="idempotent")
async def save(title: str, *, ledger: Skip[Ledger], key: Skip[IdempotencyKey]) -> str:
    """Save something."""
    ledger.keys.append(str(key))
    await ledger.note(f"save {title}")
    return f"saved {title}"


class Desk(Toolset):
    look = tool(look)
    charge = tool(charge)
    save = tool(save)


def dispatcher(ledger: Ledger) -> Dispatcher[Desk]:
    return Dispatcher(Desk, context={"ledger": ledger})


class Model:
    """Answers by how many answers the conversation has: a restarted one gives the same."""

    def __init__(self, script: Sequence[Reply], api: Any = "openai_chat") -> None:
        self.script = script
        self.api = api
        self.requests = 0
        self._plain = ScriptedModel([], api=api)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def _next(self, transcript: Any) -> ScriptedModel:
        self.requests += 1
        return ScriptedModel([self.script[len(transcript.turns())]], api=self.api)

    async def respond(self, transcript: Any, offering: Any, options: Any) -> Any:
        return await self._next(transcript).respond(transcript, offering, options)

    def respond_sync(self, transcript: Any, offering: Any, options: Any) -> Any:
        return self._next(transcript).respond_sync(transcript, offering, options)

    def open_stream(self, transcript: Any, offering: Any, options: Any) -> Any:
        return self._next(transcript).open_stream(transcript, offering, options)

    def open_stream_sync(self, transcript: Any, offering: Any, options: Any) -> Any:
        return self._next(transcript).open_stream_sync(transcript, offering, options)


def call(name: str, call_id: str, **arguments: Any) -> Call:
    return Call(name, arguments, id=call_id)


def calls(*each: Call) -> Reply:
    return Reply(calls=each, usage=(10, 5))


ANSWER = Reply(text="It is done.", usage=(10, 5))
LOOK = call("look", "l1", word="cat")
CHARGE = call("charge", "p1", amount=5)
SAVE = call("save", "s1", title="note")


def before_it_waits(store: Any, work: Callable[[], Any]) -> None:
    """Let something happen between a run's last look at the inbox and its last event."""
    add_events, done = store.add_events, []

    async def write(claim: Any, events: Any, **options: Any) -> None:
        if not done and any(event["event"] == "RunWaits" for event in events):
            done.append(1)
            await work()
        await add_events(claim, events, **options)

    store.add_events = write


def count_claims(store: Any, *, most: int) -> list[int]:
    """Count how often a conversation is claimed from here on; one claim too many fails."""
    claim, counted = store.claim, [0]

    async def take(scope: str, **options: Any) -> Any:
        counted[0] += 1
        assert counted[0] <= most, "a run claims the conversation again and again"
        return await claim(scope, **options)

    store.claim = take
    return counted


def asked(question: str = "Do it, please.") -> Session:
    session = Session()
    session.push_user(question)
    return session


def hold_charges(call: BaseToolCall) -> ToolDecision:
    """A policy: a person decides about money."""
    return Hold("money") if call.metadata.name == "charge" else RunNormally()


async def hold_charges_slowly(call: BaseToolCall) -> ToolDecision:
    """As `hold_charges`, after a while."""
    await anyio.lowlevel.checkpoint()
    return hold_charges(call)


class Form:
    """Calls one form of `run`; `self.name` is `asyncio`, `trio` or `sync`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def await_(self, function: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
        """Await something that has one form only."""
        backend = "trio" if self.name == "trio" else "asyncio"
        return anyio.run(partial(function, *args, **options), backend=backend)

    def run(self, loop: DurableLoop[Any, Any], scope: str = SCOPE) -> Any:
        if self.name == "sync":
            return loop.run_sync(scope)
        return self.await_(loop.run, scope)


def make_loop(store: Any, llm: Any, ledger: Ledger, **options: Any) -> DurableLoop[Any, Any]:
    return DurableLoop(store, llm, tools=Desk, dispatch=dispatcher(ledger), **options)


async def new_store(session: Session | None = None) -> MemoryStore:
    store = MemoryStore()
    await store.create(SCOPE, asked() if session is None else session)
    return store


def results(session: Session) -> list[tuple[str, str]]:
    """Status and text of every result in the session, in order."""
    items = [item for item in session.transcript if isinstance(item, ToolResults)]
    return [(result.status, result.text) for item in items for result in item.results]


def said_by_user(session: Session) -> list[str]:
    """The texts of the user's messages, in order."""
    messages = [item for item in session.transcript if isinstance(item, Message)]
    return [message.text for message in messages if message.role == "user"]


class Crash(BaseException):
    """In place of SIGKILL: nothing catches it on purpose."""


WRITES = (
    *("record", "begin", "commit", "add_events", "claim", "release", "renew"),
    *("fail", "count_try"),
)


class CrashingStore:
    """A store whose process dies at one of its writes, before it or after it.

    From then on nothing is written any more, as by a dead process: what runs on the way out of the
    crash must not reach the store either.
    """

    def __init__(self, store: MemoryStore, at: int, *, after: bool) -> None:
        self.store = store
        self.at = at
        self.after = after
        self.writes: list[str] = []
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)
        return partial(self._write, name, method) if name in WRITES else method

    async def _write(self, name: str, method: Any, *args: Any, **options: Any) -> Any:
        if self.dead:
            raise Crash(name)
        self.writes.append(name)
        at_this = len(self.writes) == self.at
        if at_this and not self.after:
            self.dead = True
            raise Crash(name)
        returned = await method(*args, **options)
        if at_this:
            self.dead = True
            raise Crash(name)
        return returned


class TicketRunner(LocalRunner):
    """Takes the way of tickets, as a runner of another machine has to."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(dispatcher(ledger))
        self.tickets: list[str] = []

    async def run(self, tickets: Any, journal: Any) -> Any:
        self.tickets += [ticket.call_id for ticket in tickets]
        return await super().run(tickets, journal)


class Deaf:
    """A journal that keeps nothing."""

    async def begin(self, ticket: CallTicket) -> Begun:
        return Begun("nobody")

    async def end(self, ticket: CallTicket, result: ExecutionResult) -> None:
        return None


def end_lease(store: MemoryStore, scope: str = SCOPE) -> None:
    """The process that has the claim is gone, and its lease has ended."""
    store._conversations[scope].lease_until = None


def decision(word: str, **more: Any) -> Any:
    return {"decision": word, **more}
