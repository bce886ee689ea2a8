"""One wheel from the package index that pip is set up for, by name and version."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from lutumpy.errors import FetchError
from lutumpy.local.missing import missing_extra

__all__ = ["Progress", "download_wheel"]

Progress = Callable[[int], None]
"""Told the number of bytes that have arrived so far."""

POLL_SECONDS = 0.1
ERROR_LINES = 12


def download_wheel(requirement: str, directory: Path, progress: Progress | None = None) -> Path:
    """Have pip download one wheel, without what it requires, into an empty directory.

    Args:
        requirement: Name and version: `name==1.0`.
        directory: Where the wheel goes; what pip keeps for the time of the download goes there too.
        progress: Told several times a second how much has arrived.

    Returns:
        The wheel.

    Raises:
        ImportError: pip isn't installed for this interpreter.
        FetchError: pip failed; its last words are in the message.
    """
    if importlib.util.find_spec("pip") is None:
        raise missing_extra("pip")
    parts = directory / "parts"
    wheels = directory / "wheels"
    parts.mkdir()
    wheels.mkdir()
    command = [
        *(
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--dest",
            str(wheels),
        ),
        *(
            "--no-cache-dir",
            "--no-input",
            "--disable-pip-version-check",
            "--progress-bar",
            "off",
            "--retries",
            "2",
        ),
        requirement,
    ]
    # pip shows no progress to a pipe. It writes the wheel below its temporary directory, so that is
    # watched instead.
    environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(parts))}
    with tempfile.TemporaryFile(dir=directory) as output:
        code = run(
            command,
            environment,
            directory,
            output.fileno(),
            lambda: progress and progress(_measure_largest(directory)),
        )
        output.seek(0)
        printed = output.read().decode("utf-8", "replace")
    found = list(wheels.glob("*.whl"))
    if code != 0 or len(found) != 1:
        lines = [line.strip() for line in printed.splitlines() if line.strip()][-ERROR_LINES:]
        raise FetchError(
            f"pip could not download {requirement}; nothing was kept. It said:\n" + "\n".join(lines)
        )
    return found[0]


def run(
    command: list[str],
    environment: dict[str, str],
    cwd: Path,
    output: int,
    poll: Callable[[], object],
) -> int:
    """Run a command to its end, polling, and give its exit code; it is killed when anything is
    raised here meanwhile.
    """
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
    )
    try:
        while True:
            try:
                code = process.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                poll()
            else:
                poll()
                return code
    except BaseException:
        process.kill()
        process.wait()
        raise


def _measure_largest(directory: Path) -> int:
    """Bytes of the largest file below: pip writes to one, and may copy it at the end."""
    largest = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(folder, name)).st_size)
            except OSError:  # it was moved meanwhile
                continue
    return largest
