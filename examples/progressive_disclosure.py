"""Progressive disclosure: tools that are off until the model loads the skill that they belong to.

A program with many tools offers few of them: `load_skill` and what is always needed. A skill is a
nested toolset that is off, with instructions for its use; loading it gives the model the
instructions, and from the next turn on its tools.

Run:    python examples/progressive_disclosure.py            a scripted model, no key
        python examples/progressive_disclosure.py --live     OpenAI, with OPENAI_API_KEY;
                                                             --model NAME for another model,
                                                             OPENAI_BASE_URL for any compatible host
Prints: the tools of each request, each call with its result, a call that came too early, and the
answer.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lutumpy import (
    AdapterError,
    Finished,
    Model,
    NeedsTools,
    Selector,
    Session,
    Skip,
    ToolAvailability,
    Toolset,
    nested,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 8


@tool_fn(effect="read")
async def read_sheet(sheet: str) -> list[list[str | int]]:
    """Read all rows of a sheet."""
    return [["month", "sales"], ["January", 120], ["February", 95]]


@tool_fn(effect="idempotent")
async def draw_chart(sheet: str, column: str) -> str:
    """Draw a chart of a column."""
    return f"{sheet}-{column}.svg"


class Sheets(Toolset):
    read_sheet = tool(read_sheet)
    draw_chart = tool(draw_chart)


@tool_fn
async def send_letter(to: str, text: str) -> str:
    """Send a letter."""
    return "sent"


class Letters(Toolset):
    send_letter = tool(send_letter)


SkillName = Literal["sheets", "letters"]
INSTRUCTIONS: dict[SkillName, str] = {
    "sheets": (
        "Sheets are named by year. Read one before you draw a chart of it; the first row has the "
        "names of the columns."
    ),
    "letters": (
        "Letters begin with the place and the date. Never send one that the user has not read."
    ),
}


@tool_fn(effect="read")
async def load_skill(name: SkillName, *, loaded: Skip[set[SkillName]]) -> str:
    """Load a skill: its instructions, and its tools from your next answer on.

    Args:
        name: `sheets` reads tables and draws charts; `letters` writes and sends letters.
    """
    loaded.add(name)
    return INSTRUCTIONS[name]


class Assistant(Toolset):
    load_skill = tool(load_skill)
    sheets = nested(Sheets, off=True)
    letters = nested(Letters, off=True)


@dataclass(frozen=True)
class Skill:
    name: SkillName
    tools: Sequence[Selector[Assistant]]


SKILLS = [
    Skill("sheets", [Assistant.sheets[selector] for selector in Sheets.selectors()]),
    Skill("letters", [Assistant.letters[selector] for selector in Letters.selectors()]),
]


async def talk(llm: Model, question: str) -> str:
    loaded: set[SkillName] = set()
    dispatch, executor = Dispatcher(Assistant, context={"loaded": loaded}), ToolExecutor()
    session = Session()
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        # In the order of SKILLS, not of loading: the same tools give the same bytes, which
        # providers keep in their caches.
        extra = [selector for skill in SKILLS if skill.name in loaded for selector in skill.tools]
        available = ToolAvailability.default_plus(*extra)
        print("on offer:", *Assistant.default_selectors(), *extra)
        match await session.text_turn(llm, tools=Assistant, available=available).collect():
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=round):
                results = await executor.run(round.calls, dispatch)
                for ran in results:
                    print(f"  {ran.metadata.name} {ran.metadata.arguments}: {ran.content}")
                for issue in round.issues:
                    print(f"  {issue.metadata.name}: {issue.detail}")
                round.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds."


SCRIPT = [
    Reply(calls=[Call("load_skill", {"name": "sheets"}), Call("read_sheet", {"sheet": "2026"})]),
    Reply(calls=[Call("read_sheet", {"sheet": "2026"})]),
    Reply(calls=[Call("draw_chart", {"sheet": "2026", "column": "sales"})]),
    Reply(text="The chart is in 2026-sales.svg; February was weaker than January."),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
    try:
        print(await talk(llm, "Draw a chart of the sales of 2026."))
    except AdapterError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    asyncio.run(main())
