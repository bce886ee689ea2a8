"""A conversation and its tools as another API spells them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lutumpy import Transcript
from lutumpy.apis import Api, serving
from lutumpy.cli.documents import Document
from lutumpy.rules.shape import ApiRules

__all__ = ["convert_tools", "tool_name", "transcript_of"]


def transcript_of(document: Document) -> Transcript:
    """The document's conversation.

    Raises:
        TranscriptError: It is not valid; the message says where.
    """
    if document.session is not None:
        return document.session.transcript
    messages = document.body.get(document.messages_key)
    return Transcript.from_messages(
        document.api,
        [] if messages is None else messages,
        document.system,
        server_held_prefix=True if document.server_held_prefix else None,
    )


def convert_tools(
    tools: Sequence[Any], source: Api, target: Api
) -> tuple[dict[str, Any], list[str]]:
    """The fields of a request of `target` with the function tools of `source`, and the names of the
    other tools, which have no counterpart.
    """
    if source == target:
        return _fields_of(list(tools), target), []
    reading: ApiRules = serving(source, "rules")
    writing: ApiRules = serving(target, "rules")
    # Where an API refuses names that others take, its adapter knows what is in their place.
    names = getattr(serving(target, "adapter"), "tool_names", None)
    # One that has a dialect of schemas of its own says them in JSON Schema.
    read_tool = getattr(reading, "read_tool_for_others", reading.read_tool)
    converted: list[Any] = []
    left_out: list[str] = []
    for tool in tools:
        declared = read_tool(tool)
        if declared is None:
            left_out.append(tool_name(tool, source))
        else:
            # A schema that is strict at one provider isn't at the other, so the tool goes without.
            if names is not None:
                declared = replace(declared, name=names(declared.name))
            converted.append(writing.write_tool(declared))
    return _fields_of(converted, target), left_out


def _fields_of(tools: list[Any], api: Api) -> dict[str, Any]:
    """The fields of a request with tools; none without tools."""
    write = getattr(serving(api, "rules"), "write_tools", None)
    if not tools:
        return {}
    fields: dict[str, Any] = {"tools": tools} if write is None else write(tools)
    return fields


def tool_name(tool: Any, api: Api) -> str:
    """The name of a declared tool; the type of one without a name, which is the provider's own."""
    rules: ApiRules = serving(api, "rules")
    declared = rules.read_tool(tool)
    if declared is not None:
        return declared.name
    name = tool.get("name") or tool.get("type") if isinstance(tool, Mapping) else None
    return name if isinstance(name, str) else "a tool without a name"
