"""Quick start on Chat Completions: declare tools, group them, offer them, run what the model asks,
commit, go on.

A tea shop with two tools: a function, and a class for what other code carries out. A type checker
proves that the loop handles every tool, and the library explains to the model what it wrote
wrongly.

Run:    python examples/quickstart_chat.py            a scripted model, no key
        python examples/quickstart_chat.py --live     OpenAI, with OPENAI_API_KEY;
                                                      --model NAME for another model,
                                                      OPENAI_BASE_URL for any compatible host
Prints: what the model was told about its mistake, its answer, and the receipt of what it ordered.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Literal

from pydantic import BaseModel
from typing_extensions import assert_never

from lutumpy import (
    AdapterError,
    Finished,
    Model,
    NeedsTools,
    Session,
    Skip,
    ToolCall,
    ToolError,
    ToolInput,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 10

# 1. Declare: a function, or a class for what your code carries out elsewhere.

Prices = dict[str, float]


@tool_fn(effect="read")
async def get_price(item: str, *, prices: Skip[Prices]) -> float:
    """Look a price up.

    Args:
        item: What is sold, in the singular.
    """
    if item not in prices:
        raise ToolError(f"there is no {item}; we sell: {', '.join(prices)}")
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


async def talk(llm: Model, question: str, prices: Prices) -> tuple[str, list[Receipt]]:
    """Ask until there is an answer; give that, and what was ordered on the way."""
    receipts: list[Receipt] = []
    session = Session()
    session.push_system("You sell tea and what belongs to it.")
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        match await session.text_turn(llm, tools=Shop).collect():
            case Finished(result=result):
                return result.refusal or result.text, receipts
            case NeedsTools(round=round):
                results = []
                for call in round.calls:
                    try:
                        if Shop.get_price.matches(call):
                            results.append(call.complete(await call.call(prices=prices)))
                        elif Shop.order.matches(call):
                            wanted = call.input  # an Order: validated, typed
                            total = wanted.count * await get_price(wanted.item, prices=prices)
                            receipts.append(Receipt(number=len(receipts) + 1, total=total))
                            results.append(call.complete(receipts[-1]))
                        else:
                            assert_never(call)
                    except ToolError as error:
                        results.append(call.fail(str(error)))
                for issue in round.issues:
                    print(f"{issue.metadata.name} can't be run: {issue.detail}")
                # The turn and one result for each call, or nothing. Issues are answered here too.
                round.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds.", receipts


# What the scripted model says: one mistake included.
SCRIPT = [
    Reply(calls=[Call("get_price", {"item": "teapot"}), Call("get_price", {"item": "cup"})]),
    Reply(calls=[Call("order", {"item": "cup", "count": "four", "delivery": "post"})]),
    Reply(calls=[Call("order", {"item": "cup", "count": 4, "delivery": "post"})]),
    Reply(text="I ordered four cups for 22.00; they come by post."),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
    prices = {"teapot": 24.0, "cup": 5.5}
    try:
        text, receipts = await talk(
            llm, "I have a teapot. Please order four cups, by post.", prices
        )
    except AdapterError as error:
        parser.exit(2, f"{error}\n")
    print(text)
    print(*receipts, sep="\n")


if __name__ == "__main__":
    asyncio.run(main())
