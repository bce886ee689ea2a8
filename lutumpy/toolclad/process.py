"""One run of a program: no shell, an environment of its own, limits, and nothing left of it."""

# What is hard: whatever happens, nothing of the program may be left, and nothing of it may make
# this process wait or grow.
#
#   danger                                   what is done
#   ---------------------------------------  ----------------------------------------------------
#   it has children                          it leads a process group; signals go to the group
#   it runs too long                         SIGTERM to the group, a second later SIGKILL
#   its caller is cancelled                  SIGKILL to the group at once
#   it ends, and its children don't          SIGKILL to the group: they would keep the pipes open
#   a child left the group, and keeps the    they are read for one more second
#   pipes open
#   it prints without end                    a part is kept; the rest is hashed, counted, dropped
#   it waits for input                       there is none: its input is empty
#   it looks at the environment, or at       it has the environment that it is given, no other
#   files that are open here                 open file, and no terminal
#   it has ended, and its id is given to     it is asked whether it ended in a way that leaves its
#   another process before the group is      id taken (`waitid`, WNOWAIT), and reaped at the end
#   killed
#
# The pipes are read in the event loop (asyncio or trio), and no thread is used, which nobody could
# stop. Whether a program has ended is asked again and again: no way to be told works on every Unix,
# in every thread and under both event loops.
#
#   state         how it gets there                         signals sent
#   ------------  ----------------------------------------  ---------------------------------------
#   not_started   the system refuses it                     none
#   ended         it exits, or is killed by somebody else   SIGKILL to what is left of the group
#   timed_out     the time is up                            SIGTERM, SIGKILL
#   interrupted   the caller is cancelled                   SIGKILL

from __future__ import annotations

import codecs
import contextlib
import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Literal, TypeAlias

import anyio

__all__ = ["Output", "ProgramRun", "State"]

State: TypeAlias = Literal["not_started", "ended", "timed_out", "interrupted"]

_GRACE = 1.0  # seconds between SIGTERM and SIGKILL
_DRAIN = 1.0  # seconds for which pipes are read that somebody else keeps open
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02  # seconds between two looks whether it has ended
_CHUNK = 65_536
_MOST_REST = 32  # chunks; somebody else may still be writing


class Output:
    """What a program printed on one of its pipes.

    Args:
        most: How many bytes are kept.

    Attributes:
        size: How many bytes it printed.
    """

    __slots__ = ("_digest", "_kept", "_most", "size")

    def __init__(self, most: int) -> None:
        self.size: int = 0
        self._most = most
        self._kept = bytearray()
        self._digest = hashlib.sha256()

    def add(self, data: bytes) -> None:
        """Take what was read next."""
        self.size += len(data)
        self._digest.update(data)
        self._kept += data[: self._most - len(self._kept)]

    @property
    def is_cut(self) -> bool:
        """Whether it printed more than is kept."""
        return self.size > len(self._kept)

    @property
    def text(self) -> str:
        """What is kept, cut between characters; what isn't UTF-8 is replaced by U+FFFD."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return decoder.decode(bytes(self._kept), final=not self.is_cut)

    @property
    def digest(self) -> str:
        """SHA-256 of everything that it printed."""
        return f"sha256:{self._digest.hexdigest()}"


class ProgramRun:
    """One run of a program; `run` once.

    Args:
        program: The absolute path of the program.
        command: What it sees as its own name, and its arguments.
        directory: Where it runs.
        environment: All of its environment.
        most_output: How many bytes of its output are kept, and as many of its error output.

    Attributes:
        output: What it printed.
        errors: What it printed as errors.
        exit_code: Its exit code, negative for the signal that ended it; `None` until then.
        seconds: How long it ran.
        error: What kept it from starting, if anything did.
    """

    def __init__(
        self,
        program: str,
        command: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        most_output: int,
    ) -> None:
        self.output: Output = Output(most_output)
        self.errors: Output = Output(most_output)
        self.exit_code: int | None = None
        self.seconds: float = 0.0
        self.error: OSError | None = None
        self._program = program
        self._command = [part.encode() for part in command]
        self._directory = directory
        self._environment = {name.encode(): text.encode() for name, text in environment.items()}

    async def run(self, most_seconds: float) -> State:
        """Start it, and wait until it has ended or the time is up.

        Raises:
            BaseException: A cancellation of the caller. Nothing of the program is left.
        """
        started = time.monotonic()
        try:
            process = self._start()
        except OSError as error:
            self.error = error
            return "not_started"
        try:
            return await self._follow(process, most_seconds)
        finally:
            _signal_group(process, signal.SIGKILL)
            with anyio.CancelScope(shield=True), anyio.move_on_after(_GRACE):
                await _wait_for_end(process)
            self.exit_code = process.poll()
            # Whoever was reading may have been stopped before the last of it.
            _read_rest(_require_pipe(process.stdout), self.output)
            _read_rest(_require_pipe(process.stderr), self.errors)
            self.seconds = time.monotonic() - started

    def _start(self) -> subprocess.Popen[bytes]:
        # In the event loop, as asyncio does it: a start that could be cancelled halfway would leave
        # a process that nobody knows of.
        return subprocess.Popen(
            self._command,
            executable=self._program,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._directory,
            env=self._environment,
            start_new_session=True,
            bufsize=0,
        )

    async def _follow(self, process: subprocess.Popen[bytes], most_seconds: float) -> State:
        state: State = "timed_out"
        async with anyio.create_task_group() as readers:
            both_read = anyio.Event()
            readers.start_soon(self._read_pipes, process, both_read)
            with anyio.move_on_after(most_seconds):
                await _wait_for_end(process, both_read)
                state = "ended"
            if state == "timed_out":
                _signal_group(process, signal.SIGTERM)
                with anyio.move_on_after(_GRACE):
                    await _wait_for_end(process)
            _signal_group(process, signal.SIGKILL)
            with anyio.move_on_after(_DRAIN):
                await both_read.wait()
            readers.cancel_scope.cancel()
        return state

    async def _read_pipes(self, process: subprocess.Popen[bytes], both_read: anyio.Event) -> None:
        async with anyio.create_task_group() as pipes:
            pipes.start_soon(_read_pipe, _require_pipe(process.stdout), self.output)
            pipes.start_soon(_read_pipe, _require_pipe(process.stderr), self.errors)
        both_read.set()


async def _read_pipe(pipe: IO[bytes], output: Output) -> None:
    descriptor = pipe.fileno()
    os.set_blocking(descriptor, False)
    while True:
        await anyio.wait_readable(descriptor)
        with contextlib.suppress(BlockingIOError):
            data = os.read(descriptor, _CHUNK)
            if not data:
                return
            output.add(data)


def _read_rest(pipe: IO[bytes], output: Output) -> None:
    """Read what a pipe still holds, without waiting, and close it."""
    os.set_blocking(pipe.fileno(), False)
    with contextlib.suppress(BlockingIOError):
        for _ in range(_MOST_REST):
            data = os.read(pipe.fileno(), _CHUNK)
            if not data:
                break
            output.add(data)
    pipe.close()


async def _wait_for_end(
    process: subprocess.Popen[bytes], both_read: anyio.Event | None = None
) -> None:
    """Return when the process has ended; it isn't reaped where the system can tell without that.

    Args:
        process: The process.
        both_read: Set when its pipes are closed, which is mostly just before its end.
    """
    pause = _FIRST_PAUSE
    while not _has_ended(process):
        if both_read is None or both_read.is_set():
            await anyio.sleep(pause)
        else:
            with anyio.move_on_after(pause):
                await both_read.wait()
                pause = _FIRST_PAUSE
        pause = min(2 * pause, _LONGEST_PAUSE)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    if process.returncode is not None:
        return True
    try:
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, process.pid, options) is not None
    except (AttributeError, ChildProcessError):
        # macOS before Python 3.13 has no such call, and a program that ignores SIGCHLD no children
        # to wait for. Then it is reaped here, and its group is killed at once, while nobody else
        # can have got its id.
        if process.poll() is None:
            return False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        return True


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to the process and its children, as long as its id is its own."""
    if process.returncode is None:
        # It has ended, with all of its group; or, on macOS, only the process is left, to be reaped.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


def _require_pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # both were asked for
    return pipe
