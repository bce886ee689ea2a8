"""Rounds that don't come to an end: they are counted, and left alone at some point."""

# Each claim of a round counts as an attempt. A run that ends well sets the count back, and so does
# a commit; one that is cancelled takes its own away; one that raises or dies leaves it. So a tool
# that kills its process does so a limited number of times, whoever claims the conversation.

from __future__ import annotations

from typing import Any, cast

from lutumpy.durable.operator_store import OperatorStore
from lutumpy.durable.results import Stuck
from lutumpy.durable.store import SessionStore
from lutumpy.durable.types import Claim

__all__ = ["check_max_attempts", "count_try", "counting_store", "describe_error", "find_stuck"]


def counting_store(store: SessionStore) -> OperatorStore | None:
    """The store, if it counts attempts; one of the user's own needn't."""
    counts = all(callable(getattr(store, name, None)) for name in ("fail", "count_try"))
    return cast("OperatorStore", store) if counts else None


async def find_stuck(store: SessionStore, claim: Claim, most: int | None) -> Stuck | None:
    """Give a conversation up that was claimed too often; `None` where it may be gone on with."""
    counting = counting_store(store)
    if counting is None or most is None or claim.attempts <= most:
        return None
    error = claim.last_error or "nobody said what went wrong"
    if claim.tries and "begun last" not in error:
        name, tries = max(claim.tries.items(), key=lambda each: each[1])
        call_id = name.partition(":call:")[2] or name
        error += f"; begun last: call {call_id}, {tries} times again"
    await counting.fail(claim, error, stuck=True)
    await counting.release(claim)  # to look isn't an attempt: this one is taken away
    return Stuck(claim.attempts - 1, error)


async def count_try(store: SessionStore, claim: Claim, name: str) -> None:
    """Count a call that is begun again, so that somebody can see which one it is."""
    counting = counting_store(store)
    if counting is not None:
        await counting.count_try(claim, name)


def describe_error(error: BaseException) -> str:
    """What the store keeps of an error."""
    return f"{type(error).__name__}: {error}"


def check_max_attempts(value: Any) -> None:
    """Raise `TypeError` or `ValueError` for what isn't a limit."""
    if value is not None and type(value) is not int:
        raise TypeError(f"max_attempts= is a number or None, not {type(value).__name__}")
    if value is not None and value < 1:
        raise ValueError(f"max_attempts={value} is not positive; nothing was sent")
