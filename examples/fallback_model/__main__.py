"""Going on with somebody else: a model that fails in the middle of a conversation is replaced by
the next one, and asked again later.

The wrapper is a model itself, so turns, loops and streams take it as any other. What has been said
stays as it is: the next model gets the whole conversation in its own form, with the calls that have
been run and their results, and back at the first one its own turns are again what it wrote, signed
thinking included. Nothing is run twice.

Run:    python -m examples.fallback_model    scripted models, no key
        python -m examples.fallback_model --live  with ANTHROPIC_API_KEY and OPENAI_API_KEY;
                                              --claude NAME and --model NAME for other models
Prints: who asked for what, who failed and why, the answer, and whose the turns are.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import AsyncExitStack

from lutumpy import AdapterError, NeedsTools, Session, Toolset, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIResponses
from lutumpy.models import StreamingModel
from lutumpy.testing import Call, Failure, Reply, ScriptedModel

from .model import Fallback

MAX_ROUNDS = 8


@tool_fn(effect="read")
def distance(start: str, end: str) -> int:
    """How far it is by road, in kilometres."""
    return {("Oslo", "Bergen"): 463, ("Bergen", "Stavanger"): 210}.get((start, end), 400)


class Roads(Toolset):
    distance = tool(distance)


async def talk(models: Fallback, session: Session) -> str:
    for _ in range(MAX_ROUNDS):
        outcome = await session.text_turn(models, tools=Roads, max_output_tokens=2000).collect()
        if not isinstance(outcome, NeedsTools):
            return outcome.result.text
        results = []
        for call in outcome.round.calls:
            results.append(call.complete(call.call_sync()))
            print(f"asked: {call.metadata.arguments} -> {results[-1].content}")
        outcome.round.commit(session, results)
    return f"No answer after {MAX_ROUNDS} requests."


SCRIPTS: dict[str, list[Reply | Failure]] = {
    "claude": [
        Reply(
            reasoning="First to Bergen.",
            calls=[Call("distance", {"start": "Oslo", "end": "Bergen"})],
        ),
        Failure(529, "Overloaded"),
        Reply(text="463 + 210 + 400: 1073 kilometres."),
    ],
    "gpt": [
        Reply(calls=[Call("distance", {"start": "Bergen", "end": "Stavanger"})]),
        Reply(calls=[Call("distance", {"start": "Stavanger", "end": "Oslo"})]),
    ],
}


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask real models")
    parser.add_argument("--claude", default="claude-haiku-4-5", help="(%(default)s)")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one of OpenAI (%(default)s)")
    options = parser.parse_args()
    session = Session()
    session.push_user("How long is the way from Oslo by Bergen and Stavanger to Oslo?")
    claude, gpt = SCRIPTS["claude"], SCRIPTS["gpt"]
    try:
        async with AsyncExitStack() as stack:
            models: dict[str, StreamingModel] = {
                "claude": ScriptedModel(claude, api="anthropic_messages"),
                "gpt": ScriptedModel(gpt, api="openai_responses"),
            }
            if options.live:  # each has a client of its own, which is closed
                models = {
                    "claude": await stack.enter_async_context(AnthropicMessages(options.claude)),
                    "gpt": await stack.enter_async_context(OpenAIResponses(options.model)),
                }
            print(await talk(Fallback(models, rest=1), session))
    except AdapterError as error:
        parser.exit(2, f"{error}\n")
    print("the turns came from:", *[turn.api for turn in session.turns()])


if __name__ == "__main__":
    asyncio.run(main())
