"""What SDKs repeat by themselves, told to whoever asks: a request that was answered at the second
try may have been paid twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["collect_retries", "note_retries", "note_retries_of"]

# A list that tasks and threads with a copy of the context share.
_COLLECTED: ContextVar[list[int] | None] = ContextVar("lutumpy_sdk_retries", default=None)

# What the SDKs of OpenAI and Anthropic write into each request.
_HEADER = "x-stainless-retry-count"


@contextmanager
def collect_retries() -> Iterator[list[int]]:
    """Collect how often requests in the block were repeated by the SDKs.

    Yields:
        A list with a number for each request that was repeated.
    """
    collected: list[int] = []
    token = _COLLECTED.set(collected)
    try:
        yield collected
    finally:
        _COLLECTED.reset(token)
        outer = _COLLECTED.get()
        if outer is not None:
            outer += collected


def note_retries(count: int) -> None:
    """A request was sent again so often before it ended."""
    collected = _COLLECTED.get()
    if count and collected is not None:
        collected.append(count)


def note_retries_of(answer: Any) -> None:
    """The same, read from an answer or an error of an SDK: from the request that led to it."""
    collected = _COLLECTED.get()
    if collected is None:
        return
    response: Any = getattr(answer, "http_response", None) or getattr(answer, "response", None)
    holders: tuple[Any, ...] = answer, response
    # A response without its request raises on being asked for it.
    for holder in holders:
        try:
            count = holder.request.headers.get(_HEADER, "0")
        except (AttributeError, RuntimeError):
            continue
        if str(count).isdigit() and int(count):
            collected.append(int(count))
        return
