"""A budget for each tool: it rejects calls beyond it, tells the model what is left, and withdraws
tools that are used up.

Run:    python examples/hooks/budget.py            a scripted model, no key
        python examples/hooks/budget.py --live     OpenAI, with OPENAI_API_KEY;
                                                   --model NAME for another model,
                                                   OPENAI_BASE_URL for any compatible host
Prints: the tools of each request with their descriptions, what was run, what was rejected, and the
answer.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Mapping

from lutumpy import (
    AdapterError,
    Finished,
    Model,
    NeedsTools,
    Reject,
    RunNormally,
    Selector,
    Session,
    ToolAvailability,
    ToolDecision,
    ToolMetadata,
    Toolset,
    hook_impl,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.hooks import BaseToolCall
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 8


@tool_fn(effect="read")
async def search(query: str) -> list[str]:
    """Search the web."""
    return [f"something about {query}"]


@tool_fn(effect="read")
async def read_page(url: str) -> str:
    """Read a page."""
    return f"the text of {url}"


class Research(Toolset):
    search = tool(search)
    read_page = tool(read_page)


class Budget:
    """So many calls of each tool in this conversation; a tool that isn't named has no limit.

    It counts what the model asks for, before the tool's own hooks decide: a call that one of those
    rejects is counted too.
    """

    def __init__(self, limits: Mapping[Selector[Research], int]) -> None:
        self._limits = {selector.name: limit for selector, limit in limits.items()}
        self._used: Counter[str] = Counter()

    def left(self, name: str) -> int | None:
        limit = self._limits.get(name)
        return None if limit is None else limit - self._used[name]

    @hook_impl
    def any_tool_hook(self, metadata: ToolMetadata, call: BaseToolCall) -> ToolDecision:
        left = self.left(metadata.name)
        if left is not None and left <= 0:
            return Reject(f"the budget for {metadata.name} is used up; go on with what you have")
        self._used[metadata.name] += 1
        return RunNormally(call.input)

    def available(self) -> ToolAvailability[Research]:
        """The tools that still have a budget, for the next turn."""
        return ToolAvailability.only(*[s for s in Research.selectors() if self.left(s.name) != 0])

    def descriptions(self) -> dict[Selector[Research], str]:
        """Descriptions that say what is left, for the next turn."""
        return {
            s: f"{s.definition.description} At most {left} more times."
            for s in Research.selectors()
            if (left := self.left(s.name)) is not None
        }


async def talk(llm: Model, question: str, budget: Budget) -> str:
    hooks = Research.hooks().with_hooks(budget)
    session = Session()
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        available, describe = budget.available(), budget.descriptions()
        for spec in Research.offer(available=available, describe=describe).specs:
            print(f"on offer: {spec.name}: {spec.description}")
        match await session.text_turn(
            llm, tools=Research, available=available, describe=describe
        ).collect():
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=round):
                plan = await round.apply_hooks(hooks)
                results = [call.complete(await call.call()) for call in plan.pending]
                for ran in results:
                    print(f"  ran {ran.metadata.name} {ran.metadata.arguments}")
                for rejected in plan.rejected:
                    print(f"  rejected {rejected.metadata.arguments}: {rejected.reason}")
                for issue in plan.issues:
                    print(f"  {issue.reason}: {issue.detail}")
                plan.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds."


SCRIPT = [
    Reply(calls=[Call("search", {"query": "otters"})]),
    Reply(
        calls=[Call("search", {"query": "sea otters"}), Call("search", {"query": "river otters"})]
    ),
    Reply(
        calls=[
            Call("search", {"query": "giant otters"}),
            Call("read_page", {"url": "https://otters.example"}),
        ]
    ),
    Reply(text="Otters hold hands."),
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
        print(await talk(llm, "What do otters do? Look it up.", Budget({Research.search: 2})))
    except AdapterError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    asyncio.run(main())
