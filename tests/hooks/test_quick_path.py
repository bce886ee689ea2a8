"""A run of hooks recognises "go on as it is" without entering `decide`, and means the same by it.

While decisions are logged every hook goes through `decide`; otherwise the first ones don't. So each
case is run both ways.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Any

import pytest
from hook_toolkit import ADD, WEATHER, AppTools, Forecast, Weather, start

from lutumpy import Complete, HookError, Reject, RunNormally

LOGGER = "lutumpy.tool_hook"


def assign(input: Any) -> Any:
    input.city = "Bergen"
    return RunNormally(input)


def fail(input: Any) -> Any:
    raise ConnectionError("down")


WAYS: dict[str, Callable[[Any], Any]] = {
    "passes": lambda input: RunNormally(),
    "passes its input": lambda input: RunNormally(input),
    "passes another": lambda input: RunNormally(Weather(city="Rome")),
    "edits": lambda input: RunNormally.edited(days=[1]),
    "assigns": assign,
    "completes": lambda input: Complete(Forecast(text="dry")),
    "rejects": lambda input: Reject("no"),
    "fails": fail,
    "gives no decision": lambda input: None,
    "gives a wrong output": lambda input: Complete(3),
}


def outcome_of(first: str, second: str) -> Any:
    """What two hooks come to: the record of the plan, or the error and the inputs after it."""
    hooks: Any = AppTools.hooks()
    for name in (first, second):
        way = WAYS[name]
        hooks.on(AppTools.weather)(lambda metadata, input, _way=way: _way(input))
    _, round = start(WEATHER, ADD)
    try:
        plan = round.apply_hooks_sync(hooks)
    except HookError as error:
        found: Any = (str(error), [call.input for call in round.calls])
        round.discard()
        return found
    found = plan.decisions()
    plan.discard()
    return found


@pytest.mark.sweep
@pytest.mark.parametrize(("first", "second"), [*itertools.product(WAYS, WAYS)])
def test_a_hook_means_the_same_on_the_quick_path(
    first: str, second: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, LOGGER)
    quick = outcome_of(first, second)
    caplog.set_level(logging.INFO, LOGGER)
    assert outcome_of(first, second) == quick
