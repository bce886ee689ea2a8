"""A copy of what a user gives as JSON, which keeps nothing of the user's own objects."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lutumpy.plain import json_values
from lutumpy.plain.pointer import pointer

__all__ = ["json_copy"]


def json_copy(value: Any) -> Any:
    """`value` as fresh JSON containers, tuples as lists.

    The encoder of this library replaces what JSON has no form for. Here that is refused, since what
    a user writes down should arrive as it was written.

    Raises:
        ValueError: Something in `value` is not JSON; the text says where and what.
    """
    waiting: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while waiting:  # no recursion: a value may be nested deeper than the stack
        path, found = waiting.pop()
        if len(path) > _MOST_LEVELS:
            raise ValueError("it is nested too deeply")
        if isinstance(found, Mapping):
            for key, inner in found.items():
                if not isinstance(key, str):
                    raise ValueError(f"the key {key!r:.100}{_say_where(path)} is not text")
                waiting.append(((*path, key), inner))
        elif isinstance(found, (list, tuple)):
            waiting += [((*path, str(index)), inner) for index, inner in enumerate(found)]
        elif isinstance(found, float) and not math.isfinite(found):
            raise ValueError(f"{found!r}{_say_where(path)} is not JSON")
        elif found is not None and not isinstance(found, (str, int, float)):
            raise ValueError(f"{found!r:.100}{_say_where(path)} is not JSON")
    return json_values.decode(json_values.encode(value))


_MOST_LEVELS = 100
"""Nobody nests what is written by hand so deeply; a value that holds itself is met here."""


def _say_where(path: tuple[str, ...]) -> str:
    return f" at {pointer(path)}" if path else ""
