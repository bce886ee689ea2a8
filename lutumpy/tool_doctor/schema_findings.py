"""Findings about a tool that was declared by a JSON Schema: what it leaves open, what is slow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lutumpy.plain.pointer import pointer
from lutumpy.rules.schema_walk import walk
from lutumpy.tool_doctor.report import Finding
from lutumpy.tools.schema_tool import SchemaTool

__all__ = ["schema_findings"]

_READ_BY_PROVIDERS = "2020-12"


def schema_findings(name: str, source: SchemaTool) -> Iterator[Finding]:
    """The findings about the schema that validates, which is the declared one."""
    document: Any = source.schema.document
    draft = document.get("$schema")
    if isinstance(draft, str) and _READ_BY_PROVIDERS not in draft:
        message = (
            f"its schema is of the draft {draft!r}: arguments are checked by that, and providers "
            f"read {_READ_BY_PROVIDERS}"
        )
        yield Finding("info", "tool.draft", message, name, path="/$schema")
    for path, _, node in walk(document):
        if isinstance(node, Mapping) and _is_open(node):
            message = "'additionalProperties' is missing: arguments of unknown names are accepted"
            yield Finding("info", "tool.open_object", message, name, path=pointer(path))
    longest = source.schema.longest_text
    if longest is not None:
        message = (
            "it has a large regular expression: arguments with more than about "
            f"{longest} characters in all are refused"
        )
        yield Finding("warning", "tool.large_pattern", message, name)
    if source.schema.may_explode:
        message = (
            "its schema leads back to itself in more than one way, or is very large: arguments "
            "that would take too long to check, since they are nested deeply, are refused"
        )
        yield Finding("info", "tool.deep_values", message, name)


def _is_open(node: Mapping[str, Any]) -> bool:
    """Whether an object with named properties says nothing of others."""
    says = ("additionalProperties", "unevaluatedProperties", "patternProperties")
    return bool(node.get("properties")) and not any(key in node for key in says)
