"""Sets are the same JSON each time, where tools, calls and inputs are told apart by it."""

from __future__ import annotations

import dataclasses
import enum
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from lutumpy import ToolMetadata, Toolset, tool, tool_input
from lutumpy.execution import Dispatcher, IdempotencyKey, ToolExecutor
from lutumpy.tools import load_input
from lutumpy.tools.portable_input import dump_input
from lutumpy.tools.set_order import sort_sets
from lutumpy.tools.tool import compiled_tool

# Equal sets that CPython goes through in another order: 0 and 8 want the same place.
UP, DOWN = [0, 8], [8, 0]


class Labels(RootModel[set[int]]):
    """Labels."""


class Options(BaseModel):
    model_config = ConfigDict(extra="allow")
    wanted: set[int] = Field(alias="want")


@dataclasses.dataclass
class Limits:
    among: frozenset[int]


class Pair(NamedTuple):
    name: str
    found: set[int]


@tool_input(name="find", output=str)
class Find(BaseModel):
    """Find them."""

    words: set[str] = set()
    ids: frozenset[int] = frozenset()
    options: Options | None = None
    labels: list[Labels] = []


class Tools(Toolset):
    find = tool(Find, output=str)


def find(id: str = "c1") -> Any:
    return Tools.parse(ToolMetadata(id, "find", "{}"))


def test_the_sets_that_these_tests_use_differ_in_their_order() -> None:
    assert list(set(UP)) != list(set(DOWN))


@pytest.mark.parametrize("order", [UP, DOWN], ids=["up", "down"])
def test_a_default_with_sets_is_the_same_in_each_schema_A4(order: list[int]) -> None:
    held = set(order)

    @tool_input(output=None)
    class Look(BaseModel):
        """Look."""

        plain: set[int] = held
        listed: list[set[int]] = [held]
        named: dict[str, frozenset[int]] = {"a": frozenset(order)}
        nested: set[frozenset[int]] = {frozenset(order)}
        model: Options = Options.model_validate({"want": held, "more": held})
        root: Labels = Labels(held)
        limits: Limits = Limits(frozenset(order))
        pair: Pair = Pair("n", held)
        text: str = "as it is"

    properties = compiled_tool(Look).definition.input_schema["properties"]
    assert {name: entry["default"] for name, entry in properties.items()} == {
        "plain": UP,
        "listed": [UP],
        "named": {"a": UP},
        "nested": [UP],
        "model": {"want": UP, "more": UP},
        "root": UP,
        "limits": {"among": UP},
        "pair": ["n", UP],
        "text": "as it is",
    }


DECLARATION = """
from lutumpy import tool_fn

@tool_fn
def find(words: set[str] = {"a", "b", "c", "d", "e", "f"}) -> None:
    "Find them."

print(find.definition.digest)
"""


def test_a_tool_has_the_same_digest_in_every_process_A4() -> None:
    digests = set[str]()
    for seed in "123":
        env = {**os.environ, "PYTHONHASHSEED": seed}
        cwd = Path(__file__).parents[2]
        command = [sys.executable, "-c", DECLARATION]
        digests.add(subprocess.check_output(command, env=env, cwd=cwd, text=True))
    assert len(digests) == 1


async def test_equal_edits_with_sets_are_equal_calls_E5() -> None:
    keys: list[IdempotencyKey] = []
    dispatch = Dispatcher(Tools)

    @dispatch.on(Tools.find)
    def run(input: Find, *, key: IdempotencyKey) -> str:
        keys.append(key)
        return "found"

    edited = [find(id).edited(ids=frozenset(order)) for id, order in (("c1", UP), ("c2", DOWN))]
    for call in edited:
        await ToolExecutor().run([call], dispatch)
    assert keys[0] == keys[1]
    results = await ToolExecutor(deduplicate=True).run(edited, dispatch)
    assert [result.status for result in results] == ["ok", "rejected"]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    model_config = ConfigDict(frozen=True)
    x: int


@tool_input(name="paint", output=str)
class Paint(BaseModel):
    """Paint it."""

    points: set[Point] = set()
    colors: dict[Color, int] = {}
    data: bytes = b""


class PaintTools(Toolset):
    paint = tool(Paint, output=str)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("points", [{Point(x=0)}, {Point(x=8)}]),
        ("colors", [{Color.RED: 1}, {Color.BLUE: 1}]),
        ("data", [b"\xff", b"\xfe"]),
    ],
)
async def test_edits_that_are_not_plain_json_are_told_apart_E5(name: str, values: Any) -> None:
    dispatch = Dispatcher(PaintTools)
    dispatch.on(PaintTools.paint)(lambda input: "painted")
    edited = [
        PaintTools.parse(ToolMetadata(f"c{i}", "paint", "{}")).edited(**{name: value})
        for i, value in enumerate([*values, *values])
    ]
    results = await ToolExecutor(deduplicate=True).run(edited, dispatch)
    assert [result.status for result in results] == ["ok", "ok", "rejected", "rejected"]


def test_an_input_with_sets_survives_json_whatever_their_order_P12() -> None:
    randomly = random.Random(0)
    for _ in range(50):
        ids = [randomly.randrange(10**6) for _ in range(20)]
        values = {"ids": frozenset(ids), "words": {str(each) for each in ids}}
        options = Options.model_validate({"want": ids})
        call = find().edited(**values, options=options, labels=[Labels(set(ids))])
        assert load_input(call.tool, dump_input(call)) == call.input


def test_what_a_serializer_made_of_a_set_stays_as_it_is() -> None:
    assert sort_sets({1, 2}, "two") == "two"
    assert sort_sets({2, 1}, [3, 2, 1]) == [3, 2, 1]
    assert sort_sets(3, {"b": [2, 1]}) == {"b": [2, 1]}
