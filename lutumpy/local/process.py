"""The process of a server: how it is started, given its parameters, logged and ended."""

# What is hard: the process must end together with this one, its pipes must never block it, and a
# start that fails must say why.
#
#   state      how it gets there                       stdin     stdout          stderr
#   ------------------------------------------------------------------------------------------------
#   starting   Popen; one line of JSON is sent         open      awaited         read always
#   ready      it answered {"url": ...}                open      nothing more    read always
#   failed     it answered {"error": ...}, ended, or   closed    closed          closed
#              took too long; it is killed
#   ended      `end` closed its stdin; it is killed    closed    closed          closed
#              if that doesn't help in 5 seconds
#
# The closed stdin is the sign to end. The system closes it also when this process is killed, so no
# exit handler is needed, and none would run then. Windows has no way to wait for a pipe with a
# timeout, so a thread reads the one line of the answer. Another thread reads the log for as long as
# the server runs: a full pipe would stop llama.cpp in the middle of a request.

from __future__ import annotations

import collections
import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from lutumpy.errors import LocalServerError

__all__ = ["COMMAND", "ServerProcess"]

COMMAND = (sys.executable, "-I", str(Path(__file__).with_name("worker.py")))
STOP_SECONDS = 5.0
LOG_LINES = 50

logger: logging.Logger = logging.getLogger("lutumpy.local")


class ServerProcess:
    """A running server.

    Making one starts it and waits until it listens; afterwards it has to be ended.

    Args:
        parameters: What llama.cpp is told, by the names in `xllamacpp.CommonParams`.
        timeout: Seconds that the start may take.
        command: The program that runs the server; see `worker.py` for what it reads and writes.

    Attributes:
        url: Where the server listens.
        log: The last lines of llama.cpp's log.

    Raises:
        LocalServerError: it could not be started. Nothing of it is left.
    """

    def __init__(
        self, parameters: Mapping[str, Any], timeout: float, command: Sequence[str] = COMMAND
    ) -> None:
        self.log: collections.deque[str] = collections.deque(maxlen=LOG_LINES)
        self._threads: list[threading.Thread] = []
        # In a session of its own: a Ctrl-C in the terminal is for the user's program to answer.
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            self._start_thread("lutumpy-local-log", self._keep_log)
            self.url: str = self._handshake(parameters, timeout)
        except BaseException:
            self._process.kill()
            self.end()
            raise

    @property
    def code(self) -> int | None:
        """The exit code when the process has ended, else `None`."""
        return self._process.poll()

    def end(self) -> None:
        """End the process, however it is; afterwards its port is free, and no thread or pipe of it
        is left.
        """
        process = self._process
        with contextlib.suppress(OSError):  # it has ended already
            _require_pipe(process.stdin).close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        while self._threads:
            self._threads.pop().join()
        _require_pipe(process.stdout).close()
        _require_pipe(process.stderr).close()

    def failure(self) -> str:
        """What went wrong, after the log: its first error, else its last line; with a colon in
        front, or empty.
        """
        for line in self.log:
            _, found, reply = line.partition(" E ")
            if found:
                return f": {reply.strip()}"
        return f": {self.log[-1]}" if self.log else ""

    def _handshake(self, parameters: Mapping[str, Any], timeout: float) -> str:
        process = self._process
        setup = {"parent": os.getpid(), "path": sys.path, "parameters": parameters}
        with contextlib.suppress(OSError):  # it has ended already, and the missing answer tells
            _require_pipe(process.stdin).write(json.dumps(setup).encode() + b"\n")
            _require_pipe(process.stdin).flush()
        lines: list[bytes] = []
        reader = self._start_thread(
            "lutumpy-local-start", lambda: lines.append(_require_pipe(process.stdout).readline())
        )
        reader.join(timeout)
        if reader.is_alive():
            raise LocalServerError(
                f"the server was not ready within {timeout:g} seconds, and was "
                f"stopped{self.failure()}; "
                f"a large model may need a larger start_timeout",
                self.log,
            )
        reply: dict[str, str] = json.loads(lines[0] or b"{}")
        if "url" in reply:
            return reply["url"]
        self.end()  # so that the log is complete
        if "error" in reply:
            raise LocalServerError(
                f"the server could not be started: {reply['error']}{self.failure()}", self.log
            )
        raise LocalServerError(
            f"the server ended with code {process.returncode} while it started{self.failure()}",
            self.log,
        )

    def _start_thread(self, name: str, target: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)
        return thread

    def _keep_log(self) -> None:
        for raw in _require_pipe(self._process.stderr):
            line = raw.decode("utf-8", "replace").rstrip()
            self.log.append(line)
            logger.debug("%s", line)


def _require_pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # all three were asked for
    return stream
