"""The whole loop in one call, async and sync: `run_tools` with a policy, progress, and limits.

A travel desk looks trains up and books one. The policy keeps it below a price, and the executor runs what is left, several
calls at once. Runs without a key: the answers come from a test server on this machine. For a real model leave `base_url` and
`api_key` out, name the model, and set OPENAI_API_KEY.
"""

from __future__ import annotations

import asyncio

from openai import AsyncOpenAI, OpenAI

from lutumpy import (
    BaseToolCall,
    Reject,
    RunNormally,
    Session,
    Skip,
    ToolDecision,
    ToolInput,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.loops import LoopEvent, LoopResult, RoundExecuted, RoundPlanned, run_tools, run_tools_sync
from lutumpy.testing import Call, Reply, serve

Fares = dict[str, float]


@tool_fn(effect="read")
async def find_trains(city: str, *, fares: Skip[Fares]) -> dict[str, float]:
    """Find trains to a city, with their fares.

    Args:
        city: Where to.
    """
    return {name: fare for name, fare in fares.items() if name.endswith(city)}


@tool_input(name="book")
class Book(ToolInput[str]):
    """Book a seat."""

    train: str
    fare: float


class Trains(Toolset):
    find_trains = tool(find_trains)
    book = tool(Book)


def dispatcher(fares: Fares) -> Dispatcher[Trains]:
    """Functions run themselves; what is declared by its input has a handler."""
    dispatch = Dispatcher(Trains, context={"fares": fares})

    @dispatch.on(Trains.book)
    def book(input: Book) -> str:
        return f"seat 12 in {input.train}"

    return dispatch


def affordable(call: BaseToolCall) -> ToolDecision:
    """A policy: looks at every call before it runs."""
    if Trains.book.matches(call) and call.input.fare > 50:
        return Reject("more than 50 needs a signature")
    return RunNormally(call.input)


def show(event: LoopEvent) -> None:
    """Progress, as the loop goes."""
    if isinstance(event, RoundPlanned):
        for rejected in event.rejected:
            print(f"  round {event.round}: {rejected.metadata.name} rejected: {rejected.reason}")
    elif isinstance(event, RoundExecuted):
        for result in event.results:
            print(f"  round {event.round}: {result.metadata.name} {result.status}: {result.content}")


FARES = {"night train to Rome": 79.0, "slow train to Rome": 39.0}

SCRIPT = [
    Reply(calls=[Call("find_trains", {"city": "Rome"}), Call("find_trains", {"city": "Naples"})]),
    Reply(calls=[Call("book", {"train": "night train to Rome", "fare": 79})]),
    Reply(calls=[Call("book", {"train": "slow train to Rome", "fare": 39})]),
    Reply(text="You have seat 12 in the slow train to Rome."),
]


def asked() -> Session:
    session = Session()
    session.push_system("You book trains.")
    session.push_user("A train to Rome, please, or to Naples if that is cheaper.")
    return session


async def travel() -> LoopResult:
    async with serve(SCRIPT) as server, AsyncOpenAI(base_url=server.openai_base_url, api_key="no-key-needed") as client:
        return await run_tools(
            asked(),
            OpenAIChat("any-model", client=client),
            tools=Trains,
            dispatch=dispatcher(FARES),
            hooks=affordable,
            executor=ToolExecutor(max_concurrency=4, deduplicate=True),
            max_rounds=8,
            token_budget=20_000,
            on_progress=show,
        )


def travel_sync() -> LoopResult:
    with serve(SCRIPT) as server, OpenAI(base_url=server.openai_base_url, api_key="no-key-needed") as client:
        return run_tools_sync(
            asked(), OpenAIChat("any-model", client=client), tools=Trains, dispatch=dispatcher(FARES), hooks=affordable
        )


def main() -> None:
    done = asyncio.run(travel())
    print(f"{done.text} ({done.stopped_by} after {done.rounds} rounds)")
    print(travel_sync() == done)


if __name__ == "__main__":
    main()
