"""What was said, as the conventions write it: messages of parts, as JSON text, within a limit.

It is exported only where a program asks for it. Everything that leaves a process with content goes
through `ContentWriter`, so that "no content" is decided in one place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from lutumpy.models import (
    AssistantTurn,
    CallBlock,
    FilePart,
    ImagePart,
    Item,
    Message,
    Part,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    TextPart,
    ToolResults,
    Transcript,
)
from lutumpy.otel import names
from lutumpy.otel.errors import guard
from lutumpy.plain import json_values

__all__ = ["CaptureContent", "ContentWriter"]

CaptureContent: TypeAlias = "Literal['messages', False] | Callable[[str, str], str | None] | None"
"""What of the content is exported: `False` for nothing, `"messages"` for everything, or a function
that is given the attribute's name and its JSON text and returns what is exported, or `None`. `None`
goes by the environment variable of the conventions.
"""

# The variable that the official instrumentations go by, and its words for "on spans".
_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ON_SPANS = frozenset({"true", "1", "span_only", "span_and_event"})


class ContentWriter:
    """Writes content as attributes, or nothing.

    Where that goes wrong, as in a program's own function, there is no content: what else is known
    of a request is noted all the same.

    Args:
        capture: What is exported.
        max_bytes: Of one attribute, at most: of messages the oldest are left out, a longer value is
            left out altogether. The span says so.
    """

    def __init__(self, capture: CaptureContent, max_bytes: int) -> None:
        if capture is None:
            chosen = os.environ.get(_VARIABLE, "").strip().lower()
            capture = "messages" if chosen in _ON_SPANS else False
        if capture is not False and capture != "messages" and not callable(capture):
            raise TypeError(f'content= is False, "messages" or a function, not {capture!r:.100}')
        self._clean: Callable[[str, str], str | None] | None = None
        if callable(capture):
            self._clean = capture
        self.is_on: bool = capture is not False
        self._max_bytes = max_bytes

    def request(self, transcript: Transcript) -> dict[str, Any]:
        """The attributes of what is sent."""
        return self._guard(self._write_request, transcript)

    def answer(self, turn: AssistantTurn) -> dict[str, Any]:
        """The attributes of an answer."""
        return self._guard(self._write_answer, turn)

    def text(self, name: str, text: str) -> dict[str, Any]:
        """The attribute of one text, as it is."""
        return self._guard(self._write_text, name, text)

    def _guard(self, write: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
        if not self.is_on:
            return {}
        return guard(write, *arguments) or {}

    def _write_request(self, transcript: Transcript) -> dict[str, Any]:
        instructions: list[Any] = []
        messages: list[Any] = []
        for item in transcript:
            if isinstance(item, Message) and item.role in ("system", "developer") and not messages:
                instructions += _list_parts(item.parts)
            else:
                messages.append(_write_item(item))
        found = self._list_attribute(names.INPUT_MESSAGES, messages)
        if instructions:
            found |= self._list_attribute(names.SYSTEM_INSTRUCTIONS, instructions)
        return found

    def _write_answer(self, turn: AssistantTurn) -> dict[str, Any]:
        return self._list_attribute(names.OUTPUT_MESSAGES, [_write_item(turn)])

    def _write_text(self, name: str, text: str) -> dict[str, Any]:
        return self._attribute(name, text, cut=False)

    def _list_attribute(self, name: str, values: Sequence[Any]) -> dict[str, Any]:
        written = [json_values.encode(value) for value in values]
        size = sum(len(each) + 1 for each in written)
        first = 0
        while size > self._max_bytes and first < len(written):
            size -= len(written[first]) + 1
            first += 1
        if written and first == len(written):
            return {names.CONTENT_CUT: True}
        text = "[" + b",".join(written[first:]).decode() + "]"
        return self._attribute(name, text, cut=first > 0)

    def _attribute(self, name: str, text: str, *, cut: bool) -> dict[str, Any]:
        cleaned: str | None = text
        if self._clean is not None:
            cleaned = self._clean(name, text)
        if cleaned is None:
            return {}
        if len(cleaned.encode("utf-8", "replace")) > self._max_bytes:
            return {names.CONTENT_CUT: True}
        return {name: cleaned, names.CONTENT_CUT: True} if cut else {name: cleaned}


def _write_item(item: Item) -> dict[str, Any]:
    if isinstance(item, Message):
        return {"role": item.role, "parts": _list_parts(item.parts)}
    if isinstance(item, ToolResults):
        parts = [
            {"type": "tool_call_response", "id": result.call_id, "response": result.text}
            for result in item.results
        ]
        return {"role": "tool", "parts": parts}
    return {
        "role": "assistant",
        "parts": _list_blocks(item),
        "finish_reason": item.finish_reason,
    }


def _list_blocks(turn: AssistantTurn) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for block in turn.blocks:
        if isinstance(block, (TextBlock, RefusalBlock)):
            parts.append({"type": "text", "content": block.text})
        elif isinstance(block, ReasoningBlock):
            if block.text:
                parts.append({"type": "reasoning", "content": block.text})
        elif isinstance(block, CallBlock):
            call: dict[str, Any] = {"type": "tool_call", "id": block.id, "name": block.name}
            parts.append(call | {"arguments": block.arguments})
        else:
            parts.append({"type": block.kind})
    return parts


def _list_parts(parts: Sequence[Part]) -> list[Mapping[str, Any]]:
    return [_write_part(part) for part in parts]


def _describe_data(part: ImagePart | FilePart) -> tuple[str | None, int]:
    """The media type of the bytes of a part, and how many there are; also of a data URL."""
    if part.url is None:
        return part.media_type, len(part.data or b"")
    head, _, body = part.url[5:].partition(",")
    is_base64 = head.lower().endswith(";base64")
    size = len(body.rstrip("=")) * 3 // 4 if is_base64 else len(body)
    return head.partition(";")[0] or part.media_type, size


def _write_part(part: Part) -> Mapping[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "content": part.text}
    if isinstance(part, (ImagePart, FilePart)):
        modality = "image" if isinstance(part, ImagePart) else "document"
        if part.url is not None and part.url[:5].lower() != "data:":
            return {"type": "uri", "modality": modality, "uri": part.url}
        # The bytes themselves have no place in a trace.
        media_type, size = _describe_data(part)
        return {"type": "blob", "modality": modality, "mime_type": media_type, "size": size}
    return {"type": "text", "content": part.text}
