"""The table of APIs: what it takes, what it refuses, and what installed packages add to it."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from lutumpy import apis
from lutumpy.apis import ApiRow, add_api, api_names, api_row, by_name, remove_api, serves, serving
from lutumpy.errors import UnknownApiError

ROW = ApiRow(
    name="made_up",
    title="Made up",
    family="tests",
    adapter="json:JSONDecoder",
    rules="json",
    reader="json:loads",
)


@pytest.fixture(autouse=True)
def a_table_as_before() -> Iterator[None]:
    yield
    remove_api(ROW.name)


def test_a_row_is_served_as_soon_as_it_is_added_and_no_longer_when_it_is_removed() -> None:
    add_api(ROW)
    add_api(replace(ROW))  # the same row again changes nothing
    assert api_names()[-1] == "made_up"
    assert api_row("made_up").title == "Made up"
    assert serving("made_up", "reader")("[1]") == [1]
    assert serving("made_up", "rules") is importlib.import_module("json")
    assert not serves("made_up", "page")
    assert "made_up" not in by_name("page")
    remove_api("made_up")
    remove_api("made_up")  # nothing happens when it isn't there
    with pytest.raises(UnknownApiError, match="unknown api 'made_up': one of openai_chat"):
        api_row("made_up")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (replace(ROW, version=2), "has version 2; this release reads version 1"),
        (replace(ROW, name="Made-up"), "can't name an API"),
        (replace(ROW, adapter=""), "has no adapter"),
        (replace(ROW, name="openai_chat"), "there is an API named 'openai_chat' already"),
    ],
)
def test_a_row_that_cannot_be_used_leaves_the_table_as_it_was(row: ApiRow, reason: str) -> None:
    before = api_names()
    with pytest.raises(ValueError, match=reason):
        add_api(row)
    assert api_names() == before


def test_what_nothing_does_for_an_api_is_named() -> None:
    add_api(ROW)
    with pytest.raises(UnknownApiError, match="nothing serves 'made_up' as its repairs"):
        serving("made_up", "repairs")


class Point:
    """An entry point of an installed package."""

    name = "made_up"
    value = "package.module:ROW"

    def __init__(self, row: Any) -> None:
        self._row = row

    def load(self) -> Any:
        return self._row


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Entry points that are found when the table is asked for a name that it lacks."""
    points: list[Any] = []
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: points)
    monkeypatch.setattr(apis, "_installed_is_loaded", False)
    return points


def test_an_installed_package_adds_an_api(installed: list[Any]) -> None:
    installed.append(Point(ROW))
    assert api_row("made_up") is ROW
    assert "made_up" in api_names()


def test_a_package_that_offers_no_row_is_named_until_it_is_mended(installed: list[Any]) -> None:
    installed.append(Point("a text"))
    for _ in range(2):
        with pytest.raises(UnknownApiError, match=r"'made_up' .*\(package.module:ROW\).*not an A"):
            api_names()
    installed[:] = [Point(ROW)]
    assert "made_up" in api_names()


@pytest.mark.parametrize(
    "door",
    [
        "lutumpy",
        "lutumpy.doctor",
        "lutumpy.hooks",
        "lutumpy.models",
        "lutumpy.streaming",
        "lutumpy.tools",
    ],
)
def test_a_door_lists_its_names_and_has_no_others(door: str) -> None:
    module = importlib.import_module(door)
    assert {*module.__all__} <= {*dir(module)}
    assert all(getattr(module, name) is not None for name in module.__all__)
    with pytest.raises(AttributeError, match=f"module '{door}' has no attribute 'nothing'"):
        _ = module.nothing
