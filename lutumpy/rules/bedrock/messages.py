"""The law of Converse: what `POST /model/{id}/converse` refuses, and in which words.

Sources: the service model of `bedrock-runtime` in botocore 1.44, recorded exchanges, and errors
that users report. The shape of the body is here; the shapes of content blocks are in `blocks`, the
sequence of messages in `sequence`, what only some models are shown in `media`, tools in `tools`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lutumpy.rules.bedrock.blocks import check_block, check_system
from lutumpy.rules.bedrock.catalogue import is_vendor_only
from lutumpy.rules.bedrock.changes import check_changes
from lutumpy.rules.bedrock.kinds import array, number, structure, text
from lutumpy.rules.bedrock.limits import (
    MAX_CACHE_POINTS,
    MAX_STOP_SEQUENCES,
    MIN_TOKENS,
    RANGES,
    ROLES,
)
from lutumpy.rules.bedrock.media import check_media
from lutumpy.rules.bedrock.models import INVALID, is_claude, model_refusal
from lutumpy.rules.bedrock.sequence import USER_FIRST, check_sequence, holds_calls
from lutumpy.rules.bedrock.shapes import (
    KIND,
    enum_problem,
    missing,
    refusal,
    unknown_keys,
    wrong_type,
)
from lutumpy.rules.bedrock.tools import check_tool_config, tool_names
from lutumpy.rules.bedrock.wire import WIRE
from lutumpy.rules.block_wire import join_turns, place_of
from lutumpy.rules.declared import undeclared
from lutumpy.rules.encoding import EncodingWords, check_encoding
from lutumpy.rules.hosts import for_compatible_host
from lutumpy.rules.problem import Problem, is_array, items, mapping
from lutumpy.rules.problem import text as text_of

__all__ = ["WHERE", "check_messages", "check_request", "thinking_of"]

WHERE = "messages.{}"
PARAMETERS = (
    "modelId messages system inferenceConfig toolConfig guardrailConfig "
    "projectIdentifier additionalModelRequestFields promptVariables "
    "additionalModelResponseFieldPaths requestMetadata performanceConfig serviceTier outputConfig"
).split()
"""The members of a request. The model is in its path; a program hands it to the SDK as
`modelId`."""
_BESIDE = ("model", "stream")
"""What a caller who knows the path may put into the body for the rules."""

NOT_JSON = "Unexpected token in the request body: it is not valid JSON."
_WORDS = EncodingWords(NOT_JSON, NOT_JSON, "some", KIND)
NO_TOOL_CONFIG = (
    "The toolConfig field must be defined when using toolUse and toolResult content blocks."
)
_INFERENCE = structure(
    "converse.inference",
    {},
    {
        "maxTokens": number("converse.inference", MIN_TOKENS, whole=True),
        **{key: number("converse.inference", *ends) for key, ends in RANGES.items()},
        "stopSequences": array(
            "converse.inference", text("converse.inference", least=1), most=MAX_STOP_SEQUENCES
        ),
    },
)


def thinking_of(body: Mapping[str, Any]) -> str | None:
    """The `type` of Claude's `thinking`, which goes to the model as it is."""
    fields = mapping(body.get("additionalModelRequestFields"))
    thinking = mapping(fields.get("thinking")) if fields is not None else None
    return text_of(thinking.get("type")) if thinking is not None else None


def check_request(body: Mapping[str, Any], *, compatible: bool = False) -> list[Problem]:
    """Every problem of a request body, in the order in which the API would meet them. No JSON makes
    it raise.

    Args:
        body: The request. Its model is in the path, and is known here where the body has it
            under `modelId`, as the SDK takes it, or under `model`.
        compatible: The host is another than Bedrock: what only Bedrock is known to refuse has
            certainty "some".
    """
    # The wire may bring anything.
    if not isinstance(body, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        return [wrong_type("converse.body", "", body, "dict")]
    model = text_of(body.get("modelId")) or text_of(body.get("model"))
    thinking = thinking_of(body)
    messages, config = body.get("messages"), body.get("toolConfig")
    found = _check_model(model)
    found += unknown_keys("converse.unknown_parameter", "", body, (*PARAMETERS, *_BESIDE))
    if body.get("inferenceConfig") is not None:
        found += _INFERENCE.look("inferenceConfig", body["inferenceConfig"])
    found += check_system(body.get("system"))
    found += check_tool_config(config, model=model, thinking=thinking)
    if messages is not None or body.get("promptVariables") is None:
        found += _check_history(messages if messages is not None else [], model, thinking)
    if config is None and holds_calls(messages):
        found.append(refusal("converse.tool_config", "toolConfig", NO_TOOL_CONFIG))
    found += _check_cache_points(messages, body.get("system"), mapping(config) or {})
    found += check_changes(messages, tool_names(items((mapping(config) or {}).get("tools"))))
    return for_compatible_host(found, is_vendor_only) if compatible else found


def check_messages(
    messages: Sequence[Any],
    system: Any = None,
    *,
    tools: Sequence[Any] | None = None,
    model: str | None = None,
    thinking: str | None = None,
    compatible: bool = False,
) -> list[Problem]:
    """The problems of a transcript alone: shapes first, then the sequence of messages.

    Args:
        messages: The request's `messages`.
        system: The request's `system`.
        tools: Its tools, or their names, for calls of tools that it doesn't declare; an empty list
            for a request without any.
        model: Its model, for what only some models refuse.
        thinking: The `type` of Claude's `thinking`.
        compatible: The host is another than Bedrock.
    """
    found = _check_history(messages, model, thinking) + check_system(system)
    found += _check_cache_points(messages, system, {"tools": tools})
    found += check_changes(messages, None if tools is None else tool_names(tools))
    if tools is not None:
        found += undeclared("converse.tool_declared", _calls_in(messages), tool_names(tools))
        if not tools and holds_calls(messages):
            found.append(refusal("converse.tool_config", "toolConfig", NO_TOOL_CONFIG))
    return for_compatible_host(found, is_vendor_only) if compatible else found


def _calls_in(messages: Any) -> Iterator[tuple[str, str, str]]:
    for turn in join_turns(WIRE, messages):
        for path, call in turn.of("toolUse"):
            if isinstance(call.get("name"), str):
                yield place_of(path[:3]), call["name"], text_of(call.get("toolUseId")) or ""


def _check_model(model: str | None) -> list[Problem]:
    words = model_refusal(model) if model is not None else None
    if words is None:
        return []
    # A name that looks wrong may be one that is new.
    return [refusal("converse.model", "modelId", words, "some" if words == INVALID else "refused")]


# ------------------------------------------------------------------ shapes


def _check_history(messages: Any, model: str | None, thinking: str | None) -> list[Problem]:
    found = check_encoding("converse", messages, WHERE, _WORDS)
    found += _check_shapes(messages, is_claude=is_claude(model) is True)
    found += check_sequence(messages, model=model, thinking=thinking)
    return found + check_media(messages, model)


def _check_shapes(messages: Any, *, is_claude: bool) -> list[Problem]:
    if not is_array(messages):
        return [wrong_type("converse.messages", "messages", messages, "list")]
    if not messages:
        return [refusal("converse.messages", "messages", USER_FIRST)]
    found: list[Problem] = []
    for index, message in enumerate(messages):
        where = WHERE.format(index)
        if not isinstance(message, Mapping):
            found.append(wrong_type("converse.messages", where, message, "dict"))
            continue
        role = message.get("role")
        if role is None:
            found.append(missing("converse.role", where, "role"))
        elif role not in ROLES:
            found.append(enum_problem("converse.role", f"{where}.role", ROLES))
        found += _check_content(where, message, is_claude=is_claude)
        found += unknown_keys("converse.messages", where, message, ("role", "content"))
    return found


def _check_content(where: str, message: Mapping[str, Any], *, is_claude: bool) -> list[Problem]:
    content = message.get("content")
    if content is None:
        return [missing("converse.content", where, "content")]
    if not is_array(content):
        return [wrong_type("converse.content", f"{where}.content", content, "list")]
    if not content:
        words = (
            f"The content field in the Message object at {where} is empty. Add a ContentBlock "
            "object to the content field and try again."
        )
        return [refusal("converse.empty_content", f"{where}.content", words)]
    found: list[Problem] = []
    for at, block in enumerate(content):
        found += check_block(f"{where}.content.{at}", block, is_claude=is_claude)
    return found


def _check_cache_points(messages: Any, system: Any, config: Mapping[str, Any]) -> list[Problem]:
    """As many as Claude takes on its own API; of Bedrock no refusal is known."""
    blocks = [*items(config.get("tools")), *items(system)]
    for turn in join_turns(WIRE, messages):
        blocks += [block for _, block in turn.blocks]
    count = sum(1 for block in blocks if isinstance(block, Mapping) and "cachePoint" in block)
    if count <= MAX_CACHE_POINTS:
        return []
    words = f"A maximum of {MAX_CACHE_POINTS} cache points may be provided. Found {count}."
    return [refusal("converse.cache_point", "", words, "some")]
