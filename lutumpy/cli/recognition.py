"""Whose API a body, a list of messages or an answer is written for, read from its shape."""

# What is hard: several APIs lay a request out alike, so one document may be valid for more than one
# of them. Nothing is guessed. Each API names the signs that it has and its look-alikes don't
# (`Signs` in its rules), and every sign that is found is a vote for it:
#
#     one API has votes         it is this one
#     several have votes        the document contradicts itself: all of them are named
#     none has a vote           what is left after the roles that an API refuses, the model's name,
#                               and the parameters that an API can't do without
#
# Where more than one API is left the user is asked. Picking the likeliest would check some
# histories against rules that they were never written for, and nobody would see that it did.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lutumpy.apis import Api, by_name
from lutumpy.cli.answers import api_of_answer
from lutumpy.rules.shape import ApiRules, Signs

__all__ = [
    "ADDRESS_KEYS",
    "address_of",
    "apis_of_address",
    "apis_of_body",
    "apis_of_messages",
    "has_conversation",
    "is_message",
]

ADDRESS_KEYS = ("host", "base_url", "url")
"""Where a recorder says whom a request went to; no API has a parameter of these names."""


def address_of(data: Mapping[str, Any]) -> str | None:
    """The address that stands beside a request, or in it."""
    for key in ADDRESS_KEYS:
        value = data.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def apis_of_address(data: Mapping[str, Any]) -> tuple[Api, ...]:
    """The APIs whose path the address beside a request ends with."""
    url = data.get("url")
    if not isinstance(url, str):
        return ()
    path = url.partition("?")[0].rstrip("/")
    return tuple([api for api, rules in _rules().items() if path.endswith(rules.SHAPE.paths)])


def has_conversation(value: Mapping[str, Any]) -> bool:
    """Whether an object has a key under which some API has its messages."""
    return any(rules.SHAPE.messages_key in value for rules in _rules().values())


def is_message(value: Any) -> bool:
    """Whether `value` looks like a message or an item of a conversation, and not like a document
    with several.
    """
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("role"), str) and not has_conversation(value):
        # An answer may have a role too, but its place is in no list.
        return not ("usage" in value and api_of_answer(value) is not None)
    kind = value.get("type")
    is_item = any(_matches(rules.SIGNS.item_types, kind) for rules in _rules().values())
    return is_item and "request" not in value


def apis_of_body(body: Mapping[str, Any]) -> tuple[Api, ...]:
    """The APIs that a request body may be meant for: one, several where nothing tells them apart,
    or none.
    """
    known = _rules()
    candidates = _candidates(body, known)
    if len(candidates) < 2:
        return candidates or _resuming(body, known)
    # Only candidates vote. A message as another API spells it, in a request that can't be of that
    # API, isn't a sign but a mistake, which the doctor finds.
    messages = body[known[candidates[0]].SHAPE.messages_key]
    if "model" in body:
        candidates = _naming_models(candidates, known)
    signs = _of_their_form(messages, {api: known[api].SIGNS for api in candidates})
    voted = [api for api in signs if _has_signs(body, messages, signs[api])]
    if voted:
        return tuple(voted)
    fitting = _fitting(messages, signs)
    if len(fitting) == 1 or "model" not in body:
        return fitting
    named = [api for api in fitting if _matches(signs[api].models, body["model"])]
    complete = [api for api in fitting if signs[api].required_keys <= body.keys()]
    if len(complete) == len(fitting):
        return tuple(named) or fitting
    # An incomplete request may still be one that only counts tokens, if the model's name speaks for
    # it.
    return tuple([api for api in fitting if api in complete or api in named])


def _candidates(body: Mapping[str, Any], known: Mapping[Api, ApiRules]) -> tuple[Api, ...]:
    """The APIs that have their messages where this body has some; the first such key counts."""
    for key in dict.fromkeys([rules.SHAPE.messages_key for rules in known.values()]):
        value = body.get(key)
        found = [
            api
            for api, rules in known.items()
            if rules.SHAPE.messages_key == key
            and (
                isinstance(value, list) or (isinstance(value, str) and rules.SHAPE.text_is_message)
            )
        ]
        if found:
            return tuple(found)
    return ()


def _naming_models(apis: tuple[Api, ...], known: Mapping[Api, ApiRules]) -> tuple[Api, ...]:
    """Those whose requests say their model themselves, and not in their path."""
    return tuple([api for api in apis if known[api].SHAPE.model_path is None]) or apis


def _resuming(body: Mapping[str, Any], known: Mapping[Api, ApiRules]) -> tuple[Api, ...]:
    """The APIs whose server may hold the conversation, so that a request has nothing new in it."""
    if "model" not in body:
        return ()
    return tuple([api for api, rules in known.items() if rules.SIGNS.resuming_keys & body.keys()])


def apis_of_messages(messages: Iterable[Any]) -> tuple[Api, ...]:
    """The APIs that a bare list of messages or items may be written for."""
    entries = list(messages)
    signs = _of_their_form(entries, {api: rules.SIGNS for api, rules in _rules().items()})
    voted = [api for api in signs if _speak_for(entries, signs[api])]
    # A list of Responses may hold messages as Chat spells them, so its own items decide.
    strongest = [api for api in voted if signs[api].outweighs]
    return tuple(strongest or voted) or _fitting(entries, signs)


def _of_their_form(messages: Sequence[Any], signs: Mapping[Api, Signs]) -> Mapping[Api, Signs]:
    """The APIs that write contents as these are: as texts and parts with a `type`, or as parts
    whose keys say what they are.
    """
    contents = [message.get("content") for message in messages if isinstance(message, Mapping)]
    parts = [
        part
        for content in contents
        for part in (content if isinstance(content, list) else ())
        if isinstance(part, Mapping)
    ]
    has_texts = any(isinstance(content, str) and content for content in contents)
    is_typed = has_texts or any("type" in part for part in parts)
    if not is_typed and not parts:
        return signs  # nothing shows a form
    chosen = {
        api: sign
        for api, sign in signs.items()
        if sign.types_parts is is_typed or any(_has_own_key(part, sign) for part in parts)
    }
    return chosen or signs


def _has_own_key(part: Mapping[str, Any], signs: Signs) -> bool:
    return "type" not in part and bool(signs.part_keys & part.keys())


def _fitting(messages: Sequence[Any], signs: Mapping[Api, Signs]) -> tuple[Api, ...]:
    """The APIs that don't refuse a role of these messages; all of them when each refuses one."""
    roles = [message.get("role") for message in messages if isinstance(message, Mapping)]
    names = {role for role in roles if isinstance(role, str)}
    first = {role for role in roles[:1] if isinstance(role, str)}
    fitting = [
        api
        for api, sign in signs.items()
        if not (sign.refused_roles & names or sign.refused_first_roles & first)
    ]
    return tuple(fitting) or tuple(signs)


# --- Votes ---------------------------------------------------------------------------------------


def _has_signs(body: Mapping[str, Any], messages: Sequence[Any], signs: Signs) -> bool:
    """Whether anything in a request speaks for an API."""
    tools = body.get("tools")
    return (
        bool(signs.body_keys & body.keys())
        or _speak_for(messages, signs)
        or any(_is_own_tool(tool, signs) for tool in (tools if isinstance(tools, list) else ()))
        or _is_own_choice(body.get("tool_choice"), signs)
    )


def _speak_for(messages: Iterable[Any], signs: Signs) -> bool:
    return any(_speaks_for(message, signs) for message in messages if isinstance(message, Mapping))


def _speaks_for(message: Mapping[str, Any], signs: Signs) -> bool:
    role = message.get("role")
    if isinstance(role, str) and role in signs.roles:
        return True
    if signs.message_keys & message.keys() or _matches(signs.item_types, message.get("type")):
        return True
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    if any(isinstance(part, Mapping) and _has_own_key(part, signs) for part in parts):
        return True
    return any(_matches(signs.part_types, kind) for kind in _part_types(content))


def _part_types(content: Any) -> Iterator[Any]:
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping):
            yield part.get("type")


def _is_own_tool(tool: Any, signs: Signs) -> bool:
    if not isinstance(tool, Mapping):
        return False
    kind = tool.get("type")
    # {"type": "function", "function": {...}}: what the tool says is nested.
    if isinstance(kind, str) and isinstance(tool.get(kind), Mapping):
        return signs.nests_tools
    return bool(signs.tool_keys & tool.keys()) or _matches(signs.tool_types, kind)


def _is_own_choice(choice: Any, signs: Signs) -> bool:
    if isinstance(choice, Mapping):
        kind = choice.get("type")
        return isinstance(kind, str) and kind in signs.choice_types
    return isinstance(choice, str) and signs.choice_is_word


def _matches(pattern: Any, value: Any) -> bool:
    return isinstance(value, str) and pattern.match(value) is not None


def _rules() -> Mapping[Api, ApiRules]:
    """The rules of every API there is now: one may be added while a program runs."""
    return by_name("rules")
