"""A loop, to be killed: `python engines_loop.py temporal|dbos WHERE QUEUE FOLDER SCOPE [JOB]`.

With a job (JSON: `script`, `at`, `how`) it kills or stops itself at a numbered point, as those of
`crash_worker.py` do: before and after each write to the store, each request to the model and each
thing that the engine is asked. `how="list"` writes the names of its points to the trail.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import anyio
from crash_worker import CountingModel, WatchedStore, World
from durable_toolkit import ANSWER, Model, call, calls
from engines_toolkit import KILL_SCRIPTS, Site
from engines_tools import Desk, dispatcher

from lutumpy import TakenOverError
from lutumpy.durable import Answered, DurableLoop


async def main() -> None:
    engine, where, queue, folder, scope, *job = sys.argv[1:]
    site = Site(engine, where, Path(folder))
    site.queue, site.scope = queue, scope
    if not job:
        script = [calls(call("charge", "p1", amount=20)), ANSWER]
        await site.loop(script, await site.runner(), lease=1.0).run(scope)
        return
    await go_on(site, json.loads(job[0]))


async def go_on(site: Site, job: dict[str, Any]) -> None:
    """Go on with the conversation until it is answered, or this process ends at its point."""
    world = World({**job, "trail": str(site.folder / "trail")})
    model: Model = CountingModel(KILL_SCRIPTS[job["script"]](), world, site.scope)
    loop: DurableLoop[Any, Any] = DurableLoop(
        WatchedStore(site.store, world),  # type: ignore[arg-type]
        model,  # type: ignore[arg-type]
        tools=Desk,
        dispatch=dispatcher(Desk, site.folder),
        runner=await site.runner(),
        lease=1.0,
        max_attempts=None,
    )
    while True:
        try:
            done = await loop.run(site.scope)
        except TakenOverError:
            world.write("taken over")
            continue
        if isinstance(done, Answered):
            world.write("answered")
            return
        await anyio.sleep(0.05)


if __name__ == "__main__":
    anyio.run(main)
