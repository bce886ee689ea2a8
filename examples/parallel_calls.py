"""Parallel calls with the executor: several at once in the event loop and in threads, with limits,
a retry, and no call twice.

A stock room. `count` reads, so an attempt that hangs is tried again; `order` pays, so it gets a key
that stays the same for each attempt. Two counts run at once at most, and the same count twice in
one answer is run once.

Run:    python examples/parallel_calls.py            a scripted model, no key
        python examples/parallel_calls.py --live     OpenAI, with OPENAI_API_KEY;
                                                     --model NAME for another model,
                                                     OPENAI_BASE_URL for any compatible host
Prints: what became of each call after how many attempts, how many counts ran at once, and the
answer.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from dataclasses import dataclass, field

from lutumpy import (
    AdapterError,
    Finished,
    Model,
    NeedsTools,
    Session,
    Skip,
    ToolError,
    ToolInput,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import Dispatcher, ExecutionReport, IdempotencyKey, ToolExecutor
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 8


@dataclass
class StockRoom:
    """The application's own; the model never sees it."""

    copies: dict[str, int]
    payments: dict[str, int] = field(default_factory=dict)
    hiccups: int = 1
    counting: int = 0
    most_counting: int = 0


@tool_fn(effect="read", timeout=0.2)
async def count(title: str, *, room: Skip[StockRoom]) -> int:
    """Count the copies of a book."""
    if title not in room.copies:
        raise ToolError(f"There is no shelf for {title!r}.")
    room.counting += 1
    room.most_counting = max(room.most_counting, room.counting)
    try:
        if title == "Emma" and room.hiccups:
            room.hiccups -= 1
            await asyncio.Event().wait()  # the scanner hangs; the second attempt will do
        await asyncio.sleep(0)
    finally:
        room.counting -= 1
    return room.copies[title]


@tool_input(name="order", effect="idempotent")
class Order(ToolInput[str]):
    """Order copies of a book."""

    title: str
    copies: int


class Stock(Toolset):
    count = tool(count)
    order = tool(Order)


def dispatcher(room: StockRoom) -> Dispatcher[Stock]:
    """What runs which tool: `count` runs itself, `order` has a plain function, which runs in a
    thread.
    """
    dispatch = Dispatcher(Stock, context={"room": room})

    @dispatch.on(Stock.order)
    def order(input: Order, *, room: StockRoom, key: IdempotencyKey) -> str:
        if key not in room.payments:  # the same key again changes nothing
            room.payments[key] = input.copies
            room.copies[input.title] = room.copies.get(input.title, 0) + input.copies
        return "ordered"

    return dispatch


async def talk(llm: Model, question: str, room: StockRoom) -> str:
    """The loop is yours; the executor gives one result for each call, also when interrupted."""
    dispatch = dispatcher(room)
    executor = ToolExecutor(
        max_concurrency=4, limits={Stock.count: 2}, deduplicate=True, backoff=0.01
    )
    session = Session()
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        match await session.text_turn(llm, tools=Stock).collect():
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=round):
                report = ExecutionReport()
                try:
                    await executor.run(round.calls, dispatch, scope="conversation 1", report=report)
                finally:
                    results = report.results(round.calls)
                    round.commit(
                        session, results
                    )  # a payment that was made is not forgotten, whatever happens
                for ran in results:
                    tries = f"{ran.attempts} attempt{'' if ran.attempts == 1 else 's'}"
                    print(
                        f"  {ran.metadata.name} {ran.metadata.arguments}: {ran.outcome} after "
                        f"{tries}"
                    )
    return f"No answer after {MAX_ROUNDS} rounds."


SCRIPT = [
    Reply(
        calls=[
            Call("count", {"title": "Dune"}),
            Call("count", {"title": "Emma"}),
            Call("count", {"title": "Ulysses"}),
            Call("order", {"title": "Dune", "copies": 2}),
            Call("count", {"title": "Dune"}),
        ]
    ),
    Reply(text="I ordered two of Dune; of Emma there are enough."),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
    # Failures are logged as warnings; here they are part of the show.
    logging.getLogger("lutumpy.execution").setLevel(logging.ERROR)
    room = StockRoom({"Dune": 0, "Emma": 7})
    try:
        text = await talk(
            llm, "How many of Dune, Emma and Ulysses? Order two of what is missing.", room
        )
    except AdapterError as error:
        parser.exit(2, f"{error}\n")
    print(
        f"{room.most_counting} counts ran at once; {room.copies['Dune']} of Dune, "
        f"{room.copies['Emma']} of Emma"
    )
    print(text)


if __name__ == "__main__":
    asyncio.run(main())
