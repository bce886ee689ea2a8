"""What Temporal's own machinery needs: the workflow of one call, and what runs it in a worker.

This module alone imports `temporalio` when it is loaded.
"""

# The workflow does one thing, so there is nothing in it that could come out otherwise when Temporal
# replays it. It isn't run in the sandbox: that would import all of this library again for each
# call, to find out that nothing of it is used.

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy

from lutumpy.durable.engines import WORKFLOW, Work

__all__ = ["ACTIVITY", "CallWorkflow", "make_activity"]

ACTIVITY = "lutumpy.run_ticket"


@workflow.defn(name=WORKFLOW, sandboxed=False)
class CallWorkflow:
    """One call: an activity, begun as often as its order says."""

    @workflow.run
    async def run(self, order: dict[str, Any]) -> Any:
        """Run the activity of a call, and give its outcome.

        Args:
            order: `ticket`, the ticket as JSON values; `seconds`, how long one run of the activity
                may take; `heartbeat`, after how many silent seconds its worker counts as lost;
                `attempts`, how often it is begun.
        """
        return await workflow.execute_activity(
            ACTIVITY,
            order["ticket"],
            start_to_close_timeout=timedelta(seconds=order["seconds"]),
            heartbeat_timeout=timedelta(seconds=order["heartbeat"]),
            retry_policy=RetryPolicy(maximum_attempts=order["attempts"]),
        )


def make_activity(work: Work) -> Callable[..., Coroutine[Any, Any, dict[str, Any]]]:
    """The activity that runs tickets in a worker."""

    @activity.defn(name=ACTIVITY)
    async def run_call(ticket: dict[str, Any]) -> dict[str, Any]:  # Temporal reads these types
        beating = asyncio.create_task(_beat())
        try:
            return await work(ticket)
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating

    return run_call


async def _beat() -> None:
    """Tell the server that this worker lives, so that it notices early when it doesn't."""
    timeout = activity.info().heartbeat_timeout
    seconds = 1.0 if timeout is None else timeout.total_seconds() / 4
    while True:
        activity.heartbeat()
        await asyncio.sleep(seconds)
