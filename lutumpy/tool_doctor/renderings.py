"""Tools as each API gets them: made by the adapters, one at a time, so that one bad tool hides no other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lutumpy import DeclarationError, InvalidToolConstraints, ToolDef, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.core import json_values
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.tool_doctor.report import Api

__all__ = ["Rendering", "list_bytes", "list_tokens", "render", "schema_of"]

_ADAPTERS: Mapping[Api, type[OpenAIChat] | type[OpenAIResponses] | type[AnthropicMessages]] = {
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "anthropic_messages": AnthropicMessages,
}

# Tokens of input that a tool list costs, for each byte of its JSON and at all. Fitted to the usage of 330 recorded answers:
# OpenAI shows its models a shorter spelling than the JSON, Anthropic adds instructions of its own as soon as there are tools.
_TOKENS: Mapping[Api, tuple[float, int]] = {
    "openai_chat": (0.15, 10),
    "openai_responses": (0.15, 10),
    "anthropic_messages": (0.25, 450),
}


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
    """The tool as the adapter of `api` sends it; `strict`: the adapter makes tools strict where it can."""
    spec = ToolSpec(
        definition.name, definition.description, definition.input_schema, definition.options.strict
    )
    transcript = Transcript()
    transcript.push_user("?")  # a request without a question can't be made
    try:
        body = _ADAPTERS[api].request(transcript, ToolOffering((spec,)), strict=strict)
    except (DeclarationError, InvalidToolConstraints) as error:
        return Rendering(None, False, str(error))
    (tool,) = body["tools"]
    return Rendering(
        tool, (tool["function"] if api == "openai_chat" else tool).get("strict") is True
    )


def schema_of(tool: Mapping[str, Any], api: Api) -> Mapping[str, Any]:
    """The input schema in the tool object of an API."""
    if api == "anthropic_messages":
        schema: Mapping[str, Any] = tool["input_schema"]
    else:
        schema = (tool["function"] if api == "openai_chat" else tool)["parameters"]
    return schema


def list_bytes(tools: list[dict[str, Any]]) -> int:
    """Bytes of the JSON of a tool list."""
    return len(json_values.encode(tools))


def list_tokens(api: Api, size: int) -> int:
    """About how many tokens a tool list of so many bytes costs."""
    if size <= len("[]"):
        return 0
    per_byte, base = _TOKENS[api]
    return base + round(per_byte * size)
