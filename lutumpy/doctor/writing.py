"""For who writes the repairs of an API: the editor, the table, and what all repairs share.

The module of repairs that a row of `lutumpy.apis` names may define `STAGES`, `ROWS`, `SPELLING` and
`TIES`. What it needs for them has its one public home here.
"""

from __future__ import annotations

from lutumpy.core.tool_names import UNNAMED
from lutumpy.doctor.block_ids import Ids, mend_ids_of, mend_repeats_of
from lutumpy.doctor.block_order import mend_calls_last_of, mend_order_of, mend_reasoning_first_of
from lutumpy.doctor.block_pairing import Pairing, mend_pairing_of, mend_speakers_of
from lutumpy.doctor.block_turns import Conversation, expect_block
from lutumpy.doctor.catalogue import (
    Mending,
    Row,
    all_at_once,
    for_any_certainty,
    one_by_one,
    rows_of,
    stages_of,
)
from lutumpy.doctor.conversion import conversion_to
from lutumpy.doctor.editor import Editor, Path, Ties, copied
from lutumpy.doctor.entries import (
    FindRole,
    has_role,
    mend_entry,
    mend_role_as_shown,
    mend_role_name,
)
from lutumpy.doctor.mending import (
    Mender,
    Stage,
    drop_entry,
    drop_left_over,
    expect_entry,
    mend_each,
    nearest,
    replace_characters,
    separate_open_calls,
    write_nested,
)
from lutumpy.doctor.mixed_reader import reader_for
from lutumpy.doctor.pieces import Call, Media, Piece, Reasoning, Result, Text, type_of
from lutumpy.doctor.shared_rows import (
    CACHED_PREFIX,
    ENCODING,
    LIST_IS_LEFT,
    NESTING,
    REASONING_BOUND,
    REQUEST_IS_LEFT,
)
from lutumpy.doctor.spelling import FAILED, Json, ReadContent, Spelling
from lutumpy.doctor.wording import INTERRUPTED, NO_TEXT, as_object, as_text, text_arguments

__all__ = [
    "CACHED_PREFIX",
    "ENCODING",
    "FAILED",
    "INTERRUPTED",
    "LIST_IS_LEFT",
    "NESTING",
    "NO_TEXT",
    "REASONING_BOUND",
    "REQUEST_IS_LEFT",
    "UNNAMED",
    "Call",
    "Conversation",
    "Editor",
    "FindRole",
    "Ids",
    "Json",
    "Media",
    "Mender",
    "Mending",
    "Pairing",
    "Path",
    "Piece",
    "ReadContent",
    "Reasoning",
    "Result",
    "Row",
    "Spelling",
    "Stage",
    "Text",
    "Ties",
    "all_at_once",
    "as_object",
    "as_text",
    "conversion_to",
    "copied",
    "drop_entry",
    "drop_left_over",
    "expect_block",
    "expect_entry",
    "for_any_certainty",
    "has_role",
    "mend_calls_last_of",
    "mend_each",
    "mend_entry",
    "mend_ids_of",
    "mend_order_of",
    "mend_pairing_of",
    "mend_reasoning_first_of",
    "mend_repeats_of",
    "mend_role_as_shown",
    "mend_role_name",
    "mend_speakers_of",
    "nearest",
    "one_by_one",
    "reader_for",
    "replace_characters",
    "rows_of",
    "separate_open_calls",
    "stages_of",
    "text_arguments",
    "type_of",
    "write_nested",
]
