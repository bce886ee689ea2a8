"""The offer's part of a request of generateContent: `tools` and `toolConfig`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.gemini.decode import API
from lutumpy.adapters.gemini.names import TOOL_NAMES
from lutumpy.adapters.tool_lists import listed_tools, refuse_tools
from lutumpy.adapters.tool_settings import settings_of
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.errors import InvalidToolConstraints
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.gemini.tool_settings import COMPUTER_USE, TOOL_SETTINGS
from lutumpy.rules.gemini.tools import check_tools

__all__ = ["calling_config", "tool_entry", "tool_list"]

_BOUND = b'{"%b"' % COMPUTER_USE.encode()


def tool_entry(offer: ToolOffering) -> bytes:
    """The entries of `tools` of an offer, without the brackets of the list: one has all functions,
    and one stands for those that the provider declares itself. Rendered once for each offer, and
    each function once for all offers. Empty where none is offered.

    Raises:
        InvalidToolConstraints: the API is known to refuse the offer.
    """
    entry = offer.rendered.get(API)
    if entry is None:
        specs = _sent_specs(offer)
        if not specs:
            return b""
        declared, bound = _split_bound(specs)
        entries = [encode(_bound_entry(bound))] if bound else []
        if declared:  # the last entry: a request's own functions are added to it
            entries.append(b'{"functionDeclarations":[%b]}' % b",".join(map(_render, declared)))
        entry = b",".join(entries)
        refuse_tools(
            check_tools(json_values.decode(b"[%b]" % entry)),
            "the Gemini API",
            ignore="gemini.tool_keys",
            own_names={TOOL_NAMES.of_offered(spec.name): spec.name for spec in specs},
        )
        offer.rendered[API] = entry
    return entry


def tool_list(offer: ToolOffering) -> list[dict[str, Any]]:
    """The `tools` of a request alone, as JSON values that hold the tools' own schemas. Raises as
    `tool_entry` does.
    """
    declared = listed_tools(offer, API, lambda: _make_list(offer))
    listed: list[dict[str, Any]] = [{"functionDeclarations": declared}] if declared else []
    if offer.rendered.get(API, b"").startswith(_BOUND):
        listed.insert(0, _bound_entry(_split_bound(_sent_specs(offer))[1]))
    return listed


def _make_list(offer: ToolOffering) -> list[dict[str, Any]]:
    if not tool_entry(offer):  # renders and checks them
        return []
    return [_declare(spec) for spec in _split_bound(_sent_specs(offer))[0]]


def _split_bound(
    specs: tuple[ToolSpec, ...],
) -> tuple[list[ToolSpec], list[Mapping[str, Any]]]:
    """The functions to declare, and the settings of those that the provider declares itself."""
    declared: list[ToolSpec] = []
    bound: list[Mapping[str, Any]] = []
    for spec in specs:
        settings = settings_of(spec, API, TOOL_SETTINGS) if spec.provider else {}
        if "type" in settings:
            bound.append(settings)
        else:
            declared.append(spec)
    return declared, bound


def _bound_entry(bound: list[Mapping[str, Any]]) -> dict[str, Any]:
    """The entry of the provider's tool whose functions these are, with what each of them says."""
    fields: dict[str, Any] = {"environment": "ENVIRONMENT_BROWSER"}
    common: dict[str, Any] = {}
    for settings in bound:
        for key, value in settings.items():
            if key != "type" and common.setdefault(key, value) != value:
                raise InvalidToolConstraints(
                    f"provider= of two tools of the type {COMPUTER_USE!r} says different things "
                    f"of {key!r}: {common[key]!r:.100} and {value!r:.100}"
                )
    return {COMPUTER_USE: {**fields, **common}}


def _sent_specs(offer: ToolOffering) -> tuple[ToolSpec, ...]:
    return offer.specs if offer.stable_specs is None else offer.stable_specs


def _declare(spec: ToolSpec) -> dict[str, Any]:
    declared: dict[str, Any] = {"name": TOOL_NAMES.of_offered(spec.name)}
    if spec.description:
        declared["description"] = spec.description
    # JSON Schema as it is: of the other dialect, `parameters`, keywords are refused.
    declared["parametersJsonSchema"] = spec.schema
    return {**declared, **settings_of(spec, API, TOOL_SETTINGS)}


def _render(spec: ToolSpec) -> bytes:
    data = spec.rendered.get(API)
    if data is None:
        data = spec.rendered[API] = encode(_declare(spec))
    return data


def calling_config(
    offer: ToolOffering, strict: bool, declared: ToolOffering | None = None
) -> dict[str, Any] | None:
    """The `functionCallingConfig` of a request, or `None` where leaving it out says the same.

    The API has no switch for parallel calls, so an offer that wants one call at most says nothing
    of it.

    Args:
        offer: The offer.
        strict: Hold calls to their schemas where tools leave it open: the mode VALIDATED, which is
            the API's nearest to strict tools.
        declared: The tools that the request has in place of the offer's, where they are to stay
            the same.

    Raises:
        InvalidToolConstraints: a call is required, and nothing is offered that could be called.
    """
    names = [spec.name for spec in offer.specs]
    listed = offer.specs if declared is None else declared.specs
    if declared is None and offer.stable_specs is not None:
        listed = offer.stable_specs
    narrowed = len(names) < len(listed)
    sent = [TOOL_NAMES.of_offered(name) for name in names] if narrowed else []
    if offer.mode == "specific":
        if offer.forced not in names:
            raise InvalidToolConstraints(
                f"the required tool {offer.forced!r} is not among the tools offered"
            )
        return {"mode": "ANY", "allowedFunctionNames": [TOOL_NAMES.of_offered(offer.forced)]}
    if offer.mode == "required":
        if not names:
            raise InvalidToolConstraints("a tool call is required, but no tool is offered")
        return {"mode": "ANY", **({"allowedFunctionNames": sent} if narrowed else {})}
    if narrowed:
        # With AUTO, names are refused; VALIDATED leaves the choice open as well.
        return {"mode": "VALIDATED", "allowedFunctionNames": sent} if names else {"mode": "NONE"}
    wants = any(spec.strict if spec.strict is not None else strict for spec in offer.specs)
    return {"mode": "VALIDATED"} if wants else None
