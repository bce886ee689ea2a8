"""A run in forked workers fails where one of them takes its results with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pytest_parallex")
TESTS = Path(__file__).parent
CONFTEST = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from forked_workers import watch_workers as pytest_configure
"""
PROGRAM = """
import os

def test_one():
    pass

def test_other():
    {leave}
"""


@pytest.mark.pure
@pytest.mark.slow
def test_a_worker_that_leaves_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for leave, status in (("pass", 0), ("os._exit(0)", 1), ("os._exit(3)", 1)):
        (tmp_path / "test_it.py").write_text(PROGRAM.format(leave=leave))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--parallel=fork", "-p", "no:cacheprovider"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        assert ("ERROR" in done.stdout) is (leave == "os._exit(0)"), done.stdout
