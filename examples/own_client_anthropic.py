"""The same with the plain Anthropic client: thinking blocks go back as they came, results stand right after their calls.

Runs without a key: the answers come from a test server on this machine.
"""

from __future__ import annotations

import asyncio

from anthropic import AsyncAnthropic

from lutumpy import Finished, NeedsTools, Session, ToolError, Toolset, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.testing import Call, Reply, serve


@tool_fn(effect="read")
def divide(dividend: float, divisor: float) -> float:
    """Divide two numbers."""
    if divisor == 0:
        raise ToolError("the divisor is zero")
    return dividend / divisor


class Arithmetic(Toolset):
    divide = tool(divide)


async def answer(client: AsyncAnthropic, question: str) -> str:
    """One conversation, with a limit on each answer and the model's thinking switched on."""
    session = Session()
    session.push_system("Calculate with the tools, never in your head.")
    session.push_user(question)
    offer = Arithmetic.offer()
    while True:
        body = AnthropicMessages.request(
            session.transcript, offer, max_output_tokens=2000, thinking={"type": "adaptive"}
        )
        reply = await client.messages.create(model="any-model", **body)
        match offer.read(AnthropicMessages.response(reply), session):
            case Finished(result=result):
                return result.text
            case NeedsTools(round=round):
                results = []
                for call in round.calls:
                    try:
                        results.append(call.complete(await call.call()))
                    except ToolError as error:
                        results.append(call.fail(str(error)))
                round.commit(session, results)


SCRIPT = [
    Reply(
        reasoning="Two divisions, one of them by zero.",
        calls=[Call("divide", {"dividend": 7, "divisor": 2}), Call("divide", {"dividend": 1, "divisor": 0})],
    ),
    Reply(text="7 / 2 is 3.5, and 1 / 0 has no value."),
]


async def main() -> None:
    async with (
        serve(SCRIPT) as server,
        AsyncAnthropic(base_url=server.anthropic_base_url, api_key="no-key-needed") as client,
    ):
        print(await answer(client, "What are 7 / 2 and 1 / 0?"))


if __name__ == "__main__":
    asyncio.run(main())
