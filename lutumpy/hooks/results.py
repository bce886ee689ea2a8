"""The forms in which code and hooks answer a call, and the one form that is committed."""

from __future__ import annotations

from typing import Any, TypeAlias, Union

from lutumpy.tools.approvals import answer_request, is_approval
from lutumpy.tools.calls import HandledTool, RejectedToolCall
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.results import ToolResult, completed, rejected

__all__ = ["CallResult", "to_tool_result"]

CallResult: TypeAlias = Union[ToolResult, HandledTool[Any, Any], RejectedToolCall]
"""What answers one call: a result, or a decision of a hook as `ToolHooks.apply` gives it."""


def to_tool_result(result: CallResult, tool: CompiledTool | None) -> ToolResult:
    """A result in any form as a `ToolResult`.

    Args:
        result: The result, in any of its forms.
        tool: The tool that was called; `None` where the call can't be run, so that no output can
            be checked against it. The `output_error` says so then.

    Raises:
        TypeError: the reason of a rejection is not text.
    """
    if isinstance(result, ToolResult):
        return result
    if isinstance(result, RejectedToolCall):
        return rejected(result.metadata, result.reason)
    if is_approval(result.selector):
        return answer_request(result.metadata, result.output)
    # An output is checked against the tool's type here; one that doesn't fit is kept, with the
    # reason, so that the commit can name all problems together.
    if tool is not None:
        return completed(result.metadata, tool, result.output)
    return ToolResult(
        result.metadata,
        "",
        output=result.output,
        output_error="the call can't be run, so it has no output",
    )
