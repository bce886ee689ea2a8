"""Loops on real engines that are killed or stopped at named points, and workers that die in tools.

What must hold afterwards is what holds of local calls (P5 to P7): `test_crashes.py` has those. Here
each point costs seconds, so the session `engines` of nox tries a tenth of them, and `kills` all.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from durable_toolkit import ANSWER, asked, call, calls, results
from engines_toolkit import Site
from profiles import PROFILE

from lutumpy import Session
from lutumpy.durable import Answered
from lutumpy.models import ToolResults

pytestmark = pytest.mark.anyio

if not os.environ.get("LUTUMPY_NEED_ENGINES"):
    pytest.skip("the sessions engines and kills of nox have these", allow_module_level=True)

LOOP = Path(__file__).with_name("engines_loop.py")
SOME = 1 if PROFILE == "thorough" else 10
UNKNOWN = "may have taken effect"


@pytest.fixture
def anyio_backend() -> str:
    """The engines' packages know asyncio alone."""
    return "asyncio"


class Trial:
    """One conversation on an engine, and the processes that go on with it."""

    def __init__(self, site: Site, name: str, script: str = "every kind") -> None:
        self.site = site
        self.scope = f"{site.scope} {name}"
        self.script = script
        self.trail = site.folder / "trail"

    def start(self, **job: Any) -> subprocess.Popen[bytes]:
        site = self.site
        arguments = [site.engine, site.where, site.queue, str(site.folder), self.scope]
        written = json.dumps({"script": self.script, **job})
        return subprocess.Popen([sys.executable, str(LOOP), *arguments, written])

    async def run(self, **job: Any) -> int:
        """How a process ended that went on; negative for a signal."""
        process = self.start(**job)
        try:
            with anyio.fail_after(90):
                while process.poll() is None:  # it is another process
                    await anyio.sleep(0.02)
        finally:
            process.kill()
        return process.wait()

    def lines(self, what: str) -> list[dict[str, Any]]:
        if not self.trail.exists():
            return []
        lines = [json.loads(line) for line in self.trail.read_text().splitlines()]
        return [line for line in lines if line["what"] == what]

    async def faults(self, charged: Counter[int]) -> list[str]:
        """What is wrong with a conversation that is answered.

        Args:
            charged: How often each amount was charged in this trial.
        """
        session = await self.site.store.session(self.scope)
        faults = [f"{amount} was charged {n} times" for amount, n in charged.items() if n > 1]
        for call_id, amount, status, text in _charges(session):
            if status == "ok" and charged[amount] != 1:
                faults.append(f"{call_id} is ok, and was charged {charged[amount]} times")
            if status != "ok" and UNKNOWN not in text:
                faults.append(f"{call_id}: {text}")
        if not session.answered:
            faults.append("it isn't answered")
        return [f"{self.scope}: {fault}" for fault in faults]


def _charges(session: Session) -> list[tuple[str, int, str, str]]:
    """Every payment: its call, amount, status and text."""
    amounts = {
        call.id: json.loads(call.arguments)["amount"]
        for turn in session.turns()
        for call in turn.calls
        if call.name == "charge"
    }
    items = [item for item in session.transcript if isinstance(item, ToolResults)]
    answered = [result for item in items for result in item.results if result.call_id in amounts]
    return [(each.call_id, amounts[each.call_id], each.status, each.text) for each in answered]


def charged(site: Site, before: int = 0) -> Counter[int]:
    """How often each amount was charged, behind so many charges."""
    return Counter([line["amount"] for line in site.notes.read("charge")[before:]])


async def prepare(site: Site, name: str, script: str = "every kind") -> Trial:
    trial = Trial(site, name, script)
    await site.store.create(trial.scope, asked())
    return trial


async def test_a_loop_may_die_at_every_point_P1_P2_P3_P5_P6_P7(site: Site) -> None:
    site.start_worker()
    undisturbed = await prepare(site, "undisturbed")
    assert await undisturbed.run(how="list") == 0
    points = [line["name"] for line in undisturbed.lines("point")]
    assert len(points) > 30
    assert await undisturbed.faults(charged(site)) == []
    expected = [status for status, _ in results(await site.store.session(undisturbed.scope))]
    assert expected == ["ok"] * 4
    faults: list[str] = []
    # The first is that of the claim.
    for point in range(1 + SOME // 3, len(points) + 1, SOME):
        before = len(site.notes.read("charge"))
        trial = await prepare(site, f"point-{point}")
        ended = await trial.run(at=point)
        if ended != -signal.SIGKILL:
            faults.append(f"{point} {points[point - 1]}: ended by {ended}")
        if await trial.run() != 0:
            faults.append(f"{point} {points[point - 1]}: it didn't go on")
        faults += await trial.faults(charged(site, before))
        said = results(await site.store.session(trial.scope))
        # Whoever finds a call on the engine waits for it: only one that was marked and not yet
        # submitted is unknown.
        unknown = [text for _, text in said if UNKNOWN in text]
        if unknown and not points[point - 1].startswith("after begin call:"):
            faults.append(f"{point} {points[point - 1]}: {unknown}")
    assert faults == []


async def test_workers_may_die_before_and_after_an_effect_P5_P7(site: Site) -> None:
    """Each of them is replaced; what they ran is unknown, and is not run again."""
    trial = await prepare(site, "fatal", "fatal")
    loop = trial.start()
    with anyio.fail_after(120):
        async with anyio.create_task_group() as group:

            async def replace_workers() -> None:
                while True:
                    worker = await anyio.to_thread.run_sync(site.start_worker)
                    while worker.process.poll() is None:
                        await anyio.sleep(0.05)

            group.start_soon(replace_workers)
            while loop.poll() is None:
                await anyio.sleep(0.05)
            group.cancel_scope.cancel()
    assert loop.returncode == 0
    assert charged(site) == {13: 1, 5: 1}
    assert await trial.faults(charged(site)) == []
    said = results(await site.store.session(trial.scope))
    assert [status for status, _ in said] == ["error", "error", "ok"]
    assert len(await site.store.unresolved(trial.scope)) == 2


async def test_a_loop_that_sleeps_is_taken_over_and_writes_nothing_P4(site: Site) -> None:
    site.start_worker()
    faults: list[str] = []
    points = [12, 17, 22, 27] if PROFILE == "thorough" else [17]
    for point in points:
        before = len(site.notes.read("charge"))
        trial = await prepare(site, f"sleeper-{point}")
        sleeper = trial.start(how="stop", at=point)
        try:
            with anyio.fail_after(60):
                while not trial.lines("asleep"):
                    await anyio.sleep(0.02)
            if await trial.run() != 0:
                faults.append(f"{point}: the other didn't go on")
            os.kill(sleeper.pid, signal.SIGCONT)
            with anyio.fail_after(60):
                while sleeper.poll() is None:
                    await anyio.sleep(0.02)
        finally:
            sleeper.kill()
            sleeper.wait()
        if not trial.lines("taken over"):
            faults.append(f"{point}: nothing was refused to the sleeper")
        trial.trail.unlink()
        faults += await trial.faults(charged(site, before))
    assert faults == []


async def test_of_two_loops_at_once_one_goes_on_P2_P5(site: Site) -> None:
    site.start_worker()
    for number in range(5 if PROFILE == "thorough" else 1):
        before = len(site.notes.read("charge"))
        trial = await prepare(site, f"two-{number}")
        both = [trial.start(), trial.start(at=20)]  # one of them dies if it comes so far
        with anyio.fail_after(90):
            while any(process.poll() is None for process in both):
                await anyio.sleep(0.02)
        assert {process.returncode for process in both} <= {0, -signal.SIGKILL}
        assert await trial.faults(charged(site, before)) == []


async def test_a_tool_without_a_marker_has_a_double_effect_and_the_check_finds_it(
    site: Site,
) -> None:
    """The control: the same kill, in a tool that may run again."""
    first = site.start_worker()
    trial = await prepare(site, "control")
    async with anyio.create_task_group() as group:

        async def run() -> None:
            script = [calls(call("save", "s1", title="fatal")), ANSWER]
            done = await site.loop(script, await site.runner()).run(trial.scope)
            assert isinstance(done, Answered)

        group.start_soon(run)
        await site.notes.wait_for("save")
        await anyio.to_thread.run_sync(first.process.wait)
        await anyio.to_thread.run_sync(site.start_worker)
    saved = Counter([0 for _ in site.notes.read("save")])
    assert await trial.faults(saved) == [f"{trial.scope}: 0 was charged 2 times"]
