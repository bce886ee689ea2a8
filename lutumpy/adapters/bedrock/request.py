"""From a transcript and an offer to the fields of a request of Converse, as JSON bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from lutumpy.adapters.bedrock.cache import POINT, FreePoints
from lutumpy.adapters.bedrock.decode import API
from lutumpy.adapters.bedrock.encode import ConverseEncoder, Dialect, dialect_of
from lutumpy.adapters.bedrock.offer import PLACEHOLDER, tool_choice, tools
from lutumpy.adapters.cache_option import Cache
from lutumpy.adapters.destination import destination_of
from lutumpy.adapters.prepared import prepare
from lutumpy.adapters.request_record import RequestRecord
from lutumpy.adapters.sdk_body import Fields
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.core.unset import UNSET, without_unset
from lutumpy.errors import InvalidToolConstraints
from lutumpy.plain.json_values import encode
from lutumpy.rules.bedrock.messages import thinking_of
from lutumpy.rules.bedrock.models import family, is_claude, takes_cache_points, takes_cached_tools

__all__ = ["check_forced", "encoder_of", "request_fields"]

_PLACEHOLDER = encode(PLACEHOLDER)


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
    """The fields of a request's body as JSON bytes, without the model, which is in the path;
    `messages` last, since it grows.

    Args:
        model: For what depends on the model: reasoning, what is beside results.
        stream: Changes nothing: a stream is another operation.
        cache: `auto` sets cache points at the end of what later requests begin with.
        record: What the request says anew; it is filled in.
        extra: Further parameters; they win over what is here, but tools are beside the
            offered ones, and settings beside ours.

    Raises:
        TranscriptError: there is nothing to answer.
        InvalidToolConstraints: the API, or this model, is known to refuse the offer.
        DeclarationError: a tool asks for strict, and its schema has no strict form.
        PrefixChangedError: reasoning would be lost, and the record says to send nothing then.
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
    if transcript.dropped or transcript._state.open:
        transcript.refuse_unready()
    dialect, key, make_encoder = encoding_for(model, record.host)
    prepared = prepare(transcript.encoded(key, make_encoder), transcript, offering, record)
    encoder, declared = prepared.encoder, prepared.declared
    listed = _listed(declared, bool(strict), extra, encoder.holds_calls)
    if encoder.state.bound.signed:
        beginning = _bound_beginning(listed, encoder)
        encoder = prepared.leave_out_misfits(beginning, binds=dialect.binds)
    system, messages = encoder.system(), encoder.messages()
    if prepared.closing.entry:
        messages.append(prepared.closing.entry)
    head = {"tools": listed, "system": encoder.system_place}
    prepared.finish(
        messages.copy(), encoder.permanent, head, lambda: _bound_beginning(listed, encoder)
    )
    cached = False
    if cache is not None and takes_cache_points(model) is not False:
        system, cached = _place_points(encoder, messages, system, model, extra)
    if system:
        fields["system"] = system
    config = _tool_config(offering, listed, model, extra, cached)
    if config:
        fields["toolConfig"] = config
    # Only what was rewritten has left an empty place.
    if encoder.state.rewrites:
        messages = [message for message in messages if message]
    if encoder.shows_images and dialect.may_be_claude:
        from lutumpy.adapters.bedrock.many_images import fit_images  # few conversations show any

        messages = fit_images(messages, dialect.binds)
    fields["messages"] = messages
    for name, value in extra.items():
        if value is UNSET:
            fields.pop(name, None)
        elif not (name == "toolConfig" or (name == "inferenceConfig" and name in fields)):
            fields[name] = encode(without_unset(value))
    return fields


def _place_points(
    encoder: ConverseEncoder,
    messages: list[bytes],
    system: bytes,
    model: str | None,
    extra: Mapping[str, Any],
) -> tuple[bytes, bool]:
    """Spend the cache points that the user's own ones leave, the longest prefix first: it saves
    most.

    Args:
        encoder: The encoded conversation.
        messages: The messages of the request; one of them may get a point.
        system: Its system.
        model: Its model.
        extra: The user's parameters.

    Returns:
        The system, with a point where one was left; and whether the tools get one.
    """
    free = FreePoints(extra, messages, system)
    tools_are_cached = takes_cached_tools(model) is not False
    may_mark = "messages" not in extra and free.left > 0
    if may_mark and encoder.mark(messages, only_behind_text=not tools_are_cached):
        free.left -= 1
    if system and "system" not in extra and free.left > 0:
        marked = encoder.system(cached=True)
        free.left -= marked != system
        system = marked
    return system, free.left > 0 and tools_are_cached


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


def _listed(
    declared: ToolOffering | None, strict: bool, extra: Mapping[str, Any], needed: bool
) -> tuple[bytes, ...]:
    """The tools of a request, without points of the cache that are ours: the declared ones as one,
    and the user's own beside them.

    Args:
        declared: The tools that are declared.
        strict: Tools that leave it open are strict.
        extra: The user's parameters.
        needed: There have to be tools: the history has calls.
    """
    requested = extra.get("toolConfig")
    if requested is not None and not isinstance(requested, Mapping):
        return ()
    entries: list[bytes] = []
    if declared is not None and declared.specs:
        entries.append(tools(declared, strict)[1:-1])
    beside = without_unset(requested or {}).get("tools")
    if isinstance(beside, (list, tuple)):
        entries += [encode(tool) for tool in beside]
    return (_PLACEHOLDER,) if needed and not entries else tuple(entries)


def _bound_beginning(listed: tuple[bytes, ...], encoder: ConverseEncoder) -> bytes:
    """What comes before the messages."""
    return b",".join(listed) + b"\n" + encoder.system()


def _tool_config(
    offering: ToolOffering | None,
    listed: tuple[bytes, ...],
    model: str | None,
    extra: Mapping[str, Any],
    cached: bool,
) -> bytes:
    """The `toolConfig`: the tools, and the choice.

    Args:
        offering: What the model may call.
        listed: The tools of the request.
        model: Its model.
        extra: The user's parameters.
        cached: A cache point comes after the tools.
    """
    requested = extra.get("toolConfig")
    if requested is not None and not isinstance(requested, Mapping):
        return b"" if requested is UNSET else encode(requested)
    own = without_unset(requested or {})
    choice = None if offering is None else tool_choice(offering)
    if offering is not None and choice is not None and "toolChoice" not in own:
        check_forced(offering, model, extra)
        own["toolChoice"] = choice
    own.pop("tools", None)
    if listed == (_PLACEHOLDER,):
        own.pop("toolChoice", None)
    entries = list(listed)
    ends_in_point = bool(listed) and listed[-1].startswith(b'{"cachePoint"')
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
    _, key, make_encoder = encoding_for(model, None)
    return transcript.encoded(key, make_encoder)


@lru_cache(maxsize=256)
def encoding_for(
    model: str | None, host: str | None
) -> tuple[Dialect, str, Callable[[], ConverseEncoder]]:
    """What a model takes, the key that a transcript keeps its encoded form under, and what makes
    one; worked out once for all requests.
    """
    dialect = dialect_of(model)
    destination = destination_of(host, model)
    flags = "".join([str(int(flag)) for flag in dialect])
    return (
        dialect,
        f"{API}:{flags}{destination.key}",
        partial(ConverseEncoder, dialect, destination),
    )
