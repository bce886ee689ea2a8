"""A key in whatever spelling it may come back: as it is, in JSON, and in an address."""

from __future__ import annotations

import re

__all__ = ["spell_key"]

_SHORT_ESCAPES = {"\n": r"\\+n", "\r": r"\\+r", "\t": r"\\+t", "\\": r"\\+", " ": r"\+"}


def spell_key(key: str) -> str:
    """A pattern of a key as it is, and as JSON and addresses spell it; it has no groups.

    A tool's JSON is a text in the JSON of a request, and its writers differ in what they escape
    (PHP a slash, .NET a plus). So an escape may have any number of backslashes.
    """
    # As one, several backslashes can be matched in one way only, which takes no time.
    return "".join(map(_spell_character, re.sub(r"\\+", r"\\", key)))


def _spell_character(letter: str) -> str:
    if letter.isascii() and letter.isalnum():
        return letter
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    in_json = "".join([rf"\\+u{units[at : at + 4]}" for at in range(0, len(units), 4)])
    in_address = "".join([f"%{byte:02x}" for byte in letter.encode("utf-8", "surrogatepass")])
    short = _SHORT_ESCAPES.get(letter, rf"\\+{re.escape(letter)}")
    return rf"(?:{short}|{re.escape(letter)}|(?i:{in_json}|{in_address}))"
