"""`serve` and its process, with a pretended xllamacpp: start, failures, shutdown.

No model and no native code.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from counting import ended_if_endless

from lutumpy.local import LocalServer, LocalServerError, process, serve


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file that passes for a model; what is written into it is what the pretended server does."""
    file = tmp_path / "Tiny-1.Q4.gguf"
    file.write_text("GGUF ")
    return file


@pytest.fixture(autouse=True)
def _nothing_left(pretended: Path) -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert [
        t for t in threading.enumerate() if t not in before and t.name.startswith("lutumpy")
    ] == []


def watched(listener: socket.socket) -> dict[str, int]:
    return {"sampling.watch": listener.getsockname()[1]}


def accept(listener: socket.socket) -> socket.socket:
    """The connection of a pretended server that has been started."""
    connection, _ = listener.accept()
    connection.settimeout(30)
    return connection


def ended(connection: socket.socket) -> bool:
    """Wait until the process at the other end is gone."""
    with connection:
        try:
            return connection.recv(1) == b""
        except ConnectionResetError:
            return True


def test_inside_the_block_it_says_where_it_is_and_outside_that_it_is_not_running(
    model: Path,
) -> None:
    server = serve(model)
    assert repr(server) == "LocalServer(not running)"
    with pytest.raises(LocalServerError, match="runs only inside its `with` block"):
        _ = server.url
    with server as entered:
        assert entered is server
        assert server.url == "http://127.0.0.1:1234"
        assert server.openai_base_url == "http://127.0.0.1:1234/v1"
        assert server.anthropic_base_url == server.url
        assert server.model == "Tiny-1.Q4"
        assert server.path == model
        assert repr(server) == "LocalServer(http://127.0.0.1:1234)"
    for ask in (lambda: server.url, server.chat, server.responses, server.messages):
        with pytest.raises(LocalServerError, match="runs only inside"):
            ask()


def test_a_server_can_be_entered_again_after_it_was_left_but_not_twice_at_once(model: Path) -> None:
    server = serve(model)
    for _ in range(2):
        with server:
            assert server.url
            with pytest.raises(LocalServerError, match="runs already"):
                server.__enter__()


def test_llama_cpp_is_told_what_was_asked_for(
    model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model.write_text("GGUF show")
    with (
        caplog.at_level(logging.DEBUG, "lutumpy.local"),
        serve(
            model, port=4321, context_tokens=100, slots=3, threads=2, options={"ui": True}
        ) as server,
    ):
        assert server.url == "http://127.0.0.1:4321"
    (line,) = [r.getMessage() for r in caplog.records if r.getMessage().startswith("parameters")]
    assert line == "parameters ['Tiny-1.Q4'] ['127.0.0.1'] 300 3 2  True"


def test_its_log_is_quiet_and_goes_to_logging(
    model: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG, "lutumpy.local"), serve(model):
        pass
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("DEBUG", "0.00.000.001 I srv starting"),
        ("DEBUG", "what native code prints on standard output"),
    ]
    assert capfd.readouterr() == ("", "")


def test_the_process_ends_with_the_block(model: Path, watcher: socket.socket) -> None:
    with serve(model, options=watched(watcher)):
        connection = accept(watcher)
    assert ended(connection)


async def test_the_same_holds_in_async_code(model: Path, watcher: socket.socket) -> None:
    async with serve(model, options=watched(watcher)) as server:
        assert server.url
        connection = accept(watcher)
    assert ended(connection)


def test_the_same_holds_under_trio(model: Path, watcher: socket.socket) -> None:
    pytest.importorskip("trio")

    async def main() -> socket.socket:
        async with serve(model, options=watched(watcher)):
            return accept(watcher)

    assert ended(anyio.run(main, backend="trio"))


def test_an_error_in_the_block_ends_it_too(model: Path, watcher: socket.socket) -> None:
    connections: list[socket.socket] = []

    def program() -> None:
        with serve(model, options=watched(watcher)):
            connections.append(accept(watcher))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        program()
    assert ended(connections[0])


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_cancelling_inside_the_block_ends_it(
    model: Path, watcher: socket.socket, backend: str
) -> None:
    pytest.importorskip(backend)
    connections: list[socket.socket] = []

    async def main() -> None:
        with anyio.CancelScope() as scope:
            async with serve(model, options=watched(watcher)):
                connections.append(accept(watcher))
                scope.cancel()
                await anyio.sleep_forever()

    anyio.run(main, backend=backend)
    assert ended(connections[0])


async def test_cancelling_while_it_starts_leaves_nothing_behind(
    model: Path, watcher: socket.socket
) -> None:
    server = serve(model, options=watched(watcher))
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:

            async def cancel() -> None:
                connections.append(await anyio.to_thread.run_sync(accept, watcher))
                scope.cancel()

            connections: list[socket.socket] = []
            tasks.start_soon(cancel)
            async with server:
                await anyio.sleep_forever()
    assert ended(connections[0])
    assert repr(server) == "LocalServer(not running)"


PARENT = """
import os, signal, socket, sys
from lutumpy.local import serve

port, model, way = int(sys.argv[1]), sys.argv[2], sys.argv[3]
server = serve(model, options={"sampling.watch": port})
server.__enter__()
if way == "fork" and os.fork() == 0:
    # Holds the server's input open, as any fork of a program does, longer than the program lives.
    with socket.create_connection(("127.0.0.1", port)) as mine:
        mine.recv(1)
    os._exit(0)
if way == "exit":
    os._exit(0)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there are no forks and signals")
@pytest.mark.parametrize("way", ["kill", "exit", "fork"])
def test_the_process_ends_with_the_program_however_that_dies(
    model: Path, watcher: socket.socket, pretended: Path, way: str
) -> None:
    command = [sys.executable, "-c", PARENT, str(watcher.getsockname()[1]), str(model), way]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(pretended), *sys.path])}
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as parent:
        connection = accept(watcher)
        fork = accept(watcher) if way == "fork" else None
        parent.communicate(b"die\n")
    assert ended(connection)
    if fork is not None:
        fork.close()


def test_without_the_extra_it_is_named(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with (
        pytest.raises(
            ImportError,
            match=r"needs xllamacpp; install it with: python -m pip install \"\.\[local\]\"",
        ),
        serve(model),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("gone.gguf", None, "there is no file "),
        ("text.gguf", b"GGML and more", "is not a GGUF file"),
        ("empty.gguf", b"", "is not a GGUF file"),
    ],
)
def test_a_file_that_is_no_model_is_named(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(LocalServerError, match=said) as caught, serve(file):
        pass
    assert str(file) in str(caught.value)
    with pytest.raises(LocalServerError, match="is not a file"), serve(tmp_path):
        pass


@pytest.mark.parametrize(
    ("orders", "said"),
    [
        ("refuse", "could not be started: RuntimeError: Failed to init server: srv no such tensor"),
        ("crash", r"ended with code -?\d+ while it started: srv the sky fell"),
    ],
)
def test_a_failed_start_says_why_and_leaves_nothing(
    model: Path, watcher: socket.socket, orders: str, said: str
) -> None:
    model.write_text(f"GGUF {orders}")
    server = serve(model, options=watched(watcher))
    with pytest.raises(LocalServerError, match=said) as caught, server:
        pass
    assert ended(accept(watcher))
    assert caught.value.log[0] == "0.00.000.001 I srv starting"
    with pytest.raises(LocalServerError, match="runs only inside"):
        _ = server.url


def test_an_unknown_option_is_named(model: Path) -> None:
    with (
        pytest.raises(LocalServerError, match="has no attribute 'n_cxt'"),
        serve(model, options={"n_cxt": 1}),
    ):
        pass
    with (
        pytest.raises(LocalServerError, match="has no attribute 'seeed'"),
        serve(model, options={"sampling.seeed": 1}),
    ):
        pass


@pytest.mark.slow
def test_a_start_that_takes_too_long_is_given_up(model: Path, watcher: socket.socket) -> None:
    model.write_text("GGUF hang")
    with (
        pytest.raises(LocalServerError, match=r"not ready within 0\.5 seconds, and was stopped"),
        serve(model, options=watched(watcher), start_timeout=0.5),
    ):
        pass
    watcher.settimeout(1)
    try:
        connection = accept(watcher)
    except TimeoutError:
        return  # on a slow machine it didn't come that far
    assert ended(connection)


def test_a_server_that_dies_is_told_of(
    model: Path, watcher: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    model.write_text("GGUF die")
    with serve(model, options=watched(watcher)) as server:
        connection = accept(watcher)
        connection.send(b"!")
        assert ended(connection)
        assert server._process is not None
        server._process._process.wait(30)
        with pytest.raises(LocalServerError, match="ended on its own with code 7"):
            _ = server.url
    (record,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert record.getMessage() == "the server ended on its own with code 7: srv out of luck"


DEAF = """
import json, os, sys, threading
setup = json.loads(sys.stdin.readline())
print(json.dumps({"url": "http://127.0.0.1:1"}), flush=True)
os.close(1)
threading.Event().wait()
"""


def test_a_process_that_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STOP_SECONDS", 0.1)
    running = process.ServerProcess({}, 30.0, [sys.executable, "-c", DEAF])
    assert running.code is None
    with ended_if_endless():  # the process itself waits for ever
        running.end()
    assert running.code not in (None, 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"port": 65536}, "port must be 0 to 65535, not 65536"),
        ({"port": -1}, "port must be 0 to 65535, not -1"),
        ({"context_tokens": 0}, "context_tokens must be at least 1, not 0"),
        ({"slots": 0}, "slots must be at least 1, not 0"),
        ({"threads": 0}, "threads must be at least 1, not 0"),
        ({"start_timeout": 0.0}, "start_timeout must be more than 0 seconds, not 0"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(options: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        serve(**options)  # type: ignore[arg-type]


def test_without_a_file_the_name_is_known_after_entering() -> None:
    with pytest.raises(LocalServerError, match="known once the `with` block has been entered"):
        _ = LocalServer().model


@pytest.mark.slow
def test_importing_it_loads_no_sdk_and_nothing_of_the_extra() -> None:
    code = (
        "import sys; import lutumpy.local; "
        "print([m for m in ('openai', 'anthropic', 'xllamacpp', 'platformdirs', 'rich', 'pip') if "
        "m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert said.stdout == "[]\n"
