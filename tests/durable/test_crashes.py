"""Processes that are killed or stopped anywhere, and what holds afterwards (rules P1 to P7, P10,
P17). The processes are in `crash_worker.py`, and what must hold is in `crash_toolkit.py`.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from crash_toolkit import (
    Places,
    Workers,
    crash_and_finish,
    faults_of,
    results_of,
    sleep_and_finish,
    sleeper_faults,
)
from profiles import IS_PART, PROFILE, examples

from lutumpy import Session

if not hasattr(os, "fork") or sys.platform == "win32":
    pytest.skip("processes are stopped by signals", allow_module_level=True)

SEED = random.randrange(10**6) if PROFILE == "thorough" else 20
AT_ONCE = 4
POSTGRES_POINTS = 9
"""Each of so many points is tried there: what differs is the store, not the loop."""


@dataclass(frozen=True)
class Undisturbed:
    """What happens where nothing is killed: the transcript, and the names of the points."""

    session: Session
    points: list[str]

    def numbers(self, *ends: str) -> list[int]:
        """The points with such a name, from 1."""
        return [n for n, name in enumerate(self.points, 1) if name.endswith(ends)]


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    each = Workers(AT_ONCE)
    yield each
    each.close()


@pytest.fixture(scope="module")
def undisturbed(workers: Workers, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    trial = Places("sqlite", tmp_path_factory.mktemp("undisturbed")).make("undisturbed")
    assert crash_and_finish(workers, trial, [], how="list") == []
    assert faults_of(trial) == []
    assert Counter(line["call"] for line in trial.lines("effect")).most_common(1)[0][1] == 1
    return Undisturbed(trial.read()[0], [line["name"] for line in trial.lines("point")])


@pytest.fixture
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    """Where trials are kept, in SQLite or, by a parameter, in Postgres."""
    kind = getattr(request, "param", "sqlite")
    return Places(
        kind, tmp_path, request.getfixturevalue("postgres_url") if kind == "postgres" else ""
    )


pytestmark = pytest.mark.scaled
in_both = pytest.mark.parametrize("places", ["sqlite", "postgres"], indirect=True)


def points_to_try(places: Places, points: list[int]) -> list[int]:
    """All of them; some on Postgres, and where the run is a part."""
    step = POSTGRES_POINTS if places.kind == "postgres" else 1
    return points[:: step * (3 if IS_PART else 1)]


def try_points(
    workers: Workers, places: Places, points: list[int], like: Session | None, **job: Any
) -> list[str]:
    """The faults of trials that are each killed at one point, and finished."""

    def crash(point: int) -> list[str]:
        trial = places.make(f"point-{point}", **job)
        return crash_and_finish(workers, trial, [{"at": point}]) or faults_of(trial, like)

    return workers.map(crash, points)


@in_both
def test_a_process_may_die_at_every_point_P1_P2_P3_P5_P6_P7_P10_P17(
    workers: Workers, places: Places, undisturbed: Undisturbed
) -> None:
    points = points_to_try(places, [*range(1, len(undisturbed.points) + 1)])
    assert len(undisturbed.points) > 120
    assert try_points(workers, places, points, undisturbed.session) == []


@in_both
def test_processes_may_die_anywhere_and_again_in_recovery_P1_P2_P3_P5_P6_P7_P10_P17(
    workers: Workers, places: Places, undisturbed: Undisturbed
) -> None:
    count = examples(10) if places.kind == "sqlite" else examples(3)

    def crash(number: int) -> list[str]:
        dice = random.Random(f"{SEED} {number}")
        job = {
            "backend": dice.choice(["asyncio", "trio"]),
            "events": dice.random() < 0.3,
            "pause": dice.choice([0.0, 0.02]),
        }
        kills: list[dict[str, Any]] = []
        for _ in range(dice.randint(1, 3)):
            kill = (
                {"at": dice.randint(5, 90)} if number % 2 else {"moment": dice.uniform(0.02, 0.6)}
            )
            kills.append(kill)
        trial = places.make(f"random-{SEED}-{number}", **job)
        faults = crash_and_finish(workers, trial, kills) or faults_of(trial, undisturbed.session)
        return [f"{kills} {fault}" for fault in faults]

    assert workers.map(crash, range(count)) == []


@pytest.mark.parametrize(
    ("limit", "stopped_by"), [({"max_rounds": 4}, "round_limit"), ({"token_budget": 50}, "budget")]
)
def test_a_limit_is_the_same_however_often_processes_die_P17(
    workers: Workers, places: Places, limit: dict[str, int], stopped_by: str
) -> None:
    def crash(point: int) -> list[str]:
        trial = places.make(f"limit-{point}", options=limit)
        faults = crash_and_finish(workers, trial, [{"at": point}, {"at": 25}])
        # Where a limit was reached before a process should have died, several say so.
        *_, answered = trial.lines("answered") or [{}]
        if (answered.get("stopped_by"), answered.get("rounds")) != (stopped_by, 4):
            faults.append(f"{point}: {answered}")
        return faults

    assert workers.map(crash, [12, 22, 30, 55][:: 2 if IS_PART else 1]) == []


@in_both
def test_a_sleeper_that_was_taken_over_writes_nothing_P4_P5_P7(
    workers: Workers, places: Places, undisturbed: Undisturbed
) -> None:
    dice = random.Random(f"{SEED} sleepers")
    points = range(4, len(undisturbed.points) - 4)
    wanted = examples(10) if places.kind == "sqlite" else examples(3)
    chosen = dice.sample(points, min(wanted, len(points)))  # the thorough profile wants more

    def sleep(point: int) -> list[str]:
        trial = places.make(f"sleeper-{point}")
        faults = sleep_and_finish(workers, trial, point) or faults_of(trial, undisturbed.session)
        refused = len(trial.lines("taken over"))
        if len(trial.lines("asleep")) != 1:
            faults.append(f"{point}: it didn't sleep")
        took = [n for n, line in enumerate(trial.lines("wrote")) if line["name"] == "claim"]
        if undisturbed.points[point - 1] not in CLAIMS_LATER and refused != 1:
            faults.append(f"{point} {undisturbed.points[point - 1]}: nothing was refused, {took}")
        return faults + sleeper_faults(trial)

    faults = workers.map(sleep, sorted(chosen), each=2)
    assert faults == [], "\n".join(faults)


CLAIMS_LATER = (
    "before release ",
    "after release ",
    "before decide ",
    "after decide ",
    "before claim ",
)
"""Who sleeps there has nothing left to write, or claims when it wakes."""


def test_a_model_that_never_answers_the_same_has_one_effect_per_task_P5_P10(
    workers: Workers, places: Places
) -> None:
    def crash(number: int) -> list[str]:
        dice = random.Random(f"{SEED} model {number}")
        kills = [{"at": dice.randint(4, 45)} for _ in range(dice.randint(1, 3))]
        trial = places.make(f"model-{number}", script="never the same")
        faults = crash_and_finish(workers, trial, kills) or faults_of(trial)
        tasks = {"task-0", "task-1", "task-2"}
        if not faults and set(results_of(trial.read()[0])) != tasks:
            faults.append(f"{number}: {results_of(trial.read()[0])}")
        return [f"{kills} {fault}" for fault in faults]

    assert workers.map(crash, range(examples(10))) == []


@in_both
def test_of_two_that_run_at_once_one_goes_on_and_asks_once_P2_P3_P10(
    workers: Workers, places: Places
) -> None:
    count = 50 if places.kind == "sqlite" else 10
    trial = places.make("race", count=count, processes=2, script="short")
    # Nobody dies here, so no lease may end.
    with workers.take() as one, workers.take() as two:
        job = trial.make_job(lease=30)
        one.start(job)
        two.start(job)
        assert (one.wait(), two.wait(), trial.lines("error")) == (0, 0, [])
    requests = Counter((line["scope"], line["round"]) for line in trial.lines("request"))
    assert requests == {(f"race {n}", round): 1 for n in range(count) for round in (1, 2)}
    assert len(trial.lines("effect")) == count
    ends = Counter(line["how"] for line in trial.lines("ended"))
    # One that comes when the other is through is told the answer, and asks nothing.
    assert ends["Answered"] + ends["Taken"] == 2 * count
    assert ends["Answered"] >= count
    assert ends["Taken"] > 0


@in_both
def test_two_that_run_at_once_may_both_die_P2_P3_P4_P5_P7(
    workers: Workers, places: Places, undisturbed: Undisturbed
) -> None:
    """Each at a point of its own, while the other goes on or waits for its lease."""

    def crash(number: int) -> list[str]:
        dice = random.Random(f"{SEED} two {number}")
        trial = places.make(f"two-{number}", events=dice.random() < 0.5)
        with workers.take() as one, workers.take() as two:
            one.start(trial.make_job(at=dice.randint(5, 120)))
            two.start(trial.make_job(at=dice.randint(5, 120)))
            one.wait()
            two.wait()
            ended = one.do(trial.make_job())
        faults = [] if ended == 0 else [f"{number}: ended by {ended}"]
        return faults or faults_of(trial, undisturbed.session)

    assert workers.map(crash, range(examples(3)), each=2) == []


def test_without_markers_the_same_checks_find_double_effects_P5(
    workers: Workers, places: Places, undisturbed: Undisturbed
) -> None:
    points = [
        number
        for number in undisturbed.numbers("after its effect", "before its end")
        if undisturbed.points[number - 1].startswith("charge")
    ][::3]
    faults = try_points(workers, places, points, undisturbed.session, blind=True)
    assert sum("double effect" in fault for fault in faults) >= len(points) - 1, faults
