"""JSON values of strangers, copied; what isn't JSON is refused with the place where it stands.

`json_values` writes whatever it is given, and replaces what JSON hasn't. Where nothing may be
replaced, a value goes through here first.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

__all__ = ["copy_json"]

MOST_LEVELS = 100
"""How deep a value may be nested. JSON readers of providers stop at 128 or more, and what was
copied is in a message."""


def copy_json(value: Any, place: str) -> Any:
    """A copy as dictionaries, lists, texts, numbers, booleans and `None` alone.

    Args:
        value: The value. Mappings become dictionaries, tuples lists.
        place: How errors call it.

    Raises:
        TypeError: something in it isn't JSON.
        ValueError: it is nested deeper than 100 levels, or holds `NaN` or an infinity.
    """
    return _copy(value, place, 1)


def _copy(value: Any, place: str, level: int) -> Any:
    if level > MOST_LEVELS:
        raise ValueError(f"{place.partition('.')[0]} is nested deeper than {MOST_LEVELS} levels")
    if isinstance(value, Mapping):
        copied: dict[str, Any] = {}
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{place} has a key that is {type(key).__name__}, not text")
            copied[key] = _copy(inner, f"{place}.{key}", level + 1)
        return copied
    if isinstance(value, (list, tuple)):
        return [_copy(inner, f"{place}[{index}]", level + 1) for index, inner in enumerate(value)]
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{place} is {value}, which JSON has not")
    if value is not None and not isinstance(value, (str, int, float)):
        raise TypeError(f"{place} is {type(value).__name__}, which is not JSON")
    return value
