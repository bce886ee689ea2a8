"""Switching the provider in the middle of a conversation, with calls in flight: the same session,
another adapter.

Models of five APIs take turns: one asks for a look-up, the next gets the result and asks for
another. Each gets the whole conversation in its own form, with ids that it takes; what a provider
wrote itself, reasoning included, goes back to it as it came. One that is overloaded is passed over,
which is what programs do this for.

Run:    python examples/switch_provider.py            scripted models, no key
        python examples/switch_provider.py --live     all five, with OPENAI_API_KEY,
                                                      ANTHROPIC_API_KEY, GOOGLE_API_KEY, and
                                                      region and credentials of AWS;
                                                      --model NAME, --claude NAME, --gemini NAME
                                                      and --nova NAME for other models
Prints: who asked for what, whom it passed over, the answer, and the APIs that the turns came from.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack

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
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.gemini import Gemini
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.testing import Call, Failure, Reply, ScriptedModel

MAX_ROUNDS = 8
KILOMETRES = {
    ("Oslo", "Bergen"): 463,
    ("Bergen", "Stavanger"): 210,
    ("Stavanger", "Kristiansand"): 232,
    ("Kristiansand", "Larvik"): 190,
    ("Larvik", "Oslo"): 130,
}


@tool_fn(effect="read")
async def distance(start: str, end: str) -> int:
    """How far it is by road, in kilometres."""
    kilometres = KILOMETRES.get((start, end)) or KILOMETRES.get((end, start))
    if kilometres is None:
        raise ToolError(f"no road is known from {start} to {end}")
    return kilometres


class Roads(Toolset):
    distance = tool(distance)


async def talk(models: Mapping[str, Model], session: Session) -> str:
    """Every request goes to the next model; one that is overloaded is passed over, once around at
    most.
    """
    names = list(models)
    turn = failures = 0
    for _ in range(MAX_ROUNDS):
        name = names[turn % len(names)]
        turn += 1
        try:
            outcome = await session.text_turn(
                models[name], tools=Roads, max_output_tokens=1000
            ).collect()
        except AdapterError as error:
            failures += 1
            if not error.retryable or failures >= len(names):
                raise
            print(f"{name} is passed over: HTTP {error.status}")
            continue  # nothing was committed: the next model gets the same session
        failures = 0
        match outcome:
            case Finished(result=result):
                return f"{name} answers: {result.refusal or result.text}"
            case NeedsTools(round=round):
                results = []
                for call in round.calls:
                    try:
                        results.append(call.complete(await call.call()))
                    except ToolError as error:
                        results.append(call.fail(str(error)))
                    print(f"{name} asks: {call.metadata.arguments} -> {results[-1].content}")
                round.commit(session, results)
    return f"No answer after {MAX_ROUNDS} requests."


SCRIPTS: dict[str, list[Reply | Failure]] = {
    "responses": [
        Reply(
            reasoning="Five roads, one by one.",
            calls=[Call("distance", {"start": "Oslo", "end": "Bergen"})],
        ),
        Reply(
            reasoning="One is missing.",
            calls=[Call("distance", {"start": "Larvik", "end": "Oslo"})],
        ),
    ],
    "messages": [
        Failure(529, "Overloaded"),
        Reply(text="The way round is 1225 kilometres long."),
    ],
    "gemini": [
        Reply(
            reasoning="On to the coast.",
            calls=[Call("distance", {"start": "Bergen", "end": "Stavanger"})],
        )
    ],
    "chat": [Reply(calls=[Call("distance", {"start": "Stavanger", "end": "Kristiansand"})])],
    "converse": [Reply(calls=[Call("distance", {"start": "Kristiansand", "end": "Larvik"})])],
}
APIS = {
    "responses": "openai_responses",
    "messages": "anthropic_messages",
    "gemini": "gemini_generate_content",
    "chat": "openai_chat",
    "converse": "bedrock_converse",
}
QUESTION = "How long is the way from Oslo by Bergen, Stavanger, Kristiansand and Larvik to Oslo?"


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask real models")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one of OpenAI (%(default)s)")
    parser.add_argument("--claude", default="claude-haiku-4-5", help="(%(default)s)")
    parser.add_argument("--gemini", default="gemini-3-flash-preview", help="(%(default)s)")
    parser.add_argument("--nova", default="us.amazon.nova-lite-v1:0", help="(%(default)s)")
    options = parser.parse_args()
    session = Session()
    session.push_user(QUESTION)
    models: dict[str, Model]
    if options.live:
        asked = {
            "responses": OpenAIResponses(options.model),
            "messages": AnthropicMessages(options.claude),
            "gemini": Gemini(options.gemini),
            "chat": OpenAIChat(options.model),
            "converse": BedrockConverse(options.nova),
        }
        try:
            async with AsyncExitStack() as stack:  # each has a client of its own, which is closed
                models = {k: await stack.enter_async_context(llm) for k, llm in asked.items()}
                print(await talk(models, session))
        except AdapterError as error:
            parser.exit(2, f"{error}\n")
    else:
        models = {name: ScriptedModel(SCRIPTS[name], api=api) for name, api in APIS.items()}
        print(await talk(models, session))
    print("the turns came from:", *[turn.api for turn in session.turns()])


if __name__ == "__main__":
    asyncio.run(main())
