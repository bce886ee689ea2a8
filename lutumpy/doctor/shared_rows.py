"""Rows of the doctor's tables that are the same for every API."""

from __future__ import annotations

from lutumpy.doctor.catalogue import Mending, one_by_one
from lutumpy.doctor.mending import replace_characters, write_nested

__all__ = ["ENCODING", "LIST_IS_LEFT", "NESTING", "REQUEST_IS_LEFT"]

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

REQUEST_IS_LEFT = (
    "repairs don't touch the request's `tools`, and the messages don't show what should be declared"
)
"""Why nothing is done about tools."""
