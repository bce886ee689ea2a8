"""What mends a history of Chat Completions: the doctor's table of its rules.

What the rules require, and how sure a refusal is, is in `rules/openai/chat/catalogue.py`.
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
from lutumpy.doctor.openai.chat.calls import mend_call, mend_names, split_calls
from lutumpy.doctor.openai.chat.host_fields import (
    add_host_reasoning,
    drop_sealed,
    mend_host_field,
)
from lutumpy.doctor.openai.chat.ids import (
    mend_ids,
    mend_repeats,
    mend_result_ids,
    mend_reused,
)
from lutumpy.doctor.openai.chat.messages import (
    mend_list_entry,
    mend_message_content,
    mend_part,
    mend_role,
    mend_speaker,
    set_user_role,
)
from lutumpy.doctor.openai.chat.pairing import mend_pairing
from lutumpy.doctor.openai.chat.spelling import SPELLING
from lutumpy.doctor.openai.media import mend_chat_media, mend_chat_source
from lutumpy.doctor.shared_rows import (
    CACHED_PREFIX,
    CUTTING_IS_LEFT,
    ENCODING,
    FILES_ARE_LEFT,
    LIST_IS_LEFT,
    NESTING,
    ONLY_MESSAGE_IS_LEFT,
    REQUEST_IS_LEFT,
)
from lutumpy.rules.openai.chat.catalogue import RULES

__all__ = ["ROWS", "SPELLING", "STAGES"]

# The order of the stages:
#
#   nesting, encoding        first, so that everything after them sees JSON that can be compared
#   conversion               before shapes are mended: what is odd here may be right in another API
#   host fields              before contents: a message may have nothing else
#   entries .. media         each message by itself, from the outside in; a role tells which parts
#                            a message may have, so roles come before contents
#   host reasoning           when fields that hold it have got their right name
#   call ids, result ids,    before pairing, which goes by ids
#   repeated ids
#   pairing                  results to their calls
#   order                    what works and is unwise, when everything else is whole
_ORDER = (
    "nesting",
    "encoding",
    "conversion",
    "entries",
    "roles",
    "call lists",
    "calls",
    "arguments",
    "tool names",
    "host fields",
    "contents",
    "media",
    "host reasoning",
    "call ids",
    "result ids",
    "repeated ids",
    "pairing",
    "order",
)
# Whichever rule a message of another API breaks first, no host of this one can read it.
_CONVERT = for_any_certainty("conversion", conversion_to(SPELLING))

_MENDINGS: Mapping[str, Mending] = {
    "chat.nesting": NESTING,
    "chat.encoding": ENCODING,
    "chat.messages": Mending(
        one_by_one("entries", mend_list_entry),
        repairs=("drop_empty", "move_message"),
        left=LIST_IS_LEFT,
    ),
    "chat.role": Mending(
        _CONVERT,
        one_by_one("roles", mend_role),
        repairs=("set_role", "convert_message", "drop_reasoning"),
        left="a message whose role neither its name nor its content shows",
    ),
    "chat.role_for_model": Mending(one_by_one("arguments", set_user_role), repairs=("set_role",)),
    "chat.name": Mending(one_by_one("roles", mend_speaker), repairs=("set_field", "drop_key")),
    "chat.content": Mending(
        _CONVERT,
        one_by_one("contents", mend_message_content),
        repairs=("drop_empty", "set_content", "convert_message", "drop_reasoning"),
        left=ONLY_MESSAGE_IS_LEFT,
    ),
    "chat.parts": Mending(
        _CONVERT,
        one_by_one("contents", mend_part),
        repairs=("drop_empty", "set_content", "move_content", "convert_message", "drop_reasoning"),
        left="parts of an unknown type, or without their content: "
        "the program has to express them in another way",
    ),
    "chat.audio_for_model": Mending(
        left="the program has to choose another model, or transcribe the audio"
    ),
    "chat.audio_format": Mending(left="the program has to convert the audio"),
    "chat.media_source": Mending(
        one_by_one("contents", mend_chat_source),
        repairs=("set_content", "drop_empty"),
        left="nobody knows what is to be shown",
    ),
    "chat.image_type": Mending(
        one_by_one("media", mend_chat_media),
        repairs=("set_content",),
        left=FILES_ARE_LEFT,
    ),
    "chat.file_data": Mending(
        one_by_one("media", mend_chat_media),
        repairs=("set_content",),
        left="files that have to be converted or transcribed first",
    ),
    "chat.part_length": Mending(left=CUTTING_IS_LEFT),
    "chat.tool_calls": Mending(
        _CONVERT,
        one_by_one("call lists", split_calls),
        one_by_one("calls", mend_call),
        repairs=("drop_call", "drop_key", "set_field", "move_call", "convert_message"),
    ),
    "chat.call_id": Mending(
        all_at_once("call ids", mend_ids), repairs=("replace_id",), although_unsure=True
    ),
    "chat.call_name": Mending(all_at_once("tool names", mend_names), repairs=("rename_tool",)),
    "chat.arguments": Mending(one_by_one("arguments", write_as_text), repairs=("wrap_arguments",)),
    "chat.arguments_json": Mending(
        one_by_one("arguments", wrap_unreadable), repairs=("wrap_arguments",), although_unsure=True
    ),
    "chat.arguments_length": Mending(
        one_by_one("arguments", cut_long_arguments), repairs=("wrap_arguments",)
    ),
    "chat.tool_call_id": Mending(
        _CONVERT,
        all_at_once("result ids", mend_result_ids),
        repairs=("match_result", "drop_result", "convert_message"),
    ),
    "chat.results_after_calls": Mending(
        all_at_once("pairing", mend_pairing),
        repairs=("close_call", "move_result", "drop_duplicate"),
    ),
    "chat.result_without_calls": Mending(
        all_at_once("pairing", mend_pairing), repairs=("move_result", "drop_result")
    ),
    "chat.unknown_call_id": Mending(
        all_at_once("pairing", mend_pairing), repairs=("move_result", "drop_result")
    ),
    "chat.duplicate_result": Mending(
        all_at_once("pairing", mend_pairing), repairs=("drop_result",)
    ),
    "chat.duplicate_call_id": Mending(
        all_at_once("repeated ids", mend_repeats), repairs=("rename_id",), although_unsure=True
    ),
    "chat.reused_call_id": Mending(all_at_once("order", mend_reused), repairs=("rename_id",)),
    "chat.result_order": Mending(all_at_once("order", mend_reused), repairs=("move_result",)),
    "chat.host_field": Mending(
        one_by_one("host fields", mend_host_field),
        repairs=("move_content", "drop_reasoning", "drop_key", "drop_empty"),
        although_unsure=True,
    ),
    "chat.host_reasoning": Mending(
        one_by_one("host reasoning", add_host_reasoning),
        repairs=("set_field",),
        although_unsure=True,
    ),
    "chat.sealed": Mending(
        one_by_one("host fields", drop_sealed),
        repairs=("drop_reasoning",),
        although_unsure=True,
    ),
    "chat.tool_declared": Mending(left=REQUEST_IS_LEFT),
    "chat.cached_prefix": CACHED_PREFIX,
}

ROWS = rows_of(RULES, _MENDINGS)
"""Every rule, with what is done about it."""

STAGES = stages_of(_ORDER, _MENDINGS)
"""What is mended first, and so on."""
