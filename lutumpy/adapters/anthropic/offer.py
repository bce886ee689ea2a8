"""The offer's part of a request of the Anthropic Messages API: `tools` and `tool_choice`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy.adapters.anthropic.decode import API
from lutumpy.adapters.tool_lists import are_refused, listed_tools, refuse_tools
from lutumpy.adapters.tool_settings import add_settings, settings_of
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.errors import DeclarationError, InvalidToolConstraints
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.anthropic import models as anthropic_models
from lutumpy.rules.anthropic.limits import (
    MAX_NAME,
    MAX_OPTIONAL,
    MAX_STRICT_TOOLS,
    MAX_UNIONS,
    NAME,
    TOO_MANY_OPTIONAL_IN_ONE,
    TOO_MANY_UNIONS_IN_ONE,
)
from lutumpy.rules.anthropic.tool_features import check_choice_of_callers, is_programmatic
from lutumpy.rules.anthropic.tool_settings import TOOL_SETTINGS
from lutumpy.rules.anthropic.tools import check_tools
from lutumpy.rules.strict import ANTHROPIC_STRICT, strict_counts, strict_schema

__all__ = [
    "can_be_brought",
    "check_callers",
    "check_deferred",
    "check_forced",
    "declare_late",
    "own_breakpoints",
    "spell_tool",
    "tool_choice",
    "tool_list",
    "tools",
]

# Under which names the rendered bytes are kept: with a tool for all offers, with an offer for all
# requests. The counts of a strict schema are kept beside its bytes.
_PLAIN = API
_STRICT = f"{API}:strict"
_COUNTS = f"{API}:strict_counts"

# Keys come from `provider=` alone, and one that this library doesn't know may be newer than it.
_UNKNOWN_KEY = "anthropic.tool_keys"
_NOTHING: Mapping[str, Any] = {}


def tools(offering: ToolOffering, strict: bool) -> bytes:
    """The `tools` of a request; rendered once for each offer, and each tool once for all offers.

    Raises:
        InvalidToolConstraints: a name that the API refuses, or more strict tools, optional or union
            parameters among them than one request may have.
        DeclarationError: a tool asks for strict, and its schema has no strict form.
    """
    key = _STRICT if strict else _PLAIN
    tools = offering.rendered.get(key)
    if tools is None:
        specs = _declared_specs(offering)
        names = [spec.name for spec in specs]
        for name in names:
            if NAME.fullmatch(name) is None:
                raise InvalidToolConstraints(
                    f"the Messages API takes tool names of 1 to {MAX_NAME} of a-z A-Z 0-9 _ -, not "
                    f"{name!r}"
                )
            if names.count(name) > 1:
                raise InvalidToolConstraints(
                    f"two tools of the offer are named {name!r}; the Messages API wants unique "
                    "names"
                )
        deferred = len(offering.deferred)
        rendered = [
            _render_tool(spec, strict and index >= deferred) for index, spec in enumerate(specs)
        ]
        _check_strict_limits(
            [spec for spec, data in zip(specs, rendered, strict=True) if _is_strict(spec, data)]
        )
        rendered[:deferred] = [_defer(tool) for tool in rendered[:deferred]]
        tools = b"[" + b",".join(rendered) + b"]"
        problems = check_tools(json_values.decode(tools))
        refuse_tools(problems, "the Messages API", ignore=_UNKNOWN_KEY)
        offering.rendered[key] = tools
    return tools


def tool_list(offering: ToolOffering, strict: bool) -> list[dict[str, Any]]:
    """The tools of an offer alone, as JSON values that hold the tools' own schemas. Raises as
    `tools` does.
    """
    return listed_tools(
        offering, _STRICT if strict else _PLAIN, lambda: _make_list(offering, strict)
    )


def _make_list(offering: ToolOffering, strict: bool) -> list[dict[str, Any]]:
    tools(offering, strict)
    shown: list[dict[str, Any]] = []
    deferred = len(offering.deferred)
    for index, spec in enumerate(_declared_specs(offering)):
        data = _render_tool(spec, strict and index >= deferred)
        if _is_strict(spec, data):
            tool = json_values.decode(data)
        else:
            tool = _make_tool(spec, spec.schema, strict=False)
        shown.append({**tool, "defer_loading": True} if index < deferred else tool)
    return shown


def _declared_specs(offering: ToolOffering) -> list[ToolSpec]:
    """The tools of a request: first those that are deferred, then the others.

    What a search has found stays deferred, so the list is the same in every request. Only tools
    that aren't may have a breakpoint of the prompt cache, which is at the end.
    """
    deferred = {spec.name for spec in offering.deferred}
    return [*offering.deferred, *[spec for spec in offering.specs if spec.name not in deferred]]


def _defer(tool: bytes) -> bytes:
    """A rendered tool, deferred."""
    if b'"defer_loading"' in tool:
        return encode({**json_values.decode(tool), "defer_loading": True})
    return tool[:-1] + b',"defer_loading":true}'


def check_deferred(offering: ToolOffering, beside: Any) -> None:
    """Refuse an offer in which every tool is deferred, with nothing beside it to find them (C9).

    Args:
        offering: The offer.
        beside: The tools that the request has besides, as the user gives them.

    Raises:
        InvalidToolConstraints: Every tool of the request is deferred.
    """
    for spec in offering.specs:
        if spec.provider.get(API, _NOTHING).get("defer_loading") is not True:
            return
    further = beside if isinstance(beside, (list, tuple)) else ()
    if all(isinstance(tool, Mapping) and tool.get("defer_loading") is True for tool in further):
        names = ", ".join([spec.name for spec in offering.specs])
        raise InvalidToolConstraints(
            f"every tool of the request is deferred ({names}): the Messages API wants one that is "
            "not, such as a tool search in extra={'tools': [...]}; nothing was sent"
        )


def _render_tool(spec: ToolSpec, strict: bool) -> bytes:
    settings = settings_of(spec, API, TOOL_SETTINGS)
    # A tool of the vendor's type has no schema of ours. One that code may call is never strict,
    # and says so itself where it asks to be.
    may_be_strict = "type" not in settings and (spec.strict or not is_programmatic(settings))
    if may_be_strict and (spec.strict or (spec.strict is None and strict)):
        data = spec.rendered.get(_STRICT)
        if data is None or (spec.strict and not data):
            try:
                schema = strict_schema(spec.schema, ANTHROPIC_STRICT)
            except DeclarationError:
                if spec.strict:
                    raise
                data = b""  # no strict form: asked only to have it where possible
            else:
                optional, unions = strict_counts(schema)
                if spec.strict is None and (
                    optional >= TOO_MANY_OPTIONAL_IN_ONE or unions >= TOO_MANY_UNIONS_IN_ONE
                ):
                    # "Schema is too complex for compilation", whatever the others are.
                    data = b""
                else:
                    data = _encode_tool(spec, schema, strict=True)
                spec.rendered[_COUNTS] = encode((optional, unions))
            spec.rendered[_STRICT] = data
        if data:
            return data
    data = spec.rendered.get(_PLAIN)
    if data is None:
        data = spec.rendered[_PLAIN] = _encode_tool(spec, spec.schema, strict=False)
    return data


def spell_tool(spec: ToolSpec) -> dict[str, Any]:
    """A tool as an entry of `tools`, strict if it asks for that, as JSON values."""
    tool: dict[str, Any] = json_values.decode(_render_tool(spec, False))
    return tool


def can_be_brought(spec: ToolSpec, *, deferred: bool) -> bool:
    """Whether a message may bring a tool: by its definition, or by a deferred entry of `tools`.

    What the API refuses goes into the list of a conversation that begins anew, where an error says
    so. A breakpoint of the prompt cache goes with none that is deferred.
    """
    tool = spell_tool(spec)
    if deferred:
        tool["defer_loading"] = True
    return not are_refused(check_tools([tool]), ignore=_UNKNOWN_KEY)


def declare_late(specs: Sequence[ToolSpec]) -> list[bytes]:
    """Tools that a message refers to, as deferred entries of `tools`."""
    return [_defer(_render_tool(spec, False)) for spec in specs]


def _make_tool(spec: ToolSpec, schema: Mapping[str, Any], *, strict: bool) -> dict[str, Any]:
    tool: dict[str, Any] = {
        "name": spec.name,
        "description": spec.description,
        "input_schema": schema,
    }
    if strict:
        tool["strict"] = True
    return add_settings(tool, spec, settings_of(spec, API, TOOL_SETTINGS))


def _encode_tool(spec: ToolSpec, schema: Mapping[str, Any], *, strict: bool) -> bytes:
    return encode(_make_tool(spec, schema, strict=strict))


def _is_strict(spec: ToolSpec, rendered: bytes) -> bool:
    # The very object: a tool without a strict form has other bytes under another key.
    return rendered is spec.rendered.get(_STRICT)


def _check_strict_limits(specs: list[ToolSpec]) -> None:
    counts = [json_values.decode(spec.rendered[_COUNTS]) for spec in specs]
    totals = (
        ("strict tools", [1] * len(specs), MAX_STRICT_TOOLS),
        ("optional parameters in strict tools", [count[0] for count in counts], MAX_OPTIONAL),
        ("union parameters in strict tools", [count[1] for count in counts], MAX_UNIONS),
    )
    problems = [
        f"{sum(numbers)} {what}, {limit} at most"
        f" ({', '.join([s.name for s, number in zip(specs, numbers, strict=True) if number])})"
        for what, numbers, limit in totals
        if sum(numbers) > limit
    ]
    if problems:
        raise InvalidToolConstraints(
            f"the Messages API refuses this offer: {'; '.join(problems)}. Offer fewer tools, or "
            "make some of them strict=False"
        )


def tool_choice(offering: ToolOffering) -> dict[str, Any] | None:
    """The `tool_choice` of a request, or `None` where leaving it out says the same."""
    choice: dict[str, Any]
    if offering.mode == "required":
        choice = {"type": "any"}
    elif offering.mode == "specific":
        choice = {"type": "tool", "name": offering.forced}
    elif offering.parallel:
        return None
    else:
        choice = {"type": "auto"}
    if not offering.parallel:
        choice["disable_parallel_tool_use"] = True
    return choice


def check_forced(offering: ToolOffering, model: str | None, extra: Mapping[str, Any]) -> None:
    """Refuse what is known to be refused (rule C9).

    Raises:
        InvalidToolConstraints: the model takes no forced choice, or thinking has a budget, which
            forbids one.
    """
    if offering.mode == "auto":
        return
    wanted = f"calling {offering.forced!r}" if offering.mode == "specific" else "calling a tool"
    if anthropic_models.forced_choice_refusal(model) is not None:
        raise InvalidToolConstraints(
            f"{wanted} can't be required of {model}: the model refuses a forced tool choice; ask "
            "for it in the prompt"
        )
    thinking = extra.get("thinking")
    if isinstance(thinking, Mapping) and thinking.get("type") == "enabled":
        raise InvalidToolConstraints(
            f"{wanted} can't be required while thinking is enabled with a budget: "
            "the Messages API refuses the two together; use adaptive thinking, or require nothing"
        )


def check_callers(offering: ToolOffering, choice: Mapping[str, Any], beside: Any) -> None:
    """Refuse a choice that tools which code may call don't go with (rule C9).

    Args:
        offering: The offer.
        choice: The `tool_choice` of the request.
        beside: The tools that the request has besides, as the user gives them.

    Raises:
        InvalidToolConstraints: It forces a tool that only code may call, or forbids parallel calls.
    """
    tools: list[Any] = list(beside) if isinstance(beside, (list, tuple)) else []
    tools += [
        {**spec.provider[API], "name": spec.name} for spec in offering.specs if API in spec.provider
    ]
    if tools:
        refuse_tools(check_choice_of_callers(choice, tools), "the Messages API")


def own_breakpoints(offering: ToolOffering | None) -> list[Any]:
    """What the tools of an offer hold of the user's own breakpoints of the prompt cache."""
    specs = () if offering is None else offering.specs
    return [spec.provider[API] for spec in specs if API in spec.provider]
