"""Tools as each API gets them: made by the adapters, one at a time, so that one bad tool hides no
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lutumpy import DeclarationError, InvalidToolConstraints, ToolDef, Transcript
from lutumpy.apis import Api, serving
from lutumpy.models import ToolOffering, ToolSpec
from lutumpy.plain import json_values
from lutumpy.rules.shape import DeclaredTool

__all__ = ["Rendering", "list_bytes", "list_tokens", "offer_tokens", "read_declared", "render"]

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


def list_bytes(tools: list[dict[str, Any]], api: Api) -> int:
    """Bytes of the JSON of a tool list, as a request of an API has it."""
    write = getattr(serving(api, "rules"), "write_tools", None)
    if write is None or not tools:
        return len(json_values.encode(tools))
    return sum([len(json_values.encode(value)) for value in write(tools).values()])


def offer_tokens(offer: ToolOffering, api: Api) -> int:
    """About how many tokens of a prompt the tools of an offer are.

    What the API keeps out of the prompt until a search has found it isn't counted. Whether it does
    so is what the offer says: `offer.deferring()` is the one for an API that can.

    Args:
        offer: The tools of a turn.
        api: The name of an API.

    Raises:
        InvalidToolConstraints: The API refuses one of the tools. More tools than it takes in one
            request are counted all the same.
        DeclarationError: A tool asks to be strict, and its schema has no strict form.
    """
    offers = [offer]
    if not offer.deferred:
        offers = [ToolOffering((spec,)) for spec in offer.specs]
    transcript = Transcript()
    transcript.push_user("?")  # a request without a question can't be made
    adapter = serving(api, "adapter")
    bodies = [adapter.request(transcript, each) for each in offers]
    tools_of = getattr(serving(api, "rules"), "tools_of", lambda body: body["tools"])
    tools = [tool for body in bodies for tool in tools_of(body)]
    loaded = [tool for tool in tools if tool.get("defer_loading") is not True]
    return list_tokens(api, list_bytes(loaded, api))


def list_tokens(api: Api, size: int) -> int:
    """About how many tokens a tool list of so many bytes costs."""
    if size <= len("[]"):
        return 0
    rules = serving(api, "rules")
    per_byte, base = getattr(rules, "TOKENS_OF_TOOLS", _USUAL_TOKENS)
    return base + round(per_byte * size)
