"""From a transcript and an offer to the fields of a Chat Completions request, as JSON bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, get_args

from lutumpy.adapters.destination import destination_of
from lutumpy.adapters.narrowing import declared_tools
from lutumpy.adapters.openai.chat.encode import ChatEncoder, ReasoningFieldEncoder
from lutumpy.adapters.openai.chat.spelled_tools import (
    API,
    check_model,
    check_spelled,
    choices_of,
    spell_allowed,
    spell_choice,
    spell_text_tool,
    spell_tool,
)
from lutumpy.adapters.openai.offer import TextShape, offer_fields
from lutumpy.adapters.request_record import RequestRecord
from lutumpy.adapters.sdk_body import Fields, add_extra
from lutumpy.adapters.settings_keeper import record_settings
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.plain.json_values import encode
from lutumpy.rules.call_ids import CallIds
from lutumpy.rules.host_facts import HOST_FACTS, HostFacts
from lutumpy.rules.openai.custom_tools import takes_custom_tools
from lutumpy.rules.openai.models import is_known
from lutumpy.rules.openai.tool_settings import CHAT_TOOL_SETTINGS

__all__ = ["API", "CallIds", "chat_encoder", "chat_fields", "checked_call_ids"]


def chat_fields(
    transcript: Transcript,
    offer: ToolOffering | None,
    *,
    model: str | None = None,
    temperature: float | None = None,
    max_output_tokens: int | None = None,
    strict: bool | None = None,
    stream: bool = False,
    extra: Mapping[str, Any] | None = None,
    record: RequestRecord,
    call_ids: CallIds | None = None,
    custom_tools: bool | None = None,
    host: HostFacts | None = None,
) -> Fields:
    """The fields of a request without `model`, as ready JSON by name."""
    if transcript.dropped or transcript._state.open:
        transcript.refuse_unready()
    facts, narrows, key, make_encoder = encoding_for(call_ids, record.host, record.model, host)
    encoder = transcript.encoded(key, make_encoder)
    state = encoder.state
    asked, declared = offer, None
    if narrows and not (offer is not None and offer.deferred):
        state.turns = encoder.turns  # it is told by turn where tools have changed
        declared, state = declared_tools(encoder, transcript, offer, record)
        if declared is offer:
            declared = None
        elif offer is None:
            asked = ToolOffering()
    else:
        in_force = encoder.in_force
        is_same = offer is in_force.same_as and record.output is in_force.output
        if not is_same or record.effort != in_force.effort:
            record_settings(record, in_force, offer)
    fields: Fields = {"messages": encoder.answerable()}
    text_shape: TextShape | None = None
    has_text_tools = (offer is not None and offer.has_text_tools) or (
        declared is not None and declared.has_text_tools
    )
    if has_text_tools and takes_custom_tools(custom_tools, model):
        text_shape = spell_text_tool
    beside = choices_of(extra) if extra and "tools" in extra else ()
    tools = offer_fields(
        asked,
        API,
        spell_tool,
        check_spelled,
        strict,
        spell_choice,
        text_shape,
        CHAT_TOOL_SETTINGS,
        spell_allowed,
        beside,
        declared,
    )
    if tools:
        if model is not None:
            check_model(model, extra or {}, tools)
        fields.update(tools)
    if temperature is not None:
        fields["temperature"] = encode(temperature)
    if max_output_tokens is not None:
        fields[facts.limit_name] = encode(max_output_tokens)
    if stream:
        fields["stream"] = b"true"
        if facts.stream_options:
            fields["stream_options"] = b'{"include_usage":true}'
    if record.effort is not None:
        fields["reasoning_effort"] = encode(record.effort)
    entries = encoder.entries
    head = {"tools": fields.get("tools", b""), "instructions": encoder.instructions}
    kept = len(entries) if encoder.permanent is None else encoder.permanent
    for turn, what, why in encoder.left_out:
        record.leave_out(turn, what, why)
    record.compare(transcript.sent_requests, head, state.rewrites, entries, kept)
    if extra:
        add_extra(fields, extra)
    return fields


def chat_encoder(transcript: Transcript, call_ids: CallIds | None) -> ChatEncoder:
    """The transcript in its encoded form, for a host with this rule about call ids."""
    _, _, key, make_encoder = encoding_for(call_ids, None, None, None)
    return transcript.encoded(key, make_encoder)


@lru_cache(maxsize=256)
def encoding_for(
    call_ids: CallIds | None, host: str | None, model: str | None, facts: HostFacts | None
) -> tuple[HostFacts, bool, str, Callable[[], ChatEncoder]]:
    """The facts of a host, whether tools are narrowed there by the choice, the key that a
    transcript keeps its encoded form for it under, and what makes one; worked out once for all
    requests.

    Args:
        call_ids: The rule about call ids; that of the host if omitted.
        host: The authority of its address.
        model: The model that is asked.
        facts: What is known of the host; by its address if omitted.
    """
    destination = destination_of(host, model, facts)
    ids = call_ids or destination.facts.call_ids
    key = f"{API}:{ids or ''}{destination.key}"
    known = destination.facts
    # The vendor's own host serves models of other names, too, of which nothing is known.
    is_vendors = known is HOST_FACTS["openai"] or known is HOST_FACTS["azure"]
    narrows = known.allowed_tools and (is_known(model) or not is_vendors)
    encoder = ChatEncoder if known.missing_reasoning is None else ReasoningFieldEncoder
    return known, narrows, key, partial(encoder, ids, destination, narrows)


def checked_call_ids(call_ids: Any) -> CallIds | None:
    """The name of a rule about call ids, or `None`.

    Raises:
        ValueError: there is no such rule.
    """
    if call_ids is not None and call_ids not in get_args(CallIds):
        raise ValueError(
            f"call_ids is one of {', '.join(map(repr, get_args(CallIds)))}, not {call_ids!r}"
        )
    found: CallIds | None = call_ids
    return found
