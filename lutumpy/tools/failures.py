"""What a model is told of an exception: the one place where an exception becomes text for a model (rule K6).

The message of a `ToolError` is meant for the model. Any other message was written for somebody else, and may hold paths,
queries, keys or other people's data: only the name of its class is told, unless the program asks for more.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationError

from lutumpy.core.safe_text import class_name, safe_str
from lutumpy.errors import ToolError

__all__ = ["FAILED", "failure_text", "is_for_the_model", "tool_error_message"]

FAILED = "The tool failed."
_FAILED_WITH = "The tool failed with {names}."
_MOST_PARTS = 10


def failure_text(
    error: BaseException, *, reveal: bool = False, sentence: str = _FAILED_WITH
) -> str:
    """What the model is told of an exception; never empty, and never a traceback.

    Of an exception group, as task groups raise it, each exception inside is told by the same rule.

    Args:
        error: The exception.
        reveal: Tell class and message, whatever the class.
        sentence: The neutral sentence for what isn't a `ToolError`; `{names}` stands for the class names.
    """
    if reveal:
        return _revealed(error)
    messages: list[str] = []
    others: list[str] = []
    for leaf in _leaves(error):
        if isinstance(leaf, ToolError):
            messages.append(tool_error_message(leaf) or FAILED)
        else:
            others.append(class_name(leaf))
    told = _some(messages)
    if others:
        told.append(sentence.format(names=", ".join(_some(others))))
    return "\n".join(told)


def is_for_the_model(error: BaseException) -> bool:
    """Whether all of it was raised for the model to read: a `ToolError`, or a group of nothing else."""
    return all(isinstance(leaf, ToolError) for leaf in _leaves(error))


def tool_error_message(error: ToolError) -> str:
    """The message of a `ToolError`; empty where it has none, or its `__str__` raises."""
    try:
        message = str(error)
    except Exception:
        return ""
    return message if message.strip() else ""


def _revealed(error: BaseException) -> str:
    name = class_name(error)
    if isinstance(error, ValidationError):
        message = "; ".join(_some(_fields(error)))
    elif _inner(error):
        message = "; ".join(_some(_revealed(leaf) for leaf in _leaves(error)))
    else:
        message = safe_str(error)
    return f"{name}: {message}" if message.strip() else name


def _fields(error: ValidationError) -> list[str]:
    """Each failing field with its message; pydantic's own text also has the values, and links for developers."""
    found: list[str] = []
    for details in error.errors(include_url=False, include_context=False, include_input=False):
        path = ".".join([str(part) for part in details["loc"]])
        found.append(f"{path}: {details['msg']}" if path else details["msg"])
    return found


def _leaves(error: BaseException) -> list[BaseException]:
    """The exceptions that a group holds, in their order, groups inside of it opened; the exception itself for any other."""
    leaves: list[BaseException] = []
    waiting = [error]
    while waiting:
        current = waiting.pop()
        inner = _inner(current)
        if inner:
            waiting += reversed(inner)
        else:
            leaves.append(current)
    return leaves


def _inner(error: BaseException) -> tuple[BaseException, ...]:
    """What an exception group holds. Groups have a backport for Python 3.10, so they are told by what they can do."""
    if not callable(getattr(error, "subgroup", None)):
        return ()
    inner = getattr(error, "exceptions", ())
    if not isinstance(inner, tuple):
        return ()
    return tuple([held for held in inner if isinstance(held, BaseException)])


def _some(texts: Iterable[str]) -> list[str]:
    """Each text once, and how many were left out where there are many."""
    found = list(dict.fromkeys(texts))
    if len(found) <= _MOST_PARTS:
        return found
    return [*found[:_MOST_PARTS], f"and {len(found) - _MOST_PARTS} more"]
