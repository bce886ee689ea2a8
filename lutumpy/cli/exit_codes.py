"""How a command ends that was interrupted, or whose output nobody reads."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

__all__ = ["INTERRUPTED", "NOBODY_READS", "quiet_code", "unwritable_code"]

INTERRUPTED = 130
"""Exit code after Ctrl-C, as of a program that SIGINT ended."""

NOBODY_READS = 141
"""Exit code when the reader of a pipe has gone, as of a program that SIGPIPE ended."""


def quiet_code(error: KeyboardInterrupt | BrokenPipeError) -> int:
    """The exit code for `error`; nothing more is written to standard output after this."""
    # The interpreter flushes standard output when it ends, and would complain that it can't.
    _forget_output()
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else NOBODY_READS


def unwritable_code(error: OSError) -> int:
    """The exit code where standard output can't be written (a full disk); says why.

    Nothing more is written to standard output after this.
    """
    _forget_output()
    with suppress(OSError):  # it may be the same full disk
        print(f"lutumpy: {error}", file=sys.stderr)
    return 2


def _forget_output() -> None:
    """Let what is still in the buffer go nowhere."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass
