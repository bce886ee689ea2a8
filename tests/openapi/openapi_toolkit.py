"""Documents of one operation, and what becomes of calls of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lutumpy import (
    DynamicTool,
    InvalidArgumentsError,
    ToolMetadata,
    Toolset,
)
from lutumpy.openapi import OperationRequest, tools

FIXTURES = Path(__file__).parent.parent / "fixtures"
GITHUB: dict[str, Any] = json.loads((FIXTURES / "openapi_github.json").read_text())


def document(paths: Mapping[str, Any], version: str = "3.1.0", **more: Any) -> dict[str, Any]:
    """A document with these paths."""
    return {"openapi": version, "info": {"title": "A", "version": "1"}, "paths": paths, **more}


def operation(
    definition: Mapping[str, Any],
    *,
    path: str = "/it",
    method: str = "post",
    version: str = "3.1.0",
    components: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A document with this operation."""
    more = {"components": components} if components else {}
    return document({path: {method: {"operationId": "it", **definition}}}, version, **more)


def of_parameter(
    parameter: Mapping[str, Any], *, path: str = "/it", version: str = "3.1.0"
) -> dict[str, Any]:
    """A document with an operation of this one parameter."""
    return operation({"parameters": [parameter]}, path=path, method="get", version=version)


def of_body(
    schema: Any,
    *,
    media_type: str = "application/json",
    version: str = "3.1.0",
    schemas: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A document with an operation that takes this body."""
    body = {"required": True, "content": {media_type: {"schema": schema, **more}}}
    components = {"schemas": schemas} if schemas else None
    return operation({"requestBody": body}, version=version, components=components)


class Sent:
    """Keeps what is sent."""

    def __init__(self, answer: Any = None) -> None:
        self.requests: list[OperationRequest] = []
        self.answer = answer

    def __call__(self, request: OperationRequest) -> Any:
        self.requests.append(request)
        return self.answer


def only_tool(source: Mapping[str, Any], **options: Any) -> DynamicTool:
    """The one tool of a document."""
    found = tools(source, **{"call": Sent(), **options})
    assert found.skipped == {}
    (tool,) = found
    return tool


def why_skipped(source: Mapping[str, Any]) -> str:
    """Why the one operation of a document is skipped."""
    found = tools(source, call=Sent())
    assert len(found) == 0
    (why,) = found.skipped.values()
    return why


def request_of(source: Mapping[str, Any], arguments: Any, **options: Any) -> OperationRequest:
    """What is sent for a call of the one tool of a document."""
    sent = Sent()
    parse(only_tool(source, call=sent, **options), arguments).call_sync()
    (request,) = sent.requests
    return request


def parse(tool: DynamicTool, arguments: Any) -> Any:
    """A call of a tool."""
    text = json.dumps(arguments)
    return Toolset.of("One", [tool]).parse(ToolMetadata("c1", tool.name, text))


def refusal(tool: DynamicTool, arguments: Any) -> str:
    """Why a call's arguments are refused; empty where they aren't."""
    try:
        parse(tool, arguments)
    except InvalidArgumentsError as error:
        return error.detail
    return ""
