"""What mends a history of Ollama's API: the doctor's table of its rules.

What the rules require, and how sure a refusal is, is in `rules/ollama/catalogue.py`.
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
from lutumpy.doctor.ollama.calls import mend_arguments, mend_call, mend_id, mend_name
from lutumpy.doctor.ollama.messages import (
    mend_content,
    mend_images,
    mend_list_entry,
    mend_role,
    write_as_text,
)
from lutumpy.doctor.ollama.pairing import mend_pairing
from lutumpy.doctor.ollama.spelling import SPELLING
from lutumpy.doctor.shared_rows import (
    CACHED_PREFIX,
    ENCODING,
    LIST_IS_LEFT,
    NESTING,
    REQUEST_IS_LEFT,
)
from lutumpy.rules.ollama.catalogue import RULES

__all__ = ["ROWS", "SPELLING", "STAGES"]

# The order of the stages:
#
#   nesting, encoding   first, so that everything after them sees JSON that can be compared
#   conversion          before shapes are mended: what is odd here may be right in another API
#   entries .. names    each message by itself, from the outside in
#   pairing             results to their calls, when both have their names
_ORDER = ("nesting", "encoding", "conversion", "entries", "contents", "calls", "names", "pairing")
_CONVERT = for_any_certainty("conversion", conversion_to(SPELLING))
_PAIRING = all_at_once("pairing", mend_pairing)

_MENDINGS: Mapping[str, Mending] = {
    "ollama.nesting": NESTING,
    "ollama.encoding": ENCODING,
    "ollama.messages": Mending(
        one_by_one("entries", mend_list_entry),
        repairs=("drop_empty", "move_message"),
        left=LIST_IS_LEFT,
    ),
    "ollama.role": Mending(
        _CONVERT,
        one_by_one("entries", mend_role),
        repairs=("set_role", "convert_message", "drop_reasoning"),
        left="a message whose role neither its name nor its content shows",
        although_unsure=True,
    ),
    "ollama.content": Mending(
        _CONVERT,
        one_by_one("contents", mend_content),
        repairs=("set_content", "convert_message", "drop_reasoning"),
    ),
    "ollama.images": Mending(
        one_by_one("contents", mend_images), repairs=("set_content", "drop_empty", "drop_key")
    ),
    "ollama.thinking": Mending(one_by_one("contents", write_as_text), repairs=("set_content",)),
    "ollama.tool_calls": Mending(
        _CONVERT,
        one_by_one("calls", mend_call),
        repairs=("drop_call", "drop_key", "set_field", "convert_message", "drop_reasoning"),
    ),
    "ollama.call_id": Mending(one_by_one("names", mend_id), repairs=("replace_id",)),
    "ollama.call_name": Mending(
        one_by_one("names", mend_name), repairs=("rename_tool",), although_unsure=True
    ),
    "ollama.arguments": Mending(one_by_one("calls", mend_arguments), repairs=("wrap_arguments",)),
    "ollama.result_names": Mending(one_by_one("names", mend_id), repairs=("replace_id",)),
    "ollama.results_after_calls": Mending(
        _PAIRING, repairs=("close_call", "move_result"), although_unsure=True
    ),
    "ollama.call_for_result": Mending(
        _PAIRING, repairs=("move_result", "drop_result"), although_unsure=True
    ),
    "ollama.single_result": Mending(
        _PAIRING, repairs=("move_result", "drop_result"), although_unsure=True
    ),
    "ollama.tool_declared": Mending(left=REQUEST_IS_LEFT),
    "ollama.cached_prefix": CACHED_PREFIX,
}

ROWS = rows_of(RULES, _MENDINGS)
"""Every rule, with what is done about it."""

STAGES = stages_of(_ORDER, _MENDINGS)
"""What is mended first, and so on."""
