"""How large a regular expression is once its counted repetitions are written out."""

# An engine of linear time takes time by the size of the expression times the length of the text.
# `(a?){50000}` has 11 characters and the size of 50,000: minutes for a text of a page.

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["count_characters", "largest_pattern", "pattern_size"]

# One piece of an expression: a counted repetition, a class, an escape, or any other character.
_PIECES = re.compile(
    r"\{(?P<low>\d+)(?:,(?P<high>\d*))?\}|\[\^?\]?(?:\\.|[^\]\\])*\]|\\[pPxu]\{[^}]*\}|\\.|.",
    re.DOTALL,
)
_LARGEST = 10**9


def pattern_size(pattern: str) -> int:
    """About how many characters and classes it has, counted repetitions written out."""
    groups = [0]
    # What a repetition would repeat.
    last = 0
    for piece in _PIECES.finditer(pattern):
        text = piece[0]
        if text == "(":
            groups.append(0)
            last = 0
        elif text == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif piece["low"] is not None:
            # More digits than that aren't a number of a regular expression.
            times = max(int(piece["low"][:9]), int((piece["high"] or "0")[:9]), 1)
            repeated = min(last * times, _LARGEST)
            groups[-1] += repeated - last
            last = repeated
        elif text not in "*+?|^$":
            last = 1
            groups[-1] += 1
    return min(sum(groups), _LARGEST)


def largest_pattern(document: Any) -> int:
    """The size of the largest regular expression in a schema; 0 where there is none."""
    return max([pattern_size(pattern) for pattern in _list_patterns(document)], default=0)


def _list_patterns(document: Any) -> Iterator[str]:
    stack = [document]
    while stack:
        node = stack.pop()
        if isinstance(node, Mapping):
            if isinstance(node.get("pattern"), str):
                yield node["pattern"]
            named = node.get("patternProperties")
            if isinstance(named, Mapping):
                yield from named
            stack += node.values()
        elif isinstance(node, list):
            stack += node


def count_characters(value: Any) -> int:
    """How many characters the texts and whole numbers of a JSON value have, names included."""
    count = 0
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            count += len(part)
        elif isinstance(part, int):
            count += part.bit_length() // 3
        elif isinstance(part, dict):
            stack += [*part, *part.values()]
        elif isinstance(part, list):
            stack += part
    return count
