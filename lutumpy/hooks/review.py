"""Results on their way to the commit: hooks may replace what they say, not what they answer."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeAlias, Union

from lutumpy.core.parts import PARTS, content_problem
from lutumpy.errors import HookError
from lutumpy.hooks.implementations import Implementation
from lutumpy.hooks.pipeline import close, failed
from lutumpy.tools.calls import HandledTool, RejectedToolCall
from lutumpy.tools.results import ToolResult, completed, rejected
from lutumpy.tools.selectors import BaseToolset

Answer: TypeAlias = Union[ToolResult, HandledTool[Any, Any], RejectedToolCall]

UNCOMMITTED = "nothing was committed"


def as_results(answers: Sequence[Answer], toolset: type[BaseToolset]) -> list[ToolResult]:
    """The results that `commit` would make of these."""
    return [_as_result(answer, toolset) for answer in answers]


def _as_result(answer: Any, toolset: type[BaseToolset]) -> ToolResult:
    if isinstance(answer, ToolResult):
        return answer
    if isinstance(answer, RejectedToolCall):
        return rejected(answer.metadata, answer.reason)
    if isinstance(answer, HandledTool):
        return completed(
            answer.metadata, toolset.selector(answer.metadata.name).tool, answer.output
        )
    raise TypeError(
        f"review takes ToolResult, HandledTool and RejectedToolCall, not {type(answer).__name__}; {UNCOMMITTED}"
    )


def refuse_async_review(hooks: Mapping[str, Sequence[Implementation]]) -> None:
    """Raises `HookError` for the first hook that is declared async."""
    for name, implementations in hooks.items():
        for hook in implementations:
            if hook.is_async:
                raise HookError(
                    f"result hook {hook.label} of {name!r} is async; use review(); {UNCOMMITTED}"
                )


def reviewing(
    results: Sequence[ToolResult], hooks: Mapping[str, Sequence[Implementation]]
) -> Generator[Any, Any, list[ToolResult]]:
    """Run every result through the hooks of its tool; yields what has to be awaited.

    Args:
        results: What is going to be committed.
        hooks: By tool name.

    Raises:
        HookError: a hook raised, or gave something that is no such result.
    """
    reviewed: list[ToolResult] = []
    for result in results:
        for hook in hooks[result.metadata.name]:
            where = f"result hook {hook.label} on call {result.metadata.id!r} of {result.metadata.name!r}"
            try:
                given = hook.by_position(result.metadata, result)
                if inspect.isawaitable(given):
                    given = yield given
            except Exception as error:
                raise failed(where, error, UNCOMMITTED) from error
            result = _with_content(result, given, where)
        reviewed.append(result)
    return reviewed


def _with_content(before: ToolResult, after: Any, where: str) -> ToolResult:
    if after is None or after is before:
        return before
    if not isinstance(after, ToolResult):
        close(after)
        raise HookError(
            f"{where} gave {type(after).__name__}, not a ToolResult or None; {UNCOMMITTED}"
        )
    kept = (after.metadata, after.status, after.rejection_reason)
    if kept != (before.metadata, before.status, before.rejection_reason):
        raise HookError(f"{where} changed more than the content of the result; {UNCOMMITTED}")
    content: Any = after.content
    is_parts = isinstance(content, tuple) and all(isinstance(p, PARTS) for p in content)
    if not is_parts and not isinstance(content, str):
        raise HookError(
            f"{where} gave content that is neither text nor a tuple of content parts; {UNCOMMITTED}"
        )
    if (problem := content_problem(content)) is not None:
        raise HookError(f"{where} gave a result that can't be sent: {problem}; {UNCOMMITTED}")
    if content == before.content:
        # An output that didn't fit the tool stays a problem of the commit.
        return before
    return ToolResult(
        before.metadata, content, before.status, before.rejection_reason, before.output
    )
