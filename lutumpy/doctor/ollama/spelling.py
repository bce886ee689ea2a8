"""How Ollama's API spells what other APIs say too."""

# a call      {"id", "function": {"name", "arguments": {...}}} in `tool_calls`; mostly without an id
# a result    a message of the role `tool` with `tool_name`, and `tool_call_id` where calls have ids
# an image    base64 text among the `images` of a message

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from lutumpy.doctor.pieces import Call, Media, Piece, Reasoning, Result, Text, type_of
from lutumpy.doctor.spelling import FAILED, Json, Spelling
from lutumpy.doctor.wording import NO_TEXT, as_object, as_text, text_arguments
from lutumpy.rules.media import image_type, type_of_bytes
from lutumpy.rules.ollama.sequence import call_named, match_results, result_named
from lutumpy.rules.problem import items

__all__ = ["SPELLING", "OllamaSpelling"]


def _call_id(call: Mapping[str, Any], message: int, number: int) -> Any:
    """The id of a call, or one in its place."""
    return call.get("id") or f"call_{message}_{number}"


class OllamaSpelling(Spelling):
    """The spelling of Ollama's API."""

    result_id_key: ClassVar[str] = "tool_call_id"
    result_roles: ClassVar[tuple[str, ...]] = ("tool",)

    # ------------------------------------------------------------- reading

    def shown_role(self, entry: Mapping[str, Any]) -> str | None:
        if isinstance(entry.get("tool_name"), str):
            return "tool"
        return "assistant" if entry.get("tool_calls") else None

    def has_calls(self, message: Mapping[str, Any], role: str) -> bool:
        return role in self.result_roles or bool(_functions_in(message))

    def has_foreign_calls(
        self,
        message: Mapping[str, Any],
        role: str,
        call_types: frozenset[str],
        id_keys: Sequence[str],
    ) -> bool:
        # The API looks at no type: what has a function is its own, whatever type it has besides.
        return any(
            type_of(call) in call_types and not isinstance(call.get("function"), Mapping)
            for call in items(message.get("tool_calls"))
        )

    def read_beside_result(self, message: Mapping[str, Any]) -> list[Piece]:
        return _images_in(message)

    def read_beside_content(
        self, message: Mapping[str, Any], number: int, read_part: Callable[[Any], Piece]
    ) -> list[Piece]:
        found: list[Piece] = []
        if isinstance(message.get("thinking"), str):
            found.append(Reasoning())
        found += _images_in(message)
        for place, call in enumerate(items(message.get("tool_calls"))):
            function = call.get("function") if isinstance(call, Mapping) else None
            if isinstance(function, Mapping):
                call_id = _call_id(call, number, place)
                found.append(Call(call_id, function.get("name"), function.get("arguments")))
            elif call:
                found.append(read_part(call))
        return found

    def unnamed_result_ids(self, messages: Sequence[Any]) -> dict[int, str]:
        """Results of calls without ids: each gets the id that its call is read with."""
        found: dict[int, str] = {}
        for index, message in enumerate(messages):
            calls = _functions_in(message) if isinstance(message, Mapping) else []
            if all(call.get("id") for call in calls):
                continue
            end = index + 1
            while end < len(messages) and _is_result(messages[end]):
                end += 1
            results = [result_named(result) for result in messages[index + 1 : end]]
            answers = match_results([call_named(call) for call in calls], results)
            for number, place in enumerate(answers.of_calls):
                if place is not None and not calls[number].get("id"):
                    found[index + 1 + place] = _call_id(calls[number], index, number)
        return found

    # ------------------------------------------------------------- writing

    def write_group(self, role: str, pieces: Sequence[Piece]) -> list[Json]:
        if role == "results":
            return [
                entry
                for piece in pieces
                if isinstance(piece, Result)
                for entry in self._write_result(piece)
            ]
        message: Json = {"role": role, **write_text_and_images(self, pieces)}
        calls = [_write_call(piece) for piece in pieces if isinstance(piece, Call)]
        if calls:
            message["tool_calls"] = calls
        return [message] if len(message) > 2 or message["content"] else []

    def _write_result(self, result: Result) -> list[Json]:
        content = result.content
        pieces: Sequence[Piece] = (Text(content),) if isinstance(content, str) else content
        written = write_text_and_images(self, pieces)
        if result.failed:
            text = written["content"]
            written["content"] = FAILED + text if text else NO_TEXT
        return [{"role": "tool", "tool_call_id": result.call_id, **written}]


def write_text_and_images(spelling: Spelling, pieces: Sequence[Piece]) -> Json:
    """The content of a message and the images beside it."""
    texts: list[str] = []
    images: list[str] = []
    for piece in pieces:
        if isinstance(piece, (Call, Result, Reasoning)):
            continue
        data = piece.data if isinstance(piece, Media) and piece.kind == "image" else None
        if data is not None and image_type(data[0]) is not None:
            images.append(data[1])
        else:
            part = spelling.write_part(piece, by_model=False)
            texts.append(part["text"] if part is not None and "text" in part else as_text(piece))
    message: Json = {"content": "\n".join([text for text in texts if text])}
    return {**message, "images": images} if images else message


def _write_call(call: Call) -> Json:
    arguments = as_object(call.arguments)
    if call.is_custom:
        arguments = {"input": text_arguments(call.arguments)}
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.call_id, "function": function} if call.call_id else {"function": function}


def _functions_in(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        call
        for call in items(message.get("tool_calls"))
        if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping)
    ]


def _is_result(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("role") == "tool"


def _images_in(message: Mapping[str, Any]) -> list[Piece]:
    return [
        Media("image", f"data:{type_of_bytes(image) or 'image/png'};base64,{image}")
        for image in items(message.get("images"))
        if isinstance(image, str)
    ]


SPELLING = OllamaSpelling()
