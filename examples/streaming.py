"""A streamed conversation: text is shown as it comes, and safe calls start before the model has stopped writing.

Each look-up runs in a task from the moment its call is complete; the results are committed when the answer has ended. Runs
without a key: the answers come from a test server on this machine.
"""

from __future__ import annotations

import asyncio

from anthropic import AsyncAnthropic

from lutumpy import NeedsTools, Session, TextDelta, ToolCallDelta, ToolCallReady, Toolset, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.testing import Call, Reply, serve


@tool_fn(effect="read")
async def population(city: str) -> int:
    """Look the number of inhabitants of a city up."""
    await asyncio.sleep(0.01)
    return {"Oslo": 724_290, "Bergen": 294_029}[city]


class Cities(Toolset):
    population = tool(population)


async def talk(llm: AnthropicMessages, session: Session) -> str:
    """Stream turns until there is an answer, and print what arrives."""
    while True:
        running: dict[str, asyncio.Task[int]] = {}
        try:
            async with session.text_turn(llm, tools=Cities).stream() as stream:
                async for event in stream:
                    match event:
                        case TextDelta(text=text):
                            print(text, end="", flush=True)
                        case ToolCallDelta(id=id, arguments=piece) if piece:
                            print(f"\n  {id} so far: {stream.partial_input(id)}", end="")
                        case ToolCallReady(call=call) if Cities.population.matches(call):
                            # It only reads, so nothing is lost if the answer fails after all.
                            running[call.metadata.id] = asyncio.create_task(call.call())
                            print(f"\n  {call.metadata.id} runs", end="")
                        case _:
                            pass
            print()
            outcome = stream.outcome
            if not isinstance(outcome, NeedsTools):
                return outcome.result.text
            results = []
            for call in outcome.round.calls:
                if Cities.population.matches(call):
                    try:
                        results.append(call.complete(await running[call.metadata.id]))
                    except KeyError:
                        results.append(call.fail("no such city"))
            outcome.round.commit(session, results)
        finally:
            for task in running.values():
                task.cancel()


SCRIPT = [
    Reply(
        text="Let me see.",
        calls=[Call("population", {"city": "Oslo"}, id="a"), Call("population", {"city": "Bergen"}, id="b")],
    ),
    Reply(text="Oslo is larger."),
]


async def main() -> None:
    session = Session()
    session.push_user("Which is larger, Oslo or Bergen?")
    async with (
        serve(SCRIPT) as server,
        AsyncAnthropic(base_url=server.anthropic_base_url, api_key="no-key-needed") as client,
    ):
        await talk(AnthropicMessages("any-model", client=client), session)


if __name__ == "__main__":
    asyncio.run(main())
