"""Which call ids a host of Chat Completions takes, by the name of the rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from lutumpy.rules.openai.chat.limits import MAX_CALL_ID

__all__ = ["ANY_ID", "CALL_ID_RULES", "CallIdRule", "CallIds"]

ANY_ID = re.compile(r".+", re.DOTALL)
"""An id of any characters, but not an empty one: OpenAI limits the length only."""


class CallIdRule(NamedTuple):
    """What a host asks of the ids of calls.

    Attributes:
        pattern: What the whole id matches.
        limit: The most characters that it may have.
        prefix: How an id begins that is made to replace one that doesn't fit.
    """

    pattern: re.Pattern[str]
    limit: int
    prefix: str


CallIds = Literal["openai", "mistral"]
"""The names of the rules: OpenAI's own (a number of characters), Mistral's (nine letters and
digits)."""

CALL_ID_RULES: Mapping[CallIds, CallIdRule] = {
    "openai": CallIdRule(ANY_ID, MAX_CALL_ID, "call_"),
    # "Tool call id was ... but must be a-z, A-Z, 0-9, with a length of 9" (code 3280) [reported by
    # many]. A prefix would use up characters of the nine, so made ids have none.
    "mistral": CallIdRule(re.compile(r"[a-zA-Z0-9]{9}"), 9, ""),
}
"""The rules of the hosts that look at ids.

An unknown host gets no rule rather than OpenAI's: some compatible hosts keep state in ids of their
own, which are long and must go back unchanged.
"""
