"""From an answer of `/api/chat` to an `AssistantTurn`. Total: whatever the model wrote, nothing
raises.

`native` holds the message as it came, so that it goes back unchanged (rule R1). Only what the API
would refuse on the way back is brought into shape, once: nulls, a content that isn't a text,
calls without a name, arguments that aren't an object.
"""

# What is hard here
# -----------------
# Calls of older servers and of most models have no ids, and some models count theirs from zero in
# every answer. So the id of a `CallBlock` is this library's, taken from the wire where there is one
# until the transcript knows it already, and it is never written into `native`, whose calls are
# found by their places (`id_field` is empty).
#
# The reason for the end of an answer doesn't tell calls: with calls it is "stop".

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from lutumpy.adapters.object_arguments import UnparsedInput, read_arguments
from lutumpy.adapters.replies import without_nulls
from lutumpy.adapters.unknown_calls import (
    UnknownCalls,
    calls_in_fields,
    unknown_call,
    wanted_by,
)
from lutumpy.core.items import (
    AssistantTurn,
    Block,
    CallBlock,
    FinishReason,
    OpaqueBlock,
    ReasoningBlock,
    TextBlock,
)
from lutumpy.core.tool_names import UNNAMED
from lutumpy.core.usage import Usage, token_count
from lutumpy.plain.json_values import clean_text, encode, encode_text

__all__ = [
    "API",
    "MessageReader",
    "call_entries",
    "decode_answer",
    "finish_of",
    "is_answer",
    "text_of",
]

API = "ollama_chat"

_FINISH: Mapping[str, FinishReason] = {"stop": "stop", "length": "length"}
# What is read of an answer; what else it has, as durations, is kept beside the turn.
_ANSWER_KEYS = frozenset({"message", "model", "done", "done_reason"})
# Fields of a call that hold its function or its id; a call of another kind has another one.
_CALL_KEYS = frozenset({"id", "type", "function"})
# Fields of a message that hold no calls of unknown kinds.
_MESSAGE_KEYS = frozenset({"role", "content", "thinking", "images", "tool_calls"})


def decode_answer(reply: Mapping[str, Any], request_id: str | None = None) -> AssistantTurn:
    """The turn that an answer holds.

    Args:
        reply: The answer, as JSON values; it isn't changed.
        request_id: The provider's id of the request, where known.
    """
    reader = MessageReader()
    message = reply.get("message")
    reader.read(message if isinstance(message, dict) else {})
    return reader.turn(reply, request_id)


def is_answer(reply: Mapping[str, Any]) -> bool:
    """Whether an object can be an answer at all."""
    return isinstance(reply.get("message"), dict) or "done_reason" in reply


def finish_of(reply: Mapping[str, Any], calls: bool) -> FinishReason:
    """Why the answer ended, in this library's words."""
    reason = reply.get("done_reason")
    # Older servers give no reason for a natural end.
    if reason is None or reason == "":
        finish: FinishReason = "stop" if reply.get("done") is True else "unknown"
    else:
        finish = _FINISH.get(reason, "unknown") if isinstance(reason, str) else "unknown"
    return "tool_calls" if finish == "stop" and calls else finish


def text_of(value: Any) -> str:
    """What a model wrote where a text belongs: any other value is its JSON, and `null` nothing."""
    if isinstance(value, str):
        return value
    return "" if value is None else encode_text(value)


def call_entries(message: Mapping[str, Any]) -> list[Any]:
    """The `tool_calls` of a message, which may be a single one without a list."""
    entries = message.get("tool_calls")
    if entries is None:
        return []
    return entries if isinstance(entries, list) else [entries]


def _usage_of(reply: Mapping[str, Any]) -> Usage:
    asked, written = _count(reply, "prompt_eval_count"), _count(reply, "eval_count")
    return Usage(asked, written, asked + written, _count(reply, "prompt_eval_cached_count"))


def _count(reply: Mapping[str, Any], name: str) -> int:
    return token_count(reply.get(name))


class MessageReader:
    """One walk over a message: `read` it, then take the `turn`.

    Args:
        results: In a history, the ids and names of the calls that have results there; see
            `UnknownCalls`.

    Attributes:
        calls: The calls, once they are settled.
        unknown_calls: What looks like a call, of a kind that nobody knows.
    """

    __slots__ = (
        "_blocks",
        "_dropped",
        "_is_history",
        "_kept",
        "_sent_calls",
        "calls",
        "unknown_calls",
    )

    def __init__(self, results: AbstractSet[str] | None = None) -> None:
        self.calls: list[CallBlock] = []
        self.unknown_calls: UnknownCalls = UnknownCalls(results)
        self._is_history = results is not None
        self._blocks: list[Block] = []
        # The message as it goes back, its calls, and what doesn't go back.
        self._kept: dict[str, Any] = {}
        self._sent_calls: list[dict[str, Any]] = []
        self._dropped: list[Any] = []

    def read(self, message: Mapping[str, Any]) -> None:
        """Read the message: its thinking, its text, then its calls."""
        kept: dict[str, Any] = {
            "role": "assistant",
            **{
                key: value
                for key, value in message.items()
                if value is not None and key not in ("role", "tool_calls")
            },
        }
        for key in ("content", "thinking"):
            if key in kept:
                kept[key] = text_of(kept[key])
        self._kept = kept
        if thinking := kept.get("thinking"):
            self._blocks.append(ReasoningBlock(clean_text(thinking)))
        if content := kept.get("content"):
            self._blocks.append(TextBlock(clean_text(content)))
        for entry in call_entries(message):
            self.read_call(entry)
        self.read_other_calls(kept)

    def read_other_calls(self, message: Mapping[str, Any]) -> None:
        """Read the calls of a reply that are under keys which nobody knows (rule C8).

        Nothing but an entry of `tool_calls` can be answered, so each goes back as one more of
        these; in a history they are there already.
        """
        if self._is_history:
            return
        fields = {key: message[key] for key in message if key not in _MESSAGE_KEYS}
        for key, item in calls_in_fields(fields):
            found = unknown_call(key, item, item.get("id"), len(self._sent_calls))
            if found is not None:
                wanted = wanted_by(item)
                arguments = wanted if isinstance(wanted, dict) else {}
                function = {"name": found.name, "arguments": arguments}
                has_id = {"id": found.id} if found.id else {}
                self._add_unknown({**has_id, "function": function}, found)

    def read_call(self, entry: Any) -> None:
        """Read the next entry of `tool_calls`."""
        if not isinstance(entry, dict):
            if entry is not None:
                self._dropped.append(entry)
            return
        sent = without_nulls(entry)
        if not isinstance(sent.get("id", ""), str):
            del sent["id"]
        function = sent.get("function")
        if isinstance(function, dict):
            self._take_call(entry, sent, function)
        else:
            self._take_unknown(sent)

    def _take_call(
        self, entry: dict[str, Any], sent: dict[str, Any], function: dict[str, Any]
    ) -> None:
        body = without_nulls(function)
        name, value = body.get("name"), body.get("arguments")
        if not isinstance(name, str) or not name:
            name, body["name"] = "", UNNAMED
        if isinstance(value, str):  # as hosts of other APIs have them
            value = UnparsedInput(value)
        arguments, sent_arguments, problem = read_arguments(value)
        if "arguments" in body:
            body["arguments"] = sent_arguments
        call = CallBlock(
            clean_text(sent.get("id", "")),
            clean_text(name),
            arguments,
            as_object=True,
            position=len(self._sent_calls),
            problem=problem,
        )
        self._blocks.append(call)
        self.calls.append(call)
        self._sent_calls.append(entry if body == function and sent == entry else sent)
        if body != function:
            sent["function"] = body

    def _take_unknown(self, sent: dict[str, Any]) -> None:
        """An entry without a function: a call of a kind that is newer than this library."""
        kind = next((key for key in sent if key not in _CALL_KEYS), "")
        inner = sent.get(kind)
        item = inner if isinstance(inner, dict) else sent
        type_word = sent.get("type")
        word = kind or (type_word if isinstance(type_word, str) and type_word else "call")
        place = len(self._sent_calls)
        found = unknown_call(word, item, sent.get("id"), place, place_tells=True)
        if found is None:
            self._dropped.append(sent)
            return
        # The API reads a call only with a function.
        self._add_unknown({**sent, "function": {"name": found.name, "arguments": {}}}, found)

    def _add_unknown(self, sent: dict[str, Any], found: CallBlock) -> None:
        self._sent_calls.append(sent)
        self.unknown_calls.add(len(self._blocks), found)
        # A call takes this place when it is settled; in a history, one without a result doesn't.
        self._blocks.append(OpaqueBlock(found.kind))

    def settle_calls(self) -> None:
        """Put the calls of no known kind among the calls, when the answer has ended."""
        self.unknown_calls.settle(self._blocks, self.calls)

    def turn(self, reply: Mapping[str, Any], request_id: str | None) -> AssistantTurn:
        """The turn of the message, once it is read.

        Args:
            reply: The answer, for everything but the message.
            request_id: The provider's id of the request, where known.
        """
        self.settle_calls()
        finish = finish_of(reply, bool(self.calls))
        reason, model = reply.get("done_reason"), reply.get("model")
        calls = tuple(self.calls)
        return AssistantTurn(
            api=API,
            blocks=calls if len(calls) == len(self._blocks) else tuple(self._blocks),
            native=self._native(),
            calls=calls,
            calls_key="tool_calls",
            id_field="",
            finish_reason=finish,
            provider_finish_reason=reason if isinstance(reason, str) and reason else None,
            usage=_usage_of(reply),
            model=model if isinstance(model, str) else None,
            request_id=request_id,
            residue=self._residue(reply),
            cut=finish == "length",
        )

    def _native(self) -> bytes:
        kept = dict(self._kept)
        if self._sent_calls:
            kept["tool_calls"] = self._sent_calls
        # An answer without anything in it is kept, and left out of requests.
        says_something = any(kept[key] for key in kept if key not in ("role", "content"))
        if not (says_something or kept.get("content")):
            return b""
        kept.setdefault("content", "")
        return encode(kept)

    def _residue(self, reply: Mapping[str, Any]) -> bytes:
        rest = {
            key: reply[key]
            for key in sorted(reply, key=str)
            if key not in _ANSWER_KEYS and reply[key] is not None
        }
        if self._dropped:
            rest["tool_calls"] = self._dropped
        return encode(rest) if rest else b""
