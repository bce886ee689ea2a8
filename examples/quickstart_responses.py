"""Quick start on the Responses API, without an event loop: a reasoning model, whose reasoning goes
back as it came.

Run:    python examples/quickstart_responses.py            a scripted model, no key
        python examples/quickstart_responses.py --live     OpenAI, with OPENAI_API_KEY;
                                                           --model NAME for another model
Prints: the calls with their results, the answer, and what the conversation cost.
"""

from __future__ import annotations

import argparse
from typing import Literal

from lutumpy import (
    AdapterError,
    Finished,
    Model,
    NeedsTools,
    Session,
    ToolError,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIResponses
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 10
RATES = {"EUR": 1.0, "NOK": 11.6, "JPY": 169.5}


@tool_fn(effect="read")
def convert(
    amount: float, source: Literal["EUR", "NOK", "JPY"], target: Literal["EUR", "NOK", "JPY"]
) -> float:
    """Convert an amount of money at today's rates.

    Args:
        amount: How much; more than nothing.
        source: Its currency.
        target: The currency to convert it to.
    """
    if amount <= 0:
        raise ToolError("the amount has to be more than nothing")
    return round(amount / RATES[source] * RATES[target], 2)


class Money(Toolset):
    convert = tool(convert)


def talk(llm: Model, session: Session) -> str:
    """Ask until there is an answer."""
    for _ in range(MAX_ROUNDS):
        match session.text_turn(llm, tools=Money).collect_sync():
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=tool_round):
                results = []
                for call in tool_round.calls:
                    try:
                        results.append(call.complete(call.call_sync()))
                    except ToolError as error:
                        results.append(call.fail(str(error)))
                    print(
                        f"{call.metadata.name} {call.metadata.arguments} -> {results[-1].content}"
                    )
                tool_round.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds."


SCRIPT = [
    Reply(
        reasoning="Convert both prices to euros, then compare.",
        calls=[
            Call("convert", {"amount": 1740, "source": "NOK", "target": "EUR"}),
            Call("convert", {"amount": 23730, "source": "JPY", "target": "EUR"}),
        ],
        usage=(15, 25),
    ),
    Reply(text="The one from Tokyo is cheaper: 140 against 150 euros.", usage=(25, 14)),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-5-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model
    if options.live:
        llm = OpenAIResponses(options.model, extra={"reasoning": {"effort": "low"}})
    else:
        llm = ScriptedModel(SCRIPT, api="openai_responses")
    session = Session()
    session.push_user(
        "The jacket costs 1740 kroner in Oslo and 23730 yen in Tokyo. Where is it cheaper, in "
        "euros?"
    )
    try:
        print(talk(llm, session))
    except AdapterError as error:
        parser.exit(2, f"{error}\n")
    print(f"{len(session.turns())} requests, {session.usage.total_tokens} tokens")


if __name__ == "__main__":
    main()
