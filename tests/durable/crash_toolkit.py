"""What the tests of crashes share: processes that work for them, and what must hold afterwards."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import anyio
from stores_toolkit import open_store

from lutumpy import Session
from lutumpy.durable import Claim, Counts, Taken
from lutumpy.models import ToolResults

T = TypeVar("T")

WORKER = Path(__file__).parent / "crash_worker.py"
KILLED = (-int(signal.SIGKILL), -int(signal.SIGALRM))
"""How a process ends at its point, and at its moment."""
LEASE = 0.15
"""Seconds. Long enough to be renewed on a busy machine; nothing but waiting depends on it."""

UNKNOWN = "may have taken effect"


class Worker:
    """A process that makes a child for each job (`crash_worker.py`)."""

    def __init__(self) -> None:
        # The workers are not measured: they run the library as other tests do, and die.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_")}
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def start(self, job: dict[str, Any]) -> int:
        """Begin a job; gives the process that does it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        pid: int = self._read()["pid"]
        return pid

    def wait(self) -> int | None:
        """How the job's process ended: its exit code, negative for a signal; `None`: it sleeps."""
        told = self._read()
        return None if "stopped" in told else told["ended"]

    def do(self, job: dict[str, Any]) -> int | None:
        self.start(job)
        return self.wait()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the worker is gone"
        told: dict[str, Any] = json.loads(line)
        return told

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


class Workers:
    """Several workers, and threads in which trials go on at the same time."""

    def __init__(self, count: int) -> None:
        self._all = [Worker() for _ in range(count)]
        self._free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for worker in self._all:
            self._free.put(worker)
        self._count = count

    @contextmanager
    def take(self) -> Iterator[Worker]:
        worker = self._free.get()
        try:
            yield worker
        finally:
            self._free.put(worker)

    def map(
        self, trial: Callable[[T], list[str]], over: Sequence[T], *, each: int = 1
    ) -> list[str]:
        """The faults of all trials, each of which takes so many workers."""
        with ThreadPoolExecutor(self._count // each) as pool:
            return [fault for faults in pool.map(trial, over) for fault in faults]

    def close(self) -> None:
        for worker in self._all:
            worker.close()


@dataclass
class Trial:
    """One conversation that processes work on until it is answered."""

    kind: str
    place: str
    trail: Path
    scope: str = "s"
    job: dict[str, Any] = field(default_factory=dict)

    def make_job(self, **more: Any) -> dict[str, Any]:
        own = {"kind": self.kind, "place": self.place, "trail": str(self.trail)}
        return {**own, "scope": self.scope, "lease": LEASE, **self.job, **more}

    def lines(self, what: str) -> list[dict[str, Any]]:
        return [line for line in self.all_lines() if line["what"] == what]

    def all_lines(self) -> list[dict[str, Any]]:
        if not self.trail.exists():
            return []
        return [json.loads(line) for line in self.trail.read_text().splitlines()]

    def read(self) -> tuple[Session, Counts]:
        """What is committed, and what limits are held against."""

        async def read() -> tuple[Session, Counts]:
            async with open_store(self.kind, self.place) as store:
                session = await store.session(self.scope)
                claim = await store.claim(self.scope)
                while isinstance(claim, Taken):  # of one that died in its last moment
                    await anyio.sleep(0.02)
                    claim = await store.claim(self.scope)
                assert isinstance(claim, Claim)
                await store.release(claim)
                return session, claim.counts

        return anyio.run(read)


class Places:
    """Makes the places of trials: a file for each, or a conversation in one schema of Postgres."""

    def __init__(self, kind: str, folder: Path, url: str = "") -> None:
        self.kind = kind
        self.folder = folder
        self.place = f"{url} s{uuid4().hex[:12]}"

    def make(self, name: str, **job: Any) -> Trial:
        trail = self.folder / f"{name}.trail"
        if self.kind == "postgres":
            return Trial(self.kind, self.place, trail, name, job)
        return Trial(self.kind, str(self.folder / f"{name}.db"), trail, name, job)


# --- what must hold ------------------------------------------------------------------------------


def results_of(session: Session) -> dict[str, Any]:
    """The results in a transcript, by call id."""
    items = [item for item in session.transcript if isinstance(item, ToolResults)]
    return {result.call_id: result for item in items for result in item.results}


def picture(session: Session, unknown: set[str]) -> list[Any]:
    """The items of a transcript; what is known of some calls is left out."""
    items: list[Any] = session.dump()["items"]  # type: ignore[assignment]
    for item in items:
        for result in item.get("results", ()):
            if result["call_id"] in unknown:
                result["content"] = result["status"] = "unknown"
    return items


def faults_of(trial: Trial, undisturbed: Session | None = None) -> list[str]:
    """What is wrong after a trial; nothing, if the rules hold.

    Args:
        trial: The trial; its conversation is answered.
        undisturbed: The same conversation where nothing was killed, if its answers are the same.
    """
    session, counts = trial.read()
    results = results_of(session)
    unknown = {call_id for call_id, result in results.items() if UNKNOWN in result.text}
    effects = trial.lines("effect")
    faults = [f"error: {line['text']}" for line in trial.lines("error")]
    faults += effect_faults(effects, results, unknown)
    faults += request_faults(trial)
    turns = session.turns()
    if (counts.rounds, counts.tokens) != (len(turns) - 1, 0):
        faults.append(f"rounds are counted as {counts.rounds} of {len(turns) - 1}")
    if session.usage.total_tokens != 15 * len(turns):
        faults.append(f"{session.usage.total_tokens} tokens are counted for {len(turns)} answers")
    if undisturbed is not None and picture(session, unknown) != picture(undisturbed, unknown):
        faults.append("the transcript is another one")
    return [f"{trial.scope} {trial.job}: {fault}" for fault in faults]


def effect_faults(
    effects: list[dict[str, Any]], results: dict[str, Any], unknown: set[str]
) -> list[str]:
    """What the ledger has against what the transcript says (rules P5 to P7)."""
    faults: list[str] = []
    ran = Counter(line["call"] for line in effects)
    keys: dict[str, set[str]] = defaultdict(set)
    once = {line["call"] for line in effects if line["tool"] == "charge"}
    for line in effects:
        if line["tool"] == "save":
            keys[line["call"]].add(line["key"])
    twice = [call_id for call_id in once if ran[call_id] > 1]
    faults += [f"double effect of {call_id}: {ran[call_id]} times" for call_id in twice]
    for call_id, result in results.items():
        if result.status == "ok" and not ran[call_id]:
            faults.append(f"{call_id} is ok and never ran")
        if result.status == "rejected" and ran[call_id]:
            faults.append(f"{call_id} is rejected and ran")
    faults += [f"{call_id} is unknown, and may run again" for call_id in unknown & set(keys)]
    faults += [f"{call_id} has keys {each}" for call_id, each in keys.items() if len(each) > 1]
    faults += [f"{call_id} ran unseen" for call_id in set(ran) - set(results)]
    return faults


def request_faults(trial: Trial) -> list[str]:
    """Answers that were asked for again although they were recorded (rule P10).

    A process that slept doesn't know what was recorded meanwhile, so it may ask.
    """
    faults: list[str] = []
    slept = {line["pid"] for line in trial.lines("asleep")}
    recorded: set[int] = set()
    for line in trial.all_lines():
        if line["what"] == "wrote" and line["record"] in ("turn", "plan"):
            recorded.add(line["round"])
        if line["what"] == "request" and line["round"] in recorded and line["pid"] not in slept:
            faults.append(f"round {line['round']} was asked for again")
    return faults


def sleeper_faults(trial: Trial) -> list[str]:
    """What a process wrote after it had slept and been taken over (rule P4)."""
    faults: list[str] = []
    asleep: int | None = None
    was_taken = False
    for line in trial.all_lines():
        if line["what"] == "asleep":
            asleep = line["pid"]
        elif line["what"] == "wrote" and asleep is not None:
            if line["pid"] != asleep:
                was_taken |= line["name"] == "claim"
            elif was_taken and line["name"] in ("record", "begin", "commit"):
                faults.append(f"{trial.scope}: the sleeper wrote {line['name']} {line['record']}")
    return faults


# --- trials --------------------------------------------------------------------------------------


def crash_and_finish(
    workers: Workers, trial: Trial, kills: Sequence[dict[str, Any]], **last: Any
) -> list[str]:
    """Kill one process after the other, each at its point or moment; then let one finish."""
    with workers.take() as worker:
        for kill in kills:
            if worker.do(trial.make_job(**kill)) not in KILLED:
                break  # it was through before
        ended = worker.do(trial.make_job(**last))
    return [] if ended == 0 else [f"{trial.scope}: ended by {ended}", *errors_of(trial)]


def errors_of(trial: Trial) -> list[str]:
    return [line["text"] for line in trial.lines("error")]


def sleep_and_finish(workers: Workers, trial: Trial, point: int) -> list[str]:
    """Stop a process at a point, let another one finish, and wake the first."""
    with workers.take() as worker, workers.take() as other:
        pid = worker.start(trial.make_job(how="stop", at=point))
        ended = worker.wait()
        if ended is None:
            try:
                taker = other.do(trial.make_job())
            finally:
                os.kill(pid, signal.SIGCONT)
                ended = worker.wait()
        else:
            taker = other.do(trial.make_job())
    if (ended, taker) == (0, 0):
        return []
    return [f"{trial.scope}: ended by {ended} and {taker}", *errors_of(trial)]
