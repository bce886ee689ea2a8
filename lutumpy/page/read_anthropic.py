"""Messages of Anthropic on the page. Broken ones are read like good ones."""

from __future__ import annotations

from lutumpy.page.pieces import part_piece, result_content
from lutumpy.page.read_blocks import BlockPieces

__all__ = ["BLOCKS"]

BLOCKS = BlockPieces(part_piece, result_content, lambda result: result.get("is_error") is True)
