"""A block of calls that is open: what the scanner of a text asks of it, whatever its format."""

# `Block` reads JSON character by character, `BodyBlock` every other format at its end. Both are
# state machines whose states are methods `(text, pos) -> pos`: each takes what it knows of the
# text, says where it stopped, and sets `_state` to the next one. Where it needs to know more of the
# text, it sets `waiting`, and is asked again with more.

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from lutumpy.text_tools.protocol import ParsedCall

__all__ = ["OpenBlock"]


class OpenBlock(ABC):
    """Fed with the text behind a start tag until it is `closed`.

    Args:
        start: The start tag.
        begin: The first state.
        quoted: The block is in a code block, where what doesn't look like a call is text.

    Attributes:
        raw: The pieces of the block as they were written, start tag included.
        calls: Its calls, when it is closed.
        is_text: It turned out not to be a block of calls.
        is_empty: It is closed and holds no call.
        returned: Text that was taken although it belongs behind the block.
        thinking_end: What ends the thinking that begins behind the block; empty where none does.
        waiting: More of the text is needed to go on, or its end.
        closed: It has ended.
    """

    __slots__ = (
        "_quoted",
        "_state",
        "calls",
        "closed",
        "is_empty",
        "is_text",
        "raw",
        "returned",
        "thinking_end",
        "waiting",
    )

    def __init__(self, start: str, begin: Callable[[str, int], int], *, quoted: bool) -> None:
        self.raw: list[str] = [start]
        self.calls: list[ParsedCall] = []
        self.is_text: bool = False
        self.is_empty: bool = False
        self.returned: str = ""
        self.thinking_end: str = ""
        self.waiting: bool = False
        self.closed: bool = False
        self._quoted = quoted
        self._state = begin

    def feed(self, text: str, pos: int) -> int:
        """Take what belongs to the block; gives where it stopped: behind it, or where it waits."""
        self.waiting = False
        while pos < len(text) and not self.closed and not self.waiting:
            pos = self._state(text, pos)
        return pos

    @abstractmethod
    def finish(self, rest: str) -> None:
        """The text has ended in the block, with `rest` not taken yet."""

    def _take(self, text: str, pos: int, stop: int) -> int:
        """Take the text up to `stop` into the block."""
        if stop > pos:
            self.raw.append(text[pos:stop])
        return stop
