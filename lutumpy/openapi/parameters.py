"""The parameters of an operation: read from the document, and put into a request."""

# What a value of the model must never do is leave its place:
#
#   place    what is refused                                what is done with the rest
#   -------  ---------------------------------------------  ----------------------------------
#   path     an empty value; a segment `.` or `..`; `/` and  percent-encoded
#            `\`, unless the parameter may have segments
#   header   control characters, so no new line; what isn't  as it is
#            ASCII; spaces at its ends
#   query    -                                              percent-encoded
#   cookie   -                                              percent-encoded
#
# A slash is refused although it could be encoded: many servers decode `%2F` before they look at
# the path, and `1%2F..%2Fadmin` is another address there.

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, cast, get_args
from urllib.parse import unquote

from lutumpy.openapi.document import Document, UnusableError
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

__all__ = ["Parameter", "Place", "fill_path", "is_json", "read_parameters", "spell_parameter"]

Place = Literal["path", "query", "header", "cookie"]
"""Where a parameter goes."""

_STYLES: Mapping[str, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
# Of these the specification says that their definition is to be ignored (accept, content-type,
# authorization); the others belong to the client.
_NOT_PARAMETERS = {
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "transfer-encoding",
}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, a header's name
_IN_TEMPLATE = re.compile(r"\{([^{}]+)\}")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


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
        explode: Whether each value of a list or an object stands for itself.
        reserved: Whether reserved characters stay in a query.
        segments: Whether its value may hold slashes in a path.
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


# --- reading ------------------------------------------------------------------------------------


def read_parameters(
    document: Document, template: str, lists: Sequence[Any], segments: Collection[str]
) -> tuple[Parameter, ...]:
    """The parameters of an operation.

    Args:
        document: The document.
        template: The path with names in braces.
        lists: The lists of parameters, of the path first; a later one replaces those of an earlier
            one that have the same name and place.
        segments: Names of path parameters whose values may hold slashes.

    Raises:
        UnusableError: One of them can't be spelled.
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
    in_template = _IN_TEMPLATE.findall(template)
    missing = [name for name in in_template if ("path", name) not in found]
    if missing:
        raise UnusableError(f"its path has {{{missing[0]}}}, and no such parameter is declared")
    # One that the path has no place for would be sent nowhere.
    return tuple([p for p in found.values() if p.place != "path" or p.name in in_template])


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
    essence = media_type.partition(";")[0].strip().lower()
    kind, _, subtype = essence.partition("/")
    return bool(kind) and (subtype == "json" or subtype.endswith("+json"))


def _show(value: Any) -> str:
    return shorten(safe_repr(value), 100)


# --- spelling -----------------------------------------------------------------------------------


def spell_parameter(parameter: Parameter, value: Any) -> list[tuple[str, str]]:
    """Names and texts of a query, header or cookie parameter, ready to be sent; a path parameter's
    one text is what stands in the place of its braces.

    Raises:
        SpellingError: The value can't stand in its place.
    """
    name, style, explode = parameter.name, parameter.style, parameter.explode
    if style == "json":
        if parameter.place == "header":
            return [(name, _check_header(json.dumps(value)))]  # escapes what isn't ASCII
        text = json_values.encode(value).decode()
        pair = (encode(name), encode(text, reserved=parameter.reserved))
        if parameter.place == "path":
            return [(name, _check_segment(parameter, text, pair[1]))]
        return [pair]
    if parameter.place == "path":
        spelled = spell_path(name, value, style, explode)
        if isinstance(value, (Mapping, list)):
            plain = ",".join([str(one) for one in _scalars(value)])
        else:
            plain = spell_scalar(value)
        return [(name, _check_segment(parameter, plain, spelled))]
    if parameter.place == "header":
        return [] if value is None else [(name, _check_header(spell_header(value, explode)))]
    return spell_query(name, value, style, explode, reserved=parameter.reserved)


def _scalars(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [text for pair in value.items() for text in pair if text is not None]
    return [one for one in value if one is not None]


def _check_segment(parameter: Parameter, plain: str, spelled: str) -> str:
    if not plain:
        raise SpellingError("it stands in the path and can't be empty")
    if parameter.segments:
        if any(part in ("", ".", "..") for part in re.split(r"[/\\]", plain)):
            raise SpellingError("no part of it between slashes can be empty, '.' or '..'")
    elif "/" in plain or "\\" in plain:
        raise SpellingError("it is one segment of the path and can't hold '/' or '\\'")
    return spelled


def _check_header(text: str) -> str:
    if not _HEADER_VALUE.fullmatch(text):
        raise SpellingError("it is sent as a header: printable ASCII characters, no line breaks")
    if text != text.strip():
        raise SpellingError("it is sent as a header and can't begin or end with spaces")
    return text


def fill_path(template: str, texts: Mapping[str, str]) -> str:
    """The path with texts in the place of the braces.

    Raises:
        SpellingError: A segment would be empty, `.` or `..`, which leads to another address.
    """
    segments: list[str] = []
    for segment in template.split("/"):
        names = _IN_TEMPLATE.findall(segment)
        filled = _IN_TEMPLATE.sub(lambda found: texts[found[1]], segment)
        if names and unquote(filled) in ("", ".", ".."):
            raise SpellingError(f"{names[0]!r} makes the segment {unquote(filled)!r} of the path")
        segments.append(filled)
    return "/".join(segments)
