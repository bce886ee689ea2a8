"""`Hold`: a hook leaves a call to a person, and `ToolRoundPlan.decide` says what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest
from hook_toolkit import ADD, DELETE, WEATHER, AppTools, Forecast, Weather, start

from lutumpy import (
    CommitError,
    Complete,
    Hold,
    HookError,
    Reject,
    RoundClosedError,
    RunNormally,
    ToolRoundPlan,
)

CALLS = [WEATHER, ADD, DELETE]


def held_plan(*, order: str = "weather") -> tuple[Any, ToolRoundPlan[Any]]:
    """A plan whose call of the tool `order` is held, all others pending."""
    session, round = start(*CALLS)
    hooks = AppTools.hooks()

    def hold(metadata: Any, input: Any) -> Any:
        return Hold("a person looks at this")

    hooks.on(AppTools.selector(order))(hold)
    return session, round.apply_hooks_sync(hooks)


def results(plan: ToolRoundPlan[Any]) -> list[Any]:
    return [call.reject("not run here") for call in plan.pending]


def test_a_held_call_is_neither_pending_nor_decided() -> None:
    _, plan = held_plan()
    assert [call.metadata.name for call in plan.held] == ["weather"]
    assert "weather" not in [call.metadata.name for call in plan.pending]
    assert plan.handled == plan.rejected == ()
    plan.discard()


def test_later_hooks_are_not_asked() -> None:
    asked: list[str] = []

    def first(call: Any) -> Any:
        asked.append("first")
        return Hold()

    _, round = start(WEATHER)
    plan = round.apply_hooks_sync(first)

    def second(call: Any) -> Any:
        asked.append("second")
        return RunNormally()

    again = plan.apply_hooks_sync(second)
    assert asked == ["first"]
    assert len(again.held) == 1
    again.discard()


def test_a_plan_with_a_held_call_is_not_committed() -> None:
    session, plan = held_plan()
    before = len(session.transcript)
    with pytest.raises(CommitError) as raised:
        plan.commit(session, results(plan))
    assert [problem.kind for problem in raised.value.problems] == ["held"]
    # A result for it doesn't help.
    given = plan.held[0].reject("I know better")
    with pytest.raises(CommitError) as raised:
        plan.commit(session, [*results(plan), given])
    assert [problem.kind for problem in raised.value.problems] == ["held"]
    assert len(session.transcript) == before
    plan.discard()


@pytest.mark.parametrize(
    ("decision", "standing"),
    [
        (RunNormally(), "pending"),
        (RunNormally.edited(city="Bergen"), "pending"),
        (Complete(Forecast(text="rain")), "handled"),
        (Reject("no"), "rejected"),
    ],
)
def test_a_person_decides(decision: Any, standing: str) -> None:
    session, plan = held_plan()
    call_id = plan.held[0].metadata.id
    decided = plan.decide({call_id: decision}, by="ann")
    assert decided.held == ()
    assert "weather" in [getattr(one, "metadata", one).name for one in getattr(decided, standing)]
    described = {one["call_id"]: one for one in decided.decisions()}[call_id]
    assert (described["source"], described["by"]) == ("person", "ann")
    assert next(hook["did"] for hook in described["hooks"]) == "held"
    with pytest.raises(RoundClosedError):
        plan.discard()
    decided.commit(session, results(decided))
    assert len(session.turns()) == 1


def test_calls_that_are_left_out_stay_held() -> None:
    session, round = start(WEATHER, ADD)
    plan = round.apply_hooks_sync(lambda call: Hold())
    first, second = plan.held
    decided = plan.decide({first.metadata.id: Reject("no")}, by="ann")
    assert [call.metadata.id for call in decided.held] == [second.metadata.id]
    last = decided.decide({second.metadata.id: RunNormally()}, by="bob")
    assert [one["by"] for one in last.decisions()] == ["ann", "bob"]
    last.commit(session, results(last))


@pytest.mark.parametrize(
    ("decisions", "said"),
    [
        ({"nobody": RunNormally()}, "is not a call of this plan"),
        ({"PENDING": RunNormally()}, "isn't held"),
        ({"HELD": Hold()}, "not RunNormally, Complete or Reject"),
        ({"HELD": None}, "not RunNormally, Complete or Reject"),
        ({"HELD": Complete(7)}, "ann on call"),
        ({"HELD": RunNormally(Forecast(text=""))}, "ann on call"),
        ({"HELD": RunNormally.edited(town="Oslo")}, "ann on call"),
        ({"HELD": Reject(7)}, "ann on call"),  # type: ignore[arg-type]
        (["HELD"], "decisions by call id"),
    ],
)
def test_a_decision_that_does_not_fit_changes_nothing(decisions: Any, said: str) -> None:
    _, plan = held_plan()
    names = {"HELD": plan.held[0].metadata.id, "PENDING": plan.pending[0].metadata.id}
    if isinstance(decisions, dict):
        decisions = {names.get(key, key): value for key, value in decisions.items()}
    with pytest.raises(HookError, match=said):
        plan.decide(decisions, by="ann")
    assert len(plan.held) == 1
    plan.discard()


def test_who_decides_has_a_name() -> None:
    _, plan = held_plan()
    with pytest.raises(HookError, match="who decided"):
        plan.decide({}, by="")
    plan.discard()


def test_a_hold_without_a_text_is_refused() -> None:
    _, round = start(WEATHER)
    with pytest.raises(HookError, match="a Hold whose reason is int"):
        round.apply_hooks_sync(lambda call: Hold(7))  # type: ignore[arg-type]
    round.discard()


async def apply(hooks: Any, call: Any) -> Any:
    return await hooks.apply(call)


def test_one_call_alone_can_not_be_held() -> None:
    _, round = start(WEATHER)
    hooks = AppTools.hooks()
    hooks.on(AppTools.selector("weather"))(lambda metadata, input: Hold())
    call = round.calls[0]
    with pytest.raises(HookError, match="one call alone can't be held"):
        hooks.apply_sync(call)
    round.discard()


def test_what_a_hook_does_to_the_input_later_is_not_seen() -> None:
    kept: list[Any] = []

    def hold(metadata: Any, input: Any) -> Any:
        kept.append(input)
        return Hold()

    _, round = start(WEATHER)
    hooks = AppTools.hooks()
    hooks.on(AppTools.selector("weather"))(hold)
    plan = round.apply_hooks_sync(hooks)
    kept[0].city = "Bergen"
    held = plan.held[0].input
    assert isinstance(held, Weather)
    assert held.city != "Bergen"
    plan.discard()
