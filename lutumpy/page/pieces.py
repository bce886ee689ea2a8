"""The content of a message, of whichever API, as pieces to show.

Nothing that JSON can hold makes it raise.

The three APIs name their parts differently and never alike for different things, so one reading
serves them all.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from lutumpy.models import FilePart, FoundTool, ImagePart, Part, RawPart, TextPart
from lutumpy.page.model import Piece
from lutumpy.page.text import data_value, prose
from lutumpy.plain import json_values
from lutumpy.plain.safe_text import safe_repr

__all__ = [
    "argument_text",
    "as_label",
    "content_pieces",
    "data_piece",
    "extra_piece",
    "part_piece",
    "part_pieces",
    "result_content",
    "text_piece",
    "unwrap",
]

_DATA_URI = re.compile(r"data:([\w.+/-]+);base64,", re.ASCII | re.IGNORECASE)
_LARGEST_IMAGE = 20_000_000  # characters of base64

# How each kind of image begins; what claims to be one and doesn't begin so is not shown.
_SIGNATURES: Mapping[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}


def unwrap(value: Any) -> Any:
    """`value` as JSON values, if it is an object of a provider's SDK; anything else as it is."""
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, (Mapping, type)):
        return value
    try:
        return dump(mode="json", exclude_unset=True, warnings=False)
    except Exception:
        # An object that can't be dumped is still shown, by its name.
        return safe_repr(value)


def text_piece(text: str, limit: int, kind: Any = "text", label: str = "") -> Piece:
    """A text to read."""
    return Piece(kind, label, prose(text, limit))


def data_piece(label: str, value: Any, limit: int) -> Piece:
    """Anything else, as JSON."""
    return Piece("data", label, value=data_value(value, limit))


def extra_piece(message: Mapping[str, Any], known: frozenset[str], limit: int) -> list[Piece]:
    """The fields of a message that have no place of their own, so that nothing is hidden."""
    extra = {key: value for key, value in message.items() if key not in known and value is not None}
    return [data_piece("Other fields", extra, limit)] if extra else []


def content_pieces(content: Any, limit: int) -> list[Piece]:
    """The pieces of a message's content.

    Args:
        content: A text, a list of parts, or whatever is in their place.
        limit: Characters of one text.
    """
    content = unwrap(content)
    if content is None:
        return []
    if isinstance(content, str):
        return [text_piece(content, limit)] if content else []
    if not isinstance(content, (list, tuple)):
        return [data_piece("Content of an unknown form", content, limit)]
    return [part_piece(unwrap(part), limit) for part in content]


def part_piece(part: Any, limit: int) -> Piece:
    """The piece of one part of a content."""
    if isinstance(part, str):
        return text_piece(part, limit)
    if not isinstance(part, Mapping):
        return data_piece("Part of an unknown form", part, limit)
    kind = part.get("type")
    if kind in ("text", "input_text", "output_text", "summary_text", "reasoning_text") or (
        kind is None and set(part) == {"text"}
    ):
        text = part.get("text")
        return (
            text_piece(text, limit)
            if isinstance(text, str)
            else data_piece("Text of an unknown form", part, limit)
        )
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return text_piece(part["refusal"], limit, "refusal", "Refusal")
    if kind == "thinking":
        text = part.get("thinking")
        signed = ", signed" if part.get("signature") else ""
        return text_piece(
            text if isinstance(text, str) else "", limit, "reasoning", f"Reasoning{signed}"
        )
    if kind == "redacted_thinking":
        return text_piece("", limit, "reasoning", "Reasoning, redacted by the provider")
    if kind in ("image_url", "input_image", "image"):
        return _read_image(part, limit)
    if kind in ("file", "input_file", "document", "input_audio", "audio"):
        return _read_file(part, limit)
    return data_piece(
        kind if isinstance(kind, str) and kind else "Part without a type", part, limit
    )


def _read_image(part: Mapping[str, Any], limit: int) -> Piece:
    found = part.get("image_url")
    found = found.get("url") if isinstance(found, Mapping) else found
    source = part.get("source")
    if isinstance(found, str):
        match = _DATA_URI.match(found)
        if match:
            return image_piece(match[1].lower(), found[match.end() :], limit)
        return Piece("image", f"Image at {found[:2_000]} (not loaded)")
    if isinstance(source, Mapping):
        data, media_type, url = source.get("data"), source.get("media_type"), source.get("url")
        if isinstance(data, str) and isinstance(media_type, str):
            return image_piece(media_type.lower(), data, limit)
        if isinstance(url, str):
            return Piece("image", f"Image at {url[:2_000]} (not loaded)")
    return data_piece("Image", part, limit)


def image_piece(media_type: str, data: str, limit: int) -> Piece:
    """An image from its base64 text, if it is of a known kind and really begins like one."""
    size = f"{len(data) * 3 // 4:,} bytes"
    try:
        head = base64.b64decode(data[:32], validate=True)
        known = any(head.startswith(signature) for signature in _SIGNATURES.get(media_type, ()))
        if known and len(data) <= _LARGEST_IMAGE:
            base64.b64decode(data, validate=True)
            return Piece(
                "image", f"{media_type}, {size}", source=f"data:{media_type};base64,{data}"
            )
    except (binascii.Error, ValueError):
        pass
    return Piece("image", f"Image that is not shown: {media_type[:100]}, {size}")


def _read_file(part: Mapping[str, Any], limit: int) -> Piece:
    inner = next(
        (
            part[k]
            for k in ("file", "source", "input_audio", "audio")
            if isinstance(part.get(k), Mapping)
        ),
        part,
    )
    content = inner.get("data") if isinstance(inner.get("data"), str) else None
    if inner.get("type") == "text" and content is not None:
        return text_piece(
            content,
            limit,
            "file",
            f"Document: {_join_words(part.get('title'), inner.get('media_type'))}",
        )
    names = [
        part.get("filename"),
        inner.get("filename"),
        part.get("title"),
        inner.get("media_type"),
        inner.get("format"),
    ]
    names += [
        part.get("file_url"),
        inner.get("url"),
        inner.get("file_id"),
        part.get("file_id"),
        inner.get("id"),
    ]
    content = content or next(
        (x for x in (inner.get("file_data"), part.get("file_data")) if isinstance(x, str)), None
    )
    size = f"{len(content) * 3 // 4:,} bytes" if content is not None else None
    described = _join_words(*names, size)
    return Piece("file", f"File: {described}") if described else data_piece("File", part, limit)


def _join_words(*values: Any) -> str:
    return ", ".join(
        dict.fromkeys([value[:500] for value in values if isinstance(value, str) and value])
    )


def part_pieces(parts: tuple[Part, ...], limit: int) -> list[Piece]:
    """The parts of a `Transcript`'s message or result."""
    pieces: list[Piece] = []
    for part in parts:
        if isinstance(part, TextPart):
            pieces.append(text_piece(part.text, limit))
        elif isinstance(part, FoundTool):
            pieces.append(text_piece(f"Tool found: {part.text}", limit))
        elif isinstance(part, RawPart):
            pieces.append(data_piece(f"For {part.api} alone", part.value, limit))
        elif part.data is None:
            kind = "Image" if isinstance(part, ImagePart) else "File"
            pieces.append(
                Piece("image" if kind == "Image" else "file", f"{kind} at {part.url} (not loaded)")
            )
        elif isinstance(part, FilePart):
            pieces.append(
                Piece(
                    "file",
                    f"File: {_join_words(part.filename, part.media_type)}, "
                    f"{len(part.data):,} bytes",
                )
            )
        else:
            encoded = base64.b64encode(part.data).decode()
            pieces.append(image_piece((part.media_type or "").lower(), encoded, limit))
    return pieces


def argument_text(value: Any) -> str:
    """The arguments of a call as text, whether the API has them as text or as an object."""
    value = unwrap(value)
    if isinstance(value, str):
        return value
    return "" if value is None else json_values.encode_text(value)


def result_content(content: Any, limit: int) -> str | list[Piece]:
    """What a result holds: its text when it is nothing but one text."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, (list, tuple)):
        if len(content) == 1:
            only = unwrap(content[0])
            if isinstance(only, Mapping) and only.get("type") in (
                "text",
                "input_text",
                "output_text",
            ):
                text = only.get("text")
                return (
                    text
                    if isinstance(text, str)
                    else [data_piece("Text of an unknown form", only, limit)]
                )
        return content_pieces(content, limit)
    return [data_piece("Content", content, limit)]


def as_label(value: Any) -> str:
    """A value that should be a name, as text."""
    return value if isinstance(value, str) else safe_repr(value)[:200]
