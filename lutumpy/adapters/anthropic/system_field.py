"""The `system` of a request of Messages: the leading messages of the system and the developer."""

from __future__ import annotations

from lutumpy.adapters.anthropic.cache import mark
from lutumpy.adapters.anthropic.original import system_blocks, takes_system_breakpoint
from lutumpy.adapters.anthropic.parts import text_blocks
from lutumpy.plain.json_values import encode

__all__ = ["SystemField"]


class SystemField:
    """What is in `system`.

    Args:
        as_blocks: A single text is a block too, not a string.

    Attributes:
        read: The field as it was read from a history, as JSON bytes; empty for none.
        texts: What was pushed besides.
    """

    __slots__ = ("_as_blocks", "read", "texts")

    def __init__(self, as_blocks: bool) -> None:
        self._as_blocks = as_blocks
        self.read: bytes = b""
        self.texts: list[str] = []

    def copy(self) -> SystemField:
        """An independent copy."""
        twin = SystemField(self._as_blocks)
        twin.read, twin.texts = self.read, self.texts.copy()
        return twin

    def write(self, at: int | None = None) -> bytes:
        """The field: a string when it's one text, a list of text blocks when more, or `b""`.

        Args:
            at: Which block gets a breakpoint of the prompt cache.
        """
        if not self.texts and not self._as_blocks:
            return self.read
        if at is None and not self.read:
            if not self.texts:
                return b""
            is_string = len(self.texts) == 1 and not self._as_blocks
            return encode(self.texts[0] if is_string else text_blocks(self.texts))
        blocks = [encode(block) for block in system_blocks(self.read) + text_blocks(self.texts)]
        if at is not None:
            blocks[at] = mark(blocks[at], b"}")
        return b"[" + b",".join(blocks) + b"]" if blocks else self.read

    @property
    def place(self) -> tuple[bytes, int]:
        """What tells one `system` of this conversation from a longer one."""
        return self.read, len(self.texts)

    def last_block(self, stable: int | None) -> int | None:
        """The last block that stays as it is in later requests, or `None`; also when it has a
        breakpoint.

        Args:
            stable: How many of the pushed texts are there to stay; `None` for all.
        """
        if stable is None:
            stable = len(self.texts)
        if stable or not self.read:
            return stable - 1 + len(system_blocks(self.read)) if stable else None
        blocks = system_blocks(self.read)
        return len(blocks) - 1 if blocks and takes_system_breakpoint(blocks[-1]) else None
