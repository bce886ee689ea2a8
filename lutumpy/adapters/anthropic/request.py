"""From a transcript and an offer to the fields of a request of the Anthropic Messages API, as JSON
bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.anthropic.cache import FreeBreakpoints, mark_last_tool, mark_offered
from lutumpy.adapters.anthropic.decode import API
from lutumpy.adapters.anthropic.encode import MessagesEncoder
from lutumpy.adapters.anthropic.offer import (
    check_callers,
    check_deferred,
    check_forced,
    own_breakpoints,
    tool_choice,
    tools,
)
from lutumpy.adapters.cache_option import Cache
from lutumpy.adapters.sdk_body import Fields, add_extra
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.plain.json_values import encode
from lutumpy.rules.anthropic import models as anthropic_models

__all__ = ["DEFAULT_MAX_TOKENS", "encoder_of", "request_fields"]

# The API requires a limit. This one is within what every model takes.
DEFAULT_MAX_TOKENS = 4096


def request_fields(
    transcript: Transcript,
    offering: ToolOffering | None,
    *,
    model: str | None = None,
    temperature: float | None = None,
    max_output_tokens: int | None = None,
    strict: bool | None = None,
    stream: bool = False,
    cache: Cache | None = None,
    extra: Mapping[str, Any],
) -> Fields:
    """The fields of a request's body as JSON bytes, without `model`; `messages` last, since it
    grows.

    Args:
        model: For what depends on the model: forced choices, `role: system` inside the messages,
            prefill.
        cache: `auto` sets breakpoints of the prompt cache at the end of what later requests begin
            with.
        extra: Further parameters; they win over what stands here, but tools stand beside the
            offered ones.

    Raises:
        TranscriptError: there is nothing to answer.
        InvalidToolConstraints: the API, or this model, is known to refuse the offer.
        DeclarationError: a tool asks for strict, and its schema has no strict form.
    """
    fields: Fields = {
        "max_tokens": encode(DEFAULT_MAX_TOKENS if max_output_tokens is None else max_output_tokens)
    }
    if temperature is not None:
        fields["temperature"] = encode(temperature)
    if stream:
        fields["stream"] = b"true"
    offered = b""
    if offering is not None and offering.specs:
        offered = fields["tools"] = tools(offering, bool(strict))
        if b'"defer_loading":true' in offered:
            check_deferred(offering, extra.get("tools"))
        if "tool_choice" not in extra and (choice := tool_choice(offering)) is not None:
            check_forced(offering, model, extra)
            check_callers(offering, choice, extra.get("tools"))
            fields["tool_choice"] = encode(choice)
    if transcript.dropped:
        transcript.refuse_dropped()
    encoder = encoder_of(transcript, model, cache is not None)
    free: FreeBreakpoints | None = None
    if cache is not None:
        own = own_breakpoints(offering) if b'"cache_control"' in offered else ()
        free = FreeBreakpoints(extra, encoder.breakpoints, own)
    at_message = at_system = None
    # The longest prefix first: it saves most where the user's own breakpoints leave room for few.
    if (
        free is not None
        and free.at("messages")
        and (at_message := encoder.end_of_messages()) is not None
    ):
        free.take()
    if (
        free is not None
        and free.at("system")
        and (at_system := encoder.end_of_system()) is not None
    ):
        free.take()
    if free is not None and free.at("tools"):
        if (marked := mark_last_tool(extra.get("tools"))) is not None:
            extra = {**extra, "tools": marked}
        elif offered:
            fields["tools"] = mark_offered(offered)
    if system := encoder.system(at_system):
        fields["system"] = system
    if container := encoder.container():
        fields["container"] = container
    messages = encoder.messages(anthropic_models.takes_prefill(model), at_message)
    if encoder.parts.depends_on_request:
        messages = encoder.parts.fit(
            messages, _declared_names(offering, extra), _asks_for_format(extra)
        )
    fields["messages"] = messages
    add_extra(fields, extra)
    return fields


def _declared_names(offering: ToolOffering | None, extra: Mapping[str, Any]) -> set[str]:
    """The names of the tools in a request: the offered ones, and the user's own."""
    offered = (*offering.specs, *offering.deferred) if offering is not None else ()
    names = {spec.name for spec in offered}
    own = extra.get("tools")
    if isinstance(own, (list, tuple)):
        names |= {str(tool.get("name")) for tool in own if isinstance(tool, Mapping)}
    return names


def _asks_for_format(extra: Mapping[str, Any]) -> bool:
    config = extra.get("output_config")
    if isinstance(config, Mapping) and config.get("format") is not None:
        return True
    return extra.get("output_format") is not None  # its older name


def encoder_of(
    transcript: Transcript, model: str | None, as_blocks: bool = False
) -> MessagesEncoder:
    """The encoded form of a transcript, as a model takes it; see `MessagesEncoder`."""
    system_in_messages = anthropic_models.takes_system_messages(model)
    key = f"{API}{':system' if system_in_messages else ''}{':blocks' if as_blocks else ''}"
    return transcript.encoded(key, lambda: MessagesEncoder(system_in_messages, as_blocks))
