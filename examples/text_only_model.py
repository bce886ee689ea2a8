"""A model that only writes text calls tools: it is told how to write a call, and its text is read while it streams.

Runs without a key: the answers come from a test server on this machine, which plays a small model with its mistakes. For a
real one give the adapter its address, as `OpenAIChat("qwen3", base_url="http://localhost:8000/v1", api_key="none")`, and the
parser that its training asks for, as `TagToolParser.hermes()`.
"""

from __future__ import annotations

import asyncio

from openai import AsyncOpenAI

from lutumpy import NeedsTools, Session, TextDelta, ToolCallReady, Toolset, tool, tool_fn
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Reply, serve
from lutumpy.text_tools import TagToolParser, TextTools


@tool_fn(effect="read")
def departures(station: str, at_most: int = 2) -> list[str]:
    """The next trains from a station.

    Args:
        station: Its name.
        at_most: How many trains.
    """
    return ["14:02 to Bergen", "14:30 to Drammen", "15:02 to Bergen"][:at_most]


class Trains(Toolset):
    departures = tool(departures)


async def ask(llm: TextTools, question: str) -> str:
    """Ask until there is an answer, and show what goes on."""
    session = Session()
    session.push_user(question)
    while True:
        shown = ""
        async with session.text_turn(llm, tools=Trains).stream() as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    shown += event.text  # never a tag, never the JSON of a call
                elif isinstance(event, ToolCallReady):
                    print("  calls", event.call.metadata.name, event.call.metadata.arguments)
        print("  says ", repr(shown))
        if not isinstance(stream.outcome, NeedsTools):
            return stream.outcome.result.text
        round = stream.outcome.round
        for issue in round.issues:
            print("  wrong", issue.reason)
        round.commit(session, [call.complete(departures(**call.arguments)) for call in round.calls])


# What the small model writes: thoughts about calls, a call without its quotes, and at last a call.
SCRIPT = [
    Reply(text="<think>[TOOL_CALL] is the way.</think>[TOOL_CALL]{name: departures, station: Oslo}[/TOOL_CALL]"),
    Reply(text='[TOOL_CALL]{"name": "departures", "args": {"station": "Oslo"}}[/TOOL_CALL]'),
    Reply(text="Take the 14:02."),
]


async def main() -> None:
    async with (
        serve(SCRIPT) as server,
        AsyncOpenAI(base_url=server.openai_base_url, api_key="no-key-needed") as client,
    ):
        llm = TextTools(OpenAIChat("small-model", client=client), parser=TagToolParser())
        print(await ask(llm, "When does a train leave Oslo for Bergen?"))
        told = server.requests[1].body
    assert told is not None
    print("It was told:", told["messages"][-1]["content"].splitlines()[1][:85])


if __name__ == "__main__":
    asyncio.run(main())
