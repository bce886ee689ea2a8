"""What a browser sends: one message, or answers to questions, and nothing else of its body."""

# A client sends its whole history, and may have written it itself: an answer of the model, a call
# that nobody made, a tool's output, an approval of it. So only the last message is looked at, by
# its role, and what it approves is looked up in the store (rules W14 to W17). Whatever is read here
# was asked for by name; nothing is passed on.

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = [
    "MOST_BYTES",
    "ApprovalAnswer",
    "Inbound",
    "NewFile",
    "NewMessage",
    "QuestionAnswer",
    "WebError",
    "question_id",
    "read_ag_ui",
    "read_ai_sdk",
    "read_answers",
]

MOST_BYTES = 1_000_000
"""How many bytes a body may have (rule W18)."""

_LONGEST_ID = 200
_QUESTION = "question:"


class WebError(Exception):
    """A request that is refused.

    Attributes:
        status: The HTTP status.
        public: What the client is told; nothing in it comes from the server's side.
    """

    def __init__(self, status: int, public: str) -> None:
        self.status = status
        self.public = public
        super().__init__(f"{status}: {public}")


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that came with a message.

    Attributes:
        name: Its name.
        media_type: Its media type, one of those that are allowed.
        data: Its bytes.
    """

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message of the user.

    Attributes:
        id: Its id: the key under which it is pushed once (rule W15).
        text: Its text.
        files: Its files, of the media types that are allowed.
    """

    id: str
    text: str
    files: tuple[NewFile, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """An answer to the question whether a call may run.

    Attributes:
        approval_id: As in `CallHeld`: names plan and call.
        approved: The answer.
        reason: Why not; the model is told.
        input: An input in place of the model's, checked against the tool's schema later.
    """

    approval_id: str
    approved: bool
    reason: str = ""
    input: Mapping[str, JsonValue] | None = None

    def decision(self) -> dict[str, JsonValue]:
        """The decision for `DurableLoop.decide`."""
        if not self.approved:
            return {"decision": "reject", "reason": self.reason or "The user refused."}
        if self.input is None:
            return {"decision": "run"}
        return {"decision": "run", "input": dict(self.input)}


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """An answer to what a server asks in the middle of a call, as an interrupt of AG-UI.

    Attributes:
        id: As `question_id` makes it.
        answer: As `DurableLoop.answer` takes it. Where the question has an address and no form, its
            `content` is left out later.
    """

    id: str
    answer: Mapping[str, JsonValue]


def question_id(call_id: str, leg: int, key: str) -> str:
    """The id of the interrupt that asks a question; call ids may be longer than ids may be."""
    named = json.dumps([call_id, leg, key])
    return f"{_QUESTION}{sha256(named.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Inbound:
    """What a client asks for.

    Attributes:
        scope: The conversation.
        message: A new message, if there is one.
        answers: Answers to questions.
        run_id: The client's id of the run, in AG-UI.
        replies: Answers to what servers ask, in AG-UI.
    """

    scope: str
    message: NewMessage | None = None
    answers: tuple[ApprovalAnswer, ...] = ()
    run_id: str = ""
    replies: tuple[QuestionAnswer, ...] = ()


def read_ai_sdk(
    body: bytes | str | Mapping[str, Any], *, media_types: Collection[str] = ()
) -> Inbound:
    """What `useChat` sends: `{"id", "messages", "trigger", "messageId"}`.

    Args:
        body: The body.
        media_types: Which files are taken, as `image/png`; by default none. Only the bytes of a
            `data:` URL are: no other URL is ever fetched.

    Raises:
        WebError: 413: it is over `MOST_BYTES`. 422: it isn't such a body, or a file isn't taken.
            409: it would change what was said before; a conversation only grows.
    """
    data = _parse(body)
    scope = _text(data, "id")
    trigger = data.get("trigger", "submit-message")
    if trigger != "submit-message" or data.get("messageId") is not None:
        # `messageId` is the message that is edited, or behind which everything is forgotten.
        last = _last_message(data)
        if trigger != "submit-message" or last.get("role") == "user":
            raise WebError(409, "A conversation only grows: nothing in it can be changed.")
    last = _last_message(data)
    parts = _parts(last)
    if last.get("role") == "user":
        return Inbound(scope, _new_message(last, parts, media_types))
    if last.get("role") != "assistant":
        raise WebError(422, "The last message is not one of the user or the assistant.")
    return Inbound(scope, None, tuple(_answers(parts)))


def read_ag_ui(
    body: bytes | str | Mapping[str, Any], *, media_types: Collection[str] = ()
) -> Inbound:
    """What an AG-UI client sends to start a run: a `RunAgentInput`.

    Its `tools`, `context`, `state` and `forwardedProps` are not read (rule W14).

    Args:
        body: The body.
        media_types: As for `read_ai_sdk`.

    Raises:
        WebError: 413 and 422 as for `read_ai_sdk`; 422 too where the payload of an interrupt is
            not `{"approved", "input"?, "reason"?}`.
    """
    data = _parse(body)
    scope, run_id = _text(data, "threadId"), _text(data, "runId")
    resume = data.get("resume")
    if resume:
        entries = _list(resume, "resume")
        replies = [_reply(entry) for entry in entries if _is_reply(entry)]
        answers = [_resumed(entry) for entry in entries if not _is_reply(entry)]
        return Inbound(scope, None, tuple(answers), run_id, tuple(replies))
    messages = _list(data.get("messages", []), "messages")
    last = messages[-1] if messages else None
    if not isinstance(last, Mapping) or last.get("role") != "user":
        return Inbound(scope, None, (), run_id)
    content = last.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    message = _new_message(last, _list(parts, "content"), media_types)
    return Inbound(scope, message, (), run_id)


# --- bodies ------------------------------------------------------------------------------------


def _parse(body: bytes | str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(body, Mapping):
        return body
    size = len(body) if isinstance(body, bytes) else len(body.encode("utf-8", "replace"))
    if size > MOST_BYTES:
        raise WebError(413, f"The body is over {MOST_BYTES} bytes.")
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WebError(422, "The body is not JSON.") from error
    if not isinstance(data, dict):
        raise WebError(422, "The body is not a JSON object.")
    return data


def _text(data: Mapping[str, Any], name: str, longest: int = _LONGEST_ID) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise WebError(422, f"`{name}` is not a text of 1 to {longest} characters.")
    return value


def _approval_id(data: Mapping[str, Any], name: str) -> str:
    """The id of a question that was asked, so it is as long as that was: it ends in the call's id,
    and LiteLLM's have thousands of characters (Gemini's signature is in them).
    """
    return _text(data, name, MOST_BYTES)


def _list(value: Any, name: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise WebError(422, f"`{name}` is not a list.")
    return value


def _last_message(data: Mapping[str, Any]) -> Mapping[str, Any]:
    messages = _list(data.get("messages"), "messages")
    if not messages or not isinstance(messages[-1], Mapping):
        raise WebError(422, "There is no message.")
    return messages[-1]


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = _list(message.get("parts"), "parts")
    if not all(isinstance(part, Mapping) for part in found):
        raise WebError(422, "A part of the message is not an object.")
    return list(found)


# --- messages ----------------------------------------------------------------------------------


def _new_message(
    message: Mapping[str, Any], parts: Sequence[Any], media_types: Collection[str]
) -> NewMessage:
    texts: list[str] = []
    files: list[NewFile] = []
    for part in parts:
        if not isinstance(part, Mapping):
            raise WebError(422, "A part of the message is not an object.")
        if part.get("type") == "text":
            text = part.get("text")
            if not isinstance(text, str):
                raise WebError(422, "A text of the message is no text.")
            texts.append(text)
        elif not str(part.get("type")).startswith("data-"):  # the page's own, for nobody here
            files.append(_file(part, media_types))
    # As it will be stored: the same message again is compared with that (rule W15).
    text = json_values.clean_text("\n".join(texts))
    if not text.strip() and not files:
        raise WebError(422, "The message is empty.")
    return NewMessage(_text(message, "id"), text, tuple(files))


def _file(part: Mapping[str, Any], media_types: Collection[str]) -> NewFile:
    """A file of either protocol."""
    source, name = part.get("source"), part.get("filename")
    if isinstance(source, Mapping):  # AG-UI, whose clients send names in the metadata alone
        media, data = source.get("mimeType"), source.get("value")
        is_data = source.get("type") == "data"
        metadata = part.get("metadata")
        name = metadata.get("filename") if isinstance(metadata, Mapping) else None
    elif part.get("type") == "binary":  # AG-UI before 1.0, which clients still send
        media, data = part.get("mimeType"), part.get("data")
        is_data = data is not None
    else:
        if part.get("type") != "file":
            raise WebError(422, "A part of the message is neither a text nor a file.")
        media, url = part.get("mediaType"), part.get("url")
        head, _, data = url.partition(";base64,") if isinstance(url, str) else ("", "", "")
        is_data = head == f"data:{media}"
    if not isinstance(media, str) or media not in media_types:
        raise WebError(422, "Files of this kind are not taken.")
    if not is_data or not isinstance(data, str) or not data:
        raise WebError(422, "A file has to be sent with the message, not as an address.")
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError as error:
        raise WebError(422, "A file of the message is not base64.") from error
    name = json_values.clean_text(name[:200]) if isinstance(name, str) else "file"
    return NewFile(name, media, content)


# --- answers -----------------------------------------------------------------------------------


def _answers(parts: Sequence[Mapping[str, Any]]) -> list[ApprovalAnswer]:
    """The answers that a user gave; those that nobody was asked for are left out."""
    found: list[ApprovalAnswer] = []
    for part in parts:
        approval = part.get("approval")
        if part.get("state") != "approval-responded" or not isinstance(approval, Mapping):
            continue
        approval_id = _approval_id(approval, "id")
        if not approval_id.startswith("auto:"):
            found.append(_answer(approval_id, approval))
    if not found:
        raise WebError(422, "The last message answers nothing.")
    return found


def _answer(approval_id: str, values: Mapping[str, Any]) -> ApprovalAnswer:
    approved, reason = values.get("approved"), values.get("reason", "")
    if not isinstance(approved, bool):
        raise WebError(422, "`approved` is neither true nor false.")
    if reason is not None and not isinstance(reason, str):
        raise WebError(422, "`reason` is not a text.")
    return ApprovalAnswer(approval_id, approved, (reason or "")[:2000])


def read_answers(body: bytes | str | Mapping[str, Any]) -> tuple[str, Mapping[str, JsonValue]]:
    """What answers a server's questions: `{"callId": ..., "answers": {key: {"action": ...}}}`.

    Returns:
        The id of the call, and the answers by key, as `DurableLoop.answer` takes them.

    Raises:
        WebError: 413 and 422 as for `read_ai_sdk`.
    """
    data = _parse(body)
    call_id, answers = data.get("callId"), data.get("answers")
    if not isinstance(call_id, str) or not call_id:
        raise WebError(422, "`callId` is not a text.")
    if not isinstance(answers, Mapping) or not answers:
        raise WebError(422, "`answers` is not an object with an answer.")
    return call_id, answers


def _is_reply(entry: Any) -> bool:
    named = entry.get("interruptId") if isinstance(entry, Mapping) else None
    return isinstance(named, str) and named.startswith(_QUESTION)


def _reply(entry: Mapping[str, Any]) -> QuestionAnswer:
    interrupt_id = _text(entry, "interruptId")
    if entry.get("status") == "cancelled":
        return QuestionAnswer(interrupt_id, {"action": "cancel"})
    payload = entry.get("payload")
    if entry.get("status") != "resolved" or not isinstance(payload, Mapping):
        raise WebError(422, "An entry of `resume` has no payload.")
    return QuestionAnswer(interrupt_id, {"action": "accept", "content": dict(payload)})


def _resumed(entry: Any) -> ApprovalAnswer:
    if not isinstance(entry, Mapping):
        raise WebError(422, "An entry of `resume` is not an object.")
    approval_id = _approval_id(entry, "interruptId")
    if entry.get("status") == "cancelled":
        return ApprovalAnswer(approval_id, False, "The user left it unanswered.")
    payload = entry.get("payload")
    if entry.get("status") != "resolved" or not isinstance(payload, Mapping):
        raise WebError(422, "An entry of `resume` has no payload.")
    if not {*payload} <= {"approved", "input", "reason"}:
        raise WebError(422, "A payload has `approved`, `input` and `reason`, and nothing else.")
    answer = _answer(approval_id, payload)
    edited = payload.get("input")
    if edited is None:
        return answer
    if not isinstance(edited, Mapping):
        raise WebError(422, "`input` is not an object.")
    return ApprovalAnswer(approval_id, answer.approved, answer.reason, edited)
