"""Exceptions as texts for a model: the one place where that happens (rule K6)."""

# What a model is shown of an exception
# -------------------------------------
#   exception                what the model is shown
#   -----------------------  -----------------------------------------------------------------------
#   ToolError                its message and its content, which were written for the model
#   any other                its class's name in a neutral sentence. The message was written for
#                            somebody else, and may hold paths, queries, keys or other people's data
#   a group of exceptions    each exception inside, by these rules: the messages, then one sentence
#   any, with reveal=True    class and message; of pydantic's, the fields without their values
#
# Never a traceback, and never nothing. Whatever `str()` or the class does, nothing is raised here.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from lutumpy.errors import ToolError
from lutumpy.plain.safe_text import class_name, safe_str

__all__ = [
    "FAILED",
    "FAILED_WITH",
    "failure_contents",
    "failure_text",
    "is_for_the_model",
    "tool_error_message",
]

FAILED = "The tool failed."
FAILED_WITH = "The tool failed with {names}."
_MOST_PARTS = 10


def failure_text(error: BaseException, *, reveal: bool = False, sentence: str = FAILED_WITH) -> str:
    """What the model is shown of an exception; never empty, and never a traceback.

    Args:
        error: The exception.
        reveal: Show class and message, whatever the class.
        sentence: The neutral sentence for what isn't a `ToolError`; `{names}` stands for the names
            of the classes.
    """
    if reveal:
        return _reveal(error)
    messages: list[str] = []
    others: list[str] = []
    for leaf in _open_groups(error):
        if isinstance(leaf, ToolError):
            message = tool_error_message(leaf)
            if message or _content_of(leaf) is None:
                messages.append(message or FAILED)
        else:
            others.append(class_name(leaf))
    lines = _limit_parts(messages)
    if others:
        lines.append(sentence.format(names=", ".join(_limit_parts(others))))
    return "\n".join(lines) or FAILED


def failure_contents(error: BaseException) -> list[Any]:
    """What the `ToolError`s in an exception carry besides their messages, in order."""
    found = [_content_of(leaf) for leaf in _open_groups(error) if isinstance(leaf, ToolError)]
    return [content for content in found if content is not None]


def _content_of(error: ToolError) -> Any:
    try:
        return error.content
    except Exception:  # a property of a subclass
        return None


def is_for_the_model(error: BaseException) -> bool:
    """Whether all of it was raised for the model: a `ToolError`, or a group of nothing else."""
    return all(isinstance(leaf, ToolError) for leaf in _open_groups(error))


def tool_error_message(error: ToolError) -> str:
    """The message of a `ToolError`; empty where it has none, or its `__str__` raises."""
    try:
        message = str(error)
    except Exception:
        return ""
    return message if message.strip() else ""


def _reveal(error: BaseException) -> str:
    name = class_name(error)
    if isinstance(error, ValidationError):
        message = "; ".join(_limit_parts(field_messages(error)))
    elif _inner_errors(error):
        message = "; ".join(_limit_parts(_reveal(leaf) for leaf in _open_groups(error)))
    else:
        message = safe_str(error)
    return f"{name}: {message}" if message.strip() else name


def field_messages(error: ValidationError) -> list[str]:
    """Each failing field with its message.

    Pydantic's own text also holds the values, and links for developers.
    """
    lines: list[str] = []
    for details in error.errors(include_url=False, include_context=False, include_input=False):
        path = ".".join([str(part) for part in details["loc"]])
        lines.append(f"{path}: {details['msg']}" if path else details["msg"])
    return lines


def _open_groups(error: BaseException) -> list[BaseException]:
    """The exceptions that a group and the groups in it hold, in order; any other one is itself."""
    leaves: list[BaseException] = []
    waiting = [error]
    while waiting:
        current = waiting.pop()
        inner = _inner_errors(current)
        if inner:
            waiting += reversed(inner)
        else:
            leaves.append(current)
    return leaves


def _inner_errors(error: BaseException) -> tuple[BaseException, ...]:
    """What an exception group holds; nothing for any other exception."""
    # Recognized by what it can do: Python 3.10 has no such class, but a backport of it.
    if not callable(getattr(error, "subgroup", None)):
        return ()
    inner = getattr(error, "exceptions", ())
    if not isinstance(inner, tuple):
        return ()
    return tuple([held for held in inner if isinstance(held, BaseException)])


def _limit_parts(texts: Iterable[str]) -> list[str]:
    """Each text once; where there are many, the first ones and how many were left out."""
    parts = list(dict.fromkeys(texts))
    if len(parts) <= _MOST_PARTS:
        return parts
    return [*parts[:_MOST_PARTS], f"and {len(parts) - _MOST_PARTS} more"]
