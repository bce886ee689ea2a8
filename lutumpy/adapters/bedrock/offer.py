"""The offer's part of a request of Converse: the tools of `toolConfig`, and its choice."""

from __future__ import annotations

from typing import Any

from lutumpy.adapters.bedrock.decode import API
from lutumpy.adapters.tool_lists import listed_tools, refuse_tools
from lutumpy.adapters.tool_settings import settings_of
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.errors import DeclarationError, InvalidToolConstraints
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.bedrock.tool_settings import TOOL_SETTINGS
from lutumpy.rules.bedrock.tools import check_tools
from lutumpy.rules.strict import ANTHROPIC_STRICT, strict_schema

__all__ = ["PLACEHOLDER", "tool_choice", "tool_list", "tools"]

PLACEHOLDER: dict[str, Any] = {
    "toolSpec": {
        "name": "no_tools",
        "description": "There are no tools now. Do not call this; answer in words.",
        "inputSchema": {"json": {"type": "object", "properties": {}}},
    }
}
"""Stands in a request that offers no tools while its history has calls: "The toolConfig field must
be defined when using toolUse and toolResult content blocks."
"""

_PLAIN = API
_STRICT = f"{API}:strict"


def tools(offer: ToolOffering, strict: bool) -> bytes:
    """The tools of a request, as a JSON array; rendered once for each offer, and each tool once for
    all offers.

    Raises:
        InvalidToolConstraints: the API is known to refuse the offer.
        DeclarationError: a tool asks for strict, and its schema has no strict form.
    """
    key = _STRICT if strict else _PLAIN
    data = offer.rendered.get(key)
    if data is None:
        data = b"[" + b",".join([_render(spec, strict) for spec in offer.specs]) + b"]"
        problems = check_tools(json_values.decode(data) or None)
        refuse_tools(problems, "Converse", ignore="converse.tool_keys")
        offer.rendered[key] = data
    return data


def tool_list(offer: ToolOffering, strict: bool) -> list[dict[str, Any]]:
    """The tools of a request alone, as JSON values. Raises as `tools` does."""

    def make() -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json_values.decode(tools(offer, strict))
        return listed

    return listed_tools(offer, _STRICT if strict else _PLAIN, make, _copy_tools)


def _copy_tools(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"toolSpec": {**tool["toolSpec"]}} for tool in tools]


def _render(spec: ToolSpec, strict: bool) -> bytes:
    if spec.strict or (spec.strict is None and strict):
        data = spec.rendered.get(_STRICT)
        if data is None or (spec.strict and not data):
            try:
                schema = strict_schema(spec.schema, ANTHROPIC_STRICT)
            except DeclarationError:
                if spec.strict:
                    raise
                data = b""  # no strict form: asked only to have it where possible
            else:
                data = encode(_make(spec, schema, strict=True))
            spec.rendered[_STRICT] = data
        if data:
            return data
    data = spec.rendered.get(_PLAIN)
    if data is None:
        data = spec.rendered[_PLAIN] = encode(_make(spec, spec.schema, strict=False))
    return data


def _make(spec: ToolSpec, schema: Any, *, strict: bool) -> dict[str, Any]:
    tool_spec: dict[str, Any] = {"name": spec.name}
    # One that is empty is refused.
    if spec.description:
        tool_spec["description"] = spec.description
    tool_spec["inputSchema"] = {"json": schema}
    if strict:
        tool_spec["strict"] = True
    return {"toolSpec": {**tool_spec, **settings_of(spec, API, TOOL_SETTINGS)}}


def tool_choice(offer: ToolOffering) -> dict[str, Any] | None:
    """The `toolChoice` of a request, or `None` where leaving it out says the same.

    The API has no switch for parallel calls, so an offer that wants one call at most says nothing
    of it.

    Raises:
        InvalidToolConstraints: a call is required, and nothing is offered that could be called.
    """
    names = [spec.name for spec in offer.specs]
    if offer.mode == "specific":
        if offer.forced not in names:
            raise InvalidToolConstraints(
                f"the required tool {offer.forced!r} is not among the tools offered"
            )
        return {"tool": {"name": offer.forced}}
    if offer.mode == "required":
        if not names:
            raise InvalidToolConstraints("a tool call is required, but no tool is offered")
        return {"any": {}}
    return None
