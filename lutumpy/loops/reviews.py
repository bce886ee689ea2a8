"""What becomes of a result that result hooks have reviewed, or could not review."""

from __future__ import annotations

from dataclasses import replace

from lutumpy import ToolResult
from lutumpy.execution import ExecutionResult

__all__ = ["has_words_of_the_tool", "take_content", "withhold"]

WITHHELD = (
    "The tool ran, and what it did stands, but what it said is withheld: it could not be reviewed."
)


def has_words_of_the_tool(result: ToolResult) -> bool:
    """Whether the content comes from the tool; for other outcomes the executor wrote it."""
    return not isinstance(result, ExecutionResult) or result.outcome in ("ok", "failed")


def take_content(result: ToolResult, reviewed: ToolResult) -> ToolResult:
    """The result with the reviewed content; what else the executor noted in it stays."""
    if reviewed is result:
        return result
    return replace(result, content=reviewed.content, output_error=reviewed.output_error)


def withhold(result: ToolResult) -> ToolResult:
    """The result without what the tool said, which nobody has reviewed."""
    if not has_words_of_the_tool(result):
        return result
    return replace(result, content=WITHHELD, status="error", output_error=None)
