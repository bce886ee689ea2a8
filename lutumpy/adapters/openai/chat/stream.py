"""A streamed Chat Completions answer: gathered into the message that the API would have given in one piece."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lutumpy.adapters.openai.chat.decode import chat_finish, decode_chat
from lutumpy.adapters.openai.chat.encode import API
from lutumpy.adapters.openai.chat.stream_calls import StreamedCalls
from lutumpy.adapters.openai.chat.stream_content import StreamedContent
from lutumpy.adapters.openai.merged_object import MergedObject
from lutumpy.adapters.openai.reply_fields import count, mapping, model_text, text
from lutumpy.adapters.provider_errors import error_body
from lutumpy.adapters.sdk_stream import event_object
from lutumpy.core.items import AssistantTurn
from lutumpy.core.streaming import (
    CallDelta,
    CallDone,
    Delta,
    ReasoningDelta,
    RefusalDelta,
    Started,
    TextDelta,
)
from lutumpy.errors import AdapterError

__all__ = ["ChatStreamDecoder"]

# Fields of a delta that come as text in pieces. Other texts (a signature, a name of a format) come whole.
_TEXTS = frozenset({"reasoning", "reasoning_content", "reasoning_text", "refusal", "thinking"})
# In this order the decoder of whole answers looks for readable reasoning.
_REASONING = ("reasoning_content", "reasoning", "reasoning_details")
_DETAIL_TEXTS = frozenset({"summary", "text"})
_AUDIO_TEXTS = frozenset({"data", "transcript"})
_ARGUMENTS = frozenset({"arguments"})
# What stands in streams only: Groq's name of the channel, refused in a history.
_STREAM_ONLY = frozenset({"channel", "role"})


class ChatStreamDecoder:
    """A `StreamDecoder` for Chat Completions and hosts that speak the same; the first choice is read."""

    __slots__ = (
        "_audio",
        "_calls",
        "_content",
        "_details",
        "_ended",
        "_finish",
        "_function_call",
        "_lists",
        "_message",
        "_model",
        "_reasoning",
        "_response_id",
        "_started",
        "_usage",
    )

    def __init__(self) -> None:
        self._started = False
        self._ended = False
        self._response_id: str | None = None
        self._model: str | None = None
        self._usage: dict[str, Any] | None = None
        self._finish: str | None = None
        self._message = MergedObject(_TEXTS)
        self._content = StreamedContent()
        self._calls = StreamedCalls()
        self._details: list[Any] | None = None
        self._lists: dict[str, list[Any]] = {}
        self._audio: MergedObject | None = None
        self._function_call: MergedObject | None = None
        self._reasoning: str | None = None

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next event: a `ChatCompletionChunk`, or a dict. Anything else is ignored.

        Raises:
            AdapterError: the event says that the answer failed; `.partial` is what had arrived.
        """
        event = event_object(chunk)
        out: list[Delta] = []
        choices = event.get("choices")
        if isinstance(choices, list):
            self._head(event, out)
            for choice in choices:
                if isinstance(choice, dict) and (choice.get("index") or 0) == 0:
                    self._choice(choice, event, out)
                    break
            else:
                self._count(event.get("usage"), quiet=True)
        if (
            event.get("error") or event.get("object") == "error" or event.get("type") == "error"
        ) and (error := error_body(event, API)):
            error.partial = self.partial()
            raise error
        return out

    def piece(self, chunk: Any) -> tuple[int, str] | None:
        """Take an event that is only a piece of a call's arguments; see `PieceDecoder`."""
        if self._response_id is None or self._model is None:
            return None
        try:
            found = _piece_of_dict(chunk) if type(chunk) is dict else _piece_of_object(chunk)
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
        if found is None or (call := self._calls.take(*found)) is None:
            return None
        self._ended = False
        return call, found[1]

    def gather(self, chunks: Iterable[Any]) -> None:
        """Take all of `chunks`, and tell nothing. Raises as `feed` does."""
        piece, feed = self.piece, self.feed
        for chunk in chunks:
            if piece(chunk) is None:
                feed(chunk)

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer, when the stream has ended.

        Raises:
            AdapterError: it ended before the model had stopped; `.partial` is what had arrived.
        """
        if self._finish is None and not self._ended:
            raise AdapterError(
                f"{API}: the stream ended before its last event",
                provider=API,
                retryable=True,
                request_id=request_id,
                partial=self.partial(),
            )
        return decode_chat(self._reply(), request_id)

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut; `None` when nothing has."""
        return replace(decode_chat(self._reply()), cut=True) if self._started else None

    def _reply(self) -> dict[str, Any]:
        """The answer as it would have come in one piece."""
        message = self._message.whole()
        message.update(self._lists)
        if self._details is not None:
            message["reasoning_details"] = [
                d.whole() if isinstance(d, MergedObject) else d for d in self._details
            ]
        if self._content.seen:
            content = self._content.whole()
            # Every stream begins with an empty content; beside a refusal the whole answer has none.
            message["content"] = None if content == "" and message.get("refusal") else content
        if self._audio is not None:
            message["audio"] = self._audio.whole()
        if entries := self._calls.entries():
            message["tool_calls"] = entries
        if self._function_call is not None:
            message["function_call"] = self._function_call.whole()
        return {
            "id": self._response_id,
            "model": self._model,
            "choices": [{"finish_reason": self._finish, "message": message}],
            "usage": self._usage,
        }

    def _head(self, event: Mapping[str, Any], out: list[Delta]) -> None:
        if self._response_id is None:
            self._response_id = text(event.get("id"))
        if self._model is None:
            self._model = text(event.get("model"))
        if not self._started:
            self._started = True
            out.append(Started(self._model, self._response_id))

    def _count(self, usage: Any, *, quiet: bool) -> None:
        """Take the usage that an event carries: some hosts count along, the last one holds.

        Some never say why the model stopped. The count of the answer's tokens, with nothing in it or after it, is the end too.
        """
        self._ended = False
        if not isinstance(usage, dict) or not usage:
            return
        written = count(usage.get("completion_tokens"))
        if self._usage is None or written or count(usage.get("prompt_tokens")):
            self._usage = usage
        self._ended = quiet and written > 0

    def _choice(
        self, choice: Mapping[str, Any], event: Mapping[str, Any], out: list[Delta]
    ) -> None:
        before = len(out)
        delta = choice.get("delta")
        if not isinstance(delta, dict):  # a host that streams the whole message as one event
            delta = mapping(choice.get("message"))
        if delta:
            self._delta(delta, out)
        self._count(event.get("usage") or choice.get("usage"), quiet=len(out) == before)
        if (finish := text(choice.get("finish_reason"))) is not None:
            self._finish = finish
            _, cut = chat_finish(finish, refused=any(self._message.pieces("refusal")))
            self._calls.finish(cut, out)
            if self._function_call is not None:
                self._tell_function_call(cut, out)

    def _delta(self, delta: Mapping[str, Any], out: list[Delta]) -> None:
        said: dict[str, str] = {}
        before = len(out)
        for name, value in delta.items():
            if name == "content":
                self._content.add(value, out)
            elif name == "tool_calls":
                for piece in value if isinstance(value, list) else [value]:
                    self._calls.add(piece, out)
            elif name in _STREAM_ONLY:
                continue
            elif name == "function_call":
                if value and isinstance(value, dict):
                    self._add_function_call(value)
            elif name == "audio":
                self._add_audio(value, out)
            elif isinstance(value, list):
                if name == "reasoning_details":
                    said[name] = self._add_details(value)
                else:
                    self._lists.setdefault(name, []).extend(value)
            else:
                self._message.put(name, value)
                if value and isinstance(value, str):
                    if name in _REASONING:
                        said[name] = value
                    elif name == "refusal":
                        out.append(RefusalDelta(value))
        if said:
            self._tell_reasoning(said, out, before)

    def _tell_reasoning(self, said: Mapping[str, str], out: list[Delta], place: int) -> None:
        # Hosts that spell it in two ways say the same twice.
        if self._reasoning is None:
            self._reasoning = next((name for name in _REASONING if said.get(name)), None)
        if piece := said.get(self._reasoning or ""):
            out.insert(place, ReasoningDelta(piece))

    def _add_details(self, details: list[Any]) -> str:
        """Take OpenRouter's reasoning details: pieces of one text have the same type and index."""
        if self._details is None:
            self._details = []
        told: list[str] = []
        for detail in details:
            if not isinstance(detail, dict):
                self._details.append(detail)
                continue
            piece = detail.get("text") or detail.get("summary")
            if isinstance(piece, str):
                told.append(piece)
            last = self._details[-1] if self._details else None
            if (
                isinstance(last, MergedObject)
                and not detail.get("data")
                and _same_detail(last, detail)
            ):
                last.add(detail)
            else:
                self._details.append(MergedObject(_DETAIL_TEXTS, detail))
        return "".join(told)

    def _add_audio(self, audio: Any, out: list[Delta]) -> None:
        if not isinstance(audio, dict):
            return
        if self._audio is None:
            self._audio = MergedObject(_AUDIO_TEXTS)
        self._audio.add(audio)
        spoken = audio.get("transcript")
        if spoken and isinstance(spoken, str) and not self._content.filled:
            out.append(TextDelta(spoken))

    def _add_function_call(self, call: Mapping[str, Any]) -> None:
        if self._function_call is None:
            self._function_call = MergedObject(_ARGUMENTS)
        for name, value in call.items():
            if name == "arguments" and value is not None:
                value = model_text(value)
            self._function_call.put(name, value)

    def _tell_function_call(self, cut: bool, out: list[Delta]) -> None:
        """The call of the older form, told at the end: only then is it known whether it counts beside `tool_calls`."""
        calls = decode_chat(self._reply()).calls
        index = len(self._calls)
        if len(calls) > index:
            call = calls[index]
            out.append(CallDelta(index, call.id, call.name, call.arguments))
            if not cut:
                out.append(CallDone(index, call))


def _piece_of_dict(event: dict[str, Any]) -> tuple[Any, Any] | None:
    """The index and the arguments of a chunk that carries nothing else; raises for many that carry something else."""
    (choice,) = event["choices"]
    (key,) = delta = choice["delta"]
    if (
        key != "tool_calls"
        or choice.get("finish_reason")
        or choice.get("index")
        or choice.get("usage")
        or event.get("usage")
        or "error" in event
        or "type" in event
        or event.get("object") == "error"
    ):
        return None
    (call,) = delta["tool_calls"]
    (key,) = function = call["function"]
    return (call["index"], function["arguments"]) if len(call) == 2 else None


def _piece_of_object(event: Any) -> tuple[Any, Any] | None:
    """The same of an object of the SDK, where a field that did not arrive is `None`, and a foreign one is an extra."""
    (choice,) = event.choices
    delta = choice.delta
    if (
        len(delta.__pydantic_fields_set__) != 1
        or delta.__pydantic_extra__
        or choice.finish_reason
        or choice.index
        or choice.__pydantic_extra__
        or event.usage
        or event.object == "error"
    ):
        return None
    extra = event.__pydantic_extra__
    if extra and ("error" in extra or "type" in extra):
        return None
    (call,) = delta.tool_calls
    function = call.function
    if (
        len(call.__pydantic_fields_set__) != 2
        or call.__pydantic_extra__
        or len(function.__pydantic_fields_set__) != 1
        or function.__pydantic_extra__
    ):
        return None
    return call.index, function.arguments


def _same_detail(last: MergedObject, detail: Mapping[str, Any]) -> bool:
    if (
        last.get("data")
        or detail.get("type") != last.get("type")
        or detail.get("index") != last.get("index")
    ):
        return False
    return not (detail.get("id") and last.get("id") and detail["id"] != last.get("id"))


if TYPE_CHECKING:
    from lutumpy.core.streaming import PieceDecoder

    _PIECES: type[PieceDecoder] = ChatStreamDecoder
