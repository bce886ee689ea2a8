"""What mends a history of Messages: the doctor's table of its rules.

What the rules require, and how sure a refusal is, is in `rules/anthropic/catalogue.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from lutumpy.doctor.anthropic.blocks import (
    drop_private,
    drop_provider_block,
    drop_thinking_block,
    drop_unknown_keys,
    fill_empty_error,
    mend_block,
    mend_input,
    mend_is_error,
    mend_name,
    mend_result_content,
    mend_text,
    move_out_of_error,
    set_toolset_name,
)
from lutumpy.doctor.anthropic.cache_marks import mend_cache_marks
from lutumpy.doctor.anthropic.calls import CALLS
from lutumpy.doctor.anthropic.media import mend_media_type, mend_source
from lutumpy.doctor.anthropic.messages import (
    cut_white_space,
    drop_blank_message,
    drop_empty_user,
    drop_last_thinking,
    drop_thinking,
    mend_content,
    mend_message,
    mend_role,
    move_system,
    write_system_as_user,
)
from lutumpy.doctor.anthropic.shown import move_shown
from lutumpy.doctor.anthropic.spelling import SPELLING
from lutumpy.doctor.catalogue import (
    Mending,
    all_at_once,
    for_any_certainty,
    one_by_one,
    rows_of,
    stages_of,
)
from lutumpy.doctor.conversion import conversion_to
from lutumpy.doctor.mending import replace_characters
from lutumpy.doctor.shared_rows import (
    CACHED_PREFIX,
    CHANGE_IS_LEFT,
    CUTTING_IS_LEFT,
    FILES_ARE_LEFT,
    LIST_IS_LEFT,
    NESTING,
    ONLY_MESSAGE_IS_LEFT,
    REASONING_BOUND,
    REQUEST_IS_LEFT,
)
from lutumpy.rules.anthropic.catalogue import RULES

__all__ = ["ROWS", "SPELLING", "STAGES"]

# The order of the stages:
#
#   nesting, encoding        first, so that everything after them sees JSON that can be compared
#   conversion               before shapes are mended: what is odd here may be right in another API
#   private                  what only another host can read is gone before it is looked at
#   entries .. errors        each message and block by itself, from the outside in
#   call ids, repeated ids   before pairing, which goes by ids
#   system roles, positions  system messages divide turns, so they come right before turns are read
#   media                    blocks that are to be moved next are whole then
#   shown, speakers          blocks in the wrong role make other turns, so they come before pairing
#   pairing, provider tools  results to their calls; what the provider's own tools left open
#   calls last .. thinking   the order inside a turn, when its calls and results are settled; and
#   disabled                 reasoning that has lost what it led to by all this
#   empty messages           what the stages before have emptied
#   cache marks, endings     the marks that are left are counted, the message that is last is known
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
    "call fields",
    "empty texts",
    "errors",
    "call ids",
    "repeated ids",
    "system roles",
    "system positions",
    "media",
    "shown",
    "speakers",
    "pairing",
    "provider tools",
    "calls last",
    "reasoning first",
    "thinking last",
    "thinking disabled",
    "empty messages",
    "cache marks",
    "endings",
    "reused ids",
    "order",
    "bound reasoning",
)
# Whichever rule a message of another API breaks first, no host of this one can read it.
_CONVERT = for_any_certainty("conversion", conversion_to(SPELLING))
_MENDINGS: Mapping[str, Mending] = {
    "anthropic.nesting": NESTING,
    # A refusal is always sure here.
    "anthropic.encoding": Mending(
        one_by_one("encoding", replace_characters), repairs=("replace_characters",)
    ),
    "anthropic.messages": Mending(
        _CONVERT,
        one_by_one("entries", mend_message),
        repairs=("drop_key", "drop_empty", "move_message", "convert_message", "drop_reasoning"),
        left=LIST_IS_LEFT,
    ),
    "anthropic.role": Mending(
        _CONVERT,
        one_by_one("entries", mend_role),
        repairs=("set_role", "convert_message", "drop_reasoning"),
        left="a message whose role neither its name nor its blocks show",
    ),
    "anthropic.system_for_model": Mending(
        one_by_one("system roles", write_system_as_user), repairs=("set_role",)
    ),
    "anthropic.content": Mending(
        _CONVERT,
        one_by_one("contents", mend_content),
        repairs=("drop_empty", "set_content", "convert_message", "drop_reasoning"),
        left=ONLY_MESSAGE_IS_LEFT,
    ),
    "anthropic.block": Mending(
        _CONVERT,
        one_by_one("blocks", mend_block),
        repairs=("drop_empty", "set_content", "convert_message", "drop_reasoning"),
        left="blocks of an unknown type, or that name nothing: "
        "the program has to express them in another way",
    ),
    "anthropic.block_keys": Mending(
        one_by_one("block fields", drop_unknown_keys), repairs=("drop_key",)
    ),
    "anthropic.text": Mending(
        one_by_one("block fields", mend_text), repairs=("drop_empty", "set_content")
    ),
    "anthropic.blank_text": Mending(
        one_by_one("contents", drop_blank_message),
        repairs=("drop_empty",),
        left=ONLY_MESSAGE_IS_LEFT,
    ),
    "anthropic.empty_text": Mending(one_by_one("empty texts", mend_text), repairs=("drop_empty",)),
    "anthropic.tool_use_id": CALLS.refused_id,
    "anthropic.tool_use_name": Mending(
        one_by_one("call fields", mend_name), repairs=("rename_tool",)
    ),
    "anthropic.media_source": Mending(
        one_by_one("block fields", mend_source),
        repairs=("set_content", "drop_key"),
        left="nobody knows what is to be shown",
    ),
    "anthropic.image_type": Mending(
        one_by_one("media", mend_media_type),
        repairs=("set_field",),
        left=FILES_ARE_LEFT,
    ),
    "anthropic.image_size": Mending(left="the program has to make the image smaller"),
    "anthropic.image_pixels": Mending(left="the program has to make the image smaller"),
    "anthropic.document_type": Mending(
        one_by_one("media", mend_media_type),
        repairs=("set_field", "set_content"),
        left=FILES_ARE_LEFT,
    ),
    "anthropic.document_size": Mending(left=CUTTING_IS_LEFT),
    "anthropic.tool_use_input": Mending(
        one_by_one("call fields", mend_input), repairs=("wrap_arguments",)
    ),
    "anthropic.server_id": Mending(CALLS.ids, repairs=("replace_id",)),
    "anthropic.thinking_block": Mending(
        one_by_one("block fields", drop_thinking_block), repairs=("drop_reasoning",)
    ),
    "anthropic.is_error": Mending(one_by_one("call fields", mend_is_error), repairs=("set_field",)),
    "anthropic.result_content": Mending(
        one_by_one("call fields", mend_result_content), repairs=("set_content",)
    ),
    "anthropic.empty_error": Mending(
        one_by_one("errors", fill_empty_error), repairs=("set_content",)
    ),
    "anthropic.error_content": Mending(
        one_by_one("errors", move_out_of_error),
        repairs=("move_content",),
        left="blocks of an unknown type in the result: "
        "the program has to express them in another way",
    ),
    "anthropic.system": Mending(left="repairs change only the messages"),
    "anthropic.cache_control": Mending(
        all_at_once("cache marks", mend_cache_marks),
        repairs=("drop_key",),
        left="marks in `system` and `tools`: repairs change only the messages",
    ),
    "anthropic.system_first": Mending(
        one_by_one("system roles", write_system_as_user), repairs=("set_role",), left=CHANGE_IS_LEFT
    ),
    "anthropic.system_position": Mending(
        all_at_once("system positions", move_system), repairs=("move_message",)
    ),
    "anthropic.clear_at": Mending(left=CHANGE_IS_LEFT),
    "anthropic.message_effort": Mending(left=CHANGE_IS_LEFT),
    "anthropic.tool_change": Mending(left=CHANGE_IS_LEFT),
    "anthropic.tool_change_position": Mending(left=CHANGE_IS_LEFT),
    "anthropic.tool_change_paused": Mending(left=CHANGE_IS_LEFT),
    "anthropic.tool_reference_unresolved": Mending(left=REQUEST_IS_LEFT),
    "anthropic.tool_name_conflict": Mending(left=REQUEST_IS_LEFT),
    "anthropic.withdrawn_tool": Mending(left=CHANGE_IS_LEFT),
    "anthropic.block_role": Mending(
        all_at_once("shown", move_shown),
        CALLS.speakers,
        CALLS.pairing,
        repairs=(
            "move_content",
            "set_role",
            "move_call",
            "move_result",
            "drop_result",
            "drop_reasoning",
        ),
        left=CHANGE_IS_LEFT,
    ),
    "anthropic.empty_user": Mending(
        one_by_one("empty messages", drop_empty_user),
        repairs=("drop_empty",),
        left=ONLY_MESSAGE_IS_LEFT,
    ),
    "anthropic.unique_ids": CALLS.shared_id,
    "anthropic.reused_id": CALLS.reused_id,
    "anthropic.results_after_uses": CALLS.open_call,
    "anthropic.results_first": Mending(CALLS.pairing, repairs=("move_result", "close_call")),
    "anthropic.use_for_result": CALLS.loose_result,
    "anthropic.single_result": CALLS.second_result,
    "anthropic.result_order": CALLS.result_order,
    "anthropic.uses_last": Mending(
        CALLS.calls_last,
        repairs=("move_content",),
        left="signed reasoning and calls of the provider's own tools, which keep their places",
    ),
    "anthropic.toolset_name": Mending(
        one_by_one("endings", set_toolset_name), repairs=("set_field",), although_unsure=True
    ),
    "anthropic.use_for_server_result": Mending(
        one_by_one("provider tools", drop_provider_block), repairs=("drop_result",)
    ),
    "anthropic.mixed_turn_results_only": Mending(
        one_by_one("provider tools", drop_provider_block), repairs=("drop_call",)
    ),
    "anthropic.server_result_missing": Mending(
        one_by_one("provider tools", drop_provider_block), repairs=("drop_call",)
    ),
    "anthropic.server_tool_declared": Mending(left=REQUEST_IS_LEFT),
    "anthropic.thinking_first": Mending(
        CALLS.reasoning_first,
        repairs=("move_content",),
        left="lost reasoning can't be made up, because it is signed: "
        "send the request without a budget",
    ),
    "anthropic.thinking_last": Mending(
        all_at_once("thinking last", drop_last_thinking), repairs=("drop_reasoning",)
    ),
    "anthropic.thinking_disabled": Mending(
        one_by_one("thinking disabled", drop_thinking), repairs=("drop_reasoning",)
    ),
    "anthropic.thinking_modified": Mending(left="only the server knows what it has sent"),
    "anthropic.prefill": Mending(left="the program knows what the user says next"),
    "anthropic.prefill_whitespace": Mending(
        one_by_one("endings", cut_white_space), repairs=("set_content",), although_unsure=True
    ),
    "anthropic.host_field": Mending(
        one_by_one("private", drop_private),
        repairs=("drop_call", "drop_result", "drop_key"),
        although_unsure=True,
    ),
    "anthropic.sealed": Mending(
        one_by_one("private", drop_private), repairs=("drop_reasoning",), although_unsure=True
    ),
    "anthropic.tool_declared": Mending(left=REQUEST_IS_LEFT),
    "anthropic.tool_reference": Mending(left=REQUEST_IS_LEFT),
    "anthropic.reasoning_bound": REASONING_BOUND,
    "anthropic.cached_prefix": CACHED_PREFIX,
}

ROWS = rows_of(RULES, _MENDINGS)
"""Every rule, with what is done about it."""

STAGES = stages_of(_ORDER, _MENDINGS)
"""What is mended first, and so on."""
