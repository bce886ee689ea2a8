"""A loop and its worker in one process: `python engines_alone.py URL FOLDER [--workflow] ...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

if "--pysqlite3" in sys.argv:
    import pysqlite3  # a newer SQLite than the interpreter's

    sys.modules["sqlite3"] = pysqlite3
    sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import uuid

import anyio
from dbos import DBOS, DBOSPortableJSONSerializer, SetWorkflowID
from durable_toolkit import ANSWER, Model, asked, call, calls, results
from engines_tools import Desk, Notes, dispatcher

from lutumpy.durable import DbosRunner, DurableLoop, MemoryStore, serve_dbos
from lutumpy.errors import EngineError


def main() -> None:
    url, folder = sys.argv[1], Path(sys.argv[2])
    try:
        launch(url, folder)
    except EngineError as error:
        print(json.dumps({"error": type(error).__name__, "message": str(error)}))
        return
    print(json.dumps(anyio.run(talk, folder)))
    DBOS.destroy()


def launch(url: str, folder: Path) -> None:
    config: Any = {
        "name": "alone",
        "system_database_url": url,
        "application_version": "alone-calls",
        "executor_id": uuid.uuid4().hex,
        "log_level": "ERROR",
    }
    if "--pickle" not in sys.argv:
        config["serializer"] = DBOSPortableJSONSerializer()
    if "--no-dbos" not in sys.argv:
        DBOS(config=config)
    serve_dbos(Desk, dispatcher(Desk, folder))
    DBOS.listen_queues(["alone"])


async def talk(folder: Path) -> Any:
    store, scope = MemoryStore(), uuid.uuid4().hex
    await store.create(scope, asked())
    loop = DurableLoop(
        store,
        Model([calls(call("charge", "p1", amount=5)), ANSWER]),
        tools=Desk,
        dispatch=dispatcher(Desk, folder),
        runner=DbosRunner("alone"),
    )

    @DBOS.workflow(name="round")
    async def go_on(scope: str) -> str:
        return type(await loop.run(scope)).__name__

    DBOS.launch()
    await DBOS.register_queue_async("alone", polling_interval_sec=0.1)
    with anyio.fail_after(60):
        if "--workflow" in sys.argv:
            with SetWorkflowID(f"{scope}:1"):
                handle = await DBOS.start_workflow_async(go_on, scope)
            await handle.get_result()
        else:
            await loop.run(scope)
    steps = await DBOS.list_workflow_steps_async(f"{scope}:1")
    return {
        "said": results(await store.session(scope)),
        "steps": [step["function_name"] for step in steps],
        "charged": len(Notes(folder).read("charge")),
    }


if __name__ == "__main__":
    main()
