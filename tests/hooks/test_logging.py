"""What is logged on `lutumpy.tool_hook` (rule H6)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hook_toolkit import ADD, DELETE, UNKNOWN, WEATHER, AppTools, Forecast, Weather, start

from lutumpy import Complete, HookError, Reject, RunNormally, hook_impl
from lutumpy.testing import Call

LOGGER = "lutumpy.tool_hook"


class Policy:
    @hook_impl(tryfirst=True)
    def any_tool_hook(self, metadata: Any, call: Any) -> Any:
        return RunNormally(call.input)

    @hook_impl
    async def weather_hook(self, metadata: Any, input: Any) -> Any:
        return Complete(Forecast(text="the secret answer"))

    @hook_impl
    def delete_file_hook(self, metadata: Any, input: Any) -> Any:
        return Reject("the secret reason")


async def test_every_decision_is_logged_with_tool_call_and_hook(
    caplog: pytest.LogCaptureFixture,
) -> None:  # H6
    caplog.set_level(logging.INFO, LOGGER)
    _, round = start(WEATHER, UNKNOWN, DELETE, ADD)
    (await round.apply_hooks(AppTools.hooks().with_hooks(Policy()))).discard()
    decisions: Any = [(r.tool, r.call_id, r.decision, r.hook) for r in caplog.records]  # type: ignore[attr-defined]
    assert decisions == [
        ("weather", "call_1", "run_normally", "Policy.any_tool_hook"),
        ("weather", "call_1", "complete", "Policy.weather_hook"),
        ("delete-file", "call_2", "run_normally", "Policy.any_tool_hook"),
        ("delete-file", "call_2", "reject", "Policy.delete_file_hook"),
        ("add", "call_4", "run_normally", "Policy.any_tool_hook"),
    ]
    assert {(r.name, r.levelno) for r in caplog.records} == {(LOGGER, logging.INFO)}
    assert caplog.messages[1] == "call_1 of weather: complete by Policy.weather_hook"
    for word in ("Oslo", "/tmp/x", "secret"):
        assert word not in caplog.text


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING])
async def test_the_decisions_do_not_depend_on_logging(
    caplog: pytest.LogCaptureFixture, level: int
) -> None:
    caplog.set_level(level, LOGGER)
    _, round = start(WEATHER, DELETE)
    hooks = AppTools.hooks().with_hooks(Policy())
    hooks.on(AppTools.add)(lambda metadata, input: RunNormally(input))
    plan = await round.apply_hooks(hooks)
    assert [d["decision"] for d in plan.decisions()] == ["handled", "rejected"]
    assert len(caplog.records) == (4 if level == logging.INFO else 0)
    plan.discard()


@pytest.mark.parametrize("city", ["a" * 2000, "ü" * 1000, "€" * 700, "😀" * 600, "a😀" * 400])
async def test_arguments_are_logged_at_debug_cut_on_a_character_border(
    caplog: pytest.LogCaptureFixture, city: str
) -> None:  # H6
    caplog.set_level(logging.DEBUG, LOGGER)
    _, round = start(Call("weather", '{"city": "' + city + '"}', id="call_1"))
    (await round.apply_hooks(lambda call: Reject("no"))).discard()
    (debug,) = [r for r in caplog.records if r.levelno == logging.DEBUG]
    shown = debug.getMessage().removeprefix("call_1 of weather: arguments ")
    assert round.calls[0].metadata.arguments.startswith(shown)
    assert 496 < len(shown.encode()) <= 500


async def test_lone_surrogates_do_not_stop_a_round(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)
    _, round = start(Call("weather", '{"city": "\ud800"}', id="call_1"), WEATHER)
    (await round.apply_hooks(lambda call: RunNormally(call.input))).discard()


async def test_a_decision_that_does_not_fit_is_not_logged_as_one(
    caplog: pytest.LogCaptureFixture,
) -> None:  # H3 H6
    caplog.set_level(logging.INFO, LOGGER)
    _, round = start(WEATHER)
    for decision in (Complete(3), RunNormally(3), Reject(3), 3):  # type: ignore[arg-type]
        with pytest.raises(HookError):
            await round.apply_hooks(lambda call, decision=decision: decision)  # type: ignore[misc]
    assert caplog.records == []
    round.discard()


async def test_policies_and_single_calls_are_logged_too(
    caplog: pytest.LogCaptureFixture,
) -> None:  # H6
    caplog.set_level(logging.INFO, LOGGER)
    _, round = start(WEATHER)

    def house_rule(call: Any) -> Any:
        return RunNormally(Weather(city="x"))

    hooks = AppTools.hooks().with_hooks(Policy())
    await hooks.apply(round.calls[0])
    (await round.apply_hooks(house_rule)).discard()
    assert [m.split(" by ")[0] for m in caplog.messages] == [
        "call_1 of weather: run_normally",
        "call_1 of weather: complete",
        "call_1 of weather: run_normally",
    ]
    assert caplog.messages[-1].endswith("house_rule")
