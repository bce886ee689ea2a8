"""Names in the characters that a receiver takes, different for different texts.

The same texts have the same names in whichever order they come, so that a list that was sorted
otherwise changes nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

__all__ = ["choose_names", "clean_name", "clean_names", "digest_of", "with_digest"]

K = TypeVar("K", bound=Hashable)

_MOST_DIGITS = 56
"""Of the 64 digits of a digest, so that letters are left in a name of 64 characters."""


def clean_name(text: str, *, most: int = 64, others: str = "_-") -> str:
    """`text` with letters and digits of ASCII and `others` alone; what lies between becomes one
    `_`. At most `most` characters; `_` where nothing is left.

    Args:
        text: Any text.
        most: The most characters.
        others: Characters that are taken beside letters and digits; `_` is one of them.
    """
    kept = re.sub(f"[^a-zA-Z0-9{re.escape(others)}]+", "_", text)
    if kept != text:
        kept = kept.strip("_")
    return kept[:most] or "_"


def clean_names(originals: Iterable[str], *, prefix: str = "", most: int = 64) -> dict[str, str]:
    """A name for each of these texts, which are different from each other.

    A text that is a name keeps it. One that has to be changed, and one whose name another one
    would have as well, gets hexadecimal digits of its SHA-256 behind it: eight, or as many more as
    tell it from the others.

    Args:
        originals: The texts.
        prefix: Put before each; characters of a name.
        most: The most characters of a name.
    """
    candidates = {text: _spell_names(text, prefix, most) for text in originals}
    return choose_names(candidates)


def choose_names(candidates: Mapping[K, Iterable[str]]) -> dict[K, str]:
    """For each key one of its names, so that no two have the same one.

    All that would share a name go on to their next one, so that their order makes no difference.

    Args:
        candidates: The names that a key may have, the best first.

    Raises:
        ValueError: There weren't enough to tell two keys apart.
    """
    waiting = {key: iter(names) for key, names in candidates.items()}
    chosen = {key: _take_next(names) for key, names in waiting.items()}
    while True:
        holders: dict[str, list[K]] = {}
        for key, name in chosen.items():
            holders.setdefault(name, []).append(key)
        shared = [keys for keys in holders.values() if len(keys) > 1]
        if not shared:
            return chosen
        for keys in shared:
            for key in keys:
                chosen[key] = _take_next(waiting[key])


def with_digest(text: str, name: str, most: int, digits: int = 8) -> str:
    """`name`, cut if need be, with digits of the digest of `text` behind it."""
    digest = digest_of(text, digits)
    return f"{name[: most - digits - 1].rstrip('_') or '_'}_{digest}"[:most]


def digest_of(text: str, digits: int) -> str:
    """The first hexadecimal digits of the SHA-256 of `text`."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def _spell_names(text: str, prefix: str, most: int) -> Iterator[str]:
    cleaned = clean_name(text, most=10_000)
    name = prefix + cleaned
    if cleaned == text and len(name) <= most:
        yield name
    for digits in range(8, _MOST_DIGITS + 1, 8):
        yield with_digest(text, name, most, digits)


def _take_next(names: Iterator[str]) -> str:
    name = next(names, None)
    if name is None:
        raise ValueError("two texts can't be told apart by their names")
    return name
