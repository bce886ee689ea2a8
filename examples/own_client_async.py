"""Your own client and your own I/O, asynchronous and streamed: the plain Anthropic client, with the
model's thinking.

A reader makes events of the provider's own: text as it comes, calls as soon as they are whole.
Thinking blocks go back as they came, and results stand right after their calls.

Run:    python examples/own_client_async.py            a test server on this machine, no key
        python examples/own_client_async.py --live     Anthropic, with ANTHROPIC_API_KEY;
                                                       --model NAME for another model
                                                       that has adaptive thinking
Prints: the thoughts, each call with its result, the answer, and what it cost.
"""

from __future__ import annotations

import argparse
import asyncio
import os

from anthropic import AnthropicError, AsyncAnthropic

from lutumpy import (
    Finished,
    NeedsTools,
    ReasoningDelta,
    RefusalDelta,
    Session,
    TextDelta,
    ToolError,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.testing import Call, Reply, serve

MAX_ROUNDS = 5


@tool_fn(effect="read")
def divide(dividend: float, divisor: float) -> float:
    """Divide two numbers."""
    if divisor == 0:
        raise ToolError("the divisor is zero")
    return dividend / divisor


class Arithmetic(Toolset):
    divide = tool(divide)


async def talk(client: AsyncAnthropic, model: str, session: Session) -> None:
    """Ask until there is an answer, and print what arrives."""
    offer = Arithmetic.offer()
    for _ in range(MAX_ROUNDS):
        body = AnthropicMessages.request(
            session.transcript,
            offer,
            stream=True,
            max_output_tokens=2000,
            thinking={"type": "adaptive"},
        )
        reader = offer.reader(AnthropicMessages.stream_decoder(), session)
        async with await client.messages.create(model=model, **body) as events:
            async for sent in events:
                for event in reader.feed(sent):
                    if isinstance(event, (ReasoningDelta, RefusalDelta, TextDelta)):
                        print(event.text, end="", flush=True)
        print()
        match reader.finish():
            case Finished(result=result):
                print(f"({result.finish_reason}, {session.usage.total_tokens} tokens)")
                return
            case NeedsTools(round=round):
                results = []
                for call in round.calls:
                    try:
                        results.append(call.complete(await call.call()))
                    except ToolError as error:
                        results.append(call.fail(str(error)))
                    print(f"  {call.metadata.arguments} -> {results[-1].content}")
                round.commit(session, results)
    print(f"No answer after {MAX_ROUNDS} rounds.")


SCRIPT = [
    Reply(
        reasoning="Two divisions, one of them by zero.",
        calls=[
            Call("divide", {"dividend": 7, "divisor": 2}),
            Call("divide", {"dividend": 1, "divisor": 0}),
        ],
        usage=(15, 20),
    ),
    Reply(text="7 / 2 is 3.5, and 1 / 0 has no value.", usage=(20, 10)),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="claude-sonnet-4-6", help="which one (%(default)s)")
    options = parser.parse_args()
    session = Session()
    session.push_system("Calculate with the tools, never in your head.")
    session.push_user("What are 7 / 2 and 1 / 0?")
    if options.live:
        if (
            "ANTHROPIC_API_KEY" not in os.environ
        ):  # the SDK says it only in the request, as a `TypeError`
            parser.exit(2, "ANTHROPIC_API_KEY is not set\n")
        try:
            async with AsyncAnthropic() as client:
                await talk(client, options.model, session)
        except AnthropicError as error:
            parser.exit(2, f"{error}\n")
    else:
        async with (
            serve(SCRIPT) as server,
            AsyncAnthropic(base_url=server.anthropic_base_url, api_key="no key needed") as client,
        ):
            await talk(client, options.model, session)


if __name__ == "__main__":
    asyncio.run(main())
