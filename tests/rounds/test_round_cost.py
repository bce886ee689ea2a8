"""What a round costs, counted in functions of this package that are entered.

No clock is asked, so it holds on any machine.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from counting import functions_entered

from lutumpy import (
    NeedsTools,
    RunNormally,
    Session,
    ToolDecision,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.hooks import ToolHooks
from lutumpy.models import Api
from lutumpy.testing import Call, Reply, ScriptedModel

APIS: list[Api] = ["openai_chat", "openai_responses", "anthropic_messages"]
every_api = pytest.mark.parametrize("api", APIS)


@tool_fn
async def lookup(key: str, limit: int = 10) -> str:
    """Look something up."""
    return key


class Tools(Toolset):
    lookup = tool(lookup)


def hooks() -> ToolHooks[Tools]:
    registry = Tools.hooks()

    @registry.on(Tools.lookup)
    async def keep(metadata: ToolMetadata, input: Any) -> ToolDecision[Any, str]:
        return RunNormally(input)

    return registry


def model(api: Api, rounds: int, width: int) -> ScriptedModel:
    calls = [
        [Call("lookup", {"key": f"k{r}-{c}"}, id=f"call_{r}_{c}") for c in range(width)]
        for r in range(rounds)
    ]
    return ScriptedModel(
        [*[Reply(calls=c) for c in calls], Reply("done")], api=api, check=False, keep=1
    )


def entered(run: Callable[[], object]) -> Counter[str]:
    """The functions of this package that `run` enters; those of the double don't count."""
    return functions_entered(run, but=("testing",))


async def play(
    session: Session, llm: ScriptedModel, registry: ToolHooks[Tools] | None, rounds: int
) -> None:
    """So many rounds of a conversation that goes on."""
    for _ in range(rounds):
        match await session.text_turn(llm, tools=Tools).collect():
            case NeedsTools(round=found):
                if registry is None:
                    found.commit(
                        session, [call.complete(await call.call()) for call in found.calls]
                    )
                else:
                    plan = await found.apply_hooks(registry)
                    plan.commit(
                        session, [call.complete(await call.call()) for call in plan.pending]
                    )
            case _:
                raise AssertionError("the script has calls for each of these rounds")


def cost(api: Api, width: int, *, after: int, rounds: int = 10, hooked: bool = True) -> float:
    """Functions entered for one round, in a conversation that has `after` rounds behind it."""
    llm, session, registry = (
        model(api, after + rounds, width),
        Session(),
        hooks() if hooked else None,
    )
    session.push_user("go")

    async def main() -> Counter[str]:
        await play(session, llm, registry, after)
        work = play(session, llm, registry, rounds)
        return entered(lambda: _drain(work))

    total = asyncio.run(main())
    return sum(total.values()) / rounds


def _drain(work: Any) -> None:
    """Run a coroutine that never waits."""
    with pytest.raises(StopIteration):
        work.send(None)


# What a round takes today, and a little room: a change that needs more should be a decision, not an
# accident.
LIMITS: dict[Api, tuple[int, int]] = {
    "openai_chat": (112, 17),
    "openai_responses": (118, 23),
    "anthropic_messages": (138, 24),
}


@every_api
def test_a_round_enters_few_functions_and_each_further_call_a_few_more(api: Api) -> None:
    one, nine = cost(api, 1, after=2), cost(api, 9, after=2)
    at_most, for_each = LIMITS[api]
    assert one <= at_most
    assert (nine - one) / 8 <= for_each


@every_api
def test_a_hook_that_lets_the_call_pass_adds_a_fixed_small_number_of_functions(api: Api) -> None:
    hooked, bare = (
        [cost(api, width, after=2) for width in (1, 9)],
        [cost(api, width, after=2, hooked=False) for width in (1, 9)],
    )
    assert hooked[0] - bare[0] <= 17
    assert (
        (hooked[1] - bare[1]) - (hooked[0] - bare[0])
    ) / 8 <= 2  # the decision made, and the look at it


def by_parameters() -> ToolHooks[Tools]:
    registry = Tools.hooks()

    @registry.on(Tools.lookup)
    async def keep(metadata: ToolMetadata, key: str, limit: int = 10) -> ToolDecision[Any, str]:
        return RunNormally()

    return registry


@every_api
def test_a_hook_by_parameters_costs_one_look_at_the_values_more(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How to bind the parameters was worked out when the hook was registered."""
    old = cost(api, 9, after=2)
    monkeypatch.setitem(globals(), "hooks", by_parameters)
    # The function in between; before Python 3.12 its comprehension is one too.
    assert 0 < (cost(api, 9, after=2) - old) / 9 <= 2


@every_api
def test_a_round_costs_the_same_however_long_the_conversation_is(api: Api) -> None:
    """What is there is joined; nothing is walked, encoded or validated again."""
    assert cost(api, 1, after=400) == cost(api, 1, after=4)


@every_api
def test_the_work_of_a_conversation_grows_in_proportion_to_its_rounds(api: Api) -> None:
    def total(rounds: int) -> int:
        llm, session = model(api, rounds, 1), Session()
        session.push_user("go")
        return sum(entered(lambda: _drain(play(session, llm, hooks(), rounds))).values())

    small, large = total(30), total(300)
    assert math.log(large / small) / math.log(10) < 1.02


@every_api
def test_each_item_is_encoded_once(api: Api) -> None:
    llm, session = model(api, 50, 1), Session()
    session.push_user("go")
    found = entered(lambda: _drain(play(session, llm, None, 50)))
    # The user's message, and a turn with its results in each round but the last, which nobody has
    # asked for yet.
    assert found["history_encoder.py:add"] + found["encode.py:add"] == 1 + 2 * 49
