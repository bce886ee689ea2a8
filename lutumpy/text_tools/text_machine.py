"""A state machine that reads a text in pieces."""

# `TextScanner`, `GuidedScanner` and the splitter of leading thinking are such machines. A state is
# a method `(text, pos, final) -> pos`: it takes what it knows of the text from `pos` on, and says
# where it stopped. It may set `_state` to another state. Where it needs to know more of the text,
# it sets `_waiting`: what is left is carried over to the next piece. When nothing follows any more,
# `final` is true and no state waits.

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lutumpy.text_tools.protocol import ParsedCall

__all__ = ["SPACE", "TextMachine", "Thoughts"]

SPACE = re.compile(r"\s*")


class Thoughts:
    """Thinking that arrives in pieces.

    It may come in several sections. White space around each is left out, and an empty line
    separates them.
    """

    __slots__ = ("_any", "_blank", "_pieces", "_space")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        # White space that is thinking only if more thinking follows.
        self._space: list[str] = []
        self._blank = True
        self._any = False

    def begin(self) -> None:
        """A section begins; white space at the end of the previous one is left out."""
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
    """A `StreamFormatter` whose states are methods; the comment above says how they work.

    Args:
        begin: The first state.

    Attributes:
        calls: The calls that are complete so far.
        empty_blocks: How many blocks of calls held no call so far.
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
        """Take the next piece; returns the text that can be shown now."""
        self._run(self._carry + chunk if self._carry else chunk, final=False)
        return self._take_shown()

    def take_reasoning(self) -> str:
        """The thinking that has arrived since the last time."""
        return self._thoughts.take()

    def _count_empty(self, is_empty: bool) -> None:
        if is_empty:
            self.empty_blocks += 1

    def _take_shown(self) -> str:
        shown = "".join(self._out)
        self._out.clear()
        return shown

    def _run(self, text: str, *, final: bool) -> None:
        pos = 0
        self._waiting = False
        while pos < len(text) and not self._waiting:
            pos = self._state(text, pos, final)
        self._carry = text[pos:]
