"""How proto JSON names the fields of an object: `functionCall` and `function_call` are one.

The API takes both spellings of every field, enum values in any case, and null for what is absent
[recorded]. Whoever reads a request asks here; the camelCase name is the one that stands for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from lutumpy.rules.problem import is_array, is_object

__all__ = ["field", "holder", "key_of", "listed_in", "snake", "spellings", "word"]

_HUMP = re.compile(r"(?<!^)([A-Z])")


@cache
def snake(name: str) -> str:
    """`functionCall` as `function_call`."""
    return _HUMP.sub(r"_\1", name).lower()


def spellings(names: Iterable[str]) -> frozenset[str]:
    """The names in both spellings."""
    known = list(names)
    return frozenset([*known, *[snake(name) for name in known]])


def key_of(value: Mapping[str, Any], name: str) -> str:
    """The key under which an object has a field, or would have it."""
    other = snake(name)
    return other if name not in value and other in value else name


def field(value: Any, name: str) -> Any:
    """What an object has under a name, in either spelling; `None` where it has nothing, and where
    it isn't an object.
    """
    if not is_object(value):
        return None
    found = value.get(name)
    return value.get(snake(name)) if found is None else found


def holder(value: Any, name: str) -> Mapping[str, Any]:
    """The object under a name; an empty one where there is none."""
    found = field(value, name)
    return found if is_object(found) else {}


def listed_in(value: Any, name: str) -> list[Any] | tuple[Any, ...]:
    """The list under a name, a lone object as a list of it; empty where there is neither."""
    found = field(value, name)
    if is_object(found):
        return [found]
    return found if is_array(found) else ()


def word(value: Any) -> str:
    """An enum value in upper case; empty for what isn't one."""
    return value.upper() if isinstance(value, str) else ""
