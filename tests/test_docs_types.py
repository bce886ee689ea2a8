"""The Python blocks of the pages pass mypy --strict and pyright: each page is one program."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_docs import PAGES_WITH_CODE, ROOT, blocks, name_of

# A page awaits at its top level, as `python -m asyncio` does; a module can't.
TOP_LEVEL = re.compile(
    r'"await" (?:outside|allowed only)|'
    r'"?async"? (?:with|for|comprehension)?"? ?(?:outside|not allowed outside)|'
    r'Use of "async" not allowed|top-level-await|'
    r"asynchronous comprehension outside|outside async function"
)

Errors = dict[str, list[str]]


def module_of(page: Path) -> str:
    return "page_" + re.sub(r"\W", "_", name_of(page))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of modules: each page with its prose left out, so that line numbers are those of the
    page.
    """
    folder = tmp_path_factory.mktemp("pages")
    for page in PAGES_WITH_CODE:
        lines = [""] * (page.read_text().count("\n") + 1)
        for block in blocks(page):
            if block.language == "python":
                for k, line in enumerate(block.body.splitlines(), block.line - 1):
                    lines[k] = line
        (folder / f"{module_of(page)}.py").write_text("\n".join(lines) + "\n")
    return folder


def mypy(folder: Path) -> list[tuple[str, str]]:
    """Errors as module and message."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-version=3.10",
        "--no-error-summary",
        "--no-pretty",
    ]
    command += ["--show-error-codes", "--hide-error-context", f"--cache-dir={folder / 'cache'}"]
    done = _run([*command, *sorted(file.name for file in folder.glob("*.py"))], folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(r"^(\w+)\.py:(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    return [(module, f"line {line}: {message}") for module, line, message in found]


def pyright(folder: Path) -> list[tuple[str, str]]:
    """Errors as module and message."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = _run([*command, *sorted(file.name for file in folder.glob("*.py"))], folder)
    if not done.stdout.startswith("{"):
        _missing(
            "pyright could not be fetched or started: "
            + (done.stderr or done.stdout).strip()[-200:]
        )
    return [
        (
            Path(entry["file"]).stem,
            f"line {entry['range']['start']['line'] + 1}: {entry['message']}",
        )
        for entry in json.loads(done.stdout)["generalDiagnostics"]
        if entry["severity"] == "error"
    ]


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "MYPYPATH": str(ROOT),
        "PYTHONPATH": str(ROOT),
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
    }
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def _missing(reason: str) -> None:
    if os.environ.get("LUTUMPY_NEED_CHECKERS"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module", params=[mypy, pyright], ids=["mypy", "pyright"])
def errors(request: pytest.FixtureRequest, pages: Path) -> Errors:
    checker = request.param
    if importlib.util.find_spec(checker.__name__) is None:
        _missing(f"{checker.__name__} is not installed; `nox -s types` has it")
    found: Errors = {}
    for module, message in checker(pages):
        if not TOP_LEVEL.search(message):
            found.setdefault(module, []).append(message)
    return found


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=name_of)
def test_the_code_of_a_page_is_typed(errors: Errors, page: Path) -> None:
    assert errors.get(module_of(page), []) == []
