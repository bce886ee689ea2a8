"""Every property tries as many examples as the profile of the run says."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import profiles
import pytest
from hypothesis import settings

TESTS = Path(__file__).parent
_MARKED = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.scaled", re.MULTILINE)


def test_every_number_of_examples_goes_through_the_profile() -> None:
    files = [file for file in TESTS.rglob("*.py") if file.name != "test_profiles.py"]
    assert [str(file) for file in files if re.search(r"max_examples=\d", file.read_text())] == []


@pytest.mark.parametrize(
    ("profile", "count", "expected"),
    [
        ("default", 60, 60),
        ("default", 1, 1),
        ("small", 60, 6),
        ("small", 4, 3),
        ("small", 1, 1),
        ("thorough", 60, 1800),
    ],
)
def test_a_profile_scales_a_number_of_examples(
    profile: str, count: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "PROFILE", profile)
    assert profiles.examples(count) == expected


def test_the_same_examples_are_tried_each_time_but_for_the_thorough_profile() -> None:
    assert settings.default is not None
    assert settings.default.derandomize == (profiles.PROFILE != "thorough")
    assert settings.default.deadline is None


def test_a_smaller_profile_tries_a_fixed_third_of_cases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = list(range(3000))
    monkeypatch.setattr(profiles, "IS_PART", False)
    assert profiles.some_of(cases) == cases
    monkeypatch.setattr(profiles, "IS_PART", True)
    tried = profiles.some_of(cases)
    assert profiles.some_of(cases) == tried == profiles.third_of(cases)
    assert 900 < len(tried) < 1100
    assert [profiles.some_of([case]) for case in range(9)] == [[case] for case in range(9)]


def test_the_modules_that_the_quick_run_leaves_out_are_there() -> None:
    assert [name for name in sorted(profiles.PROCESSES) if not (TESTS / name).is_file()] == []


def test_the_rest_is_what_the_smaller_profiles_leave_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = list(range(900))
    monkeypatch.setattr(profiles, "IS_REST", True)
    rest = profiles.cases_of(cases)
    monkeypatch.setattr(profiles, "IS_REST", False)
    monkeypatch.setattr(profiles, "IS_PART", True)
    assert sorted([*profiles.cases_of(cases), *rest]) == cases
    assert 500 < len(rest) < 700


@pytest.mark.slow
def test_an_older_python_tries_a_third_where_lists_of_cases_are_combined() -> None:
    file = TESTS / "loops" / "test_requests.py"
    whole, fewer = _collected(file), _collected(file, LUTUMPY_CASES="fewer")
    assert fewer < whole
    assert {name.partition("[")[0] for name in fewer} == {name.partition("[")[0] for name in whole}
    assert {name for name in whole if "-" not in name.partition("[")[2]} <= fewer


def _collected(file: Path, **more: str) -> set[str]:
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", str(file)]
    env = {**os.environ, "LUTUMPY_PROFILE": "small", **more}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return {line for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.slow
def test_what_a_profile_scales_is_run_whole_by_the_session_of_sweeps() -> None:
    """`tests/conftest.py` sees a number in a test itself; elsewhere the mark says it."""
    unmarked: list[str] = []
    for file in TESTS.rglob("*.py"):
        text = file.read_text()
        if file.name in ("profiles.py", "conftest.py") or _MARKED.search(text):
            continue
        if re.search(r"\b(examples|some_of)\(", text) is None:
            continue
        if "import IS_PART" in text and "pytest.mark.scaled" not in text:
            unmarked.append(file.name)
        unmarked += [f"{file.name}:{node.lineno}" for node in _hidden_numbers(ast.parse(text))]
    assert unmarked == [], "give the module or the test the mark scaled"


def _hidden_numbers(tree: ast.Module) -> list[ast.Call]:
    """Where `examples` or `some_of` is called by what is neither a test nor the settings of one."""
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
    ]
    tests = {
        id(inner)
        for node in functions
        for part in ([node] if _is_marked(node) else node.body)
        for inner in ast.walk(part)
    }
    settings = {
        id(keyword.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "max_examples"
    }
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("examples", "some_of")
        and id(node) not in tests | settings
    ]


def _is_marked(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return "pytest.mark.scaled" in map(ast.unparse, node.decorator_list)
