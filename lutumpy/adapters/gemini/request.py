"""From a transcript and an offer to the fields of a request of generateContent, as JSON bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from lutumpy.adapters.destination import destination_of
from lutumpy.adapters.gemini.decode import API
from lutumpy.adapters.gemini.encode import Dialect, GeminiEncoder, dialect_of
from lutumpy.adapters.gemini.offer import calling_config, tool_entry
from lutumpy.adapters.narrowing import declared_tools
from lutumpy.adapters.request_record import RequestRecord
from lutumpy.adapters.sdk_body import Fields
from lutumpy.adapters.settings_keeper import record_settings
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.core.unset import UNSET, without_unset
from lutumpy.errors import InvalidToolConstraints
from lutumpy.plain.json_values import encode
from lutumpy.rules.gemini.fields import field, key_of, snake
from lutumpy.rules.gemini.models import generation

__all__ = ["encoder_of", "request_fields", "with_setting"]

_OBJECTS = ("generationConfig", "toolConfig")
"""Parameters that are objects of settings: those of the user are beside ours, and win."""


def request_fields(
    transcript: Transcript,
    offering: ToolOffering | None,
    *,
    model: str | None = None,
    temperature: float | None = None,
    max_output_tokens: int | None = None,
    strict: bool | None = None,
    stream: bool = False,
    extra: Mapping[str, Any],
    record: RequestRecord,
) -> Fields:
    """The fields of a request's body as JSON bytes, without the model, which is in the path;
    `contents` last, since it grows.

    Args:
        model: For what depends on the model: signatures, images in results, JSON beside tools.
        stream: Changes nothing: a stream is another method.
        record: What the request says anew; it is filled in.
        extra: Further parameters; they win over what is here, but tools are beside the
            offered ones, and settings beside ours.

    Raises:
        TranscriptError: there is nothing to answer.
        InvalidToolConstraints: the API, or this model, is known to refuse the offer.
    """
    settings: dict[str, Any] = {}
    if temperature is not None:
        settings["temperature"] = temperature
    if max_output_tokens is not None:
        settings["maxOutputTokens"] = max_output_tokens
    if record.effort is not None:
        requested_config = field(extra, "generationConfig")
        thinking = field(requested_config, "thinkingConfig") if requested_config else None
        if not thinking:
            settings["thinkingConfig"] = {"thinkingLevel": record.effort}
    own: dict[str, Any] = {"generationConfig": settings} if settings else {}
    if transcript.dropped or transcript._state.open:
        transcript.refuse_unready()
    dialect, key, make_encoder = encoding_for(model, record.host)
    encoder = transcript.encoded(key, make_encoder)
    state = encoder.state
    declared = offering
    if dialect.narrows and not (offering is not None and offering.deferred):
        declared, state = declared_tools(encoder, transcript, offering, record)
    else:
        record_settings(record, state.in_force, offering)
    has_own = offering is not None and bool(offering.specs)
    is_json = _asks_for_json(_merged(own.get("generationConfig"), extra, "generationConfig"))
    if is_json and not has_own and _refuses_tools_beside_json(model):
        declared = offering  # those that aren't offered can't stay declared this once
    offered = b""
    if declared is not None:
        asked = ToolOffering() if offering is None else offering
        choice = calling_config(asked, bool(strict), None if declared is offering else declared)
        offered = tool_entry(declared)
        if choice is not None and offered:
            own["toolConfig"] = {"functionCallingConfig": choice}
    fields: Fields = {}
    if system := encoder.system():
        fields["systemInstruction"] = system
    contents = encoder.contents()
    requested = {name: without_unset(_merged(own.get(name), extra, name)) for name in _OBJECTS}
    if offered and is_json and _refuses_tools_beside_json(model):
        raise InvalidToolConstraints(
            f"{model} refuses tools beside an answer in JSON, which Gemini 3 and later take; "
            'structured="tool" asks for the value by a tool'
        )
    head = {"tools": offered, "system": encoder.system_place}
    permanent = len(contents) if encoder.permanent is None else encoder.permanent
    for turn, what, why in state.unread:
        record.leave_out(turn, what, why)
    record.compare(transcript.sent_requests, head, state.rewrites, contents, permanent)
    for name, value in requested.items():
        if value is not None and value is not UNSET:
            fields[name] = encode(value)
    tools = _tools(offered, field(extra, "tools"))
    if tools:
        fields["tools"] = tools
    fields["contents"] = contents
    for name, value in extra.items():
        if name not in (*_OBJECTS, *map(snake, _OBJECTS), "tools"):
            fields.pop("systemInstruction" if name == "system_instruction" else name, None)
            if value is not UNSET:
                fields[name] = encode(without_unset(value))
    return fields


def _merged(own: Any, extra: Mapping[str, Any], name: str) -> Any:
    requested = extra.get(key_of(extra, name))
    return own if requested is None else with_setting(requested, own or {})


def with_setting(requested: Any, own: Mapping[str, Any]) -> Any:
    """A user's settings with ours beside them, in either spelling of their names."""
    if not isinstance(requested, Mapping):
        return requested
    return {
        **{name: v for name, v in own.items() if key_of(requested, name) not in requested},
        **requested,
    }


def _tools(offered: bytes, requested: Any) -> bytes:
    """The `tools`: what is offered, one entry with all functions, and the user's own tools."""
    if requested is UNSET:
        return b""
    if requested is None:
        return b"[" + offered + b"]" if offered else b""
    if not isinstance(requested, (list, tuple, Mapping)):
        return encode(requested)
    entries = [requested] if isinstance(requested, Mapping) else list(requested)
    functions: list[bytes] = []
    others: list[bytes] = []
    for entry in entries:
        declared = field(entry, "functionDeclarations") if offered else None
        if isinstance(declared, (list, tuple)):
            functions += [encode(one) for one in declared]
            key = key_of(entry, "functionDeclarations")
            entry = {name: value for name, value in entry.items() if name != key}
        if entry or declared is None:
            others.append(encode(entry))
    if functions and offered.endswith(b"]}"):
        offered = offered[:-2] + b"," + b",".join(functions) + b"]}"
    elif functions:
        others.insert(0, b'{"functionDeclarations":[%b]}' % b",".join(functions))
    return b"[" + b",".join([*([offered] if offered else []), *others]) + b"]"


def _asks_for_json(config: Any) -> bool:
    return bool(config) and field(config, "responseMimeType") == "application/json"


def _refuses_tools_beside_json(model: str | None) -> bool:
    """Whether functions beside an answer in JSON are known to be refused (C9)."""
    known = generation(model)
    return known is not None and known < (3, 0)


def encoder_of(transcript: Transcript, model: str | None) -> GeminiEncoder:
    """The encoded form of a transcript, as a model takes it; see `GeminiEncoder`."""
    _, key, make_encoder = encoding_for(model, None)
    return transcript.encoded(key, make_encoder)


@lru_cache(maxsize=256)
def encoding_for(
    model: str | None, host: str | None
) -> tuple[Dialect, str, Callable[[], GeminiEncoder]]:
    """What a model takes, the key that a transcript keeps its encoded form under, and what makes
    one; worked out once for all requests.
    """
    dialect = dialect_of(model)
    destination = destination_of(host, model)
    flags = "".join([str(int(flag)) for flag in dialect])
    return dialect, f"{API}:{flags}{destination.key}", partial(GeminiEncoder, dialect, destination)
