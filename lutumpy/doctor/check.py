"""The check of a transcript in a provider's JSON: one way to the rules of every API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lutumpy.apis import Api, serving
from lutumpy.errors import Problem
from lutumpy.rules.encoding import encodable
from lutumpy.rules.hosts import is_compatible
from lutumpy.rules.nesting import check_nesting
from lutumpy.rules.paths import path_of
from lutumpy.rules.shape import ApiRules, HistoryContext

__all__ = ["check_messages", "plain_json"]


def check_messages(
    api: Api,
    messages: Any,
    *,
    tools: Sequence[Any] | None = None,
    server_held_prefix: bool = False,
    system: Any = None,
    model: str | None = None,
    thinking: str | None = None,
    compatible: bool = False,
    host: str | None = None,
) -> list[Problem]:
    """Every rule that a transcript breaks, with the provider's own words, in the order in which it would meet them.

    Nothing is sent and nothing changed, and no JSON makes it raise. The work is linear in the size of the messages. What is
    nested more than 300 levels deep is told (`nesting`), and no other rule looks into it.

    Args:
        api: The wire that the messages are for.
        messages: The list of messages (Chat, Messages) or input items (Responses): JSON values, or objects of the SDKs.
        tools: The request's tools, or their names, for calls of tools that it doesn't declare.
        server_held_prefix: The start of the conversation is at the server (`previous_response_id`, `conversation`, a
            `thread` that is continued), so a result may answer a call that is not here. Not for Chat.
        system: Anthropic's top-level `system`.
        model: The request's model, for what only some models refuse.
        thinking: The `type` of Anthropic's `thinking` parameter: `enabled`, `adaptive` or `disabled`.
        compatible: The host is another than the vendor: what only OpenAI or Anthropic is known to refuse has certainty `some`.
        host: The host's address (`api.groq.com`, a base URL) or name (`groq`, `compatible`), which says the same: `compatible`
            holds of every host but the vendor's own.

    Returns:
        The problems. Each has a `path` from the list of messages to the place; of one in `system` it begins with that word.

    Raises:
        ValueError: `api` is none of the three, or `host` is neither a name that is known nor an address.
    """
    rules: ApiRules = serving(api, "rules")
    compatible = compatible or (host is not None and is_compatible(api, host))
    entries = plain_json(messages)
    declared = plain_json(tools) if tools is not None else None
    if declared is not None and not isinstance(declared, list):
        declared = []
    prefix, position = rules.PREFIX, rules.SHAPE.position
    deep, entries = check_nesting(prefix, entries, position)
    deep_system, before = check_nesting(prefix, plain_json(system), "system.{}")
    declared = check_nesting(prefix, declared, "tools[{}]")[1]
    context = HistoryContext(declared, server_held_prefix, before, model, thinking, compatible)
    found = rules.check_history(entries, context)
    placed = [p if p.path else replace(p, path=path_of(p.position, entries)) for p in found]
    return [*deep, *[replace(p, path=("system", *p.path)) for p in deep_system], *placed]


def plain_json(value: Any) -> Any:
    """`value` as JSON values: lists, dictionaries and scalars; itself where it is that already.

    Objects of the SDKs (pydantic models) are dumped as they were sent; what is no JSON at all stays as it is, for the rules to
    tell. A list is a new one.
    """
    if isinstance(value, (list, tuple)):
        return [
            entry if type(entry) is dict and _is_plain(entry) else _converted(entry, 0)
            for entry in value
        ]
    return value if isinstance(value, str) or _is_plain(value) else _converted(value, 0)


def _is_plain(value: Any) -> bool:
    # What `json` writes may still hold tuples: the rules take them as arrays.
    return encodable(value)


_DEPTH = 200


def _converted(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (str, int, float)) or depth > _DEPTH:
        return value
    if isinstance(value, Mapping):
        return {key: _converted(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_converted(inner, depth + 1) for inner in value]
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        return value
    dumped = dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    return dumped if isinstance(dumped, (dict, list, str)) else value
