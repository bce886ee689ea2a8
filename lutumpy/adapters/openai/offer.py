"""The offer's part of a request to OpenAI: `tools`, `tool_choice` and `parallel_tool_calls`."""

# A tool is rendered once for all offers that have it, and a list of tools once for each offer: the
# bytes are kept in `ToolSpec.rendered` and `ToolOffering.rendered`, by the API, by whether tools
# that leave it open are strict, and by whether text tools are sent as functions, as they are to
# hosts and models that don't know them. How each API spells a tool is passed in.
#
# An offer whose list of tools is to stay the same (`stable_specs`) is narrowed by the choice:
#
#   the offer                          `tools`          `tool_choice`
#   ---------------------------------  ---------------  --------------------------------------------
#   one tool is required               all of the list  that tool
#   some of the list is available      all of the list  `allowed_tools`, mode auto or required
#   nothing is available               all of the list  none
#   all of it is, or no stable list    the tools        left out, or required
#
# `available` says nothing about tools that the provider itself runs, which come by `extra` and
# are beside the list: they are among the allowed ones.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lutumpy.adapters.tool_lists import refuse_tools
from lutumpy.adapters.tool_settings import add_settings, settings_of
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.errors import DeclarationError, InvalidToolConstraints, Problem
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.openai.limits import MAX_NAME, MAX_TOOLS, NAME
from lutumpy.rules.openai.schema import check_parameters
from lutumpy.rules.schema_walk import with_items
from lutumpy.rules.strict import OPENAI_STRICT, strict_schema
from lutumpy.rules.tool_settings import ToolSettingRules

__all__ = [
    "TextShape",
    "ToolCheck",
    "ToolKind",
    "ToolRendering",
    "ToolShape",
    "offer_fields",
    "offer_key",
    "text_description",
    "tool_kind",
    "tool_list",
    "tools_beside",
]

ToolKind: TypeAlias = str
"""How a tool is sent: as a `"function"`, or as one of a text, which OpenAI calls `"custom"`; or by
a type of OpenAI's own."""

ToolShape = Callable[[ToolSpec, Mapping[str, Any], bool], dict[str, Any]]
"""Spells a tool as an API does: given its spec, the schema to send, and whether that is strict."""

TextShape = Callable[[ToolSpec], dict[str, Any]]
"""Spells a text tool as an API does that knows them."""

ChoiceShape = Callable[[str, ToolKind], dict[str, Any]]
"""Spells the choice of one tool, given its name and how it is sent."""

ToolCheck = Callable[[Mapping[str, Any]], "list[Problem]"]
"""The problems that an API's rules find in the tools of a body."""


def offer_fields(
    offer: ToolOffering | None,
    api: str,
    shape: ToolShape,
    check: ToolCheck,
    strict: bool | None,
    forced: ChoiceShape,
    text_shape: TextShape | None,
    settings: ToolSettingRules,
    allowed: Callable[[str, list[dict[str, Any]]], dict[str, Any]],
    beside: Sequence[dict[str, Any]] = (),
    declared: ToolOffering | None = None,
    brought: Sequence[str] = (),
) -> dict[str, bytes]:
    """The offer's part of a request, as ready JSON by field; empty when no tool is offered.

    Args:
        offer: The tools of this turn.
        api: The name of the API, for the cache of rendered tools.
        shape: Spells one tool.
        check: Checks a list of tools.
        strict: For tools that leave it open: `True` makes them strict where their schema has a
            strict form.
        forced: Spells the choice of one tool.
        text_shape: Spells one text tool; `None` sends them as functions.
        settings: What may be said of one tool beside its declaration.
        allowed: Spells the choice among some of the tools, given the mode (`auto` or `required`)
            and those tools, each spelled by `forced`.
        beside: Further tools of the request, which stay allowed, each spelled as by `forced`.
        declared: The tools to send in place of the offer's, where they are to stay the same.
        brought: The names of tools that the conversation itself has brought.

    Raises:
        InvalidToolConstraints: OpenAI would refuse the offer for a name, the number of tools, or
            the limits of a strict schema.
        DeclarationError: a tool asks to be strict, and its schema has no strict form.
    """
    if offer is None:
        return {}
    if declared is None and offer.is_unconstrained:
        # As most offers are: after the first request with one, this is all there is to do.
        known = offer.rendered.get(offer_key(api, strict, text_shape))
        if known is not None:
            return {"tools": known}
    if not offer.specs and offer.mode != "auto":
        raise InvalidToolConstraints("a tool call is required, but no tool is offered")
    source = offer if declared is None else declared
    sent = source.specs if source.stable_specs is None else source.stable_specs
    if not sent and not brought:
        return {}
    fields: dict[str, bytes] = {}
    if sent:
        key = offer_key(api, strict, text_shape)
        tools = source.rendered.get(key)
        if tools is None:
            one = ToolRendering(api, shape, text_shape, settings, bool(strict))
            tools = source.rendered[key] = _render_tools(source, key, one, check)
        fields["tools"] = tools
    is_narrowed = len(offer.specs) < len(sent)
    if declared is not None:
        offered = {spec.name for spec in offer.specs}
        is_narrowed = not offered.issuperset([*[spec.name for spec in sent], *brought])
    if offer.mode == "specific":
        required = next((spec for spec in offer.specs if spec.name == offer.forced), None)
        if required is None:
            raise InvalidToolConstraints(
                f"the required tool {offer.forced!r} is not among the tools offered"
            )
        fields["tool_choice"] = encode(forced(required.name, tool_kind(required, api, text_shape)))
    elif is_narrowed:
        chosen = [forced(spec.name, tool_kind(spec, api, text_shape)) for spec in offer.specs]
        available = [*chosen, *beside]
        choice = encode(allowed(offer.mode, available)) if available else b'"none"'
        fields["tool_choice"] = choice
    elif offer.mode == "required":
        fields["tool_choice"] = b'"required"'
    if not offer.parallel:
        fields["parallel_tool_calls"] = b"false"
    return fields


def offer_key(api: str, strict: bool | None, text_shape: TextShape | None) -> str:
    """Under which name the tools of an offer are kept."""
    key = f"{api}+strict" if strict else api
    return key if text_shape is not None else f"{key}+functions"


@dataclass(frozen=True, slots=True)
class ToolRendering:
    """How a tool is rendered, whichever it is.

    Attributes:
        api: Whose settings it gets.
        shape: Spells it.
        text_shape: Spells one that takes a text; `None` sends these as functions.
        settings: What the settings may hold.
        strict: Whether tools that leave it open are strict, where they can be.
    """

    api: str
    shape: ToolShape
    text_shape: TextShape | None
    settings: ToolSettingRules
    strict: bool

    def tool_bytes(self, spec: ToolSpec) -> bytes:
        """The tool as JSON bytes, rendered once."""
        key = offer_key(self.api, self.strict, self.text_shape)
        tool = spec.rendered.get(key)
        if tool is None:
            tool = spec.rendered[key] = encode(self.render(spec))
        return tool

    def render(self, spec: ToolSpec) -> dict[str, Any]:
        """The tool as the API gets it."""
        settings = settings_of(spec, self.api, self.settings)
        tool = _render_tool(spec, self.shape, self.text_shape, self.strict)
        return add_settings(tool, spec, settings, nameless=self.settings.nameless)


def tool_kind(spec: ToolSpec, api: str, text_shape: TextShape | None) -> ToolKind:
    """How a tool is sent; a choice names it the same way."""
    kind = spec.provider[api].get("type") if api in spec.provider else None
    if kind is not None:
        return str(kind)
    return "function" if spec.text is None or text_shape is None else "custom"


def _render_tools(offer: ToolOffering, key: str, one: ToolRendering, check: ToolCheck) -> bytes:
    specs = offer.specs if offer.stable_specs is None else offer.stable_specs
    _check_number(specs)
    rendered: list[bytes] = []
    for spec in specs:
        tool = spec.rendered.get(key)
        if tool is None:
            tool = spec.rendered[key] = encode(one.render(spec))
        rendered.append(tool)
    tools = b"[" + b",".join(rendered) + b"]"
    # The rules look at what is sent, so at the bytes and not at the specs they were made from.
    refuse_tools(check({"tools": json_values.decode(tools)}), "OpenAI")
    return tools


def tool_list(
    offer: ToolOffering,
    api: str,
    shape: ToolShape,
    check: ToolCheck,
    strict: bool | None,
    text_shape: TextShape | None,
    settings: ToolSettingRules,
) -> list[dict[str, Any]]:
    """The tools of an offer alone, as JSON values that hold the tools' own schemas.

    Raises as `offer_fields` does.
    """
    specs = offer.specs if offer.stable_specs is None else offer.stable_specs
    _check_number(specs)
    one = ToolRendering(api, shape, text_shape, settings, bool(strict))
    tools = [one.render(spec) for spec in specs]
    refuse_tools(check({"tools": tools}), "OpenAI")
    return tools


def tools_beside(extra: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tools that a request has beside those of its offer, as far as they are objects."""
    tools = extra.get("tools")
    listed = tools if isinstance(tools, (list, tuple)) else ()
    return [tool for tool in listed if isinstance(tool, Mapping)]


def _check_number(specs: Sequence[ToolSpec]) -> None:
    if len(specs) > MAX_TOOLS:
        raise InvalidToolConstraints(
            f"{len(specs)} tools are offered; OpenAI takes at most {MAX_TOOLS}"
        )


def _render_tool(
    spec: ToolSpec, shape: ToolShape, text_shape: TextShape | None, strict: bool
) -> dict[str, Any]:
    if len(spec.name) > MAX_NAME or NAME.fullmatch(spec.name) is None:
        raise InvalidToolConstraints(
            f"OpenAI refuses the tool name {spec.name!r}: letters, digits, _ and -, "
            f"at most {MAX_NAME}"
        )
    if spec.text is not None and text_shape is not None:
        return text_shape(spec)
    if strict if spec.strict is None else spec.strict:
        try:
            return shape(spec, _strict_parameters(spec), True)
        except (DeclarationError, InvalidToolConstraints):
            # Only a tool that asks for it itself must be strict; others are sent as they are.
            if spec.strict:
                raise
    return shape(spec, with_items(spec.schema), False)


def text_description(spec: ToolSpec) -> str:
    """The description of a text tool: it has no schema that could describe the text itself."""
    about = spec.text.description if spec.text is not None else ""
    return "\n\n".join([text for text in (spec.description, about) if text])


def _strict_parameters(spec: ToolSpec) -> dict[str, Any]:
    schema = strict_schema(spec.schema, OPENAI_STRICT)
    # The strict form says nothing about sizes; the rules do.
    for problem in check_parameters("openai", spec.name, schema, "parameters", strict=True):
        if problem.certainty == "refused":
            raise InvalidToolConstraints(
                f"OpenAI refuses {spec.name!r} as a strict tool: {problem.message}"
            )
    return schema
