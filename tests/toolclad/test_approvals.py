"""Tools run only what was approved; every doubt is a no."""

from __future__ import annotations

from typing import Any

import pytest
from clad_toolkit import Workshop, call, run

from lutumpy import (
    DynamicTool,
    HookError,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    ToolMetadata,
    ToolRound,
    Toolset,
)
from lutumpy.execution import Dispatcher, ExecutionResult, ToolExecutor
from lutumpy.hooks import BaseToolCall
from lutumpy.testing import Call, Reply, ScriptedModel
from lutumpy.toolclad import CladTools

TEXT = {"text": {"type": "string"}}


def load(workshop: Workshop, **more: Any) -> CladTools:
    for name, tool in {
        "guarded": {"human_approval": True, "risk_tier": "info"},
        "risky": {"risk_tier": "high"},
        "medium": {"risk_tier": "medium"},
        "easy": {"risk_tier": "info"},
    }.items():
        workshop.write(name, ["printf", "%s", "{text}"], TEXT, tool=tool)
    return workshop.load(**more)


def round_of(toolset: type[Toolset[Any]], *calls: Call) -> ToolRound[Any]:
    session = Session()
    session.push_user("Go.")
    outcome = session.text_turn(ScriptedModel([Reply(calls=calls)]), tools=toolset).collect_sync()
    assert isinstance(outcome, NeedsTools)
    return outcome.round


ALL = [Call(name, {"text": "x"}) for name in ("guarded", "risky", "medium", "easy")]


def test_what_is_asked_about_follows_the_manifest(workshop: Workshop) -> None:
    clad = load(workshop)
    asked: list[str] = []

    def approve(called: BaseToolCall) -> bool:
        asked.append(called.metadata.name)
        return True

    plan = round_of(clad.toolset, *ALL).apply_hooks_sync(clad.policy(approve))
    assert asked == ["guarded", "risky"]
    results = ToolExecutor().run_sync(plan.pending, clad.dispatch)
    assert [result.outcome for result in results] == ["ok"] * 4
    plan.discard()
    asked.clear()
    policy = clad.policy(approve, risks=["medium", "info"])
    round_of(clad.toolset, *ALL).apply_hooks_sync(policy).discard()
    assert asked == ["guarded", "medium", "easy"]


async def test_who_approves_may_be_async(workshop: Workshop) -> None:
    clad = load(workshop)

    async def approve(called: BaseToolCall) -> bool | Reject:
        return Reject("not today") if called.metadata.name == "risky" else True

    plan = await round_of(clad.toolset, *ALL).apply_hooks(clad.policy(approve))
    assert [(one.metadata.name, one.reason) for one in plan.rejected] == [("risky", "not today")]
    results = await ToolExecutor().run(plan.pending, clad.dispatch)
    assert [result.outcome for result in results] == ["ok"] * 3
    plan.discard()


@pytest.mark.parametrize("answer", [None, False, 1, "yes", [True], RunNormally()])
def test_only_true_approves(workshop: Workshop, answer: Any) -> None:
    clad = load(workshop)
    plan = round_of(clad.toolset, *ALL).apply_hooks_sync(clad.policy(lambda called: answer))
    assert [one.metadata.name for one in plan.rejected] == ["guarded", "risky"]
    assert {one.reason for one in plan.rejected} == {"it was not approved"}
    plan.discard()


def test_an_approval_that_raises_stops_the_round_h4(workshop: Workshop) -> None:
    clad = load(workshop)

    def approve(called: BaseToolCall) -> bool:
        raise ConnectionError("nobody is there")

    undecided = round_of(clad.toolset, *ALL)
    with pytest.raises(HookError):
        undecided.apply_hooks_sync(clad.policy(approve))
    (guarded, *_) = undecided.calls
    (result,) = ToolExecutor().run_sync([guarded], clad.dispatch)
    assert result.outcome == "failed"
    undecided.discard()


def test_an_approval_is_for_one_run_of_this_call_with_these_values(workshop: Workshop) -> None:
    clad = load(workshop)
    policy = clad.policy(lambda called: True)

    def outcome(called: BaseToolCall) -> str:
        (result,) = ToolExecutor().run_sync([called], clad.dispatch)
        return result.outcome

    approved = call(clad, "guarded", {"text": "x"}, id="call_1")
    assert policy(approved) == RunNormally()
    for other in (
        call(clad, "guarded", {"text": "y"}, id="call_1"),
        call(clad, "guarded", {"text": "x"}, id="call_2"),
        approved.edited(text="z"),
    ):
        assert outcome(other) == "failed"
    assert outcome(approved) == "ok"
    assert outcome(approved) == "failed"  # once


def test_a_policy_that_was_forgotten_is_noticed(workshop: Workshop) -> None:
    clad = load(workshop)
    assert run(clad, "guarded", {"text": "x"}).outcome == "failed"
    assert run(clad, "risky", {"text": "x"}).outcome == "ok"


def test_approvals_may_be_somebody_elses_business(workshop: Workshop) -> None:
    clad = load(workshop, approved_elsewhere=True)
    assert run(clad, "guarded", {"text": "x"}).outcome == "ok"


def test_a_renamed_tool_in_another_toolset_is_still_asked_about(workshop: Workshop) -> None:
    clad = load(workshop)
    other = DynamicTool("other", "Another one.", {"type": "object"}, run=lambda arguments: "ran")
    tools = [*clad.tools, other]
    mixed = Toolset.of("Mixed", tools, prefix="my_")
    asked: list[Any] = []

    def approve(called: BaseToolCall) -> bool:
        asked.append(clad.manifest_of(called))
        return called.metadata.name == "my_guarded"

    calls = [Call(f"my_{name.name}", {"text": "x"}) for name in ALL] + [Call("my_other")]
    plan = round_of(mixed, *calls).apply_hooks_sync(clad.policy(approve))
    assert asked == [clad.manifests["guarded"], clad.manifests["risky"]]
    assert [one.metadata.name for one in plan.rejected] == ["my_risky"]
    results: list[ExecutionResult] = ToolExecutor().run_sync(plan.pending, Dispatcher(mixed))
    assert [result.outcome for result in results] == ["ok"] * 4
    plan.discard()


def test_manifests_of_somebody_else_are_not_approved_here(workshop: Workshop) -> None:
    mine, yours = load(workshop), load(workshop)
    called = call(yours, "guarded", {"text": "x"})
    assert mine.manifest_of(called) is None
    assert mine.policy(lambda called: True)(called) == RunNormally()
    (result,) = ToolExecutor().run_sync([called], yours.dispatch)
    assert result.outcome == "failed"


def test_a_person_can_be_shown_the_command(workshop: Workshop) -> None:
    clad = load(workshop)
    shown: list[tuple[str, ...]] = []

    def approve(called: BaseToolCall) -> bool:
        manifest = clad.manifest_of(called)
        assert manifest is not None
        shown.append(manifest.command(called.arguments))
        return False

    clad.policy(approve)(call(clad, "guarded", {"text": "a b"}))
    assert shown == [("printf", "%s", "a b")]


def test_what_is_no_function_or_risk_is_refused(workshop: Workshop) -> None:
    clad = load(workshop)
    with pytest.raises(TypeError, match="policy takes a function"):
        clad.policy(True)  # type: ignore[arg-type]
    for risks in ("high", ["huge"]):
        with pytest.raises(ValueError, match="risks are some of info, low, medium, high, critical"):
            clad.policy(lambda called: True, risks=risks)
    assert "ApprovalPolicy" in repr(clad.policy(lambda called: True))


def test_an_approval_that_was_never_used_does_not_pile_up(workshop: Workshop) -> None:
    from lutumpy.toolclad import approvals

    noted = approvals.Approvals()
    for index in range(approvals._MOST_NOTED + 10):
        noted.note(ToolMetadata(f"call_{index}", "guarded", "{}"), {})
    assert not noted.take(ToolMetadata("call_0", "guarded", "{}"), {})
    assert noted.take(ToolMetadata("call_10", "guarded", "{}"), {})
