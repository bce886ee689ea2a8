"""A planner that answers with selectors: one model chooses the tools, another one works with these
and no others.

`Selector[Office]` is a field type: its JSON Schema is the enum of the toolset's tool names, so a
structured turn gives a list of selectors, typed and checked. That list limits the offer. The
planner sees names and one line about each tool, and the worker the full definitions of a few: of
use with many tools, or with a small and a large model.

Run:    python examples/planner.py            a scripted model, no key
        python examples/planner.py --live     OpenAI, with OPENAI_API_KEY;
                                              --model NAME for another model,
                                              OPENAI_BASE_URL for any compatible host
Prints: the plan, what the worker may call, each call with its result, one outside of the plan, and
the answer.
"""

from __future__ import annotations

import argparse
import asyncio

from pydantic import BaseModel, Field

from lutumpy import (
    AdapterError,
    Finished,
    Model,
    NeedsTools,
    Selector,
    Session,
    ToolAvailability,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 8


@tool_fn(effect="read")
async def find_customer(name: str) -> int:
    """Find a customer's number by name."""
    return 17


@tool_fn(effect="read")
async def open_invoices(customer: int) -> list[str]:
    """List the invoices that a customer has not paid."""
    return ["A-3: 40.00"]


@tool_fn
async def send_reminder(customer: int, invoice: str) -> str:
    """Remind a customer of an invoice."""
    return "sent"


@tool_fn
async def close_account(customer: int) -> str:
    """Close a customer's account."""
    return "closed"


class Office(Toolset):
    find_customer = tool(find_customer)
    open_invoices = tool(open_invoices)
    send_reminder = tool(send_reminder)
    close_account = tool(close_account)


class Plan(BaseModel):
    """What has to be done, and with what."""

    steps: list[str] = Field(description="Short steps, in order.")
    tools: list[Selector[Office]] = Field(
        description="The tools that these steps need, and no others."
    )


async def plan_for(llm: Model, session: Session) -> Plan | None:
    """The plan for what the session asks; it is made in a fork, so that the session doesn't hold
    it.
    """
    planning = session.fork()
    about = "\n".join(
        [f"- {definition.name}: {definition.description}" for definition in Office.definitions()]
    )
    planning.push_ephemeral_system(
        f"Don't answer yet: plan which of these tools are needed.\n{about}"
    )
    result = await planning.structured_turn(llm, Plan).collect()
    session.add_usage(result.usage)
    if result.value is None:
        print(f"no plan: {result.refusal or result.value_error}")
    return result.value


async def talk(planner: Model, worker: Model, question: str) -> str:
    session = Session()
    session.push_user(question)
    plan = await plan_for(planner, session)
    if plan is None:
        return "I don't know how to do that."  # not a reason to offer everything
    for number, step in enumerate(plan.steps, 1):
        print(f"{number}. {step}")
    print("may call:", *plan.tools)
    available = ToolAvailability.only(*plan.tools)
    dispatch, executor = Dispatcher(Office), ToolExecutor()
    for _ in range(MAX_ROUNDS):
        match await session.text_turn(worker, tools=Office, available=available).collect():
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=round):
                results = await executor.run(round.calls, dispatch)
                for ran in results:
                    print(f"  {ran.metadata.name} {ran.metadata.arguments}: {ran.content}")
                for issue in round.issues:
                    print(f"  {issue.metadata.name}: {issue.detail}")
                round.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds."


SCRIPT = [
    Reply(
        text='{"steps": ["Find the customer", "Look for open invoices", "Remind of the oldest"],'
        ' "tools": ["find_customer", "open_invoices", "send_reminder"]}'
    ),
    Reply(calls=[Call("find_customer", {"name": "Ada"})]),
    Reply(calls=[Call("open_invoices", {"customer": 17}), Call("close_account", {"customer": 17})]),
    Reply(calls=[Call("send_reminder", {"customer": 17, "invoice": "A-3"})]),
    Reply(text="I reminded Ada of invoice A-3."),
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
        print(await talk(llm, llm, "Remind Ada of what she still has to pay."))
    except AdapterError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    asyncio.run(main())
