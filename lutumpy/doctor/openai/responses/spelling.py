"""How Responses spells what other APIs say too."""

# a call      an item of its own: `function_call`, `custom_tool_call`, and those of built-in tools
# a result    an item of its own: the same type with `_output`
# a text      a message; its parts are `output_text` if the model wrote it, else `input_text`

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from lutumpy.doctor.openai.media import read_audio, read_file, read_image, write_audio
from lutumpy.doctor.pieces import Call, Media, Opaque, Piece, Result
from lutumpy.doctor.spelling import (
    Json,
    PartReader,
    ReadContent,
    ResultReader,
    Spelling,
    read_as_reasoning,
    read_refusal_part,
    read_text_part,
)
from lutumpy.doctor.wording import as_text, text_arguments
from lutumpy.rules.openai.responses.items import (
    ASSISTANT_PARTS,
    INPUT_PARTS,
    ITEM_TYPES,
    OTHER_PARTS,
)
from lutumpy.rules.openai.responses.kinds import CALL_WORDS, OUTPUT_TO_CALLS

__all__ = ["SPELLING", "ResponsesSpelling"]

# Keys that say what an item is; the others are what a built-in tool is asked, or what it answered.
_ITEM_KEYS = frozenset("type id call_id status caller namespace".split())


# ------------------------------------------------------------------ reading


def _read_call(item: Mapping[str, Any]) -> Piece | None:
    kind = str(item.get("type"))
    call_id = item.get("call_id", item.get("id"))
    if kind == "function_call":
        return Call(call_id, item.get("name"), item.get("arguments"))
    if kind == "custom_tool_call":
        return Call(call_id, item.get("name"), item.get("input"), is_custom=True)
    if kind == "tool_search_call" and item.get("execution") != "client":
        return Opaque(item)  # the provider has answered it itself
    arguments = {key: value for key, value in item.items() if key not in _ITEM_KEYS}
    return Call(call_id, kind.removesuffix("_call"), arguments)


def _read_function_output(item: Mapping[str, Any], read_content: ReadContent) -> Piece:
    content = read_content(item.get("output", item.get("content")))
    is_custom = item.get("type") == "custom_tool_call_output"
    return Result(item.get("call_id"), content, item.get("status") == "failed", is_custom)


def _read_other_output(item: Mapping[str, Any], read_content: ReadContent) -> Piece:
    """The output of a built-in tool: its text if it has nothing else to say, or else its JSON."""
    rest = {key: item[key] for key in item if key == "status" or key not in _ITEM_KEYS}
    output: Any = rest
    if "output" in rest and rest.keys() <= {"output", "status"}:
        output = rest["output"]
    text = output if isinstance(output, str) else as_text(output)
    return Result(item.get("call_id"), text, item.get("status") == "failed")


class ResponsesSpelling(Spelling):
    """The spelling of Responses."""

    parts: ClassVar[frozenset[str]] = frozenset([*INPUT_PARTS, *OTHER_PARTS, *ASSISTANT_PARTS])
    # Programs copy them into contents.
    other_parts: ClassVar[frozenset[str]] = frozenset({"reasoning", "summary_text"})
    readers: ClassVar[Mapping[str, PartReader]] = {
        "input_text": read_text_part,
        "output_text": read_text_part,
        "refusal": read_refusal_part,
        "input_image": read_image,
        "input_file": read_file,
        "input_audio": read_audio,
        "reasoning": read_as_reasoning,
        "summary_text": read_as_reasoning,
        "item_reference": read_as_reasoning,
        "compaction": read_as_reasoning,
    }
    calls: ClassVar[Mapping[str, PartReader]] = dict.fromkeys(CALL_WORDS, _read_call)
    results: ClassVar[Mapping[str, ResultReader]] = {
        **dict.fromkeys(OUTPUT_TO_CALLS, _read_other_output),
        "function_call_output": _read_function_output,
        "custom_tool_call_output": _read_function_output,
    }
    entries: ClassVar[frozenset[str]] = frozenset(ITEM_TYPES) - {"message"}
    result_id_key = "call_id"
    takes_calls_in_messages = False
    tells_custom_results = True
    has_refusals = True

    def text_part(self, text: str, *, by_model: bool) -> Json:
        return {"type": "output_text" if by_model else "input_text", "text": text}

    def write_group(self, role: str, pieces: Sequence[Piece]) -> list[Json]:
        """Calls and results are items of their own; what is between them is a message."""
        found: list[Json] = []
        between: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, (Call, Result)):
                found += self._write_message(role, between)
                between = []
                if isinstance(piece, Call):
                    found.append(_write_call(piece))
                else:
                    found.append(self._write_output(piece))
            else:
                between.append(piece)
        return found + self._write_message(role, between)

    def _write_message(self, role: str, pieces: Sequence[Piece]) -> list[Json]:
        content = self.write_content(pieces, by_model=role == "assistant")
        return [{"role": role, "content": content}] if content else []

    def _write_output(self, result: Result) -> Json:
        kind = "custom_tool_call_output" if result.is_custom else "function_call_output"
        output = self.write_result_content(result)
        return {"type": kind, "call_id": result.call_id, "output": output}

    def write_media(self, media: Media) -> Json | None:
        own_file: Json | None = None
        if media.file_id is not None and media.vendor == "openai":
            own_file = {"file_id": media.file_id}
        if media.kind == "image":
            source = {"image_url": media.url} if media.url is not None else own_file
            if source is None:
                return None
            image = {"type": "input_image", **source}
            if media.detail is not None:
                image["detail"] = media.detail
            return image
        if media.kind == "file":
            if media.data is not None:
                name = media.name or "file"
                return {"type": "input_file", "filename": name, "file_data": media.url}
            source = {"file_url": media.url} if media.url is not None else own_file
            return {"type": "input_file", **source} if source is not None else None
        return write_audio(media)


def _write_call(call: Call) -> Json:
    kind, arguments_key = "function_call", "arguments"
    if call.is_custom:
        kind, arguments_key = "custom_tool_call", "input"
    arguments = text_arguments(call.arguments)
    return {"type": kind, "call_id": call.call_id, "name": call.name, arguments_key: arguments}


SPELLING = ResponsesSpelling()
