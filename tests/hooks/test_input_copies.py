"""What hooks are shown is a copy, and it is cheap for inputs of plain values and lists of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any

from counting import functions_entered
from hook_toolkit import start
from pydantic import AfterValidator, PrivateAttr

from lutumpy import (
    NeedsTools,
    RunNormally,
    Session,
    ToolInput,
    ToolMetadata,
    Toolset,
    hook_impl,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.hooks import BaseToolCall
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


class Journey(ToolInput[str]):
    """Plan a journey."""

    leaves: datetime
    price: Decimal = Decimal("7")
    offset: float = 0.0
    stops: dict[str, list[datetime]] = {}
    _traveller: str = PrivateAttr("nobody")


class FlatJourney(ToolInput[str]):
    """Plan a journey without stops."""

    leaves: datetime
    price: Decimal = Decimal("7")
    offset: float = 0.0


class SimpleJourney(ToolInput[str]):
    """Plan a journey for somebody."""

    leaves: datetime
    _traveller: str = PrivateAttr("nobody")


class Journeys(Toolset):
    journey = tool(tool_input(name="journey")(Journey))
    flat = tool(tool_input(name="flat")(FlatJourney))
    simple = tool(tool_input(name="simple")(SimpleJourney))


NOON = "2026-05-01T12:00:00Z"
CEST = timezone(timedelta(hours=2))


def decide_both_ways(name: str, arguments: Any, change: Callable[[Any], object]) -> list[Any]:
    """A call and what a hook that changes its input in place makes of it: alone, and in a round."""

    class Changes:
        @hook_impl
        def any_tool_hook(self, metadata: ToolMetadata, call: BaseToolCall) -> Any:
            change(call.input)
            return RunNormally()

    hooks = Journeys.hooks().with_hooks(Changes())
    _, round = start(Call(name, arguments), toolset=Journeys)
    (call,) = round.calls
    alone = hooks.apply_sync(call)
    plan = round.apply_hooks_sync(hooks)
    plan.discard()
    return [(call, alone), (call, plan.pending[0])]


def test_a_change_to_a_value_that_is_equal_runs_as_it_was_made_H2() -> None:
    # Equal to Python, and not to a tool that writes them down or asks for the hour.
    changes: list[tuple[str, Callable[[Any], Any], Callable[[Any], object], object]] = [
        ("leaves", lambda input: input.leaves.astimezone(CEST), lambda i: i.leaves.hour, 14),
        ("price", lambda input: Decimal("7.00"), lambda i: str(i.price), "7.00"),
        ("offset", lambda input: -0.0, lambda i: str(i.offset), "-0.0"),
    ]
    arguments = {"leaves": NOON, "price": "7", "offset": 0.0}
    for name in ("journey", "flat"):
        for field, make, read, wanted in changes:

            def assign(input: Any, field: str = field, make: Any = make) -> None:
                setattr(input, field, make(input))

            for call, decided in decide_both_ways(name, arguments, assign):
                assert read(decided.input) == wanted
                assert read(call.input) != wanted


def test_a_change_deep_inside_or_to_a_private_attribute_runs_H2() -> None:
    def move(input: Any) -> None:
        input.stops["Oslo"][0] = input.stops["Oslo"][0].astimezone(CEST)

    arguments = {"leaves": NOON, "stops": {"Oslo": [NOON]}}
    for call, decided in decide_both_ways("journey", arguments, move):
        assert decided.input.stops["Oslo"][0].hour == 14
        assert call.input.stops["Oslo"][0].hour == 12

    def name_traveller(input: Any) -> None:
        input._traveller = "ann"

    simple = {"leaves": NOON}
    for name, given in (("journey", arguments), ("simple", simple)):
        for call, decided in decide_both_ways(name, given, name_traveller):
            assert (decided.input._traveller, call.input._traveller) == ("ann", "nobody")
    for name, given in (("journey", arguments), ("simple", simple), ("flat", simple)):
        for call, decided in decide_both_ways(name, given, lambda input: None):
            assert decided is call  # nobody changed anything


def test_a_list_costs_no_function_for_each_of_its_values() -> None:
    def cost(size: int) -> int:
        words = [f"w{number}" for number in range(size)]
        return sum(functions_entered(lambda: play(words, lambda input: None)).values())

    cost(1)
    assert cost(1) == cost(50)
