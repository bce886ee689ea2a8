"""A state machine that reads a text in pieces: what the scanners of tags and of guided answers have in common."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lutumpy.text_tools.protocol import ParsedCall

__all__ = ["SPACE", "TextMachine", "Thoughts"]

SPACE = re.compile(r"\s*")


class Thoughts:
    """Thinking that arrives in pieces: sections of it, without the white space around each, an empty line between two."""

    __slots__ = ("_any", "_blank", "_pieces", "_space")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        # White space that is thinking only if more thinking follows.
        self._space: list[str] = []
        self._blank = True
        self._any = False

    def begin(self) -> None:
        """A section begins; what the one before ended in is left out."""
        self._space.clear()
        self._blank = True

    def add(self, text: str) -> None:
        """Take the next piece of the section."""
        if self._blank:
            text = text.lstrip()
            if not text:
                return
            if self._any:
                self._pieces.append("\n\n")
            self._blank, self._any = False, True
        end = len(text.rstrip())
        if end:
            self._pieces += self._space
            self._pieces.append(text[:end])
            self._space.clear()
        if end < len(text):
            self._space.append(text[end:])

    def take(self) -> str:
        """What has arrived since the last time."""
        taken = "".join(self._pieces)
        self._pieces.clear()
        return taken


class TextMachine:
    """A `StreamFormatter` whose states are methods: given the text, a position in it and whether nothing follows, a state gives
    the position that it came to, or sets `_waiting` where more of the text must be known.

    Args:
        begin: The first state.

    Attributes:
        calls: The calls that are complete so far.
        empty_blocks: How often the place of a call was there so far, with no call in it.
    """

    __slots__ = ("_carry", "_out", "_state", "_thoughts", "_waiting", "calls", "empty_blocks")

    def __init__(self, begin: Callable[[str, int, bool], int]) -> None:
        self.calls: list[ParsedCall] = []
        self.empty_blocks: int = 0
        self._thoughts = Thoughts()
        self._carry = ""
        self._out: list[str] = []
        self._waiting = False
        self._state: Callable[[str, int, bool], int] = begin

    def feed(self, chunk: str) -> str:
        """Take the next piece; gives what can be shown now."""
        self._run(self._carry + chunk if self._carry else chunk, final=False)
        return self._shown()

    def take_reasoning(self) -> str:
        """The thinking that has arrived since the last time."""
        return self._thoughts.take()

    def _count_empty(self, is_empty: bool) -> None:
        if is_empty:
            self.empty_blocks += 1

    def _shown(self) -> str:
        shown = "".join(self._out)
        self._out.clear()
        return shown

    def _run(self, text: str, *, final: bool) -> None:
        pos = 0
        self._waiting = False
        while pos < len(text) and not self._waiting:
            pos = self._state(text, pos, final)
        self._carry = text[pos:]
