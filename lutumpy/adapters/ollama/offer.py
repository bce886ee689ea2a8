"""The offer's part of a request of `/api/chat`: `tools`. There is no choice among them."""

from __future__ import annotations

from typing import Any

from lutumpy.adapters.ollama.decode import API
from lutumpy.adapters.tool_lists import copy_nested_tools, listed_tools, refuse_tools
from lutumpy.adapters.tool_settings import settings_of
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.errors import InvalidToolConstraints
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.ollama.tool_settings import TOOL_SETTINGS
from lutumpy.rules.ollama.tools import check_tools
from lutumpy.rules.written_out import written_out

__all__ = ["check_choice", "tool_array", "tool_list"]


def tool_array(offer: ToolOffering) -> bytes:
    """The JSON array of the tools of an offer; rendered once for each offer, and each tool once for
    all offers. Empty where none is offered.

    Raises:
        InvalidToolConstraints: the API is known to refuse the offer.
    """
    data = offer.rendered.get(API)
    if data is None:
        if not offer.specs:
            return b""
        data = b"[%b]" % b",".join([_render(spec) for spec in offer.specs])
        refuse_tools(check_tools(json_values.decode(data)), "Ollama")
        offer.rendered[API] = data
    return data


def tool_list(offer: ToolOffering) -> list[dict[str, Any]]:
    """The `tools` of a request alone, as JSON values that hold the tools' own schemas. Raises as
    `tool_array` does.
    """
    return listed_tools(offer, API, lambda: _make_list(offer), copy_nested_tools)


def _make_list(offer: ToolOffering) -> list[dict[str, Any]]:
    tool_array(offer)  # renders and checks them
    return [_declare(spec) for spec in offer.specs]


def check_choice(offer: ToolOffering) -> None:
    """Refuse an offer that requires a call: the API has no way to say so, and a requirement that is
    silently dropped would be broken unseen.

    Raises:
        InvalidToolConstraints: a call is required.
    """
    if offer.mode != "auto":
        raise InvalidToolConstraints(
            "Ollama's API has no tool choice, so no call can be required; leave the requirement "
            "out and offer fewer tools, or ask for a typed answer with structured_turn"
        )


def _declare(spec: ToolSpec) -> dict[str, Any]:
    function: dict[str, Any] = {"name": spec.name, "parameters": written_out(spec.schema)}
    if spec.description:
        function["description"] = spec.description
    return {
        "type": "function",
        "function": {**function, **settings_of(spec, API, TOOL_SETTINGS)},
    }


def _render(spec: ToolSpec) -> bytes:
    data = spec.rendered.get(API)
    if data is None:
        data = spec.rendered[API] = encode(_declare(spec))
    return data
