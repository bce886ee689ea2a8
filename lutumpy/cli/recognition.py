"""Whose API a body, a list of messages or an answer is written for, read from its shape."""

# What is hard: several APIs lay a request out alike, so one document may be valid for more than one
# of them. Nothing is guessed. Each API names the signs that it has and its look-alikes don't
# (`Signs` in its rules), and every sign that is found is a vote for it:
#
#     one API has votes         it is this one
#     several have votes        those that have a sign of their own, which no other of them has;
#                               where several have one, the document contradicts itself, and all of
#                               them are named
#     none has a vote           what is left after the roles that an API refuses, the model's name,
#                               and the parameters that an API can't do without
#
# Where more than one API is left the user is asked. Picking the likeliest would check some
# histories against rules that they were never written for, and nobody would see that it did.
#
# An API that a program or a package adds may lay its documents out as a built-in one does. So the
# built-in ones are asked first, as if there were no other, and an added one counts where they
# recognise nothing, or where the document has a sign of it that no built-in API knows:
#
#     only the added one has signs                    it is the added one
#     the built-in one has signs of its own as well   whose rules refuse nothing; or else both are
#                                                     named

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from lutumpy.apis import Api, by_name, is_built_in
from lutumpy.cli.answers import api_of_answer, looks_like
from lutumpy.doctor import is_compatible
from lutumpy.rules.shape import ApiRules, HistoryContext, Signs

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

Sign: TypeAlias = tuple[str, str]
"""Something in a document that speaks for an API: what it is, as `role`, and its text."""

# What nearly every API has, so that no row can claim it for its own.
_COMMON: frozenset[Sign] = frozenset([
    *(("message key", key) for key in "role content type id name status".split()),
    *(("role", role) for role in "system developer user assistant".split()),
    *(("part", kind) for kind in "text image file".split()),
    *(("part key", key) for key in "text image".split()),
    *(("tool key", key) for key in "type name description parameters function strict".split()),
    *(("tool", kind) for kind in "function custom".split()),
    *(("choice", kind) for kind in "auto any none required function tool".split()),
    ("tool", "nested"),
    ("choice", "word"),
])  # fmt: skip


def address_of(data: Mapping[str, Any]) -> str | None:
    """The address that is beside a request, or in it."""
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
    apis = [api for api, rules in _rules().items() if path.endswith(rules.SHAPE.paths)]
    at_home = [api for api in apis if not is_built_in(api) and _is_host_of(api, url)]
    return tuple(at_home or [api for api in apis if is_built_in(api)] or apis)


def _is_host_of(api: Api, url: str) -> bool:
    """Whether an address is at the vendor of an API."""
    try:
        return not is_compatible(api, url)
    except ValueError:
        return False


def has_conversation(value: Mapping[str, Any]) -> bool:
    """Whether an object has a key under which some API has its messages."""
    for api, rules in _rules().items():
        # A message has a role, and may have a content that is an added API's conversation.
        if rules.SHAPE.messages_key in value and (is_built_in(api) or "role" not in value):
            return True
    return False


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

    def list_signs(known: Mapping[Api, ApiRules], api: Api) -> set[Sign]:
        key = known[api].SHAPE.messages_key
        entries = _entries_of(body.get(key))
        found = set(_signs_of_request(body, entries, known[api].SIGNS))
        return found | {("conversation", key)} if entries else found

    def refuses(rules: ApiRules) -> bool:
        return any(problem.certainty == "refused" for problem in rules.check_request(body))

    return _recognise(lambda known: _apis_of_body(body, known), list_signs, refuses)


def _apis_of_body(body: Mapping[str, Any], known: Mapping[Api, ApiRules]) -> tuple[Api, ...]:
    candidates = _candidates(body, known)
    if len(candidates) < 2:
        return candidates or _resuming(body, known)
    # Only candidates vote. A message as another API spells it, in a request that can't be of that
    # API, isn't a sign but a mistake, which the doctor finds.
    messages = body[known[candidates[0]].SHAPE.messages_key]
    if "model" in body:
        candidates = _naming_models(candidates, known)
    signs = _of_their_form(messages, {api: known[api].SIGNS for api in candidates})
    voted = _voted(
        {api: set(_signs_of_request(body, messages, signs[api])) for api in signs}, signs
    )
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

    def list_signs(known: Mapping[Api, ApiRules], api: Api) -> set[Sign]:
        return set(_signs_of_messages(entries, known[api].SIGNS))

    def refuses(rules: ApiRules) -> bool:
        found = rules.check_history(entries, HistoryContext())
        return any(problem.certainty == "refused" for problem in found)

    return _recognise(lambda known: _apis_of_messages(entries, known), list_signs, refuses)


def _apis_of_messages(entries: Sequence[Any], known: Mapping[Api, ApiRules]) -> tuple[Api, ...]:
    signs = _of_their_form(entries, {api: rules.SIGNS for api, rules in known.items()})
    voted = _voted({api: set(_signs_of_messages(entries, signs[api])) for api in signs}, signs)
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
    # Without a sign, a document is not one of an API that shares its layout with another.
    own = [api for api in fitting or signs if not signs[api].shares_layout]
    return tuple(own or fitting or signs)


# --- Votes ---------------------------------------------------------------------------------------


def _voted(found: Mapping[Api, set[Sign]], signs: Mapping[Api, Signs]) -> list[Api]:
    """The APIs that a document speaks for, by the signs that were found for each."""
    voted = [api for api in found if found[api]]
    voted = [api for api in voted if not signs[api].shares_layout or _own_signs(api, voted, found)]
    with_own = [api for api in voted if _own_signs(api, voted, found)]
    return with_own or voted


def _own_signs(api: Api, voted: Sequence[Api], found: Mapping[Api, set[Sign]]) -> set[Sign]:
    """The signs of an API that no other one has."""
    return found[api].difference(*[found[other] for other in voted if other != api])


def _recognise(
    apis_among: Callable[[Mapping[Api, ApiRules]], tuple[Api, ...]],
    list_signs: Callable[[Mapping[Api, ApiRules], Api], set[Sign]],
    refuses: Callable[[ApiRules], bool],
) -> tuple[Api, ...]:
    """The APIs that a document may be for; an added one that only shares what a built-in one has
    isn't among them.

    Args:
        apis_among: The APIs that the document may be for, of some.
        list_signs: What speaks for an API in it.
        refuses: Whether the rules of an API refuse it.
    """
    known = _rules()
    built_in = {api: rules for api, rules in known.items() if is_built_in(api)}
    added = {api: rules for api, rules in known.items() if api not in built_in}
    found = apis_among(built_in)
    others = apis_among(added) if added else ()
    if not found or not others:
        return found or others
    taken: set[Sign] = set(_COMMON)
    for api, rules in built_in.items():
        taken |= list_signs(built_in, api)
        taken |= {("parameter", key) for key in getattr(rules, "PARAMETERS", ())}
    signs_of = {api: list_signs(added, api) for api in others}
    chosen = [api for api in others if signs_of[api] - taken]
    if not chosen:
        return found
    shared = set().union(*[signs_of[api] for api in chosen])
    rivals = [api for api in found if list_signs(built_in, api) - shared - _COMMON]
    if not rivals:
        return tuple(chosen)
    taking = [api for api in (*rivals, *chosen) if not refuses(known[api])]
    return (taking[0],) if len(taking) == 1 else (*rivals, *chosen)


def _signs_of_request(
    body: Mapping[str, Any], messages: Sequence[Any], signs: Signs
) -> Iterator[Sign]:
    """What speaks for an API in a request."""
    yield from [("parameter", key) for key in body if key in signs.body_keys]
    yield from _signs_of_messages(messages, signs)
    for tool in _entries_of(body.get("tools")):
        yield from _signs_of_tool(tool, signs)
    choice = body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, Mapping) else None
    if isinstance(kind, str) and kind in signs.choice_types:
        yield "choice", kind
    if isinstance(choice, str) and signs.choice_is_word:
        yield "choice", "word"


def _signs_of_messages(messages: Iterable[Any], signs: Signs) -> Iterator[Sign]:
    """What speaks for an API in a list of messages or items."""
    for message in messages:
        if isinstance(message, Mapping):
            yield from _signs_of_message(message, signs)


def _signs_of_message(message: Mapping[str, Any], signs: Signs) -> Iterator[Sign]:
    role, kind = message.get("role"), message.get("type")
    if isinstance(role, str) and role in signs.roles:
        yield "role", role
    yield from [("message key", key) for key in message if key in signs.message_keys]
    for form in signs.message_forms:
        if looks_like(message, form):
            yield "message form", " ".join(form)
    if _matches(signs.item_types, kind):
        yield "item", str(kind)
    for part in _entries_of(message.get("content")):
        if not isinstance(part, Mapping):
            continue
        if "type" not in part:
            yield from [("part key", key) for key in part if key in signs.part_keys]
        if _matches(signs.part_types, part.get("type")):
            yield "part", str(part["type"])


def _entries_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _signs_of_tool(tool: Any, signs: Signs) -> Iterator[Sign]:
    if not isinstance(tool, Mapping):
        return
    kind = tool.get("type")
    # {"type": "function", "function": {...}}: what the tool says is nested.
    if isinstance(kind, str) and isinstance(tool.get(kind), Mapping):
        if signs.nests_tools:
            yield "tool", "nested"
        return
    yield from [("tool key", key) for key in tool if key in signs.tool_keys]
    if _matches(signs.tool_types, kind):
        yield "tool", str(kind)


def _matches(pattern: Any, value: Any) -> bool:
    return isinstance(value, str) and pattern.match(value) is not None


def _rules() -> Mapping[Api, ApiRules]:
    """The rules of every API there is now: one may be added while a program runs."""
    return by_name("rules")
