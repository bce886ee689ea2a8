"""From a message of the Anthropic Messages API to an `AssistantTurn`. Total: whatever the model
wrote, nothing raises.

`native` holds the content blocks as they came, so that they can go back unchanged (rule R1). What
the API itself would refuse on the way back is taken out or brought into shape here, once: empty
text blocks, nulls that stand for "absent", fields of the SDK's own, an `input` that isn't an
object.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from lutumpy.adapters.object_arguments import read_arguments
from lutumpy.adapters.replies import clean_field, input_transformations, without_nulls
from lutumpy.adapters.unknown_calls import UnknownCalls, unknown_call
from lutumpy.core.items import (
    AssistantTurn,
    Block,
    CallBlock,
    FinishReason,
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
)
from lutumpy.core.usage import MOST_TOKENS, Usage, token_count
from lutumpy.plain.json_values import INVALID_JSON, clean_text, encode, encode_text
from lutumpy.rules.anthropic.blocks import BLOCK_TYPES

__all__ = [
    "API",
    "CUT",
    "REASONING",
    "SERVER_CALLS",
    "TOOLSET_KIND",
    "ContentReader",
    "decode_message",
    "finish_of",
    "refusal_text",
    "usage_of",
]

API = "anthropic_messages"

# Calls of a client toolset (computer, browser): no function of the application, and answered with
# the toolset's name.
TOOLSET_KIND = "toolset"

REASONING = frozenset({"thinking", "redacted_thinking"})

_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "paused",
    # With `pause_after_compaction`: the summary is written, the answer is not (beta
    # `compact-2026-01-12`).
    "compaction": "paused",
    "refusal": "refusal",
}

# Finish reasons of answers that broke off.
CUT: frozenset[FinishReason] = frozenset({"length", "refusal"})

# Answers spell "absent" as null where a request must leave the key out; `parsed_output` is the
# SDK's.
_ABSENT_AS_NULL = ("caller", "citations", "toolset_name", "cache_control", "parsed_output")

# Parts of an answer, beside its content, that no request takes back.
_ANSWER_ONLY = ("container", "context_management", "diagnostics", "stop_details", "stop_sequence")

# Kinds that the API takes in user messages only; none of them has been seen in an answer.
_USERS_ONLY = frozenset({"tool_result", "image", "document", "search_result"})

SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})


def decode_message(reply: Mapping[str, Any], request_id: str | None = None) -> AssistantTurn:
    """The turn that a message holds.

    Args:
        reply: The message object, as JSON values; it isn't changed.
        request_id: The provider's id of the request, where known.
    """
    content = reply.get("content")
    reader = ContentReader()
    if isinstance(content, list):
        for block in content:
            reader.read(block)
    elif isinstance(content, str):
        reader.read({"type": "text", "text": content})
    return reader.turn(reply, request_id)


def finish_of(stop_reason: str | None) -> FinishReason:
    """The stop reason in this library's words."""
    return _FINISH.get(stop_reason, "unknown") if stop_reason is not None else "unknown"


_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


def usage_of(usage: Any) -> Usage:
    """The token counts of a `usage` object; whatever is missing, null or no number is 0.

    The API counts cached tokens beside `input_tokens`: everything is the sum of all four. What
    compactions cost is left out of them, and is in `iterations` alone.
    """
    if not isinstance(usage, dict):
        return Usage()
    # As `token_count`, without entering it for each.
    fresh, output, read, written = [
        count if type(count) is int and 0 < count < MOST_TOKENS else 0
        for count in map(usage.get, _COUNTS)
    ]
    details = usage.get("output_tokens_details")
    thinking = token_count(details.get("thinking_tokens")) if isinstance(details, dict) else 0
    counted = Usage(
        fresh, output, fresh + output + read + written, read, written, thinking, read + written
    )
    iterations = usage.get("iterations")
    if isinstance(iterations, list):
        compactions = [
            part
            for part in iterations
            if isinstance(part, dict) and part.get("type") == "compaction"
        ]
        # A compaction has no iterations of its own, so none are looked for in it.
        counted = sum([usage_of({**part, "iterations": None}) for part in compactions], counted)
    return counted


class ContentReader:
    """One walk over the content blocks: `read` each of them, then take the `turn`.

    Args:
        results: In a history, the ids of the calls that have results there; see `UnknownCalls`.

    Attributes:
        blocks: What they say.
        native: What goes back.
        dropped: What doesn't, by the block's place in the answer.
        running: Ids of calls that the provider runs itself, and of which the answer holds no result
            yet.
        calls: The calls for the client among the blocks.
        unknown_calls: Blocks of no known kind that look like calls; `None` where there are none.
    """

    __slots__ = (
        "_results",
        "blocks",
        "calls",
        "dropped",
        "native",
        "position",
        "running",
        "unknown_calls",
    )

    def __init__(self, results: AbstractSet[str] | None = None) -> None:
        self.blocks: list[Block] = []
        self.native: list[dict[str, Any]] = []
        self.dropped: dict[str, Any] = {}
        self.running: set[str] = set()
        self.calls: list[CallBlock] = []
        self.position: int = 0
        self.unknown_calls: UnknownCalls | None = None
        self._results = results

    def read(self, block: Any) -> None:
        if not isinstance(block, dict):
            self.dropped[str(self.position)] = block
        else:
            kind = block.get("type")
            if kind == "text":
                self._read_text(block)
            elif kind == "tool_use":
                self._read_call(block)
            elif kind == "thinking":
                self._read_thinking(block)
            elif kind == "redacted_thinking":
                self._read_redacted(block)
            elif isinstance(kind, str) and kind and kind not in _USERS_ONLY:
                self._read_opaque(kind, block)
            else:
                self.dropped[str(self.position)] = block
        self.position += 1

    def turn(self, reply: Mapping[str, Any], request_id: str | None) -> AssistantTurn:
        """The turn of these blocks, once all are read; nothing can be read after it.

        Args:
            reply: The message, for everything but its content.
            request_id: The provider's id of the request, where known.
        """
        stop = reply.get("stop_reason")
        if not isinstance(stop, str):
            stop = None
        finish = finish_of(stop)
        if finish == "refusal" and not any(type(block) is TextBlock for block in self.blocks):
            self.blocks.append(RefusalBlock(refusal_text(reply.get("stop_details"))))
        if self.unknown_calls is not None:
            self.settle_calls(finish)
        results_only = bool(self.running) and (bool(self.calls) or finish == "paused")
        self._drop_cut_end(running=bool(self.running) and not results_only)
        residue = {key: value for key in _ANSWER_ONLY if (value := reply.get(key)) is not None}
        if self.dropped:
            residue["content"] = self.dropped
        model, response_id = reply.get("model"), reply.get("id")
        called = tuple(self.calls)
        # Without the names of the fields, which would take a third of the time of making it.
        return AssistantTurn(
            API,
            called
            if len(self.blocks) == len(called)
            else tuple(self.blocks),  # one tuple where there are only calls
            encode(self.native) if self.native else b"",
            called,
            None,  # calls_key
            "id",  # id_field
            finish,
            stop,
            usage_of(reply.get("usage")),
            model if isinstance(model, str) else None,
            request_id,
            response_id if isinstance(response_id, str) else None,
            encode(residue) if residue else b"",
            finish in CUT,
            results_only,
            False,  # reasoning_dropped
            None,  # verbatim
            input_transformations(reply) if "input_transformations" in reply else (),
        )

    def settle_calls(self, finish: FinishReason) -> None:
        """Put the calls of no known kind among the calls, when the reply has ended.

        Where the provider paused, it goes on with them itself.
        """
        if self.unknown_calls is None:
            return
        if finish == "paused":
            self.running |= self.unknown_calls.ids()
        else:
            self.unknown_calls.settle(self.blocks, self.calls)
            self.unknown_calls = None

    def _drop_cut_end(self, *, running: bool) -> None:
        """Leave out what keeps an answer that broke off from being sent back.

        "The final block in an assistant message cannot be `thinking`", and of a call of the
        provider that got no result "`web_search` tool use with id `srvtoolu_...` was found without
        a corresponding `web_search_tool_result` block".

        Args:
            running: Leave out those calls; only for answers without calls for the client, whose
                places stay as they are.
        """
        cut: list[dict[str, Any]] = []
        if running:
            cut = [b for b in self.native if self._is_running(b)]
            self.native = [b for b in self.native if not self._is_running(b)]
        while self.native and self.native[-1].get("type") in REASONING:
            cut.insert(0, self.native.pop())
        if cut:
            self.dropped["cut"] = cut

    def _is_running(self, block: dict[str, Any]) -> bool:
        call_id = block.get("id")
        return (
            block["type"] in SERVER_CALLS and isinstance(call_id, str) and call_id in self.running
        )

    def _read_text(self, block: dict[str, Any]) -> None:
        text = block.get("text")
        if not isinstance(text, str) or not text:
            # "messages: text content blocks must be non-empty"
            if text or len(block) > 2:
                self.dropped[str(self.position)] = block
            return
        self.blocks.append(TextBlock(clean_text(text)))
        self.native.append(self._clean_text_block(block) if len(block) > 2 else block)

    def _read_call(self, block: dict[str, Any]) -> None:
        call_id, name, input_value = block.get("id"), block.get("name"), block.get("input")
        sent = self._clean_block(block, own=True)
        if not isinstance(call_id, str):
            call_id = ""
            sent = {**sent, "id": call_id}
        if not isinstance(name, str):
            name = ""
            sent = {**sent, "name": name}
        arguments, sent_input, problem = read_arguments(input_value)
        if sent_input is not input_value:
            sent = {**sent, "input": sent_input}
        toolset = sent.get("toolset_name")
        kind = TOOLSET_KIND if isinstance(toolset, str) and toolset else "function"
        position = len(self.native)
        call = CallBlock(
            clean_text(call_id),
            clean_text(name),
            arguments,
            kind,
            True,
            False,
            position,
            problem=problem,
        )
        self.blocks.append(call)
        self.native.append(sent)
        self.calls.append(call)

    def _read_thinking(self, block: dict[str, Any]) -> None:
        text, signature = block.get("thinking"), block.get("signature")
        sent = self._clean_block(block, own=True)
        if not isinstance(text, str):
            text = ""
            sent = {**sent, "thinking": text}
        if not isinstance(signature, str):
            signature = ""
            sent = {**sent, "signature": signature}
        self.blocks.append(ReasoningBlock(clean_text(text), signed=bool(signature)))
        self.native.append(sent)

    def _read_redacted(self, block: dict[str, Any]) -> None:
        if not isinstance(block.get("data"), str):
            self.dropped[str(self.position)] = block
            return
        self.blocks.append(ReasoningBlock("", signed=True))
        self.native.append(self._clean_block(block, own=True))

    def _read_opaque(self, kind: str, block: dict[str, Any]) -> None:
        if kind in SERVER_CALLS:
            call_id = block.get("id")
            if isinstance(call_id, str):
                self.running.add(call_id)
        elif isinstance(answered := block.get("tool_use_id"), str):
            self.running.discard(answered)
            if self.unknown_calls is not None:
                self.unknown_calls.note_answer(answered)
        elif kind not in BLOCK_TYPES:
            call = unknown_call(kind, block, block.get("id"), len(self.native))
            if call is not None:
                if self.unknown_calls is None:
                    self.unknown_calls = UnknownCalls(self._results)
                self.unknown_calls.add(len(self.blocks), call)
        self.blocks.append(OpaqueBlock(clean_text(kind)))
        sent = self._clean_block(block, own=False)
        input_value = sent.get("input", {})
        if kind in SERVER_CALLS and not isinstance(input_value, dict):
            sent = {
                **sent,
                "input": {
                    INVALID_JSON: input_value
                    if isinstance(input_value, str)
                    else encode_text(input_value)
                },
            }
        content = sent.get("content")
        if isinstance(content, dict) and content.get("abort_reason", 0) is None:
            sent = {
                **sent,
                "content": {key: value for key, value in content.items() if key != "abort_reason"},
            }
        self.native.append(sent)

    def _clean_text_block(self, block: dict[str, Any]) -> dict[str, Any]:
        sent = self._clean_block(block, own=True)
        citations = sent.get("citations")
        if isinstance(citations, list) and any(
            isinstance(c, dict) and "file_id" in c for c in citations
        ):
            # Answers name the file, requests have no such field: "file_id: Extra inputs are not
            # permitted".
            sent = {**sent, "citations": [_drop_file_id(c) for c in citations]}
            if any(isinstance(c, dict) and c.get("file_id") is not None for c in citations):
                self.dropped[str(self.position)] = {"citations": citations}
        return sent

    def _clean_block(self, block: dict[str, Any], *, own: bool) -> dict[str, Any]:
        """`block` without what a request refuses: itself, not to be changed, or a copy.

        Args:
            own: The block's request form is known whole, and has no field that may be null. Of
                others only the nulls that are known to be refused go, since null can mean something
                there (a failed compaction).
        """
        if None not in block.values() and "parsed_output" not in block:
            return block
        if own:
            sent = without_nulls(block)
        else:
            sent = {
                key: value
                for key, value in block.items()
                if value is not None or key not in _ABSENT_AS_NULL
            }
        if "parsed_output" in sent:
            self.dropped[str(self.position)] = {"parsed_output": sent.pop("parsed_output")}
        return sent


def _drop_file_id(citation: Any) -> Any:
    return (
        {k: v for k, v in citation.items() if k != "file_id"}
        if isinstance(citation, dict)
        else citation
    )


def refusal_text(details: Any) -> str:
    """The explanation in the `stop_details` of a refusal; empty when there is none."""
    text = details.get("explanation") if isinstance(details, dict) else None
    return clean_field(text)
