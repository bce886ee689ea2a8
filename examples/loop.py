"""The whole loop in one call, async or sync: `run_tools` with a policy, progress, and limits.

A travel desk looks trains up and books one. The policy keeps it below a price, and the executor
runs what is left, several calls at once.

Run:    python examples/loop.py            a scripted model, no key; --sync without an event loop
        python examples/loop.py --live     OpenAI, with OPENAI_API_KEY;
                                           --model NAME for another model,
                                           OPENAI_BASE_URL for any compatible host
Prints: what was rejected, what was run, the answer, and why the loop stopped.
"""

from __future__ import annotations

import argparse
import asyncio

from lutumpy import (
    AdapterError,
    Model,
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
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import (
    LoopEvent,
    LoopResult,
    RoundExecuted,
    RoundPlanned,
    run_tools,
    run_tools_sync,
)
from lutumpy.testing import Call, Reply, ScriptedModel

Fares = dict[str, float]
FARES: Fares = {"night train to Rome": 79.0, "slow train to Rome": 39.0}


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
            print(
                f"  round {event.round}: {result.metadata.name} {result.status}: {result.content}"
            )


def asked() -> Session:
    session = Session()
    session.push_system("You book trains.")
    session.push_user("A train to Rome, please, or to Naples if that is cheaper.")
    return session


async def travel(llm: Model) -> LoopResult:
    return await run_tools(
        asked(),
        llm,
        tools=Trains,
        dispatch=dispatcher(FARES),
        hooks=affordable,
        executor=ToolExecutor(max_concurrency=4, deduplicate=True),
        max_rounds=8,
        token_budget=20_000,
        on_progress=show,
    )


def travel_sync(llm: Model) -> LoopResult:
    return run_tools_sync(
        asked(),
        llm,
        tools=Trains,
        dispatch=dispatcher(FARES),
        hooks=affordable,
        max_rounds=8,
        on_progress=show,
    )


SCRIPT = [
    Reply(calls=[Call("find_trains", {"city": "Rome"}), Call("find_trains", {"city": "Naples"})]),
    Reply(calls=[Call("book", {"train": "night train to Rome", "fare": 79})]),
    Reply(calls=[Call("book", {"train": "slow train to Rome", "fare": 39})]),
    Reply(text="You have seat 12 in the slow train to Rome."),
]


def model(options: argparse.Namespace) -> Model:
    return OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    parser.add_argument("--sync", action="store_true", help="without an event loop")
    options = parser.parse_args()
    try:
        done = travel_sync(model(options)) if options.sync else asyncio.run(travel(model(options)))
    except AdapterError as error:
        parser.exit(2, f"{error}\n")
    print(f"{done.text} ({done.stopped_by} after {done.rounds} rounds)")


if __name__ == "__main__":
    main()
