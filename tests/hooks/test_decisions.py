"""What hooks decide, and what becomes of it (rules H2, H3, H7)."""

from __future__ import annotations

import asyncio
import threading
from datetime import date
from typing import Annotated, Any

import pytest
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
    Weather,
    start,
)
from pydantic import AfterValidator, BaseModel, ConfigDict, PrivateAttr, WithJsonSchema

from lutumpy import (
    Complete,
    HookError,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    ToolInput,
    ToolMetadata,
    Toolset,
    hook_impl,
    tool,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.hooks import BaseToolCall
from lutumpy.hooks.input_copies import copy_input
from lutumpy.testing import Call, Reply, ScriptedModel


async def test_edits_change_what_runs_and_not_what_the_model_asked() -> None:  # H2
    session, round = start(WEATHER)
    plan = await round.apply_hooks(lambda call: RunNormally(Weather(city="Bergen")))
    (call,) = plan.pending
    assert call.input == Weather(city="Bergen")
    assert call.arguments == {"city": "Bergen", "days": []}
    assert call.metadata == ToolMetadata("call_1", "weather", '{"city": " Oslo "}')
    plan.commit(session, [call.complete(Forecast(text="dry"))])
    (turn,) = session.turns()
    assert turn.calls[0].arguments == '{"city": " Oslo "}'


@pytest.mark.parametrize("decision", [Complete(Forecast(text="x")), Reject("no")])
async def test_a_decided_call_shows_the_input_as_it_was_when_the_decision_fell(
    decision: Any,
) -> None:  # H2
    kept: list[Weather] = []
    hooks = AppTools.hooks()

    @hooks.on(AppTools.weather)
    def keep(metadata: Any, input: Weather) -> Any:
        kept.append(input)
        input.days.append(1)
        return decision

    _, round = start(WEATHER)
    plan = await round.apply_hooks(hooks)
    kept[0].days.append(2)
    kept[0].city = "changed later"
    (decided,) = plan.handled or [r.call for r in plan.rejected]
    assert (decided.input.city, decided.input.days) == (" Oslo ", [1])
    assert decided.metadata.arguments == '{"city": " Oslo "}'
    plan.discard()


def test_a_snapshot_is_taken_of_what_can_be_copied() -> None:  # H2
    class Odd(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        lock: Any
        names: list[str]

    lock = threading.Lock()
    odd = Odd(lock=lock, names=["a"])
    copy = copy_input(odd)
    odd.names.append("b")
    assert copy.names == ["a"]
    assert copy.lock is lock


class Basket:
    """A value that can't be copied."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.lock = threading.Lock()


@tool_input(name="buy")
class Buy(ToolInput[None]):
    """Buy things."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    basket: Annotated[
        Any,
        AfterValidator(Basket),
        WithJsonSchema({"type": "array", "items": {"type": "string"}}),
    ]


class Shop(Toolset):
    buy = tool(Buy)


def test_hooks_see_what_cannot_be_copied_decoded_again_H2_K3a() -> None:
    session = Session()
    session.push_user("go")
    call = {"id": "a", "function": {"name": "buy", "arguments": '{"basket": ["tea"]}'}}
    reply = {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]}
    outcome = Shop.offer().read(OpenAIChat.response(reply), session)
    assert isinstance(outcome, NeedsTools)
    round = outcome.round

    def add_milk(call: Any, *, fails: bool = False) -> Any:
        call.input.basket.names.append("milk")
        if fails:
            raise ValueError("no")
        return RunNormally(call.input)

    with pytest.raises(HookError):
        round.apply_hooks_sync(lambda call: add_milk(call, fails=True))
    assert round.calls[0].input.basket.names == ["tea"]
    plan = round.apply_hooks_sync(add_milk)
    assert round.calls[0].input.basket.names == ["tea"]
    assert plan.pending[0].input.basket.names == ["tea", "milk"]
    plan.discard()


@tool_input(output=None)
class Pay(BaseModel):
    """Pay somebody."""

    amount: int
    to: list[str] = []
    _lock: Any = PrivateAttr(default_factory=threading.Lock)


class Bank(Toolset):
    pay = tool(Pay)


@pytest.mark.parametrize("way", ["passed on", "unchanged", "no second pass", "alone"])
def test_an_edit_of_what_cannot_be_copied_lasts_through_every_later_pass_H2_K3a(way: str) -> None:
    session = Session()
    session.push_user("go")
    llm = ScriptedModel([Reply(calls=[Call("pay", {"amount": 1000000, "to": ["a"]})])])
    outcome = session.text_turn(llm, tools=Bank).collect_sync()
    assert isinstance(outcome, NeedsTools)

    def limit(call: Any) -> Any:
        call.input.amount = 1
        call.input.to.append("b")
        return RunNormally(call.input)

    limits = Bank.hooks()
    limits.on(Bank.pay)(lambda metadata, input: RunNormally())
    plan = outcome.round.apply_hooks_sync(limit)
    [before] = plan.pending
    assert isinstance(before, BaseToolCall)
    if way == "alone":
        decided: Any = limits.apply_sync(before)
        assert (decided.input.amount, decided.input.to) == (1, ["a", "b"])
    if way in ("passed on", "unchanged"):
        gives = (lambda call: RunNormally(call.input)) if way == "passed on" else None
        with pytest.raises(HookError):
            plan.apply_hooks_sync(lambda call: call.input.to.clear())
        plan = plan.apply_hooks_sync(gives or (lambda call: RunNormally()))
    [pending] = plan.pending
    assert isinstance(pending, BaseToolCall)
    assert (pending.input.amount, pending.input.to) == (1, ["a", "b"])
    assert outcome.round.calls[0].input.amount == 1000000
    plan.discard()


async def test_a_hook_for_all_tools_is_given_a_call_of_its_own() -> None:  # H2
    class Assigns:
        @hook_impl
        def any_tool_hook(self, metadata: Any, call: Any) -> Any:
            original = call.input
            call.input = Weather(city="smuggled")
            call.metadata = ToolMetadata("other", "delete-file", "{}")
            return RunNormally(original)

    seen: list[str] = []
    hooks = AppTools.hooks().with_hooks(Assigns())

    @hooks.on(AppTools.weather)
    def look(metadata: Any, input: Weather) -> RunNormally[Weather]:
        seen.append(input.city)
        return RunNormally(input)

    session, round = start(WEATHER)
    plan = await round.apply_hooks(hooks)
    (call,) = plan.pending
    assert seen == [" Oslo "]
    assert call.input.city == " Oslo "
    assert call.metadata.id == "call_1"
    plan.commit(session, [call.complete(Forecast(text="dry"))])


WRONG = [
    RunNormally(DataTools),
    RunNormally(User(name="x")),
    RunNormally({"city": "Oslo"}),
    RunNormally(None),
    Complete(User(name="x")),
    Complete({"text": "a dict is no model"}),
    Complete(None),
    Reject(3),  # type: ignore[arg-type]
    Reject,
    None,
    True,
    "RunNormally",
    Weather(city="not wrapped"),
]


@pytest.mark.parametrize("decision", WRONG, ids=repr)
@pytest.mark.parametrize("way", ["sync", "async", "policy"])
async def test_what_does_not_fit_the_tool_is_an_error_that_names_hook_and_call(
    decision: Any, way: str
) -> None:  # H3
    _, round = start(WEATHER)

    def misguided(metadata: Any, input: Any) -> Any:
        return decision

    async def misguided_async(metadata: Any, input: Any) -> Any:
        return decision

    hooks = AppTools.hooks()
    if way != "policy":
        hooks.on(AppTools.weather)(misguided if way == "sync" else misguided_async)  # type: ignore[arg-type]
    with pytest.raises(HookError, match=r"misguided.*call_1.*weather.*still open"):
        await round.apply_hooks(hooks if way != "policy" else _policy(decision))
    plan = await round.apply_hooks(AppTools.hooks())
    assert plan.pending[0].input == Weather(city=" Oslo ")
    plan.discard()


def _policy(decision: Any) -> Any:
    def misguided(call: Any) -> Any:
        return decision

    return misguided


async def test_an_instance_of_a_subclass_is_an_input_of_the_tool() -> None:  # H3
    class Better(Weather):
        pass

    _, round = start(WEATHER)
    plan = await round.apply_hooks(lambda call: RunNormally(Better(city="x")))
    assert isinstance(plan.pending[0].input, Better)
    plan.discard()


async def test_a_tool_without_output_is_completed_with_none() -> None:  # H3
    session, round = start(DELETE)
    plan = await round.apply_hooks(lambda call: Complete(None))
    plan.commit(session, [])
    assert session.transcript[-1].results[0].text == "null"  # type: ignore[union-attr]


async def test_decisions_say_who_made_them() -> None:  # H7
    _, round = start(WEATHER, DELETE)
    hooks = AppTools.hooks()
    hooks.on(AppTools.weather)(lambda metadata, input: Reject("by a hook"))
    plan = await round.apply_hooks(hooks)
    plan = await plan.apply_hooks(lambda call: Reject("by a policy"))
    assert [(r.reason, r.source) for r in plan.rejected] == [
        ("by a hook", "hook"),
        ("by a policy", "policy"),
    ]
    plan.discard()


async def test_every_decision_of_a_plan_is_there_as_data() -> None:
    _, round = start(WEATHER, UNKNOWN, DELETE, USER, ADD)
    hooks = AppTools.hooks()

    @hooks.on(AppTools.weather)
    def strip(metadata: Any, input: Weather) -> RunNormally[Weather]:
        return RunNormally(Weather(city=input.city.strip()))

    @hooks.on(AppTools.data[DataTools.get_user])
    def cached(metadata: Any, input: Any) -> Complete[User]:
        return Complete(User(name="Ann"))

    def no_deletes(call: Any) -> Any:
        return Reject("no") if AppTools.delete_file.matches(call) else RunNormally(call.input)

    plan = await (await round.apply_hooks(hooks)).apply_hooks(no_deletes)
    weather, unknown, delete, user, plus = plan.decisions()
    assert weather == {
        "call_id": "call_1",
        "tool": "weather",
        "arguments": '{"city": " Oslo "}',
        "decision": "edited",
        "input": {"city": "Oslo", "days": []},
        "source": "hook",
        "by": strip.__qualname__,
        "hooks": [
            {"by": strip.__qualname__, "source": "hook", "did": "edited"},
            {"by": no_deletes.__qualname__, "source": "policy", "did": "passed"},
        ],
    }
    (issue,) = plan.issues
    assert unknown == {
        "call_id": "call_5",
        "tool": "no_such_tool",
        "arguments": "{}",
        "decision": "issue",
        "reason": "unknown_tool",
        "detail": issue.detail,
    }
    assert delete == {
        "call_id": "call_2",
        "tool": "delete-file",
        "arguments": '{"path": "/tmp/x"}',
        "decision": "rejected",
        "input": {"path": "/tmp/x"},
        "reason": "no",
        "source": "policy",
        "by": no_deletes.__qualname__,
    }
    assert user == {
        "call_id": "call_3",
        "tool": "get_user",
        "arguments": '{"user_id": "ann"}',
        "decision": "handled",
        "input": {"user_id": "ann"},
        "source": "hook",
        "by": cached.__qualname__,
    }
    assert plus["decision"] == "pending"
    plan.discard()
    assert len(plan.decisions()) == 5  # also when it is over


@tool_input(name="remind")
class Remind(ToolInput[None]):
    """Remind."""

    day: date


class Reminders(Toolset):
    remind = tool(Remind)


async def test_the_inputs_of_decisions_are_json_values() -> None:
    _, round = start(Call("remind", {"day": "2026-11-22"}, id="c1"), toolset=Reminders)
    plan = await round.apply_hooks(Reminders.hooks())
    assert [decision["input"] for decision in plan.decisions()] == [{"day": "2026-11-22"}]
    plan.discard()


async def test_an_input_that_cannot_be_serialized_does_not_take_the_decisions_with_it() -> None:
    _, round = start(WEATHER)
    plan = await round.apply_hooks(
        lambda call: RunNormally(Weather.model_construct(city=object(), days=[]))
    )
    (decision,) = plan.decisions()
    assert "object object" in decision["input"]
    plan.discard()


class Counter:
    """A policy with a state of its own, as any callable may be."""

    def __init__(self) -> None:
        self.seen = 0

    async def __call__(self, call: Any) -> RunNormally[Any]:
        await asyncio.sleep(0)
        self.seen += 1
        return RunNormally(call.input)


async def test_any_callable_is_a_policy() -> None:
    _, round = start(WEATHER, DELETE)
    counter = Counter()
    plan = await round.apply_hooks(counter)
    assert counter.seen == 2
    plan.discard()


async def test_an_edited_call_keeps_its_types_and_runs() -> None:
    session, round = start(ADD)
    plan = await round.apply_hooks(
        lambda call: RunNormally(call.input.model_copy(update={"b": 40}))
    )
    (call,) = plan.pending
    assert AppTools.add.matches(call)
    plan.commit(session, [call.complete(await call.call())])
    assert session.transcript[-1].results[0].text == "41"  # type: ignore[union-attr]
