"""A person decides before anything with an effect is run: accept, edit, or reject with a reason.

`python examples/hooks/approval_gate.py` takes the answers from a list, `--ask` asks on the terminal. The model is scripted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from pydantic import BaseModel

from lutumpy import (
    BaseToolCall,
    Finished,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    ToolDecision,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.testing import Call, Reply, ScriptedModel

# --- tools -----------------------------------------------------------------------------------------------------------


@tool_fn(effect="read")
async def list_invoices() -> list[str]:
    """List the open invoices."""
    return ["A-1: 120.00", "A-2: 90.00", "A-3: 4000.00"]


@tool_fn
async def pay(invoice: str, amount: float) -> str:
    """Pay an invoice."""
    return f"paid {amount:.2f} for {invoice}"


class Bookkeeping(Toolset):
    list_invoices = tool(list_invoices)
    pay = tool(pay)


def whole_cents(metadata: ToolMetadata, input: BaseModel) -> ToolDecision[BaseModel, str]:
    """An ordinary hook that edits, to show that the gate sees the result."""
    amount = round(input.model_dump()["amount"], 2)
    return RunNormally(input.model_copy(update={"amount": amount}))


# --- the gate --------------------------------------------------------------------------------------------------------

Ask: TypeAlias = "Callable[[BaseToolCall], Awaitable[str]]"


class ApprovalGate:
    """Asks about every call whose tool does more than read.

    The answer is `yes`; a JSON object of the arguments to change; or anything else, which is the reason of a rejection.
    It is a policy, for a pass of its own after all hooks: what a person accepts is what will be run.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def __call__(self, call: BaseToolCall) -> ToolDecision:
        if call.selector.definition.options.effect == "read":
            return RunNormally(call.input)
        answer = (await self._ask(call)).strip()
        if answer == "yes":
            return RunNormally(call.input)
        if answer.startswith("{"):
            # Validated like the model's own arguments; what doesn't fit raises, and the round stays open.
            return RunNormally(type(call.input).model_validate({**call.input.model_dump(), **json.loads(answer)}))
        return Reject(f"a person said: {answer}" if answer else "a person said no")


def answers_from(answers: Iterable[str]) -> Ask:
    """Answers that are written down beforehand."""
    left = iter(answers)

    async def ask(call: BaseToolCall) -> str:
        answer = next(left)
        print(f"{call.metadata.name} {call.arguments} -> {answer}")
        return answer

    return ask


async def ask_on_terminal(call: BaseToolCall) -> str:
    """Ask without blocking the event loop."""
    question = f"{call.metadata.name} {call.arguments}\n'yes', changed arguments as JSON, or why not: "
    return await asyncio.to_thread(input, question)


# --- the loop --------------------------------------------------------------------------------------------------------

SCRIPT = [
    Reply(calls=[Call("list_invoices")]),
    Reply(
        text="I will pay all three.",
        calls=[
            Call("pay", {"invoice": "A-1", "amount": 120.001}),
            Call("pay", {"invoice": "A-2", "amount": 900}),
            Call("pay", {"invoice": "A-3", "amount": 4000}),
        ],
    ),
    Reply(text="A-1 and A-2 are paid; A-3 waits for your boss."),
]


async def main(ask: Ask) -> None:
    llm = ScriptedModel(SCRIPT)
    hooks = Bookkeeping.hooks()
    hooks.on(Bookkeeping.pay)(whole_cents)
    gate = ApprovalGate(ask)
    session = Session()
    session.push_user("Pay my open invoices.")
    while True:
        match await session.text_turn(llm, tools=Bookkeeping).collect():
            case NeedsTools(round=tool_round):
                plan = await tool_round.apply_hooks(hooks)
                plan = await plan.apply_hooks(gate)
                results = [call.complete(await call.call()) for call in plan.pending]
                for result in results:
                    print(f"ran: {result.content}")
                for rejected in plan.rejected:
                    print(f"rejected: {rejected.metadata.arguments}: {rejected.reason}")
                plan.commit(session, results)
            case Finished(result=result):
                print(result.text)
                return


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ask", action="store_true", help="ask on the terminal")
    prepared = answers_from(["yes", '{"amount": 90}', "too much, ask my boss"])
    asyncio.run(main(ask_on_terminal if parser.parse_args().ask else prepared))
