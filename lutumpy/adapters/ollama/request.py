"""From a transcript and an offer to the fields of a request of `/api/chat`, as JSON bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.ollama.encode import encoder_of
from lutumpy.adapters.ollama.offer import check_choice, tool_array
from lutumpy.adapters.sdk_body import Fields, add_extra
from lutumpy.adapters.settings_keeper import record_settings
from lutumpy.adapters.writing import NO_REWRITES, RequestRecord
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import InvalidToolConstraints
from lutumpy.plain.json_values import encode

__all__ = ["request_fields"]


def request_fields(
    transcript: Transcript,
    offer: ToolOffering | None,
    *,
    model: str | None = None,
    temperature: float | None = None,
    max_output_tokens: int | None = None,
    strict: bool | None = None,
    stream: bool = False,
    extra: Mapping[str, Any],
    record: RequestRecord,
) -> Fields:
    """The fields of a request's body as JSON bytes, without the model.

    Args:
        transcript: The conversation.
        offer: The tools.
        model: Changes nothing.
        temperature: Stands under `options`.
        max_output_tokens: The same, as `num_predict`.
        strict: Changes nothing: the API has no strict tools.
        stream: Sent in either case, since the API streams by default.
        record: What the request says anew; it is filled in.
        extra: Further parameters; they win over what is here, but tools are beside the
            offered ones, and `options` beside ours.

    Raises:
        TranscriptError: there is nothing to answer.
        InvalidToolConstraints: the API is known to refuse the offer, or to make nothing of it.
    """
    if transcript.dropped or transcript._state.open:
        transcript.refuse_unready()
    encoder = encoder_of(transcript)
    record_settings(record, encoder.in_force, offer)
    messages = encoder.messages()
    fields: Fields = {"messages": messages}
    if offer is not None:
        check_choice(offer)
        if tools := tool_array(offer):
            _check_format(extra)
            fields["tools"] = tools
    permanent = len(messages) if encoder.permanent is None else encoder.permanent
    head = {"tools": fields.get("tools", b"")}
    record.compare(transcript.sent_requests, head, NO_REWRITES, messages, permanent)
    options: dict[str, Any] = {}
    if temperature is not None:
        options["temperature"] = temperature
    if max_output_tokens is not None:
        options["num_predict"] = max_output_tokens
    if options and isinstance(extra.get("options", {}), Mapping):
        extra = {**extra, "options": {**options, **extra.get("options", {})}}
    if record.effort is not None:
        fields["think"] = encode(record.effort)
    fields["stream"] = b"true" if stream else b"false"
    add_extra(fields, extra)
    return fields


def _check_format(extra: Mapping[str, Any]) -> None:
    """Refuse tools beside a format for the answer: the format holds all that the model writes to
    the schema, so that it can't call anything, and nothing would say so.

    Raises:
        InvalidToolConstraints: the request has a format.
    """
    if extra.get("format"):
        raise InvalidToolConstraints(
            "with a format for its answer, a model behind Ollama calls no tools; "
            'structured="tool" asks for the value by a tool, or ask in a turn without tools'
        )
