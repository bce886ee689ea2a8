"""A worker, to be killed: `python engines_worker.py temporal|dbos WHERE QUEUE FOLDER TOOLS LIMIT`.

It says `ready` once it takes calls.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import engines_tools

from lutumpy.durable import serve_dbos, temporal_activity, temporal_workflows


def main() -> None:
    engine, where, queue, folder, tools, limit = sys.argv[1:]
    toolset: Any = getattr(engines_tools, tools)
    dispatch = engines_tools.dispatcher(toolset, Path(folder))
    if engine == "temporal":
        asyncio.run(work_for_temporal(where, queue, toolset, dispatch, int(limit)))
    else:
        work_for_dbos(where, queue, toolset, dispatch, int(limit))


async def work_for_temporal(
    where: str, queue: str, toolset: Any, dispatch: Any, limit: int
) -> None:
    from temporalio.client import Client
    from temporalio.worker import Worker

    worker = Worker(
        await Client.connect(where),
        task_queue=queue,
        workflows=temporal_workflows(),
        activities=[temporal_activity(toolset, dispatch)],
        max_concurrent_activities=limit,
    )
    async with worker:
        print("ready", flush=True)
        await asyncio.Event().wait()


def work_for_dbos(where: str, queue: str, toolset: Any, dispatch: Any, limit: int) -> None:
    from dbos import DBOS, DBOSPortableJSONSerializer

    DBOS(
        config={
            "name": "desk",
            "system_database_url": where,
            "application_version": "calls",
            "executor_id": f"worker-{queue}",
            "serializer": DBOSPortableJSONSerializer(),
            "log_level": "ERROR",
        }
    )
    serve_dbos(toolset, dispatch)
    DBOS.listen_queues([queue])
    DBOS.launch()
    DBOS.register_queue(queue, worker_concurrency=limit, polling_interval_sec=0.1)
    print("ready", flush=True)
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
