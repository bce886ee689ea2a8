"""Tool calls of models that only write text: `TextTools` around an adapter, and its parsers."""

from __future__ import annotations

from lutumpy.text_tools.formats import recognize_format, text_formats
from lutumpy.text_tools.instruction import ToolListing
from lutumpy.text_tools.model import TextTools
from lutumpy.text_tools.nested_syntax import NestedSyntax
from lutumpy.text_tools.protocol import (
    CallStreamFormatter,
    ParsedCall,
    ParsedText,
    ReasoningFormatter,
    StreamFormatter,
    ToolCallParser,
)
from lutumpy.text_tools.python_syntax import PythonSyntax
from lutumpy.text_tools.result_form import ResultForm
from lutumpy.text_tools.syntax import CallSyntax
from lutumpy.text_tools.tag_parser import TagToolParser
from lutumpy.text_tools.templates import fetch_template, read_template
from lutumpy.text_tools.text_format import TextFormat
from lutumpy.text_tools.xml_syntax import XmlSyntax

__all__ = [
    "CallStreamFormatter",
    "CallSyntax",
    "NestedSyntax",
    "ParsedCall",
    "ParsedText",
    "PythonSyntax",
    "ReasoningFormatter",
    "ResultForm",
    "StreamFormatter",
    "TagToolParser",
    "TextFormat",
    "TextTools",
    "ToolCallParser",
    "ToolListing",
    "XmlSyntax",
    "fetch_template",
    "read_template",
    "recognize_format",
    "text_formats",
]
