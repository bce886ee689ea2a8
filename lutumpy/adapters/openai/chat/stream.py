"""A streamed Chat Completions reply, merged into the reply that the API would have sent whole."""

# Every chunk has the first choice's `delta`, an object with some fields of the message. Merging
# them is the easy part: `StreamedCalls`, `StreamedContent`, `StreamedThinking` and `MergedObject`
# each merge a kind of field. The hard part is that hosts differ, and that a stream has to end in
# the very turn that the whole reply would have been (rule S1). So the merged message goes to
# `decode_chat`, which decodes whole replies, and nothing here decides what a message means.
#
# The states of a decoder, and what brings it from one to the next:
#
#   state      | what is known                          | leaves it
#   -----------+----------------------------------------+--------------------------------------
#   waiting    | nothing                                | `choices` or `usage`: `Started`
#   receiving  | a part of the message                  | `finish_reason`, or a last count
#   counted    | the tokens, and no `finish_reason`     | any delta: back to receiving
#   finished   | why the model stopped: calls are done  | nothing; late chunks are still merged,
#              |                                        | but for what belongs to calls
#
# `finish()` gives the turn when counted or finished, and raises before. "Counted" is there for
# hosts that never say why the model stopped: a count of the reply's tokens, with nothing in it or
# after it, is the end as well. Of a host that counts beside the content, only a count in an event
# of its own is: its deltas may well be empty while more is to come (vLLM holds back the first
# tokens of a character). An error event raises from any state.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lutumpy.adapters.openai.chat.decode import chat_finish, decode_chat
from lutumpy.adapters.openai.chat.encode import API
from lutumpy.adapters.openai.chat.stream_calls import StreamedCalls
from lutumpy.adapters.openai.chat.stream_content import StreamedContent
from lutumpy.adapters.openai.merged_object import MergedObject
from lutumpy.adapters.openai.reply_fields import filled, mapping, model_text, text
from lutumpy.adapters.provider_errors import early_end, error_body
from lutumpy.adapters.sdk_stream import event_object
from lutumpy.adapters.short_way import ShortWayDecoder
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
from lutumpy.core.usage import token_count
from lutumpy.plain.json_values import copied

__all__ = ["ChatStreamDecoder"]

# Fields of a message whose texts arrive as deltas. Other texts (a signature, a format) come whole.
_GROWING = frozenset({"reasoning", "reasoning_content", "reasoning_text", "refusal", "thinking"})
# Where readable reasoning may be, in the order in which `decode_chat` looks for it.
_REASONING = ("reasoning_content", "reasoning", "reasoning_details")
_GROWING_IN_DETAILS = frozenset({"summary", "text"})
_GROWING_IN_AUDIO = frozenset({"data", "transcript"})
_GROWING_IN_CALL = frozenset({"arguments"})
# Fields that only streams have: `channel` is Groq's, and refused in a history.
_STREAM_ONLY = frozenset({"channel", "role"})


class ChatStreamDecoder(ShortWayDecoder):
    """A `StreamDecoder` for Chat Completions and hosts that speak it; reads the first choice."""

    __slots__ = (
        "_audio",
        "_calls",
        "_content",
        "_counted",
        "_counts_along",
        "_details",
        "_executed",
        "_finish",
        "_function_call",
        "_lists",
        "_message",
        "_model",
        "_reasoning_field",
        "_response_id",
        "_started",
        "_thinking",
        "_usage",
    )

    def __init__(self) -> None:
        self._started = False
        # Whether the last event was a count of the tokens, after everything else.
        self._counted = False
        # Whether the host counts in the events that hold the reply.
        self._counts_along = False
        self._response_id: str | None = None
        self._model: str | None = None
        self._usage: dict[str, Any] | None = None
        self._finish: str | None = None
        # The message in parts: what needs no special treatment, and then what does.
        self._message = MergedObject(_GROWING)
        self._content = StreamedContent()
        self._calls = StreamedCalls()
        self._details: list[Any] | None = None
        self._thinking: StreamedThinking | None = None
        self._lists: dict[str, list[Any]] = {}
        # Groq's tools that ran, by their index; the same objects are in the lists.
        self._executed: dict[int, dict[str, Any]] = {}
        self._audio: MergedObject | None = None
        self._function_call: MergedObject | None = None
        # The field that reasoning is reported from, once there is any.
        self._reasoning_field: str | None = None

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next event: a `ChatCompletionChunk`, or a dict. Anything else is ignored.

        Raises:
            AdapterError: the event says that the reply failed; `.partial` is what had arrived.
        """
        event = event_object(chunk)
        out: list[Delta] = []
        choices = event.get("choices")
        if choices is None and event.get("usage"):
            choices = []  # some hosts leave it out of the event with the count
        if isinstance(choices, list):
            self._take_head(event, out)
            for choice in choices:
                if isinstance(choice, dict) and (choice.get("index") or 0) == 0:
                    self._take_choice(choice, event, out)
                    break
            else:
                # An event of another choice ends nothing.
                self._counted = self._take_usage(event.get("usage")) and not choices
        if event.get("error") or event.get("object") == "error" or event.get("type") == "error":
            error = error_body(event, API)
            if error is not None:
                error.partial = self.partial()
                raise error
        return out

    def feed_arguments(self, chunk: Any) -> tuple[int, str] | None:
        """Take an event that is only a delta of a call's arguments; see `ArgumentsDecoder`."""
        if self._response_id is None or self._model is None:
            return None
        try:
            if type(chunk) is dict:
                found = _arguments_in_dict(chunk)
            else:
                found = _arguments_in_object(chunk)
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
        if found is None:
            return None
        index, arguments = found
        call = self._calls.take_arguments(index, arguments)
        if call is None:
            return None
        self._counted = False
        return call, arguments

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole reply, when the stream has ended.

        Raises:
            AdapterError: it ended before the model had stopped; `.partial` is what had arrived.
        """
        if self._finish is None and not self._counted:
            what = "the stream ended before its last event"
            raise early_end(API, what, request_id, self.partial())
        return decode_chat(self._whole_reply(), request_id)

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut; `None` when nothing has."""
        return replace(decode_chat(self._whole_reply()), cut=True) if self._started else None

    def _whole_reply(self) -> dict[str, Any]:
        """The reply as it would have come whole."""
        message = self._message.whole()
        message.update(self._lists)
        if self._details is not None:
            message["reasoning_details"] = [
                detail.whole() if isinstance(detail, MergedObject) else detail
                for detail in self._details
            ]
        if self._thinking is not None:
            message["thinking_blocks"] = self._thinking.whole()
        if self._content.seen:
            content = self._content.whole()
            # Every stream begins with an empty content; a whole reply with a refusal has none.
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

    def _take_head(self, event: Mapping[str, Any], out: list[Delta]) -> None:
        """Take id and model of the reply; some hosts leave them out of the first event."""
        if self._response_id is None:
            self._response_id = text(event.get("id"))
        if self._model is None:
            self._model = text(event.get("model"))
        if not self._started:
            self._started = True
            out.append(Started(self._model, self._response_id))

    def _take_usage(self, usage: Any) -> bool:
        """Take the count of tokens in an event; gives whether it counts any of the reply.

        Some hosts count in every event. The last count holds, but one of zero tokens replaces none.
        """
        if not isinstance(usage, dict) or not usage:
            return False
        output_tokens = token_count(usage.get("completion_tokens"))
        if self._usage is None or output_tokens or token_count(usage.get("prompt_tokens")):
            self._usage = copied(usage)
        return output_tokens > 0

    def _take_choice(
        self, choice: Mapping[str, Any], event: Mapping[str, Any], out: list[Delta]
    ) -> None:
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            # A host that streams the whole message as one event.
            delta = mapping(choice.get("message"))
        if delta:
            self._take_delta(delta, out)
        counts = self._take_usage(event.get("usage") or choice.get("usage"))
        if counts and not self._counts_along:
            self._counts_along = _has_content(delta)
        self._counted = counts and not self._counts_along
        if (finish := text(choice.get("finish_reason"))) is not None:
            self._take_finish(finish, out)

    def _take_finish(self, finish: str, out: list[Delta]) -> None:
        refused = any(self._message.text_deltas("refusal"))
        _, is_cut = chat_finish(finish, refused=refused)
        if is_cut and self._calls.all_done:
            return  # because of an earlier reason they were told as complete
        is_first, self._finish = self._finish is None, finish
        self._calls.finish(is_cut, out)
        if is_first and (self._function_call is not None or self._may_hold_calls()):
            self._report_other_calls(is_cut, out)

    def _take_delta(self, delta: Mapping[str, Any], out: list[Delta]) -> None:
        # The readable reasoning in this delta, by the field that it is in.
        reasoning: dict[str, str] = {}
        before = len(out)
        for name, value in delta.items():
            if name == "content":
                self._content.add(value, out)
            elif name == "tool_calls":
                for entry in value if isinstance(value, list) else [value]:
                    self._calls.add(entry, out)
            elif name in _STREAM_ONLY:
                continue
            elif name == "function_call":
                # Behind the end it was told as complete, as the others were.
                if value and isinstance(value, dict) and self._finish is None:
                    self._merge_function_call(value)
            elif name == "audio":
                self._merge_audio(value, out)
            elif isinstance(value, list):
                if name == "reasoning_details":
                    reasoning[name] = self._merge_details(value)
                elif name == "thinking_blocks":
                    self._merge_thinking(value)
                elif name == "executed_tools":
                    self._merge_executed(value)
                else:
                    self._lists.setdefault(name, []).extend(copied(value))
            else:
                self._message.add_field(name, value)
                if value and isinstance(value, str):
                    if name in _REASONING:
                        reasoning[name] = value
                    elif name == "refusal":
                        out.append(RefusalDelta(value))
        if reasoning:
            # A model reasons before it speaks, whatever the order of the fields.
            self._report_reasoning(reasoning, out, before)

    def _report_reasoning(self, reasoning: Mapping[str, str], out: list[Delta], place: int) -> None:
        # Some hosts send the same reasoning in two fields. The first one that has any is reported.
        if self._reasoning_field is None:
            filled = (name for name in _REASONING if reasoning.get(name))
            self._reasoning_field = next(filled, None)
        if found := reasoning.get(self._reasoning_field or ""):
            out.insert(place, ReasoningDelta(found))

    def _merge_details(self, details: list[Any]) -> str:
        """Merge OpenRouter's reasoning details; gives the readable text in them.

        The deltas of one detail have the same type and index.
        """
        if self._details is None:
            self._details = []
        readable: list[str] = []
        for detail in details:
            if not isinstance(detail, dict):
                self._details.append(copied(detail))
                continue
            found = detail.get("text") or detail.get("summary")
            if isinstance(found, str):
                readable.append(found)
            last = self._details[-1] if self._details else None
            if isinstance(last, MergedObject) and _continues_detail(last, detail):
                last.add(detail)
            else:
                self._details.append(MergedObject(_GROWING_IN_DETAILS, detail))
        return "".join(readable)

    def _merge_thinking(self, blocks: list[Any]) -> None:
        if self._thinking is None:
            # Imported here: hardly any host has these blocks.
            from lutumpy.adapters.openai.chat.stream_thinking import StreamedThinking

            self._thinking = StreamedThinking()
        self._thinking.add(blocks)

    def _merge_executed(self, tools: list[Any]) -> None:
        """Merge the tools that Groq ran: each comes with its arguments, and again with its output.

        Both have the same index.
        """
        executed = self._lists.setdefault("executed_tools", [])
        for tool in copied(tools):
            index = tool.get("index") if isinstance(tool, dict) else None
            if type(index) is not int:
                executed.append(tool)
            elif index in self._executed:
                self._executed[index].update({k: v for k, v in tool.items() if filled(v)})
            else:
                self._executed[index] = dict(tool)
                executed.append(self._executed[index])

    def _merge_audio(self, audio: Any, out: list[Delta]) -> None:
        if not isinstance(audio, dict):
            return
        if self._audio is None:
            self._audio = MergedObject(_GROWING_IN_AUDIO)
        self._audio.add(audio)
        # The transcript is the text of the reply, unless the message has a text of its own.
        spoken = audio.get("transcript")
        if spoken and isinstance(spoken, str) and not self._content.filled:
            out.append(TextDelta(spoken))

    def _merge_function_call(self, call: Mapping[str, Any]) -> None:
        if self._function_call is None:
            self._function_call = MergedObject(_GROWING_IN_CALL)
        for name, value in call.items():
            if name == "arguments" and value is not None:
                value = model_text(value)
            self._function_call.add_field(name, value)

    def _may_hold_calls(self) -> bool:
        """Whether calls may be elsewhere in the message than in `tool_calls`."""
        if self._content.has_other_parts or self._message.has_objects:
            return True
        return bool(self._lists) or self._thinking is not None

    def _report_other_calls(self, is_cut: bool, out: list[Delta]) -> None:
        """Report a call of the older form and those of unknown kinds, at the end of the reply.

        Only then is it known what counts as a call: beside `tool_calls` it may repeat one.
        """
        calls = decode_chat(self._whole_reply()).calls
        for index, call in enumerate(calls[len(self._calls) :], len(self._calls)):
            out.append(CallDelta(index, call.id, call.name, call.arguments, call.kind))
            if not is_cut:
                out.append(CallDone(index, call))


# The two functions below find the event that a long call consists of, thousands of times: a chunk
# whose only content is an index and some arguments. They look at every place where something else
# could be, and they do it without building an object. Unpacking `(choice,) = ...` raises when
# there is more than one value; the caller takes any exception for "something else".


def _arguments_in_dict(event: dict[str, Any]) -> tuple[Any, Any] | None:
    """Index and arguments of a chunk that has nothing else.

    `None`, or one of the exceptions that `feed_arguments` expects, for any other chunk.
    """
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


def _arguments_in_object(event: Any) -> tuple[Any, Any] | None:
    """As `_arguments_in_dict`, for an object of the SDK.

    There a field that did not arrive is `None`, and a field that the SDK doesn't know is an extra.
    """
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


def _has_content(delta: Mapping[str, Any]) -> bool:
    """Whether a delta holds anything of the reply, also what nobody is told of."""
    return any(filled(value) for name, value in delta.items() if name not in _STREAM_ONLY)


def _continues_detail(last: MergedObject, detail: Mapping[str, Any]) -> bool:
    """Whether a reasoning detail is a delta of the one before it; encrypted ones come whole."""
    if last.get("data") or detail.get("data"):
        return False
    if detail.get("type") != last.get("type") or detail.get("index") != last.get("index"):
        return False
    detail_id, last_id = detail.get("id"), last.get("id")
    return not detail_id or not last_id or bool(detail_id == last_id)


if TYPE_CHECKING:
    from lutumpy.adapters.openai.chat.stream_thinking import StreamedThinking
    from lutumpy.core.streaming import ArgumentsDecoder

    _DECODER: type[ArgumentsDecoder] = ChatStreamDecoder
