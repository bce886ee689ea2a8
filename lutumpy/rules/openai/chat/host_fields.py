"""What the messages of Chat Completions may hold at a host: the fields of its schema, and its own.

Sources: OpenAI's API description of an assistant's message, and the facts of each host
(`rules/host_facts.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lutumpy.rules.host_facts import HostFacts
from lutumpy.rules.moves import Move
from lutumpy.rules.paths import path_of
from lutumpy.rules.problem import Problem, is_object, items, text

__all__ = [
    "CALL_KEYS",
    "MESSAGE_KEYS",
    "PART_TYPES",
    "check_host",
    "check_host_parameters",
    "check_move",
    "find_sealed",
    "seal_of_part",
]

MESSAGE_KEYS = frozenset({"role", "content", "refusal", "name", "tool_calls", "function_call"})
"""The fields of an assistant's message that every host of the API knows. Its `audio` names what the
host has stored.
"""

CALL_KEYS = frozenset({"id", "type", "function", "custom"})
"""The fields of a call in it."""

PART_TYPES = frozenset({"text", "refusal"})
"""The types of parts in its content."""

# OpenRouter's and LiteLLM's lists of reasoning, whose entries may be signed or encrypted.
_SIGNED_LISTS = ("reasoning_details", "thinking_blocks")


def check_host(messages: Any, facts: HostFacts) -> list[Problem]:
    """What a host is known to refuse in the messages, beside what its API refuses.

    Whether it wants reasoning depends on its model and mode, so that is refused by some.

    Args:
        messages: The `messages` of a request.
        facts: What is known of the host.
    """
    found: list[Problem] = []
    for index, message in _assistant_messages(messages):
        found += _check_fields(index, message, facts)
        found += _check_parts(index, message.get("content"), facts)
        found += _check_reasoning(index, message, facts)
    return found


def check_move(messages: Any, move: Move, found: list[Problem]) -> list[Problem]:
    """The problems of messages on their way to a host.

    Args:
        messages: The messages.
        move: Where they go, and whose they are.
        found: What breaks the rules of the API.

    Returns:
        Those that the host has as well, and its own: what it is known to refuse, and what is
        private to who said the messages, or sealed for that.
    """
    facts = move.facts
    kept = [one for one in found if not _is_own_part(one, messages, facts)]
    for index, message in _assistant_messages(messages):
        refused = _check_fields(index, message, facts) if move.is_named else []
        kept += refused
        if not move.is_own:
            known = {problem.position for problem in refused}
            private = _find_private(index, message, facts)
            kept += [problem for problem in private if problem.position not in known]
        if move.is_named:
            kept += _check_reasoning(index, message, facts)
    if move.is_own and not move.can_open:
        for where, _ in find_sealed(items(messages)):
            words = f"{where}: the signature could not be verified."
            kept.append(Problem("chat.sealed", where, words, "some"))
    return kept


def _assistant_messages(messages: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, message in enumerate(items(messages)):
        if is_object(message) and message.get("role") == "assistant":
            yield index, message


def _known_fields(facts: HostFacts) -> frozenset[str | None]:
    return MESSAGE_KEYS | {"audio", "prefix", facts.reasoning_field}


def _check_fields(index: int, message: Mapping[str, Any], facts: HostFacts) -> list[Problem]:
    """Fields that a host is known to refuse."""
    refusal = facts.unknown_field
    if refusal is None:
        return []
    known = _known_fields(facts)
    return [
        Problem(
            "chat.host_field",
            f"messages[{index}].{key}",
            refusal.say(index, key),
            "refused",
            status=refusal.status,
            code=refusal.code,
        )
        for key in message
        if key not in known
    ]


def _check_reasoning(index: int, message: Mapping[str, Any], facts: HostFacts) -> list[Problem]:
    """Calls without the reasoning that a host wants back with them."""
    need, field = facts.missing_reasoning, facts.reasoning_field
    if need is None or not field or not message.get("tool_calls") or field in message:
        return []
    return [
        Problem(
            "chat.host_reasoning",
            f"messages[{index}]",
            need.say(index, field),
            "some",
            status=need.status,
            code=need.code,
        )
    ]


def _is_own_part(problem: Problem, messages: Any, facts: HostFacts) -> bool:
    """Whether a problem is a kind of part that the host has beside the API's."""
    if problem.rule != "chat.parts" or not facts.own_parts:
        return False
    place = path_of(problem.position, messages)
    value = messages
    for step in place:
        value = value[step]
    return value in facts.own_parts if isinstance(value, str) else False


def _find_private(index: int, message: Mapping[str, Any], facts: HostFacts) -> list[Problem]:
    """What another host has said beside the API's schema; some hosts refuse it, each in words of
    its own.
    """
    known, where = {*MESSAGE_KEYS, facts.reasoning_field}, f"messages[{index}]"
    places = [(f"{where}.{key}", key) for key in message if key not in known]
    for number, call in enumerate(items(message.get("tool_calls"))):
        # The place of a call is told by its place.
        own = [key for key in call if key not in {*CALL_KEYS, "index"}] if is_object(call) else []
        places += [(f"{where}.tool_calls[{number}].{key}", key) for key in own]
    for number, part in enumerate(items(message.get("content"))):
        kind = part.get("type") if is_object(part) else None
        if isinstance(kind, str) and kind not in PART_TYPES | facts.own_parts:
            places.append((f"{where}.content[{number}]", kind))
    words = "only the host that said this message has '{}'"
    return [
        Problem("chat.host_field", place, f"{place}: {words.format(name)}", "some")
        for place, name in places
    ]


def _check_parts(index: int, content: Any, facts: HostFacts) -> list[Problem]:
    """Parts of a kind that only another host knows."""
    known = PART_TYPES | facts.own_parts
    found: list[Problem] = []
    for number, part in enumerate(items(content)):
        kind = part.get("type") if is_object(part) else None
        if isinstance(kind, str) and kind not in known:
            where = f"messages[{index}].content[{number}]"
            message = f"Invalid value: '{kind}'. Supported values are: 'text' and 'refusal'."
            found.append(Problem("chat.parts", where, message, "refused"))
    return found


def check_host_parameters(body: Mapping[str, Any], facts: HostFacts) -> list[Problem]:
    """The parameters of a request that a host is known to call by another name, or not to take.
    Only a host that refuses unknown fields refuses these.
    """
    refusal = facts.unknown_field
    if refusal is None:
        return []
    unknown = []
    if facts.limit_name != "max_completion_tokens" and body.get("max_completion_tokens"):
        unknown.append("max_completion_tokens")
    if not facts.stream_options and "stream_options" in body:
        unknown.append("stream_options")
    found: list[Problem] = []
    for key in unknown:
        message = f"body.{key}: Extra inputs are not permitted"
        found.append(
            Problem(
                "chat.host_parameter",
                key,
                message,
                "refused",
                status=refusal.status,
                code=refusal.code,
            )
        )
    return found


def find_sealed(messages: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Where messages hold what only who made it can open, and its seal: signed or encrypted
    reasoning, and signatures of thoughts.
    """
    for index, message in enumerate(messages):
        if not is_object(message):
            continue
        for field in _SIGNED_LISTS:
            for number, entry in enumerate(items(message.get(field))):
                for key in ("signature", "data") if is_object(entry) else ():
                    if seal := text(entry.get(key)):
                        yield f"messages[{index}].{field}[{number}].{key}", seal
        where = f"messages[{index}]"
        for number, part in enumerate(items(message.get("content"))):
            if seal := seal_of_part(part):
                yield f"{where}.content[{number}]", seal
        yield from _find_signatures(where, message)
        for number, call in enumerate(items(message.get("tool_calls"))):
            if is_object(call):
                yield from _find_signatures(f"{where}.tool_calls[{number}]", call)


def seal_of_part(part: Any) -> str | None:
    """The seal of a part of a content that holds reasoning, as Databricks' models sign them."""
    if not is_object(part) or part.get("type") not in ("reasoning", "thinking"):
        return None
    entries = [part, *items(part.get("summary")), *items(part.get("thinking"))]
    seals = (text(entry.get("signature")) for entry in entries if is_object(entry))
    return next(filter(None, seals), None)


def _find_signatures(where: str, holder: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Signatures of thoughts beside a message or a call."""
    if seal := text(holder.get("thought_signature")):
        yield f"{where}.thought_signature", seal
    extra = holder.get("extra_content")
    for inner in extra.values() if is_object(extra) else ():
        if is_object(inner) and (seal := text(inner.get("thought_signature"))):
            yield f"{where}.extra_content", seal
