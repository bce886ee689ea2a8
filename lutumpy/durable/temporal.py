"""Calls on Temporal's workers: `TemporalRunner` for the loop, `temporal_activity` for the workers.

Needs the `temporal` extra, and runs on asyncio.
"""

# Temporal is the one engine that begins a thing at most once by itself: an activity with
# `maximum_attempts=1` whose worker dies is an `ActivityError`, and never a second run. So the
# workflow of a `once` call may be waited for by any process, as often as it is killed.
#
# Two retries must not multiply. A tool that doesn't finish in time is tried again by the executor
# in the worker, as everywhere; the engine tries again only where a worker was lost.

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lutumpy import CallTicket, Toolset
from lutumpy.durable.engines import (
    WORKFLOW,
    check_dispatch,
    engine_id,
    lost,
    read_outcome,
    run_in_worker,
    run_on_engine,
)
from lutumpy.durable.runner import RoundJournal
from lutumpy.errors import EngineError
from lutumpy.execution import Dispatcher, ExecutionResult

if TYPE_CHECKING:
    from pydantic import JsonValue
    from temporalio.client import Client, WorkflowHandle

__all__ = ["TemporalRunner", "temporal_activity", "temporal_workflows"]

_LONGEST = 30 * 86_400.0
_BETWEEN_ATTEMPTS = 75.0  # the longest pause of the executor, and its patience with threads
_MARGIN = 60.0


class TemporalRunner:
    """Runs calls as activities on Temporal's workers: the `runner=` of a `DurableLoop`.

    Each call is a workflow of its own, with the id `call:<key>`. A loop that is killed while it
    waits finds it again, so nothing is begun twice, and a `once` call that has ended meanwhile is
    `ok`. A worker that dies in the middle of one makes it `maybe_executed`; other calls are begun
    again on another worker, with the same key. How many calls run at once, where, and at which
    rate is set at the workers and the task queue.

    Cancelling the loop cancels its workflows, and the tools in them: a `once` call that gave no
    result is `maybe_executed` then, and the next run begins the others again. Killing it leaves
    them running, and the next run finds them.

    Args:
        client: A client of the SDK. Its data converter sees JSON values only.
        task_queue: The queue on which the workers listen.
        heartbeat: Seconds of silence after which a worker counts as lost. A tool that blocks its
            event loop for longer counts as lost too; plain functions run in threads, and don't.

    Raises:
        ImportError: temporalio is not installed.
        TypeError: an argument is of the wrong type. `ValueError`: `heartbeat` is not positive.
    """

    def __init__(
        self, client: Client, task_queue: str = "tools", *, heartbeat: float = 10.0
    ) -> None:
        _need_temporal("TemporalRunner")
        if not callable(getattr(client, "start_workflow", None)):
            raise TypeError(
                f"TemporalRunner takes a temporalio.client.Client, not {type(client).__name__}"
            )
        if isinstance(heartbeat, bool) or not isinstance(heartbeat, (int, float)):
            raise TypeError(f"heartbeat= is a number of seconds, not {type(heartbeat).__name__}")
        if not 0 < heartbeat < math.inf:
            raise ValueError(f"heartbeat={heartbeat} is not a positive number of seconds")
        self._client = client
        self._task_queue = task_queue
        self._heartbeat = float(heartbeat)

    async def run(
        self, tickets: Sequence[CallTicket], journal: RoundJournal
    ) -> list[ExecutionResult]:
        """Run calls on the workers; one result for each ticket, in order.

        It waits as long as no worker listens.

        Raises:
            EngineError: the server can't be reached, or doesn't take the call. The round stays
                open, and the next run finds what was begun.
            TakenOverError: another process has taken the conversation over.
        """
        return await run_on_engine(
            _Temporal(self._client, self._task_queue, self._heartbeat), tickets, journal
        )

    def __repr__(self) -> str:
        return f"<TemporalRunner on the task queue {self._task_queue!r}>"


class _Temporal:
    """The engine of a `TemporalRunner`."""

    def __init__(self, client: Client, task_queue: str, heartbeat: float) -> None:
        self._client = client
        self._task_queue = task_queue
        self._heartbeat = heartbeat

    async def has(self, ticket: CallTicket) -> bool:
        from temporalio.service import RPCError, RPCStatusCode

        try:
            await self._client.get_workflow_handle(engine_id(ticket)).describe()
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return False
            raise _unreachable(error) from error
        except RuntimeError as error:  # a lazy client connects now
            raise _unreachable(error) from error
        return True

    async def run(self, ticket: CallTicket) -> ExecutionResult:
        from temporalio.client import WorkflowFailureError
        from temporalio.exceptions import is_cancelled_exception
        from temporalio.service import RPCError, RPCStatusCode

        handle = await self._find_or_start(ticket)
        try:
            try:
                outcome = await handle.result()
            except WorkflowFailureError as error:
                if ticket.effect == "once" or not is_cancelled_exception(error.cause):
                    raise
                # An earlier run has stopped it, and it was still ending: now it is begun again.
                handle = await self._find_or_start(ticket)
                outcome = await handle.result()
            return read_outcome(outcome, ticket)
        except WorkflowFailureError as error:
            return lost(ticket, _why(error))
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return lost(ticket, "The engine that ran the tool has forgotten it.")
            raise _unreachable(error) from error

    async def stop(self, ticket: CallTicket) -> ExecutionResult | None:
        from temporalio.client import WorkflowExecutionStatus
        from temporalio.service import RPCError

        handle = self._client.get_workflow_handle(engine_id(ticket))
        try:
            if (await handle.describe()).status == WorkflowExecutionStatus.COMPLETED:
                return read_outcome(await handle.result(), ticket)
            await handle.cancel()
        except (RPCError, RuntimeError) as error:
            raise _unreachable(error) from error
        return None

    async def _find_or_start(self, ticket: CallTicket) -> WorkflowHandle[Any, Any]:
        from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
        from temporalio.exceptions import WorkflowAlreadyStartedError
        from temporalio.service import RPCError

        reuse = WorkflowIDReusePolicy
        is_once = ticket.effect == "once"
        workflow_id = engine_id(ticket)
        try:
            return await self._client.start_workflow(
                WORKFLOW,
                make_order(ticket, self._heartbeat),
                id=workflow_id,
                task_queue=self._task_queue,
                # One that has ended is found below. A call that may run again isn't over when one
                # has failed.
                id_reuse_policy=(
                    reuse.REJECT_DUPLICATE if is_once else reuse.ALLOW_DUPLICATE_FAILED_ONLY
                ),
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )
        except WorkflowAlreadyStartedError:
            return self._client.get_workflow_handle(workflow_id)
        except (RPCError, RuntimeError) as error:
            raise _unreachable(error) from error


def make_order(ticket: CallTicket, heartbeat: float) -> dict[str, JsonValue]:
    """The input of a call's workflow; see `CallWorkflow.run`."""
    is_once = ticket.effect == "once"
    attempts = 1 if is_once else 1 + ticket.max_retries
    seconds = attempts * ticket.timeout + (attempts - 1) * _BETWEEN_ATTEMPTS + _MARGIN
    return {
        "ticket": ticket.dump(),
        "seconds": min(seconds, _LONGEST),
        "heartbeat": heartbeat,
        # What does no harm when it is run again survives one worker, whatever its timeouts say.
        "attempts": 1 if is_once else max(2, attempts),
    }


def temporal_activity(
    tools: type[Toolset[Any]], dispatch: Dispatcher[Any]
) -> Callable[..., Coroutine[Any, Any, dict[str, Any]]]:
    """The activity that runs calls in a worker, for `activities=` of `temporalio.worker.Worker`;
    its `workflows=` are `temporal_workflows()`.

    A call whose tool is another one here than where it was decided on is `failed`, and not run.
    One worker serves one toolset; another toolset has another task queue.

    Args:
        tools: The toolset.
        dispatch: The functions of its tools; closed by this.

    Raises:
        ImportError: temporalio is not installed.
        DeclarationError: the dispatcher doesn't cover the toolset. `TypeError`: it is for another.
    """
    _need_temporal("temporal_activity")
    check_dispatch(tools, dispatch)
    from lutumpy.durable.temporal_calls import make_activity

    return make_activity(partial(run_in_worker, tools=tools, dispatch=dispatch))


def temporal_workflows() -> list[type[Any]]:
    """The workflows that a worker needs besides `temporal_activity`: one, which runs a call.

    It is deterministic, and holds nothing but the ticket and the outcome of its call.

    Raises:
        ImportError: temporalio is not installed.
    """
    _need_temporal("temporal_workflows")
    from lutumpy.durable.temporal_calls import CallWorkflow

    return [CallWorkflow]


def _need_temporal(name: str) -> None:
    try:
        import temporalio.client  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{name} needs temporalio; install it with: "
            'python -m pip install ".[temporal]" (in a clone)'
        ) from error


def _unreachable(error: Exception) -> EngineError:
    return EngineError(
        f"the Temporal server can't be reached or refused the call: {error}; the round stays "
        "open in the store, and the next run finds what was begun"
    )


def _why(error: BaseException) -> str:
    """What became of a workflow that gave no outcome, for the model."""
    from temporalio.exceptions import CancelledError, TerminatedError

    cause: BaseException | None = error.__cause__
    while cause is not None:
        if isinstance(cause, (CancelledError, TerminatedError)):
            return "The tool was stopped by somebody before it gave an answer."
        cause = cause.__cause__
    return "The process that ran the tool ended before it gave an answer."
