"""The check of a history in a provider's JSON: one way to the rules of every API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lutumpy.apis import Api, serving
from lutumpy.errors import Problem
from lutumpy.plain.sdk_bytes import MOST_LEVELS, SdkBytes
from lutumpy.rules.encoding import encodable, encodable_at_once
from lutumpy.rules.hosts import COMPATIBLE, host_name, is_compatible
from lutumpy.rules.nesting import check_nesting
from lutumpy.rules.paths import path_of
from lutumpy.rules.shape import ApiRules, HistoryContext

if TYPE_CHECKING:
    from lutumpy.core.turn_origin import TurnOrigin
    from lutumpy.rules.host_facts import HostFacts
    from lutumpy.rules.moves import Move

__all__ = ["check_messages", "find_move", "is_other_host", "plain_json"]


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
    host: str | HostFacts | None = None,
    origin: TurnOrigin | None = None,
    before: Mapping[str, Any] | None = None,
) -> list[Problem]:
    """Every rule that a history breaks, in the provider's own words and in the order of its checks.

    Nothing is sent and nothing changed, and no JSON makes it raise. The work is linear in the size
    of the messages. Values nested more than 300 levels deep are reported (`nesting`), and no other
    rule looks into them.

    Args:
        api: The API that the messages are for.
        messages: The list of messages (Chat Completions, Messages) or input items (Responses): JSON
            values, or objects of the SDKs.
        tools: The request's tools, or their names, for calls of tools that it doesn't declare.
        server_held_prefix: The start of the conversation is at the server (`previous_response_id`,
            `conversation`, a `thread` that is continued), so a result may answer a call that is not
            here. Not for Chat Completions.
        system: The top-level `system` of Messages.
        model: The request's model, for what only some models refuse.
        thinking: The `type` of the `thinking` parameter of Messages: `enabled`, `adaptive` or
            `disabled`.
        compatible: The host is not the vendor's: what only the vendor is known to refuse has the
            certainty `some`.
        host: The host's address (`api.groq.com`, a base URL) or name (`groq`, `compatible`), which
            says the same: `compatible` is true for every host but the vendor's own. What the host
            is known to refuse beside is found too, in its words. Facts of your own are taken in the
            place of a name.
        origin: Who said the turns of the model: then what the host would not get of them is found
            as well, what another host alone knows and what is sealed for it. Its `host` may be a
            name.
        before: The body of the request before this one, in the same conversation: then signed
            reasoning that no longer comes after what it was signed over is found, where `model`
            binds it (`refused` where that is enforced for everybody, `some` where the account
            decides, `discouraged` where it is taken away without an error); and else where the
            prompt cache starts again (`discouraged`). Without it nothing is claimed of that. Tools
            and system are taken to be the same where they aren't passed.

    Returns:
        The problems. Each has a `path` from the list of messages to the place; the path of one in
        `system` begins with that word.

    Raises:
        UnknownApiError: there is no such API.
        ValueError: `host`, or that of `origin`, is neither a known name nor an address.
    """
    rules: ApiRules = serving(api, "rules")
    compatible = compatible or is_other_host(api, host)
    move = find_move(api, host, model, origin)
    entries = plain_json(messages, rules.SHAPE.blob_keys)
    declared = plain_json(tools) if tools is not None else None
    if declared is not None and not isinstance(declared, list):
        declared = []
    prefix, position = rules.PREFIX, rules.SHAPE.position
    deep, entries = check_nesting(prefix, entries, position)
    deep_system, shallow_system = check_nesting(prefix, plain_json(system), "system.{}")
    declared = check_nesting(prefix, declared, "tools[{}]")[1]
    context = HistoryContext(
        declared, server_held_prefix, shallow_system, model, thinking, compatible, move
    )
    found = rules.check_history(entries, context)
    problems = list(deep)
    problems += [replace(problem, path=("system", *problem.path)) for problem in deep_system]
    for problem in found:
        path = problem.path or path_of(problem.position, entries)
        problems.append(problem if problem.path else replace(problem, path=path))
    if before is not None:
        sent = plain_json(before, rules.SHAPE.blob_keys)
        problems += _check_before(rules, sent, entries, tools, system, model)
    return problems


def _check_before(
    rules: ApiRules, before: Any, entries: Any, tools: Any, system: Any, model: str | None
) -> list[Problem]:
    from lutumpy.rules.changed_prefix import check_changed_prefix  # only where it is asked for

    if not isinstance(before, Mapping):
        return []
    shape = rules.SHAPE
    after = {**before, shape.messages_key: entries}
    if model is not None:
        after["model"] = model
    declared = plain_json(tools)
    # Tools may be given by their names alone, which says nothing of what they were.
    if isinstance(declared, list) and not any(isinstance(tool, str) for tool in declared):
        write = getattr(rules, "write_tools", lambda listed: {"tools": listed})
        after.update(write(declared))
    if system is not None and shape.system_key is not None:
        after[shape.system_key] = plain_json(system)
    named = after.get("model")
    return check_changed_prefix(rules, before, after, named if isinstance(named, str) else None)


def is_other_host(api: Api, host: str | HostFacts | None) -> bool:
    """Whether a host was named that isn't the vendor of the API.

    Raises:
        ValueError: It is neither a known name nor an address.
    """
    name = host if host is None or isinstance(host, str) else host.address or COMPATIBLE
    return name is not None and is_compatible(api, name)


def find_move(
    api: Api, host: str | HostFacts | None, model: str | None, origin: TurnOrigin | None
) -> Move | None:
    """Where a history goes and whose it is; `None` where neither is said.

    Raises:
        ValueError: A host is neither a known name nor an address.
    """
    if host is None and origin is None:
        return None
    from lutumpy.rules.host_facts import UNKNOWN_HOST, facts_of  # only where hosts are asked for
    from lutumpy.rules.moves import move_to

    if host is None or isinstance(host, str):
        name = None if host is None else host_name(host)
        name = None if name == COMPATIBLE else name
        facts = facts_of(name)
    else:
        name, facts = host.address or None, host
    by_host = origin.host if origin is not None else None
    by_host = None if by_host is None else host_name(by_host)
    return move_to(
        facts,
        name,
        model,
        by_host=by_host if origin is not None else name,
        by_model=origin.model if origin is not None else model,
        is_named=host is not None and facts is not UNKNOWN_HOST,
        is_vendor=host is None or not is_other_host(api, host),
    )


def plain_json(value: Any, blob_keys: frozenset[str] | None = frozenset()) -> Any:
    """`value` as JSON values: lists, dictionaries and scalars; itself where it is that already.

    Objects of the SDKs (pydantic models) are dumped as they were sent. Values that aren't JSON stay
    as they are, for the rules to report. A list is a new one.

    Args:
        value: Anything.
        blob_keys: Keys under which bytes are `SdkBytes`; `None` for every key.
    """
    if isinstance(value, (list, tuple)):
        if encodable_at_once(value):
            return [entry if type(entry) is dict else _convert(entry, 0) for entry in value]
        return [_plain_entry(entry, blob_keys) for entry in value]
    # What `json` can write may still hold tuples: the rules take them as arrays.
    if isinstance(value, str) or encodable(value):
        return value
    return _convert(value, 0, blob_keys)


def _plain_entry(entry: Any, blob_keys: frozenset[str] | None) -> Any:
    if type(entry) is dict and encodable(entry):
        return entry
    return _convert(entry, 0, blob_keys)


_NO_KEYS: frozenset[str] = frozenset()

# What a tool got and gave is its own, and JSON.
_OF_TOOLS = ("input", "json")


# Objects of the SDKs are near the top; deeper values are as the program made them.
def _convert(
    value: Any, depth: int, blob_keys: frozenset[str] | None = _NO_KEYS, under: Any = None
) -> Any:
    if value is None or isinstance(value, (str, int, float)) or depth > MOST_LEVELS:
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return SdkBytes.of(value) if blob_keys is None or under in blob_keys else value
    if isinstance(value, Mapping):
        return {
            key: _convert(inner, depth + 1, _NO_KEYS if key in _OF_TOOLS else blob_keys, key)
            for key, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_convert(inner, depth + 1, blob_keys, under) for inner in value]
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        return value
    dumped = dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    return dumped if isinstance(dumped, (dict, list, str)) else value
