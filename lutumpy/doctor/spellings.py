"""Messages, items and blocks of all three APIs read into one vocabulary, whichever API spelled them and however mixed.

Reading is total: what none of the APIs is known to mean by an object is kept whole, as `Opaque`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from lutumpy.apis import Api
from lutumpy.doctor.wording import as_text
from lutumpy.rules.anthropic.blocks import BLOCK_TYPES
from lutumpy.rules.openai.chat.messages import PART_BODIES
from lutumpy.rules.openai.responses.items import (
    ASSISTANT_PARTS,
    INPUT_PARTS,
    ITEM_TYPES,
    OTHER_PARTS,
)
from lutumpy.rules.openai.responses.sequence import CALL_WORDS, OUTPUT_TO_CALLS

PARTS: Mapping[Api, frozenset[str]] = {
    "openai_chat": frozenset(PART_BODIES),
    "openai_responses": frozenset([*INPUT_PARTS, *OTHER_PARTS, *ASSISTANT_PARTS]),
    "anthropic_messages": frozenset(BLOCK_TYPES),
}
"""The types of parts and blocks that each API knows."""

ANY_PARTS: frozenset[str] = frozenset(["video_url", "summary_text", "reasoning"]).union(
    *PARTS.values()
)
TEXTS = ("text", "input_text", "output_text")
UNREADABLE = (
    "thinking",
    "redacted_thinking",
    "reasoning",
    "summary_text",
    "item_reference",
    "compaction",
)
"""Reasoning, what was compressed, and references: only the API that wrote them knows what they say."""
CALLS = frozenset(["tool_use", *CALL_WORDS])
RESULTS = frozenset(["tool_result", *OUTPUT_TO_CALLS])
RESULT_IDS = ("tool_call_id", "tool_use_id", "call_id")
ITEMS = frozenset(ITEM_TYPES) - {"message"}
"""Items of Responses that are no messages."""

_ITEM_OWN = frozenset("type id call_id status caller namespace".split())


@dataclass(frozen=True, slots=True)
class Said:
    """Text, a refusal among it."""

    text: str
    refusal: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """An image, a file or a sound.

    Attributes:
        kind: Which of the three.
        url: Its address, or its bytes as a data URL.
        file_id: What a vendor calls a file that was uploaded to it.
        vendor: That vendor.
        name: The file's name.
        detail: How closely a model looks, where OpenAI was told.
        text: What stands in it, of a file that is a text.
        audio: The sound, as OpenAI writes it.
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
        """Media type and base64 text, of bytes."""
        head, comma, data = (self.url or "").partition(",")
        if not comma or not head.startswith("data:") or not head.endswith(";base64"):
            return None
        return head[len("data:") :].partition(";")[0].strip().lower(), data


@dataclass(frozen=True, slots=True)
class Called:
    """A call; `custom` is one whose arguments are free text."""

    call_id: Any
    name: Any
    arguments: Any
    custom: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """The result of a call.

    Attributes:
        call_id: Whose.
        content: A text, or what it says and shows.
        failed: It is marked as an error.
        custom: It answers a call with free text.
        more: What else a result of Messages holds.
    """

    call_id: Any
    content: str | tuple[Piece, ...]
    failed: bool = False
    custom: bool = False
    more: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Thought:
    """Reasoning and the like, which only the API that wrote it can read."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """What only the API that wrote it has."""

    value: Any


@dataclass(frozen=True, slots=True)
class Kept:
    """A part of the very API that the message is for."""

    value: Any


Piece: TypeAlias = "Said | Shown | Called | Answered | Thought | Opaque | Kept"


def read_entry(
    api: Api, entry: Mapping[str, Any], number: int, last_call: Mapping[str, str]
) -> tuple[str, list[Piece]]:
    """The role of a message or an item, and what it says, shows, calls and answers.

    Args:
        api: Whose API the message is for: parts of it are kept as they are.
        entry: The message.
        number: Its index, from which a call of Chat's old functions gets an id.
        last_call: Id of the last call of each old function.
    """
    role = role_of(entry)
    if role is None:
        piece = read_part(api, entry)
        return "user" if isinstance(piece, Answered) else "assistant", [piece]
    content = entry.get("content")
    if role in ("tool", "function") and not _holds_results(content):
        call_id = result_id(entry) if role == "tool" else last_call.get(str(entry.get("name")))
        return "user", [
            Answered(call_id, _content(api, content), failed=entry.get("is_error") is True)
        ]
    pieces = [Said(content)] if isinstance(content, str) and content else list(_parts(api, content))
    refusal = entry.get("refusal")
    if isinstance(refusal, str) and refusal:
        pieces.append(Said(refusal, refusal=True))
    known = {call_id for piece in pieces if (call_id := _called(piece)) is not None}
    calls = entry.get("tool_calls")
    read = [read_part(api, call) for call in (calls if isinstance(calls, list) else ()) if call]
    pieces += [
        call for call in read if _called(call) not in known
    ]  # some programs write each call both ways
    function = entry.get("function_call")
    if isinstance(function, Mapping):
        pieces.append(
            Called(legacy_id(function, number), function.get("name"), function.get("arguments"))
        )
    return "user" if role in ("tool", "function") else role, pieces


def type_of(value: Any) -> str:
    """The `type` of an object, if it has one."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    return kind if isinstance(kind, str) else ""


def role_of(entry: Mapping[str, Any]) -> str | None:
    """The role of a message, which a message of Chat Completions may only show; `None` of an item that has none."""
    role = entry.get("role")
    if isinstance(role, str) or isinstance(entry.get("type"), str):
        return role if isinstance(role, str) else None
    if isinstance(entry.get("tool_call_id"), str):
        return "tool"
    return "assistant" if entry.get("tool_calls") else None


def _called(piece: Piece) -> str | None:
    call_id = piece.call_id if isinstance(piece, Called) else None
    if isinstance(piece, Kept) and piece.value.get("type") == "tool_use":
        call_id = piece.value.get("id")
    return call_id if isinstance(call_id, str) else None


def legacy_id(function: Mapping[str, Any], number: int) -> str:
    """An id for a call that Chat Completions wrote before calls had any."""
    return f"call_{function.get('name')}_{number}"


def result_id(entry: Mapping[str, Any]) -> Any:
    """Whose result it is, under whichever API's name for that."""
    return next((entry[key] for key in RESULT_IDS if entry.get(key) is not None), None)


def _holds_results(content: Any) -> bool:
    parts = content if isinstance(content, list) else ()
    return any(type_of(part) in RESULTS for part in parts)


def _content(api: Api, content: Any) -> str | tuple[Piece, ...]:
    if content is None or isinstance(content, str):
        return content or ""
    parts = [content] if type_of(content) in ANY_PARTS else content
    return tuple(_parts(api, parts)) if isinstance(parts, list) else as_text(content)


def _parts(api: Api, content: Any) -> Iterator[Piece]:
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping):
            yield read_part(api, part)
        elif part not in (None, ""):
            yield Said(part if isinstance(part, str) else as_text(part))


def read_part(api: Api, part: Any) -> Piece:
    """A part, a block, a call or an item, by its type."""
    if not isinstance(part, Mapping):
        return Opaque(part)
    kind = type_of(part) or ("function" if isinstance(part.get("function"), Mapping) else "")
    if kind == "tool_use" and api == "anthropic_messages":
        return Kept(part)
    if kind in CALLS:
        return _call(kind, part)
    if kind in RESULTS:
        return _result(api, kind, part)
    body = part.get(kind)
    if kind in ("function", "custom") and isinstance(body, Mapping):
        key = "arguments" if kind == "function" else "input"
        return Called(
            part.get("id", part.get("call_id")), body.get("name"), body.get(key), kind == "custom"
        )
    if isinstance(part.get("name"), str) and ("arguments" in part or "args" in part):
        return Called(
            part.get("id", part.get("call_id")),
            part["name"],
            part.get("arguments", part.get("args")),
        )
    if kind in PARTS[api]:
        return Kept(part)
    reader = _READERS.get(kind)
    read = reader(part) if reader is not None else None
    return read if read is not None else Opaque(part)


def _call(kind: str, part: Mapping[str, Any]) -> Piece:
    if kind == "tool_use":
        return Called(
            part.get("id", part.get("call_id")),
            part.get("name"),
            part.get("input", part.get("arguments")),
        )
    call_id = part.get("call_id", part.get("id"))
    if kind in ("function_call", "custom_tool_call"):
        is_custom = kind == "custom_tool_call"
        return Called(
            call_id, part.get("name"), part.get("input" if is_custom else "arguments"), is_custom
        )
    if kind == "tool_search_call" and part.get("execution") != "client":
        return Opaque(part)  # the provider answered it itself
    return Called(
        call_id, kind.removesuffix("_call"), {k: v for k, v in part.items() if k not in _ITEM_OWN}
    )


def _result(api: Api, kind: str, part: Mapping[str, Any]) -> Piece:
    if kind == "tool_result":
        more = tuple((key, part[key]) for key in ("cache_control", "toolset_name") if key in part)
        failed = part.get("is_error") is True
        return Answered(result_id(part), _content(api, part.get("content")), failed, more=more)
    failed = part.get("status") == "failed"
    if kind in ("function_call_output", "custom_tool_call_output"):
        content = part.get("output", part.get("content"))
        return Answered(
            result_id(part), _content(api, content), failed, kind == "custom_tool_call_output"
        )
    rest = {key: value for key, value in part.items() if key == "status" or key not in _ITEM_OWN}
    output = rest["output"] if "output" in rest and rest.keys() <= {"output", "status"} else rest
    return Answered(result_id(part), output if isinstance(output, str) else as_text(output), failed)


def _said(part: Mapping[str, Any]) -> Piece | None:
    key = "refusal" if part.get("type") == "refusal" else "text"
    value = part.get(key)
    return Said(value, key == "refusal") if isinstance(value, str) else None


def _image(part: Mapping[str, Any]) -> Piece | None:
    """`image_url` of Chat Completions, `input_image` of Responses."""
    image = part.get("image_url")
    body: Mapping[str, Any] = (
        image if isinstance(image, Mapping) else {"url": image, "detail": part.get("detail")}
    )
    url, file_id = _text(body.get("url")), _text(part.get("file_id"))
    if url is None and file_id is None:
        return None
    return Shown("image", url, file_id, "openai", detail=_text(body.get("detail")))


def _file(part: Mapping[str, Any]) -> Piece | None:
    """`file` of Chat Completions, `input_file` of Responses."""
    inner = part.get("file")
    body: Mapping[str, Any] = inner if isinstance(inner, Mapping) else part
    url, file_id = (
        _text(body.get("file_data")) or _text(body.get("file_url")),
        _text(body.get("file_id")),
    )
    if url is None and file_id is None:
        return None
    return Shown("file", url, file_id, "openai", _text(body.get("filename")))


def _audio(part: Mapping[str, Any]) -> Piece | None:
    audio = part.get("input_audio")
    return Shown("audio", audio=audio) if isinstance(audio, Mapping) else None


def _sourced(part: Mapping[str, Any]) -> Piece | None:
    """`image` and `document` of Messages."""
    source = part.get("source")
    if not isinstance(source, Mapping):
        return None
    kind: Literal["image", "file"] = "image" if part.get("type") == "image" else "file"
    name, form, data = _text(part.get("title")), source.get("type"), _text(source.get("data"))
    if form == "base64" and data is not None:
        return Shown(kind, f"data:{source.get('media_type')};base64,{data}", name=name)
    if form == "text" and data is not None:
        return Shown(kind, text=data, name=name)
    url, file_id = _text(source.get("url")), _text(source.get("file_id"))
    if (form == "url" and url is not None) or (form == "file" and file_id is not None):
        return Shown(kind, url, file_id, "anthropic", name)
    return None


def _thought(part: Mapping[str, Any]) -> Piece | None:
    return Thought()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Piece | None]] = {
    **dict.fromkeys([*TEXTS, "refusal"], _said),
    **dict.fromkeys(["image_url", "input_image"], _image),
    **dict.fromkeys(["file", "input_file"], _file),
    **dict.fromkeys(["image", "document"], _sourced),
    **dict.fromkeys(UNREADABLE, _thought),
    "input_audio": _audio,
}

READABLE = frozenset(_READERS)
"""Parts that say or show something, in whichever API."""
