"""Every example runs as it stands, without a key, and prints what it promises; `--live` prints the
same from a test server.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import json
import logging
import os
import pty
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from profiles import IS_PART, some_of

from lutumpy.testing import Failure, Reply, WireServer, serve

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
OUTPUTS = ROOT / "tests" / "fixtures" / "examples"


@dataclass(frozen=True)
class Case:
    """One way to run an example.

    Attributes:
        script: Below `examples/`; a package has its `__main__.py`.
        arguments: On its command line.
        given: What a person types.
        script_name: Where its scripted answers are.
    """

    script: str
    arguments: tuple[str, ...] = ()
    given: str = ""
    script_name: str = "SCRIPT"

    def __str__(self) -> str:
        return " ".join([self.script, *self.arguments])

    @property
    def command(self) -> list[str]:
        if self.script.endswith("/__main__.py"):
            return ["-m", f"examples.{Path(self.script).parent.name}", *self.arguments]
        return [str(EXAMPLES / self.script), *self.arguments]

    @property
    def file(self) -> Path:
        """Where its output is written down, to the letter."""
        name = self.script.removesuffix("/__main__.py").removesuffix(".py").replace("/", "_")
        return (
            OUTPUTS
            / f"{'_'.join([name, *[argument.strip('-') for argument in self.arguments]])}.txt"
        )

    @property
    def output(self) -> str:
        return self.file.read_text(encoding="utf-8")


CASES = [
    Case("quickstart_chat.py"),
    Case("quickstart_responses.py"),
    Case("quickstart_messages.py"),
    Case("quickstart_gemini.py"),
    Case("quickstart_bedrock.py"),
    Case("own_client_sync.py"),
    Case("own_client_async.py"),
    Case("parallel_calls.py"),
    Case("grammar_tool.py"),
    Case("shell_policy.py"),
    Case("loop.py"),
    Case("loop.py", ("--sync",)),
    Case("nested_toolsets.py"),
    Case("progressive_disclosure.py"),
    Case("two_hundred_tools.py"),
    Case("planner.py"),
    Case("users_tools.py"),
    Case("manifest_tools.py"),
    Case("task_queue.py"),
    Case("web_handler.py"),
    Case("openapi_tools.py"),
    Case("streaming_ui.py"),
    Case("extraction.py"),
    Case("switch_provider.py"),
    Case("fallback_model/__main__.py"),
    Case("text_only_model.py"),
    Case("mcp_served.py"),
    Case("hooks/approval_gate.py", given='y\ne\n{"amount": 90}\nn\ntoo much, ask my boss\n'),
    Case("hooks/audit_log.py"),
    Case("hooks/budget.py"),
    Case("hooks/cache.py"),
    Case("hooks/read_only.py"),
    Case("hooks/redaction.py"),
    Case("approval_page/__main__.py"),
    Case("trip_service/__main__.py"),
    Case("sqlite_agent/__main__.py"),
    Case("sqlite_agent/__main__.py", ("--writable",), given="y\n", script_name="WRITING_SCRIPT"),
]
SQLITE_AGENT = {
    "__init__.py",
    "__main__.py",
    "agent.py",
    "database.py",
    "hooks.py",
    "sample.py",
    "tools.py",
}
"""The modules of the SQLite agent, which `__main__.py` runs; its tests are run below."""
FALLBACK_MODEL = {"__init__.py", "__main__.py", "model.py"}
TRIP_SERVICE = {"__init__.py", "__main__.py", "desk.py", "processes.py", "service.py"}
APPROVAL_PAGE = {"__init__.py", "__main__.py", "agent.py", "page.py"}


PACKAGES = ("sqlite_agent", "approval_page", "fallback_model", "trip_service")


NEEDS_NPM = {"mcp_files.py"}
"""What needs a server from npm; `tests/mcp/test_npm_example.py` runs it."""


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **more}


def run(command: list[str], given: str = "", **more: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", *command],
        input=given,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        cwd=ROOT,
        env=environment(**more),
    )
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def own_logging() -> Iterator[None]:
    """What a program sets up for its log is undone; pytest's own handlers would keep it from
    setting up anything.
    """
    loggers = [logging.getLogger(name) for name in (None, "lutumpy.tool_hook", "lutumpy.execution")]
    before = [(logger.level, logger.handlers) for logger in loggers]
    for logger in loggers:
        logger.handlers = []
    yield
    for logger, (level, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.handlers = handlers


@contextlib.contextmanager
def own_environment() -> Iterator[None]:
    """What a program puts into its environment is gone with it."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def run_here(
    case: Case, arguments: list[str], given: str = "", **more: str
) -> tuple[int, str, str]:
    """As `run`, in this process: the SDKs are imported once and not for each example."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, own_logging(), own_environment():
        patch.syspath_prepend(str(ROOT))
        for name in [name for name in sys.modules if name.split(".")[0] == "examples"]:
            patch.delitem(sys.modules, name)
        patch.setattr(sys, "argv", [case.script, *case.arguments, *arguments])
        patch.setattr(sys, "stdin", io.StringIO(given))
        for name, value in more.items():
            patch.setenv(name, value)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                if case.command[0] == "-m":
                    runpy.run_module(case.command[1], run_name="__main__")
                else:
                    runpy.run_path(case.command[0], run_name="__main__")
            except SystemExit as exit:
                status = exit.code if isinstance(exit.code, int) else bool(exit.code)
                if isinstance(exit.code, str):
                    print(exit.code, file=err)
    return status, out.getvalue(), err.getvalue()


def live(server: WireServer) -> dict[str, str]:
    """The environment of a program that has keys, and whose providers are the test server."""
    return {
        "OPENAI_API_KEY": "any",
        "ANTHROPIC_API_KEY": "any",
        "OPENAI_BASE_URL": server.openai_base_url,
        "ANTHROPIC_BASE_URL": server.anthropic_base_url,
        "GOOGLE_API_KEY": "any",
        "GOOGLE_GEMINI_BASE_URL": server.url,
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.url,
    }


# --- they run -------------------------------------------------------------------------------------


# The session of the sweeps starts each as a program; the quick run tries a third of them, and needs
# no process for each.
@pytest.mark.slow
@pytest.mark.scaled
@pytest.mark.parametrize("case", some_of(CASES, str), ids=str)
def test_an_example_prints_what_it_promises(case: Case) -> None:
    done = run_here(case, [], case.given) if IS_PART else run(case.command, case.given)
    assert done == (0, case.output, "")


SLOW_CALLS = """
import asyncio
import httpx2

send = httpx2.AsyncClient.send

async def send_late(client, request, **named):
    await asyncio.sleep(1.0 if b"tools/call" in request.content else 0)
    return await send(client, request, **named)

httpx2.AsyncClient.send = send_late
"""


@pytest.mark.pure
@pytest.mark.slow
def test_no_worker_of_the_trip_is_killed_inside_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hotel is slow here, and the only worker is the one that is killed: inside `reserve`, it
    would leave open whether there is a room.
    """
    monkeypatch.syspath_prepend(str(ROOT))
    trip = importlib.import_module("examples.trip_service.__main__")

    class OneWorker(trip.Processes):  # type: ignore[misc, name-defined]
        def start_worker(self, *addresses: str) -> None:
            if not self.workers:
                super().start_worker(*addresses)

        def replace_worker(self, *addresses: str) -> None:
            time.sleep(0.5)
            super().replace_worker(*addresses)

    (tmp_path / "sitecustomize.py").write_text(SLOW_CALLS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    with serve(trip.SCRIPT) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        processes = OneWorker(tmp_path / "trips.db", "a-model")
        try:
            trip.tell_story(processes)
        finally:
            processes.end()
    (case,) = (case for case in CASES if case.script == "trip_service/__main__.py")
    assert capsys.readouterr().out == case.output
    results = [
        message for message in server.requests[-1].body["messages"] if "tool_call_id" in message
    ]
    assert results[-1]["content"] == "3 nights for Ada"


@pytest.fixture
def answers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The answers that an example has written down, for a server to play them."""
    case: Case = request.param
    if case.script.endswith("/__main__.py"):
        monkeypatch.syspath_prepend(str(ROOT))
        names = vars(importlib.import_module(f"examples.{Path(case.script).parent.name}.__main__"))
    else:
        names = runpy.run_path(str(EXAMPLES / case.script), run_name="example")
    if case.script == "fallback_model/__main__.py":
        begun, failure, last = names["SCRIPTS"]["claude"]
        failures = [replace(failure, headers={"retry-after-ms": "1"})] * 3
        return [begun, *failures, *names["SCRIPTS"]["gpt"], last]
    if case.script != "switch_provider.py":
        return list(names[case.script_name])
    # One script for each model there; a server answers in the order of the requests. The SDK tries
    # twice more by itself.
    first, second = names["SCRIPTS"]["responses"]
    failure, last = names["SCRIPTS"]["messages"]
    between = [names["SCRIPTS"][name][0] for name in ("gemini", "chat", "converse")]
    failures = [replace(failure, headers={"retry-after-ms": "1"})] * 3
    return [first, *failures, *between, second, last]


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.scaled
@pytest.mark.parametrize(
    ("case", "answers"),
    [(case, case) for case in some_of(CASES, str)],
    indirect=["answers"],
    ids=str,
)
def test_live_is_the_same_through_the_sdk_with_the_model_and_address_that_were_asked_for(
    case: Case, answers: list[Any]
) -> None:
    more = {
        "switch_provider.py": ("claude", "gemini", "nova"),
        "fallback_model/__main__.py": ("claude",),
    }
    others = more.get(case.script, ())
    models = [word for name in others for word in (f"--{name}", "a-model")]
    with serve(answers) as server:
        arguments = ["--live", "--model", "a-model", *models]
        # One for each API as its users start it.
        if case.script.startswith("quickstart_") and not IS_PART:
            done = run([*case.command, *arguments], case.given, **live(server))
        else:
            done = run_here(case, arguments, case.given, **live(server))
        assert done == (0, case.output, "")
        assert server.remaining == 0
        assert {request.body["model"] for request in server.requests} == {"a-model"}


@pytest.mark.pure
@pytest.mark.slow
def test_the_tests_of_the_sqlite_agent_pass() -> None:
    """They are those of an application: run on their own, without anything of this suite."""
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "sqlite_agent")]
    status, out, _ = run(command)
    assert status == 0, out
    written = (EXAMPLES / "sqlite_agent" / "test_sqlite_agent.py").read_text().count("\ndef test_")
    (passed,) = re.findall(r"(\d+) passed", out)
    assert int(passed) >= written


# --- they are complete ----------------------------------------------------------------------------

SCRIPTS = sorted({case.script for case in CASES})


def test_every_example_is_run() -> None:
    found = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py")}
    package = {f"sqlite_agent/{name}" for name in SQLITE_AGENT} | {
        "sqlite_agent/test_sqlite_agent.py"
    }
    package |= {f"approval_page/{name}" for name in APPROVAL_PAGE}
    package |= {f"trip_service/{name}" for name in TRIP_SERVICE}
    package |= {f"fallback_model/{name}" for name in FALLBACK_MODEL}
    assert found == {*SCRIPTS, *package, *NEEDS_NPM}
    assert {path.name for path in OUTPUTS.iterdir()} == {case.file.name for case in CASES}


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_example_says_what_it_shows_how_to_run_it_and_what_it_prints(script: str) -> None:
    said = ast.get_docstring(ast.parse((EXAMPLES / script).read_text())) or ""
    package = script.removesuffix("/__main__.py")
    command = f"examples/{script}" if package == script else f"-m examples.{package}"
    assert re.match(r"[A-Z].*[.:;]", said)
    assert f"\n\nRun:    python {command} " in said
    assert f"\n        python {command} --live " in said
    assert "--model NAME" in said
    assert "\nPrints: " in said


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_example_is_short(script: str) -> None:
    lines = [line for line in (EXAMPLES / script).read_text().splitlines() if line.strip()]
    assert 40 <= len(lines) <= 150


PUBLIC = (
    "adapters.anthropic adapters.bedrock adapters.gemini adapters.openai apis doctor durable "
    "errors execution hooks local loops mcp models openapi provider_tools streaming testing "
    "text_tools tool_doctor toolclad"
).split()


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.rglob("*.py")), ids=lambda path: path.relative_to(EXAMPLES).as_posix()
)
def test_an_example_imports_public_names_and_no_other_example(path: Path) -> None:
    others = {other.stem for other in EXAMPLES.rglob("*.py")} | {"examples"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not any(alias.name.split(".")[0] in {*others, "lutumpy"} for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                assert path.parent.name in PACKAGES
                continue
            assert node.module is not None
            if node.module.split(".")[0] == "lutumpy":
                assert node.module in {"lutumpy", *[f"lutumpy.{name}" for name in PUBLIC]}
                public = importlib.import_module(node.module).__all__
                assert [alias.name for alias in node.names if alias.name not in public] == []
            else:
                assert node.module.split(".")[0] not in others


def test_the_index_names_every_example_once() -> None:
    page = (ROOT / "docs" / "examples.md").read_text()
    rows = re.findall(
        r"^\| \[([\w/.]+)\]\(\.\./examples/([\w/.]+)\) \| \S.*\|$", page, re.MULTILINE
    )
    assert [name for name, linked in rows if name != linked] == []
    named = [f"{name}/__main__.py" if name in PACKAGES else name for name, _ in rows]
    assert sorted(named) == sorted([*SCRIPTS, *NEEDS_NPM])


# --- what a person sees ---------------------------------------------------------------------------


NEEDS_ANTHROPIC = {
    "fallback_model/__main__.py",
    "own_client_async.py",
    "quickstart_messages.py",
    "streaming_ui.py",
}
NAMES_ITS_KEY = {"quickstart_gemini.py": "GOOGLE_API_KEY", "quickstart_bedrock.py": "AWS_REGION"}
NEEDS_NO_KEY = {"text_only_model.py"}  # it asks a host of the user's own


@pytest.fixture
def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    if "boto3" in sys.modules:  # its session keeps what it has found
        monkeypatch.setattr(sys.modules["boto3"], "DEFAULT_SESSION", None)


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.usefixtures("without_keys")
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.script not in NEEDS_NO_KEY], ids=str
)
def test_without_a_key_live_says_which_one_it_needs(case: Case) -> None:
    status, out, err = run_here(case, ["--live"])
    assert status == 2
    (line,) = err.strip().splitlines()
    # Of a client that the library makes, Anthropic's SDK names the argument only.
    wanted = "api_key" if case.script in NEEDS_ANTHROPIC else NAMES_ITS_KEY.get(case.script)
    assert (wanted or "OPENAI_API_KEY").lower() in line.lower(), line
    assert case.output.startswith(out)


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.usefixtures("without_keys")
def test_a_host_without_a_key_is_asked_and_what_it_refuses_is_said() -> None:
    with serve([Failure(401, "no key, no answer")]) as server:
        command = [str(EXAMPLES / "text_only_model.py"), "--live"]
        status, out, err = run(command, OPENAI_BASE_URL=server.openai_base_url)
    assert (status, out, err) == (2, "", "openai_chat: HTTP 401: no key, no answer\n")


@pytest.fixture
def gate() -> Iterator[subprocess.Popen[str]]:
    """The approval gate, waiting for its first answer."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / "hooks" / "approval_gate.py")]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        encoding="utf-8",
        env=environment(PYTHONUNBUFFERED="1"),
    ) as process:
        assert process.stdout is not None
        seen = ""
        while not seen.endswith("[e]dit? "):
            piece = process.stdout.read(1)
            assert piece, seen
            seen += piece
        yield process
        process.kill()


@pytest.mark.slow
def test_the_approval_gate_stops_on_ctrl_c_and_has_paid_nothing(
    gate: subprocess.Popen[str],
) -> None:
    gate.send_signal(signal.SIGINT)
    out, err = gate.communicate(timeout=60)
    assert (gate.returncode, err) == (1, "\nStopped; what was asked for last was not run.\n")
    assert "paid" not in out


@pytest.mark.slow
def test_the_approval_gate_rejects_at_the_end_of_its_input(gate: subprocess.Popen[str]) -> None:
    out, err = gate.communicate("", timeout=60)
    assert (gate.returncode, err) == (0, "")
    assert out.count("a person said no") == 3
    assert "ran: paid" not in out


@pytest.mark.slow
def test_the_approval_gate_takes_no_edit_that_does_not_fit() -> None:
    typed = 'e\n{"amount": "many"}\ne\n[90]\ne\n{"amount"\nn\n\n'
    status, out, err = run([str(EXAMPLES / "hooks" / "approval_gate.py")], typed)
    assert (status, err) == (0, "")
    assert re.findall("that can't be run: (.*?)(?:  \\[y\\]|\n)", out) == [
        "call 'call_000000000000000200000000' of tool 'pay': amount: Input should be a valid "
        "number, "
        'unable to parse string as a number (got "many")',
        "that is no JSON object",
        "Expecting ':' delimiter: line 1 column 10 (char 9)",
    ]


@pytest.mark.pure
@pytest.mark.slow
def test_the_streaming_ui_redraws_a_line_on_a_terminal() -> None:
    terminal, screen = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-W", "error", str(EXAMPLES / "streaming_ui.py")],
        stdout=screen,
        env=environment(),
    ) as process:
        os.close(screen)
        shown = b""
        while True:
            try:
                piece = os.read(terminal, 4096)
            except OSError:  # Linux says so when the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(terminal)
    assert process.returncode == 0
    text = shown.decode()
    assert "\r\x1b[2K  population {} ..." in text
    assert "\r\x1b[2K  population {'city': 'Oslo'} runs\r\n" in text
    # What stays on the screen is what a file would have, without the lines that grew.
    stays = [re.sub(r".*\r\x1b\[2K", "", line) for line in text.split("\r\n")]
    (case,) = [case for case in CASES if case.script == "streaming_ui.py"]
    assert stays == [line for line in case.output.split("\n") if not line.endswith(" ...")]


@pytest.mark.slow
def test_the_streaming_ui_stops_on_ctrl_c() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def slow(api: str, body: Mapping[str, Any]) -> Reply | Failure:
        asked.set()
        go_on.wait(60)
        return Failure(500, "too late", headers={"x-should-retry": "false"})

    command = [sys.executable, "-W", "error", str(EXAMPLES / "streaming_ui.py"), "--live"]
    pipe = subprocess.PIPE
    with (
        serve([slow]) as server,
        subprocess.Popen(
            command, stdout=pipe, stderr=pipe, encoding="utf-8", env=environment(**live(server))
        ) as process,
    ):
        try:
            assert asked.wait(60)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            go_on.set()
            process.kill()
    assert (process.returncode, out, err) == (
        1,
        "",
        "\nStopped; nothing of the unfinished answer was kept.\n",
    )


def test_the_audit_log_is_data() -> None:
    (case,) = [case for case in CASES if case.script == "hooks/audit_log.py"]
    entries = [json.loads(line) for line in case.output.splitlines() if line.startswith("{")]
    assert [(entry["call_id"], entry["decision"]) for entry in entries] == [
        ("call_1", "edited"),
        ("call_2", "rejected"),
        ("call_3", "handled"),
        ("call_4", "issue"),
    ]
