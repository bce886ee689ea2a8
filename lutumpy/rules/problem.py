"""What a rule says when it is broken, and the words in which OpenAI and Anthropic name a wrong
shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeGuard

from lutumpy.errors import Certainty, Problem
from lutumpy.plain.json_values import refuse_constant

if TYPE_CHECKING:
    from json import JSONDecoder

__all__ = ["Certainty", "Problem"]


def about(problems: Iterable[Problem], call_id: str | None, name: str | None) -> list[Problem]:
    """The problems of one call or result, with its id and the tool's name."""
    ids, tools = (call_id,) if call_id else (), (name,) if name else ()
    return [replace(problem, call_ids=ids, tools=tools) for problem in problems]


def is_object(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether `value` is a JSON object."""
    # Nearly every object is a dict, and to ask for an abstract class takes ten times as long.
    return type(value) is dict or isinstance(value, Mapping)


def mapping(value: Any) -> Mapping[str, Any] | None:
    """`value` if it is a JSON object."""
    return value if is_object(value) else None


def items(value: Any) -> list[Any] | tuple[Any, ...]:
    """`value` if it is a JSON array, else an empty one."""
    return value if isinstance(value, (list, tuple)) else ()


def is_array(value: Any) -> bool:
    """Whether a value is a JSON array."""
    return isinstance(value, (list, tuple))


def is_number(value: Any) -> bool:
    """Whether a value is a JSON number: no boolean."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def text(value: Any) -> str | None:
    """`value` if it is a string; ids and names that aren't strings can't be looked up."""
    return value if isinstance(value, str) else None


def is_json_object(text: str) -> bool:
    """Whether a text is a JSON object."""
    try:
        return isinstance(_parsed(text), dict)
    except (ValueError, RecursionError):
        return False


def is_json(text: str) -> bool:
    """Whether a text is JSON of any kind."""
    try:
        _parsed(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parsed(text: str) -> Any:
    return _decoder().decode(text)


@cache
def _decoder() -> JSONDecoder:
    from json import JSONDecoder  # rare, and slow to import

    # Python limits the digits of an integer, and takes `NaN` and `Infinity`, which aren't JSON.
    return JSONDecoder(parse_int=float, parse_constant=refuse_constant)


def listed(values: Iterable[str]) -> str:
    """`'a', 'b', and 'c'`, as OpenAI lists the values it would have taken."""
    quoted = [f"'{value}'" for value in values]
    if len(quoted) < 3:
        return " and ".join(quoted)
    return ", ".join(quoted[:-1]) + ", and " + quoted[-1]


def json_kind(value: Any) -> str:
    """The name that OpenAI's errors give to a JSON value: `a string`, `an integer`, `null`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a decimal"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, Mapping) else "an array"
