"""How places and values of arguments are spelled in what the model is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from pydantic_core import ErrorDetails, to_json

from lutumpy.errors import ToolError
from lutumpy.plain.pointer import Path
from lutumpy.plain.preview import shorten
from lutumpy.tools.failures import tool_error_message

__all__ = [
    "MESSAGE_LENGTH",
    "OWN_CHECK",
    "VALUE_LENGTH",
    "Path",
    "describe_error",
    "join_lines",
    "join_messages",
    "limit_detail",
    "replace_surrogates",
    "show_value",
    "spell_path",
    "spell_place",
    "write_lines",
]

T = TypeVar("T")
_MOST_FIELDS = 10
# In characters, the mark of a cut text included.
VALUE_LENGTH = 100
MESSAGE_LENGTH = 500
_PATH_LENGTH = 200
_REPORT_LENGTH = 5000

OWN_CHECK = "was refused by this tool's own check"
# Their messages quote an exception of the user's code.
_QUOTING = frozenset(
    {"value_error", "assertion_error", "iteration_error", "get_attribute_error", "mapping_type"}
)


def write_lines(entries: Sequence[T], write: Callable[[T], str]) -> str:
    """A line for each field, ten at most, and no more than 5,000 characters (rule C3).

    Args:
        entries: What the lines are about.
        write: Makes the line of an entry; called only for those that are shown.
    """
    lines = [write(entry) for entry in islice(entries, _MOST_FIELDS)]
    shown = [shorten(line, _REPORT_LENGTH // len(lines)) for line in lines]
    if len(entries) > _MOST_FIELDS:
        shown.append(f"… and {len(entries) - _MOST_FIELDS} more")
    return replace_surrogates("\n".join(shown))


def join_messages(messages: Iterable[str]) -> str:
    """Different messages about one field: whole ones as long as there is room, and how many more
    there are.
    """
    different = list(dict.fromkeys(messages))
    joined = shorten(different[0], MESSAGE_LENGTH)
    for index, message in enumerate(different[1:], 1):
        longer = f"{joined} or: {message}"
        if len(longer) > MESSAGE_LENGTH:
            return f"{joined} or {len(different) - index} more"
        joined = longer
    return joined


def limit_detail(text: str) -> str:
    """What the model is told about a call, shortened where something in it is far too long."""
    return shorten(text, _REPORT_LENGTH + MESSAGE_LENGTH)


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
    """A path as a line begins with it: `arguments` for the whole. Long names are shortened."""
    first = islice(path, _PATH_LENGTH)
    short = [shorten(part, _PATH_LENGTH) if isinstance(part, str) else part for part in first]
    return shorten(spell_path(short), _PATH_LENGTH) or "arguments"


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
    return join_lines(_shorten_tag(details))


def _shorten_tag(details: ErrorDetails) -> str:
    """The message of an error, in which the tag of a union is the model's own text."""
    tag = details.get("ctx", {}).get("tag")
    if isinstance(tag, str) and len(tag) > VALUE_LENGTH:
        return details["msg"].replace(tag, shorten(tag, VALUE_LENGTH), 1)
    return details["msg"]
