"""Calling hooks: the driver for programs without an event loop, and the errors that name a hook."""

# Whatever runs hooks is a generator that yields what has to be awaited, so that it is written once.
# `plain/driving.drive_async` awaits what is yielded; `drive_sync` refuses it, since without an
# event loop nothing can be awaited.

from __future__ import annotations

import inspect
from collections.abc import Generator
from typing import Any, TypeVar

from lutumpy.errors import HookError
from lutumpy.plain.safe_text import safe_repr

__all__ = ["NEEDS_LOOP", "close_coroutine", "drive_sync", "hook_failure"]

T = TypeVar("T")

NEEDS_LOOP = "use the async form of this call"


class GaveAwaitable(Exception):
    """Thrown into a generator that yielded an awaitable where nothing can be awaited."""


def drive_sync(steps: Generator[Any, Any, T]) -> T:
    """Run a generator to its end; an awaitable that it yields is closed and refused.

    The refusal, `GaveAwaitable`, is raised inside the generator, where the awaitable was yielded:
    only that place knows which hook gave it.
    """
    try:
        awaitable = next(steps)
        # What is thrown in ends the generator, unless its code catches it and goes on.
        while True:
            close_coroutine(awaitable)
            awaitable = steps.throw(GaveAwaitable())
    except StopIteration as done:
        value: T = done.value
        return value


def close_coroutine(value: Any) -> None:
    """Close a coroutine that will not be awaited; any other value is left alone."""
    if inspect.iscoroutine(value):
        value.close()


def hook_failure(place: str, error: Exception, state: str) -> HookError:
    """The error for a hook that raised, or that gave an awaitable where none can be awaited.

    Args:
        place: Which hook, on which call.
        error: What was raised.
        state: What state things are in now.
    """
    if isinstance(error, GaveAwaitable):
        what = f"gave an awaitable; {NEEDS_LOOP}"
    else:
        what = f"raised {safe_repr(error)}"
    return HookError(f"{place} {what}; {state}")
