"""Calls on DBOS's queues: `DbosRunner` for the loop, `serve_dbos` for the workers.

Needs the `dbos` extra, and a Postgres database or SQLite 3.42.
"""

# A step of DBOS is run at least once: it is recorded after it has ended, so one whose process is
# killed is run again, and nobody can tell. A `once` call therefore has a step before it, its
# marker, which holds the id of this execution of the workflow:
#
#   begin   recorded before the tool starts: the id of the execution that begins it
#   tool    runs it, if that id is this execution's own; else the outcome is `maybe_executed`
#
# An execution that takes the place of a killed one gets the other's id from the first step. If the
# tool had ended, the second step is recorded as well, and its outcome is used.
#
# The loop talks to the database from threads and outside any workflow: what it asks would otherwise
# be steps of the caller's workflow, and their number depends on what is in the store.

from __future__ import annotations

import math
import sqlite3
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel

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
    from dbos import DBOSClient
    from pydantic import JsonValue

__all__ = ["DbosRunner", "serve_dbos"]

T = TypeVar("T")

_ENDED = {"SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"}
# How long is waited for the next look at a call: a tenth of the time that it has taken so far. So
# whoever waits learns of its end late by a tenth at most, and a long call isn't asked about often.
_SHORTEST_PAUSE = 0.01
_LONGEST_PAUSE = 1.0
_PART_OF_TIME = 0.1
_LOWEST_SQLITE = (3, 42)
# How often a call is begun again whose worker was lost; the same as `max_attempts` of a loop. Its
# hundred would let a tool that kills its process end a hundred workers.
_MOST_RECOVERIES = 10
_KEPT_OPEN = "the round stays open in the store, and the next run finds what was queued"


class DbosRunner:
    """Runs calls on workers that listen to a queue of DBOS: the `runner=` of a `DurableLoop`.

    Each call is a workflow of its own, with the id `call:<key>`, which a second loop finds again. A
    worker that dies in the middle of a `once` call makes it `maybe_executed`; other calls are run
    again, ten times at most, and are `failed` then. How many run at once, and at which rate, is set
    with `DBOS.register_queue`. DBOS recovers the work of a killed worker when one with the same
    executor id and the same application version is started, so give workers a fixed `executor_id`
    and `application_version`.

    Cancelling the loop cancels its calls in DBOS, which lets a running step end: a `once` call that
    gave no result is `maybe_executed` then, and the next run resumes the others. Killing it leaves
    them on the queue, where the next run finds them.

    Args:
        queue: The name of the queue.
        client: How the database is reached; with `retry_connection_errors=False` one that is gone
            is noticed at once. Without a client the process's own DBOS is used, which has to be
            launched; it takes calls from the queue itself then, so it needs `serve_dbos` too, or
            `DBOS.listen_queues`.
        patience: Seconds that the database may need for an answer, before it counts as gone.

    Raises:
        ImportError: dbos is not installed.
        EngineError: the database is SQLite, and this Python has one that is too old for DBOS.
        TypeError: an argument is of the wrong type. `ValueError`: `patience` is not positive.
    """

    def __init__(
        self, queue: str = "tools", client: DBOSClient | None = None, *, patience: float = 30.0
    ) -> None:
        _need_dbos("DbosRunner")
        if not isinstance(queue, str):
            raise TypeError(f"queue= is the name of a queue, not {type(queue).__name__}")
        if client is not None and not callable(getattr(client, "enqueue", None)):
            raise TypeError(f"client= takes a DBOSClient, not {type(client).__name__}")
        if isinstance(patience, bool) or not isinstance(patience, (int, float)):
            raise TypeError(f"patience= is a number of seconds, not {type(patience).__name__}")
        if not 0 < patience < math.inf:
            raise ValueError(f"patience={patience} is not a positive number of seconds")
        if client is not None:
            _check_sqlite(_dialect(client))
        self._queue = queue
        self._client = client
        self._patience = float(patience)

    async def run(
        self, tickets: Sequence[CallTicket], journal: RoundJournal
    ) -> list[ExecutionResult]:
        """Run calls on the workers; one result for each ticket, in order.

        It waits as long as no worker listens.

        Raises:
            EngineError: the database can't be reached, or isn't one of DBOS. The round stays open,
                and the next run finds what was queued.
            TakenOverError: another process has taken the conversation over.
        """
        return await run_on_engine(
            _Dbos(self._queue, self._client, self._patience), tickets, journal
        )

    def __repr__(self) -> str:
        return f"<DbosRunner on the queue {self._queue!r}>"


class _Dbos:
    """The engine of a `DbosRunner`."""

    def __init__(self, queue: str, client: DBOSClient | None, patience: float) -> None:
        from dbos import DBOS

        self._queue = queue
        home: Any = client or DBOS
        self._list: Callable[..., Any] = home.list_workflows
        self._cancel: Callable[..., Any] = home.cancel_workflow
        self._resume: Callable[..., Any] = home.resume_workflow
        self._enqueue: Callable[..., Any] = (
            DBOS.enqueue_workflow_with_options if client is None else client.enqueue
        )
        self._patience = patience

    async def has(self, ticket: CallTicket) -> bool:
        return await self._find(ticket) is not None

    async def run(self, ticket: CallTicket) -> ExecutionResult:
        from dbos import WorkflowSerializationFormat

        options = {
            "workflow_name": WORKFLOW,
            "queue_name": self._queue,
            "workflow_id": engine_id(ticket),
            "serialization_type": WorkflowSerializationFormat.PORTABLE,
        }
        # An id that is there already is found, and nothing is queued.
        await self._ask(partial(self._enqueue, options, ticket.dump()))
        began, was_resumed = anyio.current_time(), ticket.effect == "once"
        while True:
            pause = _PART_OF_TIME * (anyio.current_time() - began)
            await anyio.sleep(min(max(pause, _SHORTEST_PAUSE), _LONGEST_PAUSE))
            found = await self._find(ticket)
            if found is None:
                return lost(ticket, "The engine that should have run the tool has forgotten it.")
            if found.status == "SUCCESS":
                return read_outcome(found.output, ticket)
            if found.status == "CANCELLED" and not was_resumed:
                # By an earlier run, when that was cancelled.
                await self._ask(partial(self._resume, engine_id(ticket), queue_name=self._queue))
            elif found.status in _ENDED:
                return lost(ticket, "The tool was stopped before it gave an answer.")
            was_resumed = True

    async def stop(self, ticket: CallTicket) -> ExecutionResult | None:
        found = await self._find(ticket)
        if found is not None and found.status == "SUCCESS":
            return read_outcome(found.output, ticket)
        await self._ask(partial(self._cancel, engine_id(ticket)))
        return None

    async def _find(self, ticket: CallTicket) -> Any:
        ids = [engine_id(ticket)]
        found = await self._ask(partial(self._list, workflow_ids=ids, load_input=False))
        return found[0] if found else None

    async def _ask(self, work: Callable[[], T]) -> T:
        """Ask the database in a thread, outside whatever workflow the caller may be in."""
        try:
            with anyio.fail_after(self._patience):
                return await _in_thread(partial(Context().run, work))
        except TimeoutError as error:
            raise EngineError(
                f"the database of DBOS gave no answer in {self._patience:g} seconds; {_KEPT_OPEN}"
            ) from error
        except Exception as error:
            raise EngineError(
                f"the database of DBOS can't be used: {type(error).__name__}: {error}; {_KEPT_OPEN}"
            ) from error


async def _in_thread(work: Callable[[], T]) -> T:
    """Do some work in a thread that doesn't keep the process alive.

    DBOS tries for ever where its database is gone, unless it is configured not to.
    """
    token, done = anyio.lowlevel.current_token(), anyio.Event()
    results: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failed.append(error)
        with suppress(RuntimeError):  # nobody waits, and the event loop is gone
            anyio.from_thread.run_sync(done.set, token=token)

    threading.Thread(target=run, name="lutumpy-dbos", daemon=True).start()
    await done.wait()
    if failed:
        raise failed[0]
    return results[0]


def serve_dbos(tools: type[Toolset[Any]], dispatch: Dispatcher[Any]) -> None:
    """Let this process run calls of a toolset; between `DBOS(config=...)` and `DBOS.launch()`.

    Give DBOS a fixed `application_version` and `executor_id`, and
    `serializer=DBOSPortableJSONSerializer()`; declare the queue with `DBOS.register_queue` after
    the launch. The page about engines has the whole program.

    A call whose tool is another one here than where it was decided on is `failed`, and not run; so
    the application version may stay the same over releases. A process serves one toolset.

    Args:
        tools: The toolset.
        dispatch: The functions of its tools; closed by this.

    Raises:
        ImportError: dbos is not installed.
        EngineError: there is no DBOS yet; its serializer is pickle, which would run code from
            the database; or its database is SQLite, and this Python has one that is too old.
        DeclarationError: the dispatcher doesn't cover the toolset. `TypeError`: it is for another.
    """
    _need_dbos("serve_dbos")
    check_dispatch(tools, dispatch)
    _check_configuration()
    from dbos import DBOS, WorkflowSerializationFormat

    work = partial(run_in_worker, tools=tools, dispatch=dispatch)

    @DBOS.workflow(
        name=WORKFLOW,
        max_recovery_attempts=_MOST_RECOVERIES,
        serialization_type=WorkflowSerializationFormat.PORTABLE,
    )
    async def run_call(data: dict[str, Any]) -> dict[str, Any]:
        ticket = CallTicket.load(data)
        begin, tool = DBOS.reserve_step(), DBOS.reserve_step()
        mine = uuid.uuid4().hex
        owner = mine
        if ticket.effect == "once":
            owner = await begin.run_async({"name": "lutumpy.begin"}, _same, mine)
        # Where this is recorded, the record is returned and nothing below is run.
        return await tool.run_async(
            {"name": "lutumpy.tool"}, _run_if_mine, data, work, owner == mine
        )


def _same(execution: str) -> str:
    """What the marker holds."""
    return execution


async def _run_if_mine(data: Mapping[str, Any], work: Any, is_mine: bool) -> dict[str, JsonValue]:
    if is_mine:
        outcome: dict[str, JsonValue] = await work(data)
        return outcome
    ended = "The process that ran the tool ended before it gave an answer."
    return lost(CallTicket.load(data), ended).dump()


def _need_dbos(name: str) -> None:
    try:
        import dbos  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f'{name} needs dbos; install it with: python -m pip install ".[dbos]" (in a clone)'
        ) from error


def _check_configuration() -> None:
    """Refuse what would only be noticed when the first call runs."""
    # DBOS has no public way to ask; what can't be found out isn't refused.
    import dbos._dbos as home

    instance = getattr(home, "_dbos_global_instance", None)
    if instance is None:
        raise EngineError("serve_dbos comes after DBOS(config=...); nothing is served")
    serializer = getattr(instance, "_serializer", None)
    if serializer is not None and serializer.name() == "py_pickle":
        raise EngineError(
            "DBOS would keep the outcomes of calls as pickle, which runs any code in the "
            "database; give it serializer=DBOSPortableJSONSerializer(); nothing is served"
        )
    config = getattr(instance, "_config", None) or {}
    url = config.get("system_database_url") or config.get("database_url") or ""
    _check_sqlite(str(url).partition(":")[0])


def _dialect(client: DBOSClient) -> str:
    engine = getattr(getattr(client, "_sys_db", None), "engine", None)
    return str(getattr(getattr(engine, "dialect", None), "name", ""))


def _check_sqlite(dialect: str) -> None:
    if dialect.startswith("sqlite") and sqlite3.sqlite_version_info < _LOWEST_SQLITE:
        raise EngineError(
            f"DBOS on SQLite needs SQLite 3.42, and this Python has {sqlite3.sqlite_version}: use "
            "Postgres, or a Python that was built with a newer SQLite"
        )
