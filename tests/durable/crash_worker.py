"""A process that works on a durable conversation and kills or stops itself at a numbered point.

Started as a script it has everything imported, and makes a child by `fork` for each job that comes
as a line of JSON: a process of its own, without the half second that Python takes to start. It has
one thread and no connection when it does, so nothing of it is shared.

What happens is written to a file outside of the store, the trail: a line for each effect of a tool,
each request to the model, each write that the store took. No crash takes such a line back.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio

sys.path.insert(0, str(Path(__file__).parent))

from durable_toolkit import Model, asked, call, calls
from stores_toolkit import open_store

from lutumpy import (
    CallTicket,
    Hold,
    Later,
    Reject,
    RunNormally,
    Skip,
    TakenOverError,
    ToolDecision,
    ToolError,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.durable import Answered, Claim, DurableLoop, MemoryStore, StoreError, Waiting
from lutumpy.execution import Dispatcher, IdempotencyKey
from lutumpy.hooks import BaseToolCall
from lutumpy.testing import Reply, ScriptedModel

with suppress(ImportError):
    import psycopg  # noqa: F401  (before the first fork)

FORBIDDEN = 666
TOO_MUCH = 1000
ALLOWED = 900
"""What a person makes of `TOO_MUCH`."""
WRITES = ("create", "claim", "record", "begin", "commit", "decide", "release", "deliver")


class World:
    """What is outside: the trail, and the point at which this process ends or falls asleep."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.at: int = job.get("at", 0)
        self.how: str = job.get("how", "kill")
        self.pause: float = job.get("pause", 0.0)
        self.points = 0
        self.writing = 0
        self.is_file = job["trail"] != os.devnull
        self._file = os.open(job["trail"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, what: str, **more: Any) -> None:
        line = json.dumps({"what": what, "pid": os.getpid(), **more}) + "\n"
        os.write(self._file, line.encode())
        if what == "effect" and self.is_file:
            os.fsync(self._file)

    async def reach(self, name: str) -> None:
        """A point. Nothing after it happens in a process that ends here."""
        self.points += 1
        if self.how == "list":
            self.write("point", name=name)
        if self.points != self.at:
            return
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        # Asleep in a transaction it would hold a lock of the database, and nobody could take over.
        while self.writing:  # noqa: ASYNC110  # there may be several writes at once
            await anyio.sleep(0.001)
        self.write("asleep")
        os.kill(os.getpid(), signal.SIGSTOP)

    async def effect(self, tool_name: str, call_name: str, key: str = "", **more: Any) -> None:
        await self.reach(f"{tool_name} {call_name} before its effect")
        await anyio.sleep(self.pause)
        self.write("effect", tool=tool_name, call=call_name, key=key, **more)
        await self.reach(f"{tool_name} {call_name} after its effect")
        await anyio.sleep(self.pause)
        await self.reach(f"{tool_name} {call_name} before its end")


# --- tools, policy, model ------------------------------------------------------------------------


@tool_fn(effect="read")
async def look(task: str, *, world: Skip[World]) -> str:
    """Look something up."""
    await world.effect("look", task)
    if task == "nothing":
        raise ToolError("there is no such thing")
    return f"{task} is there"


@tool_fn(effect="idempotent")
async def save(task: str, *, world: Skip[World], key: Skip[IdempotencyKey]) -> str:
    """Save something."""
    await world.effect("save", task, str(key))
    return f"{task} is saved"


@tool_fn(effect="once")
async def charge(task: str, amount: int, *, world: Skip[World]) -> str:
    """Charge somebody."""
    await world.effect("charge", task)
    return f"{amount} for {task}"


@tool_fn(effect="once", late=True)
async def render(task: str, *, world: Skip[World], ticket: Skip[CallTicket]) -> str:
    """Render something, which takes its time. Whoever reads the trail can deliver it."""
    await world.effect("render", task, ticket=ticket.dump())
    raise Later("soon")


class Desk(Toolset):
    look = tool(look)
    save = tool(save)
    charge = tool(charge)
    render = tool(render)


def policy(request: BaseToolCall) -> ToolDecision[Any, Any]:
    amount = getattr(getattr(request, "input", None), "amount", None)
    if amount == FORBIDDEN:
        return Reject("not that much")
    return Hold("a person decides") if amount == TOO_MUCH else RunNormally()


def look_up(task: str) -> Any:
    return call("look", task, task=task)


def save_it(task: str) -> Any:
    return call("save", task, task=task)


def pay(task: str, amount: int) -> Any:
    return call("charge", task, task=task, amount=amount)


def rounds() -> list[Reply]:
    """Every kind of call. The id of a call is its task, so the trail names it."""
    return [
        calls(look_up("read")),
        calls(save_it("saved")),
        calls(pay("paid", 1)),
        calls(pay("three-a", 2), pay("three-b", 3), pay("three-c", 4)),
        calls(pay("rejected", FORBIDDEN), call("nonsense", "unknown", x=1), look_up("nothing")),
        calls(pay("held", TOO_MUCH), look_up("beside")),
        calls(look_up("all-r"), save_it("all-i"), pay("all-o", 5)),
        Reply(text="It is done.", usage=(10, 5)),
    ]


def short() -> list[Reply]:
    return [calls(pay("paid", 1)), Reply(text="It is done.", usage=(10, 5))]


def never_the_same() -> list[Reply]:
    """Other arguments at each request: whoever asks twice for one task charges for it twice."""
    dice = random.SystemRandom()
    paid = [calls(pay(f"task-{n}", dice.randint(1, 500))) for n in range(3)]
    return [*paid, Reply(text="It is done.", usage=(10, 5))]


def late() -> list[Reply]:
    """Two results that come later, a third one behind the first; then it may say so often."""
    said = Reply(text="It is done.", usage=(10, 5))
    return [calls(render_it("a"), render_it("b")), calls(render_it("c")), *[said] * 12]


def render_it(task: str) -> Any:
    return call("render", task, task=task)


SCRIPTS: dict[str, Any] = {
    "rounds": rounds,
    "short": short,
    "never the same": never_the_same,
    "late": late,
}


class CountingModel(Model):
    """Writes each request to the trail, with the round that it is for."""

    def __init__(
        self, script: Sequence[Reply], world: World, scope: str, api: str = "openai_chat"
    ) -> None:
        super().__init__(script, api)
        self.world = world
        self.scope = scope

    def _next(self, transcript: Any) -> ScriptedModel:
        if self.api != "openai_responses":
            return super()._next(transcript)
        # Calls stay open there, by a model that knows how.
        self.requests += 1
        reply = self.script[len(transcript.turns())]
        return ScriptedModel([reply], api=self.api, model="gpt-6-astra")

    async def respond(self, transcript: Any, offering: Any, options: Any) -> Any:
        round = len(transcript.turns()) + 1
        self.world.write("request", round=round, scope=self.scope)
        await self.world.reach(f"request {round} sent")
        answer = await super().respond(transcript, offering, options)
        await self.world.reach(f"request {round} answered")
        return answer


class WatchedStore:
    """A store with a point before and after each write.

    Args:
        store: The store.
        world: Where the points are.
        blind: Whether markers are forgotten: the negative control.
    """

    def __init__(self, store: Any, world: World, *, blind: bool = False) -> None:
        self.store = store
        self.world = world
        self.blind = blind

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)
        return partial(self._write, name, method) if name in WRITES else method

    async def renew(self, claim: Claim) -> None:
        # By a clock, so it is no point.
        self.world.writing += 1
        try:
            await self.store.renew(claim)
        finally:
            self.world.writing -= 1

    async def _write(self, name: str, method: Any, *args: Any, **options: Any) -> Any:
        record = args[1] if name in ("record", "begin") else ""
        await self.world.reach(f"before {name} {record}")
        self.world.writing += 1
        try:
            value = await method(*args, **options)
            claim = value if isinstance(value, Claim) else args[0]
            if isinstance(claim, Claim):
                self.world.write("wrote", name=name, record=record, round=claim.round)
        finally:
            self.world.writing -= 1
        await self.world.reach(f"after {name} {record}")
        return True if self.blind and name == "begin" else value


# --- jobs ----------------------------------------------------------------------------------------


def make_loop(job: dict[str, Any], world: World, store: Any, scope: str) -> DurableLoop[Any, Any]:
    return DurableLoop(
        WatchedStore(store, world, blind=job.get("blind", False)),  # type: ignore[arg-type]
        CountingModel(  # type: ignore[arg-type]
            SCRIPTS[job.get("script", "rounds")](), world, scope, job.get("api", "openai_chat")
        ),
        tools=Desk,
        dispatch=Dispatcher(Desk, context={"world": world}),
        hooks=policy,
        lease=job["lease"],
        events=job.get("events", False),
        **job.get("options", {}),
    )


async def finish(job: dict[str, Any], world: World) -> None:
    """Go on with the conversation until it is answered, as often as that takes."""
    scope = job["scope"]
    async with open_store(job["kind"], job["place"]) as store:
        loop = make_loop(job, world, store, scope)
        await WatchedStore(store, world).create(scope, asked())
        while True:
            done = await loop.run(scope)
            if isinstance(done, Answered):
                result = done.result
                world.write("answered", stopped_by=result.stopped_by, rounds=result.rounds)
                return
            if isinstance(done, Waiting):
                edited = {"task": done.held[0], "amount": ALLOWED}
                decision: Any = {"decision": "run", "input": edited}
                try:
                    await loop.decide(scope, done.digest, {done.held[0]: decision}, by="ann")
                except StoreError as error:
                    # While this one slept the plan was decided, and its round committed (rule P16).
                    if error.kind != "plan":
                        raise
                    world.write("taken over")
            else:
                await anyio.sleep(0.01)


async def finish_late(job: dict[str, Any], world: World) -> None:
    """Go on until nothing is open, and deliver in between what the trail says was begun.

    Each result is delivered as often as the job's dice say, whether or not it was before. A call
    whose job was never begun has no ticket, so it is withdrawn.
    """
    scope, dice = job["scope"], random.Random(job["dice"])
    async with open_store(job["kind"], job["place"]) as store:
        loop = make_loop(job, world, store, scope)
        await WatchedStore(store, world).create(scope, asked())
        while True:
            done = await loop.run(scope)
            if isinstance(done, Answered) and not done.result.open_calls:
                world.write("answered", stopped_by=done.result.stopped_by)
                return
            tickets = tickets_in(Path(job["trail"]))
            for ticket in tickets.values():
                for _ in range(dice.randint(1, 3)):
                    await loop.deliver(ticket, f"value of {ticket.call_id}")
            opened = done.open if isinstance(done, Waiting) else ()
            if isinstance(done, Answered):
                opened = done.result.open_calls
            for open_call in opened:
                if open_call.call_id not in tickets:
                    await loop.withdraw(scope, open_call.call_id, reason="never begun", by="ann")
            if not opened:
                await anyio.sleep(0.01)


def tickets_in(trail: Path) -> dict[str, CallTicket]:
    """The tickets of the calls that were begun, by call id."""
    lines = [json.loads(line) for line in trail.read_text().splitlines()]
    loaded = [CallTicket.load(line["ticket"]) for line in lines if "ticket" in line]
    return {ticket.call_id: ticket for ticket in loaded}


async def race(job: dict[str, Any], world: World) -> None:
    """Call `run` once for each of many conversations, at the same moment as other processes."""
    async with open_store(job["kind"], job["place"]) as store:
        for number in range(job["count"]):
            scope = f"race {number}"
            await store.create(scope, asked())
            loop = make_loop(job, world, store, scope)
            meet(world, Path(job["trail"]), scope, job["processes"])
            done = await loop.run(scope)
            world.write("ended", scope=scope, how=type(done).__name__)


def meet(world: World, trail: Path, scope: str, count: int) -> None:
    """Wait until so many processes are here."""
    world.write("ready", scope=scope)
    ready = f'"scope": "{scope}"'
    end = time.monotonic() + 30
    while time.monotonic() < end:
        lines = trail.read_text().splitlines()
        if sum('"ready"' in line and ready in line for line in lines) >= count:
            return
        time.sleep(0.0005)
    raise TimeoutError(f"the others didn't come to {scope}")


def do(job: dict[str, Any]) -> int:
    world = World(job)
    target: Any = race if "count" in job else finish
    if job.get("script") == "late":
        target = finish_late
    if "moment" in job:
        # Nothing handles it, so the process ends at once, as by SIGKILL, wherever it is.
        signal.setitimer(signal.ITIMER_REAL, job["moment"])
    try:
        anyio.run(target, job, world, backend=job.get("backend", "asyncio"))
    except TakenOverError:
        world.write("taken over")
    except BaseException:
        world.write("error", text=traceback.format_exc())
        return 1
    return 0


def warm_up() -> None:
    """Have everything loaded that a job needs, for the children; leaves no thread behind."""

    async def work() -> None:
        store = MemoryStore()
        await store.create("s", asked())
        world = World({"trail": os.devnull})
        await make_loop({"script": "short", "lease": 1.0}, world, store, "s").run("s")

    for backend in ("asyncio", "trio"):
        anyio.run(work, backend=backend)


def serve() -> None:
    """Do jobs until the input ends; each in a child, whose fate is told."""

    def tell(**what: Any) -> None:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()

    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(do(json.loads(line)))
        tell(pid=pid)
        while True:
            _, status = os.waitpid(pid, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                tell(stopped=True)
                continue
            tell(ended=os.waitstatus_to_exitcode(status))
            break


if __name__ == "__main__":
    warm_up()
    serve()
