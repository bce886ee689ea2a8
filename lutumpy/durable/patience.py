"""Recording while the store is away for a moment (rule P2)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio

from lutumpy.durable.store import SessionStore
from lutumpy.durable.types import Claim
from lutumpy.errors import LutumpyError

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["record_patiently"]

logger: logging.Logger = logging.getLogger("lutumpy.durable")

_SECONDS_OF_A_WORKER = 30.0
"""How long a worker repeats, which doesn't know the lease of the loop's process."""
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0


async def record_patiently(
    store: SessionStore, claim: Claim, name: str, value: JsonValue
) -> JsonValue:
    """Record a value, again and again while the store fails, as long as a lease lasts.

    A record is written once, so a repeat does no harm. What the store says of the claim or of the
    value isn't repeated.

    Raises:
        TakenOverError: another process has the conversation.
        Exception: the last error of the store, where the lease has ended meanwhile.
    """
    end = anyio.current_time() + (claim.lease or _SECONDS_OF_A_WORKER)
    pause = _FIRST_PAUSE
    while True:
        try:
            return await store.record(claim, name, value)
        except (LutumpyError, TypeError, ValueError):
            raise
        except Exception as error:
            if anyio.current_time() + pause > end:
                raise
            logger.warning("%s of %r could not be recorded yet: %s", name, claim.scope, error)
        await anyio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
