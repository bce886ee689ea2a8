"""Which call ids a host of Chat Completions takes, by the name of the host. Every number stands here once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

__all__ = ["CALL_ID_RULES", "CHAT_MAX", "RESPONSES_MAX", "CallIdRule", "CallIds", "host_rule"]

CHAT_MAX = 40
"""Characters of a call id at OpenAI itself [its error text: "Expected a string with maximum length 40"]."""
RESPONSES_MAX = 64
"""Characters of a call id on Responses [API description]."""


class CallIdRule(NamedTuple):
    """What a host asks of the ids of calls.

    Attributes:
        pattern: What an id is, as a whole.
        limit: Its most characters.
        prefix: How ids begin that are made in place of others.
    """

    pattern: re.Pattern[str]
    limit: int
    prefix: str


CallIds = Literal["openai", "mistral"]
"""Whose rule about call ids holds at a host: OpenAI's own (40 characters), Mistral's (nine letters and digits)."""

CALL_ID_RULES: Mapping[CallIds, CallIdRule] = {
    "openai": CallIdRule(re.compile(r".+", re.DOTALL), CHAT_MAX, "call_"),
    # "Tool call id was ... but must be a-z, A-Z, 0-9, with a length of 9" (code 3280) [reported by many]
    "mistral": CallIdRule(re.compile(r"[a-zA-Z0-9]{9}"), 9, ""),
}
"""The hosts that look at ids, with what they ask."""

_HOSTS: tuple[tuple[re.Pattern[str], CallIds], ...] = (
    (re.compile(r"(?:.+\.)?mistral\.ai"), "mistral"),
    (re.compile(r"(?:.+\.)?api\.openai\.com"), "openai"),
    (re.compile(r".+\.openai\.azure\.(?:com|us|cn)"), "openai"),
)


def host_rule(host: str | None) -> CallIds | None:
    """Whose rule holds at a host, by its name on the network; `None` where nothing is known."""
    name = (host or "").rstrip(".").lower()
    return next((rule for pattern, rule in _HOSTS if pattern.fullmatch(name) is not None), None)
