"""Corners of reading arguments: validators that break at odd moments, or hide where they failed."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, RootModel, field_validator, model_validator
from pydantic_core import PydanticCustomError

from lutumpy import ToolInput, tool_input
from lutumpy.tools.arguments import Decoded, Refused, decode_arguments
from lutumpy.tools.tool import compiled_tool

OWN_CHECK = "The arguments could not be checked: this tool's own check failed on them."


class Move(BaseModel):
    action: Literal["move"]
    to: str

    @field_validator("to")
    @classmethod
    def check(cls, to: str) -> str:
        if to == "nowhere":
            raise KeyError("SECRET")
        return to


class Stop(BaseModel):
    action: Literal["stop"]


@tool_input(output=None)
class Robot(RootModel[Move | Stop]):
    """Drive."""


@tool_input
class Count(ToolInput[str]):
    """Count them."""

    ns: list[int]

    @field_validator("ns")
    @classmethod
    def check(cls, ns: list[int]) -> list[int]:
        if 3 in ns:
            raise KeyError("SECRET")
        return ns


class Node(BaseModel):
    a: Node | None = None
    n: int = 0

    @field_validator("n", mode="before")
    @classmethod
    def replace(cls, n: Any) -> Any:
        return f"replaced {n}"


@tool_input
class Tree(ToolInput[str]):
    """Grow."""

    a: Node


@tool_input
class Find(ToolInput[str]):
    """Find somebody."""

    room: int
    name: str = ""
    mail: str = ""
    ids: list[int] = []

    @model_validator(mode="after")
    def check(self) -> Find:
        if not self.name and not self.mail:
            raise PydanticCustomError("one_of", "Give a name or a mail")
        return self


def refused(tool: type[Any], arguments: Any) -> Refused:
    outcome = decode_arguments(compiled_tool(tool), json.dumps(arguments))
    assert isinstance(outcome, Refused), outcome
    return outcome


def test_a_check_that_breaks_on_the_bare_form_of_a_union_is_not_quoted_C3_D6(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bare = {"action": "move", "to": "nowhere"}
    for form in (bare, {"input": bare}):
        assert refused(Robot, form) == Refused("invalid_arguments", OWN_CHECK)
    assert "a validator of the tool" in caplog.text


def test_a_check_that_breaks_on_an_edited_value_is_not_quoted_C3_C5() -> None:
    good = decode_arguments(compiled_tool(Count), '{"ns": "[2]"}')
    assert isinstance(good, Decoded)
    assert good.repairs == (("ns", "json_string"),)
    assert refused(Count, {"ns": "[3]"}) == Refused("invalid_arguments", OWN_CHECK)


@pytest.mark.parametrize("levels", [1, 3, 6])
def test_a_place_is_found_though_a_validator_has_replaced_its_value_C3(levels: int) -> None:
    value: dict[str, Any] = {"n": 1}
    for _ in range(levels):
        value = {"a": value}
    told = refused(Tree, value).detail
    place = ".".join(["a"] * levels)
    assert told.startswith(f"{place}.n: Input should be a valid integer")
    assert '(got "replaced 1")' in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"room": "x", "name": None, "mail": "m"}, ["room"]),
        ({"room": None, "name": None, "mail": "m"}, ["room"]),
        ({"room": "x", "name": None, "ids": "[1]"}, ["room", "ids"]),
        ({"room": 1, "name": "n", "mail": None, "ids": '["a"]'}, ["ids"]),
        ({"room": 1, "name": None, "mail": None}, ["arguments"]),
        ({"room": 1, "name": None, "mail": None, "ids": "[1]"}, ["ids"]),
    ],
)
def test_a_null_that_is_read_as_left_out_is_not_among_what_is_wrong_C3_D5(
    arguments: dict[str, Any], told: list[str]
) -> None:
    lines = refused(Find, arguments).detail.splitlines()
    assert [line.partition(":")[0] for line in lines] == told


def test_what_is_wrong_without_the_nulls_is_told_C3_D5() -> None:
    detail = refused(Find, {"room": 1, "name": None, "mail": None}).detail
    assert "Give a name or a mail" in detail
