"""From a transcript and an offer to the fields of a request of Converse, as JSON bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.bedrock.cache import POINT, FreePoints
from lutumpy.adapters.bedrock.decode import API
from lutumpy.adapters.bedrock.encode import ConverseEncoder, dialect_of
from lutumpy.adapters.bedrock.offer import PLACEHOLDER, tool_choice, tools
from lutumpy.adapters.cache_option import Cache
from lutumpy.adapters.request_record import RequestRecord
from lutumpy.adapters.sdk_body import Fields
from lutumpy.adapters.settings_keeper import record_settings
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.core.unset import UNSET, without_unset
from lutumpy.errors import InvalidToolConstraints
from lutumpy.plain.json_values import encode
from lutumpy.rules.bedrock.messages import thinking_of
from lutumpy.rules.bedrock.models import family, is_claude, takes_cache_points, takes_cached_tools

__all__ = ["check_forced", "encoder_of", "request_fields"]


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
    record: RequestRecord,
) -> Fields:
    """The fields of a request's body as JSON bytes, without the model, which stands in the path;
    `messages` last, since it grows.

    Args:
        model: For what depends on the model: reasoning, what stands beside results.
        stream: Changes nothing: a stream is another operation.
        cache: `auto` sets cache points at the end of what later requests begin with.
        record: What the request says anew; it is filled in.
        extra: Further parameters; they win over what stands here, but tools stand beside the
            offered ones, and settings beside ours.

    Raises:
        TranscriptError: there is nothing to answer.
        InvalidToolConstraints: the API, or this model, is known to refuse the offer.
        DeclarationError: a tool asks for strict, and its schema has no strict form.
    """
    settings: dict[str, Any] = {}
    if max_output_tokens is not None:
        settings["maxTokens"] = max_output_tokens
    if temperature is not None:
        settings["temperature"] = temperature
    if record.effort is not None:
        extra = _with_effort(record.effort, model, extra)
    requested = extra.get("inferenceConfig")
    fields: Fields = {}
    if settings and (requested is None or isinstance(requested, Mapping)):
        fields["inferenceConfig"] = encode(without_unset({**settings, **(requested or {})}))
    if transcript.dropped:
        transcript.refuse_dropped()
    encoder = encoder_of(transcript, model)
    record_settings(record, encoder.in_force, offering)
    system, messages = encoder.system(), encoder.messages()
    free = None
    if cache is not None and takes_cache_points(model) is not False:
        free = FreePoints(extra, messages, system)
        # The longest prefix first: it saves most.
        behind_text = takes_cached_tools(model) is False
        may_mark = "messages" not in extra and free.left > 0
        if may_mark and encoder.mark(messages, only_behind_text=behind_text):
            free.left -= 1
        if system and "system" not in extra and free.left > 0:
            marked = encoder.system(cached=True)
            free.left -= marked != system
            system = marked
    if system:
        fields["system"] = system
    cached = free is not None and free.left > 0 and takes_cached_tools(model) is not False
    config = _tool_config(offering, model, bool(strict), extra, encoder.holds_calls, cached)
    if config:
        fields["toolConfig"] = config
    fields["messages"] = messages
    for name, value in extra.items():
        if value is UNSET:
            fields.pop(name, None)
        elif not (name == "toolConfig" or (name == "inferenceConfig" and name in fields)):
            fields[name] = encode(without_unset(value))
    return fields


def _with_effort(effort: str, model: str | None, extra: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters with an effort, in the field of the model's maker: Converse has none of its
    own. What the user says there wins.
    """
    requested = extra.get("additionalModelRequestFields")
    if requested is not None and not isinstance(requested, Mapping):
        return extra
    own: dict[str, Any] = {"reasoning_effort": effort}
    if family(model) == "amazon":
        own = {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}}
    elif is_claude(model):
        config = (requested or {}).get("output_config") or {}
        own = {"output_config": {"effort": effort, **config}}
        requested = {
            name: value for name, value in (requested or {}).items() if name != "output_config"
        }
    return {**extra, "additionalModelRequestFields": {**own, **(requested or {})}}


def _tool_config(
    offering: ToolOffering | None,
    model: str | None,
    strict: bool,
    extra: Mapping[str, Any],
    needed: bool,
    cached: bool,
) -> bytes:
    """The `toolConfig`: the offered tools, the user's own beside them, and the choice.

    Args:
        needed: There have to be tools: the history has calls.
        cached: A cache point stands behind the tools.
    """
    requested = extra.get("toolConfig")
    if requested is not None and not isinstance(requested, Mapping):
        return b"" if requested is UNSET else encode(requested)
    own = without_unset(requested or {})
    choice = None if offering is None else tool_choice(offering)
    if offering is not None and choice is not None and "toolChoice" not in own:
        check_forced(offering, model, extra)
        own["toolChoice"] = choice
    offered = tools(offering, strict) if offering is not None and offering.specs else b""
    beside = own.pop("tools", None)
    listed = list(beside) if isinstance(beside, (list, tuple)) else []
    if not offered and not listed and needed:
        listed = [PLACEHOLDER]
        own.pop("toolChoice", None)
    entries = [offered[1:-1]] if offered else []
    entries += [encode(tool) for tool in listed]
    ends_in_point = bool(listed) and isinstance(listed[-1], Mapping) and "cachePoint" in listed[-1]
    if entries and cached and not ends_in_point:
        entries.append(encode(POINT))
    if not entries:
        return encode(own) if own else b""
    pieces = [b'"tools":[' + b",".join(entries) + b"]"]
    pieces += [encode(name) + b":" + encode(value) for name, value in own.items()]
    return b"{" + b",".join(pieces) + b"}"


def check_forced(offering: ToolOffering, model: str | None, extra: Mapping[str, Any]) -> None:
    """Refuse what is known to be refused (rule C9).

    Raises:
        InvalidToolConstraints: Claude's thinking has a budget, which forbids a forced choice.
    """
    if offering.mode == "auto" or is_claude(model) is False:
        return
    if thinking_of(extra) == "enabled":
        raise InvalidToolConstraints(
            "a tool call can't be required while thinking is enabled with a budget: Claude refuses "
            "the two together; use adaptive thinking, or require nothing"
        )


def encoder_of(transcript: Transcript, model: str | None) -> ConverseEncoder:
    """The encoded form of a transcript, as a model takes it; see `ConverseEncoder`."""
    dialect = dialect_of(model)
    key = "".join([letter for letter, wanted in zip("asb", dialect, strict=True) if wanted])
    return transcript.encoded(f"{API}:{key}", lambda: ConverseEncoder(dialect))
