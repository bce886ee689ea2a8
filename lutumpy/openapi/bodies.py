"""The body of a request: which media type is taken, and its bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal

from lutumpy.openapi.document import Document, UnusableError
from lutumpy.openapi.parameters import is_json
from lutumpy.openapi.styles import Pair, SpellingError, encode, spell_query, spell_scalar
from lutumpy.plain import json_values
from lutumpy.plain.preview import shorten
from lutumpy.plain.values import dataclass

__all__ = ["Body", "read_body", "spell_body"]

_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_BINARY_FORMATS = ("binary", "byte", "base64")

Kind = Literal["json", "form", "multipart"]


@dataclass(frozen=True, slots=True)
class Body:
    """The body that an operation takes.

    Attributes:
        kind: How it is spelled.
        media_type: Its media type.
        schema: Its Schema Object.
        description: What the document says about it.
        required: Whether there has to be one.
        encoding: What the document says about the fields of a form, by name.
        files: The fields of a form that are files.
    """

    kind: Kind
    media_type: str
    schema: Any
    description: str
    required: bool
    encoding: Mapping[str, Mapping[str, Any]]
    files: frozenset[str]


# --- reading ------------------------------------------------------------------------------------


def read_body(document: Document, value: Any) -> Body | None:
    """The body of an operation; `None` where it takes none.

    JSON is taken before forms, and `application/json` before other kinds of JSON.

    Raises:
        UnusableError: It has no media type that a model's arguments can be spelled in.
    """
    if value is None:
        return None
    raw = document.follow(value, "the request body")
    content = raw.get("content")
    if not isinstance(content, Mapping) or not content:
        raise UnusableError("its request body has no media type")
    chosen = _choose_media_type([str(name) for name in content])
    if chosen is None:
        names = ", ".join(sorted(map(str, content)))
        raise UnusableError(
            f"its request body is {shorten(names, 200)}; JSON, {_FORM} and {_MULTIPART} are sent"
        )
    key, kind, media_type = chosen
    entry = document.follow(content[key], "a media type")
    schema = entry.get("schema", True)
    encoding = entry.get("encoding")
    encoding = encoding if isinstance(encoding, Mapping) else {}
    description = raw.get("description")
    return Body(
        kind,
        media_type,
        schema,
        description if isinstance(description, str) else "",
        raw.get("required") is True,
        {str(name): one for name, one in encoding.items() if isinstance(one, Mapping)},
        _find_files(document, schema) if kind == "multipart" else frozenset(),
    )


def _choose_media_type(names: list[str]) -> tuple[str, Kind, str] | None:
    """The one that is taken, its kind, and how it is sent."""
    essences = {name: name.partition(";")[0].strip().lower() for name in names}
    order = sorted(names, key=lambda name: (essences[name] != "application/json", name))
    for name in order:
        if is_json(name):
            return name, "json", essences[name]
    for name in order:
        if essences[name] in ("*/*", "application/*"):
            return name, "json", "application/json"
    for name in order:
        if essences[name] == _FORM:
            return name, "form", _FORM
    for name in order:
        if essences[name] == _MULTIPART:
            return name, "multipart", _MULTIPART
    return None


def _find_files(document: Document, schema: Any) -> frozenset[str]:
    """The fields of a form whose text is the content of a file."""
    properties = _follow_schema(document, schema).get("properties")
    if not isinstance(properties, Mapping):
        return frozenset()
    found: set[str] = set()
    for name, inner in properties.items():
        field = _follow_schema(document, inner)
        if field.get("type") == "array":
            field = _follow_schema(document, field.get("items"))
        if field.get("format") in _BINARY_FORMATS or {"contentMediaType", "contentEncoding"} & set(
            field
        ):
            found.add(str(name))
    return frozenset(found)


def _follow_schema(document: Document, schema: Any) -> Mapping[str, Any]:
    return document.follow(schema, "a schema") if isinstance(schema, Mapping) else {}


# --- spelling -----------------------------------------------------------------------------------


def spell_body(body: Body, value: Any) -> tuple[bytes, str]:
    """The bytes of a body, and its content type.

    Raises:
        SpellingError: The value can't be spelled in this media type.
    """
    if body.kind == "json":
        return json_values.encode(value), body.media_type
    if not isinstance(value, Mapping):
        raise SpellingError("it is sent as a form and must be an object")
    if body.kind == "form":
        pairs = [pair for name, one in value.items() for pair in _spell_field(body, str(name), one)]
        return "&".join([f"{name}={text}" for name, text in pairs]).encode(), body.media_type
    return _spell_multipart(body, value)


def _spell_field(body: Body, name: str, value: Any) -> list[Pair]:
    """The pairs of one field of a form. What is nested is JSON where the document names no
    style.
    """
    encoding = body.encoding.get(name, {})
    style = encoding.get("style")
    try:
        if style in ("form", "spaceDelimited", "pipeDelimited", "deepObject"):
            explode = bool(encoding.get("explode", style == "form"))
            reserved = encoding.get("allowReserved") is True
            return spell_query(name, value, style, explode, reserved=reserved)
        listed = value if isinstance(value, list) else [value]
        kept = [one for one in listed if one is not None]
        return [(encode(name), encode(_spell_text(one))) for one in kept]
    except SpellingError as error:
        raise SpellingError(f"its field {name!r}: {error}") from None


def _spell_text(value: Any) -> str:
    if isinstance(value, (Mapping, list)):
        return json_values.encode(value).decode()
    return spell_scalar(value)


def _spell_multipart(body: Body, value: Mapping[str, Any]) -> tuple[bytes, str]:
    parts = [
        _spell_part(body, str(name), one)
        for name, field in value.items()
        for one in (field if isinstance(field, list) else [field])
        if one is not None
    ]
    # The same body has the same bytes, and no text of the model's can know its own digest.
    boundary = hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]
    lines = [b"--" + boundary.encode() + b"\r\n" + part + b"\r\n" for part in parts]
    lines.append(b"--" + boundary.encode() + b"--\r\n")
    return b"".join(lines), f"{_MULTIPART}; boundary={boundary}"


def _spell_part(body: Body, name: str, value: Any) -> bytes:
    is_file = name in body.files
    nested = isinstance(value, (Mapping, list))
    media_type = body.encoding.get(name, {}).get("contentType")
    if not isinstance(media_type, str) or "," in media_type or "*" in media_type:
        media_type = "application/octet-stream" if is_file else ""
        if nested:
            media_type = "application/json"
    quoted = _quote(name)
    lines = [f'Content-Disposition: form-data; name="{quoted}"']
    if is_file:
        lines[0] += f'; filename="{quoted}"'
    if media_type:
        lines.append(f"Content-Type: {media_type.replace(chr(13), '').replace(chr(10), '')}")
    text = "\r\n".join([*lines, "", _spell_text(value)])
    return json_values.clean_text(text).encode()


def _quote(name: str) -> str:
    """A field's name as browsers write it."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
