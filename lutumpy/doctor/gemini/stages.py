"""What mends a history of generateContent: the doctor's table of its rules.

What the rules require, and how sure a refusal is, is in `rules/gemini/catalogue.py`.
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
from lutumpy.doctor.gemini.calls import (
    drop_second_signature,
    mend_args,
    mend_id,
    mend_media,
    mend_media_type,
    mend_names,
    mend_response,
    mend_result_ids,
    mend_result_names,
    mend_result_parts,
    mend_signature,
)
from lutumpy.doctor.gemini.contents import (
    drop_sealed,
    drop_unknown_key,
    mend_content,
    mend_empty_parts,
    mend_part,
    mend_parts,
    mend_role,
    mend_signature_bytes,
    mend_text,
)
from lutumpy.doctor.gemini.order import mend_order, mend_repeated_ids, move_beside_results
from lutumpy.doctor.gemini.pairing import mend_pairing, mend_sides, mend_start
from lutumpy.doctor.gemini.spelling import SPELLING
from lutumpy.doctor.shared_rows import (
    CACHED_PREFIX,
    ENCODING,
    FILES_ARE_LEFT,
    NESTING,
)
from lutumpy.rules.gemini.catalogue import RULES

__all__ = ["ROWS", "SPELLING", "STAGES"]

# The order of the stages:
#
#   nesting, encoding        first, so that everything after them sees JSON that can be compared
#   conversion               before shapes are mended: what is odd here may be right in another API
#   private                  what only another host can read is gone before it is looked at
#   entries .. parts         each content and part by itself, from the outside in
#   fields                   what calls, results and files hold
#   names                    after ids are texts, by which a result finds its call
#   speakers                 parts in the wrong role make other turns, so they come before pairing
#   pairing, start           results to their calls; then who speaks first is known
#   empty contents           what the stages before have emptied
#   ids, result ids, names   what tells the results of a turn apart, when there are as many as calls
#   signatures               the first call of each content is settled
#   order, alone             what works and is unwise, when everything else is whole
_ORDER = (
    "nesting",
    "encoding",
    "conversion",
    "private",
    "entries",
    "parts lists",
    "keys",
    "parts",
    "fields",
    "names",
    "speakers",
    "pairing",
    "empty contents",
    "start",
    "ids",
    "result ids",
    "result names",
    "signatures",
    "order",
    "alone",
)
# Whichever rule a message of another API breaks first, no host of this one can read it.
_CONVERT = for_any_certainty("conversion", conversion_to(SPELLING))
_PAIR = all_at_once("pairing", mend_pairing)

_MENDINGS: Mapping[str, Mending] = {
    "gemini.nesting": NESTING,
    "gemini.encoding": ENCODING,
    "gemini.contents": Mending(
        one_by_one("entries", mend_content),
        repairs=("drop_empty", "move_message"),
        left="a text or a number among the contents doesn't show who said it; "
        "an empty list can't be filled",
    ),
    "gemini.role": Mending(
        _CONVERT,
        one_by_one("entries", mend_role),
        repairs=("set_role", "convert_message", "drop_reasoning"),
        left="a content whose role neither its name nor its parts show",
    ),
    "gemini.unknown_key": Mending(
        _CONVERT,
        one_by_one("keys", drop_unknown_key),
        repairs=("drop_key", "wrap_arguments", "set_content", "convert_message", "drop_reasoning"),
    ),
    "gemini.parts": Mending(one_by_one("parts lists", mend_parts), repairs=("set_content",)),
    "gemini.empty_parts": Mending(
        _CONVERT,
        one_by_one("empty contents", mend_empty_parts),
        repairs=("drop_empty", "convert_message", "drop_reasoning"),
        left="the only content, if it is empty",
    ),
    "gemini.part": Mending(
        one_by_one("parts", mend_part),
        repairs=("drop_empty", "set_content", "move_content", "drop_key"),
    ),
    "gemini.text": Mending(one_by_one("fields", mend_text), repairs=("set_content",)),
    "gemini.id": Mending(one_by_one("fields", mend_id), repairs=("replace_id", "drop_id")),
    "gemini.name": Mending(all_at_once("names", mend_names), repairs=("rename_tool",)),
    "gemini.args": Mending(one_by_one("fields", mend_args), repairs=("wrap_arguments",)),
    "gemini.response": Mending(
        one_by_one("fields", mend_response), repairs=("set_content",), although_unsure=True
    ),
    "gemini.result_parts": Mending(
        one_by_one("fields", mend_result_parts), repairs=("set_content", "drop_key")
    ),
    "gemini.media": Mending(
        one_by_one("fields", mend_media),
        repairs=("set_content",),
        left="bytes that are no base64 and files without an address: nobody knows what they show",
    ),
    "gemini.media_type": Mending(
        one_by_one("fields", mend_media_type),
        repairs=("set_field",),
        left=FILES_ARE_LEFT,
    ),
    "gemini.file_address": Mending(left="what stands behind an address isn't known here"),
    "gemini.signature_bytes": Mending(
        one_by_one("fields", mend_signature_bytes), repairs=("set_field", "drop_key")
    ),
    "gemini.system": Mending(left="repairs change only the contents"),
    "gemini.part_role": Mending(
        all_at_once("speakers", mend_sides), repairs=("set_role", "move_call", "move_result")
    ),
    "gemini.user_first": Mending(one_by_one("start", mend_start), repairs=("set_content",)),
    "gemini.results_count": Mending(_PAIR, repairs=("close_call", "move_result", "drop_result")),
    "gemini.results_first": Mending(_PAIR, repairs=("move_result", "drop_result", "close_call")),
    "gemini.results_alone": Mending(
        one_by_one("alone", move_beside_results), repairs=("move_content",)
    ),
    "gemini.unique_ids": Mending(
        all_at_once("ids", mend_repeated_ids), repairs=("rename_id",), although_unsure=True
    ),
    "gemini.result_id": Mending(
        all_at_once("result ids", mend_result_ids),
        repairs=("match_result",),
        although_unsure=True,
    ),
    "gemini.result_name": Mending(
        all_at_once("result names", mend_result_names),
        repairs=("set_field",),
        although_unsure=True,
    ),
    "gemini.result_order": Mending(all_at_once("order", mend_order), repairs=("move_result",)),
    "gemini.call_for_result": Mending(_PAIR, repairs=("move_result", "drop_result")),
    "gemini.signature": Mending(one_by_one("signatures", mend_signature), repairs=("set_field",)),
    "gemini.second_signature": Mending(
        one_by_one("signatures", drop_second_signature), repairs=("drop_key",)
    ),
    "gemini.signature_modified": Mending(left="only the server knows what it has sent"),
    "gemini.sealed": Mending(
        one_by_one("private", drop_sealed), repairs=("drop_reasoning",), although_unsure=True
    ),
    "gemini.tool_declared": Mending(
        left="repairs don't touch the request's `tools`, and the contents don't show what should "
        "be declared"
    ),
    "gemini.cached_prefix": CACHED_PREFIX,
}

ROWS = rows_of(RULES, _MENDINGS)
"""Every rule, with what is done about it."""

STAGES = stages_of(_ORDER, _MENDINGS)
"""What is mended first, and so on."""
