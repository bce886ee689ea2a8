"""A cache in front of tools that only read: the second call with the same arguments is answered without running anything."""

from __future__ import annotations

import asyncio
from typing import Any

from lutumpy import (
    BaseToolCall,
    Complete,
    Finished,
    NeedsTools,
    RunNormally,
    Session,
    ToolDecision,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.testing import Call, Reply, ScriptedModel


@tool_fn(effect="read")
async def exchange_rate(currency: str) -> float:
    """How much of a currency one euro buys."""
    print(f"  looking {currency} up")
    return {"USD": 1.08, "JPY": 169.5}[currency]


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

    Validated, so `{"currency":"USD"}` and `{ "currency": "USD" }` are one entry. It is a policy: where other hooks edit
    inputs, apply it in a pass of its own after theirs, or it answers for an input that would not have been run.
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


SCRIPT = [
    Reply(calls=[Call("exchange_rate", {"currency": "USD"}), Call("exchange_rate", {"currency": "JPY"})]),
    Reply(calls=[Call("exchange_rate", '{ "currency": "USD" }'), Call("order", {"currency": "USD", "amount": 100})]),
    Reply(calls=[Call("order", {"currency": "USD", "amount": 100})]),
    Reply(text="Done."),
]


async def main() -> None:
    llm = ScriptedModel(SCRIPT)
    cache = Cache()
    session = Session()
    session.push_user("Order 100 dollars, twice, if the rate is good.")
    while True:
        match await session.text_turn(llm, tools=Bank).collect():
            case NeedsTools(round=round):
                plan = await round.apply_hooks(cache)
                print(f"{len(plan.pending)} to run, {len(plan.handled)} from the cache")
                results = []
                for call in plan.pending:
                    output = await call.call()
                    cache.remember(call, output)
                    results.append(call.complete(output))
                plan.commit(session, results)
            case Finished(result=result):
                print(result.text)
                return


if __name__ == "__main__":
    asyncio.run(main())
