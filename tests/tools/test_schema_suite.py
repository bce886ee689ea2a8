"""The JSON Schema Test Suite through a dynamic tool: what is decoded fits its schema (rule Y2).

A case is a schema and values that fit it or don't. The schema is that of one parameter, `value`, so
each case goes the way of a call: declared, offered in a toolset, parsed.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from each_case import each

from lutumpy import DeclarationError, DynamicTool, InvalidArgumentsError, ToolMetadata, Toolset

SUITE = Path(__file__).parents[1] / "fixtures" / "json_schema" / "suite.jsonl"
DRAFTS = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}

Verdict = Literal["right", "wrong", "refused"]


class Group(NamedTuple):
    """A schema of the suite, and values."""

    draft: str
    file: str
    name: str
    schema: Any
    cases: list[tuple[str, Any, bool]]


def read_groups() -> list[Group]:
    lines = SUITE.read_text().splitlines()[1:]  # the first one says where they are from
    rows = [json.loads(line) for line in lines]
    return [Group(r["draft"], r["file"], r["group"], r["schema"], r["tests"]) for r in rows]


GROUPS = read_groups()
FILES = sorted({(group.draft, group.file) for group in GROUPS})


def embed(group: Group) -> dict[str, Any]:
    """The schema of an object that has the case's schema as its property `value`.

    An address of its own makes `#` in the case mean what it meant. In draft 7 nothing counts beside
    `$ref`, not even an address, so that moves into an `allOf`.
    """
    schema = group.schema
    draft = DRAFTS[group.draft]
    if isinstance(schema, dict):
        if group.draft == "draft7" and "$ref" in schema:
            kept = {key: schema[key] for key in ("$id", "definitions") if key in schema}
            schema = {**kept, "allOf": [{"$ref": schema["$ref"]}]}
        draft = schema.get("$schema", draft)
        schema = {"$id": "https://suite.test/case", **schema}
    return {"$schema": draft, "type": "object", "properties": {"value": schema}}


def is_expected(group: Group, name: str, valid: bool) -> bool:
    """The suite says that a draft of 2020 only notes formats. Here they are checked (Y2)."""
    if group.file == "format.json" and name.endswith("is only an annotation by default"):
        return False
    return valid


def judge(group: Group) -> list[tuple[str, Verdict]]:
    """What became of each value."""
    try:
        tool = DynamicTool("suite", "A case.", embed(group))
    except DeclarationError:
        return [(name, "refused") for name, _, _ in group.cases]
    toolset = Toolset.of("Suite", [tool])
    found: list[tuple[str, Verdict]] = []
    for name, data, valid in group.cases:
        text = json.dumps({"value": data})
        try:
            call = toolset.parse(ToolMetadata("c1", "suite", text))
            # An edit (C5, D5) is made only to what the schema has refused.
            fits = json.dumps(dict(call.input.values)) == text
        except InvalidArgumentsError:
            fits = False
        found.append((name, "right" if fits == is_expected(group, name, valid) else "wrong"))
    return found


# Another document is needed for them; such schemas are refused as they are declared (Y3), and so is
# a draft of the suite's own making.
LEAVES_THE_DOCUMENT = {
    "refRemote.json": "http://localhost:1234/",
    "dynamicRef.json": "http://localhost:1234/",
    "vocabulary.json": "http://localhost:1234/",
}


@pytest.mark.slow
@each("draft, file", FILES)
def test_every_case_of_the_suite_is_decoded_as_it_says_Y2(draft: str, file: str) -> None:
    wrong = []
    for group in GROUPS:
        if (group.draft, group.file) != (draft, file):
            continue
        for name, verdict in judge(group):
            refused = verdict == "refused"
            leaves = LEAVES_THE_DOCUMENT.get(file, "-") in json.dumps(group.schema)
            if verdict == "wrong" or (refused and not leaves):
                wrong.append((group.name, name, verdict))
    assert wrong == []


@pytest.mark.pure
@pytest.mark.slow
def test_the_numbers_of_the_suite_Y2() -> None:
    counts: Counter[tuple[str, str, Verdict]] = Counter()
    for group in GROUPS:
        kind = "formats" if group.file.startswith("optional/") else "core"
        counts.update([(group.draft, kind, verdict) for _, verdict in judge(group)])
    assert counts == {
        ("draft2020-12", "core", "right"): 1208,
        ("draft2020-12", "core", "refused"): 49,
        ("draft2020-12", "formats", "right"): 491,
        ("draft7", "core", "right"): 890,
        ("draft7", "core", "refused"): 23,
        ("draft7", "formats", "right"): 434,
    }


@pytest.mark.parametrize("own", [None, *DRAFTS.values()])
@pytest.mark.parametrize(
    "named",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ],
)
def test_a_parameter_may_be_a_schema_of_any_draft_Y3(own: str | None, named: str) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"schema": {"$ref": named}}}
    if own is not None:
        schema["$schema"] = own
    toolset = Toolset.of("Schemas", [DynamicTool("check", "Check a schema.", schema)])
    good = '{"schema": {"properties": {"a": {"type": "string", "minLength": 1}}}}'
    assert toolset.parse(ToolMetadata("c1", "check", good)).arguments == json.loads(good)
    bad = '{"schema": {"properties": {"a": {"type": "text"}}}}'
    with pytest.raises(InvalidArgumentsError, match=r"schema\.properties\.a"):
        toolset.parse(ToolMetadata("c1", "check", bad))


@pytest.mark.parametrize(
    "named",
    [
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft-07/schema",
    ],
)
def test_a_draft_is_known_in_each_of_its_usual_spellings_Y2(named: str) -> None:
    # In draft 7 `items` takes a list of schemas, in 2020-12 it doesn't.
    pair = {"type": "array", "items": [{"type": "integer"}, {"$ref": "#/definitions/name"}]}
    schema = {
        "$schema": named,
        "type": "object",
        "properties": {"pair": pair},
        "definitions": {"name": {"type": "string"}},
    }
    tool = DynamicTool("take", "Take a pair.", schema)
    assert tool.schema["$schema"] == named  # it is sent as it was given (Y1)
    toolset = Toolset.of("Pairs", [tool])
    toolset.parse(ToolMetadata("c1", "take", '{"pair": [1, "a"]}'))
    with pytest.raises(InvalidArgumentsError, match=r"pair\[1\]"):
        toolset.parse(ToolMetadata("c1", "take", '{"pair": [1, 2]}'))


@pytest.mark.parametrize("named", ["http://json-schema.org/draft-03/schema#", "draft-07", ""])
def test_an_unknown_draft_is_refused_by_its_name_Y1(named: str) -> None:
    with pytest.raises(DeclarationError, match="names a draft that isn't known") as refused:
        DynamicTool("take", "Take it.", {"$schema": named, "type": "object"})
    assert repr(named) in str(refused.value)
