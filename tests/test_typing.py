"""Type checkers accept good code and refuse bad code, without a plugin."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "typing"
ROOT = Path(__file__).parent.parent
ACCEPTED = sorted(path.name for path in HERE.glob("accept*.py"))
REFUSED = sorted(path.name for path in HERE.glob("refuse*.py"))


def marked(file: str) -> set[int]:
    """The lines of a file that are to be refused."""
    return {
        k
        for k, line in enumerate((HERE / file).read_text().splitlines(), 1)
        if line.endswith("# refused")
    }


Errors = dict[str, dict[int, list[str]]]


def mypy(cache: Path) -> Errors:
    """Errors of all files, by line."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-version=3.10",
        "--no-error-summary",
    ]
    command += ["--show-error-codes", "--hide-error-context", "--no-pretty", f"--cache-dir={cache}"]
    done = _run([*command, *ACCEPTED, *REFUSED])
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: Errors = {}
    for line in done.stdout.splitlines():
        match = re.match(r"(?P<file>[^:]+):(?P<line>\d+): error: (?P<message>.*)", line)
        if match is not None:
            _add(found, match["file"], int(match["line"]), match["message"])
    return found


def pyright(_: Path) -> Errors:
    """Errors of all files, by line."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = _run([*command, *ACCEPTED, *REFUSED])
    if not done.stdout.startswith("{"):
        _missing(
            "pyright could not be fetched or started: "
            + (done.stderr or done.stdout).strip()[-200:]
        )
    found: Errors = {}
    for entry in json.loads(done.stdout)["generalDiagnostics"]:
        if entry["severity"] == "error":
            _add(
                found,
                Path(entry["file"]).name,
                entry["range"]["start"]["line"] + 1,
                entry["message"],
            )
    return found


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "MYPYPATH": str(ROOT),
        "PYTHONPATH": str(ROOT),
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
    }
    return subprocess.run(
        command, cwd=HERE, env=environment, capture_output=True, text=True, check=False
    )


def _add(found: Errors, file: str, line: int, message: str) -> None:
    found.setdefault(file, {}).setdefault(line, []).append(message)


def _missing(reason: str) -> None:
    if os.environ.get("LUTUMPY_NEED_CHECKERS"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module", params=[mypy, pyright], ids=["mypy", "pyright"])
def errors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Errors:
    checker = request.param
    if importlib.util.find_spec(checker.__name__) is None:
        _missing(f"{checker.__name__} is not installed; `nox -s types` has it")
    found: Errors = checker(tmp_path_factory.mktemp("cache"))
    return found


@pytest.mark.parametrize("file", ACCEPTED)
def test_good_code_is_accepted(errors: Errors, file: str) -> None:
    assert errors.get(file, {}) == {}


@pytest.mark.parametrize("file", REFUSED)
def test_every_marked_line_is_refused(errors: Errors, file: str) -> None:
    lines = (HERE / file).read_text().splitlines()
    assert marked(file)
    assert [lines[k - 1].strip() for k in sorted(marked(file) - errors.get(file, {}).keys())] == []


@pytest.mark.parametrize("file", REFUSED)
def test_no_other_line_is_refused(errors: Errors, file: str) -> None:
    assert {
        k: messages for k, messages in errors.get(file, {}).items() if k not in marked(file)
    } == {}


def test_the_package_itself_has_no_errors(errors: Errors) -> None:
    assert {
        file: lines for file, lines in errors.items() if file not in (*ACCEPTED, *REFUSED)
    } == {}
