"""A conversation and its tools as another API spells them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy import Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.apis import Api
from lutumpy.cli.documents import Document

__all__ = ["body_of", "converted_tools", "transcript_of"]

# Beside the conversation, what a request may have that isn't lost: it is converted, or means nothing elsewhere.
CARRIED = frozenset({"messages", "input", "system", "instructions", "tools"})


def transcript_of(document: Document) -> Transcript:
    """The document's conversation.

    Raises:
        TranscriptError: It is not valid; the message says where.
    """
    if document.session is not None:
        return document.session.transcript
    messages = document.body.get(document.messages_key)
    return Transcript.from_messages(
        document.api,
        [] if messages is None else messages,
        document.system,
        server_held_prefix=True if document.server_held_prefix else None,
    )


def body_of(api: Api, transcript: Transcript) -> dict[str, Any]:
    """The conversation's part of a request of `api`: `messages` or `input`, with the system text where it stands."""
    if api == "openai_chat":
        return {"messages": OpenAIChat.messages(transcript)}
    if api == "openai_responses":
        body: dict[str, Any] = {"input": OpenAIResponses.messages(transcript)}
        instructions = OpenAIResponses.system(transcript)
        return body if instructions is None else {"instructions": instructions, **body}
    body = {"messages": AnthropicMessages.messages(transcript)}
    system = AnthropicMessages.system(transcript)
    return body if system is None else {"system": system, **body}


def converted_tools(tools: Sequence[Any], source: Api, target: Api) -> tuple[list[Any], list[str]]:
    """The function tools of `source` as `target` spells them, and the names of the others, which have no counterpart."""
    if source == target:
        return list(tools), []
    made: list[Any] = []
    left_out: list[str] = []
    for tool in tools:
        parts = _function(tool, source)
        if parts is None:
            name = tool.get("name") or tool.get("type") if isinstance(tool, Mapping) else None
            left_out.append(name if isinstance(name, str) else "a tool without a name")
        else:
            made.append(_spelled(parts, target))
    return made, left_out


def _function(tool: Any, source: Api) -> dict[str, Any] | None:
    """Name, description, schema and `strict` of a function tool; `None` for any other."""
    if not isinstance(tool, Mapping):
        return None
    kind = tool.get("type", "custom" if source == "anthropic_messages" else None)
    if kind != ("custom" if source == "anthropic_messages" else "function"):
        return None
    body = tool.get("function") if source == "openai_chat" else tool
    if not isinstance(body, Mapping) or not isinstance(body.get("name"), str):
        return None
    schema = body.get("input_schema" if source == "anthropic_messages" else "parameters")
    return {
        "name": body["name"],
        "description": body.get("description"),
        "schema": schema if isinstance(schema, Mapping) else {"type": "object", "properties": {}},
        "strict": body.get("strict"),
    }


def _spelled(parts: Mapping[str, Any], target: Api) -> dict[str, Any]:
    # A strict schema of one provider is no strict schema of the other: across them the tool goes without.
    tool: dict[str, Any] = {"name": parts["name"]}
    if parts["description"] is not None:
        tool["description"] = parts["description"]
    if target == "anthropic_messages":
        return {**tool, "input_schema": parts["schema"]}
    tool["parameters"] = parts["schema"]
    if target == "openai_chat":
        return {"type": "function", "function": tool}
    return {"type": "function", **tool, "strict": False}
