"""The tool doctor and the lock, for tools that are known at run time (rule Y9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lutumpy import DynamicTool, ToolInput, Toolset, dynamic, tool, tool_input
from lutumpy.tool_doctor import Finding, Lock, check_tools, drift, locked_toolset


@tool_input(name="read_file")
class ReadFile(ToolInput[str]):
    """Read a file.

    Args:
        path: Where it is.
    """

    path: str


class AppTools(Toolset):
    read_file = tool(ReadFile)
    more = dynamic()


def declared(schema: dict[str, Any], name: str = "find") -> DynamicTool:
    return DynamicTool(name, "Find it.", schema)


def found(schema: dict[str, Any], rule: str) -> list[Finding]:
    report = check_tools(Toolset.of("One", [declared(schema)]))
    return [finding for finding in report.findings if finding.rule == rule]


TEXT = {"type": "string", "description": "About it."}
CLOSED = {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False}


def test_a_closed_described_tool_has_no_findings_of_its_declaration() -> None:
    report = check_tools(Toolset.of("One", [declared(CLOSED)]))
    assert [f for f in report.findings if f.rule.startswith("tool.")] == []
    assert report.tools == ("find",)
    assert len(report.sizes) > 0


def test_an_open_object_is_named_at_each_place() -> None:
    inner = {"type": "object", "properties": {"b": TEXT}, "description": "Inner."}
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": inner}}}
    findings = found(schema, "tool.open_object")
    assert [finding.path for finding in findings] == ["", "/properties/a/items"]
    assert {finding.severity for finding in findings} == {"info"}
    assert "unknown names are accepted" in findings[0].message
    for says in ("additionalProperties", "unevaluatedProperties"):
        assert found({"type": "object", "properties": {"a": TEXT}, says: False}, says) == []


def test_another_draft_is_named() -> None:
    (finding,) = found(
        {**CLOSED, "$schema": "http://json-schema.org/draft-07/schema#"}, "tool.draft"
    )
    assert (finding.severity, finding.path) == ("info", "/$schema")
    assert "draft-07" in finding.message
    assert (
        found({**CLOSED, "$schema": "https://json-schema.org/draft/2020-12/schema"}, "tool.draft")
        == []
    )


def test_what_is_slow_says_which_arguments_are_refused() -> None:
    large = {"type": "object", "properties": {"a": {**TEXT, "pattern": "^[a-z]{1,4096}$"}}}
    (finding,) = found(large, "tool.large_pattern")
    assert (finding.severity, "4882 characters" in finding.message) == ("warning", True)
    branch = {"type": "object", "properties": {"a": {"$ref": "#/$defs/t"}}}
    twice = {**CLOSED, "$defs": {"t": {"anyOf": [branch, branch]}}}
    twice["properties"] = {"a": {"$ref": "#/$defs/t"}}
    assert [f.severity for f in found(twice, "tool.deep_values")] == ["info"]
    tree = {**CLOSED, "properties": {"a": {"type": "array", "items": {"$ref": "#"}}}}
    assert found(tree, "tool.deep_values") == []


def test_parameters_without_description_and_wrapped_unions_are_named_as_for_typed_tools() -> None:
    (finding,) = found({"type": "object", "properties": {"a": {}}}, "tool.parameter_description")
    assert finding.path == "/properties/a"
    union = {"anyOf": [CLOSED, {**CLOSED, "required": ["a"]}]}
    assert len(found(union, "tool.wrapped")) == 1


def test_a_class_that_was_made_at_run_time_is_checked_like_any_other() -> None:
    filled = AppTools.with_dynamic_tools({AppTools.more: [declared(CLOSED)]})
    assert check_tools(filled).tools == ("read_file", "find")
    assert check_tools(AppTools).tools == ("read_file",)


def test_the_lock_takes_them_and_sees_a_change_Y9(tmp_path: Path) -> None:
    filled = AppTools.with_dynamic_tools({AppTools.more: [declared(CLOSED)]})
    locked = locked_toolset(filled)
    assert list(locked) == ["read_file", "find"]
    again = AppTools.with_dynamic_tools({AppTools.more: [declared(json.loads(json.dumps(CLOSED)))]})
    assert not drift(locked, again)
    changed = AppTools.with_dynamic_tools(
        {AppTools.more: [declared({**CLOSED, "required": ["a"]}), declared(CLOSED, "new")]}
    )
    difference = drift(locked, changed)
    assert (difference.added, difference.removed, list(difference.changed)) == (
        ("new",),
        (),
        ["find"],
    )
    assert drift(locked, AppTools).removed == ("find",)
    file = tmp_path / "lock.json"
    file.write_text(Lock({}).with_toolset("app", filled).text())
    read = Lock.read(file)
    assert read is not None
    assert not drift(read.toolsets["app"], filled)


@pytest.mark.parametrize("strict", [True, False, None])
def test_what_was_declared_by_a_stranger_never_breaks_the_doctor(strict: bool | None) -> None:
    schemas: list[dict[str, Any]] = [
        {},
        {"$ref": "#"},
        {"properties": {"a": True, "b": False}},
        {"patternProperties": {"^a": {"type": "string"}}},
        {"if": {"properties": {"a": {}}}, "then": {"required": ["b"]}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"$ref": "#"}}},
    ]
    tools = [declared(schema, f"t{index}") for index, schema in enumerate(schemas)]
    report = check_tools(Toolset.of("Strange", tools), strict=strict)
    assert len(report.tools) == len(schemas)
