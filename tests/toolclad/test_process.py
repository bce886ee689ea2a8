"""A program runs within its limits, and nothing of it is left, whatever happens."""

from __future__ import annotations

import contextlib
import os
import tracemalloc
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from clad_toolkit import BACKENDS, Workshop, call, run, run_all, told, wait_until

from lutumpy import ToolMetadata
from lutumpy.execution import ExecutionReport, ToolExecutor
from lutumpy.toolclad import CladTools

pytestmark = pytest.mark.parametrize("backend", BACKENDS)

# It ignores SIGTERM, as does its child, and both say who they are.
STUBBORN = """\
trap '' TERM
echo so far
echo and errors >&2
sh -c 'trap "" TERM; echo $$ > child; while :; do sleep 0.05; done' &
echo $$ > parent
while :; do sleep 0.05; done"""


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    # A process that ended and that nobody has asked for yet (its parent is gone) runs no more.
    with contextlib.suppress(OSError):
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def children_of_this_process() -> set[int]:
    """With those that ended and were not waited for; where there is no `/proc`, none are found."""
    children = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            process, rest = status.read_text().split(" (", 1)
            parent = rest.rpartition(") ")[2].split()[1]
            if int(parent) == os.getpid():
                children.add(int(process))
    return children


def pids(workshop: Workshop) -> list[int]:
    return [int((workshop.place / name).read_text()) for name in ("parent", "child")]


def began(workshop: Workshop) -> bool:
    files = [workshop.place / name for name in ("parent", "child")]
    return all(file.exists() and file.read_text().endswith("\n") for file in files)


def assert_gone(workshop: Workshop) -> None:
    for pid in pids(workshop):
        wait_until(lambda pid=pid: not is_alive(pid))  # type: ignore[misc]


def test_what_takes_too_long_is_killed_with_its_children(workshop: Workshop, backend: str) -> None:
    kept: list[Any] = []
    workshop.write("stay", [workshop.program("stay", STUBBORN)])
    clad = workshop.load(timeout=0.5, evidence=lambda name, envelope: kept.append(envelope))
    result = run(clad, "stay", {}, backend=backend)
    assert_gone(workshop)
    assert result.outcome == "failed"
    answer = told(result)
    assert (answer["status"], answer["exit_code"]) == ("timeout", -1)
    assert "may have taken effect in part" in answer["results"]["error"]
    assert answer["results"]["raw_output"] == "so far\n"
    assert answer["results"]["stderr"] == "and errors\n"
    assert kept[0]["status"] == "timeout"


def test_what_takes_too_long_may_end_by_itself_after_sigterm(
    workshop: Workshop, backend: str
) -> None:
    script = "trap 'echo bye; exit 3' TERM\necho hello\nwhile :; do sleep 0.02; done"
    workshop.write("stay", [workshop.program("stay", script)])
    answer = told(run(workshop.load(timeout=0.3), "stay", {}, backend=backend))
    assert answer["status"] == "timeout"
    assert answer["results"]["raw_output"] == "hello\nbye\n"
    assert answer["duration_ms"] < 1200


@pytest.mark.parametrize("seconds", [1, 30])
def test_the_smaller_of_the_two_times_counts(
    workshop: Workshop, backend: str, seconds: int
) -> None:
    workshop.write("stay", ["sleep", "20"], tool={"timeout_seconds": seconds})
    clad = workshop.load(timeout=30 if seconds == 1 else 0.2)
    most = 1.0 if seconds == 1 else 0.2
    assert clad.manifests["stay"].timeout == most
    # The tool's own time is longer: the program is stopped by its own, which leaves evidence.
    (tool,) = clad.tools
    assert tool.definition.options.timeout == most + 5
    if seconds != 1:
        assert told(run(clad, "stay", {}, backend=backend))["status"] == "timeout"


def test_a_cancelled_caller_leaves_nothing_running(workshop: Workshop, backend: str) -> None:
    kept: list[Any] = []

    async def keep(name: str, envelope: Any) -> None:
        await anyio.lowlevel.checkpoint()  # a cancelled caller still keeps what has run
        kept.append(envelope)

    workshop.write("stay", [workshop.program("stay", STUBBORN)])
    clad = workshop.load(evidence=keep)
    report = ExecutionReport()

    async def give_up() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(wait_and_cancel, group.cancel_scope)
            await ToolExecutor().run([call(clad, "stay", {})], clad.dispatch, report=report)

    async def wait_and_cancel(scope: anyio.CancelScope) -> None:
        await anyio.to_thread.run_sync(wait_until, lambda: began(workshop))
        scope.cancel()

    anyio.run(give_up, backend=backend)
    assert_gone(workshop)
    assert report.calls[0].outcome == "maybe_executed"
    assert [envelope["status"] for envelope in kept] == ["interrupted"]
    assert kept[0]["results"]["raw_output"] == "so far\n"


def test_children_that_outlive_their_program_are_killed(workshop: Workshop, backend: str) -> None:
    script = "sh -c 'echo $$ > child; while :; do sleep 0.05; done' &\necho $$ > parent\n"
    script += "while [ ! -s child ]; do :; done\necho done"
    workshop.write("start", [workshop.program("start", script)])
    answer = told(run(workshop.load(timeout=30), "start", {}, backend=backend))
    assert (answer["status"], answer["results"]) == ("success", {"raw_output": "done\n"})
    assert_gone(workshop)


def test_a_child_that_left_the_group_cannot_hold_the_call(workshop: Workshop, backend: str) -> None:
    script = "setsid sh -c 'echo $$ > child; exec sleep 30' &\n"
    script += "while [ ! -s child ]; do :; done\necho done"
    workshop.write("start", [workshop.program("start", script)])
    try:
        answer = told(run(workshop.load(timeout=20), "start", {}, backend=backend))
        assert (answer["status"], answer["results"]) == ("success", {"raw_output": "done\n"})
        assert answer["duration_ms"] < 10_000
    finally:
        os.kill(int((workshop.place / "child").read_text()), 9)


def test_output_without_end_costs_no_memory(workshop: Workshop, backend: str) -> None:
    workshop.write("flood", ["head", "-c", "{size}", "/dev/zero"], {"size": {"type": "integer"}})
    clad = workshop.load(max_output=1000)
    run(clad, "flood", {"size": 10}, backend=backend)  # what is made once
    tracemalloc.start()
    answer = told(run(clad, "flood", {"size": 30_000_000}, backend=backend))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000
    assert answer["status"] == "success"
    raw = answer["results"]["raw_output"]
    assert raw.startswith("\0" * 1000 + "\n[the output has 30000000 bytes;")


def test_errors_without_end_cost_no_memory(workshop: Workshop, backend: str) -> None:
    script = "head -c 3000000 /dev/zero >&2\nexit 1"
    workshop.write("flood", [workshop.program("flood", script)])
    answer = told(run(workshop.load(max_output=1000), "flood", {}, backend=backend))
    assert len(answer["results"]["stderr"]) == 1000


def test_output_is_cut_between_characters(workshop: Workshop, backend: str) -> None:
    workshop.write("say", ["printf", "%s", "ä€😀ä€😀"])
    for most in range(1, 19):
        answer = told(run(workshop.load(max_output=most), "say", {}, backend=backend))
        raw = answer["results"]["raw_output"].partition("\n")[0]
        assert "ä€😀ä€😀".startswith(raw)
        assert len(raw.encode()) <= most < len(raw.encode()) + 4


def test_a_program_has_its_own_place_no_input_and_no_terminal(
    workshop: Workshop, backend: str
) -> None:
    script = "pwd\ncat\n(: > /dev/tty) 2>/dev/null && echo terminal\nls /dev/fd/"
    workshop.write("look", [workshop.program("look", script)])
    lines = told(run(workshop.load(), "look", {}, backend=backend))["results"]["raw_output"].split()
    assert lines[0] == str(workshop.place.resolve())
    assert lines[1:] == ["0", "1", "2", "3"]  # the last one is the folder that `ls` reads


def test_variables_are_those_that_were_given(
    workshop: Workshop, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALLOWED", "yes")
    monkeypatch.setenv("OTHER", "no")
    monkeypatch.setenv("PATH", f".:bin:{os.environ['PATH']}:")
    workshop.write("show", ["env"])
    clad = workshop.load(inherit=["ALLOWED", "MISSING"], environment={"MORE": "ä", "TZ": "UTC"})
    monkeypatch.setenv("ALLOWED", "changed later")
    raw = told(run(clad, "show", {}, backend=backend))["results"]["raw_output"]
    found = dict(line.split("=", 1) for line in raw.splitlines())
    assert (found["ALLOWED"], found["MORE"], found["TZ"]) == ("yes", "ä", "UTC")
    assert "OTHER" not in found
    assert all(folder.startswith("/") for folder in found["PATH"].split(":"))


def test_a_program_that_is_gone_meanwhile_is_a_failed_call(
    workshop: Workshop, backend: str
) -> None:
    workshop.write("act", [workshop.program("act", "echo hi")])
    clad = workshop.load()
    (workshop.place / "act").unlink()
    answer = told(run(clad, "act", {}, backend=backend))
    assert (answer["status"], answer["exit_code"]) == ("error", -1)
    assert answer["results"] == {
        "error": "the program could not be started (FileNotFoundError); it did not run"
    }


def test_many_programs_run_at_once(workshop: Workshop, backend: str) -> None:
    workshop.write("say", ["printf", "%s", "{n}"], {"n": {"type": "integer"}})
    clad = workshop.load()
    calls = [call(clad, "say", {"n": n}) for n in range(60)]
    results = run_all(clad, calls, backend=backend, max_concurrency=20)
    assert [told(one)["results"]["raw_output"] for one in results] == [str(n) for n in range(60)]


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="it is so here")
def test_systems_without_waitid_are_served(
    workshop: Workshop, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "waitid")
    script = "sh -c 'echo $$ > child; while :; do sleep 0.05; done' &\necho $$ > parent\n"
    script += "while [ ! -s child ]; do :; done\necho done"
    workshop.write("start", [workshop.program("start", script)])
    assert told(run(workshop.load(), "start", {}, backend=backend))["status"] == "success"
    assert_gone(workshop)


def test_a_signal_that_ends_a_program_is_its_exit_code(workshop: Workshop, backend: str) -> None:
    workshop.write("die", [workshop.program("die", "kill -9 $$")])
    answer = told(run(workshop.load(), "die", {}, backend=backend))
    assert (answer["status"], answer["exit_code"]) == ("error", -9)


async def run_directly(clad: CladTools) -> Any:
    (tool,) = clad.tools
    assert tool.run is not None
    return await tool.run({}, metadata=ToolMetadata("call_1", tool.name, "{}"))


def test_an_interrupted_run_is_reaped(workshop: Workshop, backend: str) -> None:
    """Also where nobody but the event loop is left: no zombie, no open pipe."""
    workshop.write("stay", ["sleep", "20"])
    clad = workshop.load()

    async def give_up() -> None:
        with anyio.move_on_after(0.05):
            await run_directly(clad)

    # Processes that other tests started, such as a server, may be children of this one as well.
    children = children_of_this_process()
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for _ in range(3):
        anyio.run(give_up, backend=backend)
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before
    assert children_of_this_process() <= children
