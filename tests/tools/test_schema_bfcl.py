"""Functions and calls of a leaderboard of function calling, as dynamic tools (rules Y2, Y4).

Each function is declared by its schema; the calls that the leaderboard expects are decoded to equal
JSON; each mutation of them is an issue that names the field.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lutumpy import DynamicTool, InvalidArgumentsError, ToolMetadata, Toolset

BFCL = Path(__file__).parents[1] / "fixtures" / "json_schema" / "bfcl.jsonl"
ROWS = [json.loads(line) for line in BFCL.read_text().splitlines()[1:]]  # the first has the source
# Of each JSON type a value that no other type takes, not even by a repair (C5).
OTHER = {
    "string": 7,
    "integer": "seven",
    "number": "seven",
    "boolean": "maybe",
    "array": {"no": "list"},
    "object": ["no", "object"],
}


def tool_name(name: str) -> str:
    """Their names have dots; those of tools have none."""
    return name.replace(".", "_")


class Expected(NamedTuple):
    """A call that the leaderboard expects, with its function."""

    tools: type[Toolset[Any]]
    closed: type[Toolset[Any]]
    name: str
    schema: dict[str, Any]
    arguments: dict[str, Any]
    fits: bool


def declare(functions: list[dict[str, Any]], *, closed: bool) -> type[Toolset[Any]]:
    tools: dict[str, DynamicTool] = {}
    for function in functions:
        schema = function["schema"]
        if closed:
            schema = {**schema, "additionalProperties": False}
        name = tool_name(function["name"])
        tools[name] = DynamicTool(name, "A function.", schema)
    return Toolset.of("Functions", tools.values())


def read_calls() -> list[Expected]:
    found = []
    for row in ROWS:
        tools = declare(row["functions"], closed=False)
        closed = declare(row["functions"], closed=True)
        schemas = {function["name"]: function["schema"] for function in row["functions"]}
        for call in row["calls"]:
            name, arguments = call["name"], call["arguments"]
            schema = schemas[name]
            found.append(Expected(tools, closed, tool_name(name), schema, arguments, call["fits"]))
    return found


@pytest.fixture(scope="module")
def calls() -> list[Expected]:
    return read_calls()


def parse(tools: type[Toolset[Any]], name: str, arguments: Any) -> Any:
    return tools.parse(ToolMetadata("c1", name, json.dumps(arguments)))


def refusal(tools: type[Toolset[Any]], name: str, arguments: Any) -> str:
    with pytest.raises(InvalidArgumentsError) as refused:
        parse(tools, name, arguments)
    return refused.value.detail


@pytest.mark.pure
@pytest.mark.slow
def test_every_expected_call_is_decoded_to_equal_json(calls: list[Expected]) -> None:
    fitting = [call for call in calls if call.fits]
    assert (len(fitting), len(calls)) == (1005, 1007)
    for call in fitting:
        for tools in (call.tools, call.closed):
            parsed = parse(tools, call.name, call.arguments)
            # Equal also in the order of names, and in `1` beside `1.0`.
            assert json.dumps(parsed.arguments) == json.dumps(call.arguments)
            assert parsed.repairs == ()


@pytest.mark.pure
@pytest.mark.slow
def test_the_two_expected_calls_that_break_their_own_schema_are_refused(
    calls: list[Expected],
) -> None:
    found = [refusal(c.tools, c.name, c.arguments) for c in calls if not c.fits]
    assert len(found) == 2
    assert found[0].startswith('x: "data[\'sales\']" is not of type "array"\ny: ')
    assert found[1].startswith('elements[0]: "apple" is not of type "integer"\nelements[1]: ')


class Mutation(NamedTuple):
    """A call that was broken at one place, and how the line about it begins."""

    kind: str
    call: Expected
    arguments: dict[str, Any]
    line: str


def mutations(call: Expected) -> Iterator[Mutation]:
    properties = call.schema.get("properties", {})
    for name in call.schema.get("required", []):
        rest = {key: value for key, value in call.arguments.items() if key != name}
        yield Mutation("missing", call, rest, f"{name}: Field required")
    for name in call.arguments:
        about = properties.get(name, {})
        if about.get("type") in OTHER:
            wrong = {**call.arguments, name: OTHER[about["type"]]}
            yield Mutation("wrong type", call, wrong, f"{name}: ")
        if "enum" in about:
            wrong = {**call.arguments, name: "none of these"}
            yield Mutation("bad enum", call, wrong, f"{name}: ")
        entries = about.get("items", {}).get("type") if about.get("type") == "array" else None
        if entries in OTHER and call.arguments[name]:
            wrong = copy.deepcopy(call.arguments)
            wrong[name][-1] = OTHER[entries]
            place = f"{name}[{len(wrong[name]) - 1}]"
            yield Mutation("wrong entry", call, wrong, f"{place}: ")


@pytest.mark.pure
@pytest.mark.slow
def test_every_mutation_is_an_issue_that_names_the_field_Y4(calls: list[Expected]) -> None:
    tried: dict[str, int] = {}
    for call in calls:
        if not call.fits:
            continue
        for mutation in mutations(call):
            tried[mutation.kind] = tried.get(mutation.kind, 0) + 1
            told = refusal(call.tools, call.name, mutation.arguments)
            assert told.startswith(mutation.line), (mutation, told)
            assert "\n" not in told
        unknown = {**call.arguments, "unknown name": 1}
        tried["unknown"] = tried.get("unknown", 0) + 1
        # Where the schema doesn't say that it is closed, it is open.
        assert parse(call.tools, call.name, unknown).arguments == unknown
        told = refusal(call.closed, call.name, unknown)
        assert told == '["unknown name"]: Extra inputs are not permitted'
    assert sum(tried.values()) > 5000
    assert min(tried.values()) > 50
    assert set(tried) == {"missing", "wrong type", "bad enum", "wrong entry", "unknown"}
