"""Two hundred tools with search: the model sees a dozen, and finds the others when it needs them.

The tools are those of `two_hundred_tools.json`: real declarations, known at run time. One loop
serves every API. Some load tools on demand: the list of tools stays the same, and a search answers
with references. The others are offered what was found, from the next turn on.

Run:    python examples/two_hundred_tools.py            a scripted model, no key
        python examples/two_hundred_tools.py --live     OpenAI, with OPENAI_API_KEY;
                                                        --model NAME for another model,
                                                        OPENAI_BASE_URL for any compatible host
Prints: what the tools cost in the prompt, each call with its result, and the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

from lutumpy import (
    AdapterError,
    DynamicTool,
    Model,
    Session,
    ToolFinder,
    Toolset,
    dynamic,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.apis import api_names
from lutumpy.execution import Dispatcher
from lutumpy.hooks import BaseToolCall
from lutumpy.loops import LoopEvent, RoundExecuted, run_tools
from lutumpy.testing import Call, Reply, ScriptedModel
from lutumpy.tool_doctor import offer_tokens

TOOLS_FILE = Path(__file__).with_name("two_hundred_tools.json")
QUESTION = "What are 120 US dollars in euros?"


@tool_fn(effect="read")
async def today() -> str:
    """Today's date."""
    return "2026-03-02"


class AppTools(Toolset):
    today = tool(today)
    more = dynamic()


def load_tools() -> list[DynamicTool]:
    declared = json.loads(TOOLS_FILE.read_text(encoding="utf-8"))["tools"]
    return [DynamicTool(t["name"], t["description"], t["schema"]) for t in declared]


ALL_TOOLS = AppTools.with_dynamic_tools({AppTools.more: load_tools()})
FINDER = ToolFinder(ALL_TOOLS, always=[ALL_TOOLS.today], limit=3)


async def talk(llm: Model, question: str) -> str:
    dispatch = Dispatcher(FINDER.toolset)

    @dispatch.otherwise
    async def run_any(call: BaseToolCall) -> dict[str, Any]:
        """Stands for the services behind these tools."""
        return {"rate": 0.92}

    async def show(event: LoopEvent[Any]) -> None:
        if isinstance(event, RoundExecuted):
            for result in event.results:
                content = result.content
                said = content if isinstance(content, str) else f"{len(content)} tools"
                print(f"  {result.metadata.name} {result.metadata.arguments}: {said}")

    session = Session()
    session.push_user(question)
    result = await run_tools(
        session,
        llm,
        tools=FINDER.toolset,
        dispatch=dispatch,
        available=FINDER.available,
        on_progress=show,
    )
    found = FINDER.found(session)
    print("  found:", ", ".join(map(str, found)) or "nothing")
    return result.text


def print_costs() -> None:
    """About how many tokens of each request are tools."""
    session = Session()
    all_tools = ALL_TOOLS.offer()
    with_search = FINDER.toolset.offer(available=FINDER.available(session))
    for api in api_names():
        before, after = offer_tokens(all_tools, api), offer_tokens(with_search, api)
        print(f"{len(ALL_TOOLS.selectors())} tools, {api}: {before} tokens; {after} with search")


SCRIPT = [
    Reply(calls=[Call("find_tools", {"query": "currency exchange rate"})]),
    Reply(calls=[Call("get_exchange_rate", {"pair": "USD/EUR"})]),
    Reply(text="120 US dollars are 110.40 euros."),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    try:
        llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
        print_costs()
        print(await talk(llm, QUESTION))
    except AdapterError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    asyncio.run(main())
