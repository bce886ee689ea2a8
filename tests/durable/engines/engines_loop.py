"""A loop, to be killed: `python engines_loop.py temporal|dbos WHERE QUEUE FOLDER SCOPE`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import anyio
from durable_toolkit import ANSWER, call, calls
from engines_toolkit import Site


async def main() -> None:
    engine, where, queue, folder, scope = sys.argv[1:]
    site = Site(engine, where, Path(folder))
    site.queue, site.scope = queue, scope
    script = [calls(call("charge", "p1", amount=20)), ANSWER]
    await site.loop(script, await site.runner(), lease=1.0).run(scope)


if __name__ == "__main__":
    anyio.run(main)
