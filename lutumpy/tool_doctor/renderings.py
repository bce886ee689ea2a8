"""Tools as each API gets them: made by the adapters, one at a time, so that one bad tool hides no
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lutumpy import DeclarationError, InvalidToolConstraints, ToolDef
from lutumpy.apis import Api, serving
from lutumpy.models import ToolOffering, ToolSpec
from lutumpy.plain import json_values
from lutumpy.rules.shape import DeclaredTool

__all__ = ["Rendering", "list_bytes", "list_tokens", "read_declared", "render"]

# For an API that gives no figures of its own: about four bytes of JSON make a token.
_USUAL_TOKENS = (0.25, 0)


@dataclass(frozen=True, slots=True)
class Rendering:
    """One tool for one API.

    Attributes:
        tool: The tool object of the request; `None` when the adapter refuses to make one.
        strict: Whether it is sent as a strict one.
        refusal: Why the adapter refuses; empty when it doesn't.
    """

    tool: dict[str, Any] | None
    strict: bool
    refusal: str = ""


def render(definition: ToolDef, api: Api, *, strict: bool) -> Rendering:
    """The tool as the adapter of `api` sends it; `strict`: the adapter makes tools strict where it
    can.
    """
    spec = ToolSpec(
        definition.name,
        definition.description,
        definition.input_schema,
        definition.options.strict,
        definition.options.provider,
        definition.text,
    )
    try:
        # Not a whole request: what deferred tools need beside them isn't the tool's business.
        (tool,) = serving(api, "adapter").tools(ToolOffering((spec,)), strict=strict)
    except (DeclarationError, InvalidToolConstraints) as error:
        return Rendering(None, False, str(error))
    declared = read_declared(tool, api)
    return Rendering(tool, declared is not None and declared.strict is True)


def read_declared(tool: Mapping[str, Any], api: Api) -> DeclaredTool | None:
    """What the tool object of an API declares; `None` if its rules can't read it."""
    declared: DeclaredTool | None = serving(api, "rules").read_tool(tool)
    return declared


def list_bytes(tools: list[dict[str, Any]]) -> int:
    """Bytes of the JSON of a tool list."""
    return len(json_values.encode(tools))


def list_tokens(api: Api, size: int) -> int:
    """About how many tokens a tool list of so many bytes costs."""
    if size <= len("[]"):
        return 0
    rules = serving(api, "rules")
    per_byte, base = getattr(rules, "TOKENS_OF_TOOLS", _USUAL_TOKENS)
    return base + round(per_byte * size)
