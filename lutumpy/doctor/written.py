"""What was read of any API's messages, written as one API writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lutumpy.apis import Api
from lutumpy.doctor.editor import copied
from lutumpy.doctor.spellings import Answered, Called, Kept, Opaque, Piece, Said, Shown, Thought
from lutumpy.doctor.wording import NO_TEXT, as_arguments, as_object, as_text

Json = dict[str, Any]

FAILED = "The tool failed: "
"""How a result begins that another API marks as an error, where this one has no mark for it."""


def write_entry(api: Api, role: str, pieces: Sequence[Piece]) -> list[Json]:
    """The messages or items that say the same; none where nothing is left to say.

    What the model is said to have shown goes into a user's message behind them: a model shows nothing.
    """
    shown: list[Piece] = []
    written: list[Json] = []
    group: list[Piece] = []
    speaker = role

    def close() -> None:
        nonlocal group
        if group:
            written.extend(_WRITERS[api](speaker, group))
        group = []

    for piece in pieces:
        if isinstance(piece, Thought):
            continue
        of = (
            "results"
            if isinstance(piece, Answered)
            else "assistant"
            if isinstance(piece, Called)
            else role
        )
        if of == "assistant" and isinstance(piece, Shown):
            shown.append(piece)
            continue
        if of != speaker:
            close()
            speaker = of
        group.append(piece)
    close()
    if shown:
        written.extend(_WRITERS[api]("user", shown))
    return _joined(written) if api == "anthropic_messages" else written


def write_part(api: Api, piece: Piece, *, assistant: bool) -> Json | None:
    """A part in this API's spelling; `None` for what no part can say."""
    if isinstance(piece, Kept):
        return copied(dict(piece.value)) if isinstance(piece.value, Mapping) else None
    if isinstance(piece, Said):
        if piece.refusal and assistant and api != "anthropic_messages":
            return {"type": "refusal", "refusal": piece.text}
        return _text(api, piece.text, assistant) if piece.text else None
    if isinstance(piece, Shown):
        return _SHOWN[api](piece) or _text(api, piece.text or _left_out(piece), assistant)
    if isinstance(piece, Opaque):
        return _text(
            api, piece.value if isinstance(piece.value, str) else as_text(piece.value), assistant
        )
    return None


def _text(api: Api, text: str, assistant: bool) -> Json:
    kind = "text" if api != "openai_responses" else "output_text" if assistant else "input_text"
    return {"type": kind, "text": text}


def _left_out(piece: Shown) -> str:
    data = piece.data
    what = (
        [data[0], f"{len(data[1]) * 3 // 4} bytes"]
        if data is not None
        else [piece.url or piece.file_id or ""]
    )
    details = ", ".join([word for word in (piece.name, *what) if word])
    return f"[{piece.kind} left out: {details}]" if details else f"[{piece.kind} left out]"


def _parts(api: Api, pieces: Iterable[Piece], *, assistant: bool) -> list[Json]:
    parts = [write_part(api, piece, assistant=assistant) for piece in pieces]
    return [part for part in parts if part is not None]


def _content(api: Api, pieces: Sequence[Piece], *, assistant: bool) -> str | list[Json]:
    """One text as a text, anything else as parts."""
    if len(pieces) == 1 and isinstance(pieces[0], Said) and not pieces[0].refusal:
        return pieces[0].text
    return _parts(api, pieces, assistant=assistant)


def _result_content(api: Api, answer: Answered) -> str | list[Json]:
    """The content of a result; for the APIs without a mark for errors with a word that says it."""
    content = (
        answer.content
        if isinstance(answer.content, str)
        else _parts(api, answer.content, assistant=False) or ""
    )
    if not answer.failed or api == "anthropic_messages":
        return content
    if isinstance(content, str):
        return FAILED + content if content else NO_TEXT
    return [_text(api, FAILED.rstrip() if content else NO_TEXT, assistant=False), *content]


def _arguments(call: Called) -> str:
    return call.arguments if isinstance(call.arguments, str) else as_arguments(call.arguments)


# ------------------------------------------------------------------ Chat Completions


def _chat(role: str, pieces: Sequence[Piece]) -> list[Json]:
    api: Api = "openai_chat"
    if role == "results":
        return [
            {"role": "tool", "tool_call_id": piece.call_id, "content": _result_content(api, piece)}
            for piece in pieces
            if isinstance(piece, Answered)
        ]
    calls = [_chat_call(piece) for piece in pieces if isinstance(piece, Called)]
    said = [piece for piece in pieces if not isinstance(piece, Called)]
    content = _content(api, said, assistant=role == "assistant")
    if not calls:
        return [{"role": role, "content": content}] if content else []
    return [{"role": role, "content": content or None, "tool_calls": calls}]


def _chat_call(call: Called) -> Json:
    if call.custom:
        return {
            "id": call.call_id,
            "type": "custom",
            "custom": {"name": call.name, "input": _arguments(call)},
        }
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": _arguments(call)},
    }


def _chat_shown(piece: Shown) -> Json | None:
    if piece.kind == "image" and piece.url is not None:
        detail = {"detail": piece.detail} if piece.detail is not None else {}
        return {"type": "image_url", "image_url": {"url": piece.url, **detail}}
    if piece.kind == "file" and piece.data is not None:
        return {"type": "file", "file": {"filename": piece.name or "file", "file_data": piece.url}}
    if piece.kind == "file" and piece.file_id is not None and piece.vendor == "openai":
        return {"type": "file", "file": {"file_id": piece.file_id}}
    return (
        {"type": "input_audio", "input_audio": copied(dict(piece.audio))}
        if piece.audio is not None
        else None
    )


# ------------------------------------------------------------------ Responses


def _responses(role: str, pieces: Sequence[Piece]) -> list[Json]:
    api: Api = "openai_responses"
    found: list[Json] = []
    said: list[Piece] = []

    def close() -> None:
        nonlocal said
        content = _content(api, said, assistant=role == "assistant")
        if content:
            found.append({"role": role, "content": content})
        said = []

    for piece in pieces:
        if isinstance(piece, Answered):
            kind = "custom_tool_call_output" if piece.custom else "function_call_output"
            found.append(
                {"type": kind, "call_id": piece.call_id, "output": _result_content(api, piece)}
            )
        elif isinstance(piece, Called):
            close()
            kind, key = (
                ("custom_tool_call", "input") if piece.custom else ("function_call", "arguments")
            )
            found.append(
                {"type": kind, "call_id": piece.call_id, "name": piece.name, key: _arguments(piece)}
            )
        else:
            said.append(piece)
    close()
    return found


def _responses_shown(piece: Shown) -> Json | None:
    own = (
        {"file_id": piece.file_id}
        if piece.file_id is not None and piece.vendor == "openai"
        else None
    )
    if piece.kind == "image":
        source = {"image_url": piece.url} if piece.url is not None else own
        detail = {"detail": piece.detail} if piece.detail is not None else {}
        return {"type": "input_image", **source, **detail} if source is not None else None
    if piece.kind == "file":
        if piece.data is not None:
            return {"type": "input_file", "filename": piece.name or "file", "file_data": piece.url}
        source = {"file_url": piece.url} if piece.url is not None else own
        return {"type": "input_file", **source} if source is not None else None
    return (
        {"type": "input_audio", "input_audio": copied(dict(piece.audio))}
        if piece.audio is not None
        else None
    )


# ------------------------------------------------------------------ Messages


def _anthropic(role: str, pieces: Sequence[Piece]) -> list[Json]:
    api: Api = "anthropic_messages"
    blocks: list[Json] = []
    for piece in pieces:
        if isinstance(piece, Answered):
            blocks.append(_tool_result(api, piece))
        elif isinstance(piece, Called):
            value = {"input": piece.arguments} if piece.custom else as_object(piece.arguments)
            blocks.append(
                {"type": "tool_use", "id": piece.call_id, "name": piece.name, "input": value}
            )
        else:
            blocks += _parts(api, [piece], assistant=role == "assistant")
    return [{"role": "user" if role == "results" else role, "content": blocks}] if blocks else []


def _tool_result(api: Api, answer: Answered) -> Json:
    content = _result_content(api, answer)
    mark = {"is_error": True} if answer.failed else {}
    body = {"content": content or NO_TEXT} if content or answer.failed else {}
    return {
        "type": "tool_result",
        "tool_use_id": answer.call_id,
        **body,
        **mark,
        **dict(answer.more),
    }


def _anthropic_shown(piece: Shown) -> Json | None:
    if piece.kind == "audio":
        return None
    kind = "image" if piece.kind == "image" else "document"
    title = {"title": piece.name} if piece.name is not None and kind == "document" else {}
    data = piece.data
    if data is not None:
        source: Json = {"type": "base64", "media_type": data[0], "data": data[1]}
    elif piece.url is not None and not piece.url.startswith("data:"):
        source = {"type": "url", "url": piece.url}
    else:
        return None  # a file that was uploaded to another vendor
    return {"type": kind, "source": source, **title}


def _joined(messages: Iterable[Json]) -> list[Json]:
    """Neighbouring messages of one role as one."""
    found: list[Json] = []
    for message in messages:
        if found and found[-1]["role"] == message["role"]:
            found[-1]["content"] += message["content"]
        else:
            found.append(message)
    return found


_WRITERS = {"openai_chat": _chat, "openai_responses": _responses, "anthropic_messages": _anthropic}
_SHOWN = {
    "openai_chat": _chat_shown,
    "openai_responses": _responses_shown,
    "anthropic_messages": _anthropic_shown,
}
