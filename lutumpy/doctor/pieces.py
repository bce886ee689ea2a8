"""What a history says in the terms of no API: texts, media, calls, results, reasoning."""

# Conversion between APIs goes through these pieces, so that each API is read and written once and
# not once for each other API:
#
#     Chat Completions ──┐                        ┌── Chat Completions
#     Responses ─────────┼── read ── pieces ── write ┼── Responses
#     Messages ──────────┘                        └── Messages
#
# Reading is total: an object that no API is known to mean anything by is kept whole, as `Opaque`.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

__all__ = [
    "Call",
    "Media",
    "Opaque",
    "OwnPart",
    "Piece",
    "Reasoning",
    "Result",
    "Text",
    "add_to_result",
    "non_empty_text",
    "type_of",
]


@dataclass(frozen=True, slots=True)
class Text:
    """A text; a refusal is one too."""

    text: str
    is_refusal: bool = False


@dataclass(frozen=True, slots=True)
class Media:
    """An image, a file or a sound.

    Attributes:
        kind: Which of the three.
        url: Its address, or its bytes as a data URL.
        file_id: The name that a vendor gave to an uploaded file.
        vendor: That vendor.
        name: The file's name.
        detail: How closely a model shall look at an image, where the API has words for that.
        text: The content of a file that is plain text.
        audio: A sound, as OpenAI's APIs write it.
    """

    kind: Literal["image", "file", "audio"]
    url: str | None = None
    file_id: str | None = None
    vendor: str = ""
    name: str | None = None
    detail: str | None = None
    text: str | None = None
    audio: Mapping[str, Any] | None = None

    @property
    def data(self) -> tuple[str, str] | None:
        """Media type and base64 text, when the URL holds the bytes themselves."""
        head, comma, data = (self.url or "").partition(",")
        if not comma or not head.startswith("data:") or not head.endswith(";base64"):
            return None
        return head[len("data:") :].partition(";")[0].strip().lower(), data


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; with `is_custom` its arguments are free text."""

    call_id: Any
    name: Any
    arguments: Any
    is_custom: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call.

    Attributes:
        call_id: The call that it answers.
        content: A text, or pieces.
        failed: It is marked as an error.
        is_custom: It answers a call with free text.
        more: Further keys of the result that an API with the same keys keeps.
    """

    call_id: Any
    content: str | tuple[Piece, ...]
    failed: bool = False
    is_custom: bool = False
    more: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Reasoning, compressed history or a reference: only the API that wrote it can read it."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something that no other API has; it is kept as its JSON text."""

    value: Any


@dataclass(frozen=True, slots=True)
class OwnPart:
    """A part in the spelling of the API that the history is for: it stays as it is.

    Attributes:
        value: The part.
        call_id: Its id, when it is a call.
    """

    value: Any
    call_id: str | None = None


Piece: TypeAlias = "Text | Media | Call | Result | Reasoning | Opaque | OwnPart"
"""One part of what was said, in the form that all APIs share."""


def add_to_result(result: Result, shown: Sequence[Piece]) -> Result:
    """The result with something that it shows behind its content."""
    content = result.content
    if isinstance(content, str):
        content = (Text(content),) if content else ()
    return replace(result, content=(*content, *shown))


def type_of(value: Any) -> str:
    """The `type` of an object; empty when it has none."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    return kind if isinstance(kind, str) else ""


def non_empty_text(value: Any) -> str | None:
    """`value` if it is a text with at least one character."""
    return value if isinstance(value, str) and value else None
