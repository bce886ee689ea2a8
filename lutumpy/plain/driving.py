"""Drivers of generators: logic that is written once, without I/O, for synchronous and asynchronous
callers.

Such logic is a generator. It yields what has to be waited for and is sent what came of it, so that
the same lines serve both kinds of callers, and only these drivers know which kind it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Coroutine, Generator
from inspect import (
    CORO_RUNNING,
    CORO_SUSPENDED,
    GEN_RUNNING,
    getcoroutinestate,
    getgeneratorstate,
)
from typing import Any, TypeVar

__all__ = ["drive_async", "is_async", "is_at_work", "is_generator"]

T = TypeVar("T")


async def drive_async(steps: Generator[Awaitable[Any], Any, T]) -> T:
    """Run a generator to its end, awaiting what it yields; errors of an awaitable are raised where
    it was yielded.
    """
    try:
        awaitable = next(steps)
        while True:
            try:
                result = await awaitable
            except BaseException as error:
                awaitable = steps.throw(error)
            else:
                awaitable = steps.send(result)
    except StopIteration as done:
        value: T = done.value
        return value


def is_async(function: Any) -> bool:
    """Whether calling `function` gives a coroutine, as far as its declaration says."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )


def is_generator(function: Any) -> bool:
    """Whether calling `function` gives a generator, async or not, and runs none of its code."""
    called = (function, type(function).__call__)
    return any(inspect.isgeneratorfunction(f) or inspect.isasyncgenfunction(f) for f in called)


def is_at_work(driver: Generator[Any, Any, Any] | Coroutine[Any, Any, Any]) -> bool:
    """Whether a generator runs, or a coroutine runs or waits for something.

    The driver itself is asked: a flag would stay behind where an exception cuts the run off, and so
    would a generator that is waiting for nobody any more. A coroutine that an exception leaves is
    closed, whatever it waited for.
    """
    if isinstance(driver, Generator):
        return getgeneratorstate(driver) == GEN_RUNNING
    return getcoroutinestate(driver) in (CORO_RUNNING, CORO_SUSPENDED)
