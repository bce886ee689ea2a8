"""What the messages of Chat Completions may hold at a host: the fields of its schema, and its own.

Sources: OpenAI's API description of an assistant's message, and the facts of each host
(`rules/host_facts.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lutumpy.rules.host_facts import HostFacts
from lutumpy.rules.problem import Problem, is_object, items, text

__all__ = [
    "CALL_KEYS",
    "MESSAGE_KEYS",
    "PART_TYPES",
    "check_host",
    "check_host_parameters",
    "find_sealed",
]

MESSAGE_KEYS = frozenset({"role", "content", "refusal", "name", "tool_calls", "function_call"})
"""The fields of an assistant's message that every host of the API knows. Its `audio` names what the
host has stored.
"""

CALL_KEYS = frozenset({"id", "type", "function", "custom"})
"""The fields of a call in it."""

PART_TYPES = frozenset({"text", "refusal"})
"""The types of parts in its content."""


def check_host(messages: Any, facts: HostFacts) -> list[Problem]:
    """What a host is known to refuse in the messages, beside what its API refuses.

    Whether it wants reasoning depends on its model and mode, so that is refused by some.

    Args:
        messages: The `messages` of a request.
        facts: What is known of the host.
    """
    found: list[Problem] = []
    known = MESSAGE_KEYS | {"audio", "prefix", facts.reasoning_field}
    for index, message in enumerate(items(messages)):
        if not is_object(message) or message.get("role") != "assistant":
            continue
        refusal = facts.unknown_field
        if refusal is not None:
            for key in message:
                if key not in known:
                    where = f"messages[{index}].{key}"
                    found.append(
                        Problem(
                            "chat.host_field",
                            where,
                            refusal.say(index, key),
                            "refused",
                            status=refusal.status,
                            code=refusal.code,
                        )
                    )
        found += _check_parts(index, message.get("content"), facts)
        need, field = facts.missing_reasoning, facts.reasoning_field
        if need is not None and field and message.get("tool_calls") and field not in message:
            found.append(
                Problem(
                    "chat.host_reasoning",
                    f"messages[{index}]",
                    need.say(index, field),
                    "some",
                    status=need.status,
                    code=need.code,
                )
            )
    return found


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
    details of reasoning, and signatures of thoughts.
    """
    for index, message in enumerate(messages):
        if not is_object(message):
            continue
        for number, detail in enumerate(items(message.get("reasoning_details"))):
            if is_object(detail):
                for key in ("signature", "data"):
                    if seal := text(detail.get(key)):
                        yield f"messages[{index}].reasoning_details[{number}].{key}", seal
        where = f"messages[{index}]"
        yield from _find_signatures(where, message)
        for number, call in enumerate(items(message.get("tool_calls"))):
            if is_object(call):
                yield from _find_signatures(f"{where}.tool_calls[{number}]", call)


def _find_signatures(where: str, holder: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Signatures of thoughts beside a message or a call."""
    if seal := text(holder.get("thought_signature")):
        yield f"{where}.thought_signature", seal
    extra = holder.get("extra_content")
    for inner in extra.values() if is_object(extra) else ():
        if is_object(inner) and (seal := text(inner.get("thought_signature"))):
            yield f"{where}.extra_content", seal
