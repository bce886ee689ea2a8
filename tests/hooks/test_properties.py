"""Whatever hooks do, a transcript stays valid for every API (rules H4, K5)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from every_api import ADAPTERS, APIS, CHECKS
from hook_toolkit import AppTools, DataTools, Forecast, User, Weather, start
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import (
    Complete,
    HookError,
    Reject,
    RunNormally,
    Session,
    ToolRound,
    ToolRoundPlan,
    hook_impl,
)
from lutumpy.testing import Call

OUTPUTS = {
    "weather": Forecast(text="dry"),
    "delete-file": None,
    "add": 3,
    "get_user": User(name="Ann"),
    "count_users": 7,
}

ARGUMENTS = {
    "weather": ['{"city": "Oslo"}', '{"city": 3}', '{"ci', "", '{"city": "\\ud800"}'],
    "delete-file": ['{"path": "/"}', "null", "[]"],
    "add": ['{"a": 1, "b": "2"}', "{}"],
    "get_user": ['{"user_id": "ann"}', '"x"'],
    "count_users": [""],
    "no_such_tool": ["{}"],
}
calls = st.lists(
    st.one_of(
        [
            st.builds(Call, st.just(name), st.sampled_from(texts))
            for name, texts in ARGUMENTS.items()
        ]
    ),
    min_size=1,
    max_size=5,
)

ACTIONS = [
    "pass",
    "edit",
    "edit in place",
    "assign to the call",
    "complete",
    "complete wrongly",
    "reject",
    "reject without a reason",
    "raise",
    "cancel",
    "nonsense",
    "another input",
    "sleep",
    "a coroutine",
]
actions = st.lists(st.sampled_from(ACTIONS), max_size=6)
hook = st.tuples(st.sampled_from(["any", "weather", "delete", "user"]), st.booleans(), actions)


class Script:
    """A hook that does what is written down for it, then lets everything pass."""

    def __init__(self, actions: list[str]) -> None:
        self.left = list(actions)

    def act(self, name: str, input: Any, call: Any = None) -> Any:
        action = self.left.pop(0) if self.left else "pass"
        if action == "edit":
            return RunNormally(input.model_copy(deep=True))
        if action == "edit in place":
            for field in type(input).model_fields:
                input.__dict__[field] = "spoilt"
        if action == "assign to the call" and call is not None:
            call.input = call.metadata = None
        if action == "complete":
            return Complete(OUTPUTS[name])
        if action == "complete wrongly":
            return Complete(object())
        if action == "reject":
            return Reject("no \ud800")
        if action == "reject without a reason":
            return Reject("")
        if action == "raise":
            raise ZeroDivisionError
        if action == "cancel":
            raise asyncio.CancelledError
        if action == "nonsense":
            return action
        if action == "another input":
            return RunNormally(Weather(city="x") if name != "weather" else User(name="x"))
        if action == "a coroutine":
            return asyncio.sleep(0, RunNormally(input))
        return RunNormally(input)

    def on_input(self, metadata: Any, input: Any) -> Any:
        return self.act(metadata.name, input)

    async def on_input_async(self, metadata: Any, input: Any) -> Any:
        await asyncio.sleep(0)
        return await _resolved(self.act(metadata.name, input))

    def on_call(self, call: Any) -> Any:
        return self.act(call.metadata.name, call.input, call)

    @hook_impl
    def any_tool_hook(self, metadata: Any, call: Any) -> Any:
        return self.act(metadata.name, call.input, call)


async def _resolved(value: Any) -> Any:
    return await value if asyncio.iscoroutine(value) else value


def registry(hooks: list[tuple[str, bool, list[str]]]) -> Any:
    made: Any = AppTools.hooks()
    targets = {
        "weather": AppTools.weather,
        "delete": AppTools.delete_file,
        "user": AppTools.data[DataTools.get_user],
    }
    for target, asynchronous, script in hooks:
        plugin = Script(script)
        if target == "any":
            made.register(plugin)
        else:
            made.on(targets[target])(plugin.on_input_async if asynchronous else plugin.on_input)
    return made


async def plan_all(round: ToolRound, hooks: Any, policy: Any, sync: bool) -> ToolRoundPlan[Any]:
    """Plan until it works; what fails must leave the round, or plan, as it was."""
    source: Any = round
    for decider in (hooks, policy):
        for _ in range(100):
            pending = source.pending if isinstance(source, ToolRoundPlan) else source.calls
            before = [(call.metadata, call.input.model_copy(deep=True)) for call in pending]
            try:
                source = (
                    source.apply_hooks_sync(decider) if sync else await source.apply_hooks(decider)
                )
                break
            except (HookError, asyncio.CancelledError) as error:
                assert [(call.metadata, call.input) for call in pending] == before
                if "async" in str(error):
                    sync = False
        else:
            raise AssertionError("a script has an end")
    assert isinstance(source, ToolRoundPlan)
    return source


def check(session: Session, api: str) -> None:
    for target in APIS:
        body = {
            "model": "m",
            **ADAPTERS[target].request(session.transcript, AppTools.offer(), model="m"),
        }
        problems = [p for p in CHECKS[target](body) if p.certainty == "refused"]
        assert problems == [], f"{api} -> {target}"


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=examples(60))
@given(calls=calls, hooks=st.lists(hook, max_size=4), policy=actions, sync=st.booleans())
def test_no_hook_can_make_a_transcript_invalid(
    api: str, calls: list[Call], hooks: list[Any], policy: list[str], sync: bool
) -> None:  # H4 K5
    asyncio.run(_no_hook_can_make_a_transcript_invalid(api, calls, hooks, policy, sync))


async def _no_hook_can_make_a_transcript_invalid(
    api: str, calls: list[Call], hooks: list[Any], policy: list[str], sync: bool
) -> None:
    session, round = start(*calls, api=api)
    plan = await plan_all(round, registry(hooks), Script(policy).on_call, sync)
    assert len(session.transcript) == 1
    ids = [c.metadata.id for c in (*plan.pending, *plan.handled, *plan.rejected, *plan.issues)]
    assert sorted(ids) == sorted(c.id for c in plan.turn.calls)
    assert len(plan.decisions()) == len(calls)
    plan.commit(session, [call.complete(OUTPUTS[call.metadata.name]) for call in plan.pending])
    check(session, api)
    assert [c.arguments for c in session.turns()[0].calls] == [
        d["arguments"] for d in plan.decisions()
    ]
