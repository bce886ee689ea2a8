"""Quick start on Gemini: the helper of a railway, which looks several trains up at once.

Run:    python examples/quickstart_gemini.py            a scripted model, no key
        python examples/quickstart_gemini.py --live     Google, with GOOGLE_API_KEY or
                                                        GEMINI_API_KEY;
                                                        --model NAME for another model
Prints: the calls with their results, the answer, and the tokens that the answer took.
"""

from __future__ import annotations

import argparse
import asyncio

from lutumpy import (
    AdapterError,
    Finished,
    Model,
    NeedsTools,
    Session,
    ToolError,
    Toolset,
    TurnResult,
    tool,
    tool_fn,
)
from lutumpy.adapters.gemini import Gemini
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 10
TRAINS = {"Oslo": "08:05, platform 3", "Bergen": "09:40, platform 1"}
THOUGHTS = {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}


@tool_fn(effect="read")
async def next_train(city: str) -> str:
    """The next train to a city.

    Args:
        city: Its name, as in `Oslo`.
    """
    if city not in TRAINS:
        raise ToolError(f"no train goes to {city}; there are trains to {', '.join(TRAINS)}")
    return TRAINS[city]


class Station(Toolset):
    next_train = tool(next_train)


async def talk(llm: Model, question: str) -> TurnResult | None:
    """Ask until there is an answer; `None` when there was none."""
    session = Session()
    session.push_system("You help travellers at a station. Answer in one sentence.")
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        match await session.text_turn(llm, tools=Station).collect():
            case Finished(result=result):
                return result
            case NeedsTools(round=round):
                results = []
                for call in round.calls:
                    try:
                        results.append(call.complete(await call.call()))
                    except ToolError as error:
                        results.append(call.fail(str(error)))
                    print(
                        f"{call.metadata.name} {call.metadata.arguments} -> {results[-1].content}"
                    )
                for issue in round.issues:
                    print(f"{issue.metadata.name} {issue.metadata.arguments} -> {issue.detail}")
                # The signature of the thought goes back on the call that it came with.
                round.commit(session, results)
    return None


SCRIPT = [
    Reply(
        reasoning="I look all three up.",
        calls=[Call("next_train", {"city": city}) for city in ("Oslo", "Bergen", "Paris")],
    ),
    Reply(text="To Oslo at 08:05 and to Bergen at 09:40; none goes to Paris.", usage=(90, 20)),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gemini-3-flash-preview", help="which (%(default)s)")
    options = parser.parse_args()
    llm: Model
    if options.live:
        llm = Gemini(options.model, extra=THOUGHTS)
    else:
        llm = ScriptedModel(SCRIPT, api="gemini_generate_content")
    try:
        result = await talk(llm, "When do trains leave to Oslo, Bergen and Paris?")
    except AdapterError as error:
        parser.exit(2, f"{error}\n")
    if result is None:
        print(f"No answer after {MAX_ROUNDS} rounds.")
    else:
        print(result.text)
        print(f"tokens of the last answer: {result.usage.output_tokens}")


if __name__ == "__main__":
    asyncio.run(main())
