"""Holding a conversation while something runs: its lease is renewed, and released at the end."""

# Two things can take a conversation away: a write that is refused, which raises `TakenOverError` in
# the middle of something; or a lease that is found to be another's, which is noticed here and
# cancels what runs. Either way exactly one `TakenOverError` comes out, and never a group of errors.

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import anyio

from lutumpy import TakenOverError
from lutumpy.durable.attempts import counting_store, describe_error
from lutumpy.durable.conversation import OpenConversation
from lutumpy.durable.types import Status

__all__ = ["give_up", "hold_while"]

T = TypeVar("T")

logger: logging.Logger = logging.getLogger("lutumpy.durable")

SECONDS_TO_GIVE_UP = 5.0


async def hold_while(conversation: OpenConversation, work: Callable[[], Awaitable[T]]) -> T:
    """Do the work while the conversation's lease is renewed, and give what comes of it.

    Raises:
        TakenOverError: another process has taken the conversation over; the work was cancelled.
        BaseException: what the work raised.
    """
    lost: list[TakenOverError] = []
    failed: BaseException | None = None
    done: list[T] = []
    async with anyio.create_task_group() as group:

        async def renew() -> None:
            try:
                await _renew_for_ever(conversation)
            except TakenOverError as error:
                lost.append(error)
                group.cancel_scope.cancel()

        group.start_soon(renew)
        try:
            done.append(await work())
        except (anyio.get_cancelled_exc_class(), GeneratorExit):
            raise
        except BaseException as error:
            failed = error
        group.cancel_scope.cancel()
    if done:
        return done[0]
    if failed is None:
        raise lost[0]
    raise _find_take_over(failed) or failed


async def _renew_for_ever(conversation: OpenConversation) -> None:
    """Prolong the lease again and again; raises `TakenOverError` once it is another's."""
    while True:
        await anyio.sleep(conversation.claim.lease / 3)
        try:
            await conversation.store.renew(conversation.claim)
        except TakenOverError:
            raise
        except Exception as error:
            # A lease only saves work. Where the store is really gone, a write will say so.
            logger.warning("the lease of %r was not renewed: %s", conversation.scope, error)


def _find_take_over(error: BaseException) -> TakenOverError | None:
    """The `TakenOverError` in an error, which may be a group of a runner's."""
    if isinstance(error, TakenOverError):
        return error
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return next((found for each in inner if (found := _find_take_over(each))), None)


async def give_up(
    conversation: OpenConversation,
    status: Status | None,
    error: BaseException | None = None,
    most: int | None = None,
    *,
    is_stopped: bool = False,
) -> None:
    """Give the conversation up, on every way out; what goes wrong then is logged.

    Args:
        conversation: The conversation.
        status: Its status, where the run ended well.
        error: What the run failed with, if it did.
        most: How many attempts a round has.
        is_stopped: Whether nobody is to go on with it before something comes in.
    """
    claim, counting = conversation.claim, counting_store(conversation.store)
    with anyio.CancelScope(shield=True), anyio.move_on_after(SECONDS_TO_GIVE_UP):
        if not isinstance(error, TakenOverError):
            try:
                await conversation.record_costs()
            except Exception as failed:
                logger.warning("what %r has cost was not recorded: %s", claim.scope, failed)
        try:
            if is_stopped:
                # What waits by now waits for the next run, and doesn't begin it.
                inbox = tuple(await conversation.store.inbox(claim.scope))
                claim, status = replace(claim, inbox=inbox), "done"
            if error is None or counting is None:
                await conversation.store.release(claim, status=status)
            else:
                stuck = most is not None and claim.attempts >= most
                await counting.fail(claim, describe_error(error), stuck=stuck)
        except Exception as error:
            logger.warning("the claim of %r was not released: %s", conversation.scope, error)
