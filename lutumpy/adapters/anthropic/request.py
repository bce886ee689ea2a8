"""From a transcript and an offer to the fields of a request of the Anthropic Messages API, as JSON
bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lutumpy.adapters.anthropic.cache import FreeBreakpoints, mark_last_tool, mark_offered
from lutumpy.adapters.anthropic.containers import with_container_named
from lutumpy.adapters.anthropic.encode import MessagesEncoder
from lutumpy.adapters.anthropic.offer import (
    check_callers,
    check_deferred,
    check_forced,
    declare_late,
    own_breakpoints,
    tool_choice,
    tools,
)
from lutumpy.adapters.anthropic.prepared import (
    Dialect,
    dialect_of,
    encoder_of,
    note_headers,
    with_reminders_placed,
)
from lutumpy.adapters.cache_option import Cache
from lutumpy.adapters.prepared import Prepared, prepare
from lutumpy.adapters.request_record import RequestRecord
from lutumpy.adapters.sdk_body import Fields, add_extra
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.core.transcript import Transcript
from lutumpy.core.unset import without_unset
from lutumpy.plain.json_values import encode

__all__ = ["DEFAULT_MAX_TOKENS", "encoder_of", "request_fields"]

# The API requires a limit. This one is within what every model takes.
DEFAULT_MAX_TOKENS = 4096
_DEFAULT_LIMIT = encode(DEFAULT_MAX_TOKENS)


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
    """The fields of a request's body as JSON bytes, without `model`; `messages` last, since it
    grows.

    Args:
        model: For what depends on the model: forced choices, `role: system` inside the messages,
            prefill.
        cache: `auto` sets breakpoints of the prompt cache at the end of what later requests begin
            with.
        record: What the request says anew; it is filled in.
        extra: Further parameters; they win over what is here, but tools are beside the
            offered ones.

    Raises:
        TranscriptError: there is nothing to answer.
        InvalidToolConstraints: the API, or this model, is known to refuse the offer.
        DeclarationError: a tool asks for strict, and its schema has no strict form.
        PrefixChangedError: reasoning would be lost, and the record says to send nothing then.
    """
    fields: Fields = {
        "max_tokens": _DEFAULT_LIMIT if max_output_tokens is None else encode(max_output_tokens)
    }
    if temperature is not None:
        fields["temperature"] = encode(temperature)
    if stream:
        fields["stream"] = b"true"
    if transcript.dropped or transcript._state.open:
        transcript.refuse_unready()
    dialect, plain, blocks = dialect_of(model, record.host)
    with_blocks = cache is not None or dialect.needs_record
    encoder = transcript.encoded(
        plain if cache is None else blocks,
        lambda: MessagesEncoder(
            dialect.carriers, with_blocks, dialect.needs_record, dialect.destination
        ),
    )
    if encoder.state.reminders:
        encoder = with_reminders_placed(encoder)
    prepared = prepare(encoder, transcript, offering, record)
    encoder, declared = prepared.encoder, prepared.declared
    offered = b""
    if declared is not None and declared.specs:
        offered = fields["tools"] = tools(declared, bool(strict))
        if b'"defer_loading":true' in offered:
            check_deferred(declared, extra.get("tools"))
    if offering is not None and offering.specs and "tool_choice" not in extra:
        choice = _checked_choice(offering, model, extra)
        # No choice is taken without tools, and messages bring theirs beside none.
        if choice is not None and (offered or extra.get("tools") or offering.mode != "auto"):
            fields["tool_choice"] = encode(choice)
    if prepared.effort is not None:
        extra = _with_effort(prepared.effort, extra)
    beside = _encode_beside(extra) if "tools" in extra or "system" in extra else b""
    if encoder.state.bound.signed:
        beginning = _bound_beginning(offered + beside, encoder)
        encoder = prepared.leave_out_misfits(beginning, binds=dialect.binds)
    listed = offered
    at_message = at_system = None
    if cache is not None:
        at_message, at_system, listed, extra = _place_breakpoints(encoder, declared, offered, extra)
        if offered:
            fields["tools"] = listed
    late = [*encoder.state.declared, *prepared.closing.declared]
    if late:
        fields["tools"] = _with_late_tools(listed, late)
    if system := encoder.system.write(at_system):
        fields["system"] = system
    if container := encoder.container:
        fields["container"] = container
        extra = with_container_named(extra, container)
    messages = encoder.messages(dialect.prefill, at_message)
    if prepared.closing.entry:
        messages.append(prepared.closing.entry)
    _note_what_is_sent(prepared, messages, at_message, offered, beside, record, dialect)
    if encoder.state.places or b"" in messages:
        messages = [message for message in messages if message]
    if encoder.parts.depends_on_request:
        messages = encoder.parts.fit(
            messages, _declared_names(declared, extra), _asks_for_format(extra), dialect.binds
        )
    fields["messages"] = messages
    add_extra(fields, extra)
    return fields


def _checked_choice(
    offering: ToolOffering, model: str | None, extra: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The `tool_choice` of an offer; `None` where the API chooses like that by itself. Raises
    `InvalidToolConstraints` as `request_fields` does.
    """
    choice = tool_choice(offering)
    if choice is not None:
        check_forced(offering, model, extra)
        check_callers(offering, choice, extra.get("tools"))
    return choice


def _with_late_tools(listed: bytes, late: Sequence[ToolSpec]) -> bytes:
    """The list of tools, and behind it those that only a message of the conversation offers."""
    entries = [listed[1:-1]] if listed else []
    return b"[%b]" % b",".join([*entries, *declare_late(late)])


def _note_what_is_sent(
    prepared: Prepared[MessagesEncoder],
    messages: list[bytes],
    at_message: int | None,
    offered: bytes,
    beside: bytes,
    record: RequestRecord,
    dialect: Dialect,
) -> None:
    """Note in the record what this request holds, and the headers that it needs.

    Args:
        prepared: The conversation.
        messages: All messages of the request.
        at_message: The index of the one with a breakpoint of the prompt cache, which isn't noted.
        offered: The offered tools as JSON.
        beside: What the user's own parameters put before the messages.
        record: It is filled in.
        dialect: What the model takes.
    """
    encoder = prepared.encoder
    unmarked = messages
    if at_message is not None:
        unmarked = messages.copy()
        unmarked[at_message] = encoder.entries[at_message]
    head = {"tools": offered, "system": encoder.system.place}
    permanent = None if encoder.stable is None else encoder.stable[1]
    prepared.finish(unmarked, permanent, head, lambda: _bound_beginning(offered + beside, encoder))
    state = encoder.state
    if state.headers or prepared.closing.headers or state.reminders or dialect.headers:
        note_headers(prepared, record, dialect)


def _with_effort(effort: str, extra: Mapping[str, Any]) -> Mapping[str, Any]:
    """The user's parameters with this effort, unless they say another one."""
    config = extra.get("output_config") or {}
    return {**extra, "output_config": {"effort": effort, **config}}


def _encode_beside(extra: Mapping[str, Any]) -> bytes:
    """What the user's own parameters put before the messages."""
    own = {name: extra[name] for name in ("tools", "system") if name in extra}
    return encode(without_unset(own))


class _Breakpoints(NamedTuple):
    """Where a request ends what later ones begin with.

    Attributes:
        at_message: The index of the message.
        at_system: The index of the block of the system.
        listed: The offered tools as JSON, the last one marked where they are the place.
        extra: The user's parameters, the last of their tools marked where those are the place.
    """

    at_message: int | None
    at_system: int | None
    listed: bytes
    extra: Mapping[str, Any]


def _place_breakpoints(
    encoder: MessagesEncoder,
    declared: ToolOffering | None,
    offered: bytes,
    extra: Mapping[str, Any],
) -> _Breakpoints:
    """Spend the breakpoints that the user's own ones leave, the longest prefix first: it saves
    most.
    """
    own_marks = own_breakpoints(declared) if b'"cache_control"' in offered else ()
    free = FreeBreakpoints(extra, encoder.breakpoints, own_marks)
    at_message = encoder.end_of_messages() if free.at("messages") else None
    if at_message is not None:
        free.take()
    at_system = encoder.end_of_system() if free.at("system") else None
    if at_system is not None:
        free.take()
    if free.at("tools"):
        if (marked := mark_last_tool(extra.get("tools"))) is not None:
            extra = {**extra, "tools": marked}
        elif offered:
            offered = mark_offered(offered)
    return _Breakpoints(at_message, at_system, offered, extra)


def _bound_beginning(offered: bytes, encoder: MessagesEncoder) -> bytes:
    """What comes before the messages, without marks of the cache."""
    return offered + b"\n" + encoder.system.write()


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
