"""An approval gate in the terminal: a person accepts, edits, or rejects each call that does more
than read.

The gate is a policy, in a pass of its own after all hooks: what a person sees is what will be run.
An edited call is validated like the model's own. At the end of the input everything is rejected;
after Ctrl-C nothing was run, and nothing was committed.

Run:    python examples/hooks/approval_gate.py            a scripted model, no key; your answers
        python examples/hooks/approval_gate.py --live     OpenAI, with OPENAI_API_KEY;
                                                          --model NAME for another model,
                                                          OPENAI_BASE_URL for any compatible host
Prints: a question for each payment, what was run, what was rejected and why, and the answer.
"""

from __future__ import annotations

import argparse
import json

from pydantic import BaseModel

from lutumpy import (
    AdapterError,
    Finished,
    Model,
    Reject,
    RunNormally,
    Session,
    ToolDecision,
    ToolMetadata,
    ToolResult,
    ToolRound,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.hooks import BaseToolCall, ToolHooks
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 8


@tool_fn(effect="read")
def list_invoices() -> list[str]:
    """List the open invoices."""
    return ["A-1: 120.00", "A-2: 90.00", "A-3: 4000.00"]


@tool_fn
def pay(invoice: str, amount: float) -> str:
    """Pay an invoice."""
    return f"paid {amount:.2f} for {invoice}"


class Bookkeeping(Toolset):
    list_invoices = tool(list_invoices)
    pay = tool(pay)


def whole_cents(metadata: ToolMetadata, input: BaseModel) -> ToolDecision[BaseModel, str]:
    """An ordinary hook that edits, to show that the gate sees what it made."""
    return RunNormally(input.model_copy(update={"amount": round(input.model_dump()["amount"], 2)}))


def ask(words: str) -> str:
    """A line from the terminal; nothing at the end of the input."""
    try:
        return input(words).strip()
    except EOFError:
        print()
        return ""


def edited(call: BaseToolCall, changes: str) -> BaseModel:
    """The input with some arguments changed, read as if the model had written it so; raises
    `ValueError`.
    """
    changed = json.loads(changes)
    if not isinstance(changed, dict):
        raise ValueError("that is no JSON object")
    arguments = json.dumps({**call.arguments, **changed})
    written = ToolMetadata(call.metadata.id, call.metadata.name, arguments)
    input: BaseModel = Bookkeeping.parse(written).input
    return input


def gate(call: BaseToolCall) -> ToolDecision:
    """Ask about every call whose tool does more than read, until the answer is one."""
    if call.selector.definition.options.effect == "read":
        return RunNormally(call.input)
    print(f"{call.metadata.name} {json.dumps(call.arguments)}")
    while True:
        match ask("  [y]es, [n]o, [e]dit? ").lower():
            case "y" | "yes":
                return RunNormally(call.input)
            case "n" | "no" | "":
                why = ask("  why not? ")
                return Reject(f"a person said no: {why}" if why else "a person said no")
            case "e" | "edit":
                try:
                    return RunNormally(edited(call, ask("  what to change, as JSON: ")))
                except ValueError as error:
                    print(f"  that can't be run: {error}")


def decided(
    session: Session, llm: Model, hooks: ToolHooks[Bookkeeping]
) -> ToolRoundPlan | Finished:
    """One request, and the decisions about what it asks for."""
    outcome = session.text_turn(llm, tools=Bookkeeping).collect_sync()
    if isinstance(outcome, Finished):
        return outcome
    undecided: ToolRound | ToolRoundPlan = outcome.round
    try:
        undecided = undecided.apply_hooks_sync(hooks)
        return undecided.apply_hooks_sync(gate)
    except BaseException:  # Ctrl-C included: nothing has run
        undecided.discard()
        raise


def talk(llm: Model, question: str) -> str:
    hooks = Bookkeeping.hooks()
    hooks.on(Bookkeeping.pay)(whole_cents)
    session = Session()
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        plan = decided(session, llm, hooks)
        if isinstance(plan, Finished):
            return plan.result.refusal or plan.result.text
        results: list[ToolResult] = []
        for call in plan.pending:
            if Bookkeeping.pay.matches(call):
                results.append(call.complete(pay(**call.arguments)))
            else:
                results.append(call.complete(list_invoices()))
            print(f"ran: {results[-1].content}")
        for rejected in plan.rejected:
            print(f"rejected: {rejected.metadata.arguments}: {rejected.reason}")
        plan.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds."


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
    Reply(text="That is all for today."),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
    try:
        print(talk(llm, "Pay my open invoices."))
    except AdapterError as error:
        parser.exit(2, f"{error}\n")
    except KeyboardInterrupt:
        raise SystemExit("\nStopped; what was asked for last was not run.") from None


if __name__ == "__main__":
    main()
