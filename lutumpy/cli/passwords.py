"""Passwords in the address of a database or a server: they are in no message."""

from __future__ import annotations

import re
from urllib.parse import unquote

__all__ = ["hide_passwords"]

# An address that is misspelled has its password all the same: one with an `@`, a blank or a slash
# in it, or one whose host was forgotten, so that it stands in the place of the port.
_SECRETS = [
    re.compile(r"://[^:/?#@\[]*:(?P<secret>.+)@", re.DOTALL),
    re.compile(r"://[^:/?#@\[]*:(?P<secret>(?!\d+(?:[/?#,]|$))[^/?#@]+)(?![^/?#]*@)"),
    re.compile(
        r"(?<![^?&\s])[\w-]*(?:passw|pwd|secret|token|key)[\w-]*\s*=\s*"
        r"(?P<secret>'(?:[^'\\]|\\.)*'|[^&\s'][^&\s]*)",
        re.IGNORECASE,
    ),
]
_LEAST = 4  # characters of what is hidden wherever it stands: a shorter one is part of many words


def hide_passwords(text: str, place: str) -> str:
    """The text of a message without the passwords of an address.

    Args:
        text: The message, which may quote the address or a part of it.
        place: The address: a URL, libpq's `password=...`, or anything else.
    """
    secrets = {found["secret"] for each in _SECRETS for found in each.finditer(place)}
    hidden = place
    for secret in sorted(secrets, key=len, reverse=True):
        hidden = hidden.replace(secret, "***")
    text = text.replace(place, hidden)
    # A library may quote what it took for a part of the address.
    pieces = {piece for each in secrets for piece in (each, *re.split("[@/?#' ]", each))}
    for spelling in sorted({*pieces, *map(unquote, pieces)}, key=len, reverse=True):
        if len(spelling) >= _LEAST:
            text = text.replace(spelling, "***")
    return text
