"""The numbers and formats of Responses alone; those of both APIs are one folder up."""

from __future__ import annotations

from collections.abc import Mapping

from lutumpy.rules.media import PDF
from lutumpy.rules.openai.limits import MAX_TEXT_PART

MAX_CALL_ID = 64
"""Characters of a call's id [API description]."""
MAX_ITEM_ID = 64
"""Characters of an item's id [API description]."""
ID_PREFIXES: Mapping[str, str] = {
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "message": "msg",
    "reasoning": "rs",
    "tool_search_call": "tsc",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
}
"""How an item's id begins, by the type of the item. Of function calls, messages and reasoning it is
reported as checked ("Expected an ID that begins with 'fc'"); of the others it is what recordings
show."""
MAX_DECLARED_NAME = 128
"""Characters of a declared tool's name [API description]; some endpoints refuse more than the
`MAX_NAME` that both APIs share."""
MAX_HISTORY_NAME = 128
"""Characters of the name in a call that is sent back [API description]."""
MAX_OUTPUT = MAX_TEXT_PART
"""Characters of an output that is one text [API description]."""

FILE_TYPES = frozenset(
    {
        PDF,
        "application/csv",
        "application/json",
        "application/msword",
        "application/rtf",
        "application/typescript",
        "application/vnd.ms-excel",
        "application/vnd.ms-powerpoint",
        "application/vnd.oasis.opendocument.text",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/x-sh",
        "application/xml",
        "application/yaml",
    }
)
"""Media types of a file, beside all of `text/...`: documents, sheets, code [guide]."""
