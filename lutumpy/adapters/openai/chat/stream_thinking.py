"""The `thinking_blocks` of a streamed chat message: Anthropic's signed thinking at LiteLLM."""

# A delta has a list of blocks, and only the first of them may continue the last block so far:
#
#   the last block        | the delta's first block        | what becomes of it
#   ----------------------+--------------------------------+------------------------------------
#   thinking, not signed  | thinking                       | its text is joined to the last one's
#   thinking, not signed  | thinking, signed, and its text | the same, without what was there
#                         | begins with the text so far    | (newer proxies send it once more)
#   any other             | any                            | a block of its own
#
# Everything but thinking comes whole: redacted thinking has no text.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lutumpy.adapters.openai.merged_object import MergedObject, join_text
from lutumpy.adapters.openai.reply_fields import text
from lutumpy.plain.json_values import copied

__all__ = ["StreamedThinking"]

_GROWING = frozenset({"thinking"})


class StreamedThinking:
    """The `thinking_blocks` of one message."""

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        self._blocks: list[Any] = []

    def add(self, blocks: Sequence[Any]) -> None:
        """Take a delta's blocks."""
        for number, block in enumerate(blocks):
            last = self._blocks[-1] if self._blocks and number == 0 else None
            if not isinstance(block, dict) or block.get("type") != "thinking":
                self._blocks.append(copied(block))
            elif isinstance(last, MergedObject) and not last.get("signature"):
                last.add(_without_repeated(block, last))
            else:
                self._blocks.append(MergedObject(_GROWING, block))

    def whole(self) -> list[Any]:
        """The blocks that the deltas so far make up."""
        return [
            block.whole() if isinstance(block, MergedObject) else block for block in self._blocks
        ]


def _without_repeated(block: dict[str, Any], last: MergedObject) -> dict[str, Any]:
    """A delta of a block, without the text so far where it repeats that with its signature."""
    thinking = text(block.get("thinking"))
    if thinking is None or not block.get("signature"):
        return block
    return {**block, "thinking": thinking.removeprefix(join_text(last.text_deltas("thinking")))}
