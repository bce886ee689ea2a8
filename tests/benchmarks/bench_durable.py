"""What a round costs where it outlives the process, beside `run_tools` in the same run.

CPU of this process, best of several: a round with one `read` call, and one with three `once` calls,
in each store; round 200 beside round 2; and a plan of five calls that is written and taken up
again. Postgres where it can be started; its own processes aren't counted.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "durable"))

from postgres_server import serve_postgres, why_not

from lutumpy import NeedsTools, Session, ToolRoundPlan, Toolset, tool, tool_fn
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.durable import DurableLoop, MemoryStore, PostgresStore, SqliteStore
from lutumpy.execution import Dispatcher
from lutumpy.loops import run_tools
from lutumpy.testing import Call, Reply, ScriptedModel, render

ROUNDS = 40


@tool_fn(effect="read")
async def look(word: str) -> str:
    """Look a word up."""
    return word


@tool_fn(effect="once")
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


class Desk(Toolset):
    look = tool(look)
    pay = tool(pay)


DISPATCH = Dispatcher(Desk)


def reads(number: int) -> list[Call]:
    return [Call("look", {"word": f"w{number:04}"}, id=f"c{number}")]


def payments(number: int) -> list[Call]:
    return [
        Call("pay", {"amount": number * 3 + index}, id=f"c{number}_{index}") for index in range(3)
    ]


def model(calls: Callable[[int], list[Call]], rounds: int) -> ScriptedModel:
    replies = [Reply(calls=calls(number)) for number in range(rounds)]
    return ScriptedModel([*replies, Reply(text="done")])


def begun() -> Session:
    session = Session()
    session.push_user("go")
    return session


async def seconds_of_cpu(run: Callable[[], Awaitable[Any]]) -> float:
    start = time.process_time()
    await run()
    return time.process_time() - start


async def plain(calls: Callable[[int], list[Call]], rounds: int) -> float:
    """Seconds of CPU for a round of `run_tools`."""
    llm, session = model(calls, rounds), begun()
    run = run_tools(session, llm, tools=Desk, dispatch=DISPATCH, max_rounds=1000)
    return await seconds_of_cpu(lambda: run) / rounds


async def durable(store: Any, scope: str, calls: Callable[[int], list[Call]], rounds: int) -> float:
    """Seconds of CPU for a round of a durable loop."""
    llm = model(calls, rounds)
    loop = DurableLoop(store, llm, tools=Desk, dispatch=DISPATCH, max_rounds=1000)
    await store.create(scope, begun())
    return await seconds_of_cpu(lambda: loop.run(scope)) / rounds


async def measure(
    calls: Callable[[int], list[Call]], make_store: Callable[[Path], Any], tries: int = 5
) -> tuple[float, float]:
    """Seconds of CPU for a round of `run_tools`, and of a durable loop: the best, in turns."""
    best = [float("inf"), float("inf")]
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            store = make_store(Path(folder) / "a.db")
            if hasattr(store, "__aenter__"):
                await stack.enter_async_context(store)
            await store.create("first", begun())  # opens the file, or connects
            for number in range(tries):
                best[0] = min(best[0], await plain(calls, ROUNDS))
                best[1] = min(
                    best[1], await durable(store, f"{calls.__name__} {number}", calls, ROUNDS)
                )
    return best[0], best[1]


def measure_plan(count: int = 200) -> float:
    """Seconds to write a plan of five calls down and to take it up again."""
    session = begun()
    five = [Call("look", {"word": f"w{number}"}, id=f"c{number}") for number in range(5)]
    turn = OpenAIChat.response(render(Reply(calls=five), "openai_chat", number=1, model="m"))
    best = float("inf")
    for _ in range(count):
        outcome = Desk.offer().read(turn, session)
        assert isinstance(outcome, NeedsTools)
        start = time.process_time()
        data = outcome.round.suspend(scope="s")
        twin: ToolRoundPlan[Any] = ToolRoundPlan.resume(
            json.loads(json.dumps(data)), session, tools=Desk, scope="s"
        )
        best = min(best, time.process_time() - start)
        twin.discard()
    return best


def main() -> None:
    with ExitStack() as stack:
        stores: dict[str, Callable[[Path], Any]] = {
            "memory": lambda path: MemoryStore(),
            "sqlite": SqliteStore,
        }
        if why_not():
            print(f"no Postgres: {why_not()}")
        else:
            url = stack.enter_context(serve_postgres())
            stores["postgres"] = lambda path: PostgresStore(url)
        for name, make_store in stores.items():
            for calls in (reads, payments):
                alone, kept = asyncio.run(measure(calls, make_store))
                print(
                    f"{name:9} {calls.__name__:9} run_tools {alone * 1e3:5.2f} ms   "
                    f"durable {kept * 1e3:5.2f} ms   {kept / alone:.2f}"
                )
    print(f"a plan of five calls, written and taken up again: {measure_plan() * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
