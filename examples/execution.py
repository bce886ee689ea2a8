"""A stock room: several calls at once, in the event loop and in threads, with a limit, a retry, and one payment for each order.

Runs without a key: the answers come from a script. For a real model put an adapter in place of `ScriptedModel`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import dataclass, field

from lutumpy import NeedsTools, Session, Skip, ToolError, ToolInput, Toolset, tool, tool_fn, tool_input
from lutumpy.execution import Dispatcher, IdempotencyKey, ToolExecutor
from lutumpy.testing import Call, Reply, ScriptedModel

# 1. The application's own things. The model never sees them.


@dataclass
class StockRoom:
    copies: dict[str, int]
    payments: dict[str, int] = field(default_factory=dict)
    hiccups: int = 1
    counting: int = 0
    most_counting: int = 0


# 2. Tools. Their effects say what may be repeated: reading may, and paying too, since the backend knows each payment by a key.


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
            await asyncio.sleep(60)  # the scanner hangs; the second attempt will do
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


# 3. What runs them. `count` runs itself; `order` needs a handler, a plain function that runs in a thread.


def dispatcher(room: StockRoom) -> Dispatcher[Stock]:
    dispatch = Dispatcher(Stock, context={"room": room})

    @dispatch.on(Stock.order)
    def order(input: Order, *, room: StockRoom, key: IdempotencyKey) -> str:
        assert threading.current_thread() is not threading.main_thread()
        room.payments.setdefault(key, input.copies)  # the same key again changes nothing
        room.copies[input.title] += input.copies
        return "ordered"

    return dispatch


# 4. The loop is yours; the executor gives one result for each call.


async def talk(llm: ScriptedModel, question: str, room: StockRoom) -> str:
    dispatch = dispatcher(room)
    executor = ToolExecutor(max_concurrency=4, limits={Stock.count: 2}, deduplicate=True, backoff=0.01)
    session = Session()
    session.push_user(question)
    while True:
        outcome = await session.text_turn(llm, tools=Stock).collect()
        if not isinstance(outcome, NeedsTools):
            return outcome.result.text
        round = outcome.round
        results = await executor.run(round.calls, dispatch, scope="conversation 1")
        for result in results:
            tries = f"{result.attempts} attempt{'' if result.attempts == 1 else 's'}"
            print(f"  {result.metadata.id} {result.metadata.name}: {result.outcome} after {tries}")
        round.commit(session, results)


SCRIPT = [
    Reply(
        calls=[
            Call("count", {"title": "Dune"}, id="call_1"),
            Call("count", {"title": "Emma"}, id="call_2"),
            Call("count", {"title": "Ulysses"}, id="call_3"),
            Call("order", {"title": "Dune", "copies": 2}, id="call_4"),
            Call("count", {"title": "Dune"}, id="call_5"),
        ]
    ),
    Reply(text="I ordered two of Dune; of Emma there are enough."),
]


async def main() -> None:
    # Failures are logged as warnings, with their tracebacks where nobody expected them. Here they are part of the show.
    logging.getLogger("lutumpy.execution").setLevel(logging.ERROR)
    room = StockRoom({"Dune": 0, "Emma": 7})
    text = await talk(ScriptedModel(SCRIPT), "How many of Dune, Emma and Ulysses? Order two of what is missing.", room)
    print(f"{room.most_counting} counts ran at once; {room.copies['Dune']} of Dune, {room.copies['Emma']} of Emma")
    print(text)


if __name__ == "__main__":
    asyncio.run(main())
