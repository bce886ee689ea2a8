"""Tool calls of models that only write text: `TextTools` around an adapter, and its parsers."""

from __future__ import annotations

from lutumpy.text_tools.model import TextTools
from lutumpy.text_tools.protocol import (
    CallStreamFormatter,
    ParsedCall,
    ParsedText,
    ReasoningFormatter,
    StreamFormatter,
    ToolCallParser,
)
from lutumpy.text_tools.syntax import CallSyntax
from lutumpy.text_tools.tag_parser import TagToolParser

__all__ = [
    "CallStreamFormatter",
    "CallSyntax",
    "ParsedCall",
    "ParsedText",
    "ReasoningFormatter",
    "StreamFormatter",
    "TagToolParser",
    "TextTools",
    "ToolCallParser",
]
