"""A help desk in one page: declare tools, group them, offer them, run what the model asks, commit, go on.

Runs without a key: the answers come from a test server on this machine. For a real model leave `base_url` and `api_key`
out, name the model, and set OPENAI_API_KEY.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from openai import AsyncOpenAI
from pydantic import BaseModel
from typing_extensions import assert_never

from lutumpy import Finished, NeedsTools, Session, Skip, ToolCall, ToolInput, Toolset, tool, tool_fn, tool_input
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Call, Reply, serve

# 1. Declare: a function, or a class for what your code runs elsewhere.

Prices = dict[str, float]


@tool_fn(effect="read")
async def get_price(item: str, *, prices: Skip[Prices]) -> float:
    """Look a price up.

    Args:
        item: What is sold, in the singular.
    """
    return prices[item]


class Receipt(BaseModel):
    number: int
    total: float


@tool_input(name="order")
class Order(ToolInput[Receipt]):
    """Order something."""

    item: str
    count: int = 1
    delivery: Literal["pickup", "post"]
    """How it gets to the customer."""


# 2. Group. The union names every call, so that a type checker knows when one is forgotten.


class Shop(Toolset[ToolCall[BaseModel, float] | ToolCall[Order, Receipt]]):
    get_price = tool(get_price)
    order = tool(Order)


# 3. The loop is yours.


async def talk(llm: OpenAIChat, question: str, prices: Prices) -> tuple[str, list[Receipt]]:
    """Ask until there is an answer; give that, and what was ordered on the way."""
    receipts: list[Receipt] = []
    session = Session()
    session.push_system("You sell tea and what belongs to it.")
    session.push_user(question)
    while True:
        match await session.text_turn(llm, tools=Shop).collect():
            case Finished(result=result):
                return result.text, receipts
            case NeedsTools(round=round):
                results = []
                for call in round.calls:
                    if Shop.get_price.matches(call):
                        results.append(call.complete(await call.call(prices=prices)))
                    elif Shop.order.matches(call):
                        wanted = call.input  # an Order: validated, typed
                        total = prices[wanted.item] * wanted.count
                        receipts.append(Receipt(number=len(receipts) + 1, total=total))
                        results.append(call.complete(receipts[-1]))
                    else:
                        assert_never(call)
                # The turn and one result for each call, or nothing. What the model got wrong is answered here too.
                round.commit(session, results)


# What the test server says in place of a model: one mistake included, which the library explains to the model.
SCRIPT = [
    Reply(calls=[Call("get_price", {"item": "teapot"}), Call("get_price", {"item": "cup"})]),
    Reply(calls=[Call("order", {"item": "cup", "count": "four", "delivery": "post"})]),
    Reply(calls=[Call("order", {"item": "cup", "count": 4, "delivery": "post"})]),
    Reply(text="I ordered four cups for 22.00; they come by post."),
]


async def main() -> None:
    async with (
        serve(SCRIPT) as server,
        AsyncOpenAI(base_url=server.openai_base_url, api_key="no-key-needed") as client,
    ):
        text, receipts = await talk(
            OpenAIChat("any-model", client=client),
            "I have a teapot. Please order four cups, by post.",
            {"teapot": 24.0, "cup": 5.5},
        )
    print(text)
    print(*receipts, sep="\n")


if __name__ == "__main__":
    asyncio.run(main())
