"""From a transcript and an offer to the fields of a Responses request, as JSON bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from lutumpy.adapters.destination import Destination, destination_of
from lutumpy.adapters.openai.offer import (
    TextShape,
    ToolKind,
    ToolRendering,
    offer_fields,
    offer_key,
    text_description,
    tool_list,
    tools_beside,
)
from lutumpy.adapters.openai.responses.carriers import (
    Carriers,
    ResponsesSpelling,
    carriers_of,
    format_of,
)
from lutumpy.adapters.openai.responses.encode import (
    API,
    BINDS_ONLY,
    NO_CARRIERS,
    ResponsesEncoder,
)
from lutumpy.adapters.openai.responses.tool_search import declared_offer, search_tool
from lutumpy.adapters.prepared import Prepared, in_place, note_reminders, prepare
from lutumpy.adapters.request_record import RequestRecord
from lutumpy.adapters.sdk_body import Fields, add_extra
from lutumpy.adapters.settings_keeper import record_settings
from lutumpy.adapters.tool_lists import listed_tools, refuse_tools
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.core.transcript import Transcript
from lutumpy.errors import InvalidToolConstraints, Problem
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode
from lutumpy.rules.host_facts import HostFacts
from lutumpy.rules.openai.custom_tools import takes_custom_tools
from lutumpy.rules.openai.models import HOST
from lutumpy.rules.openai.responses.tools import NAMED_CHOICES, check_deferred, check_tools
from lutumpy.rules.openai.tool_settings import RESPONSES_TOOL_SETTINGS

__all__ = ["encoding_for", "responses_fields", "responses_tools"]

# The API description has this type of tool, and no choice of it.
_CHOOSES_LOCAL_SHELL = b'{"type":"local_shell"}'


def responses_fields(
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
    custom_tools: bool | None = None,
    host: HostFacts | None = None,
) -> Fields:
    """The fields of a request without `model`, as ready JSON by name."""
    if transcript.dropped or transcript._state.open:
        transcript.refuse_unready()
    carriers, key, make_silent = encoding_for(record.host, record.model, host)
    if offer is not None and offer.has_late_tools:
        offer = _offer_with_late(offer, carriers, extra)
    text_shape: TextShape | None = None
    if carriers.tools or (offer is not None and offer.has_text_tools):
        text_shape = _spell_text_tool if takes_custom_tools(custom_tools, model) else None
    if carriers.tools:
        destination = destination_of(record.host, record.model, host)
        encoder = _speaking_encoder(transcript, destination, carriers, strict, text_shape)
    else:
        encoder = transcript.encoded(key, make_silent)
    encoder.state.turns = encoder.turns  # it is told by turn what was changed of earlier items
    prepared: Prepared[ResponsesEncoder] | None = None
    # What a search finds changes the list of tools, so that says all there is.
    if carriers.tools and not (offer is not None and offer.deferred):
        prepared = prepare(encoder, transcript, offer, record)
        encoder = prepared.encoder
        tools = _narrowed_tools(prepared, offer, strict, text_shape, extra, record)
        if record.output is not prepared.output:
            extra = _with_format_of_base(record.output, prepared.output, extra or {})
    else:
        tools = _offered_tools(encoder, offer, strict, text_shape, extra, record)
    if "tools" in tools:
        if model is not None and model.startswith("ft:"):
            listed = json_values.decode(tools["tools"])
            refuse_tools(check_tools({"tools": listed, "model": model}), "OpenAI")
        if b'"defer_loading":true' in tools["tools"]:
            _refuse_without_search(tools["tools"], extra or {})
    if encoder.state.bound.signed:
        if prepared is None:
            prepared = in_place(encoder, transcript, record)
        beginning = _bound_beginning(tools, extra)
        encoder = prepared.leave_out_misfits(beginning, binds=carriers.binds)
    entries = encoder.answerable()
    if prepared is not None and prepared.closing.entry:
        entries.append(prepared.closing.entry)
    instructions = encoder.instructions
    head = {"tools": tools.get("tools", b"")}
    if carriers.instructions:
        instructions = _instructions(encoder)
    else:
        head["instructions"] = instructions
    state = encoder.state
    kept = len(encoder.entries)
    if carriers.binds:
        bound = entries.copy()  # what a provider parameter changes afterwards isn't seen there
        asked = extra
        record.seal = encoder.seal
        record.prefix = lambda: state.bound.digest(_bound_beginning(tools, asked), bound, kept)
        record.turns = lambda: state.bound.turns_by_id(bound)
    for turn, what, why in encoder.left_out:
        record.leave_out(turn, what, why)
    permanent = kept if encoder.permanent is None else encoder.permanent
    record.compare(transcript.sent_requests, head, state.rewrites, entries, permanent)
    # Only what was rewritten has left an empty place.
    is_whole = not state.rewrites or b"" not in entries
    fields: Fields = {"input": entries if is_whole else [entry for entry in entries if entry]}
    if instructions:
        fields["instructions"] = instructions
    fields.update(tools)
    if temperature is not None:
        fields["temperature"] = encode(temperature)
    if max_output_tokens is not None:
        fields["max_output_tokens"] = encode(max_output_tokens)
    if stream:
        fields["stream"] = b"true"
    effort = record.effort if prepared is None else prepared.effort
    if effort is not None:
        extra = _with_effort(effort, extra or {})
    if extra:
        add_extra(fields, extra)
    return fields


def _with_effort(effort: str, extra: Mapping[str, Any]) -> Mapping[str, Any]:
    """The user's parameters with this effort, unless they say another one."""
    given = extra.get("reasoning")
    own = {"effort": effort}
    return {**extra, "reasoning": {**own, **given} if given else own}


@lru_cache(maxsize=256)
def encoding_for(
    host: str | None, model: str | None, facts: HostFacts | None
) -> tuple[Carriers, str, Callable[[], ResponsesEncoder]]:
    """What a model takes at its host; the key under which a transcript keeps its encoded form for
    that; and a function that makes an encoder without settings. Worked out once for all requests.

    Args:
        host: The authority of its address.
        model: The model that is asked.
        facts: What is known of the host; by its address if omitted.
    """
    destination = destination_of(host, model, facts)
    carriers = carriers_of(model, host or HOST)
    silent = BINDS_ONLY if carriers.binds else NO_CARRIERS
    key = f"{API}{destination.key}"
    if carriers.open_calls:
        silent, key = silent._replace(open_calls=True), f"{key}+open"
    return carriers, key, partial(ResponsesEncoder, destination, silent)


def _offer_with_late(
    offer: ToolOffering, carriers: Carriers, extra: Mapping[str, Any] | None
) -> ToolOffering:
    """The offer as this model gets it: one that isn't known to take `async` isn't told (rule LR7).

    Raises:
        InvalidToolConstraints: a late tool may be called by programs, or parallel calls are made by
            several agents.
    """
    if not carriers.open_calls:
        return offer.waiting()
    sent = offer.specs if offer.stable_specs is None else offer.stable_specs
    late = [spec for spec in (*sent, *offer.deferred) if spec.late]
    for spec in late:
        callers = spec.provider.get(API, {}).get("allowed_callers") or ()
        if "programmatic" in callers:
            raise InvalidToolConstraints(
                f"{spec.name!r} may be late, and so can't be called by programs "
                "(allowed_callers); nothing was sent"
            )
    if late and offer.parallel and extra and extra.get("multi_agent"):
        raise InvalidToolConstraints(
            f"{late[0].name!r} may be late, which goes with several agents only without parallel "
            "calls: parallel=False; nothing was sent"
        )
    return offer


def _speaking_encoder(
    transcript: Transcript,
    destination: Destination,
    carriers: Carriers,
    strict: bool | None,
    text_shape: TextShape | None,
) -> ResponsesEncoder:
    """The encoded form whose items say changes of settings."""
    one = ToolRendering(API, _spell_tool, text_shape, RESPONSES_TOOL_SETTINGS, bool(strict))
    return transcript.encoded(
        f"{offer_key(API, strict, text_shape)}+said{destination.key}",
        lambda: ResponsesEncoder(
            destination, carriers, ResponsesSpelling(carriers, one.tool_bytes)
        ),
    )


def _narrowed_tools(
    prepared: Prepared[ResponsesEncoder],
    offer: ToolOffering | None,
    strict: bool | None,
    text_shape: TextShape | None,
    extra: Mapping[str, Any] | None,
    record: RequestRecord,
) -> dict[str, bytes]:
    """The part of a request that says which tools there are: those of the base stay, items bring
    further ones, and the choice says which of them may be called.
    """
    state, declared = prepared.encoder.state, prepared.declared
    brought = [*state.appended]
    if prepared.closing.entry and record.settings is not None:
        brought += [spec.name for spec in state.undeclared(record.settings)]
    if (declared is None or declared is offer) and not brought:
        return {} if offer is None else _fields_of(offer, strict, text_shape, extra, None, ())
    asked = ToolOffering() if offer is None else offer
    fields = _fields_of(asked, strict, text_shape, extra, declared, brought)
    deferred = [
        {"type": "function", "name": spec.name, "defer_loading": True}
        for spec in asked.specs
        if spec.name in brought and _is_deferred_function(spec)
    ]
    if deferred:
        _refuse_without_search(fields.get("tools", b"[]"), extra or {}, deferred)
    return fields


def _is_deferred_function(spec: ToolSpec) -> bool:
    settings = spec.provider.get(API, {})
    return settings.get("defer_loading") is True and "type" not in settings


def _offered_tools(
    encoder: ResponsesEncoder,
    offer: ToolOffering | None,
    strict: bool | None,
    text_shape: TextShape | None,
    extra: Mapping[str, Any] | None,
    record: RequestRecord,
) -> dict[str, bytes]:
    """The same where no item says a change: the tools of this turn, and what a search has found of
    those that are deferred.
    """
    in_force = encoder.in_force
    is_same = offer is in_force.same_as and record.output is in_force.output
    if not is_same or record.effort != in_force.effort:
        record_settings(record, in_force, offer)
    if encoder.state.reminders:
        note_reminders(record, encoder.state)
    if offer is None:
        return {}
    if not offer.deferred:
        return _fields_of(offer, strict, text_shape, extra, None, ())
    declared = declared_offer(offer, encoder.loaded)
    tools: dict[str, bytes] = {}
    if declared.specs:
        tools = _fields_of(declared, strict, text_shape, extra, None, ())
    _add_search(tools, offer)
    return tools


def _fields_of(
    offer: ToolOffering,
    strict: bool | None,
    text_shape: TextShape | None,
    extra: Mapping[str, Any] | None,
    declared: ToolOffering | None,
    brought: Sequence[str],
) -> dict[str, bytes]:
    fields = offer_fields(
        offer,
        API,
        _spell_tool,
        _check_tools,
        strict,
        _spell_choice,
        text_shape if (declared or offer).has_text_tools or offer.has_text_tools else None,
        RESPONSES_TOOL_SETTINGS,
        _spell_allowed,
        _choices_of(extra) if extra and "tools" in extra else (),
        declared,
        brought,
    )
    if fields.get("tool_choice") == _CHOOSES_LOCAL_SHELL:
        fields["tool_choice"] = encode(_spell_allowed("required", [{"type": "local_shell"}]))
    return fields


def _with_format_of_base(
    asked: OutputSpec | None, base: OutputSpec | None, extra: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The parameters with the output format that every request of this conversation has; an item
    says which one is in force. What the user says there himself stays.
    """
    given: dict[str, Any] = dict(extra.get("text") or {})
    own = given.get("format")
    if own is not None and (asked is None or own != format_of(asked)):
        return extra
    given.pop("format", None)
    if base is not None:
        given["format"] = format_of(base)
    rest = {name: value for name, value in extra.items() if name != "text"}
    return {**rest, "text": given} if given else rest


def _bound_beginning(tools: Mapping[str, bytes], extra: Mapping[str, Any] | None) -> bytes:
    """What reasoning is bound to before the input: the tools, and the output format."""
    found = tools.get("tools", b"")
    if not extra:
        return found
    text = extra.get("text")
    output = text.get("format") if isinstance(text, Mapping) else None
    beside = extra.get("tools")
    return found + encode([beside if isinstance(beside, (list, tuple)) else None, output])


def _instructions(encoder: ResponsesEncoder) -> bytes:
    """The `instructions` of a request where they come after the input: what is for this turn
    alone is among them.
    """
    texts = encoder.state.reminders
    if not texts:
        return encoder.instructions
    read = [json_values.decode(encoder.instructions)] if encoder.instructions else []
    return encode("\n\n".join([*read, *texts]))


def responses_tools(
    offer: ToolOffering, strict: bool | None, custom_tools: bool | None
) -> list[dict[str, Any]]:
    """The `tools` of a request alone; of deferred ones, what a search brings is not among them."""
    text_shape = _spell_text_tool if takes_custom_tools(custom_tools, None) else None
    if offer.has_late_tools:
        offer = offer.waiting()  # no model is named

    def make() -> list[dict[str, Any]]:
        search = search_tool(offer)
        declared = offer
        if search is not None:
            declared = declared_offer(offer, {spec.name for spec in offer.deferred})
        tools = tool_list(
            declared, API, _spell_tool, _check_tools, strict, text_shape, RESPONSES_TOOL_SETTINGS
        )
        return tools if search is None else [search, *tools]

    return listed_tools(offer, offer_key(API, strict, text_shape), make)


def _add_search(fields: dict[str, bytes], offer: ToolOffering) -> None:
    """Put the declaration of the search before the other tools of a request."""
    search = search_tool(offer)
    if search is None:
        return
    others = fields.get("tools", b"[]")[1:-1]
    fields["tools"] = b"[%b]" % b",".join([data for data in (encode(search), others) if data])
    if offer.mode == "required":
        fields["tool_choice"] = b'"required"'
    if not offer.parallel:
        fields["parallel_tool_calls"] = b"false"


def _spell_tool(spec: ToolSpec, schema: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    # Without `strict`, the server makes the schema strict where it can [OpenAI's documentation].
    tool: dict[str, Any] = {
        "type": "function",
        "name": spec.name,
        "parameters": schema,
        "strict": strict,
    }
    if spec.description:
        tool["description"] = spec.description
    if spec.late:
        tool["async"] = True
    return tool


def _spell_text_tool(spec: ToolSpec) -> dict[str, Any]:
    tool: dict[str, Any] = {"type": "custom", "name": spec.name, "format": {"type": "text"}}
    if description := text_description(spec):
        tool["description"] = description
    if spec.late:
        tool["async"] = True
    wanted = None if spec.text is None else spec.text.format
    if wanted is not None:
        tool["format"] = {
            "type": "grammar",
            "syntax": wanted.syntax,
            "definition": wanted.definition,
        }
    return tool


def _check_tools(body: Mapping[str, Any]) -> list[Problem]:
    return check_tools(body)


def _refuse_without_search(
    tools: bytes, extra: Mapping[str, Any], brought: Sequence[dict[str, Any]] = ()
) -> None:
    """Raise for deferred tools, also those that items bring, that nothing could find (rule C9)."""
    beside = extra.get("tools")
    offered = [*json_values.decode(tools), *brought]
    all_tools = [*offered, *beside] if isinstance(beside, (list, tuple)) else offered
    refuse_tools(check_deferred({"prompt": extra.get("prompt"), "tools": all_tools}), "OpenAI")


def _spell_choice(name: str, kind: ToolKind) -> dict[str, Any]:
    return {"type": kind, "name": name} if kind in NAMED_CHOICES else {"type": kind}


def _choices_of(extra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tools of `extra` as a choice names them [API description]: by type, with a label or a
    name where the type has one.
    """
    keys = ("type", "server_label", "name")
    return [{key: tool[key] for key in keys if key in tool} for tool in tools_beside(extra)]


def _spell_allowed(mode: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": tools}
