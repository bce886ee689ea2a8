"""A budget for each tool: it rejects calls beyond it, tells the model what is left, and withdraws tools that are used up."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping

from lutumpy import (
    BaseToolCall,
    Finished,
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
from lutumpy.testing import Call, Reply, ScriptedModel


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

    It counts what the model asks for, before the tool's own hooks decide: a call that one of those rejects is counted too.
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


SCRIPT = [
    Reply(calls=[Call("search", {"query": "otters"})]),
    Reply(calls=[Call("search", {"query": "sea otters"}), Call("search", {"query": "river otters"})]),
    Reply(calls=[Call("search", {"query": "giant otters"}), Call("read_page", {"url": "https://otters.example"})]),
    Reply(text="Otters hold hands."),
]


async def main() -> None:
    llm = ScriptedModel(SCRIPT)
    budget = Budget({Research.search: 2})
    hooks = Research.hooks().with_hooks(budget)
    session = Session()
    session.push_user("What do otters do?")
    while True:
        turn = session.text_turn(llm, tools=Research, available=budget.available(), describe=budget.descriptions())
        outcome = await turn.collect()
        offered = {t["function"]["name"]: t["function"]["description"] for t in llm.requests[-1].get("tools", [])}
        print(f"offered: {offered}")
        match outcome:
            case NeedsTools(round=round):
                plan = await round.apply_hooks(hooks)
                results = [call.complete(await call.call()) for call in plan.pending]
                for result in results:
                    print(f"  ran {result.metadata.name} {result.metadata.arguments}")
                for rejected in plan.rejected:
                    print(f"  rejected {rejected.metadata.arguments}: {rejected.reason}")
                for issue in plan.issues:
                    print(f"  {issue.reason}: {issue.detail}")
                plan.commit(session, results)
            case Finished(result=result):
                print(result.text)
                return


if __name__ == "__main__":
    asyncio.run(main())
