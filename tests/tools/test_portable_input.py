"""Inputs as JSON and back: what runs is what was decided on, or it can't be written (rule P12)."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr, field_serializer

from lutumpy import (
    DynamicTool,
    ToolInput,
    ToolMetadata,
    Toolset,
    text_tool,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.tools import NotPortable, load_input
from lutumpy.tools.portable_input import dump_input

COUNTER = itertools.count()


class Line(BaseModel):
    text: str
    count: int = 1


@tool_fn
def pay(amount: int, lines: list[Line] | None = None, *, memo: str = "none") -> str:
    """Pay."""
    return "paid"


@text_tool
def word(word: str) -> str:
    """Say a word."""
    return word


@tool_input(name="aliased")
class Aliased(ToolInput[None]):
    """Has an alias."""

    model_config = ConfigDict(populate_by_name=True)
    first: int = Field(alias="erster")
    number: int = Field(default_factory=lambda: next(COUNTER))


@tool_input(name="rooted", output=None)
class Rooted(RootModel[Line]):
    """Holds a model."""


@tool_input(name="login")
class Login(ToolInput[None]):
    """Log in."""

    password: SecretStr


@tool_input(name="lossy")
class Lossy(ToolInput[None]):
    """Writes less than it reads."""

    text: str

    @field_serializer("text")
    def shorten(self, text: str) -> str:
        return text[:3]


@tool_input(name="number")
class Number(ToolInput[None]):
    """Takes a number."""

    x: float


FREE = DynamicTool(
    "free", "Takes anything.", {"type": "object", "properties": {"n": {"type": "integer"}}}
)


class All(Toolset):
    pay = tool(pay)
    word = tool(word)
    aliased = tool(Aliased)
    rooted = tool(Rooted)
    login = tool(Login)
    lossy = tool(Lossy)
    number = tool(Number)
    free = tool(FREE)


def parse(name: str, arguments: Any) -> Any:
    if isinstance(arguments, str):
        return All.parse(ToolMetadata.of_text("a", name, arguments))
    return All.parse(ToolMetadata("a", name, json.dumps(arguments)))


@pytest.mark.parametrize(
    ("name", "arguments", "dumped"),
    [
        (
            "pay",
            {"amount": 3, "lines": [{"text": "a"}]},
            {"amount": 3, "lines": [{"text": "a", "count": 1}], "memo": "none"},
        ),
        ("word", "hello", "hello"),
        ("rooted", {"text": "a"}, {"text": "a", "count": 1}),
        ("free", {"n": 3, "more": [None]}, {"n": 3, "more": [None]}),
        ("number", {"x": 1.5}, {"x": 1.5}),
    ],
)
def test_p12_an_input_comes_back_as_it_was_in_full(name: str, arguments: Any, dumped: Any) -> None:
    call = parse(name, arguments)
    written = json.loads(json.dumps(dump_input(call)))
    assert written == dumped
    loaded = load_input(call.tool, written)
    assert loaded == call.input
    assert dump_input(call.holding(loaded)) == written


def test_p12_a_default_is_made_once() -> None:
    call = parse("aliased", {"erster": 1})
    written: Any = dump_input(call)
    assert written == {"erster": 1, "number": call.input.number}
    assert load_input(call.tool, written).number == call.input.number


@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [("login", {"password": "x"}, "password"), ("lossy", {"text": "abcdef"}, "text")],
)
def test_p12_what_doesnt_come_back_equal_cant_be_written(
    name: str, arguments: Any, field: str
) -> None:
    with pytest.raises(NotPortable, match=f"{field} doesn't come back as it was"):
        dump_input(parse(name, arguments))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_p12_a_number_that_json_doesnt_have_cant_be_written(value: float) -> None:
    call = parse("number", {"x": 1.0})
    with pytest.raises(NotPortable):
        dump_input(call.with_input(Number(x=value)))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("pay", {"amount": "x"}, "amount"),
        ("pay", [], "the whole"),
        ("pay", math.nan, "not JSON"),
        ("word", 3, "not a text"),
        ("free", 3, "not a JSON object"),
        ("free", {"n": "x"}, "doesn't fit the schema"),
    ],
)
def test_p12_what_is_no_input_of_the_tool_is_refused(name: str, data: Any, message: str) -> None:
    with pytest.raises(NotPortable, match=message):
        load_input(All.selector(name).tool, data)


@given(st.integers(), st.lists(st.tuples(st.text(), st.integers())), st.text())
def test_p12_property_every_input_of_plain_values_comes_back(
    amount: int, lines: list[tuple[str, int]], memo: str
) -> None:
    call = parse(
        "pay",
        {"amount": amount, "lines": [{"text": t, "count": c} for t, c in lines], "memo": memo},
    )
    written = json.loads(json.dumps(dump_input(call)))
    assert load_input(call.tool, written) == call.input


def test_what_does_not_fit_is_told_in_sentences_with_every_field() -> None:
    with pytest.raises(NotPortable) as raised:
        load_input(All.selector("number").tool, {"x": "much"})
    assert str(raised.value) == (
        "x: Input should be a valid number, unable to parse string as a number"
    )
    for name in ("pay", "aliased", "rooted", "login", "lossy", "number"):
        tool = All.selector(name).tool
        with pytest.raises(NotPortable) as raised:
            load_input(tool, {"nothing": {"like": "it"}})
        for line in str(raised.value).splitlines():
            place, _, sentence = line.partition(": ")
            assert place
            assert " " in sentence
            assert "_" not in sentence
    with pytest.raises(NotPortable, match=r"it doesn't fit the schema: n: .*integer"):
        load_input(All.selector("free").tool, {"n": "x"})


def test_a_number_larger_than_any_float_is_no_input_of_a_float() -> None:
    with pytest.raises(NotPortable):
        load_input(All.selector("number").tool, {"x": 10**400})
