"""Quick start on the Messages API: a helper of a museum, with a tool that needs something the model
never sees.

Run:    python examples/quickstart_messages.py            a scripted model, no key
        python examples/quickstart_messages.py --live     Anthropic, with ANTHROPIC_API_KEY;
                                                          --model NAME for another model
Prints: the calls with their results, the answer, and why the model stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime

from lutumpy import (
    AdapterError,
    Finished,
    Model,
    NeedsTools,
    Session,
    Skip,
    ToolError,
    Toolset,
    TurnResult,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 10

Hours = dict[int, str]  # by the day of the week; closed where there are none


@tool_fn(effect="read")
async def opening_hours(day: datetime.date, *, hours: Skip[Hours]) -> str:
    """When the museum is open.

    Args:
        day: The day of the visit.
    """
    if day < datetime.date(2020, 1, 1):
        raise ToolError("the museum was founded in 2020")
    return hours.get(day.weekday(), "closed")


class Museum(Toolset):
    opening_hours = tool(opening_hours)


async def talk(llm: Model, question: str, hours: Hours) -> TurnResult | None:
    """Ask until there is an answer; `None` when there was none."""
    session = Session()
    session.push_system("You help the visitors of a museum. Answer in one sentence.")
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        match await session.text_turn(llm, tools=Museum, max_output_tokens=500).collect():
            case Finished(result=result):
                return result
            case NeedsTools(round=round):
                results = []
                for call in round.calls:
                    try:
                        results.append(call.complete(await call.call(hours=hours)))
                    except ToolError as error:
                        results.append(call.fail(str(error)))
                    print(
                        f"{call.metadata.name} {call.metadata.arguments} -> {results[-1].content}"
                    )
                for issue in round.issues:
                    print(f"{issue.metadata.name} {issue.metadata.arguments} -> {issue.detail}")
                round.commit(session, results)
    return None


SCRIPT = [
    Reply(text="Let me look that up.", calls=[Call("opening_hours", {"day": "next Monday"})]),
    Reply(
        calls=[
            Call("opening_hours", {"day": "2026-11-23"}),
            Call("opening_hours", {"day": "2026-11-24"}),
        ]
    ),
    Reply(text="It is closed on Monday; come on Tuesday, between 10 and 18."),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="claude-haiku-4-5", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model
    llm = (
        AnthropicMessages(options.model)
        if options.live
        else ScriptedModel(SCRIPT, api="anthropic_messages")
    )
    hours = dict.fromkeys(range(1, 6), "10 to 18") | {6: "12 to 17"}
    try:
        result = await talk(
            llm, "Today is Sunday, 2026-11-22. Can I come tomorrow, or the day after?", hours
        )
    except AdapterError as error:
        parser.exit(2, f"{error}\n")
    if result is None:
        print(f"No answer after {MAX_ROUNDS} rounds.")
    else:
        print(result.text)
        print(f"finished: {result.finish_reason}")


if __name__ == "__main__":
    asyncio.run(main())
