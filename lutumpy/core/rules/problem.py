"""What a rule says when it is broken, and the words in which OpenAI and Anthropic name a wrong shape."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

__all__ = ["Certainty", "Problem"]

Certainty = Literal["refused", "some", "discouraged"]
"""How sure a refusal is.

`refused`: the provider answers an error. `some`: some hosts or models do, or the evidence is thin. `discouraged`:
it works, badly.
"""


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule in a request, with the answer that the provider would give.

    Attributes:
        rule: Id of the rule, such as `chat.results_after_calls`.
        position: Where in the body, as the provider writes it (`messages[2].content`, `messages.2.content.0`); empty
            for the whole.
        message: The provider's own error text.
        certainty: How sure a refusal is.
        status: HTTP status of the answer.
        kind: `error.type` of the answer.
        param: OpenAI's `error.param`.
        code: OpenAI's `error.code`, Anthropic's `error.details.error_code`.
        call_ids: Ids of the calls that the problem is about.
        tools: Names of the tools that the problem is about.
        path: Keys and indices that lead from the list of messages to the place; the last may name what is missing. Empty
            for the whole, and in problems of a request, which is more than its messages.
    """

    rule: str
    position: str
    message: str
    certainty: Certainty
    status: int = 400
    kind: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None
    call_ids: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    path: tuple[str | int, ...] = ()


def about(problems: Iterable[Problem], call_id: str | None, name: str | None) -> list[Problem]:
    """The problems of one call or result, with its id and the tool's name."""
    ids, tools = (call_id,) if call_id else (), (name,) if name else ()
    return [replace(problem, call_ids=ids, tools=tools) for problem in problems]


def mapping(value: Any) -> Mapping[str, Any] | None:
    """`value` if it is a JSON object."""
    return value if isinstance(value, Mapping) else None


def items(value: Any) -> list[Any] | tuple[Any, ...]:
    """`value` if it is a JSON array, else an empty one."""
    return value if isinstance(value, (list, tuple)) else ()


def is_array(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def text(value: Any) -> str | None:
    """`value` if it is a string; ids and names that are no strings can't be looked up."""
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
    # Python limits the digits of an integer, and takes `NaN` and `Infinity`, which JSON has not.
    return json.loads(text, parse_int=float, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


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
