"""The plugin of pytest: a cassette for each test, and nothing for tests without one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lutumpy.testing import Reply, WireServer, pytest_plugin, serve

pytest_plugins = ["pytester"]

# The plugin of an installed package would be a second one.
OPTIONS = ("-p", "no:lutumpy", "-p", "lutumpy.testing.pytest_plugin", "-p", "no:cacheprovider")

TESTS = """
import os
from openai import OpenAI
import pytest
from lutumpy import Session
from lutumpy.adapters.openai import OpenAIChat

def ask(cassette, question):
    url = os.environ.get("TEST_URL")
    live = {} if url is None else {"base_url": url, "api_key": "sk-canary-0123456789"}
    session = Session()
    session.push_user(question)
    llm = OpenAIChat("m", client=cassette.client(OpenAI, **live))
    return session.text_turn(llm).collect_sync().text

@pytest.mark.parametrize("name", ["Ada", "Ms. Ö/x"])
def test_greeting(llm_cassette, name):
    assert ask(llm_cassette, f"Greet {name}.") == "Hello!"

@pytest.mark.cassette(path="elsewhere.jsonl", match="any")
class TestMarks:
    @pytest.mark.cassette(ignore=["/messages"])
    def test_marks(self, llm_cassette):
        assert ask(llm_cassette, os.environ.get("TEST_QUESTION", "Who?")) == "Hello!"

def test_without():
    pass
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    with serve([Reply(text="Hello!")] * 3) as server:
        monkeypatch.setenv("TEST_URL", f"{server.url}/v1")
        yield server


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*OPTIONS, *options)


@pytest.mark.slow
def test_each_test_has_a_cassette_which_is_recorded_and_replayed(
    pytester: pytest.Pytester, server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(test_desk=TESTS)
    run(pytester, "--cassettes=record").assert_outcomes(passed=4)
    assert len(server.requests) == 3
    files = sorted(p.relative_to(pytester.path).as_posix() for p in pytester.path.rglob("*.jsonl"))
    assert files == [
        "cassettes/test_desk/test_greeting-Ada.jsonl",
        "cassettes/test_desk/test_greeting-Ms.-xd6-x-8d281905.jsonl",
        "elsewhere.jsonl",
    ]
    assert not any("canary" in p.read_text() for p in pytester.path.rglob("*.jsonl"))
    monkeypatch.delenv("TEST_URL")
    monkeypatch.setenv("TEST_QUESTION", "Another, which is ignored")
    run(pytester).assert_outcomes(passed=4)  # replay is the default
    assert len(server.requests) == 3
    monkeypatch.setenv("OPENAI_API_KEY", "any")  # it might have to ask
    run(pytester, "--cassettes=record-new").assert_outcomes(passed=4)
    assert len(server.requests) == 3
    run(pytester, "--cassettes=none").assert_outcomes(passed=1, skipped=3)


@pytest.mark.slow
def test_what_is_left_over_fails_a_test_that_has_passed_and_no_other_V7(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_desk="""
        def test_nothing(llm_cassette):
            pass
        def test_failing(llm_cassette):
            assert 0
        def test_missing(llm_cassette):
            pass
        """
    )
    folder = pytester.path / "cassettes" / "test_desk"
    folder.mkdir(parents=True)
    line = json.dumps({"request": {}, "response": {}})
    for name in ("test_nothing", "test_failing"):
        (folder / f"{name}.jsonl").write_text(line)
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*CassetteError: there is no cassette *test_missing.jsonl*",
        ]
    )
    result.stdout.fnmatch_lines(["*CassetteError: 1 of 1 recordings of *test_nothing.jsonl*"])


def test_options_for_all_come_from_a_fixture(pytester: pytest.Pytester, server: WireServer) -> None:
    pytester.makeconftest(
        """
        import pytest
        @pytest.fixture
        def llm_cassette_options():
            return {"redact": lambda text: text.replace("Ada", "A.")}
        """
    )
    pytester.makepyfile(test_desk=TESTS)
    run(pytester, "--cassettes=record", "-k", "Ada").assert_outcomes(passed=1)
    (file,) = pytester.path.rglob("*.jsonl")
    assert "Greet A." in file.read_text()


def test_nothing_is_imported_and_no_socket_opened_where_no_test_has_a_cassette(
    tmp_path: Path,
) -> None:
    """As it is installed: the module stands alone."""
    shutil.copy(pytest_plugin.__file__, tmp_path / "pytest_lutumpy.py")
    (tmp_path / "conftest.py").write_text(
        """
import socket, sys
def refuse(*a, **k):
    raise AssertionError("a socket was opened")
socket.socket.connect = refuse
def pytest_unconfigure():
    loaded = {"lutumpy", "pydantic", "openai", "httpx2"} & {*sys.modules}
    print("loaded", sorted(loaded))
"""
    )
    (tmp_path / "test_desk.py").write_text(
        """
import pytest
@pytest.mark.cassette
def test_a():
    raise AssertionError
def test_b(llm_cassette):
    raise AssertionError
def test_c():
    pass
"""
    )
    options = ("-p", "no:lutumpy", "-p", "pytest_lutumpy", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", *options, "--cassettes=none"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed, 2 skipped" in done.stdout
    assert "loaded []" in done.stdout
