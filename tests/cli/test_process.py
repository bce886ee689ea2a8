"""The command as a process: exit codes, pipes, signals, memory, terminals; and no traceback,
whatever the file.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_toolkit import BROKEN, FIXTURES, WHOLE, Run, Write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import __version__
from lutumpy.cli import main

COMMAND = [sys.executable, "-m", "lutumpy"]
ROOT = Path(__file__).parent.parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def execute(
    *arguments: str, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        env={**ENVIRONMENT, **environment},
        timeout=120,
    )


@pytest.mark.parametrize(
    ("arguments", "stdin", "code"),
    [
        (["--version"], b"", 0),
        (["--help"], b"", 0),
        (["check", "-"], json.dumps(WHOLE).encode(), 0),
        (["check", "-"], json.dumps(BROKEN).encode(), 1),
        (["check", "-"], b"{", 2),
        (["check"], b"", 2),
        (["tools", "check", "nothing:There"], b"", 2),
    ],
)
def test_exit_codes_reach_the_shell(arguments: list[str], stdin: bytes, code: int) -> None:
    done = execute(*arguments, stdin=stdin)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    if arguments == ["--version"]:
        assert done.stdout.decode().split() == ["lutumpy", __version__]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_every_character_goes_to_every_terminal(encoding: str) -> None:
    messages = [{"role": "user", "content": "äöü 日本 \U0001f600 \ud800"}, *BROKEN[1:]]
    done = execute(
        "show", "-", stdin=json.dumps(messages).encode(), PYTHONIOENCODING=encoding, PYTHONUTF8="0"
    )
    assert done.returncode == 0
    assert done.stderr == b""
    assert "日本" in done.stdout.decode() if encoding == "utf-8" else b"\\u65e5" in done.stdout


def test_when_nobody_reads_on_it_ends_quietly(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text((json.dumps(BROKEN) + "\n") * 1000)
    for arguments in (
        ["check", str(file)],
        ["check", str(file), "--json"],
        ["convert", str(file), "--to", "openai_chat", "--json"],
    ):
        process = subprocess.Popen(
            [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
        )
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        _, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (141, b""), arguments


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full disk to lend")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["check", "-"], ["demo"]])
def test_output_that_can_t_be_written_ends_with_2_and_the_reason(arguments: list[str]) -> None:
    """1 would say that something is refused."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *arguments],
            input=json.dumps(WHOLE).encode(),
            stdout=full,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            timeout=120,
        )
    expected = f"lutumpy: [Errno 28] {os.strerror(28)}\n"
    assert (done.returncode, done.stderr.decode()) == (2, expected)


@pytest.mark.skipif(os.name != "posix", reason="it is a POSIX shell that closes them")
@pytest.mark.parametrize(
    ("arguments", "closed", "code"),
    [
        ("check {file}", ">&-", 1),
        ("check {file}", "2>&-", 1),
        ("check {file}", "<&- >&- 2>&-", 1),
        ("check -", "<&-", 2),  # nothing is in it
        ("demo --help", ">&-", 0),
        ("text-formats", ">&-", 0),
    ],
)
def test_a_standard_stream_that_is_closed_is_an_empty_one(
    tmp_path: Path, arguments: str, closed: str, code: int
) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(BROKEN))
    line = f"{shlex.join(COMMAND)} {arguments.format(file=shlex.quote(str(file)))} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, env=ENVIRONMENT, timeout=120)
    assert (done.returncode, b"Traceback" in done.stderr) == (code, False), done.stderr
    if closed == "2>&-":
        assert b"1 document checked: 1 refused" in done.stdout


def test_ctrl_c_ends_it_quietly_and_leaves_the_file(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("as it was")
    arguments = ["convert", "-", "--to", "openai_responses", "-o", str(out)]
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    # The complaint about the second line says that it is at work, and the pipe stays open, so that
    # it waits for more.
    process.stdin.write(json.dumps(WHOLE).encode() + b"\n{bad\n" + b" " * 4_000_000)
    process.stdin.flush()
    assert b"cannot read" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (130, b"")
    assert out.read_text() == "as it was"
    assert os.listdir(tmp_path) == ["out.jsonl"]


@pytest.mark.parametrize(("raised", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)])
def test_the_demo_ends_as_quietly_as_the_commands_do(
    raised: type[BaseException], code: int
) -> None:
    """It goes its own way, since it needs no command line library."""
    script = (
        "import sys, lutumpy.cli.demo as demo\n"
        "from lutumpy.cli import main\n"
        "def stop(arguments):\n"
        "    print('a line in the buffer')\n"
        f"    raise {raised.__name__}\n"
        "demo.main = stop\n"
        "sys.exit(main(['demo']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env=ENVIRONMENT, timeout=120
    )
    assert (done.returncode, done.stderr) == (code, b"")


def test_the_demo_ends_quietly_when_nobody_reads_on() -> None:
    process = subprocess.Popen(
        [*COMMAND, "demo", "--provider", "all", "--stream"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**ENVIRONMENT, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (141, b"")


def _document(size: int) -> str:
    messages = [{"role": "user", "content": "x" * 2_000} for _ in range(size // 2_040)]
    return json.dumps({"model": "m", "messages": messages})


def test_a_large_file_of_lines_is_streamed(tmp_path: Path) -> None:
    """12 MB of documents take no more memory than 1 MB of them do."""
    document = _document(20_000)
    peaks: list[int] = []
    for size in (1_000_000, 12_000_000):
        file = tmp_path / "a.jsonl"
        count = size // len(document)
        with file.open("w") as stream:
            for index in range(count):
                stream.write(("\n" if index else "") + document)
        script = (
            "import resource, sys; from lutumpy.cli import main; code = main(sys.argv[1:]); "
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr); "
            "sys.exit(code)"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, "check", str(file), "--json"],
            capture_output=True,
            env=ENVIRONMENT,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["documents"] == count
        peaks.append(int(done.stderr))
    assert peaks[1] - peaks[0] < 3_000  # kibibytes on Linux; the file grew by 11,000


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("arguments", [["check"], ["check", "--json"]])
def test_a_terminal_gets_a_bar_while_a_long_file_is_read_and_a_program_none(
    tmp_path: Path, arguments: list[str]
) -> None:
    import pty

    file = tmp_path / "a.jsonl"
    file.write_text((_document(100_000) + "\n") * 100)
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments, str(file)],
        stdout=subprocess.DEVNULL,
        stderr=terminal,
        env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(terminal)
    shown = b""
    try:
        while piece := os.read(screen, 65536):
            shown += piece
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(screen)
    assert process.wait(timeout=120) == 0
    if "--json" in arguments:
        assert shown == b""
    else:
        assert b"MB" in shown
        assert b"a.jsonl" in shown


def test_without_the_extra_it_says_what_to_install_and_the_demo_still_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [
        name
        for name in sys.modules
        if name.partition(".")[0] in ("typer", "rich", "lutumpy.cli.app")
    ]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("typer", "rich"):
        monkeypatch.setitem(sys.modules, name, None)
    for arguments in (["check", "a"], ["--help"], []):
        assert main(arguments) == 2
        assert (
            'needs typer and rich; install it with: python -m pip install ".[cli]" (in a clone)'
            in capsys.readouterr().err
        )
    assert main(["--version"]) == 0
    assert main(["demo"]) == 0
    assert "round" in capsys.readouterr().out


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=300),
    name=st.sampled_from(["a.json", "a.jsonl", "a"]),
    command=st.integers(0, 4),
)
def test_no_file_makes_a_command_fail_otherwise_than_it_says(
    run: Run, write: Write, data: bytes, name: str, command: int
) -> None:
    write(name, text="")
    Path(name).write_bytes(data)
    _holds(run, name, command)


keys = st.sampled_from(
    "model messages input role content type text tools tool_calls tool_call_id function name "
    "arguments id call_id output request response status system tool_use_id tool_use tool_result "
    "format version items decisions system".split()
)
words = st.sampled_from(
    "user assistant tool system developer text tool_use tool_result function function_call "
    "function_call_output message "
    "reasoning image_url openai_chat c1 c2 lutumpy.session {}".split()
)
shapes: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), words, st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=5)),
    max_leaves=25,
)
messages = st.lists(st.dictionaries(keys, shapes, max_size=5), min_size=1, max_size=4)
near = st.one_of(
    st.builds(lambda m: {"model": "m", "messages": m}, messages),
    st.builds(lambda m: {"model": "m", "input": m}, messages),
    st.builds(
        lambda m: {"model": "claude-x", "max_tokens": 5, "system": "s", "messages": m}, messages
    ),
    st.builds(
        lambda m: {"model": "m", "messages": [{"role": "user", "content": "x"}, *m]}, messages
    ),
    st.builds(
        lambda r: {"request": {"model": "m", "messages": []}, "response": r, "api": "openai_chat"},
        shapes,
    ),
    shapes,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(value=near, command=st.integers(0, 4))
def test_no_json_makes_a_command_fail_otherwise_than_it_says(
    run: Run, write: Write, value: Any, command: int
) -> None:
    _holds(run, write("a.json", value), command)


def _holds(run: Run, name: str, command: int) -> None:
    arguments: list[list[str]] = [
        ["check", name],
        ["repair", name, "--apply", "--json"],
        ["convert", name, "--to", "anthropic_messages", "--json"],
        ["show", name],
        ["show", name, "--html", "out.html"],
    ]
    ended = run(*arguments[command])
    assert ended.code in (0, 1, 2)
    if ended.code == 2:
        assert ended.err or ended.records
    # An empty file holds no document; what is left of one may fit more than one API.
    if command == 1 and ended.code == 0 and (api := ended.records[0].get("api")) is not None:
        assert run("check", name, "--api", api).code == 0  # what was repaired is accepted
        before = Path(name).read_bytes()
        assert run("repair", name, "--apply", "--api", api).code == 0
        assert Path(name).read_bytes() == before


@pytest.mark.sweep
@pytest.mark.parametrize("depth", [150, 195, 205, 960, 100_000])
@pytest.mark.parametrize(
    "around",
    [
        '{"model": "m", "messages": [{"role": "user", "content": %s}]}',
        '[{"role": "user", "content": "x"}, '
        '{"role": "assistant", "tool_calls": [{"id": 5, "function": %s}]}]',
        '{"model": "claude-x", "max_tokens": 5, "messages": '
        '[{"role": "user", "content": [{"type": "tool_result", "x": %s}]}]}',
        '{"request": {"model": "m", "input": "x"}, "response": %s}',
    ],
)
def test_deep_nesting_is_worked_on_or_named(
    run: Run, write: Write, around: str, depth: int
) -> None:
    text = around % ("[" * depth + "]" * depth)
    assert ("nested" in run("check", write("a.json", text=text)).err) == (depth > 200)
    for command in range(5):
        _holds(run, write("a.json", text=text), command)


def test_files_are_read_where_they_are_told_apart_by_name(run: Run, write: Write) -> None:
    """A file named .jsonl is lines even where one line would be a file of its own."""
    file = write("a.jsonl", text="{bad\n")
    assert "a.jsonl:1:2" in run("check", file).err
    assert run("check", FIXTURES / "openai_chat.jsonl").code == 0
