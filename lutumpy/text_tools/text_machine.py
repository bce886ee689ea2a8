"""A state machine that reads a text in pieces: what the scanners of tags and of guided answers have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lutumpy.text_tools.protocol import ParsedCall

__all__ = ["TextMachine"]


class TextMachine:
    """A `StreamFormatter` whose states are methods: given the text, a position in it and whether nothing follows, a state gives
    the position that it came to, or sets `_waiting` where more of the text must be known.

    Args:
        begin: The first state.

    Attributes:
        calls: The calls that are complete so far.
    """

    __slots__ = ("_carry", "_out", "_state", "_waiting", "calls")

    def __init__(self, begin: Callable[[str, int, bool], int]) -> None:
        self.calls: list[ParsedCall] = []
        self._carry = ""
        self._out: list[str] = []
        self._waiting = False
        self._state: Callable[[str, int, bool], int] = begin

    def feed(self, chunk: str) -> str:
        """Take the next piece; gives what can be shown now."""
        self._run(self._carry + chunk if self._carry else chunk, final=False)
        return self._shown()

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
