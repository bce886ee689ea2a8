"""Problems in the words of generateContent: each names its place as the API does."""

# The API writes one place in three ways, and users search for the very words:
#
#     GenerateContentRequest.contents[3].parts[0].function_response.name: Name cannot be empty.
#     Invalid JSON payload received. Unknown name "id" at 'contents[2]': Cannot find field.
#     Invalid value at 'contents[2].parts[0].text' (TYPE_STRING), 5

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lutumpy.plain.pointer import Path
from lutumpy.rules.gemini.fields import snake
from lutumpy.rules.problem import Certainty, Problem, is_array

__all__ = [
    "KIND",
    "Path",
    "problem",
    "spelled",
    "unknown_name",
    "wrong_bytes",
    "wrong_value",
]

KIND = "INVALID_ARGUMENT"
"""`error.status` of a refusal."""


def spelled(path: Path) -> str:
    """A place as the API writes it: fields in snake_case, indices in brackets."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{snake(step)}" for step in path]
    if path and isinstance(path[0], int):
        return "contents" + "".join(steps)
    return "".join(steps).removeprefix(".") or "contents"


def problem(
    rule: str,
    path: Path,
    message: str,
    certainty: Certainty = "refused",
    /,
    *,
    call_ids: tuple[str, ...] = (),
    tools: tuple[str, ...] = (),
) -> Problem:
    """A problem at a place. `{}` in the message becomes the place with the request's type before
    it.
    """
    where = spelled(path)
    if message.startswith("{}"):
        message = f"GenerateContentRequest.{where}{message[2:]}"
    in_history = bool(path) and (isinstance(path[0], int) or path[0] == "systemInstruction")
    if in_history and not isinstance(path[0], int):
        path = ("system", *path[1:])
    return Problem(
        rule,
        where,
        message,
        certainty,
        kind=KIND,
        call_ids=call_ids,
        tools=tools,
        path=path if in_history else (),
    )


def unknown_name(rule: str, path: Path, key: str) -> Problem:
    """A key that an object doesn't have."""
    message = (
        f'Invalid JSON payload received. Unknown name "{key}" at '
        f"'{spelled(path)}': Cannot find field."
    )
    return problem(rule, (*path, key), message)


def wrong_value(rule: str, path: Path, kind: str, value: Any) -> Problem:
    """A value of another type than its field.

    Args:
        rule: Id of the rule.
        path: The place.
        kind: What the field holds, as `TYPE_STRING`; the name of a type for an object.
        value: What is there.
    """
    where = spelled(path)
    if is_array(value):
        key = snake(str(path[-1])) if path else "contents"
        holder = spelled(path[:-1]) if path[:-1] else ""
        at = f" at '{holder}'" if holder else ""
        message = (
            f'Invalid JSON payload received. Unknown name "{key}"{at}: '
            "Proto field is not repeating, cannot start list."
        )
    elif isinstance(value, Mapping):
        message = f"Invalid value at '{where}' ({kind}), Starting an object on a scalar field"
    else:
        message = f"Invalid value at '{where}' ({kind}), {_quoted(value)}"
    return problem(rule, path, message)


def wrong_bytes(rule: str, path: Path, value: str) -> Problem:
    """A text that isn't base64."""
    message = (
        f"Invalid value at '{spelled(path)}' (TYPE_BYTES), Base64 decoding failed for "
        f"{_quoted(value[:100])}"
    )
    return problem(rule, path, message)


def _quoted(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(str(type(value).__name__))
