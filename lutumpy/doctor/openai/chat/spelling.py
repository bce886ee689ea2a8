"""How Chat Completions spells what other APIs say too."""

# a call      {"id", "type": "function", "function": {"name", "arguments"}} in `tool_calls`
# a result    a message of the role `tool` with a `tool_call_id`
# old ones    `function_call` in a message, and a message of the role `function` with the same name

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from lutumpy.doctor.openai.media import read_audio, read_file, read_image, write_audio
from lutumpy.doctor.pieces import Call, Media, Piece, Result, Text, type_of
from lutumpy.doctor.spelling import (
    Json,
    PartReader,
    ReadContent,
    Spelling,
    read_refusal_part,
    read_text_part,
)
from lutumpy.doctor.wording import text_arguments
from lutumpy.rules.openai.chat.messages import PART_BODIES

__all__ = ["SPELLING", "ChatSpelling"]


def _old_call_id(function: Mapping[str, Any], number: int) -> str:
    """An id for a call from the time before calls had any."""
    return f"call_{function.get('name')}_{number}"


def _read_call_body(kind: str, arguments_key: str) -> Callable[[Mapping[str, Any]], Piece | None]:
    """The reader of calls of a type, which have name and arguments in a body under its name."""

    def read_call(call: Mapping[str, Any]) -> Piece | None:
        body = call.get(kind)
        if not isinstance(body, Mapping):
            return None
        call_id = call.get("id", call.get("call_id"))
        arguments = body.get(arguments_key)
        return Call(call_id, body.get("name"), arguments, is_custom=kind == "custom")

    return read_call


class ChatSpelling(Spelling):
    """The spelling of Chat Completions."""

    parts: ClassVar[frozenset[str]] = frozenset(PART_BODIES)
    other_parts: ClassVar[frozenset[str]] = frozenset(
        {"video_url"}
    )  # hosts that show films take it
    readers: ClassVar[Mapping[str, PartReader]] = {
        "text": read_text_part,
        "refusal": read_refusal_part,
        "image_url": read_image,
        "file": read_file,
        "input_audio": read_audio,
    }
    message_calls: ClassVar[Mapping[str, PartReader]] = {
        "function": _read_call_body("function", "arguments"),
        "custom": _read_call_body("custom", "input"),
    }
    result_id_key = "tool_call_id"
    result_roles: ClassVar[tuple[str, ...]] = ("tool", "function")
    has_refusals = True

    # ------------------------------------------------------------- reading

    def shown_role(self, entry: Mapping[str, Any]) -> str | None:
        if isinstance(entry.get("tool_call_id"), str):
            return "tool"
        return "assistant" if entry.get("tool_calls") else None

    def has_calls(self, message: Mapping[str, Any], role: str) -> bool:
        if role in self.result_roles or isinstance(message.get("function_call"), Mapping):
            return True
        calls = message.get("tool_calls")
        if not isinstance(calls, list):
            return False
        # The value may be any JSON: only an object with keys can be read as a call.
        return any(isinstance(call, Mapping) and call for call in calls)

    def has_foreign_calls(
        self,
        message: Mapping[str, Any],
        role: str,
        call_types: frozenset[str],
        id_keys: Sequence[str],
    ) -> bool:
        if role == "tool" and not isinstance(message.get("tool_call_id"), str):
            return any(isinstance(message.get(key), str) for key in id_keys)
        calls = message.get("tool_calls")
        if role != "assistant" or not isinstance(calls, list):
            return False
        return any(type_of(call) in call_types for call in calls)

    def read_result_message(
        self, message: Mapping[str, Any], call_id: Any, read_content: ReadContent
    ) -> Piece:
        content = read_content(message.get("content"))
        return Result(call_id, content, failed=message.get("is_error") is True)

    def read_beside_content(
        self, message: Mapping[str, Any], number: int, read_part: Callable[[Any], Piece]
    ) -> list[Piece]:
        found: list[Piece] = []
        refusal = message.get("refusal")
        if isinstance(refusal, str) and refusal:
            found.append(Text(refusal, is_refusal=True))
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            found += [read_part(call) for call in calls if call]
        function = message.get("function_call")
        if isinstance(function, Mapping):
            call_id = _old_call_id(function, number)
            found.append(Call(call_id, function.get("name"), function.get("arguments")))
        return found

    def unnamed_result_ids(self, messages: Sequence[Any]) -> dict[int, str]:
        """Results of old functions: each gets the id of the last call of its function."""
        last_ids: dict[str, str] = {}
        found: dict[int, str] = {}
        for index, message in enumerate(messages):
            if not isinstance(message, Mapping):
                continue
            function = message.get("function_call")
            name = str(message.get("name"))
            if isinstance(function, Mapping):
                last_ids[str(function.get("name"))] = _old_call_id(function, index)
            elif message.get("role") == "function" and name in last_ids:
                found[index] = last_ids[name]
        return found

    # ------------------------------------------------------------- writing

    def write_group(self, role: str, pieces: Sequence[Piece]) -> list[Json]:
        if role == "results":
            return [self._write_result(piece) for piece in pieces if isinstance(piece, Result)]
        calls = [_write_call(piece) for piece in pieces if isinstance(piece, Call)]
        others = [piece for piece in pieces if not isinstance(piece, Call)]
        content = self.write_content(others, by_model=role == "assistant")
        if calls:
            return [{"role": role, "content": content or None, "tool_calls": calls}]
        return [{"role": role, "content": content}] if content else []

    def _write_result(self, result: Result) -> Json:
        content = self.write_result_content(result)
        return {"role": "tool", "tool_call_id": result.call_id, "content": content}

    def write_media(self, media: Media) -> Json | None:
        if media.kind == "image" and media.url is not None:
            image: Json = {"url": media.url}
            if media.detail is not None:
                image["detail"] = media.detail
            return {"type": "image_url", "image_url": image}
        if media.kind == "file" and media.data is not None:
            file = {"filename": media.name or "file", "file_data": media.url}
            return {"type": "file", "file": file}
        if media.kind == "file" and media.file_id is not None and media.vendor == "openai":
            return {"type": "file", "file": {"file_id": media.file_id}}
        return write_audio(media)


def _write_call(call: Call) -> Json:
    if call.is_custom:
        body = {"name": call.name, "input": text_arguments(call.arguments)}
        return {"id": call.call_id, "type": "custom", "custom": body}
    body = {"name": call.name, "arguments": text_arguments(call.arguments)}
    return {"id": call.call_id, "type": "function", "function": body}


SPELLING = ChatSpelling()
