"""Messages of Converse on the page. Broken ones are read like good ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.models import ResultStatus
from lutumpy.page.model import Piece, Place
from lutumpy.page.pieces import (
    argument_text,
    content_pieces,
    data_piece,
    extra_piece,
    image_piece,
    text_piece,
    unwrap,
)
from lutumpy.page.timeline import Timeline

__all__ = ["read_message"]

# What is shown by itself; other keys of a message are shown as they are.
_SHOWN = frozenset(("role", "content"))
