"""Files that commands write: whole, or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

__all__ = ["open_output", "write_file"]


@contextmanager
def open_output(path: str) -> Iterator[TextIO]:
    """A file to write UTF-8 text into, `-` for standard output.

    What is written takes the place of the file when the block ends, and only if it ends without an
    exception: until then it is in a file beside it. A link is followed, permissions stay.

    Raises:
        OSError: The file can't be written.
    """
    if path == "-":
        yield sys.stdout
        return
    target = Path(path).resolve()
    if target.exists() and not target.is_file():  # a terminal, a pipe: there is nothing to keep
        if target.is_dir():
            raise IsADirectoryError(0, "it is a directory")
        with open(target, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    # In the same folder: only within one file system does a file take the place of another at once.
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
        # mkstemp lets only the owner read; the file that is replaced may have let others, too.
        os.chmod(
            temporary, target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_read_umask()
        )
        os.replace(temporary, target)
    except BaseException:  # Ctrl-C as well: no half of a file is left beside the whole one
        Path(temporary).unlink(missing_ok=True)
        raise


def write_file(path: str, text: str) -> None:
    """Write a whole file; raises `OSError`, and then the file is as it was."""
    with open_output(path) as stream:
        stream.write(text)


def _read_umask() -> int:
    # It can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
