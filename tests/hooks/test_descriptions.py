"""Descriptions that hooks word (rules H8, A3)."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from hook_toolkit import AppTools, CountTools, DataTools

from lutumpy import HookError, ToolDef, hook_impl


class Words:
    def __init__(self, text: str = "words") -> None:
        self.text = text

    @hook_impl
    def weather_description_hook(self, definition: ToolDef) -> str:
        return f"{definition.description} {self.text}"


async def test_descriptions_of_nested_tools_come_as_outer_selectors() -> None:  # H8
    hooks = AppTools.hooks().with_hooks(Words())

    @hooks.describe(AppTools.data[DataTools.get_user])
    async def user(definition: ToolDef) -> str:
        return "Look up."

    @hooks.data.counts.describe(CountTools.count_users)
    def count(definition: ToolDef) -> str:
        return "Count."

    overrides = await hooks.description_overrides()
    assert overrides == {
        AppTools.weather: "Tell the weather. words",
        AppTools.selector("get_user"): "Look up.",
        AppTools.selector("count_users"): "Count.",
    }
    assert AppTools.weather.definition.description == "Tell the weather."  # A3
    offer = AppTools.offer(describe=overrides)
    assert "Look up." in [spec.description for spec in offer.specs]
    assert await hooks.data.description_overrides() == {
        DataTools.get_user: "Look up.",
        DataTools.selector("count_users"): "Count.",
    }


async def test_none_keeps_the_text() -> None:  # H8
    hooks = AppTools.hooks()
    hooks.describe(AppTools.weather)(lambda definition: None)
    hooks.describe(AppTools.add)(lambda definition: "")
    assert await hooks.description_overrides() == {AppTools.add: ""}
    assert hooks.description_overrides_sync() == {AppTools.add: ""}


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(text))


def test_the_last_one_counts_and_the_warning_points_at_the_line_that_replaced() -> None:  # H7 H8
    base, other = AppTools.hooks(), AppTools.hooks()
    base.register(Words("old"))
    other.register(Words("newer"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        base.with_hooks(Words("a"))  # line 1
        base.with_extended(other)  # line 2
        base.extend(other)  # line 3
        base.register(Words("new"))  # line 4
        base.describe(AppTools.weather)(lambda definition: "newest")  # line 5
        base.with_hooks(_for_another_tool())  # nothing is replaced by a copy
    assert [(w.filename, w.lineno) for w in caught] == [
        (__file__, line_of(f"# line {n}")) for n in range(1, 6)
    ]
    assert "Words.weather_description_hook is replaced" in str(caught[0].message)
    assert "weather_description_hook of AppTools.hooks()" in str(caught[0].message)
    assert base.description_overrides_sync() == {AppTools.weather: "newest"}


def _for_another_tool() -> Any:
    class Other:
        @hook_impl
        def add_description_hook(self, definition: ToolDef) -> str:
            return "Add."

    return Other()


def test_the_last_one_registered_counts_whatever_its_place_among_the_others() -> None:  # H7
    class First:
        @hook_impl(tryfirst=True)
        def weather_description_hook(self, definition: ToolDef) -> str:
            return "first"

    hooks = AppTools.hooks().with_hooks(Words())
    first = First()
    with pytest.warns(UserWarning, match="replaced"):
        hooks.register(first)
    assert hooks.description_overrides_sync() == {AppTools.weather: "first"}
    hooks.unregister(first)
    assert hooks.description_overrides_sync() == {AppTools.weather: "Tell the weather. words"}


def test_a_warning_that_is_an_error_changes_nothing() -> None:  # H5b
    hooks = AppTools.hooks().with_hooks(Words("old"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            hooks.register(Words("new"))
    assert hooks.description_overrides_sync() == {AppTools.weather: "Tell the weather. old"}


async def test_a_description_hook_that_fails_is_named() -> None:
    async def inner() -> str: ...  # type: ignore[empty-body]

    async def broken(definition: ToolDef) -> str:
        raise RuntimeError("no words")

    for hook, message in [
        (broken, r"broken of 'weather' raised RuntimeError\('no words'\)"),
        (lambda definition: 3, "lambda.* gave int, not str"),
    ]:
        hooks: Any = AppTools.hooks()
        hooks.describe(AppTools.weather)(hook)
        with pytest.raises(HookError, match=message):
            await hooks.description_overrides()
    for hook, message in [
        (broken, "broken of 'weather' is async"),
        (lambda definition: inner(), "gave an awaitable"),
    ]:
        hooks = AppTools.hooks()
        hooks.describe(AppTools.weather)(hook)
        with pytest.raises(HookError, match=message):
            hooks.description_overrides_sync()
