"""The body of a request: which media type is taken, and its bytes."""

# A form is a list of names and texts, and an object in it may appear under several names: the
# properties of an exploded one, `a[b]` for the property `b` of `a`. A field that the model invented
# could have such a name, and be read in the place of the one that was validated. So no two fields
# write the same name, and none that the document doesn't know begins with the name of one that it
# knows, and a bracket.
#
# What isn't JSON and no form is sent as the model, or a program, writes it:
#
#   media type                                     the argument `body`                   sent
#   ---------------------------------------------  ------------------------------------  ----------
#   text/..., XML, YAML, lines of JSON, ...        a text; the document's schema where   as UTF-8
#                                                  it describes one
#   anything else: image/png, application/pdf ...  a text, or `{"base64": ...}`          its bytes
#   multipart/form-data, its schema not an object  a list of files: `filename`,          a part each
#                                                  `content` (a text, or base64), ...

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import Any, Literal, cast
from urllib.parse import quote

from lutumpy.openapi.document import Document, UnusableError
from lutumpy.openapi.parameters import HEADER_VALUE, SPREADING_STYLES, check_fields, is_json
from lutumpy.openapi.property_names import find_properties, find_property_names
from lutumpy.openapi.styles import Pair, SpellingError, encode, spell_query, spell_scalar
from lutumpy.plain import json_values
from lutumpy.plain.preview import shorten
from lutumpy.plain.values import dataclass

__all__ = ["Body", "read_body", "spell_body"]

_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_BINARY_FORMATS = ("binary", "byte", "base64")
_BYTES = "application/octet-stream"
# RFC 6838: a media type without wildcards.
_MEDIA_TYPE = re.compile(r"[0-9a-z][!#$&^_.+0-9a-z-]*/[0-9a-z][!#$&^_.+0-9a-z-]*")
_TEXT = re.compile(
    r"(text|plain)/.*|[^/]+/([^/]+\+)?(xml|ya?ml|x-ya?ml|text)|"
    r"application/(x-)?(ndjson|jsonl|jsonlines|json-seq|graphql|javascript|sql|sparql-query|toml)|"
    r"application/(jose|jwt|x-pem-file|pgp-encrypted|pgp-keys|xml-dtd)|[^/]+/[^/]+\+(xml|json-seq)"
)
_FILE_TEXT = {"type": "string"}
_FILE_BASE64 = {
    "type": "object",
    "description": "Content that is no text.",
    "properties": {"base64": {"type": "string", "contentEncoding": "base64"}},
    "required": ["base64"],
    "additionalProperties": False,
}
_CONTENT = {"anyOf": [_FILE_TEXT, _FILE_BASE64]}
_FILES = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "filename": {"type": "string", "minLength": 1},
            "content": _CONTENT,
            "content_type": {"type": "string", "description": "Its media type."},
            "name": {
                "type": "string",
                "minLength": 1,
                "description": "The name of its part; `file` where it is left out.",
            },
        },
        "required": ["filename", "content"],
        "additionalProperties": False,
    },
}
_ENDING = re.compile('[\x00-\x1f"\\\\\x7f-\x9f\u2028\u2029]')

Kind = Literal["json", "form", "multipart", "files", "text", "bytes"]


@dataclass(frozen=True, slots=True)
class Body:
    """The body that an operation takes.

    Attributes:
        kind: How it is spelled.
        media_type: Its media type.
        schema: Its Schema Object; that of what the model writes, where no object of the document
            describes it.
        description: What the document says about it.
        required: Whether there has to be one.
        encoding: What the document says about the fields of a form, by name.
        files: The fields of a form that are files.
        fields: The names of a form's fields that the document knows.
        spread: The properties that fields write by their own names, by the names of such fields.
    """

    kind: Kind
    media_type: str
    schema: Any
    description: str
    required: bool
    encoding: Mapping[str, Mapping[str, Any]]
    files: frozenset[str]
    fields: frozenset[str]
    spread: Mapping[str, frozenset[str]]


# --- reading ------------------------------------------------------------------------------------


def read_body(document: Document, value: Any) -> Body | None:
    """The body of an operation; `None` where it takes none.

    JSON is taken before forms, `application/json` before other kinds of JSON, forms before texts,
    and texts before bytes.

    Raises:
        UnusableError: It has no media type, or none that can be sent.
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
            f"its request body is {shorten(names, 200)}, which is no media type that is sent"
        )
    key, kind, media_type = chosen
    entry = document.follow(content[key], "a media type")
    schema = entry.get("schema", True)
    if kind == "json" and not is_json(key) and _is_binary(document, schema):
        kind, media_type = "bytes", _BYTES  # `*/*`
    if kind == "multipart" and _follow_schema(document, schema).get("type") in ("array", "string"):
        kind = "files"
    schema = _choose_schema(document, kind, schema)
    declared = entry.get("encoding")
    declared = declared if isinstance(declared, Mapping) else {}
    encoding = {str(name): one for name, one in declared.items() if isinstance(one, Mapping)}
    description = raw.get("description")
    return Body(
        kind,
        media_type,
        schema,
        description if isinstance(description, str) else "",
        raw.get("required") is True,
        encoding,
        _find_files(document, schema) if kind == "multipart" else frozenset(),
        find_property_names(document, schema) if kind in ("form", "multipart") else frozenset(),
        _find_spread(document, schema, encoding) if kind == "form" else {},
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
    for kind, essence in (("form", _FORM), ("multipart", _MULTIPART)):
        for name in order:
            if essences[name] == essence:
                return name, cast("Kind", kind), essence
    for name in order:
        essence = essences[name].replace("text/*", "text/plain")
        if _TEXT.fullmatch(essence) and _MEDIA_TYPE.fullmatch(essence):
            return name, "text", essence
    for name in order:
        essence = essences[name]
        if essence.endswith("/*"):  # any of them: which one it is, nobody knows
            return name, "bytes", _BYTES
        if _MEDIA_TYPE.fullmatch(essence) and not essence.startswith("multipart/"):
            return name, "bytes", essence
    return None


def _is_binary(document: Document, schema: Any) -> bool:
    return _follow_schema(document, schema).get("format") == "binary"


def _choose_schema(document: Document, kind: Kind, schema: Any) -> Any:
    """What the model writes: as the document has it, unless that describes something else."""
    if kind == "files":
        return _FILES
    if kind == "bytes":
        return _CONTENT
    if kind == "text":
        found = _follow_schema(document, schema)
        kinds = found.get("type")
        texts = isinstance(kinds, (str, list)) and not {"object", "array"} & set(
            [kinds] if isinstance(kinds, str) else kinds
        )
        return schema if texts else _FILE_TEXT
    return schema


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


def _find_spread(
    document: Document, schema: Any, encoding: Mapping[str, Mapping[str, Any]]
) -> dict[str, frozenset[str]]:
    """What the exploded objects of a form write by their own names."""
    styles = {name: _read_style(one) for name, one in encoding.items()}
    spread = [
        name for name, (style, explode) in styles.items() if explode and style in SPREADING_STYLES
    ]
    if not spread:
        return {}
    properties = find_properties(document, schema)
    found: dict[str, frozenset[str]] = {}
    for name in spread:
        known = [find_property_names(document, one) for one in properties.get(name, ())]
        found[name] = frozenset().union(*known) - properties.keys()
    return found


def _read_style(encoding: Mapping[str, Any]) -> tuple[Any, bool]:
    """Style and explode of a field; the style is `None` where the document says nothing of either.

    `explode` and `allowReserved` say by themselves that it is spelled as in a query, whose style is
    `form` (OpenAPI 3.1.1, Encoding Object).
    """
    style = encoding.get("style")
    if style is None and ("explode" in encoding or "allowReserved" in encoding):
        style = "form"
    return style, bool(encoding.get("explode", style == "form"))


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
    if body.kind == "text":
        has_charset = body.media_type.startswith("text/")
        text = json_values.clean_text(_spell_text(value)).encode()
        return text, body.media_type + ("; charset=utf-8" if has_charset else "")
    if body.kind == "bytes":
        return _spell_content(value), body.media_type
    if body.kind == "files":
        return _spell_files(value)
    if not isinstance(value, Mapping):
        raise SpellingError("it is sent as a form and must be an object")
    _check_field_names(body, value)
    if body.kind == "multipart":
        return _spell_multipart(body, value)
    pairs: list[Pair] = []
    writers: dict[str, str] = {}
    for name, one in value.items():
        for pair in _spell_field(body, str(name), one):
            _note_writer(writers, pair[0], str(name))
            pairs.append(pair)
    return "&".join([f"{name}={text}" for name, text in pairs]).encode(), body.media_type


def _check_field_names(body: Body, value: Mapping[str, Any]) -> None:
    for name in value:
        head, bracket, _ = str(name).partition("[")
        if bracket and head in body.fields and name not in body.fields:
            shown = shorten(repr(name), 100)
            raise SpellingError(f"the field {shown} would be read as a part of {head!r:.100}")


def _note_writer(writers: dict[str, str], name: str, field: str) -> None:
    """Note which field writes a name; raises `SpellingError` where another one does."""
    other = writers.setdefault(name, field)
    if other != field:
        raise SpellingError(
            f"its fields {shorten(repr(other), 100)} and {shorten(repr(field), 100)} are sent "
            "under the same name"
        )


def _spell_field(body: Body, name: str, value: Any) -> list[Pair]:
    """The pairs of one field of a form. What is nested is JSON where the document names no
    style.
    """
    encoding = body.encoding.get(name, {})
    style, explode = _read_style(encoding)
    try:
        if style in ("form", "spaceDelimited", "pipeDelimited", "deepObject"):
            if name in body.spread and isinstance(value, Mapping):
                check_fields(value, body.spread[name], body.fields)
            reserved = encoding.get("allowReserved") is True
            return spell_query(name, value, style, explode, reserved=reserved)
        listed = value if isinstance(value, list) else [value]
        kept = [one for one in listed if one is not None]
        return [(encode(name), encode(_spell_text(one))) for one in kept]
    except SpellingError as error:
        raise SpellingError(f"its field {shorten(repr(name), 100)}: {error}") from None


def _spell_text(value: Any) -> str:
    if isinstance(value, (Mapping, list)):
        return json_values.encode(value).decode()
    return spell_scalar(value)


def _spell_content(value: Any) -> bytes:
    """The bytes of a file that the model wrote: a text, or base64."""
    if not isinstance(value, Mapping):
        return json_values.clean_text(_spell_text(value)).encode()
    try:
        return base64.b64decode(value["base64"], validate=True)
    except (binascii.Error, ValueError):
        raise SpellingError("its content is not base64") from None


def _spell_files(value: list[Mapping[str, Any]]) -> tuple[bytes, str]:
    parts: list[bytes] = []
    for entry in value:
        media_type = entry.get("content_type", _BYTES)
        if not _MEDIA_TYPE.fullmatch(media_type.partition(";")[0].strip().lower()):
            raise SpellingError(f"{shorten(repr(media_type), 100)} is no media type")
        if not HEADER_VALUE.fullmatch(media_type):
            raise SpellingError(f"{shorten(repr(media_type), 100)} can't stand in a header")
        name, filename = _quote(entry.get("name", "file")), _quote(entry["filename"])
        head = (
            f'Content-Disposition: form-data; name="{name}"; filename="{filename}"\r\n'
            f"Content-Type: {media_type}\r\n\r\n"
        )
        parts.append(head.encode() + _spell_content(entry["content"]))
    return _join_parts(parts)


def _spell_multipart(body: Body, value: Mapping[str, Any]) -> tuple[bytes, str]:
    parts: list[bytes] = []
    writers: dict[str, str] = {}
    for name, field in value.items():
        quoted = _quote(str(name))
        _note_writer(writers, quoted, str(name))
        listed = field if isinstance(field, list) else [field]
        parts += [_spell_part(body, str(name), quoted, one) for one in listed if one is not None]
    return _join_parts(parts)


def _join_parts(parts: list[bytes]) -> tuple[bytes, str]:
    # The same body has the same bytes, and no text of the model's can know its own digest.
    boundary = hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]
    lines = [b"--" + boundary.encode() + b"\r\n" + part + b"\r\n" for part in parts]
    lines.append(b"--" + boundary.encode() + b"--\r\n")
    return b"".join(lines), f"{_MULTIPART}; boundary={boundary}"


def _spell_part(body: Body, name: str, quoted: str, value: Any) -> bytes:
    is_file = name in body.files
    nested = isinstance(value, (Mapping, list))
    media_type = body.encoding.get(name, {}).get("contentType")
    if not isinstance(media_type, str) or "," in media_type or "*" in media_type:
        media_type = ""
    if not media_type or not HEADER_VALUE.fullmatch(media_type):
        media_type = "application/octet-stream" if is_file else ""
        if nested:
            media_type = "application/json"
    lines = [f'Content-Disposition: form-data; name="{quoted}"']
    if is_file:
        lines[0] += f'; filename="{quoted}"'
    if media_type:
        lines.append(f"Content-Type: {media_type}")
    text = "\r\n".join([*lines, "", _spell_text(value)])
    return json_values.clean_text(text).encode()


def _quote(name: str) -> str:
    """A field's name as browsers write it: what could end it is percent-encoded. So is a backslash,
    behind which some servers read a quote as a part of the name.
    """
    return _ENDING.sub(lambda found: quote(found[0]), json_values.clean_text(name))
