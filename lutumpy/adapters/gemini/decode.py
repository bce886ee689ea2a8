"""From a response of generateContent to an `AssistantTurn`. Total: whatever the model wrote,
nothing raises.

`native` holds the content as it came, so that it can go back unchanged (rule R1): a signature is
valid only on the very part that it came with. What the API would refuse on the way back is taken
out or brought into shape here, once: parts without data, nulls that stand for "absent", arguments
that aren't an object, fields of another type.
"""

# What is hard here
# -----------------
# Calls have no ids in most answers, and ids that repeat in others. So the id of a `CallBlock` is
# this library's: the one on the wire where there is one, until the transcript knows it already. It
# is never written into `native`, whose calls are found by their places (`id_field` is empty).
#
# The reason for the end of an answer doesn't tell calls: with calls it is "STOP".
#
# A part has no type: one of its keys tells it. Under a key that nobody knows may be a call, for
# the client if the answer has no response to it, which is known at its end only.

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from lutumpy.adapters.gemini.partial_args import PIECES_AFTER_END, PartialArguments
from lutumpy.adapters.object_arguments import UnparsedInput, read_arguments
from lutumpy.adapters.replies import without_nulls
from lutumpy.adapters.unknown_calls import UnknownCalls, unknown_call
from lutumpy.core.items import (
    AssistantTurn,
    Block,
    CallBlock,
    FinishReason,
    OpaqueBlock,
    ReasoningBlock,
    TextBlock,
)
from lutumpy.core.usage import Usage, token_count
from lutumpy.plain.json_values import clean_text, encode
from lutumpy.rules.gemini.blocks import PART_KEYS, is_signed_thought
from lutumpy.rules.gemini.fields import field, key_of, spellings

__all__ = [
    "API",
    "CUT",
    "PartReader",
    "decode_response",
    "finish_of",
    "first_candidate",
    "has_ended",
    "is_cut",
    "is_response",
    "usage_of",
]

API = "gemini_generate_content"

# The API withheld the answer, or the rest of it. The last one is about the request: a signature is
# missing in it, so repeating it as it is gives the same.
_WITHHELD = (
    "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII MODEL_ARMOR IMAGE_SAFETY "
    "IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION ESCALATION PUP_LIMITED_DISABLED "
    "MISSING_THOUGHT_SIGNATURE"
).split()
_FINISH: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    # The API's own tools were called too often: its loop ended before there was an answer.
    "TOO_MANY_TOOL_CALLS": "length",
    "MALFORMED_RESPONSE": "length",
    "CONTINUATION": "paused",
    # The call may be there, of a function that wasn't declared: whoever runs calls says so.
    "UNEXPECTED_TOOL_CALL": "tool_calls",
    "MALFORMED_FUNCTION_CALL": "tool_calls",
    # It was to draw an image, and did not.
    "NO_IMAGE": "refusal",
    **dict.fromkeys(_WITHHELD, "content_filter"),
}
# Enums may come as their numbers. From 6 on, the two hosts count differently; 6 to 8 are filters
# on both.
_BY_NUMBER = {1: "STOP", 2: "MAX_TOKENS", 3: "SAFETY", 4: "RECITATION", 5: "OTHER"}
_BY_NUMBER |= dict.fromkeys((6, 7, 8), "PROHIBITED_CONTENT")

CUT: frozenset[FinishReason] = frozenset({"length", "content_filter", "refusal"})
"""Finish reasons of answers that broke off."""
_BROKEN_OFF = frozenset({"MALFORMED_FUNCTION_CALL", "OTHER", "IMAGE_OTHER"})
"""Further reasons of answers that broke off: a call that the API couldn't read, which isn't to be
run, and the API's own words for "no natural end, and no reason given".
"""

_OF_PIECES = frozenset(("args", *spellings(("partialArgs", "willContinue"))))
"""The fields of a call that say what its arguments are, and whether more of them follow."""

_OWN_KINDS = "executableCode codeExecutionResult toolCall toolResponse inlineData fileData".split()
"""Parts that only this API understands."""
_PART_TYPES: Mapping[str, type] = {
    "thought": bool,
    **dict.fromkeys(spellings(("thoughtSignature",)), str),
}
"""The fields beside what a part holds. Of another type, the API refuses the request for good."""
_OWN_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(
        spellings("code data displayName fileUri id mimeType output toolType".split()), (str, bytes)
    ),
    **dict.fromkeys(("args", "response"), (dict,)),
    **dict.fromkeys(("language", "outcome"), (str, int)),
}
"""The same of fields in parts of its own."""

_ANSWER_KEYS = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId"})
"""What is read of an answer; what else it has is kept beside the turn."""
_CANDIDATE_KEYS = frozenset({"content", "finishReason", "index"})
# What the SDK adds when it parses an answer.
_OF_SDK = frozenset({"sdkHttpResponse", "parsed", "automaticFunctionCallingHistory"})


def decode_response(reply: Mapping[str, Any], request_id: str | None = None) -> AssistantTurn:
    """The turn that a response holds: its first candidate.

    Args:
        reply: The response, as JSON values; it isn't changed.
        request_id: The provider's id of the request, where known.
    """
    reader = PartReader()
    content = first_candidate(reply).get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    for part in parts if isinstance(parts, list) else ():
        reader.read(part)
    return reader.turn(reply, request_id)


def is_response(reply: Mapping[str, Any]) -> bool:
    """Whether an object can be a response at all."""
    return any(field(reply, name) is not None for name in ("candidates", "promptFeedback")) or (
        field(reply, "usageMetadata") is not None
    )


def first_candidate(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """The candidate that is read: the one with the index 0, else the first; an empty one where
    there is none.
    """
    listed = reply.get("candidates")
    found = (
        [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    )
    own = [entry for entry in found if entry.get("index") in (None, 0)]
    return own[0] if own else {}


def has_ended(reply: Mapping[str, Any]) -> bool:
    """Whether a response says why the answer ended, or that the prompt was blocked."""
    return _reason_of(reply) is not None


def _reason_of(reply: Mapping[str, Any]) -> str | None:
    reason = field(first_candidate(reply), "finishReason")
    if type(reason) is int:
        return _BY_NUMBER.get(reason, str(reason)) if reason else None
    if isinstance(reason, str) and reason and reason != "FINISH_REASON_UNSPECIFIED":
        return reason
    blocked = field(field(reply, "promptFeedback"), "blockReason")
    if blocked is None or blocked in (
        0,
        "",
        "BLOCK_REASON_UNSPECIFIED",
        "BLOCKED_REASON_UNSPECIFIED",
    ):
        return None
    return blocked if isinstance(blocked, str) else str(blocked)


def finish_of(reply: Mapping[str, Any], calls: bool) -> FinishReason:
    """The reason in this library's words."""
    reason = _reason_of(reply)
    if reason is None:
        return "unknown"
    if field(first_candidate(reply), "finishReason") in (None, 0, "", "FINISH_REASON_UNSPECIFIED"):
        return "content_filter"  # the prompt was blocked
    finish = _FINISH.get(reason.upper(), "unknown")
    return "tool_calls" if finish == "stop" and calls else finish


def is_cut(reply: Mapping[str, Any], calls: bool) -> bool:
    """Whether an answer broke off. One that announces calls and holds none did."""
    return _broke_off(finish_of(reply, calls), _reason_of(reply), calls)


def _broke_off(finish: FinishReason, reason: str | None, calls: bool) -> bool:
    if finish in CUT or (finish == "tool_calls" and not calls):
        return True
    return reason is not None and reason.upper() in _BROKEN_OFF


def usage_of(usage: Any) -> Usage:
    """The token counts of a `usageMetadata`; whatever is missing, null or no number is 0.

    The API counts cached tokens among those of the prompt, and beside the prompt what its own tools
    brought; thoughts it counts beside the tokens of the answer.
    """
    if not isinstance(usage, dict):
        return Usage()
    asked = _count(usage, "promptTokenCount") + _count(usage, "toolUsePromptTokenCount")
    thoughts = _count(usage, "thoughtsTokenCount")
    written = _count(usage, "candidatesTokenCount") + thoughts
    total = _count(usage, "totalTokenCount") or asked + written
    return Usage(asked, written, total, _count(usage, "cachedContentTokenCount"), 0, thoughts, 0)


def _count(usage: Mapping[str, Any], name: str) -> int:
    return token_count(field(usage, name))


class PartReader:
    """One walk over the parts of a content: `read` each of them, then take the `turn`.

    Args:
        results: In a history, the ids and names of the calls that have responses there; see
            `UnknownCalls`.

    Attributes:
        blocks: What they say.
        native: What goes back.
        calls: The calls among the blocks.
        dropped: What doesn't go back, by the part's place in the answer.
        unknown_calls: What looks like a call, under a key that nobody knows.
    """

    __slots__ = (
        "_came_whole",
        "_position",
        "blocks",
        "calls",
        "dropped",
        "native",
        "unknown_calls",
    )

    def __init__(self, results: AbstractSet[str] | None = None) -> None:
        self.blocks: list[Block] = []
        self.native: list[dict[str, Any]] = []
        self.calls: list[CallBlock] = []
        self.dropped: dict[str, Any] = {}
        self.unknown_calls: UnknownCalls = UnknownCalls(results)
        self._position = 0
        # Whether the last call, if there is one, came with its arguments as one object.
        self._came_whole = True

    def read(self, part: Any) -> None:
        """The next part."""
        taken = isinstance(part, dict) and self._take(without_nulls(part))
        if not taken and part and part != {"text": ""}:
            self.dropped[str(self._position)] = part
        self._position += 1

    def read_gathered(self, part: dict[str, Any], arguments: PartialArguments) -> None:
        """The next part: a call whose arguments arrived piece by piece."""
        self._take_gathered(part, field(part, "functionCall"), arguments)
        self._position += 1

    def is_stray(self, call: Mapping[str, Any]) -> bool:
        """Whether a part brings arguments for the last call, which lacked them though it was
        complete: it has no name, and that call hasn't got its arguments as one object.
        """
        return not self._came_whole and not call.get("name") and bool(field(call, "partialArgs"))

    def _take(self, part: dict[str, Any]) -> bool:
        """Read a part; `False` if it can't go back."""
        for name, kind in _PART_TYPES.items():
            if name in part and not isinstance(part[name], (kind, bytes)):
                part = {key: value for key, value in part.items() if key != name}
        text = part.get("text")
        call = field(part, "functionCall")
        if isinstance(call, dict):
            # Asked without `field`, which most answers needn't enter here.
            has_pieces = "partialArgs" in call or "partial_args" in call
            if not has_pieces or field(call, "partialArgs") is None:
                self._take_call(part, call)
                self._came_whole = call.get("args") is not None
            elif self.is_stray(call):
                self._refuse_last_call()
                return False
            else:
                arguments = PartialArguments()
                arguments.take(call)
                self._take_gathered(part, call, arguments)
        elif isinstance(text, str):
            return self._take_text(part, text)
        elif is_signed_thought(part):
            self.blocks.append(ReasoningBlock("", signed=True))
            self.native.append(part)
        else:
            own = next((name for name in _OWN_KINDS if isinstance(field(part, name), dict)), None)
            if own is None:
                return self._take_unknown(part)
            self.blocks.append(OpaqueBlock(own))
            self.native.append(_fit_own_part(part, key_of(part, own)))
        return True

    def _take_unknown(self, part: dict[str, Any]) -> bool:
        """Read a part under a key that nobody knows; `False` if it has none."""
        kind = next((key for key in part if key not in PART_KEYS), None)
        if kind is None:
            return False
        inner = part[kind]
        if isinstance(inner, dict):
            place, call_id = len(self.native), inner.get("id")
            call = unknown_call(kind, inner, call_id, place, name_tells=True)
            if call is not None:
                self.unknown_calls.add(len(self.blocks), call)
            else:
                self.unknown_calls.note_answer(call_id)
        self.blocks.append(OpaqueBlock(clean_text(kind)))
        self.native.append(part)
        return True

    def _take_text(self, part: dict[str, Any], text: str) -> bool:
        signed = bool(field(part, "thoughtSignature"))
        if not text and not signed:
            return False
        if part.get("thought") is True:
            self.blocks.append(ReasoningBlock(clean_text(text), signed=signed))
        elif text:
            self.blocks.append(TextBlock(clean_text(text)))
        self.native.append(part)
        return True

    def _refuse_last_call(self) -> None:
        last = self.calls.pop()
        refused = replace(last, problem=last.problem or PIECES_AFTER_END)
        self.calls.append(refused)
        self.blocks = [refused if block is last else block for block in self.blocks]

    def _take_gathered(
        self, part: dict[str, Any], call: dict[str, Any], arguments: PartialArguments
    ) -> None:
        rest = {name: value for name, value in call.items() if name not in _OF_PIECES}
        found: Any = arguments.finish()
        if arguments.problem is not None:
            found = arguments.as_sent()
        key = key_of(part, "functionCall")
        gathered = {**rest, "args": found}
        self._take_call({**part, key: gathered}, gathered, arguments.problem)
        self._came_whole = False

    def _take_call(
        self, part: dict[str, Any], call: dict[str, Any], problem: str | None = None
    ) -> None:
        sent = without_nulls(call)
        name, call_id, args_value = sent.get("name"), sent.get("id"), sent.get("args")
        if not isinstance(name, str):
            name = ""
            sent["name"] = name
        if not isinstance(call_id, str):
            call_id = ""
            sent.pop("id", None)
        if isinstance(args_value, str):
            args_value = UnparsedInput(args_value)
        arguments, sent_args, misfit = read_arguments(args_value)
        if "args" in sent:
            sent["args"] = sent_args
        found = CallBlock(
            clean_text(call_id),
            clean_text(name),
            arguments,
            as_object=True,
            position=len(self.native),
            problem=misfit or problem,
        )
        self.blocks.append(found)
        self.calls.append(found)
        self.native.append(part if sent == call else {**part, key_of(part, "functionCall"): sent})

    def settle_calls(self) -> None:
        """Put the calls of no known kind among the calls, when the reply has ended."""
        self.unknown_calls.settle(self.blocks, self.calls)

    def turn(self, reply: Mapping[str, Any], request_id: str | None) -> AssistantTurn:
        """The turn of these parts, once all are read.

        Args:
            reply: The response, for everything but the parts.
            request_id: The provider's id of the request, where known.
        """
        self.settle_calls()
        reason = _reason_of(reply)
        finish = finish_of(reply, bool(self.calls))
        calls = tuple(self.calls)
        model, response_id = field(reply, "modelVersion"), field(reply, "responseId")
        return AssistantTurn(
            api=API,
            blocks=calls if len(calls) == len(self.blocks) else tuple(self.blocks),
            native=encode({"role": "model", "parts": self.native}) if self.native else b"",
            calls=calls,
            calls_key="parts",
            id_field="",
            finish_reason=finish,
            provider_finish_reason=reason,
            usage=usage_of(field(reply, "usageMetadata")),
            model=model if isinstance(model, str) else None,
            request_id=request_id,
            response_id=response_id if isinstance(response_id, str) else None,
            residue=self._residue(reply),
            cut=_broke_off(finish, reason, bool(calls)),
        )

    def _residue(self, reply: Mapping[str, Any]) -> bytes:
        residue = _rest_of(reply, _ANSWER_KEYS | _OF_SDK)
        if rest := _rest_of(first_candidate(reply), _CANDIDATE_KEYS):
            residue["candidate"] = rest
        if self.dropped:
            residue["parts"] = self.dropped
        return encode(residue) if residue else b""


def _fit_own_part(part: dict[str, Any], key: str) -> dict[str, Any]:
    """A part of the API's own, without fields whose type it refuses."""
    inner = part[key]
    kept = {
        name: value
        for name, value in inner.items()
        if isinstance(value, _OWN_TYPES.get(name, object))
    }
    return part if kept == inner else {**part, key: kept}


def _rest_of(value: Mapping[str, Any], read: frozenset[str]) -> dict[str, Any]:
    """What an object has besides, in one order whatever the order in which it came."""
    return {
        name: value[name]
        for name in sorted(value, key=str)
        if name not in read and value[name] is not None
    }
