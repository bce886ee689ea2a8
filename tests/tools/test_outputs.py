"""Checking and writing results (rules K3 and K7).

The compiled tool itself is asked: `complete` only keeps what is wrong, for `commit` to report.
"""

import dataclasses
import datetime
import enum
import json
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator

from lutumpy import tool_input
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.tool import compiled_tool


class Answer(BaseModel):
    text: str
    when: datetime.date | None = None


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    hits: int = Field(alias="Hits")


@dataclasses.dataclass
class Point:
    x: float


class Unit(str, enum.Enum):
    C = "celsius"


class Broken(BaseModel):
    text: str

    @field_serializer("text")
    def broken(self, text: str) -> str:
        raise KeyError("SECRET")


class Picky(BaseModel):
    text: str

    @field_validator("text")
    @classmethod
    def check(cls, text: str) -> str:
        if text == "bad":
            raise ValueError("SECRET")
        return text


def tool_of(output: Any) -> CompiledTool:
    return compiled_tool(
        tool_input(name="t", output=output)(type("Input", (BaseModel,), {"__doc__": "A tool."}))
    )


FITS = [
    (str, "text", "text"),
    (str, '{"a": 1}', '{"a": 1}'),
    (Answer, Answer(text="é", when=datetime.date(2026, 1, 2)), '{"text":"é","when":"2026-01-02"}'),
    (list[Answer], [Answer(text="a")], '[{"text":"a","when":null}]'),
    (Answer | None, None, "null"),
    (None, None, "null"),
    (int, 3, "3"),
    (float, 3, "3.0"),
    (bool, True, "true"),
    (dict[str, int], {"a": 1}, '{"a":1}'),
    (tuple[int, str], (1, "a"), '[1,"a"]'),
    (Point, Point(1.0), '{"x":1.0}'),
    (Unit, Unit.C, "celsius"),
    (Aliased, Aliased.model_validate({"Hits": 1}), '{"Hits":1}'),
    (Any, {"a": Answer(text="b")}, '{"a":{"text":"b","when":null}}'),
    (bytes, b"abc", '"abc"'),
]


@pytest.mark.parametrize(
    ("output", "value", "text"), FITS, ids=[str(output) for output, _, _ in FITS]
)
def test_what_fits_is_written_as_compact_json_K7(output: Any, value: Any, text: str) -> None:
    tool = tool_of(output)
    assert tool.check_output(value) is None
    written = tool.encode_output(value)
    assert type(written) is str
    assert written == text or json.loads(written) == json.loads(text)


def test_lone_surrogates_are_no_reason_to_lose_a_result_K7() -> None:
    tool = tool_of(Answer)
    assert tool.check_output(Answer(text="\ud800")) is None
    assert (
        json.loads(tool.encode_output(Answer(text="\ud800")))["text"] == "\N{REPLACEMENT CHARACTER}"
    )


REFUSED = [
    (Answer, {"text": "a"}, "Answer was expected, not dict"),
    (Answer, None, "Answer was expected, not NoneType"),
    (str, 3, "str was expected, not int"),
    (int, "3", "int was expected, not str"),
    (int, 3.0, "int was expected, not float"),
    (None, "", "this tool returns nothing, not str"),
    (list[int], [1, "2"], "1: Input should be a valid integer"),
    (list[Answer], [Answer(text="a"), {"text": "b"}], "Answer was expected at 1, not dict"),
    (
        dict[str, list[Answer | int]],
        {"a": [1, {"text": "b"}]},
        "Answer was expected at a.1, not dict",
    ),
    (Broken, Broken(text="a"), "can't be written as JSON"),
    (Any, object(), "can't be written as JSON"),
    (dict[str, Picky], {"a": {"text": "bad"}}, "a.text: refused by a validator"),
]


@pytest.mark.parametrize(
    ("output", "value", "reason"), REFUSED, ids=[f"{o}-{type(v).__name__}" for o, v, _ in REFUSED]
)
def test_what_does_not_fit_has_a_reason_K3(output: Any, value: Any, reason: str) -> None:
    found = tool_of(output).check_output(value)
    assert found is not None
    assert reason in found
    assert "SECRET" not in found
    assert len(found) < 300


def test_checking_changes_nothing_K3() -> None:
    value = Picky.model_construct(text="bad")
    tool = tool_of(Picky)
    # An instance is accepted as it is; its validators don't run again.
    assert tool.check_output(value) is None
    assert value.text == "bad"
    with pytest.raises(TypeError, match="no function"):
        tool.invoke(tool.decode("{}"), {})
