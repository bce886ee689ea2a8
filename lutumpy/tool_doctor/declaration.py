"""Findings about a tool that concern no provider: what its developer left out, or wrote in vain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from lutumpy import ToolDef
from lutumpy.plain.pointer import pointer
from lutumpy.rules.schema_walk import resolve, walk
from lutumpy.tool_doctor.report import Finding
from lutumpy.tool_doctor.schema_findings import schema_findings
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.docstrings import read_docstring
from lutumpy.tools.schema_tool import SchemaTool

__all__ = ["declaration_findings"]


def declaration_findings(definition: ToolDef, source: CompiledTool | None) -> Iterator[Finding]:
    """The findings about one tool; `source` is what the decorator worked out, where the tool was
    declared here.
    """
    name = definition.name
    if not definition.description.strip():
        yield Finding(
            "warning",
            "tool.description",
            "it has no description: models choose tools by theirs",
            name,
        )
    is_typed = source is not None and not source.is_dynamic
    for problem in _read_docstring_problems(source) if source is not None and is_typed else ():
        yield Finding("warning", "tool.docstring", f"its docstring {problem}", name)
    wrapped = source is not None and source.wrapped
    schema = definition.input_schema
    for path, _, node in walk(schema):
        if len(path) < 2 or path[-2] != "properties" or _is_inside_names(path):
            continue
        if not _is_described(node, schema) and not (wrapped and path == ("properties", "input")):
            message = f"the parameter {path[-1]!r} has no description"
            yield Finding(
                "warning", "tool.parameter_description", message, name, path=pointer(path)
            )
    if wrapped:
        message = (
            "its input is a union; it is offered as an object whose one property 'input' holds it"
        )
        yield Finding("info", "tool.wrapped", message, name)
    if source is not None and is_typed and not wrapped and not source.is_text:
        yield from _find_lost_defaults(definition, source)
    if isinstance(source, SchemaTool):
        yield from schema_findings(name, source)


def _is_inside_names(path: tuple[str, ...]) -> bool:
    """Whether the last `properties` is itself the name of a property: `properties/properties`."""
    # Keywords and names alternate along a path, so an odd run of "properties" ends in a keyword.
    names = 0
    for part in reversed(path[:-1]):
        if part != "properties":
            break
        names += 1
    return names % 2 == 0


def _is_described(node: Any, root: Mapping[str, Any], depth: int = 0) -> bool:
    if not isinstance(node, Mapping) or depth > 20:
        return False
    if node.get("description"):
        return True
    reference = node.get("$ref")
    if isinstance(reference, str):
        return _is_described(resolve(root, reference), root, depth + 1)
    branches = [branch for key in ("anyOf", "oneOf", "allOf") for branch in node.get(key, ())]
    # The null of an optional parameter needs no description of its own.
    meaningful = [
        branch
        for branch in branches
        if not (isinstance(branch, Mapping) and branch.get("type") == "null")
    ]
    return bool(meaningful) and all(_is_described(branch, root, depth + 1) for branch in meaningful)


def _read_docstring_problems(source: CompiledTool) -> tuple[str, ...]:
    """What the decorator warned of when it ran (rule D3), found again."""
    if source.function is not None:
        return read_docstring(
            source.function.__doc__, source.keyword_names.values(), source.skipped
        ).problems
    cls = source.input_type
    others = [name for name in dir(cls) if not hasattr(BaseModel, name)]
    names = [*cls.model_fields, *source.definition.input_schema["properties"]]
    return read_docstring(vars(cls).get("__doc__"), names, others).problems


def _find_lost_defaults(definition: ToolDef, source: CompiledTool) -> Iterator[Finding]:
    properties = definition.input_schema["properties"]
    for name, field in source.input_type.model_fields.items():
        key = next(
            (key for key in (field.validation_alias, field.alias, name) if key in properties), None
        )
        if key is None or field.default is PydanticUndefined or field.default is None:
            continue
        if "default" not in properties[key]:
            message = (
                f"the default of {key!r} can't be written as JSON: the model is not told of it"
            )
            yield Finding(
                "info",
                "tool.default",
                message,
                definition.name,
                path=pointer(("properties", str(key))),
            )
