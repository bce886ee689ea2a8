"""Which call ids a host of Chat Completions takes, by the name of the host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from lutumpy.rules.openai.chat.limits import MAX_CALL_ID

__all__ = ["ANY_ID", "CALL_ID_RULES", "CallIdRule", "CallIds", "host_rule"]

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
"""The rule of each host that looks at ids."""

# The addresses that the hosts document. An unknown host gets no rule rather than OpenAI's: some
# compatible hosts keep state in ids of their own, which are long and must go back unchanged.
_HOSTS: tuple[tuple[re.Pattern[str], CallIds], ...] = (
    (re.compile(r"(?:.+\.)?mistral\.ai"), "mistral"),
    (re.compile(r"(?:.+\.)?api\.openai\.com"), "openai"),
    (re.compile(r".+\.openai\.azure\.(?:com|us|cn)"), "openai"),
)


def host_rule(host: str | None) -> CallIds | None:
    """The name of the rule that holds at a host, given its name on the network; `None` when the
    host isn't known."""
    name = (host or "").rstrip(".").lower()
    for pattern, rule in _HOSTS:
        if pattern.fullmatch(name) is not None:
            return rule
    return None
