"""What mends a history of Responses: the doctor's table of its rules.

What the rules require, and how sure a refusal is, is in `rules/openai/responses/catalogue.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from lutumpy.doctor.catalogue import (
    Mending,
    all_at_once,
    for_any_certainty,
    one_by_one,
    rows_of,
    stages_of,
)
from lutumpy.doctor.conversion import conversion_to
from lutumpy.doctor.openai.arguments import cut_long_arguments, wrap_unreadable, write_as_text
from lutumpy.doctor.openai.media import mend_responses_media, mend_responses_source
from lutumpy.doctor.openai.responses.approvals import mend_approvals
from lutumpy.doctor.openai.responses.ids import mend_ids, mend_items, mend_repeats
from lutumpy.doctor.openai.responses.items import (
    drop_status,
    drop_unknown_keys,
    mend_item,
    mend_item_content,
    mend_item_id,
    mend_names,
    mend_output,
    mend_part,
    mend_role,
    mend_summary,
)
from lutumpy.doctor.openai.responses.moves import drop_private
from lutumpy.doctor.openai.responses.order import drop_truncated, mend_interleaved
from lutumpy.doctor.openai.responses.pairing import mend_outputs
from lutumpy.doctor.openai.responses.reasoning import ReasoningTies, mend_reasoning
from lutumpy.doctor.openai.responses.spelling import SPELLING
from lutumpy.doctor.shared_rows import (
    CACHED_PREFIX,
    CUTTING_IS_LEFT,
    ENCODING,
    FILES_ARE_LEFT,
    NESTING,
    ONLY_MESSAGE_IS_LEFT,
    REASONING_BOUND,
    REQUEST_IS_LEFT,
)
from lutumpy.rules.openai.responses.catalogue import RULES

__all__ = ["ROWS", "SPELLING", "STAGES", "TIES"]

# The order of the stages:
#
#   nesting, encoding        first, so that everything after them sees JSON that can be compared
#   conversion               before shapes are mended: what is odd here may be right in another API
#   private                  what only another host knows is gone before it is looked at
#   entries, keys            what each item is, and which keys it has
#   cut-off calls            before arguments: one that was cut off would be wrapped and kept
#   arguments .. media       the fields and parts of each item
#   call ids .. repeated     before pairing, which goes by ids
#   ids
#   pairing, approvals,      outputs to their calls, answers to requests for approval, then parallel
#   order                    calls together
#   reasoning                last: only now it is known which items follow it, and with which ids
_ORDER = (
    "nesting",
    "encoding",
    "conversion",
    "private",
    "entries",
    "keys",
    "cut-off calls",
    "arguments",
    "tool names",
    "contents",
    "media",
    "call ids",
    "item ids",
    "repeated items",
    "repeated ids",
    "pairing",
    "approvals",
    "order",
    "reasoning",
    "bound reasoning",
)
# Whichever rule a message of another API breaks first, no host of this one can read it.
_CONVERT = for_any_certainty("conversion", conversion_to(SPELLING))
_AUDIO_IS_LEFT = "audio and video have to be transcribed, or sent to a model that takes them"

_CHANGE_IS_LEFT = "only the program knows what it meant to change"

_MENDINGS: Mapping[str, Mending] = {
    "responses.nesting": NESTING,
    "responses.encoding": ENCODING,
    "responses.input": Mending(
        _CONVERT,
        one_by_one("entries", mend_item),
        repairs=(
            "set_field",
            "drop_reference",
            "drop_empty",
            "move_message",
            "convert_message",
            "set_role",
        ),
        left="an entry whose keys don't show what it is",
    ),
    "responses.item_type": Mending(
        _CONVERT,
        repairs=("convert_message", "drop_reasoning", "set_role"),
        left="items of an unknown type, whose meaning nothing shows",
    ),
    "responses.item_keys": Mending(
        _CONVERT,
        one_by_one("keys", drop_unknown_keys),
        repairs=("drop_key", "convert_message", "set_role"),
    ),
    "responses.item_id": Mending(
        one_by_one("item ids", mend_item_id),
        repairs=("drop_id", "drop_reasoning", "drop_reference"),
    ),
    "responses.duplicate_item": Mending(
        all_at_once("repeated items", mend_items),
        repairs=("drop_duplicate", "drop_id", "drop_reasoning"),
        left="a request for approval with the id of another item, which it can't do without",
    ),
    "responses.role": Mending(
        _CONVERT,
        one_by_one("entries", mend_role),
        repairs=("set_role", "convert_message"),
        left="a message whose role neither its name nor its parts show",
    ),
    "responses.content": Mending(
        _CONVERT,
        one_by_one("contents", mend_item_content),
        repairs=("drop_empty", "set_content", "convert_message", "set_role"),
        left=ONLY_MESSAGE_IS_LEFT,
    ),
    "responses.parts": Mending(
        _CONVERT,
        one_by_one("contents", mend_part),
        repairs=("drop_empty", "set_content", "convert_message", "drop_reasoning", "move_content"),
        left="parts of an unknown type: the program has to express them in another way",
    ),
    "responses.media_source": Mending(
        one_by_one("contents", mend_responses_source),
        repairs=("set_content", "drop_empty"),
        left="nobody knows what is to be shown",
    ),
    "responses.image_type": Mending(
        one_by_one("media", mend_responses_media),
        repairs=("set_content",),
        left=FILES_ARE_LEFT,
    ),
    "responses.part_length": Mending(left=CUTTING_IS_LEFT),
    "responses.file_data": Mending(
        one_by_one("media", mend_responses_media), repairs=("set_content",), left=_AUDIO_IS_LEFT
    ),
    "responses.file_url": Mending(left=_AUDIO_IS_LEFT),
    "responses.additional_tools": Mending(left=_CHANGE_IS_LEFT),
    "responses.configuration_update": Mending(left=_CHANGE_IS_LEFT),
    "responses.status": Mending(one_by_one("media", drop_status), repairs=("drop_key",)),
    "responses.reasoning_summary": Mending(
        one_by_one("arguments", mend_summary), repairs=("set_field",)
    ),
    "responses.call_id": Mending(
        _CONVERT,
        all_at_once("call ids", mend_ids),
        repairs=("replace_id", "match_result", "drop_result", "convert_message", "set_role"),
    ),
    "responses.call_name": Mending(all_at_once("tool names", mend_names), repairs=("rename_tool",)),
    "responses.arguments": Mending(
        one_by_one("arguments", write_as_text), repairs=("wrap_arguments",)
    ),
    "responses.arguments_json": Mending(
        one_by_one("arguments", wrap_unreadable), repairs=("wrap_arguments",), although_unsure=True
    ),
    "responses.arguments_length": Mending(
        one_by_one("arguments", cut_long_arguments), repairs=("wrap_arguments",)
    ),
    "responses.truncated_call": Mending(
        all_at_once("cut-off calls", drop_truncated),
        repairs=("drop_call", "drop_result"),
        left="a call whose arguments can be read stays, because the tool may have run",
    ),
    "responses.output": Mending(one_by_one("arguments", mend_output), repairs=("set_content",)),
    "responses.output_for_call": Mending(
        all_at_once("pairing", mend_outputs),
        repairs=("close_call", "move_result", "drop_call", "set_field"),
        # Nobody else can answer it: it is unsure only for calls of a kind that is unknown.
        although_unsure=True,
    ),
    "responses.call_for_output": Mending(
        all_at_once("pairing", mend_outputs), repairs=("move_result", "drop_result")
    ),
    "responses.duplicate_output": Mending(
        all_at_once("pairing", mend_outputs), repairs=("drop_result",), although_unsure=True
    ),
    "responses.duplicate_call_id": Mending(
        all_at_once("repeated ids", mend_repeats),
        repairs=("rename_id", "drop_duplicate"),
        although_unsure=True,
    ),
    "responses.interleaved_calls": Mending(
        all_at_once("order", mend_interleaved), repairs=("move_result",)
    ),
    "responses.approval_for_request": Mending(
        all_at_once("approvals", mend_approvals), repairs=("close_call",)
    ),
    "responses.request_for_approval": Mending(
        all_at_once("approvals", mend_approvals),
        repairs=("drop_result",),
        left="the only item, if it is such a response",
    ),
    "responses.dangling_reasoning": Mending(
        all_at_once("reasoning", mend_reasoning), repairs=("drop_reasoning",)
    ),
    "responses.required_reasoning": Mending(left="only the server knows what it has sent"),
    "responses.host_field": Mending(
        one_by_one("private", drop_private),
        repairs=("drop_id", "drop_key", "drop_call"),
        although_unsure=True,
    ),
    "responses.sealed": Mending(
        one_by_one("private", drop_private), repairs=("drop_reasoning",), although_unsure=True
    ),
    "responses.tool_declared": Mending(left=REQUEST_IS_LEFT),
    "responses.reasoning_bound": REASONING_BOUND,
    "responses.cached_prefix": CACHED_PREFIX,
}

ROWS = rows_of(RULES, _MENDINGS)
"""Every rule, with what is done about it."""

STAGES = stages_of(_ORDER, _MENDINGS)
"""What is mended first, and so on."""

TIES = ReasoningTies
"""What goes with an item that a repair takes away."""
