"""How generateContent spells what other APIs say too."""

# a call      a part `functionCall` in a content of the model; the first one of a content is signed
# a result    a part `functionResponse` in the user's content after it; it has its call's name, and
#             its id only where the call has one
#
# Nothing here has a `type`: the one key of a part says what it is. So the readers by type, which
# other APIs have, aren't used, and a content is read as a whole.

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from mimetypes import guess_type
from typing import Any, ClassVar

from lutumpy.core.parts import marked_system
from lutumpy.doctor.editor import copied
from lutumpy.doctor.pieces import Call, Media, Opaque, Piece, Reasoning, Result, Text
from lutumpy.doctor.spelling import Json, Spelling, object_arguments
from lutumpy.doctor.wording import NO_TEXT, as_text
from lutumpy.rules.gemini.blocks import data_of
from lutumpy.rules.gemini.fields import field, holder
from lutumpy.rules.gemini.limits import FOREIGN_SIGNATURE, RESULT_MEDIA_TYPES
from lutumpy.rules.problem import items, text

__all__ = ["SPELLING", "ContentSpelling"]


class ContentSpelling(Spelling):
    """The spelling of contents."""

    joins_messages = True
    marks_errors = True
    content_key = "parts"
    role_names: ClassVar[Mapping[str, str]] = {"model": "assistant"}

    # --------------------------------------------------------------- reading

    def shown_role(self, entry: Mapping[str, Any]) -> str | None:
        return "user" if "parts" in entry else None

    def has_calls(self, message: Mapping[str, Any], role: str) -> bool:
        return any(
            field(part, "functionCall") is not None or field(part, "functionResponse") is not None
            for part in items(message.get("parts"))
        )

    def read_beside_content(
        self, message: Mapping[str, Any], number: int, read_part: Callable[[Any], Piece]
    ) -> list[Piece]:
        parts = message.get("parts")
        # The SDK takes one part without a list around it, and a text in the place of a part.
        listed = [parts] if isinstance(parts, (str, Mapping)) else items(parts)
        return list(_read_parts(listed, number))

    # --------------------------------------------------------------- writing

    def text_part(self, text: str, *, by_model: bool) -> Json:
        return {"text": text}

    def write_part(self, piece: Piece, *, by_model: bool) -> Json | None:
        # What only this API has is kept where it came from.
        if isinstance(piece, Opaque) and isinstance(piece.value, Mapping) and data_of(piece.value):
            kept: Json = copied(dict(piece.value))
            return kept
        return super().write_part(piece, by_model=by_model)

    def write_group(self, role: str, pieces: Sequence[Piece]) -> list[Json]:
        parts: list[Json] = []
        is_signed = False
        for piece in pieces:
            if isinstance(piece, Result):
                parts.append(self._write_result(piece))
            elif isinstance(piece, Call):
                part = _write_call(piece)
                # Only Gemini signs its calls, and the API asks for a mark of those of others.
                parts.append(part if is_signed else {**part, "thoughtSignature": FOREIGN_SIGNATURE})
                is_signed = True
            else:
                parts += self.write_parts([piece], by_model=role == "assistant")
        if not parts:
            return []
        if role in ("system", "developer"):
            parts = [
                {"text": marked_system(part["text"])} if "text" in part else part for part in parts
            ]
        return [{"role": "model" if role in ("assistant", "model") else "user", "parts": parts}]

    def _write_result(self, result: Result) -> Json:
        """The result without its name, which only its call knows: another repair looks there."""
        content = result.content
        pieces: Sequence[Piece] = () if isinstance(content, str) else content
        shown = [part for part in map(_write_shown, pieces) if part is not None]
        texts = [piece for piece in pieces if _write_shown(piece) is None]
        words = content if isinstance(content, str) else _join_texts(self, texts)
        key, empty = ("error", NO_TEXT) if result.failed else ("output", "")
        response: Json = {} if not words and not result.failed else {key: words or empty}
        body: Json = {"response": response}
        if isinstance(result.call_id, str) and result.call_id:
            body = {"id": result.call_id, **body}
        if shown:
            body["parts"] = shown
        return {"functionResponse": body}

    def write_media(self, media: Media) -> Json | None:
        if media.data is not None:
            media_type, data = media.data
            return {"inlineData": {"mimeType": media_type, "data": data}}
        if media.url is None or media.url.startswith("data:"):
            return None
        guessed, _ = guess_type(media.url.partition("?")[0])
        typed = {} if guessed is None else {"mimeType": guessed}
        return {"fileData": {"fileUri": media.url, **typed}}


def _write_call(call: Call) -> Json:
    body: Json = {"name": call.name, "args": object_arguments(call)}
    if isinstance(call.call_id, str) and call.call_id:
        body = {"id": call.call_id, **body}
    return {"functionCall": body}


def _write_shown(piece: Piece) -> Json | None:
    """What a result may show beside its response."""
    if not isinstance(piece, Media) or piece.data is None:
        return None
    media_type, data = piece.data
    if media_type not in RESULT_MEDIA_TYPES:
        return None
    return {"inlineData": {"mimeType": media_type, "data": data}}


def _join_texts(spelling: ContentSpelling, pieces: Sequence[Piece]) -> str:
    parts = spelling.write_parts(pieces, by_model=False)
    return "\n".join([text(part.get("text")) or as_text(part) for part in parts])


def _read_parts(parts: Sequence[Any], number: int) -> Iterator[Piece]:
    """What a content says. Calls without ids get one from their place, and so do their results."""
    calls = results = 0
    for part in parts:
        call, result = field(part, "functionCall"), field(part, "functionResponse")
        if isinstance(call, Mapping):
            new_id = f"call_{number}_{calls}"
            yield Call(text(call.get("id")) or new_id, call.get("name"), call.get("args"))
            calls += 1
        elif isinstance(result, Mapping):
            new_id = f"call_{number - 1}_{results}"
            yield _read_result(result, text(result.get("id")) or new_id)
            results += 1
        elif isinstance(part, Mapping):
            yield _read_part(part)
        elif isinstance(part, str) and part:
            yield Text(part)


def _read_result(result: Mapping[str, Any], call_id: str) -> Result:
    response = result.get("response")
    content: Any = response
    failed = False
    if isinstance(response, Mapping) and len(response) == 1:
        (key,) = response
        failed = key == "error"
        content = response[key] if key in ("output", "error") else response
    words = content if isinstance(content, str) else as_text(content) if content else ""
    shown = [_read_part(part) for part in items(result.get("parts")) if isinstance(part, Mapping)]
    if not shown:
        return Result(call_id, words, failed)
    texts: list[Piece] = [Text(words)] if words else []
    return Result(call_id, (*texts, *shown), failed)


def _read_part(part: Mapping[str, Any]) -> Piece:
    words = part.get("text")
    if part.get("thought") is True:
        return Reasoning()
    if isinstance(words, str):
        return Text(words)
    data, file = holder(part, "inlineData"), holder(part, "fileData")
    media_type = text(field(data or file, "mimeType")) or ""
    kind: Any = media_type.partition("/")[0]
    kind = kind if kind in ("image", "audio") else "file"
    if isinstance(data.get("data"), str):
        return Media(kind, url=f"data:{media_type};base64,{data['data']}")
    address = text(field(file, "fileUri"))
    if address is not None:
        return Media(kind, url=address)
    return Opaque(dict(part))


SPELLING = ContentSpelling()
