"""What hooks are shown is a copy, and it is cheap for inputs of plain values and lists of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from counting import functions_entered
from pydantic import AfterValidator

from lutumpy import NeedsTools, RunNormally, Session, ToolMetadata, Toolset, tool, tool_fn
from lutumpy.testing import Call, Reply, ScriptedModel

SHARED = ["shared"]
Words = Annotated[list[str], AfterValidator(lambda words: SHARED if words == SHARED else words)]


@tool_fn
async def search(words: Words, limits: list[int], more: Words) -> str:
    """Search."""
    return ",".join([*words, *map(str, limits), *more])


class Tools(Toolset):
    search = tool(search)


def play(words: list[str], change: Callable[[Any], object]) -> tuple[str, Any]:
    """What the tool answers after a hook, and the input that the round keeps."""
    hooks = Tools.hooks()

    @hooks.on(Tools.search)
    async def decide(metadata: ToolMetadata, input: Any) -> Any:
        change(input)
        return RunNormally(input)

    async def run() -> tuple[str, Any]:
        call = Call("search", {"words": words, "limits": [1], "more": SHARED})
        session = Session()
        session.push_user("go")
        llm = ScriptedModel([Reply(calls=[call]), Reply("done")])
        step = await session.text_turn(llm, tools=Tools).collect()
        assert isinstance(step, NeedsTools)
        plan = await step.round.apply_hooks(hooks)
        (pending,) = plan.pending
        output = await pending.call()
        kept = step.round.calls[0].input
        plan.discard()
        return str(output), kept

    return asyncio.run(run())


def test_a_change_inside_a_list_runs_and_the_round_keeps_its_own_K3a() -> None:
    changes: list[tuple[list[str], Callable[[Any], object], str]] = [
        (["a"], lambda input: None, "a,1,shared"),
        (["a"], lambda input: input.words.append("b"), "a,b,1,shared"),
        (["a"], lambda input: input.limits.__setitem__(0, True), "a,True,shared"),  # equal to 1
        (["a"], lambda input: input.words.__setitem__(0, "c"), "c,1,shared"),
        (["shared"], lambda input: input.more.append("d"), "shared,d,1,shared,d"),
    ]
    for words, change, wanted in changes:
        output, kept = play(words, change)
        assert output == wanted
        assert (kept.words, kept.limits) == (words, [1])


def test_a_list_costs_no_function_for_each_of_its_values() -> None:
    def cost(size: int) -> int:
        words = [f"w{number}" for number in range(size)]
        return sum(functions_entered(lambda: play(words, lambda input: None)).values())

    cost(1)
    assert cost(1) == cost(50)
