"""The order of hooks and what one hands to the next (rules H1, H5)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from hook_toolkit import (
    ADD,
    DELETE,
    UNKNOWN,
    USER,
    WEATHER,
    AppTools,
    CountTools,
    DataTools,
    DeleteFile,
    Forecast,
    GetUser,
    User,
    Weather,
    start,
)
from interleaving import SteppedThread

from lutumpy import Complete, Reject, RejectedToolCall, RunNormally, ToolMetadata, hook_impl
from lutumpy.testing import Call


def named(seen: list[str], name: str) -> Any:
    def hook(metadata: Any, input: Any) -> RunNormally[Any]:
        seen.append(name)
        return RunNormally(input)

    return hook


async def test_tryfirst_then_ordinary_then_trylast_each_in_registration_order() -> None:  # H1
    seen: list[str] = []
    hooks = AppTools.hooks()
    for name, options in [
        ("last 1", {"trylast": True}),
        ("plain 1", {}),
        ("first 1", {"tryfirst": True}),
        ("plain 2", {}),
        ("last 2", {"trylast": True}),
        ("first 2", {"tryfirst": True}),
    ]:
        hooks.on(AppTools.weather)(hook_impl(**options)(named(seen, name)))
    _, round = start(WEATHER)
    (await round.apply_hooks(hooks)).discard()
    assert seen == ["first 1", "first 2", "plain 1", "plain 2", "last 1", "last 2"]


@pytest.mark.parametrize("passing", [1, 2, 3])
async def test_a_rejection_behind_hooks_that_let_the_call_pass_stands(
    passing: int,
) -> None:  # H1 H5
    seen: list[str] = []
    hooks = AppTools.hooks()
    for number in range(passing):
        hooks.on(AppTools.weather)(named(seen, f"hook {number}"))

    @hooks.on(AppTools.weather)
    def refuse(metadata: Any, input: Weather) -> Reject:
        return Reject(f"not {metadata.id}, {input.city.strip()}")

    _, round = start(WEATHER)
    plan = await round.apply_hooks(hooks)
    assert seen == [f"hook {number}" for number in range(passing)]
    assert plan.pending == ()
    assert [rejected.reason for rejected in plan.rejected] == ["not call_1, Oslo"]
    plan.discard()


@pytest.mark.parametrize("outer_first", [True, False])
async def test_hooks_of_a_nested_registry_and_of_the_outer_on_are_one_order(
    outer_first: bool,
) -> None:  # H1
    seen: list[str] = []
    hooks = AppTools.hooks()
    through_outer = (hooks.on, AppTools.data[DataTools.get_user], "outer on")
    through_nested = (hooks.data.on, DataTools.get_user, "nested on")
    for on, selector, name in (
        [through_outer, through_nested] if outer_first else [through_nested, through_outer]
    ):
        on(selector)(named(seen, name))
    hooks.nested(DataTools).on(DataTools.get_user)(
        hook_impl(tryfirst=True)(named(seen, "nested first"))
    )

    class Policy:
        @hook_impl
        def get_user_hook(self, metadata: Any, input: Any) -> Any:
            seen.append("nested plugin")
            return RunNormally(input)

    hooks.data.register(Policy())
    _, round = start(USER)
    (await round.apply_hooks(hooks)).discard()
    first, second = ("outer on", "nested on") if outer_first else ("nested on", "outer on")
    assert seen == ["nested first", first, second, "nested plugin"]


async def test_hooks_for_every_tool_come_first_the_outermost_before_the_nested_ones() -> None:  # H1
    seen: list[tuple[str, str]] = []

    class Every:
        def __init__(self, name: str) -> None:
            self.name = name

        @hook_impl
        def any_tool_hook(self, metadata: Any, call: Any) -> Any:
            seen.append((self.name, metadata.name))
            return RunNormally(call.input)

    hooks = AppTools.hooks()

    @hooks.on(AppTools.data[DataTools.get_user])
    @hook_impl(tryfirst=True)
    def own(metadata: Any, input: GetUser) -> RunNormally[GetUser]:
        seen.append(("own", metadata.name))
        return RunNormally(input)

    hooks.data.counts.register(Every("counts"))
    hooks.data.register(Every("data"))
    hooks.register(Every("app"))
    _, round = start(WEATHER, USER)
    (await round.apply_hooks(hooks)).discard()
    assert seen == [
        ("app", "weather"),
        ("app", "get_user"),
        ("data", "get_user"),
        ("own", "get_user"),
    ]


async def test_calls_are_taken_one_after_another_in_call_order() -> None:  # H1
    seen: list[str] = []

    class Slow:
        @hook_impl
        async def any_tool_hook(self, metadata: Any, call: Any) -> Any:
            seen.append(f"begin {metadata.id}")
            await asyncio.sleep(0.002 if metadata.id == "call_1" else 0)
            seen.append(f"end {metadata.id}")
            return RunNormally(call.input)

    _, round = start(WEATHER, DELETE, USER)
    (await round.apply_hooks(AppTools.hooks().with_hooks(Slow()))).discard()
    ids = ["call_1", "call_2", "call_3"]
    assert seen == [f"{word} {i}" for i in ids for word in ("begin", "end")]


async def test_the_input_is_threaded_and_the_first_decision_ends_it() -> None:  # H1
    hooks = AppTools.hooks()
    seen: list[str] = []

    @hooks.on(AppTools.weather)
    def strip(metadata: Any, input: Weather) -> RunNormally[Weather]:
        return RunNormally(Weather(city=input.city.strip()))

    class Every:
        @hook_impl
        def any_tool_hook(self, metadata: Any, call: Any) -> Any:
            return RunNormally(Weather(city=call.input.city.upper()))

        @hook_impl
        def weather_hook(self, metadata: Any, input: Weather) -> Any:
            seen.append(input.city)
            return Complete(Forecast(text="cached"))

    @hooks.on(AppTools.weather)
    async def lower(metadata: Any, input: Weather) -> RunNormally[Weather]:
        seen.append(input.city)
        return RunNormally(Weather(city=input.city.lower()))

    hooks.register(Every())

    @hooks.on(AppTools.weather)
    def never(metadata: Any, input: Weather) -> Reject:
        seen.append("never")
        return Reject("never")

    _, round = start(WEATHER)
    plan = await round.apply_hooks(hooks)
    assert seen == ["OSLO", "oslo"]
    assert plan.handled[0].input.city == "oslo"
    plan.discard()


async def test_a_call_without_hooks_is_pending_as_it_is() -> None:  # H1
    _, round = start(WEATHER, USER)
    calls = round.calls
    hooks = AppTools.hooks()
    hooks.on(AppTools.delete_file)(named([], "other tool"))
    plan = await round.apply_hooks(hooks)
    assert plan.pending == calls
    plan.discard()


async def test_issues_never_reach_hooks() -> None:  # H5
    seen: list[str] = []
    bad = Call("weather", '{"town": 3}', id="call_9")
    _, round = start(UNKNOWN, WEATHER, bad)

    def policy(call: Any) -> RunNormally[Any]:
        seen.append(call.metadata.id)
        return RunNormally(call.input)

    plan = await round.apply_hooks(policy)
    assert seen == ["call_1"]
    assert [i.metadata.id for i in plan.issues] == ["call_5", "call_9"]
    plan.discard()


async def test_a_second_pass_takes_pending_calls_only_and_keeps_the_order() -> None:  # H5
    _, round = start(WEATHER, DELETE, USER, ADD)
    hooks = AppTools.hooks()
    hooks.on(AppTools.delete_file)(lambda metadata, input: Reject("read-only"))
    plan = await round.apply_hooks(hooks)
    seen: list[str] = []

    async def policy(call: Any) -> Any:
        seen.append(call.metadata.name)
        return Complete(3) if AppTools.add.matches(call) else RunNormally(call.input)

    plan = await plan.apply_hooks(policy)
    plan = plan.apply_hooks_sync(AppTools.hooks())
    assert seen == ["weather", "get_user", "add"]
    assert [d["decision"] for d in plan.decisions()] == [
        "pending",
        "rejected",
        "pending",
        "handled",
    ]
    assert [c.metadata.id for c in plan.pending] == ["call_1", "call_3"]
    plan.discard()


async def test_a_round_uses_the_hooks_as_they_were_when_it_began() -> None:  # H5b
    seen: list[str] = []
    hooks = AppTools.hooks()
    late = named(seen, "late")

    @hooks.on(AppTools.weather)
    async def registers(metadata: Any, input: Weather) -> RunNormally[Weather]:
        if not seen:
            hooks.on(AppTools.weather)(late)
            hooks.on(AppTools.delete_file)(late)
            hooks.unregister(gone)
        seen.append("registers")
        await asyncio.sleep(0)
        return RunNormally(input)

    @hooks.on(AppTools.delete_file)
    def gone(metadata: Any, input: DeleteFile) -> RunNormally[DeleteFile]:
        seen.append("gone")
        return RunNormally(input)

    _, round = start(WEATHER, DELETE)
    (await round.apply_hooks(hooks)).discard()
    assert seen == ["registers", "gone"]
    _, round = start(WEATHER, DELETE)
    (await round.apply_hooks(hooks)).discard()
    assert seen == ["registers", "gone", "registers", "late", "late"]


def test_a_hook_that_is_registered_while_another_thread_decides_is_asked_from_then_on() -> None:
    call = AppTools.parse(ToolMetadata("c1", "weather", '{"city": "Oslo"}'))
    place, stopped = 0, True
    while stopped:
        hooks = AppTools.hooks()
        deciding = SteppedThread(partial(hooks.apply_sync, call), place, "line")
        stopped = deciding.stopped
        hooks.on(AppTools.weather)(lambda metadata, input: Reject("no"))
        deciding.finish()
        assert deciding.error is None
        assert isinstance(hooks.apply_sync(call), RejectedToolCall), place
        place += 1
    assert place > 50


async def test_one_registry_serves_many_rounds_at_once() -> None:  # H5b
    hooks = AppTools.hooks()

    @hooks.on(AppTools.weather)
    async def wait(metadata: Any, input: Weather) -> RunNormally[Weather]:
        await asyncio.sleep(0.001 * (int(input.city) % 3))
        return RunNormally(Weather(city=input.city + "!"))

    rounds = [start(Call("weather", {"city": str(n)}, id=f"call_{n}"))[1] for n in range(30)]
    plans = await asyncio.gather(*[round.apply_hooks(hooks) for round in rounds])
    assert [plan.pending[0].input.city for plan in plans] == [f"{n}!" for n in range(30)]
    for plan in plans:
        plan.discard()


async def test_one_call_alone_takes_the_same_way() -> None:  # H1
    hooks = AppTools.hooks()
    hooks.on(AppTools.weather)(
        lambda metadata, input: RunNormally(Weather(city=input.city.strip()))
    )
    hooks.on(AppTools.delete_file)(lambda metadata, input: Reject("no"))
    hooks.on(AppTools.data[DataTools.get_user])(lambda metadata, input: Complete(User(name="Ann")))
    _, round = start(WEATHER, DELETE, USER, ADD)
    weather, delete, user, plus = round.calls
    edited = await hooks.apply(weather)
    assert edited.input.city == "Oslo"  # type: ignore[union-attr]
    assert weather.input.city == " Oslo "
    assert hooks.apply_sync(delete).reason == "no"  # type: ignore[union-attr]
    assert (await hooks.apply(user)).output == User(name="Ann")  # type: ignore[union-attr]
    assert hooks.apply_sync(plus) is plus
    round.discard()


async def test_nested_registries_are_attributes_and_found_by_type() -> None:
    hooks = AppTools.hooks()
    assert hooks.nested(DataTools) is hooks.data
    assert hooks.nested(CountTools) is hooks.data.counts
