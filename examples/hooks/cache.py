"""A cache hook in front of tools that only read: the second call with the same arguments is
answered without running anything.

Run:    python examples/hooks/cache.py            a scripted model, no key
        python examples/hooks/cache.py --live     OpenAI, with OPENAI_API_KEY;
                                                  --model NAME for another model,
                                                  OPENAI_BASE_URL for any compatible host
Prints: how many calls of each round were run and how many the cache answered, and the answer.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from lutumpy import (
    AdapterError,
    Complete,
    Finished,
    Model,
    NeedsTools,
    RunNormally,
    Session,
    ToolDecision,
    ToolError,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.hooks import BaseToolCall
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 8
RATES = {"USD": 1.08, "JPY": 169.5}


@tool_fn(effect="read")
async def exchange_rate(currency: str) -> float:
    """How much of a currency one euro buys."""
    print(f"  looking {currency} up")
    if currency not in RATES:
        raise ToolError(f"no rate of {currency} is known; there are: {', '.join(RATES)}")
    return RATES[currency]


@tool_fn
async def order(currency: str, amount: int) -> str:
    """Order foreign cash."""
    print(f"  ordering {amount} {currency}")
    return "ordered"


class Bank(Toolset):
    exchange_rate = tool(exchange_rate)
    order = tool(order)


class Cache:
    """Remembers the outputs of tools that only read, by tool and validated input.

    Validated, so `{"currency":"USD"}` and `{ "currency": "USD" }` are one entry. It is a policy:
    where other hooks edit inputs, apply it in a pass of its own after theirs, or it answers for an
    input that would not have been run.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Any] = {}

    @staticmethod
    def _key(call: BaseToolCall) -> tuple[str, str]:
        return call.metadata.name, call.input.model_dump_json()

    def __call__(self, call: BaseToolCall) -> ToolDecision:
        key = self._key(call)
        return Complete(self._known[key]) if key in self._known else RunNormally(call.input)

    def remember(self, call: BaseToolCall, output: Any) -> None:
        if call.selector.definition.options.effect == "read":
            self._known[self._key(call)] = output


async def talk(llm: Model, question: str) -> str:
    cache = Cache()
    session = Session()
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        match await session.text_turn(llm, tools=Bank).collect():
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=round):
                plan = await round.apply_hooks(cache)
                print(f"{len(plan.pending)} to run, {len(plan.handled)} from the cache")
                results = []
                for call in plan.pending:
                    try:
                        output = await call.call()
                    except ToolError as error:
                        results.append(call.fail(str(error)))
                    else:
                        cache.remember(call, output)
                        results.append(call.complete(output))
                plan.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds."


SCRIPT = [
    Reply(
        calls=[
            Call("exchange_rate", {"currency": "USD"}),
            Call("exchange_rate", {"currency": "JPY"}),
        ]
    ),
    Reply(
        calls=[
            Call("exchange_rate", '{ "currency": "USD" }'),
            Call("order", {"currency": "USD", "amount": 100}),
        ]
    ),
    Reply(calls=[Call("order", {"currency": "USD", "amount": 100})]),
    Reply(text="I ordered 100 dollars twice."),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
    try:
        print(
            await talk(
                llm, "Order 100 dollars, twice, and look the rate up again before each order."
            )
        )
    except AdapterError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    asyncio.run(main())
