"""The law of Anthropic's Messages: what `POST /v1/messages` refuses, and in which words.

Sources: Anthropic's API description, recorded exchanges, and errors that users report. The shape
of the body is here; the shapes of content blocks are in `blocks`, their sequence in `sequence`,
tools in `tools`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lutumpy.rules.anthropic import models as anthropic_models
from lutumpy.rules.anthropic.blocks import BLOCK_TYPES, check_block
from lutumpy.rules.anthropic.catalogue import is_vendor_only
from lutumpy.rules.anthropic.changes import (
    check_changes,
    check_system_message,
    defined_tools,
)
from lutumpy.rules.anthropic.limits import INTERLEAVED_THINKING, MAX_BREAKPOINTS, MIN_BUDGET
from lutumpy.rules.anthropic.media import check_many_images
from lutumpy.rules.anthropic.parameters import cache_problems, check_sampling
from lutumpy.rules.anthropic.requests import check_requested, continues_thread
from lutumpy.rules.anthropic.sequence import check_sequence
from lutumpy.rules.anthropic.tools import check_deferred, check_tool_choice, check_tools
from lutumpy.rules.anthropic.wording import check_keys, shape, wrong_tag
from lutumpy.rules.declared import declared_names, undeclared
from lutumpy.rules.encoding import check_encoding
from lutumpy.rules.hosts import for_compatible_host
from lutumpy.rules.problem import (
    Certainty,
    Problem,
    is_array,
    is_number,
    items,
    mapping,
    text,
)

__all__ = ["check_messages", "check_request"]

REQUIRED = ("max_tokens", "messages", "model")
PARAMETERS = frozenset(
    "billing_policy cache_control compaction container context_management diagnostics "
    "fallback_credit_token fallbacks inference_geo max_tokens mcp_servers messages metadata model "
    "output_config output_format service_tier speed stop_sequences stream system temperature "
    "thinking thread tool_choice tools top_k top_p".split()
)
COUNT_PARAMETERS = frozenset(
    "billing_policy cache_control compaction context_management mcp_servers messages model "
    "output_config output_format speed system thinking tool_choice tools".split()
)
"""What `POST /v1/messages/count_tokens` takes."""

ROLES = ("user", "assistant", "system")
MESSAGE_KEYS = frozenset({"role", "content"})
SYSTEM_KEYS = MESSAGE_KEYS | {"clear_at", "output_config"}
"""What only a system message may say beside its content [SDK]."""

WHERE = "messages.{}"
THINKING_TYPES = ("adaptive", "between_tools", "disabled", "enabled")


def check_request(
    body: Mapping[str, Any],
    *,
    issued: Mapping[str, str] | None = None,
    counted: bool = False,
    betas: Collection[str] | None = None,
    compatible: bool = False,
) -> list[Problem]:
    """Every problem of a request body, in the order in which the API would meet them. No JSON makes
    it raise.

    Args:
        body: The request.
        issued: Signature to thinking text, of the blocks that the server knows to have written.
        counted: The request asks for its tokens to be counted, which takes fewer parameters.
        betas: The beta features that the request's headers ask for, beside those in its body;
            `None` where the headers aren't known.
        compatible: The host is another than Anthropic: what only Anthropic is known to refuse has
            certainty "some".
    """
    # The wire may bring anything.
    if not isinstance(body, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        return [shape("anthropic.body", "", "Input should be an object")]
    model = text(body.get("model"))
    thinking = mapping(body.get("thinking"))
    thinking_type = text(thinking.get("type")) if thinking is not None else None
    held = continues_thread(body)
    messages = body.get("messages")
    found = _check_top_level(body, counted, betas)
    found += check_sampling(body, model, thinking_type)
    if messages is not None:
        found += check_encoding("anthropic", messages, WHERE) + _check_messages(
            messages, model, held
        )
    found += _check_system(body.get("system"))
    found += check_tools(body.get("tools")) + check_deferred(body.get("tools"))
    found += check_tool_choice(body, model, thinking_type, held=held)
    found += _check_breakpoints(body)
    tools = body.get("tools")
    asked = None if betas is None else _list_betas(body, betas)
    found += check_changes(
        messages, items(tools) if tools is None else tools, betas=asked, held=held
    )
    found += check_sequence(
        messages,
        model=model,
        thinking=thinking_type,
        tools=body.get("tools"),
        issued=issued,
        held=held,
    )
    return for_compatible_host(found, is_vendor_only) if compatible else found


def check_messages(
    messages: Sequence[Any],
    system: Any = None,
    *,
    tools: Sequence[Any] | None = None,
    model: str | None = None,
    thinking: str | None = None,
    server_held_prefix: bool = False,
    compatible: bool = False,
) -> list[Problem]:
    """The problems of a transcript alone: shapes first, then the sequence of blocks.

    Args:
        messages: The request's `messages`.
        system: The request's `system`.
        tools: Its tools, or their names, for calls of tools that it doesn't declare.
        model: Its `model`, for what only some models refuse.
        thinking: The `type` of its `thinking`: enabled, adaptive, disabled.
        server_held_prefix: The conversation's start is at the server, which continues a thread.
        compatible: The host is another than Anthropic: what only Anthropic is known to refuse has
            certainty "some".
    """
    found = check_encoding("anthropic", messages, WHERE) + _check_messages(
        messages, model, server_held_prefix
    )
    found += _check_system(system)
    found += _check_breakpoints({"messages": messages, "system": system, "tools": tools})
    # Names alone don't tell which of the provider's own tools are among them.
    objects = tools
    if tools is not None and any(isinstance(tool, str) for tool in tools):
        objects = None
    found += check_sequence(
        messages, model=model, thinking=thinking, tools=objects, held=server_held_prefix
    )
    found += check_changes(messages, tools, held=server_held_prefix)
    if tools is not None:
        found += _check_declared(messages, [*tools, *defined_tools(messages)])
    return for_compatible_host(found, is_vendor_only) if compatible else found


def _check_declared(messages: Any, tools: Sequence[Any]) -> list[Problem]:
    """Tools that are called or referred to, and not declared: hosts differ."""
    calls: list[tuple[str, str, str]] = []
    references: list[tuple[str, str]] = []
    for index, message in enumerate(items(messages)):
        for number, block in enumerate(
            items(message.get("content")) if isinstance(message, Mapping) else ()
        ):
            if not isinstance(block, Mapping):
                continue
            where = f"messages.{index}.content.{number}"
            if (
                block.get("type") == "tool_use"
                and isinstance(block.get("name"), str)
                and not block.get("toolset_name")
            ):
                calls.append((where, block["name"], text(block.get("id")) or ""))
            elif block.get("type") == "tool_result":
                for place, part in enumerate(items(block.get("content"))):
                    name = text(part.get("tool_name")) if isinstance(part, Mapping) else None
                    if name is not None and part.get("type") == "tool_reference":
                        references.append((f"{where}.tool_result.content.{place}", name))
    found = undeclared("anthropic.tool_declared", calls, tools, none_is_some=True)
    known = declared_names(tools)
    for where, name in references:
        if name not in known:
            message = f"{where}: Tool reference '{name}' not found in available tools"
            found.append(Problem("anthropic.tool_reference", where, message, "some", tools=(name,)))
    return found


def _check_top_level(
    body: Mapping[str, Any], counted: bool, betas: Collection[str] | None
) -> list[Problem]:
    required, known = (REQUIRED[1:], COUNT_PARAMETERS) if counted else (REQUIRED, PARAMETERS)
    found = [
        shape("anthropic.required", key, "Field required")
        for key in required
        if body.get(key) is None
    ]
    model, limit = body.get("model"), body.get("max_tokens")
    if model is not None and not isinstance(model, str):
        found.append(shape("anthropic.required", "model", "Input should be a valid string"))
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
        found.append(shape("anthropic.required", "max_tokens", "Input should be a valid integer"))
    elif limit is not None and limit < 0:
        found.append(
            shape("anthropic.required", "max_tokens", "Input should be greater than or equal to 0")
        )
    # Other hosts take the names of beta features in the body.
    asked = _list_betas(body, betas)
    # Thinking between calls may take more than one answer; without tools there is nothing between.
    may_ask = betas is None and bool(items(body.get("tools")))
    budget_certainty: Certainty = "some" if may_ask else "refused"
    most = None if INTERLEAVED_THINKING in asked else limit
    found += _check_thinking(body.get("thinking"), most, budget_certainty)
    effort = mapping(body.get("output_config"))
    refusal = (
        anthropic_models.effort_refusal(text(model), effort.get("effort"))
        if effort is not None
        else None
    )
    if refusal is not None:
        found.append(
            Problem("anthropic.effort_for_model", "output_config.effort", refusal, "refused")
        )
    found += [
        shape("anthropic.unknown_parameter", str(key), "Extra inputs are not permitted")
        for key in body
        if key not in known
    ]
    return found + check_requested(body)


def _list_betas(body: Mapping[str, Any], betas: Collection[str] | None) -> list[Any]:
    """The beta names of headers and body."""
    return [*(betas or ()), *items(body.get("anthropic_beta")), *items(body.get("betas"))]


def _check_thinking(thinking: Any, limit: Any, certainty: Certainty) -> list[Problem]:
    """Problems of `thinking`.

    Args:
        thinking: The field, of any type.
        limit: `max_tokens`, where the budget has to stay below it.
        certainty: How sure it is that it has to.
    """
    if thinking is None:
        return []
    rule = "anthropic.thinking"
    if not isinstance(thinking, Mapping):
        return [shape(rule, "thinking", "Input should be an object")]
    kind = thinking.get("type")
    if kind not in THINKING_TYPES:
        return [shape(rule, "thinking", wrong_tag(kind, THINKING_TYPES))]
    if kind != "enabled":
        return []
    budget = thinking.get("budget_tokens")
    where = "thinking.enabled.budget_tokens"
    if budget is None:
        return [shape(rule, where, "Field required")]
    if not is_number(budget):
        return [shape(rule, where, "Input should be a valid integer")]
    if budget < MIN_BUDGET:
        return [shape(rule, where, f"Input should be greater than or equal to {MIN_BUDGET}")]
    if is_number(limit) and limit <= budget:
        message = "`max_tokens` must be greater than `thinking.budget_tokens`."
        return [Problem(rule, "max_tokens", message, certainty)]
    return []


# ------------------------------------------------------------------ shapes


def _check_messages(messages: Any, model: str | None, held: bool) -> list[Problem]:
    rule = "anthropic.messages"
    if not is_array(messages):
        return [shape(rule, "messages", "Input should be a valid array")]
    if not messages:
        # A thread that was left unfinished goes on without a new message.
        return [] if held else [shape(rule, "messages", "at least one message is required")]
    found: list[Problem] = []
    for index, message in enumerate(messages):
        where = f"messages.{index}"
        if not isinstance(message, Mapping):
            found.append(shape(rule, where, "Input should be an object"))
            continue
        role = message.get("role")
        if role is None:
            found.append(shape("anthropic.role", f"{where}.role", "Field required"))
        elif role not in ROLES:
            found.append(
                shape(
                    "anthropic.role",
                    f"{where}.role",
                    "Input should be 'user', 'assistant' or 'system'",
                )
            )
        elif role == "system" and anthropic_models.refuses_system_messages(model):
            text = (
                'messages: Unexpected role "system". The Messages API accepts a top-level `system` '
                "parameter, "
                'not "system" as an input message role.'
            )
            found.append(Problem("anthropic.system_for_model", where, text, "refused"))
        is_system = role == "system"
        found += check_keys(rule, where, message, SYSTEM_KEYS if is_system else MESSAGE_KEYS)
        if is_system:
            found += check_system_message(where, message)
        # An effort alone needs no content.
        if not (
            is_system and "content" not in message and message.get("output_config") is not None
        ):
            found += _check_content(f"{where}.content", message)
        if _is_blank(message.get("content")):
            # [reported: anomalyco/opencode#31259, home-assistant/core#175637]
            text = "messages: text content blocks must contain non-whitespace text"
            found.append(Problem("anthropic.blank_text", where, text, "refused"))
    return found + check_many_images(messages)


def _is_blank(content: Any) -> bool:
    """Whether a message is nothing but white space. Beside other blocks it is taken [recorded for
    the same models on Bedrock].
    """
    if isinstance(content, str):
        return _is_white_space(content)
    blocks = items(content)
    texts = [text(block.get("text")) for block in blocks if isinstance(block, Mapping)]
    return bool(blocks) and len(texts) == len(blocks) and all(map(_is_white_space, texts))


def _is_white_space(value: str | None) -> bool:
    return value is not None and value != "" and not value.strip()


def _check_content(where: str, message: Mapping[str, Any]) -> list[Problem]:
    content = message.get("content")
    if isinstance(content, str):
        return []
    if content is None and "content" not in message:
        return [shape("anthropic.content", where, "Field required")]
    if not is_array(content):
        return [shape("anthropic.content", where, "Input should be a valid array")]
    found: list[Problem] = []
    for index, block in enumerate(items(content)):
        found += check_block(f"{where}.{index}", block, BLOCK_TYPES, "messages")
    return found


def _check_system(system: Any) -> list[Problem]:
    if system is None or isinstance(system, str):
        return []
    if not is_array(system):
        return [shape("anthropic.system", "system", "Input should be a valid array")]
    found: list[Problem] = []
    for index, block in enumerate(system):
        found += check_block(f"system.{index}", block, ("text",), "system")
    return found


def _check_breakpoints(body: Mapping[str, Any]) -> list[Problem]:
    """Marks of the known kind, at most four over tools, system and messages; `null` does not count
    [recorded].
    """
    found = cache_problems("anthropic.cache_control", body)
    blocks = [*items(body.get("tools")), *items(body.get("system"))]
    for message in items(body.get("messages")):
        for block in items(message.get("content")) if isinstance(message, Mapping) else ():
            blocks.append(block)
            blocks += items(block.get("content")) if isinstance(block, Mapping) else ()
    count = sum(
        1
        for block in blocks
        if isinstance(block, Mapping) and block.get("cache_control") is not None
    )
    if count <= MAX_BREAKPOINTS:
        return found
    message = (
        f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {count}."
    )
    return [*found, Problem("anthropic.cache_control", "", message, "refused")]
