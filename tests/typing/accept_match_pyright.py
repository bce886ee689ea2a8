# mypy: ignore-errors
"""`match` on a call itself. Nothing is run.

Pyright narrows the call, and proves that every input class is handled; mypy does neither. Of
functions neither knows more: their input is `BaseModel` to both, so a class pattern in it proves
nothing.
"""

from accept_calls import SomeCall
from accept_hooks import FileText, Hits, ReadFile, Search
from typing_extensions import assert_never, assert_type

from lutumpy import ToolCall, ToolResult


def run(call: SomeCall) -> ToolResult:
    match call:
        case ToolCall(input=ReadFile()):
            assert_type(call, ToolCall[ReadFile, FileText])
            return call.complete(FileText(text=call.input.path))
        case ToolCall(input=Search(query=query)):
            assert_type(call, ToolCall[Search, Hits])
            return call.complete(Hits(hits=[query]))
        case _:
            assert_never(call)
