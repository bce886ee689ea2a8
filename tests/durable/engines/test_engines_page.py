"""The programs of the page about engines run, and print what they should."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "engines.md"


def write_programs(folder: Path, **addresses: str) -> None:
    """Each block as the file that its first line names, with the addresses of the tests."""
    for name, body in re.findall(r"^```py\n# (\w+\.py)\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        for written, found in {
            "localhost:7233": addresses.get("temporal", ""),
            "postgresql://localhost/desk": addresses.get("dbos", ""),
        }.items():
            body = body.replace(written, found)
        (folder / name).write_text(body)


def run(folder: Path, program: str) -> str:
    done = subprocess.run(
        [sys.executable, program], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("engine", ["temporal", "dbos"])
def test_loop_and_worker_of_the_page_work_together(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fixture = {"temporal": "temporal_address", "dbos": "dbos_page_url"}[engine]
    write_programs(tmp_path, **{engine: request.getfixturevalue(fixture)})
    with (tmp_path / "log").open("wb") as log:
        worker = subprocess.Popen(
            [sys.executable, f"{engine}_worker.py"], cwd=tmp_path, stdout=log, stderr=log
        )
    try:
        if engine == "dbos":
            wait_for(tmp_path / "log", "tools", worker)  # it makes the tables
        assert run(tmp_path, f"{engine}_loop.py") == "It is charged."
    finally:
        worker.kill()
        worker.wait()


def wait_for(log: Path, word: str, worker: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while word not in log.read_text():
        assert worker.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


def test_the_round_inside_a_workflow_of_the_page_works(tmp_path: Path, dbos_round_url: str) -> None:
    write_programs(tmp_path, dbos=dbos_round_url)
    assert run(tmp_path, "dbos_round.py") == "Answered"


def test_every_program_of_the_page_is_run() -> None:
    names = re.findall(r"^```py\n# (\w+\.py)$", PAGE.read_text(), re.M)
    assert names == [
        "desk.py",
        "temporal_worker.py",
        "temporal_loop.py",
        "dbos_worker.py",
        "dbos_loop.py",
        "dbos_round.py",
    ]
    assert PAGE.read_text().count("```py\n") == len(names)
