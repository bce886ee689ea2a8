"""A digest of a tool: no change of what was decided on goes unseen (rule P14)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from toolkit import WeatherTools

from lutumpy import ToolDef
from lutumpy.tool_doctor import locked_toolset

WEATHER = WeatherTools.weather.definition

# The digest of a lock file is over what the model is shown, without the effect. It is what earlier
# releases wrote, and must stay so: an application would take any other for a changed tool.
LOCKED = "sha256:56e6594d59bd68b4f0a05d6cb8c14994ed478f5251f81d283d22576553208940"
DIGEST = "sha256:29d86720cdda977b0456c208b72e50d795ced24492092847b3a0e3d03173365d"


def test_p14_digests_of_earlier_releases_stay_as_they_were() -> None:
    assert locked_toolset(WeatherTools)["weather"].digest == LOCKED
    assert WEATHER.digest == DIGEST
    assert WeatherTools.weather.tool.digest == DIGEST


@pytest.mark.parametrize(
    "changed",
    [
        replace(WEATHER, description="Another one."),
        replace(WEATHER, input_schema={**WEATHER.input_schema, "required": []}),
        replace(WEATHER, output_schema=None),
        replace(WEATHER, options=replace(WEATHER.options, strict=True)),
        replace(WEATHER, options=replace(WEATHER.options, effect="read")),
        replace(WEATHER, options=replace(WEATHER.options, provider={"anthropic": {"a": 1}})),
    ],
    ids=["description", "input", "output", "strict", "effect", "provider"],
)
def test_p14_a_change_of_what_was_decided_on_changes_the_digest(changed: ToolDef) -> None:
    assert changed.digest != WEATHER.digest


def test_p14_what_nobody_decides_on_leaves_the_digest_as_it_is() -> None:
    def reverse(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: reverse(value[key]) for key in reversed(value)}
        return value

    assert replace(WEATHER, input_schema=reverse(WEATHER.input_schema)).digest == WEATHER.digest
    slower = replace(WEATHER, options=replace(WEATHER.options, timeout=1.0, max_retries=0))
    assert slower.digest == WEATHER.digest
