"""Results on their way to the commit: hooks may replace their content, and nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from lutumpy.core.parts import PARTS, content_problem
from lutumpy.errors import HookError
from lutumpy.hooks.calling import close_coroutine, hook_failure
from lutumpy.hooks.implementations import Implementation
from lutumpy.hooks.results import CallResult, to_tool_result
from lutumpy.tools.approvals import is_approval
from lutumpy.tools.calls import HandledTool, RejectedToolCall
from lutumpy.tools.results import ToolResult
from lutumpy.tools.selectors import BaseToolset

__all__ = ["read_results", "refuse_async_review", "review_results"]

# A review comes before the commit, so this holds whatever goes wrong in it.
UNCOMMITTED = "nothing was committed"


def read_results(results: Sequence[CallResult], toolset: type[BaseToolset]) -> list[ToolResult]:
    """The results that `commit` would write for these.

    Raises:
        TypeError: one is none of the three forms of a result.
        UnknownToolError: one is of a tool that the toolset doesn't have.
    """
    return [_read_result(result, toolset) for result in results]


def _read_result(result: Any, toolset: type[BaseToolset]) -> ToolResult:
    if isinstance(result, (ToolResult, RejectedToolCall)):
        return to_tool_result(result, None)
    if isinstance(result, HandledTool) and is_approval(result.selector):
        return to_tool_result(result, None)
    if isinstance(result, HandledTool):
        # Its own selector first: the tool may be known at run time only.
        selector = result.selector or toolset.selector(result.metadata.name)
        return to_tool_result(result, selector.tool)
    raise TypeError(
        "review takes ToolResult, HandledTool and RejectedToolCall, "
        f"not {type(result).__name__}; {UNCOMMITTED}"
    )


def refuse_async_review(hooks: Mapping[str, Sequence[Implementation]]) -> None:
    """Raise `HookError` for the first hook that is declared async."""
    for name, implementations in hooks.items():
        for hook in implementations:
            if hook.is_async:
                raise HookError(
                    f"result hook {hook.label} of {name!r} is async; use review(); {UNCOMMITTED}"
                )


def review_results(
    results: Sequence[ToolResult], hooks: Mapping[str, Sequence[Implementation]]
) -> Generator[Any, Any, list[ToolResult]]:
    """Run every result through the hooks of its tool; yields what has to be awaited.

    Args:
        results: What is going to be committed.
        hooks: The hooks by tool name.

    Raises:
        HookError: a hook raised, or gave something that can't take the result's place.
    """
    reviewed: list[ToolResult] = []
    for result in results:
        metadata = result.metadata
        for hook in hooks[metadata.name]:
            place = f"result hook {hook.label} on call {metadata.id!r} of {metadata.name!r}"
            try:
                replacement = hook.by_position(metadata, result)
                if inspect.isawaitable(replacement):
                    replacement = yield replacement
            except Exception as error:
                raise hook_failure(place, error, UNCOMMITTED) from error
            result = _replace_content(result, replacement, place)
        reviewed.append(result)
    return reviewed


def _replace_content(before: ToolResult, after: Any, place: str) -> ToolResult:
    if after is None or after is before:
        return before
    if not isinstance(after, ToolResult):
        close_coroutine(after)
        raise HookError(
            f"{place} gave {type(after).__name__}, not a ToolResult or None; {UNCOMMITTED}"
        )
    # A hook that could turn a rejection into a success would undo what others have decided.
    fixed = (after.metadata, after.status, after.rejection_reason)
    if fixed != (before.metadata, before.status, before.rejection_reason):
        raise HookError(f"{place} changed more than the content of the result; {UNCOMMITTED}")
    content: Any = after.content
    is_parts = isinstance(content, tuple) and all(isinstance(p, PARTS) for p in content)
    if not is_parts and not isinstance(content, str):
        raise HookError(
            f"{place} gave content that is neither text nor a tuple of content parts; {UNCOMMITTED}"
        )
    problem = content_problem(content)
    if problem is not None:
        raise HookError(f"{place} gave a result that can't be sent: {problem}; {UNCOMMITTED}")
    if content == before.content:
        # An output that doesn't fit the tool has to stay a problem of the commit: a new result
        # would have no `output_error`, and a hook that changed nothing has mended nothing.
        return before
    return ToolResult(
        before.metadata, content, before.status, before.rejection_reason, before.output
    )
