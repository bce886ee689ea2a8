"""Counts of work that are the same on every machine, held to what `counts.json` says.

`python counts.py` counts and compares, and exits with 1 where a count differs; `--write` writes
what was counted. A change that raises a count says so by changing the file, and one that lowers a
count writes it down too, so that it can't creep back.

Counted are functions of this package that are entered, functions of any kind that are called,
modules that an import loads, bytes, and blocks of memory that stay. Rounds are counted ten and
twenty at a time, and the difference is given for one of them, so that what happens once drops out.
Some counts differ between versions of Python, so each version has its own; without any for the
running one, nothing is compared.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import bench_durable
import bench_round
import workloads
from pydantic_core import to_json

from lutumpy import Session
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.durable import DurableLoop, MemoryStore
from lutumpy.testing import Reply, ScriptedModel

FILE = Path(__file__).with_suffix(".json")
APIS = tuple(workloads.ADAPTERS)
VERSION = "{}.{}".format(*sys.version_info)

Counts = dict[str, int]
"""What was counted, by what it is."""


# --- modules -----------------------------------------------------------------------------------

STATEMENTS = {
    "import lutumpy": "import lutumpy",
    **{
        f"import {adapter.__name__}": f"from {adapter.__module__.rpartition('.')[0]} import "
        f"{adapter.__name__}"
        for adapter in workloads.ADAPTERS.values()
    },
}


def count_modules() -> Counts:
    """Modules of this package that a fresh interpreter has loaded."""
    found = {}
    for name, statement in STATEMENTS.items():
        code = f"{statement}; import sys; print(sum(n[:8] == 'lutumpy.' for n in sys.modules))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        found[f"{name}: modules"] = int(done.stdout)
    return found


# --- calls -------------------------------------------------------------------------------------


async def calls_in(work: Callable[[], Awaitable[object]]) -> tuple[int, int]:
    """Functions of this package that the work enters, and all functions that it calls."""
    ours = calls = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal ours, calls
        if event == "c_call":
            calls += 1
        elif event == "call":
            calls += 1
            module = str(frame.f_globals.get("__name__"))
            # What answers in a model's place is not the library's work.
            ours += module.startswith("lutumpy") and not module.startswith("lutumpy.testing")

    sys.setprofile(profile)
    try:
        await work()
    finally:
        sys.setprofile(None)
    return ours, calls


def calls_of(prepare: Callable[[], Callable[[], Awaitable[object]]]) -> tuple[int, int]:
    """The same of prepared work, after it ran once: caches are warm."""
    asyncio.run(_awaited(prepare()))
    work = prepare()
    gc.collect()
    gc.disable()
    try:
        return asyncio.run(calls_in(work))
    finally:
        gc.enable()


async def _awaited(work: Callable[[], Awaitable[object]]) -> None:
    await work()


def count_tools() -> Counts:
    """Declaring, rendering again and decoding, for one tool or call."""
    found = {}
    ours, _ = calls_of(workloads.prepare_declaring)
    found["declare a tool and render it for Chat: our functions"] = round(ours / workloads.TOOLS)
    for api in APIS:
        _, calls = calls_of(partial(workloads.prepare_rendering, api))
        found[f"render 100 tools again, {api}: calls"] = calls
    for size in (1, workloads.TOOLS):
        ours, _ = calls_of(partial(workloads.prepare_decoding, size))
        found[f"decode 1000 calls of {size} tools: our functions"] = ours
    return found


def prepare_durable_rounds(rounds: int) -> workloads.Work:
    """Rounds of a durable loop with three `once` calls each."""
    replies = [Reply(calls=bench_durable.payments(number)) for number in range(rounds)]
    llm = ScriptedModel([*replies, Reply(text="done")], check=False)
    tools, dispatch, store = bench_durable.Desk, bench_durable.DISPATCH, MemoryStore()
    loop = DurableLoop(store, llm, tools=tools, dispatch=dispatch, max_rounds=rounds + 1)

    async def work() -> object:
        await store.create("s", bench_durable.begun())
        return await loop.run("s")

    return work


def count_rounds() -> Counts:
    """A round on the double and over an SDK's client, with a hook for its calls; a durable one."""
    found = {}
    for kind in ("double", "openai", "anthropic"):
        for width in (1, 8):
            ten, twenty = [
                calls_of(partial(workloads.prepare_rounds, kind, width, rounds, 0))[0]
                for rounds in (10, 20)
            ]
            found[f"round of {width} calls, {kind}: our functions"] = (twenty - ten) // 10
    ten, twenty = [calls_of(partial(prepare_durable_rounds, rounds))[0] for rounds in (10, 20)]
    found["durable round of 3 once calls, in memory: our functions"] = (twenty - ten) // 10
    for name, prepare in (("dump", workloads.prepare_dump), ("load", workloads.prepare_load)):
        ten, twenty = [calls_of(partial(prepare, rounds))[0] for rounds in (10, 20)]
        found[f"{name} a round: our functions"] = (twenty - ten) // 10
    return found


# --- bytes and blocks --------------------------------------------------------------------------


def count_bytes() -> Counts:
    """What a round adds to a request and to a dump, and a tool to a request."""
    found = {}
    offer = workloads.declare(workloads.make_functions(workloads.TOOLS)).offer()
    for api, adapter in workloads.ADAPTERS.items():
        found[f"100 tools, {api}: bytes"] = len(to_json(adapter.tools(offer)))
    dumps = [
        len(to_json(asyncio.run(workloads.long_session(rounds)).dump())) for rounds in (10, 20)
    ]
    found["a round in a dump: bytes"] = (dumps[1] - dumps[0]) // 10
    return found


def blocks_of(make: Callable[[], object]) -> int:
    """Blocks of memory that what `make` returns holds: the fewest of three times, since a cache may
    grow meanwhile, or a block be left of something else.
    """
    return min([_blocks_once(make) for _ in range(3)])


def _blocks_once(make: Callable[[], object]) -> int:
    make()  # fills caches
    gc.collect()
    before = sys.getallocatedblocks()
    kept = make()
    gc.collect()
    after = sys.getallocatedblocks()
    del kept
    return after - before


def count_blocks() -> Counts:
    """Blocks of memory that stay for a committed round, and for a declared tool."""

    def session(rounds: int) -> Session:
        replies = bench_round.answers("openai_chat", 1, rounds)
        llm = ScriptedModel(replies, check=False, keep=1)
        return asyncio.run(bench_round.lutumpy_loop(llm))

    def declared(count: int) -> Any:
        tools = workloads.declare(workloads.make_functions(count))
        return tools, OpenAIChat.tools(tools.offer())

    rounds = blocks_of(lambda: session(120)) - blocks_of(lambda: session(20))
    tools = blocks_of(lambda: declared(120)) - blocks_of(lambda: declared(20))
    return {
        "a committed round: blocks": round(rounds / 100),
        "a declared tool: blocks": round(tools / 100),
    }


# --- the file ----------------------------------------------------------------------------------


def count_all() -> Counts:
    """Everything that is counted."""
    return {
        **count_modules(),
        **count_tools(),
        **count_rounds(),
        **count_bytes(),
        **count_blocks(),
    }


def differences(counted: Counts, written: Counts) -> list[str]:
    """What differs from the file, a line for each count."""
    names = dict.fromkeys([*counted, *written])
    return [
        f"{name}: {written.get(name)} is written, {counted.get(name)} was counted"
        for name in names
        if written.get(name) != counted.get(name)
    ]


def main(arguments: list[str]) -> int:
    """See the top of this file."""
    written = json.loads(FILE.read_text())
    if arguments != ["--write"] and VERSION not in written:
        print(f"no counts are written for Python {VERSION}")
        return 0
    counted = count_all()
    differing = differences(counted, written.get(VERSION, {}))
    print("\n".join(differing) or f"{len(counted)} counts are as written for Python {VERSION}")
    if arguments == ["--write"]:
        FILE.write_text(json.dumps({**written, VERSION: counted}, indent=2) + "\n")
        return 0
    if differing:
        print("Counts that are meant to be so are written by: nox -s counts -- --write")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
