"""Whatever goes wrong in a hook, nothing is decided (rules H2, H4, H5a).

The round stays open, and its inputs are as they were decoded.
"""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

import pytest
from hook_toolkit import (
    ADD,
    DELETE,
    UNKNOWN,
    USER,
    WEATHER,
    AppTools,
    Forecast,
    OtherTools,
    Weather,
    start,
)

from lutumpy import Complete, HookError, HookSet, Reject, RoundClosedError, RunNormally, hook_impl


class Broken(Exception):
    pass


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_hook_that_raises_is_an_error_with_hook_call_and_cause(
    asynchronous: bool,
) -> None:  # H4
    class Policy:
        if asynchronous:

            @hook_impl
            async def weather_hook(self, metadata: Any, input: Any) -> Any:
                raise Broken("database down")
        else:

            @hook_impl
            def weather_hook(self, metadata: Any, input: Any) -> Any:
                raise Broken("database down")

    session, round = start(DELETE, WEATHER)
    hooks = AppTools.hooks().with_hooks(Policy())
    with pytest.raises(
        HookError,
        match=r"Policy\.weather_hook on call 'call_1' of 'weather' raised .*database down",
    ) as caught:
        await round.apply_hooks(hooks)
    assert isinstance(caught.value.__cause__, Broken)
    assert len(session.transcript) == 1
    round.commit(session, [c.reject("not now") for c in round.calls])


@pytest.mark.parametrize("how", ["raise", "nonsense", "cancel", "interrupt"])
async def test_inputs_are_as_decoded_after_a_failure_whatever_a_hook_did_to_them(
    how: str,
) -> None:  # H2
    hooks = AppTools.hooks()
    kept: list[Weather] = []

    @hooks.on(AppTools.weather)
    async def mutate(metadata: Any, input: Weather) -> Any:
        input.city = "changed in place"
        input.days.append(3)
        kept.append(input)
        return RunNormally(input)

    @hooks.on(AppTools.delete_file)
    async def fail(metadata: Any, input: Any) -> Any:
        input.path = "/"
        if how == "raise":
            raise Broken
        if how == "cancel":
            raise asyncio.CancelledError
        if how == "interrupt":
            raise KeyboardInterrupt
        return "nonsense"

    session, round = start(WEATHER, DELETE)
    if how == "interrupt":  # asyncio would stop the whole loop for it
        work = round.apply_hooks(hooks)
        with pytest.raises(KeyboardInterrupt):
            work.send(None)
    else:
        with pytest.raises(HookError if how in ("raise", "nonsense") else asyncio.CancelledError):
            await round.apply_hooks(hooks)
    kept[0].days.append(4)
    assert [c.arguments for c in round.calls] == [
        {"city": " Oslo ", "days": []},
        {"path": "/tmp/x"},
    ]
    plan = await round.apply_hooks(lambda call: Reject("no"))
    plan.commit(session, [])


async def test_a_plan_keeps_its_edits_when_the_next_pass_fails() -> None:  # H2 H4
    session, round = start(WEATHER)
    plan = await round.apply_hooks(lambda call: RunNormally(Weather(city="Bergen", days=[1])))

    def spoil(call: Any) -> Any:
        call.input.days.clear()
        raise Broken

    with pytest.raises(HookError, match="spoil"):
        await plan.apply_hooks(spoil)
    (call,) = plan.pending
    assert call.input == Weather(city="Bergen", days=[1])
    plan.commit(session, [call.complete(Forecast(text="dry"))])


async def test_one_call_alone_is_as_it_was_after_a_failure() -> None:  # H2
    hooks = AppTools.hooks()

    @hooks.on(AppTools.weather)
    def spoil(metadata: Any, input: Weather) -> Any:
        input.days.append(3)
        raise Broken

    _, round = start(WEATHER)
    (call,) = round.calls
    with pytest.raises(HookError, match="spoil"):
        await hooks.apply(call)
    with pytest.raises(HookError, match="spoil"):
        hooks.apply_sync(call)
    assert call.input.days == []
    round.discard()


async def test_cancelling_in_the_middle_leaves_the_round_open() -> None:  # H4
    entered = asyncio.Event()

    async def policy(call: Any) -> Any:
        entered.set()
        await asyncio.sleep(60)

    session, round = start(WEATHER)
    task = asyncio.create_task(round.apply_hooks(policy))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    plan = await round.apply_hooks(lambda call: Reject("no time"))
    plan.commit(session, [])


async def test_a_timeout_around_the_hooks_leaves_the_round_open() -> None:  # H4
    async def policy(call: Any) -> Any:
        await asyncio.sleep(60)

    _, round = start(WEATHER)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(round.apply_hooks(policy), 0.001)
    round.discard()


# --- the sync forms -------------------------------------------------------------------------------


def test_an_async_hook_is_refused_before_any_hook_runs() -> None:
    seen: list[str] = []
    hooks = AppTools.hooks()

    @hooks.on(AppTools.weather)
    def first(metadata: Any, input: Weather) -> RunNormally[Weather]:
        seen.append("first")
        return RunNormally(input)

    @hooks.on(AppTools.delete_file)
    async def later(metadata: Any, input: Any) -> Any: ...

    _, round = start(WEATHER, DELETE)
    with pytest.raises(HookError, match=r"later on call 'call_2' of 'delete-file' is async"):
        round.apply_hooks_sync(hooks)
    with pytest.raises(HookError, match=r"later on call 'call_2' of 'delete-file' is async"):
        hooks.apply_sync(round.calls[1])
    assert seen == []
    round.discard()


def test_an_async_hook_of_a_tool_that_was_not_called_is_no_obstacle() -> None:
    hooks = AppTools.hooks()

    @hooks.on(AppTools.delete_file)
    async def later(metadata: Any, input: Any) -> Any: ...

    _, round = start(WEATHER)
    round.apply_hooks_sync(hooks).discard()


def test_a_plain_hook_that_gives_an_awaitable_is_named_and_the_coroutine_closed() -> None:
    async def inner() -> Any: ...

    hooks = AppTools.hooks()

    @hooks.on(AppTools.weather)
    def disguised(metadata: Any, input: Weather) -> Any:
        input.days.append(3)
        return inner()

    _, round = start(WEATHER)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            HookError, match=r"disguised on call 'call_1' of 'weather' gave an awaitable"
        ):
            round.apply_hooks_sync(hooks)
        with pytest.raises(HookError, match=r"lambda.* gave an awaitable"):
            round.apply_hooks_sync(lambda call: inner())
        with pytest.raises(HookError, match="disguised"):
            hooks.apply_sync(round.calls[0])
        gc.collect()
    assert round.calls[0].input.days == []
    round.discard()


async def test_a_coroutine_that_a_hook_forgot_to_await_is_closed() -> None:
    async def inner() -> Any: ...

    async def forgetful(call: Any) -> Any:
        return inner()

    async def hook(metadata: Any, input: Any) -> Any:
        return inner()

    hooks = AppTools.hooks()
    hooks.on(AppTools.weather)(hook)
    for decider in (forgetful, hooks):
        _, round = start(WEATHER)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(HookError, match="gave coroutine"):
                await round.apply_hooks(decider)
            gc.collect()
        round.discard()


async def test_a_plain_hook_may_give_an_awaitable_to_the_async_form() -> None:
    async def inner(call: Any) -> Any:
        return Reject("later")

    hooks = AppTools.hooks()
    hooks.on(AppTools.weather)(lambda metadata, input: asyncio.ensure_future(inner(input)))
    for decider in (lambda call: inner(call), hooks):
        _, round = start(WEATHER)
        plan = await round.apply_hooks(decider)
        assert plan.rejected[0].reason == "later"
        plan.discard()


# --- who owns the answer --------------------------------------------------------------------------


async def test_a_plan_takes_the_place_of_its_round() -> None:  # H5a
    session, round = start(WEATHER)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = await round.apply_hooks(AppTools.hooks())
        results = [c.complete(Forecast(text="x")) for c in round.calls]
        for use in (
            lambda: round.commit(session, results),
            round.discard,
            lambda: round.apply_hooks_sync(AppTools.hooks()),
            round.expect_one,  # the call as it was before the hooks
            round.expect_at_most_one,
        ):
            with pytest.raises(RoundClosedError, match="handed over to a plan"):
                use()
        with pytest.raises(RoundClosedError):
            await round.apply_hooks(AppTools.hooks())
        second = await plan.apply_hooks(AppTools.hooks())
        with pytest.raises(RoundClosedError):
            plan.commit(session, results)
    second.commit(session, results)


async def test_no_path_commits_past_a_rejection() -> None:  # H5a
    session, round = start(WEATHER)
    call = round.calls[0]
    plan = await round.apply_hooks(lambda call: Reject("no"))
    with pytest.raises(RoundClosedError):
        round.commit(session, [call.complete(Forecast(text="x"))])
    with pytest.raises(Exception, match="decided by a hook"):
        plan.commit(session, [call.complete(Forecast(text="x"))])
    plan.commit(session, [])


async def test_a_round_that_was_discarded_while_hooks_waited_gives_no_plan() -> None:  # H5a
    entered, go = asyncio.Event(), asyncio.Event()

    async def policy(call: Any) -> Any:
        entered.set()
        await go.wait()
        return Complete(Forecast(text="too late"))

    session, round = start(WEATHER)
    task = asyncio.create_task(round.apply_hooks(policy))
    await entered.wait()
    round.discard()
    go.set()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RoundClosedError, match="discard"):
            await task
        del task
        gc.collect()
    assert session.turns() == []


async def test_nothing_is_committed_while_a_policy_is_still_deciding() -> (
    None
):  # H5a: no path past a rejection
    entered, go = asyncio.Event(), asyncio.Event()

    async def policy(call: Any) -> Any:
        entered.set()
        await go.wait()
        return Reject("not allowed")

    session, round = start(WEATHER)
    results = [round.calls[0].complete(Forecast(text="too early"))]
    for _ in range(2):  # a plan's calls may be looked at again, too
        task: Any = asyncio.create_task(round.apply_hooks(policy))
        await entered.wait()
        with pytest.raises(HookError, match=r"already deciding.* can't be committed.* still open"):
            round.commit(session, results)
        assert session.turns() == []
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        entered.clear()
    go.set()
    plan = await round.apply_hooks(policy)
    with pytest.raises(RoundClosedError):
        round.commit(session, results)
    plan.commit(session, [])
    assert session.turns() != []


async def test_a_run_of_hooks_that_was_cut_off_leaves_the_round_open_for_everything() -> (
    None
):  # H4 K3a
    async def never(call: Any) -> Any:
        await asyncio.sleep(3600)

    session, round = start(WEATHER)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(round.apply_hooks(never), 0.001)
    with pytest.raises(HookError):
        round.apply_hooks_sync(lambda call: 1 / 0)
    round.commit(session, [round.calls[0].complete(Forecast(text="x"))])
    assert len(session.turns()) == 1


async def test_hooks_are_not_applied_twice_at_once() -> (
    None
):  # H2 H5a: one run would take back what the other decided
    entered, go = asyncio.Event(), asyncio.Event()

    async def slow(call: Any) -> Any:
        entered.set()
        await go.wait()
        return RunNormally(Weather(city="slow"))

    _, round = start(WEATHER)
    task = asyncio.create_task(round.apply_hooks(slow))
    await entered.wait()
    with pytest.raises(HookError, match="already"):
        await round.apply_hooks(lambda call: RunNormally(Weather(city="quick")))
    with pytest.raises(HookError, match="already"):
        round.apply_hooks_sync(AppTools.hooks())
    go.set()
    plan = await task
    assert plan.pending[0].input.city == "slow"
    plan.discard()


async def test_a_dropped_plan_warns_and_a_closed_one_does_not() -> None:  # H5a
    session, round = start(WEATHER)
    plan = await round.apply_hooks(AppTools.hooks())
    with pytest.warns(ResourceWarning, match="tool round plan was dropped"):
        del plan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session, round = start(WEATHER)
        plan = await round.apply_hooks(lambda call: Reject("no"))
        plan.commit(session, [])
        del plan


# --- the wrong thing ------------------------------------------------------------------------------


async def test_a_registry_of_another_toolset_is_refused_before_any_hook_runs() -> None:  # H5a
    seen: list[str] = []

    class Every:
        @hook_impl
        def any_tool_hook(self, metadata: Any, call: Any) -> Any:
            seen.append(metadata.id)
            return RunNormally(call.input)

    session, round = start(WEATHER, USER)
    for registry in (
        OtherTools.hooks().with_hooks(Every()),
        AppTools.hooks().data.with_hooks(Every()),
    ):
        with pytest.raises(HookError, match="not a registry of AppTools"):
            await round.apply_hooks(registry)
        with pytest.raises(HookError, match="not a registry of AppTools"):
            round.apply_hooks_sync(registry)
        with pytest.raises(HookError, match="a call of AppTools"):
            await registry.apply(round.calls[0])
    plan = await round.apply_hooks(lambda call: Reject("no"))
    with pytest.raises(
        HookError, match="not a registry of AppTools"
    ):  # also when every call is decided
        await plan.apply_hooks(OtherTools.hooks())
    assert seen == []
    plan.commit(session, [])


@pytest.mark.parametrize(
    "thing",
    [None, 3, "policy", HookSet(), [AppTools.hooks()]],
    ids=lambda thing: type(thing).__name__,
)
async def test_what_is_neither_registry_nor_callable_is_refused(thing: Any) -> None:
    _, round = start(WEATHER)
    with pytest.raises(HookError, match="a registry or a callable"):
        await round.apply_hooks(thing)
    with pytest.raises(HookError, match="a registry or a callable"):
        round.apply_hooks_sync(thing)
    round.discard()


async def test_a_round_of_issues_only_makes_a_plan_that_the_library_answers() -> None:  # H5
    session, round = start(UNKNOWN)
    plan = await round.apply_hooks(AppTools.hooks())
    assert plan.continue_suggestion
    assert not plan.pending
    plan.commit(session, [])
    assert session.transcript[-1].results[0].status == "rejected"  # type: ignore[union-attr]


async def test_what_a_hook_raises_of_its_own_kind_is_wrapped_as_well() -> None:  # H4
    for error in (HookError("inner"), StopIteration(3), StopAsyncIteration(), GeneratorExit):
        _, round = start(ADD)

        def policy(call: Any, error: Any = error) -> Any:
            raise error

        with pytest.raises(GeneratorExit if error is GeneratorExit else HookError):
            await round.apply_hooks(policy)
        round.discard()
