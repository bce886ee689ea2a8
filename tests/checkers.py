"""What mypy and pyright say of all code that is typed: the package, the examples, `tests/typing`,
and the Python blocks of the pages.

Each is asked once, for all of it: most of its time goes into the SDKs and the package, which it
would read again in every run.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TYPING = Path(__file__).parent / "typing"
CHECKERS = ("mypy", "pyright")

Errors = dict[Path, dict[int, list[str]]]
"""By file and line; the files are absolute, those of pages are their modules' names."""


def errors_of(checker: str, modules: Mapping[str, str]) -> Errors:
    """The errors of a checker; the test is skipped where it isn't installed.

    Args:
        checker: One of `CHECKERS`.
        modules: Further code by the name of its module: it stands in a folder of its own.
    """
    if importlib.util.find_spec(checker) is None:
        _missing(f"{checker} is not installed; `nox -s types` has it")
    return _errors(checker, tuple(sorted(modules.items())))


@functools.cache
def _errors(checker: str, modules: tuple[tuple[str, str], ...]) -> Errors:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for module, code in modules:
            (folder / f"{module}.py").write_text(code)
        files = [str(ROOT / "lutumpy"), str(ROOT / "examples")]
        files += sorted(str(file) for where in (TYPING, folder) for file in where.glob("*.py"))
        found = _mypy(files) if checker == "mypy" else _pyright(files)
    errors: Errors = {}
    for file, line, message in found:
        path = (ROOT / file).resolve()
        key = Path(path.stem) if path.parent == folder else path
        errors.setdefault(key, {}).setdefault(line, []).append(message)
    return errors


def _mypy(files: list[str]) -> list[tuple[str, int, str]]:
    options = ["--no-error-summary", "--show-error-codes", "--hide-error-context", "--no-pretty"]
    done = _run("mypy", *options, f"--cache-dir={os.devnull}", *files)  # nobody would read a cache
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(r"^(.+?):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    return [(file, int(line), message) for file, line, message in found]


def _pyright(files: list[str]) -> list[tuple[str, int, str]]:
    done = _run("pyright", "--outputjson", "--pythonpath", sys.executable, *files)
    if not done.stdout.startswith("{"):
        said = (done.stderr or done.stdout).strip()
        _missing(f"pyright could not be fetched or started: {said[-200:]}")
    return [
        (entry["file"], entry["range"]["start"]["line"] + 1, entry["message"])
        for entry in json.loads(done.stdout)["generalDiagnostics"]
        if entry["severity"] == "error"
    ]


def _run(checker: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "MYPYPATH": str(ROOT),
        "PYTHONPATH": str(ROOT),
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
    }
    command = [sys.executable, "-m", checker, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def _missing(reason: str) -> None:
    if os.environ.get("LUTUMPY_NEED_CHECKERS"):
        pytest.fail(reason)
    pytest.skip(reason)
