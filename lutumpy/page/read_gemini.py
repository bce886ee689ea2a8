"""Contents of Gemini on the page. Broken ones are read like good ones."""

# Calls and results may have no id. A call gets one from its place then, and a result that of the
# first call of its name that waits in one of the last steps.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.models import ResultStatus, Usage
from lutumpy.page.model import Piece, Place, Step
from lutumpy.page.pieces import (
    argument_text,
    content_pieces,
    data_piece,
    extra_piece,
    text_piece,
    unwrap,
)
from lutumpy.page.timeline import Timeline

__all__ = ["read_message", "read_system", "read_usage"]

# What is shown by itself; other keys of a content are shown as they are.
_CONTENT = frozenset(("role", "parts"))
_TEXT = frozenset(("text", "thought", "thoughtSignature", "thought_signature"))
_STEPS_BACK = 3
"""In how many steps a result without an id looks for its call."""

_OTHER_NAMES = {"model": "assistant"}
_SNAKE = {
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "thoughtSignature": "thought_signature",
    "inlineData": "inline_data",
    "fileData": "file_data",
    "fileUri": "file_uri",
    "mimeType": "mime_type",
}
"""The names that are read, as proto JSON spells them too."""


def read_message(timeline: Timeline, index: int, message: Mapping[str, Any]) -> None:
    parts = unwrap(message.get("parts"))
    listed = parts if isinstance(parts, (list, tuple)) else () if parts is None else (parts,)
    reader = _ContentReader(timeline, index, _role_of(message))
    for number, part in enumerate(listed):
        reader.read_part(number, unwrap(part))
    extra = extra_piece(message, _CONTENT, timeline.limit)
    if extra or not listed:
        reader.step.pieces.extend(extra)


def _role_of(message: Mapping[str, Any]) -> Any:
    role = message.get("role")
    if role is None or role == "":
        return "user"
    return _OTHER_NAMES.get(role, role) if isinstance(role, str) else role


class _ContentReader:
    """Reads the parts of one content."""

    def __init__(self, timeline: Timeline, index: int, role: Any) -> None:
        self._timeline = timeline
        self._index = index
        self._role = role
        self._step: Step | None = None
        self._calls = 0

    @property
    def step(self) -> Step:
        """The content's own step, made when something is said in it."""
        if self._step is None:
            place = (self._index,)
            # Neighbouring contents of the model are one turn to the API.
            if self._role == "assistant":
                self._step = self._timeline.continue_answer(place)
            else:
                self._step = self._timeline.add_step(self._role, [], place)
        return self._step

    def read_part(self, number: int, part: Any) -> None:
        limit = self._timeline.limit
        if not isinstance(part, Mapping):
            self.step.pieces.append(data_piece("Part of an unknown form", part, limit))
            return
        call, result = _of(part, "functionCall"), _of(part, "functionResponse")
        if isinstance(call, Mapping):
            self._add_call(number, call)
        elif isinstance(result, Mapping):
            self._add_result(number, result)
        else:
            self.step.pieces.extend(_part_pieces(part, limit))

    def _add_call(self, number: int, call: Mapping[str, Any]) -> None:
        place: Place = (self._index, "parts", number)
        call_id = call.get("id") or f"{self._index}.{self._calls}"
        self._calls += 1
        arguments = argument_text(call.get("args", {}))
        self._timeline.add_call(self.step, call_id, call.get("name"), arguments, place)

    def _waiting(self, name: Any) -> str | None:
        for step in reversed(self._timeline.steps[-_STEPS_BACK:]):
            waiting = [call for call in step.calls if not call.results]
            if waiting:
                named = [call for call in waiting if call.name == name]
                return (named or waiting)[0].call_id
        return None

    def _add_result(self, number: int, result: Mapping[str, Any]) -> None:
        call_id = result.get("id") or self._waiting(result.get("name"))
        limit = self._timeline.limit
        response = unwrap(result.get("response"))
        status: ResultStatus | None = None
        shown: Any = response
        if isinstance(response, Mapping) and len(response) == 1:
            status = "error" if "error" in response else None
            shown = next(iter(response.values()))
        pieces = _response_pieces(shown, response, limit)
        files = unwrap(result.get("parts"))
        for file in files if isinstance(files, (list, tuple)) else ():
            file = unwrap(file)
            pieces += _part_pieces(file if isinstance(file, Mapping) else {"part": file}, limit)
        place: Place = (self._index, "parts", number)
        self._timeline.add_result(call_id, pieces, place, status)


def _of(part: Mapping[str, Any], name: str) -> Any:
    """What a part has under a name, in either spelling of it."""
    found = part.get(name)
    return unwrap(part.get(_SNAKE[name]) if found is None else found)


def _response_pieces(shown: Any, response: Any, limit: int) -> list[Piece]:
    """What came out: a text as a text, anything else as JSON."""
    if isinstance(shown, str):
        return [text_piece(shown, limit)] if shown else []
    if response is None or response == {}:
        return []
    return [data_piece("Response", response, limit)]


def _part_pieces(part: Mapping[str, Any], limit: int) -> list[Piece]:
    """The pieces of a part that is neither a call nor a result."""
    text = part.get("text")
    if isinstance(text, str) and part.keys() <= _TEXT:
        signed = ", signed" if _of(part, "thoughtSignature") else ""
        if part.get("thought") is True:
            return [text_piece(text, limit, "reasoning", f"Reasoning{signed}")]
        return [text_piece(text, limit)] if text else []
    data = _of(part, "inlineData")
    if isinstance(data, Mapping) and isinstance(data.get("data"), str):
        return content_pieces([_as_block(data)], limit)
    file = _of(part, "fileData")
    if isinstance(file, Mapping) and isinstance(_of(file, "fileUri"), str):
        return [data_piece("File", file, limit)]
    return [data_piece("Part of the provider", part, limit)]


def _as_block(data: Mapping[str, Any]) -> dict[str, Any]:
    """Bytes in the form in which the page reads those of others; it knows one alphabet."""
    media_type = _of(data, "mimeType")
    kind = "image" if str(media_type).startswith("image/") else "document"
    text = data["data"].replace("-", "+").replace("_", "/")
    source = {"type": "base64", "media_type": media_type, "data": text + "=" * (-len(text) % 4)}
    return {"type": kind, "source": source}


def read_system(system: Any, limit: int) -> list[Piece]:
    """The pieces of a system instruction, which is a content."""
    parts = unwrap(system.get("parts")) if isinstance(system, Mapping) else None
    if not isinstance(parts, (list, tuple)):
        return content_pieces(system, limit)
    found: list[Piece] = []
    for part in parts:
        part = unwrap(part)
        found += _part_pieces(part if isinstance(part, Mapping) else {"part": part}, limit)
    return found


def read_usage(usage: Mapping[str, Any]) -> Usage | None:
    """The tokens of an answer; `None` for counts of another API."""
    if "promptTokenCount" not in usage and "candidatesTokenCount" not in usage:
        return None
    counts = {key: value for key, value in usage.items() if type(value) is int and value > 0}
    thought = counts.get("thoughtsTokenCount", 0)
    asked = counts.get("promptTokenCount", 0) + counts.get("toolUsePromptTokenCount", 0)
    written = counts.get("candidatesTokenCount", 0) + thought
    total = counts.get("totalTokenCount", asked + written)
    cached = counts.get("cachedContentTokenCount", 0)
    return Usage(asked, written, total, cached, 0, thought)
