"""Late results, and processes that are killed or stopped by signals while they run or deliver
(LR8 to LR13, P3, P5). The processes are in `crash_worker.py`.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crash_toolkit import (
    Places,
    Trial,
    Workers,
    crash_and_finish,
    results_of,
    sleep_and_finish,
    sleeper_faults,
)
from crash_worker import Desk
from every_api import ADAPTERS, messages_of
from profiles import PROFILE, examples

from lutumpy import Session
from lutumpy.doctor import check_messages
from lutumpy.models import Message

if not hasattr(os, "fork") or sys.platform == "win32":
    pytest.skip("processes are stopped by signals", allow_module_level=True)

SEED = random.randrange(10**6) if PROFILE == "thorough" else 20
MODELS = {"openai_responses": "gpt-6-astra", "anthropic_messages": "m"}
APIS: list[Any] = [*MODELS]
IS_WHOLE = PROFILE == "thorough"
STEPS = {"sqlite": 1, "postgres": 7} if IS_WHOLE else {"sqlite": 12, "postgres": 24}
"""Each of so many points is tried: all of them in the session `kills`, some in the suite."""

pytestmark = pytest.mark.scaled
in_both = pytest.mark.parametrize("places", ["sqlite", "postgres"], indirect=True)
in_both_ways = pytest.mark.parametrize("late", ["wait", "go_on"])


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    each = Workers(4)
    yield each
    each.close()


@pytest.fixture
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    """Where trials are kept."""
    kind: str = request.param
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else ""
    return Places(kind, tmp_path, url)


def job_of(late: str, number: int, **more: Any) -> dict[str, Any]:
    options = {"late": late}
    dice = f"{SEED} {number}"
    return {"script": "late", "api": APIS[number % 2], "options": options, "dice": dice, **more}


def values_in(session: Session) -> list[str]:
    """What came of calls, in the transcript: the texts of results and of late items."""
    late = [item for item in session.transcript if isinstance(item, Message) and item.late]
    texts = [item.text.rpartition("\n")[2] for item in late]
    return [*texts, *[result.text for result in results_of(session).values()]]


def faults_of(trial: Trial, *, slept: bool = False) -> list[str]:
    """What is wrong once nothing is open: lost, doubled, begun twice, refused by the rules."""
    session, _ = trial.read()
    faults = [f"error: {line['text']}" for line in trial.lines("error")]
    begun = [line["call"] for line in trial.lines("effect")]
    asleep = {line["pid"] for line in trial.lines("asleep")}
    late_starts = {line["call"] for line in trial.lines("effect") if line["pid"] in asleep}
    values = values_in(session)
    for call_id in results_of(session):
        count = values.count(f"value of {call_id}")
        if begun.count(call_id) > 1:
            faults.append(f"begun twice: {call_id}")
        if count > 1:
            faults.append(f"doubled: {call_id}")
        if call_id in begun and not count and not (slept and call_id in late_starts):
            faults.append(f"lost: {call_id}")
        if call_id not in begun and not any("never begun" in value for value in values):
            faults.append(f"nobody said that it was never begun: {call_id}")
    if session.open_calls:
        faults.append(f"stuck: {session.open_calls}")
    api = trial.job["api"]
    session.push_user("Thanks.")
    body = ADAPTERS[api].request(session.transcript, Desk.offer(), model=MODELS[api])
    problems = check_messages(api, messages_of(api, body))
    faults += [str(each) for each in problems if each.certainty == "refused"]
    return [f"{trial.scope} {trial.job}: {fault}" for fault in faults]


@pytest.fixture(scope="module")
def points(workers: Workers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The names of the points of a trial in which nothing is killed, for both ways."""
    places = Places("sqlite", tmp_path_factory.mktemp("undisturbed"))
    found: dict[str, list[str]] = {}
    for late in ("wait", "go_on"):
        trial = places.make(late, **job_of(late, 0))
        assert crash_and_finish(workers, trial, [], how="list") == []
        assert faults_of(trial) == []
        assert sorted(line["call"] for line in trial.lines("effect")) == ["a", "b", "c"]
        found[late] = [line["name"] for line in trial.lines("point")]
        assert {"before deliver ", "after deliver "} <= {*found[late]}
    return found


@in_both_ways
@in_both
def test_a_process_may_die_at_every_point_of_a_late_result_LR8_LR9_LR10(
    workers: Workers, places: Places, points: dict[str, list[str]], late: str
) -> None:
    def crash(point: int) -> list[str]:
        trial = places.make(f"{late}-{point}", **job_of(late, point))
        return crash_and_finish(workers, trial, [{"at": point}]) or faults_of(trial)

    tried = range(1, len(points[late]) + 1)[:: STEPS[places.kind]]
    assert workers.map(crash, tried) == []


@in_both_ways
@in_both
def test_processes_may_die_anywhere_and_again_with_late_results_LR8_LR9_LR10_LR13(
    workers: Workers, places: Places, late: str
) -> None:
    count = examples(3) if IS_WHOLE else 2

    def crash(number: int) -> list[str]:
        dice = random.Random(f"{SEED} {late} {number}")
        job = {"backend": dice.choice(["asyncio", "trio"]), "events": dice.random() < 0.5}
        kills: list[dict[str, Any]] = [
            {"at": dice.randint(3, 70)} if number % 2 else {"moment": dice.uniform(0.02, 0.5)}
            for _ in range(dice.randint(1, 3))
        ]
        trial = places.make(f"random-{late}-{number}", **job_of(late, number, **job))
        return crash_and_finish(workers, trial, kills) or faults_of(trial)

    assert workers.map(crash, range(count)) == []


@in_both_ways
@in_both
def test_two_that_run_and_deliver_at_once_may_both_die_LR9_LR10(
    workers: Workers, places: Places, late: str
) -> None:
    def crash(number: int) -> list[str]:
        dice = random.Random(f"{SEED} two {late} {number}")
        trial = places.make(f"two-{late}-{number}", **job_of(late, number))
        with workers.take() as one, workers.take() as two:
            one.start(trial.make_job(at=dice.randint(5, 90)))
            two.start(trial.make_job(at=dice.randint(5, 90)))
            one.wait()
            two.wait()
            ended = one.do(trial.make_job())
        faults = (
            [] if ended == 0 else [f"{number}: ended by {ended}", *map(str, trial.lines("error"))]
        )
        return faults or faults_of(trial)

    assert workers.map(crash, range(examples(3) if IS_WHOLE else 2), each=2) == []


@in_both_ways
@in_both
def test_a_sleeper_that_was_taken_over_delivers_nothing_twice_LR9_P4(
    workers: Workers, places: Places, points: dict[str, list[str]], late: str
) -> None:
    dice = random.Random(f"{SEED} sleepers {late}")
    names = points[late]
    wanted = examples(4) if IS_WHOLE else 2
    chosen = dice.sample(range(4, len(names) - 4), min(wanted, len(names) - 8))

    def sleep(point: int) -> list[str]:
        trial = places.make(f"sleeper-{late}-{point}", **job_of(late, point))
        faults = sleep_and_finish(workers, trial, point) or faults_of(trial, slept=True)
        return faults + sleeper_faults(trial)

    assert workers.map(sleep, sorted(chosen), each=2) == []
