"""Rows of the doctor's tables that are the same for every API."""

from __future__ import annotations

from lutumpy.doctor.catalogue import Mending, one_by_one
from lutumpy.doctor.editor import Editor
from lutumpy.doctor.mending import expect_entry, replace_characters, write_nested
from lutumpy.errors import Problem

__all__ = [
    "CACHED_PREFIX",
    "CHANGE_IS_LEFT",
    "CUTTING_IS_LEFT",
    "ENCODING",
    "FILES_ARE_LEFT",
    "LIST_IS_LEFT",
    "NESTING",
    "ONLY_MESSAGE_IS_LEFT",
    "REASONING_BOUND",
    "REQUEST_IS_LEFT",
]


def _drop_bound(editor: Editor, problem: Problem) -> None:
    """Signed reasoning behind another beginning."""
    expect_entry(editor, problem.path)
    editor.take_out_reasoning(problem.path)
    reason = "The reasoning was signed over another beginning than this request's; it is left out."
    editor.done("drop_reasoning", problem, reason)


REASONING_BOUND = Mending(one_by_one("bound reasoning", _drop_bound), repairs=("drop_reasoning",))
"""For the rule on what comes before signed reasoning."""

CACHED_PREFIX = Mending(left="only the program knows whether the change is worth its tokens")
"""For the rule on how a request begins."""

NESTING = Mending(
    one_by_one("nesting", write_nested), repairs=("set_content",), although_unsure=True
)
"""For the rule on how deep a message may be nested."""

ENCODING = Mending(
    one_by_one("encoding", replace_characters),
    repairs=("replace_characters",),
    although_unsure=True,
)
"""For the rule on what JSON can hold."""

LIST_IS_LEFT = (
    "a text or a number among the messages doesn't show who said it; an empty list can't be filled"
)
"""What is left of a broken list of messages."""

FILES_ARE_LEFT = "files that have to be converted first"
"""What is left of files whose type the API doesn't take."""

ONLY_MESSAGE_IS_LEFT = "the only message, if it is empty"
"""What is left of messages without content."""

CHANGE_IS_LEFT = (
    "only the program knows what it meant to change; what is taken away here may cost the signed "
    "reasoning behind it"
)

CUTTING_IS_LEFT = "only the program knows what may be cut"
"""Why nothing is done about what is too long."""

REQUEST_IS_LEFT = (
    "repairs don't touch the request's `tools`, and the messages don't show what should be declared"
)
"""Why nothing is done about tools."""
