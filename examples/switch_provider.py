"""Switching the provider in the middle of a conversation, with calls in flight: the same session,
another adapter.

Models of three APIs take turns: one asks for a look-up, the next gets the result and asks for
another. Each gets the whole conversation in its own form, with ids that it takes; what a provider
wrote itself, reasoning included, goes back to it as it came. One that is overloaded is passed over,
which is what programs do this for.

Run:    python examples/switch_provider.py            scripted models, no key
        python examples/switch_provider.py --live     OpenAI and Anthropic, with OPENAI_API_KEY and
                                                      ANTHROPIC_API_KEY;
                                                      --model NAME and --claude NAME for other
                                                      models
Prints: who asked for what, whom it passed over, the answer, and the APIs that the turns came from.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI, OpenAIError

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
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.testing import Call, Failure, Reply, ScriptedModel

MAX_ROUNDS = 8
KILOMETRES = {("Oslo", "Bergen"): 463, ("Bergen", "Stavanger"): 210, ("Stavanger", "Oslo"): 452}


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
            reasoning="Three roads, one by one.",
            calls=[Call("distance", {"start": "Oslo", "end": "Bergen"})],
        ),
        Reply(
            reasoning="One is missing.",
            calls=[Call("distance", {"start": "Stavanger", "end": "Oslo"})],
        ),
    ],
    "messages": [
        Failure(529, "Overloaded"),
        Reply(text="The way round is 1125 kilometres long."),
    ],
    "chat": [
        Reply(calls=[Call("distance", {"start": "Bergen", "end": "Stavanger"})]),
    ],
}


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask real models")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one of OpenAI (%(default)s)")
    parser.add_argument(
        "--claude", default="claude-haiku-4-5", help="which one of Anthropic (%(default)s)"
    )
    options = parser.parse_args()
    session = Session()
    session.push_user("How long is the way from Oslo over Bergen and Stavanger back to Oslo?")
    if options.live:
        try:
            async with AsyncOpenAI() as openai, AsyncAnthropic() as anthropic:
                models: dict[str, Model] = {
                    "responses": OpenAIResponses(options.model, client=openai),
                    "messages": AnthropicMessages(options.claude, client=anthropic),
                    "chat": OpenAIChat(options.model, client=openai),
                }
                print(await talk(models, session))
        except (
            AdapterError,
            OpenAIError,
        ) as error:  # the second, where a client is made without a key
            parser.exit(2, f"{error}\n")
    else:
        models = {
            "responses": ScriptedModel(SCRIPTS["responses"], api="openai_responses"),
            "messages": ScriptedModel(SCRIPTS["messages"], api="anthropic_messages"),
            "chat": ScriptedModel(SCRIPTS["chat"], api="openai_chat"),
        }
        print(await talk(models, session))
    print("the turns came from:", *[turn.api for turn in session.turns()])


if __name__ == "__main__":
    asyncio.run(main())
