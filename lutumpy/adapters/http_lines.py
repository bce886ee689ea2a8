"""The events of a stream with one JSON object on each line (NDJSON), split from its bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lutumpy.plain import json_values

__all__ = ["LineSplitter"]


class LineSplitter:
    """Takes the bytes of one response as they come, cut anywhere, and gives the value of each line.

    Blank lines are left out. The work is linear in the bytes.

    Attributes:
        ended: Whether the last event has come; lines have no mark for it.
        error: What is wrong with a line. Nothing is taken after it.
    """

    __slots__ = ("_held", "ended", "error")

    def __init__(self) -> None:
        # What has come of a line that isn't complete.
        self._held: list[bytes] = []
        self.ended: bool = False
        self.error: Exception | None = None

    def feed(self, data: bytes) -> Iterator[Any]:
        """The lines that are complete with `data`; each is parsed when it is taken."""
        complete, newline, rest = data.rpartition(b"\n")
        if not newline:
            if data:
                self._held.append(data)
            return iter(())
        lines = b"".join([*self._held, complete])
        self._held = [rest] if rest else []
        return self._parse(lines)

    def rest(self) -> Sequence[Any]:
        """The last line, where the stream ended without the end of it."""
        held, self._held = b"".join(self._held), []
        return list(self._parse(held))

    def _parse(self, lines: bytes) -> Iterator[Any]:
        try:
            for line in lines.split(b"\n"):
                if line and not line.isspace():
                    yield json_values.decode(line)
        except (ValueError, RecursionError) as error:
            self.error = error
