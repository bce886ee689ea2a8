"""From an answer of Converse to an `AssistantTurn`. Total: nothing that a model wrote raises.

`native` holds the content blocks as they came, so that they can go back unchanged (rule R1). What
the API itself would refuse on the way back is taken out or brought into shape here, once: empty
texts, nulls that stand for "absent", the `type` that answers give to calls and no request may
repeat, an `input` that isn't an object.
"""

# What is hard here
# -----------------
# A block has no type: its one key tells it. A tool that the provider runs itself is a call with the
# type `server_tool_use`, and its result stands in the same message; neither is the program's to
# answer, so both are opaque. A call of a type or under a key that nobody knows is the program's if
# the message has no result of it, which is known at its end only.

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from lutumpy.adapters.bedrock.blobs import with_base64
from lutumpy.adapters.object_arguments import read_arguments
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
from lutumpy.rules.bedrock.blocks import BLOCK_KEYS
from lutumpy.rules.bedrock.limits import SERVER_TOOL

__all__ = [
    "API",
    "CLIENT_TYPES",
    "CUT",
    "ID_FIELD",
    "REASONING",
    "BlockReader",
    "decode_response",
    "finish_of",
    "is_cut",
    "is_response",
    "key_of",
    "usage_of",
]

API = "bedrock_converse"

REASONING = "reasoningContent"

ID_FIELD = "toolUse.toolUseId"
"""Where the id of a call is in its block."""

_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "malformed_model_output": "length",
    "malformed_tool_use": "tool_calls",
}
CUT: frozenset[FinishReason] = frozenset({"length", "content_filter"})
"""Finish reasons of answers that broke off."""
CLIENT_TYPES = (None, "tool_use")
"""The types of calls that are the client's."""
_MALFORMED_CALL = "malformed_tool_use"
"""The model wrote a call that the API couldn't read; what there is of it isn't to be run."""

_READ = frozenset({"output", "stopReason", "usage", "metrics", "ResponseMetadata"})
"""What isn't kept beside a turn: it is read, or is about the request alone."""


def decode_response(reply: Mapping[str, Any], request_id: str | None = None) -> AssistantTurn:
    """The turn that an answer holds.

    Args:
        reply: The answer, as JSON values or as boto3 gives it; it isn't changed.
        request_id: The provider's id of the request, where known.
    """
    output = reply.get("output")
    message = output.get("message") if isinstance(output, Mapping) else None
    content = message.get("content") if isinstance(message, Mapping) else None
    reader = BlockReader()
    for block in content if isinstance(content, list) else ():
        reader.read(with_base64(block))
    return reader.turn(reply, request_id)


def is_response(reply: Mapping[str, Any]) -> bool:
    """Whether an object can be an answer at all."""
    return isinstance(reply.get("output"), Mapping) or isinstance(reply.get("stopReason"), str)


def finish_of(stop: str | None) -> FinishReason:
    """The stop reason in this library's words."""
    return _FINISH.get(stop, "unknown") if stop is not None else "unknown"


def is_cut(stop: str | None) -> bool:
    """Whether an answer with this stop reason broke off."""
    return finish_of(stop) in CUT or stop == _MALFORMED_CALL


def usage_of(usage: Any) -> Usage:
    """The token counts of a `usage` object; whatever is missing, null or no number is 0.

    The API counts cached tokens beside `inputTokens`, and in `totalTokens`.
    """
    if not isinstance(usage, Mapping):
        return Usage()
    fresh, written = _count(usage, "inputTokens"), _count(usage, "outputTokens")
    # The second spelling is that of older answers.
    read = _count(usage, "cacheReadInputTokens") or _count(usage, "cacheReadInputTokenCount")
    cache_written = _count(usage, "cacheWriteInputTokens") or _count(
        usage, "cacheWriteInputTokenCount"
    )
    total = _count(usage, "totalTokens") or fresh + written + read + cache_written
    return Usage(fresh, written, total, read, cache_written, 0, read + cache_written)


def _count(usage: Mapping[str, Any], name: str) -> int:
    return token_count(usage.get(name))


def key_of(block: Any) -> str:
    """The key that tells what a block is; empty when it is none."""
    if not isinstance(block, Mapping):
        return ""
    return next(
        (key for key, value in block.items() if isinstance(key, str) and value is not None), ""
    )


class BlockReader:
    """One walk over the content blocks: `read` each of them, then take the `turn`.

    Args:
        results: In a history, the ids of the calls that have results there; see `UnknownCalls`.

    Attributes:
        blocks: What they say.
        native: What goes back.
        calls: The calls for the client among the blocks.
        dropped: What doesn't go back, by the block's place in the answer.
        unknown_calls: What looks like a call, of no known kind.
    """

    __slots__ = ("_position", "blocks", "calls", "dropped", "native", "unknown_calls")

    def __init__(self, results: AbstractSet[str] | None = None) -> None:
        self.blocks: list[Block] = []
        self.native: list[dict[str, Any]] = []
        self.calls: list[CallBlock] = []
        self.dropped: dict[str, Any] = {}
        self.unknown_calls: UnknownCalls = UnknownCalls(results)
        self._position = 0

    def read(self, block: Any) -> None:
        """The next block."""
        if not self._take(block) and block and block != {"text": ""}:
            self.dropped[str(self._position)] = block
        self._position += 1

    def _take(self, block: Any) -> bool:
        """Read a block; `False` if it can't go back."""
        key = key_of(block)
        inner = block[key] if key else None
        if key == "text":
            if not isinstance(inner, str) or not inner:
                return False
            self.blocks.append(TextBlock(clean_text(inner)))
            self.native.append({key: inner})
            return True
        if key == "SDK_UNKNOWN_MEMBER":
            return False
        if not isinstance(inner, Mapping):
            if not key or key in BLOCK_KEYS:
                return False
            self.blocks.append(OpaqueBlock(clean_text(key)))
            self.native.append({key: inner})
            return True
        if key == "toolUse" and inner.get("type") != SERVER_TOOL:
            self._take_call(inner, is_known=inner.get("type") in CLIENT_TYPES)
            return True
        if key == REASONING:
            return self._take_reasoning(inner)
        if key == "citationsContent":
            self.blocks.append(TextBlock(clean_text(_cited_text(inner))))
        else:
            self._take_opaque(key, inner)
        self.native.append({key: without_nulls(inner)})
        return True

    def _take_opaque(self, key: str, inner: Mapping[str, Any]) -> None:
        call_id = inner.get("toolUseId")
        # Ids in the native form are found by a path of keys with dots.
        id_field = "" if "." in key else f"{key}.toolUseId"
        call = None
        if key not in BLOCK_KEYS:
            call = unknown_call(key, inner, call_id, len(self.native), id_field)
        if call is not None:
            self.unknown_calls.add(len(self.blocks), call)
        elif key != "toolUse":
            self.unknown_calls.note_answer(call_id)
        self.blocks.append(OpaqueBlock(clean_text(key)))

    def _take_call(self, fields: Mapping[str, Any], *, is_known: bool) -> None:
        sent = without_nulls(fields)
        if is_known:
            sent.pop("type", None)
        call_id, name, value = sent.get("toolUseId"), sent.get("name"), sent.get("input")
        if not isinstance(call_id, str):
            call_id = sent["toolUseId"] = ""
        if not isinstance(name, str):
            name = sent["name"] = ""
        arguments, sent["input"], problem = read_arguments(value)
        call = CallBlock(
            clean_text(call_id),
            clean_text(name),
            arguments,
            as_object=True,
            position=len(self.native),
            problem=problem,
        )
        if is_known:
            self.blocks.append(call)
            self.calls.append(call)
        else:
            self.unknown_calls.add(len(self.blocks), call)
            self.blocks.append(OpaqueBlock("toolUse"))
        self.native.append({"toolUse": sent})

    def settle_calls(self) -> None:
        """Put the calls of no known kind among the calls, when the reply has ended."""
        for call in self.unknown_calls.settle(self.blocks, self.calls):
            use = self.native[call.position].get("toolUse")
            if use is not None:
                use.pop("type", None)  # no request may repeat it

    def _take_reasoning(self, fields: Mapping[str, Any]) -> bool:
        sent = without_nulls(fields)
        reasoning_text = sent.get("reasoningText")
        if isinstance(sent.get("redactedContent"), str):
            self.blocks.append(ReasoningBlock("", signed=True))
        elif isinstance(reasoning_text, Mapping):
            reasoning_text = sent["reasoningText"] = without_nulls(reasoning_text)
            text, signature = reasoning_text.get("text"), reasoning_text.get("signature")
            if not isinstance(text, str):
                text = reasoning_text["text"] = ""
            if not isinstance(signature, str) or not signature:
                # "Invalid `signature`": an empty one is refused everywhere, a missing one isn't.
                reasoning_text.pop("signature", None)
            self.blocks.append(
                ReasoningBlock(clean_text(text), signed="signature" in reasoning_text)
            )
        else:
            return False
        self.native.append({REASONING: sent})
        return True

    def turn(self, reply: Mapping[str, Any], request_id: str | None) -> AssistantTurn:
        """The turn of these blocks, once all are read; nothing can be read after it.

        Args:
            reply: The answer, for everything but its content.
            request_id: The provider's id of the request, where known.
        """
        stop = reply.get("stopReason")
        if not isinstance(stop, str):
            stop = None
        self.settle_calls()
        cut = is_cut(stop)
        if cut:
            self._drop_unfinished()
        calls = tuple(self.calls)
        return AssistantTurn(
            api=API,
            blocks=calls if len(calls) == len(self.blocks) else tuple(self.blocks),
            native=encode(self.native) if self.native else b"",
            calls=calls,
            id_field=ID_FIELD,
            finish_reason=finish_of(stop),
            provider_finish_reason=stop,
            usage=usage_of(reply.get("usage")),
            model=_invoked_model(reply),
            request_id=request_id,
            residue=self._residue(reply),
            cut=cut,
        )

    def _drop_unfinished(self) -> None:
        """Leave out what an answer that broke off can't be replayed with: tools of the provider's
        without their results, and reasoning at its end, which signs what didn't come.
        """
        results = [
            block["toolResult"].get("toolUseId") for block in self.native if _is_result(block)
        ]
        kept = [block for block in self.native if not _is_running(block, results)]
        cut = [block for block in self.native if _is_running(block, results)]
        while kept and _is_signed(kept[-1]):
            cut.append(kept.pop())
        if not cut:
            return
        # The calls of the client stay, each at another place.
        places = {id(block): place for place, block in enumerate(kept)}
        moved = {
            id(call): replace(call, position=places[id(self.native[call.position])])
            for call in self.calls
        }
        self.blocks = [moved.get(id(block), block) for block in self.blocks]
        self.calls = [moved[id(call)] for call in self.calls]
        self.native = kept
        self.dropped["cut"] = cut

    def _residue(self, reply: Mapping[str, Any]) -> bytes:
        residue = {
            name: with_base64(reply[name])
            for name in sorted(reply, key=str)
            if name not in _READ and reply[name] is not None
        }
        if self.dropped:
            residue["content"] = self.dropped
        return encode(residue) if residue else b""


def _cited_text(inner: Mapping[str, Any]) -> str:
    content = inner.get("content")
    found = (
        [part.get("text") for part in content if isinstance(part, Mapping)]
        if isinstance(content, list)
        else []
    )
    return "".join([text for text in found if isinstance(text, str)])


def _is_result(block: dict[str, Any]) -> bool:
    return isinstance(block.get("toolResult"), dict)


def _is_running(block: dict[str, Any], results: list[Any]) -> bool:
    """Whether a block is a call that the provider runs itself, and has no result."""
    use = block.get("toolUse")
    if use is None or use.get("type") != SERVER_TOOL:
        return False
    return use.get("toolUseId") not in results


def _is_signed(block: dict[str, Any]) -> bool:
    inner = block.get(REASONING)
    if inner is None:
        return False
    return "redactedContent" in inner or "signature" in (inner.get("reasoningText") or {})


def _invoked_model(reply: Mapping[str, Any]) -> str | None:
    """The model that a prompt router chose, where the answer's trace says it."""
    trace = reply.get("trace")
    router = trace.get("promptRouter") if isinstance(trace, Mapping) else None
    model = router.get("invokedModelId") if isinstance(router, Mapping) else None
    return model if isinstance(model, str) else None
