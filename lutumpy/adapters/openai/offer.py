"""The tools of an offer as both OpenAI wires take them: names, strict schemas, tool choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lutumpy.core import json_values
from lutumpy.core.json_values import encode
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.errors import DeclarationError, InvalidToolConstraints, Problem
from lutumpy.rules.openai import schema as openai_schema
from lutumpy.rules.openai.limits import MAX_NAME, MAX_TOOLS, NAME
from lutumpy.rules.schema_walk import with_items
from lutumpy.rules.strict import OPENAI_STRICT, strict_schema

__all__ = [
    "ToolCheck",
    "ToolShape",
    "offer_fields",
    "refuse_tools",
    "tool_list",
]

ToolShape = Callable[[ToolSpec, Mapping[str, Any], bool], dict[str, Any]]
"""Makes a wire's tool object from a spec, its schema as it is sent, and whether that is strict."""

ToolCheck = Callable[[Mapping[str, Any]], "list[Problem]"]
"""What a wire's rules say of the tools in a body."""


def offer_fields(
    offer: ToolOffering | None,
    api: str,
    shape: ToolShape,
    check: ToolCheck,
    strict: bool | None,
    forced: Callable[[str], dict[str, Any]],
) -> dict[str, bytes]:
    """The offer's part of a request, ready JSON by field name; nothing at all when no tool is offered.

    Args:
        offer: The tools of this turn.
        api: The wire's name, for the cache of rendered tools.
        shape: How the wire spells a tool.
        check: What the wire says of a list of them.
        strict: What holds for tools that leave it open: `True` makes them strict where their schema allows that.
        forced: How the wire spells the choice of one tool.

    Raises:
        InvalidToolConstraints: OpenAI would refuse the offer: a name, the number of tools, a strict schema's limits.
        DeclarationError: a tool asks to be strict, and its schema has no strict form.
    """
    if offer is None or not offer.specs:
        if offer is not None and offer.mode != "auto":
            raise InvalidToolConstraints("a tool call is required, but no tool is offered")
        return {}
    key = f"{api}+strict" if strict else api
    tools = offer.rendered.get(key)
    if tools is None:
        tools = offer.rendered[key] = _render(offer, key, shape, check, bool(strict))
    fields = {"tools": tools}
    if offer.mode == "required":
        fields["tool_choice"] = b'"required"'
    elif offer.mode == "specific":
        name = offer.forced
        if name is None or all(spec.name != name for spec in offer.specs):
            raise InvalidToolConstraints(
                f"the required tool {name!r} is not among the tools offered"
            )
        fields["tool_choice"] = encode(forced(name))
    if not offer.parallel:
        fields["parallel_tool_calls"] = b"false"
    return fields


def _render(
    offer: ToolOffering, key: str, shape: ToolShape, check: ToolCheck, strict: bool
) -> bytes:
    _check_number(offer)
    rendered: list[bytes] = []
    for spec in offer.specs:
        made = spec.rendered.get(key)
        if made is None:
            made = spec.rendered[key] = encode(_tool(spec, shape, strict))
        rendered.append(made)
    tools = b"[" + b",".join(rendered) + b"]"
    refuse_tools(check({"tools": json_values.decode(tools)}))
    return tools


def tool_list(
    offer: ToolOffering, shape: ToolShape, check: ToolCheck, strict: bool | None
) -> list[dict[str, Any]]:
    """The tools of an offer alone, as JSON values that hold the tools' own schemas. Raises as `offer_fields` does."""
    _check_number(offer)
    tools = [_tool(spec, shape, bool(strict)) for spec in offer.specs]
    refuse_tools(check({"tools": tools}))
    return tools


def refuse_tools(problems: list[Problem]) -> None:
    """An offer that OpenAI is sure to refuse would spoil every request with it, so none is made."""
    sure = [problem for problem in problems if problem.certainty == "refused"]
    if sure:
        about = ", ".join(dict.fromkeys([name for problem in sure for name in problem.tools]))
        what = f"the tool {about}" if about else "the tools offered"
        reasons = "; ".join(dict.fromkeys([problem.message for problem in sure]))
        raise InvalidToolConstraints(f"OpenAI refuses {what}: {reasons}")


def _check_number(offer: ToolOffering) -> None:
    if len(offer.specs) > MAX_TOOLS:
        raise InvalidToolConstraints(
            f"{len(offer.specs)} tools are offered; OpenAI takes at most {MAX_TOOLS}"
        )


def _tool(spec: ToolSpec, shape: ToolShape, strict: bool) -> dict[str, Any]:
    if len(spec.name) > MAX_NAME or NAME.fullmatch(spec.name) is None:
        raise InvalidToolConstraints(
            f"OpenAI refuses the tool name {spec.name!r}: letters, digits, _ and -, at most {MAX_NAME}"
        )
    wanted = strict if spec.strict is None else spec.strict
    if wanted:
        try:
            return shape(spec, _strict(spec), True)
        except (DeclarationError, InvalidToolConstraints):
            if spec.strict:
                raise
    return shape(spec, with_items(spec.schema), False)


def _strict(spec: ToolSpec) -> dict[str, Any]:
    schema = strict_schema(spec.schema, OPENAI_STRICT)
    for problem in openai_schema.check_parameters(
        "openai", spec.name, schema, "parameters", strict=True
    ):
        if problem.certainty == "refused":
            raise InvalidToolConstraints(
                f"OpenAI refuses {spec.name!r} as a strict tool: {problem.message}"
            )
    return schema
