"""Which of the three APIs a body, a list of messages or an answer is written for, read from its shape.

Evidence, not guesses: a key or a type that only one API knows speaks for it. Where nothing does, several APIs are named,
and the user has to say which one is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lutumpy.apis import Api

__all__ = [
    "ADDRESS_KEYS",
    "APIS",
    "Api",
    "address_of",
    "api_of_answer",
    "apis_of_body",
    "apis_of_messages",
    "is_message",
]

CHAT: Api = "openai_chat"
RESPONSES: Api = "openai_responses"
ANTHROPIC: Api = "anthropic_messages"
APIS: tuple[Api, ...] = (CHAT, RESPONSES, ANTHROPIC)

# Top-level parameters that one of the two APIs with `messages` has and the other refuses.
_CHAT_KEYS = frozenset(
    "frequency_penalty presence_penalty response_format n logprobs top_logprobs logit_bias stream_options "
    "parallel_tool_calls max_completion_tokens reasoning_effort seed stop modalities audio functions function_call "
    "prediction web_search_options verbosity store prompt_cache_key reasoning".split()
)
_ANTHROPIC_KEYS = frozenset(
    "system stop_sequences top_k thinking output_config anthropic_version anthropic_beta betas mcp_servers container "
    "context_management inference_geo".split()
)
_CHAT_ROLES = frozenset({"tool", "function"})
_CHAT_MESSAGE_KEYS = frozenset(
    "tool_calls tool_call_id function_call refusal audio reasoning reasoning_content reasoning_details annotations".split()
)
_CHAT_PARTS = frozenset({"image_url", "input_audio", "file", "refusal", "video_url"})
_ANTHROPIC_PARTS = frozenset(
    "tool_use tool_result thinking redacted_thinking image document server_tool_use mcp_tool_use mcp_tool_result "
    "search_result container_upload compaction".split()
)
_ANTHROPIC_RESULT = re.compile(r"[a-z_]+_tool_result\Z")
_RESPONSES_PARTS = frozenset(
    {"input_text", "output_text", "input_image", "input_file", "summary_text"}
)
_RESPONSES_ITEMS = frozenset(
    "message reasoning item_reference compaction program program_output additional_tools".split()
)
_RESPONSES_ITEM = re.compile(
    r"[a-z_]+_call(_output)?\Z|[a-z_]+_(output|approval_request|approval_response)\Z|mcp_\w+\Z"
)


ADDRESS_KEYS = ("host", "base_url", "url")
"""Where a recorder says whom a request went to; no API has a parameter of these names."""


def address_of(data: Mapping[str, Any]) -> str | None:
    """The address that stands beside a request, or in it."""
    return next(
        (value for key in ADDRESS_KEYS if isinstance(value := data.get(key), str) and value), None
    )


def is_message(value: Any) -> bool:
    """Whether `value` looks like one message or item of a conversation, rather than a document with several."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("role"), str) and "messages" not in value and "choices" not in value:
        # An answer of the Messages API has a role too, but belongs in no list.
        return not (value.get("type") == "message" and "stop_reason" in value and "usage" in value)
    return _is_item_type(value.get("type")) and "request" not in value


def _is_item_type(kind: Any) -> bool:
    return isinstance(kind, str) and (
        kind in _RESPONSES_ITEMS or _RESPONSES_ITEM.match(kind) is not None
    )


def apis_of_body(body: Mapping[str, Any]) -> tuple[Api, ...]:
    """The APIs that a request body may be meant for: one, several where nothing tells them apart, or none."""
    messages = body.get("messages")
    if messages is None:
        return (
            (RESPONSES,)
            if isinstance(body.get("input"), (str, list)) or _is_responses_rest(body)
            else ()
        )
    if not isinstance(messages, list):
        return ()
    votes = set(_votes_of_messages(messages)) | set(_votes_of_tools(body.get("tools")))
    votes |= {CHAT for key in body if key in _CHAT_KEYS}
    votes |= {ANTHROPIC for key in body if key in _ANTHROPIC_KEYS}
    votes |= set(_votes_of_choice(body.get("tool_choice")))
    votes.discard(RESPONSES)
    if len(votes) == 1:
        return tuple(votes)
    if not votes and _is_openai(messages):
        return (CHAT,)
    if votes or "model" not in body:
        return (CHAT, ANTHROPIC)
    named = _vendor(body["model"])
    if (
        "max_tokens" not in body
    ):  # the Messages API takes no request without it, but counts the tokens of one
        return (CHAT, ANTHROPIC) if named == ANTHROPIC else (CHAT,)
    return (CHAT, ANTHROPIC) if named is None else (named,)


def _is_responses_rest(body: Mapping[str, Any]) -> bool:
    """A request may go on from what the server holds, with nothing new in it."""
    return "model" in body and (
        "previous_response_id" in body or "prompt" in body or "conversation" in body
    )


def apis_of_messages(messages: Iterable[Any]) -> tuple[Api, ...]:
    """The APIs that a bare list of messages or items may be written for."""
    entries = list(messages)
    votes = set(_votes_of_messages(entries))
    if RESPONSES in votes:
        return (
            RESPONSES,
        )  # items have types of their own, and a message may stand among them as Chat spells it
    if votes:
        return tuple(api for api in APIS if api in votes)
    return (CHAT, RESPONSES) if _is_openai(entries) else APIS


def _votes_of_messages(messages: Iterable[Any]) -> Iterator[Api]:
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        if _is_item_type(message.get("type")):
            yield RESPONSES
        role = message.get("role")
        if (isinstance(role, str) and role in _CHAT_ROLES) or any(
            key in message for key in _CHAT_MESSAGE_KEYS
        ):
            yield CHAT
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            yield from _votes_of_part(part)


def _is_openai(messages: list[Any]) -> bool:
    """Whether it begins as Anthropic refuses it: with a system message, or with a role that it doesn't know."""
    roles = [message.get("role") for message in messages if isinstance(message, Mapping)]
    return roles[:1] == ["system"] or "developer" in roles


def _votes_of_part(part: Any) -> Iterator[Api]:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(kind, str):
        return
    if kind in _CHAT_PARTS:
        yield CHAT
    elif kind in _RESPONSES_PARTS:
        yield RESPONSES
    elif kind in _ANTHROPIC_PARTS or _ANTHROPIC_RESULT.match(kind):
        yield ANTHROPIC


def _votes_of_tools(tools: Any) -> Iterator[Api]:
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, Mapping):
            continue
        kind = tool.get("type")
        if isinstance(kind, str) and isinstance(tool.get(kind), Mapping):
            yield CHAT
        elif "input_schema" in tool or (isinstance(kind, str) and re.search(r"_20\d{6}\Z", kind)):
            yield ANTHROPIC


def _votes_of_choice(choice: Any) -> Iterator[Api]:
    if isinstance(choice, str):
        yield CHAT
    elif isinstance(choice, Mapping):
        kind = choice.get("type")
        if kind in ("auto", "any", "tool", "none"):
            yield ANTHROPIC
        elif kind in ("function", "custom", "allowed_tools"):
            yield CHAT


def _vendor(model: Any) -> Api | None:
    """What a vendor's own name for a model says; the same models under other names may be served by any API."""
    if not isinstance(model, str):
        return None
    if model.startswith("claude-"):
        return ANTHROPIC
    return CHAT if re.match(r"gpt-|chatgpt-|o\d", model) else None


def api_of_answer(answer: Any) -> Api | None:
    """The API that wrote an answer: its JSON, or the text of its event stream; None where it doesn't say."""
    if isinstance(answer, str):
        start = answer[:4000]
        if "event: message_start" in start or '"type":"message_start"' in start:
            return ANTHROPIC
        if '"type":"response.' in start or "event: response." in start:
            return RESPONSES
        return CHAT if '"chat.completion.chunk"' in start or '"choices"' in start else None
    if not isinstance(answer, Mapping):
        return None
    if answer.get("object") == "response" and "output" in answer:
        return RESPONSES
    if isinstance(answer.get("choices"), list):
        return CHAT
    is_error = answer.get("type") == "error" and isinstance(answer.get("error"), Mapping)
    return (
        ANTHROPIC
        if is_error or (answer.get("type") == "message" and "stop_reason" in answer)
        else None
    )
