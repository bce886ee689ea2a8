"""What mends a history of Converse: the doctor's table of its rules.

What the rules require, and how sure a refusal is, is in `rules/bedrock/catalogue.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from lutumpy.doctor.bedrock.blocks import (
    drop_cache_point,
    drop_reasoning,
    drop_sealed,
    drop_type,
    drop_unknown_keys,
    fill_empty_error,
    mend_block,
    mend_input,
    mend_names,
    mend_result_content,
    mend_result_json,
    mend_status,
    mend_text,
)
from lutumpy.doctor.bedrock.calls import CALLS
from lutumpy.doctor.bedrock.media import (
    add_text,
    mend_document_format,
    mend_document_name,
    mend_image_format,
    move_out_of_result,
)
from lutumpy.doctor.bedrock.messages import (
    drop_empty_message,
    join_neighbours,
    mend_content,
    mend_message,
    mend_role,
    write_system_as_user,
)
from lutumpy.doctor.bedrock.spelling import SPELLING
from lutumpy.doctor.catalogue import (
    Mending,
    all_at_once,
    for_any_certainty,
    one_by_one,
    rows_of,
    stages_of,
)
from lutumpy.doctor.conversion import conversion_to
from lutumpy.doctor.shared_rows import (
    CACHED_PREFIX,
    CHANGE_IS_LEFT,
    ENCODING,
    FILES_ARE_LEFT,
    LIST_IS_LEFT,
    NESTING,
    ONLY_MESSAGE_IS_LEFT,
    REASONING_BOUND,
)
from lutumpy.rules.bedrock.catalogue import RULES

__all__ = ["ROWS", "SPELLING", "STAGES"]

# The order of the stages:
#
#   nesting, encoding        first, so that everything after them sees JSON that can be compared
#   conversion               before shapes are mended: what is odd here may be right in another API
#   private                  what only another host can read is gone before it is looked at
#   entries .. errors        each message and block by itself, from the outside in
#   call ids, repeated ids   before pairing, which goes by ids
#   media                    blocks that are to be moved next are whole then
#   system roles, speakers   blocks in the wrong role make other turns, so they come before pairing
#   pairing                  results to their calls, each turn's in one message
#   neighbours               what is in a row then: a lost message between two of one role has
#                            been found by pairing, where calls or results were in it
#   calls last, reasoning    the order inside a turn, when its calls and results are settled
#   empty messages           what the stages before have emptied
#   documents                what is beside them is known
#   reused ids, order        what works and is unwise, when everything else is whole
_ORDER = (
    "nesting",
    "encoding",
    "conversion",
    "private",
    "entries",
    "contents",
    "blocks",
    "block fields",
    "call names",
    "call fields",
    "empty texts",
    "errors",
    "call ids",
    "repeated ids",
    "media",
    "system roles",
    "speakers",
    "pairing",
    "empty messages",
    "neighbours",
    "calls last",
    "reasoning first",
    "documents",
    "reused ids",
    "order",
    "bound reasoning",
)
# Whichever rule a message of another API breaks first, no host of this one can read it.
_CONVERT = for_any_certainty("conversion", conversion_to(SPELLING))
_REQUEST_IS_LEFT = (
    "repairs don't touch the request's tools, and the messages don't show what should be declared"
)
_MODEL_DECIDES = "the program has to choose another model, or to show something else"

_MENDINGS: Mapping[str, Mending] = {
    "converse.nesting": NESTING,
    "converse.encoding": ENCODING,
    "converse.messages": Mending(
        _CONVERT,
        one_by_one("entries", mend_message),
        repairs=("drop_key", "drop_empty", "move_message", "convert_message", "drop_reasoning"),
        left=LIST_IS_LEFT,
    ),
    "converse.role": Mending(
        _CONVERT,
        one_by_one("entries", mend_role),
        repairs=("set_role", "convert_message", "drop_reasoning"),
        left="a message whose role neither its name nor its blocks show",
    ),
    "converse.system_role": Mending(
        one_by_one("system roles", write_system_as_user), repairs=("set_role",)
    ),
    "converse.content": Mending(
        _CONVERT,
        one_by_one("contents", mend_content),
        repairs=("drop_empty", "set_content", "convert_message", "drop_reasoning"),
        left=ONLY_MESSAGE_IS_LEFT,
    ),
    "converse.empty_content": Mending(
        one_by_one("empty messages", drop_empty_message),
        repairs=("drop_empty",),
        left=ONLY_MESSAGE_IS_LEFT,
    ),
    "converse.block": Mending(
        _CONVERT,
        one_by_one("blocks", mend_block),
        repairs=("drop_empty", "set_content", "convert_message", "drop_reasoning"),
        left="blocks of an unknown kind, and what is wrong inside one: "
        "the program has to express them in another way",
    ),
    "converse.block_keys": Mending(
        one_by_one("block fields", drop_unknown_keys),
        repairs=("drop_key",),
        left="keys of what stands deeper in a block than calls, results, images and documents",
    ),
    "converse.text": Mending(
        one_by_one("block fields", mend_text), repairs=("drop_empty", "set_content")
    ),
    "converse.blank_text": Mending(one_by_one("empty texts", mend_text), repairs=("drop_empty",)),
    "converse.blank_result": Mending(
        one_by_one("empty texts", mend_text), repairs=("drop_empty",), although_unsure=True
    ),
    "converse.tool_use_id": CALLS.refused_id,
    "converse.tool_use_name": Mending(
        all_at_once("call names", mend_names), repairs=("rename_tool",)
    ),
    "converse.tool_use_input": Mending(
        one_by_one("call fields", mend_input), repairs=("wrap_arguments",)
    ),
    "converse.tool_use_type": Mending(one_by_one("call fields", drop_type), repairs=("drop_key",)),
    "converse.result_content": Mending(
        one_by_one("call fields", mend_result_content), repairs=("set_content",)
    ),
    "converse.result_json": Mending(
        one_by_one("call fields", mend_result_json), repairs=("set_content",)
    ),
    "converse.result_status": Mending(
        one_by_one("call fields", mend_status), repairs=("set_field",)
    ),
    "converse.empty_error": Mending(
        one_by_one("errors", fill_empty_error), repairs=("set_content",)
    ),
    "converse.image_type": Mending(
        one_by_one("media", mend_image_format),
        repairs=("set_field",),
        left=FILES_ARE_LEFT,
    ),
    "converse.image_size": Mending(left="the program has to make the image smaller"),
    "converse.document_type": Mending(
        one_by_one("media", mend_document_format),
        repairs=("set_field",),
        left=FILES_ARE_LEFT,
    ),
    "converse.document_name": Mending(
        one_by_one("media", mend_document_name), repairs=("set_field",), although_unsure=True
    ),
    "converse.document_text": Mending(one_by_one("documents", add_text), repairs=("set_content",)),
    "converse.media_source": Mending(left="what is to be shown is missing"),
    "converse.video_for_model": Mending(left=_MODEL_DECIDES),
    "converse.s3_for_model": Mending(left="the program has to read the file first"),
    "converse.result_media": Mending(
        one_by_one("media", move_out_of_result), repairs=("move_content",)
    ),
    "converse.cache_point": Mending(
        one_by_one("block fields", drop_cache_point),
        repairs=("drop_key",),
        left="cache points in `system` and in tools: repairs change only the messages",
    ),
    "converse.reasoning_block": Mending(
        one_by_one("block fields", drop_reasoning), repairs=("drop_reasoning",)
    ),
    "converse.system": Mending(left="repairs change only the messages"),
    "converse.first_user": Mending(left="the program knows what the user said first"),
    "converse.alternation": Mending(
        all_at_once("neighbours", join_neighbours),
        repairs=("move_content",),
        although_unsure=True,
    ),
    "converse.last_user": Mending(left="the program knows what the user says next"),
    "converse.block_role": Mending(
        CALLS.speakers,
        CALLS.pairing,
        repairs=(
            "set_role",
            "move_call",
            "drop_duplicate",
            "move_result",
            "drop_result",
            "drop_reasoning",
        ),
        left="what the model shows: few hosts look at it",
    ),
    "converse.unique_ids": CALLS.shared_id,
    "converse.reused_id": CALLS.reused_id,
    "converse.results_after_calls": CALLS.open_call,
    "converse.results_first": Mending(
        CALLS.pairing,
        repairs=("move_result", "close_call"),
        although_unsure=True,
    ),
    "converse.result_order": CALLS.result_order,
    "converse.call_for_result": CALLS.loose_result,
    "converse.single_result": CALLS.second_result,
    "converse.calls_last": Mending(
        CALLS.calls_last,
        repairs=("move_content",),
        left="reasoning and calls of the provider's own tools, which keep their places",
    ),
    "converse.results_alone": Mending(
        left="what the user says beside results has no other place before the answer"
    ),
    "converse.signature": Mending(
        one_by_one("block fields", drop_reasoning), repairs=("drop_reasoning",)
    ),
    "converse.reasoning_for_model": Mending(
        one_by_one("block fields", drop_reasoning), repairs=("drop_reasoning",)
    ),
    "converse.reasoning_first": Mending(
        CALLS.reasoning_first,
        repairs=("move_content",),
        left="lost reasoning can't be made up, because it is signed: "
        "send the request without a budget",
    ),
    "converse.sealed": Mending(
        one_by_one("private", drop_sealed), repairs=("drop_reasoning",), although_unsure=True
    ),
    "converse.tool_config": Mending(left=_REQUEST_IS_LEFT),
    "converse.tool_declared": Mending(left=_REQUEST_IS_LEFT),
    "converse.tool_reference": Mending(left=_REQUEST_IS_LEFT),
    "converse.tool_change_position": Mending(left=CHANGE_IS_LEFT),
    "converse.withdrawn_tool": Mending(left=CHANGE_IS_LEFT),
    "converse.reasoning_bound": REASONING_BOUND,
    "converse.cached_prefix": CACHED_PREFIX,
}

ROWS = rows_of(RULES, _MENDINGS)
"""Every rule, with what is done about it."""

STAGES = stages_of(_ORDER, _MENDINGS)
"""What is mended first, and so on."""
