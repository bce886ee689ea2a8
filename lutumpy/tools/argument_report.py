"""How places and values of arguments are spelled in what the model is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_core import ErrorDetails, to_json

from lutumpy.errors import ToolError
from lutumpy.plain.preview import shorten
from lutumpy.tools.failures import tool_error_message

__all__ = [
    "MESSAGE_LENGTH",
    "OWN_CHECK",
    "VALUE_LENGTH",
    "Path",
    "describe_error",
    "join_lines",
    "replace_surrogates",
    "show_value",
    "spell_path",
    "spell_place",
    "write_lines",
]

Path = tuple[str | int, ...]
"""The keys and positions that lead to a place in the arguments."""

_MOST_FIELDS = 10
# In characters, the mark of a cut text included.
VALUE_LENGTH = 100
MESSAGE_LENGTH = 500
_PATH_LENGTH = 200

OWN_CHECK = "was refused by this tool's own check"
# Their messages quote an exception of the user's code.
_QUOTING = frozenset(
    {"value_error", "assertion_error", "iteration_error", "get_attribute_error", "mapping_type"}
)


def write_lines(lines: Sequence[str]) -> str:
    """The lines for each field, ten at most (rule C3)."""
    shown = list(lines[:_MOST_FIELDS])
    if len(lines) > _MOST_FIELDS:
        shown.append(f"… and {len(lines) - _MOST_FIELDS} more")
    return replace_surrogates("\n".join(shown))


def join_lines(text: str) -> str:
    """`text` on one line, shortened."""
    return shorten(" ".join(text.split()), MESSAGE_LENGTH)


def show_value(value: Any) -> str:
    """A value as short JSON; the name of its type where it isn't JSON."""
    try:
        return shorten(to_json(value).decode(), VALUE_LENGTH)
    except Exception:
        return type(value).__name__


def spell_place(path: Iterable[str | int]) -> str:
    """A path as a line begins with it: `arguments` for the whole."""
    return shorten(spell_path(path), _PATH_LENGTH) or "arguments"


def spell_path(path: Iterable[str | int]) -> str:
    """`("items", 0, "a b")` as `items[0]["a b"]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier():
            text += f".{part}" if text else part
        else:
            text += f"[{to_json(part).decode()}]"
    return text


def replace_surrogates(text: str) -> str:
    """`text` without lone surrogates, which no request can carry."""
    return text.encode("utf-8", "replace").decode()


def describe_error(details: ErrorDetails) -> str:
    """What is wrong with one value, without the words of exceptions of the user's code."""
    if details["type"] in _QUOTING:
        # Only a `ToolError` was written for the model; what other exceptions say stays here.
        cause = details.get("ctx", {}).get("error")
        message = tool_error_message(cause) if isinstance(cause, ToolError) else ""
        return join_lines(message) or OWN_CHECK
    return join_lines(details["msg"])
