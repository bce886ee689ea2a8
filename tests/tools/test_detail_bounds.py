"""What the model is told about a call stays short, whatever the schema, the names and the values
are; and finding it out takes no more than the value itself (rule C3).
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Annotated, Any, Literal, Union

import pytest
from counting import functions_entered
from pydantic import BaseModel, Field, create_model

from lutumpy import (
    DynamicTool,
    InvalidArgumentsError,
    MalformedArgumentsError,
    ToolCall,
    ToolMetadata,
    Toolset,
    UnknownToolError,
    tool,
    tool_input,
)
from lutumpy.tools.json_schema import JsonSchema

MOST = 6000
LONG = "x" * 200_000


def refusal(toolset: Any, arguments: Any, name: str = "it") -> str:
    with pytest.raises((InvalidArgumentsError, MalformedArgumentsError)) as refused:
        toolset.parse(ToolMetadata("c1", name, json.dumps(arguments)))
    return refused.value.detail


def dynamic_of(schema: Any, **more: Any) -> Any:
    properties = {"type": "object", "properties": {"a": schema}, **more}
    return Toolset.of("It", [DynamicTool("it", "A tool.", properties)])


def static_of(kind: Any) -> Any:
    taken: Any = create_model("It", a=(kind, ...))
    taken.__doc__ = "A tool."
    tool_input(output=str)(taken)

    class App(Toolset[ToolCall[taken, str]]):  # type: ignore[valid-type]
        it = tool(taken)

    return App


BRANCHES: list[Any] = [
    {"type": "object", "properties": {"n": {"type": "integer", "minimum": n}}, "required": ["n"]}
    for n in range(500)
]
MODELS: list[Any] = [
    create_model(
        f"Model{n}", kind=(Literal[f"kind {n}"], ...), n=(Annotated[int, Field(ge=n)], ...)
    )
    for n in range(500)
]
UNTAGGED: Any = Union[tuple(MODELS)]
TAGGED: Any = Annotated[UNTAGGED, Field(discriminator="kind")]

DYNAMIC: dict[str, Any] = {
    "anyOf": {"anyOf": BRANCHES},
    "oneOf": {"oneOf": BRANCHES},
    "enum": {"enum": [f"value {n}" for n in range(500)]},
    "constants": {"anyOf": [{"const": f"value {n}"} for n in range(500)]},
    "patterns": {"anyOf": [{"pattern": f"^{n}"} for n in range(500)]},
    "closed": {"type": "object", "additionalProperties": False},
    "list": {"items": {"anyOf": BRANCHES[:50]}},
    "names": {"propertyNames": {"maxLength": 2}},
}
STATIC: dict[str, Any] = {
    "untagged": Union[tuple(MODELS[:100])],
    "tagged": TAGGED,
    "literals": Literal[tuple(f"value {n}" for n in range(500))],
    "list": list[Union[tuple(MODELS[:30])]],
    "map": dict[int, Literal[1]],
}
VALUES: list[Any] = [
    -1,
    LONG,
    {},
    {"n": -1},
    {"kind": LONG},
    {"kind": "kind 3", "n": LONG},
    {LONG: 1, "b": 2},
    [{"n": -1}] * 50,
    [LONG[:1000]] * 50,
    {LONG[:100_000]: {LONG[:100_000]: [1, 2, 3]}},
]


def check_bounds(detail: str) -> None:
    assert 0 < len(detail) < MOST
    lines = detail.split("\n")
    assert len(lines) <= 11
    assert "x" * 300 not in detail


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.parametrize("what", DYNAMIC)
def test_details_of_schemas_are_bounded_C3(what: str) -> None:
    toolset = dynamic_of(DYNAMIC[what])
    told = 0
    for value in VALUES:
        try:
            toolset.parse(ToolMetadata("c1", "it", json.dumps({"a": value})))
        except InvalidArgumentsError as error:
            check_bounds(error.detail)
            told += 1
    assert told


@pytest.mark.slow
@pytest.mark.pure
@pytest.mark.parametrize("what", STATIC)
def test_details_of_models_are_bounded_C3(what: str) -> None:
    toolset = static_of(STATIC[what])
    for value in VALUES:
        if value != {}:
            check_bounds(refusal(toolset, {"a": value}))


def test_a_union_of_many_branches_says_how_many_more_there_are_C3() -> None:
    told = refusal(dynamic_of({"anyOf": BRANCHES}), {"a": {"n": -1}})
    assert told.startswith("a.n: -1 is less than the minimum of 0 or: -1 is less than")
    assert told.endswith(" more")
    assert len(told) < 600


def test_a_tag_of_the_models_own_does_not_hide_the_tags_that_are_taken_C3() -> None:
    pair: Any = Annotated[MODELS[0] | MODELS[1], Field(discriminator="kind")]
    told = refusal(static_of(pair), {"a": {"kind": LONG, "n": 1}})
    assert "'kind 0', 'kind 1'" in told


def test_long_names_of_tools_are_shortened_C2_C3() -> None:
    toolset = dynamic_of({})
    with pytest.raises(UnknownToolError) as refused:
        toolset.parse(ToolMetadata("c1", LONG, "{}"))
    assert len(str(refused.value)) < 500
    assert refused.value.name == LONG


# --- work -----------------------------------------------------------------------------------------

MEASURE = """
import json, resource
from lutumpy import DynamicTool, InvalidArgumentsError, ToolMetadata, Toolset

names = [f"n{number}" for number in range(4000)]
values = [{"a": "x" * 400_000}, {"a": list(range(30_000))}, {"b": {"a": "x" * 400_000}}]
values.append({f"key {number}": "x" * 90 for number in range(4000)})
schemas = [
    {"required": names},
    {"anyOf": [{"required": names}, {"required": names[::-1]}]},
    {"properties": {"b": {"required": names}}, "required": ["n"]},
    {"dependentRequired": {"a": names}, "required": ["n"]},
    {"allOf": [{"required": [name]} for name in names[:1000]]},
    {"propertyNames": {"maxLength": 0}, "minProperties": 3},
    {"allOf": [{"propertyNames": {"pattern": "^[a-z]$"}}], "additionalProperties": False},
]
toolsets = [
    Toolset.of("It", [DynamicTool("it", "A tool.", {"type": "object", **schema})])
    for schema in schemas
]

def read(arguments):
    for toolset in toolsets:
        try:
            toolset.parse(ToolMetadata("c1", "it", arguments))
        except InvalidArgumentsError as error:
            assert len(error.detail) < 6000

read('{"b": {}}')
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for value in values:
    read(json.dumps(value))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.pure
@pytest.mark.slow
def test_many_missing_names_make_no_copies_of_the_arguments_C3() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    )
    megabytes = int(ran.stdout) // (1024 if sys.platform == "darwin" else 1)
    assert megabytes < 300  # gigabytes, if each missing name had a copy


@pytest.mark.pure
@pytest.mark.slow
def test_patterns_for_many_properties_are_not_counted_one_by_one_C3() -> None:
    patterns = {f"^k{number}": {"type": "integer"} for number in range(300)}
    toolset = Toolset.of(
        "It", [DynamicTool("it", "A tool.", {"type": "object", "patternProperties": patterns})]
    )
    told: list[str] = []
    value = {f"k{number}": "x" for number in range(3000)}
    entered = functions_entered(lambda: told.append(refusal(toolset, value))).total()
    assert entered < 300_000  # of 900,000 pairs, which were listed twice
    assert told == ["arguments: they don't fit the schema, or are nested too deeply for it"]


def test_missing_names_are_listed_in_the_order_of_the_schema_C3() -> None:
    names = [f"n{number}" for number in range(4000)]
    told = refusal(dynamic_of({}, required=names), {"n1": 1, "a": LONG[:400_000]})
    lines = [f"{name}: Field required" for name in names if name != "n1"]
    assert told == "\n".join([*lines[:10], "… and 3989 more"])


CHANCE = random.Random(25)
LETTERS = "abcdefghijklmnop"


def some_schema(levels: int = 3) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    if CHANCE.random() < 0.6:
        schema["required"] = CHANCE.sample(LETTERS, CHANCE.randrange(1, 16))
    if CHANCE.random() < 0.2:
        schema["const"] = {"required": list(LETTERS)}
    if CHANCE.random() < 0.2:
        schema["\ue002required"] = CHANCE.choice([3, [0, list(LETTERS)], "x"])
    for key in CHANCE.sample(["properties", "anyOf", "oneOf", "allOf", "not", "if", "$ref"], 2):
        if key == "$ref":
            schema[key] = "#/$defs/required"
        elif levels and key == "properties":
            names = [*CHANCE.sample(LETTERS, 2), "required"]
            schema[key] = {name: some_schema(levels - 1) for name in names}
        elif levels and key.endswith("Of"):
            schema[key] = [some_schema(levels - 1) for _ in range(2)]
        elif levels:
            schema[key] = some_schema(levels - 1)
            schema |= {"then": some_schema(0)} if key == "if" else {}
    return schema


def some_value(levels: int = 2) -> Any:
    if not levels or CHANCE.random() < 0.2:
        return CHANCE.choice([1, "x", None, [], {"required": list(LETTERS)}])
    names = [*CHANCE.sample(LETTERS, CHANCE.choice([1, 3, 15])), "required"]
    return {name: some_value(levels - 1) if name in "abc" else 1 for name in names}


@pytest.mark.pure
@pytest.mark.slow
def test_failures_are_told_of_what_does_not_fit_and_of_nothing_else_C3() -> None:
    failed = 0
    for _ in range(150):
        document = {**some_schema(), "$defs": {"required": {"required": list(LETTERS[:12])}}}
        schema = JsonSchema(document)
        for _ in range(4):
            value = some_value()
            failures = schema.failures(value)
            # The validator that explains is another one than that which answers.
            assert bool(schema.failing_paths(value)) is bool(failures) is not schema.is_valid(value)
            failed += bool(failures)
            missing = {path for path, text in failures if text == "Field required"}
            for *path, name in missing:
                holder = value
                for step in path:
                    holder = holder[step]
                assert name not in holder
    assert failed > 150


@tool_input(name="it", output=dict[str, int])
class Plain(BaseModel):
    """A tool."""

    a: int


def test_output_errors_are_bounded_K3() -> None:
    class App(Toolset[ToolCall[Plain, dict[str, int]]]):
        it = tool(Plain)

    call: Any = App.parse(ToolMetadata("c1", "it", '{"a": 1}'))
    result = call.complete({LONG: "x"})
    assert result.output_error is not None
    assert len(result.output_error) < 2000
