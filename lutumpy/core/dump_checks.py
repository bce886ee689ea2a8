"""What the values of a dump are checked by, and what they raise.

Everything that is loaded is checked: a dump may be damaged, cut off or edited by hand, and a
transcript must be sendable afterwards (rule K5). What is wrong raises `TranscriptError`, or one of
`WRONG` where a value simply has another shape; the caller says where in the dump that was.
"""

from __future__ import annotations

from typing import Any

from lutumpy.errors import TranscriptError

__all__ = ["LARGEST", "WRONG", "expect", "expect_one_of"]

WRONG = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What reading a value of another shape raises."""

LARGEST = 2**63 - 1
"""Nothing is counted as far; what is larger isn't a count, and not every computation takes it."""


def expect(value: Any, kind: type[Any], name: str) -> Any:
    """The value, if it is of this type; `name` says in the error which value is meant."""
    # To Python `True` is an integer, to JSON it isn't.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TranscriptError(f"{name} is {type(value).__name__}, not {kind.__name__}")
    if kind is int and not -LARGEST <= value <= LARGEST:
        raise TranscriptError(f"{name} is too large")
    return value


def expect_one_of(value: Any, allowed: tuple[str, ...], name: str) -> Any:
    """The value, if it is one of these texts."""
    if not isinstance(value, str) or value not in allowed:
        raise TranscriptError(f"{name} is {value!r}, not one of {allowed}")
    return value
