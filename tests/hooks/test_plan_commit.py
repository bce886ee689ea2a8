"""Committing a plan: rules K1 to K7 hold with decisions in it."""

from __future__ import annotations

from typing import Any

import pytest
from every_api import ADAPTERS, APIS, CHECKS
from hook_toolkit import (
    ADD,
    DELETE,
    UNKNOWN,
    USER,
    WEATHER,
    AppTools,
    DataTools,
    Forecast,
    User,
    results,
    start,
)

from lutumpy import (
    CommitError,
    Complete,
    Reject,
    RoundClosedError,
    RunNormally,
    StaleRoundError,
    ToolRoundPlan,
)


def hooks() -> Any:
    made = AppTools.hooks()

    @made.on(AppTools.delete_file)
    def no(metadata: Any, input: Any) -> Reject:
        return Reject("read-only")

    @made.on(AppTools.data[DataTools.get_user])
    def cached(metadata: Any, input: Any) -> Complete[User]:
        return Complete(User(name="Ann"))

    return made


async def planned(api: str = "openai_chat") -> tuple[Any, ToolRoundPlan[Any]]:
    session, round = start(WEATHER, UNKNOWN, DELETE, USER, ADD, api=api)
    return session, await round.apply_hooks(hooks())


@pytest.mark.parametrize("api", APIS)
async def test_every_call_has_one_result_in_call_order(api: str) -> None:  # K1 K2
    session, plan = await planned(api)
    weather, add = plan.pending
    plan.commit(session, [add.complete(3), weather.complete(Forecast(text="dry"))])
    found = results(session)
    assert [(i, s) for i, s, _ in found] == [
        ("call_1", "ok"),
        ("call_5", "rejected"),
        ("call_2", "rejected"),
        ("call_3", "ok"),
        ("call_4", "ok"),
    ]
    assert found[1][2].startswith("Tool call rejected: There is no tool named")
    assert found[2][2] == "Tool call rejected: read-only"  # K6
    assert found[3][2] == '{"name":"Ann"}'  # K7
    body = {"model": "m", **ADAPTERS[api].request(session.transcript, AppTools.offer(), model="m")}
    assert [p for p in CHECKS[api](body) if p.certainty == "refused"] == []


async def test_equal_plans_give_equal_bytes() -> None:  # K2
    bodies = []
    for order in (1, -1):
        session, plan = await planned()
        weather, add = plan.pending
        plan.commit(session, [weather.complete(Forecast(text="dry")), add.complete(3)][::order])
        bodies.append(ADAPTERS["openai_chat"].request(session.transcript))
    assert bodies[0] == bodies[1]


async def test_every_problem_is_reported_and_the_plan_stays_open() -> None:  # K1 K3
    session, plan = await planned()
    weather, add = plan.pending
    handled, rejected = plan.handled[0], plan.rejected[0]
    with pytest.raises(CommitError) as caught:
        plan.commit(
            session, [rejected, handled, weather.complete(Forecast(text="a")), weather.fail("b")]
        )
    assert [(p.kind, p.call_id) for p in caught.value.problems] == [
        ("duplicate_result", "call_1"),
        ("missing_result", "call_4"),
        ("extra_result", "call_2"),
        ("extra_result", "call_3"),
    ]
    assert len(session.transcript) == 1
    plan.commit(session, [weather.fail("x"), add.complete(3)])
    with pytest.raises(RoundClosedError, match="committed"):
        plan.commit(session, [])
    with pytest.raises(RoundClosedError):
        plan.discard()


async def test_an_edited_call_is_answered_for_what_the_model_asked() -> None:  # H2 K3
    session, round = start(ADD)
    plan = await round.apply_hooks(
        lambda call: RunNormally(call.input.model_copy(update={"a": 40}))
    )
    plan.commit(session, [plan.pending[0].complete(42)])
    assert session.turns()[0].calls[0].arguments == '{"a": 1, "b": 2}'


async def test_decided_results_are_what_the_hook_gave_whatever_happens_to_it_later() -> None:  # H2
    user = User(name="Ann")
    session, round = start(USER)
    plan = await round.apply_hooks(lambda call: Complete(user))
    user.name = "changed later"
    plan.commit(session, [])
    assert results(session)[0][2] == '{"name":"Ann"}'


async def test_an_explicit_result_for_an_issue_replaces_the_standard_answer() -> None:  # K1
    session, plan = await planned()
    weather, add = plan.pending
    (issue,) = plan.issues
    plan.commit(
        session, [weather.fail("x"), add.complete(3), issue.fail("there is no such thing here")]
    )
    assert results(session)[1] == ("call_5", "error", "there is no such thing here")


async def test_a_stale_plan_can_be_rebased() -> None:  # K4
    session, round = start(DELETE)
    plan = await round.apply_hooks(hooks())
    session.push_user("one more thing")
    with pytest.raises(StaleRoundError):
        plan.commit(session, [])
    plan.commit(session, [], rebase=True)
    assert results(session)[0][1] == "rejected"


@pytest.mark.parametrize(
    "reason", ["", "  ", "line\nline", "\ud800 lone", "Tool call rejected: twice"]
)
@pytest.mark.parametrize("api", APIS)
async def test_any_reason_gives_a_valid_request(api: str, reason: str) -> None:  # K6
    session, round = start(WEATHER, api=api)
    plan = await round.apply_hooks(lambda call: Reject(reason))
    plan.commit(session, [])
    assert results(session)[0][2].startswith("Tool call rejected: ")
    body = {"model": "m", **ADAPTERS[api].request(session.transcript, model="m")}
    assert [p for p in CHECKS[api](body) if p.certainty == "refused"] == []


async def test_a_plan_knows_the_answer_that_it_came_from() -> None:
    _, plan = await planned()
    assert plan.finish_reason == "tool_calls"
    assert plan.model == "m"
    assert plan.usage.total_tokens
    assert plan.text == ""
    assert "no_such_tool (unknown_tool)" in (plan.continue_suggestion or "")
    assert repr(plan) == "<ToolRoundPlan open: 2 pending, 1 handled, 1 rejected, 1 issues>"
    plan.discard()
    assert repr(plan).startswith("<ToolRoundPlan discarded: ")
