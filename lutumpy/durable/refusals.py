"""What stores refuse with: the same words in memory and in databases."""

from __future__ import annotations

from lutumpy import TakenOverError
from lutumpy.durable.types import Claim
from lutumpy.errors import StoreError

__all__ = [
    "exists",
    "no_past_round",
    "no_plan",
    "no_round",
    "not_unresolved",
    "taken_over",
    "unknown",
]


def unknown(scope: str) -> StoreError:
    """The store doesn't know a conversation."""
    return StoreError("unknown_scope", f"the store has no conversation {scope!r}")


def exists(scope: str) -> StoreError:
    """A new conversation would have the id of another one."""
    return StoreError("exists", f"the store has a conversation {scope!r} already; nothing was made")


def taken_over(claim: Claim, fence: int) -> TakenOverError:
    """A claim is no longer the last one.

    Args:
        claim: The claim.
        fence: The fence that the conversation has now.
    """
    return TakenOverError(
        f"another process has taken {claim.scope!r} over: its fence is {fence}, this one has "
        f"{claim.fence}; nothing was written"
    )


def no_plan(plan_digest: str, scope: str) -> StoreError:
    """Somebody decides about a plan that isn't the open one."""
    return StoreError("plan", f"no plan {plan_digest} is waiting in {scope!r}; nothing was taken")


def no_round(scope: str) -> StoreError:
    """Somebody answers where no call can wait for an answer."""
    return StoreError("answer", f"no round of {scope!r} is open; nothing was taken")


def not_unresolved(call_id: str, scope: str) -> StoreError:
    """Somebody resolves a call whose outcome is known, or that isn't there."""
    return StoreError(
        "decision", f"no call {call_id!r} of {scope!r} is unresolved; nothing was resolved"
    )


def no_past_round(scope: str, at: tuple[int, int]) -> StoreError:
    """A fork begins at a round that isn't kept.

    Args:
        scope: The conversation that is forked.
        at: The task, and the round in it.
    """
    return StoreError(
        "round",
        f"{scope!r} has no round {at[1]} of task {at[0]}, or it was pruned; nothing was made",
    )
