"""The parameters of an operation: read from the document, and put into a request."""

# What a value of the model must never do is leave its place:
#
#   place    what is refused                                what is done with the rest
#   -------  ---------------------------------------------  ----------------------------------
#   path     an empty value; a segment `.` or `..`; `/` and  percent-encoded
#            `\`, unless the parameter may have segments
#   header   control characters, so no new line; what isn't  as it is
#            ASCII; spaces at its ends; a comma inside of a
#            list or an object
#   query    another parameter's name                       percent-encoded
#   cookie   another parameter's name                       percent-encoded
#
# A slash is refused although it could be encoded: many servers decode `%2F` before they look at
# the path, and `1%2F..%2Fadmin` is another address there.
#
# An exploded object has no name of its own in the request: its properties are there like
# parameters, and that is how every object in a query is spelled whose style isn't stated. So such
# an object takes only properties that the document names (`Parameter.fields`), and none whose name
# another parameter has, which the model isn't asked for a second time (`Parameter.left_out`).

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal, cast, get_args
from urllib.parse import unquote

from lutumpy.openapi.addresses import PathTemplate
from lutumpy.openapi.document import Document, UnusableError
from lutumpy.openapi.property_names import find_property_names
from lutumpy.openapi.styles import (
    SpellingError,
    encode,
    spell_header,
    spell_path,
    spell_query,
    spell_scalar,
)
from lutumpy.plain import json_values
from lutumpy.plain.preview import shorten
from lutumpy.plain.safe_text import safe_repr
from lutumpy.plain.values import dataclass

__all__ = [
    "HEADER_VALUE",
    "SPREADING_STYLES",
    "Parameter",
    "Place",
    "check_fields",
    "is_json",
    "read_parameters",
    "spell_parameter",
]

Place = Literal["path", "query", "header", "cookie"]
"""Where a parameter goes."""

_STYLES: Mapping[str, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
SPREADING_STYLES = ("form", "spaceDelimited", "pipeDelimited", "matrix")
"""In which the properties of an exploded object have names like those of parameters."""
# Of these the specification says that their definition is to be ignored (accept, content-type,
# authorization); the others belong to the client.
_NOT_PARAMETERS = {
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
# RFC 9110: a header's name. RFC 6838: a media type that is JSON.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_JSON = re.compile(r"[!#$&^_.+0-9a-z-]+/(?:[!#$&^_.+0-9a-z-]+\+)?json")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    Attributes:
        place: Where it goes.
        name: Its name there.
        schema: Its Schema Object.
        description: What the document says about it.
        required: Whether it has to be there.
        deprecated: Whether the document advises against it.
        style: How lists and objects are spelled; `"json"` for JSON text.
        explode: Whether each value of a list or an object is written separately.
        reserved: Whether reserved characters stay in a query.
        segments: Whether its value may hold slashes in a path.
        fields: The properties of its objects that are in the request like parameters; `None`
            where they stay under its own name.
        left_out: Properties of its objects whose names belong to other parameters.
        owners: Whose each name in its place is: a parameter's, or the path's (an empty text).
    """

    place: Place
    name: str
    schema: Any
    description: str = ""
    required: bool = False
    deprecated: bool = False
    style: str = "form"
    explode: bool = False
    reserved: bool = False
    segments: bool = False
    fields: frozenset[str] | None = None
    left_out: frozenset[str] = frozenset()
    owners: Mapping[str, str] = field(default_factory=dict)


# --- reading ------------------------------------------------------------------------------------


def read_parameters(
    document: Document, template: PathTemplate, lists: Sequence[Any], segments: Collection[str]
) -> tuple[tuple[Parameter, ...], PathTemplate]:
    """The parameters of an operation, and its path without what parameters write into it.

    Args:
        document: The document.
        template: The operation's path.
        lists: The lists of parameters, of the path first; a later one replaces those of an earlier
            one that have the same name and place.
        segments: Names of path parameters whose values may hold slashes.

    Raises:
        UnusableError: One of them can't be spelled, or two write the same name.
    """
    found: dict[tuple[str, str], Parameter] = {}
    for listed in lists:
        if not isinstance(listed, (list, tuple)):
            raise UnusableError(f"its parameters are {_show(listed)}, not a list")
        here: dict[tuple[str, str], Parameter] = {}
        for entry in listed:
            parameter = _read_parameter(document, entry, segments)
            if parameter is None:
                continue
            key = (parameter.place, parameter.name)
            if parameter.place == "header":
                key = (parameter.place, parameter.name.lower())
            if here.setdefault(key, parameter) != parameter:
                raise UnusableError(f"it has two {key[0]} parameters {key[1]!r}")
        found.update(here)
    template = _leave_pairs_to_parameters(template, found)
    names = [*template.path_names]
    for pair in template.query:
        names += template.query_names(pair)
    missing = [name for name in names if ("path", name) not in found]
    if missing:
        raise UnusableError(f"its path has {{{missing[0]}}}, and no such parameter is declared")
    stated = {_name_pair(pair) for pair in template.query}
    kept = [one for one in found.values() if _is_asked(one, names, stated)]
    return tuple(_separate_parameters(document, kept, stated)), template


def _is_asked(parameter: Parameter, in_path: Collection[str], stated: Collection[str]) -> bool:
    """Whether a parameter has a place that nothing else fills."""
    if parameter.place == "path":
        return parameter.name in in_path  # else it would be sent nowhere
    return parameter.place != "query" or parameter.name not in stated


def _leave_pairs_to_parameters(
    template: PathTemplate, found: Mapping[tuple[str, str], Parameter]
) -> PathTemplate:
    """The path without pairs such as `id={id}` of its query that a query parameter writes."""
    written = {
        pair
        for pair in template.query
        if template.query_names(pair) and ("query", _name_pair(pair)) in found
    }
    return template.without_pairs(written)


def _name_pair(pair: str) -> str:
    return unquote(pair.partition("=")[0])


def _separate_parameters(
    document: Document, parameters: Sequence[Parameter], stated: Collection[str]
) -> list[Parameter]:
    """The parameters, none of which can write the name of another one.

    Raises:
        UnusableError: Two of them would write the same name.
    """
    owners: dict[str, dict[str, str]] = {place: {} for place in get_args(Place)}
    owners["query"].update(dict.fromkeys(stated, ""))
    for one in parameters:
        owners[one.place][one.name] = one.name
    _refuse_nested_names({one.name for one in parameters if one.style == "deepObject"})
    # First the names of parameters, then those of properties, so that no order matters.
    separated = [_name_fields(document, one, owners[one.place]) for one in parameters]
    for one in separated:
        for name in one.fields or ():
            if owners[one.place].setdefault(name, one.name) != one.name:
                raise UnusableError(
                    f"its parameters {one.name!r:.100} and {owners[one.place][name]!r:.100} both "
                    f"have the property {name!r:.100}, which the request holds by itself"
                )
    return separated


def _name_fields(document: Document, parameter: Parameter, owners: Mapping[str, str]) -> Parameter:
    """The parameter with the names that its objects may write."""
    if not (parameter.explode and parameter.style in SPREADING_STYLES):
        return replace(parameter, owners=owners)
    names = find_property_names(document, parameter.schema)
    own = parameter.name
    left_out = frozenset([name for name in names if owners.get(name, own) != own])
    return replace(parameter, fields=names - left_out, left_out=left_out, owners=owners)


def _refuse_nested_names(names: Collection[str]) -> None:
    """`a` and `a[b]` can't both write `a[b][c]`."""
    for name in names:
        for end, character in enumerate(name):
            if character == "[" and name[:end] in names:
                raise UnusableError(
                    f"its parameters {name[:end]!r:.100} and {name!r:.100} write the same names"
                )


def _read_parameter(document: Document, entry: Any, segments: Collection[str]) -> Parameter | None:
    raw = document.follow(entry, "a parameter")
    name, place = raw.get("name"), raw.get("in")
    if not isinstance(name, str) or not name:
        raise UnusableError(f"a parameter's name is {_show(name)}")
    if place not in get_args(Place):
        raise UnusableError(f"the parameter {name!r:.100} is in {_show(place)}")
    if place == "header" and name.lower() in _NOT_PARAMETERS:
        return None
    if place in ("header", "cookie") and not _TOKEN.fullmatch(name):
        raise UnusableError(f"{name!r:.100} can't be the name of a {place}")
    description = raw.get("description")
    described = Parameter(
        cast("Place", place),
        name,
        True,
        description if isinstance(description, str) else "",
        raw.get("required") is True or place == "path",
        raw.get("deprecated") is True,
    )
    schema, style, explode = _read_spelling(document, raw, described)
    return Parameter(
        described.place,
        described.name,
        schema,
        described.description,
        described.required,
        described.deprecated,
        style,
        explode,
        raw.get("allowReserved") is True,
        place == "path" and name in segments,
    )


def _read_spelling(
    document: Document, raw: Mapping[str, Any], parameter: Parameter
) -> tuple[Any, str, bool]:
    """Schema, style and explode."""
    label = f"the {parameter.place} parameter {parameter.name!r:.100}"
    content = raw.get("content")
    if isinstance(content, Mapping) and content:
        media_type, entry = next(iter(content.items()))
        if len(content) > 1 or not is_json(str(media_type)):
            raise UnusableError(f"{label} is of the media type {media_type!r:.100}")
        return document.follow(entry, "a media type").get("schema", True), "json", False
    styles = _STYLES[parameter.place]
    style = raw.get("style", styles[0])
    if style not in styles:
        raise UnusableError(f"{label} has the style {_show(style)}")
    return raw.get("schema", True), style, bool(raw.get("explode", style == "form"))


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON: `application/json`, or one that ends in `+json`."""
    return _JSON.fullmatch(media_type.partition(";")[0].strip().lower()) is not None


def _show(value: Any) -> str:
    return shorten(safe_repr(value), 100)


# --- spelling -----------------------------------------------------------------------------------


def spell_parameter(parameter: Parameter, value: Any) -> list[tuple[str, str]]:
    """Names and texts of a query, header or cookie parameter, ready to be sent; a path parameter's
    one text replaces its braces.

    Raises:
        SpellingError: The value can't be in its place.
    """
    name, style, explode = parameter.name, parameter.style, parameter.explode
    if parameter.fields is not None and isinstance(value, Mapping):
        check_fields(value, parameter.fields, parameter.owners)
    if parameter.place == "header":
        if value is None and style != "json":
            return []
        # `dumps` escapes what isn't ASCII.
        text = json.dumps(value) if style == "json" else spell_header(value, explode)
        return [(name, _check_header(text))]
    if parameter.place == "path":
        return [(name, _spell_segment(parameter, value))]
    is_query = parameter.place == "query"
    reserved = parameter.reserved and is_query
    if style == "json":
        text = json_values.encode(value).decode()
        pairs = [(encode(name), encode(text, reserved=reserved))]
    else:
        pairs = spell_query(name, value, style, explode, reserved=reserved)
    return _check_names(parameter, pairs) if is_query else _check_cookies(pairs)


def check_fields(
    value: Mapping[str, Any], fields: Collection[str], owners: Collection[str]
) -> None:
    """Refuse an object whose properties would be in the request under names of the model's own.

    Args:
        value: The object.
        fields: The names that it may write.
        owners: Those that something in the request has already.

    Raises:
        SpellingError: It has another one.
    """
    for key in value:
        if key not in fields:
            shown = shorten(repr(key), 100)
            if key in owners:
                raise SpellingError(f"it can't have the property {shown}, the name of another one")
            raise SpellingError(f"the property {shown} is not one of those that it has by name")


def _check_names(parameter: Parameter, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    for name, _ in pairs:
        plain = unquote(name)
        if parameter.owners.get(plain, parameter.name) != parameter.name:
            raise SpellingError(f"{shorten(repr(plain), 100)} is the name of another parameter")
    return pairs


def _check_cookies(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs with their names as they are, since nobody decodes the name of a cookie."""
    plain = [(unquote(name), text) for name, text in pairs]
    for name, _ in plain:
        if not _TOKEN.fullmatch(name):
            raise SpellingError(f"{shorten(repr(name), 100)} can't be the name of a cookie")
    return plain


def _spell_segment(parameter: Parameter, value: Any) -> str:
    if parameter.style == "json":
        plain = json_values.encode(value).decode()
        return _check_segment(parameter, plain, encode(plain))
    spelled = spell_path(parameter.name, value, parameter.style, parameter.explode)
    if isinstance(value, (Mapping, list)):
        plain = ",".join([str(one) for one in _scalars(value)])
    else:
        plain = spell_scalar(value)
    return _check_segment(parameter, plain, spelled)


def _scalars(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [text for pair in value.items() for text in pair if text is not None]
    return [one for one in value if one is not None]


def _check_segment(parameter: Parameter, plain: str, spelled: str) -> str:
    if not plain:
        raise SpellingError("it is part of the path and can't be empty")
    if parameter.segments:
        if any(part in ("", ".", "..") for part in re.split(r"[/\\]", plain)):
            raise SpellingError("no part of it between slashes can be empty, '.' or '..'")
    elif "/" in plain or "\\" in plain:
        raise SpellingError("it is one segment of the path and can't hold '/' or '\\'")
    return spelled


def _check_header(text: str) -> str:
    if not HEADER_VALUE.fullmatch(text):
        raise SpellingError("it is sent as a header: printable ASCII characters, no line breaks")
    if text != text.strip():
        raise SpellingError("it is sent as a header and can't begin or end with spaces")
    return text
