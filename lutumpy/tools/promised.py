"""Results that come later: the promise that a call gives in place of one, and the open call that
takes it.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from lutumpy.core.items import ToolMetadata
from lutumpy.core.parts import content_problem
from lutumpy.core.promises import Promise, PromisedCall, placeholder
from lutumpy.plain.strict_json import copy_json
from lutumpy.plain.values import dataclass
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.polled import poller_of
from lutumpy.tools.results import (
    ToolResult,
    completed,
    content_parts,
    failed_result,
    rejected,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = [
    "OpenCall",
    "fit_late_result",
    "may_be_late",
    "promised_result",
    "still_running_reason",
]


def promised_result(
    metadata: ToolMetadata,
    tool: CompiledTool,
    note: str,
    handle: Any,
    until: datetime | timedelta | None,
) -> ToolResult:
    """The promise of a call of a tool; see `BaseToolCall.later`.

    A handle that isn't JSON is reported by `commit`.

    Raises:
        TypeError: `note` isn't text, or `until` neither a time nor a duration.
        ValueError: `until` is a time without its zone.
    """
    if not isinstance(note, str):
        raise TypeError(f"later takes the note as text, not {type(note).__name__}")
    error: str | None = None
    try:
        handle = None if handle is None else copy_json(handle, "the handle of the promise")
    except (TypeError, ValueError) as problem:
        handle, error = None, str(problem)
    now = datetime.now(timezone.utc)
    promise = Promise(note, handle, now, _end_of(until, now), tool.digest, tool)
    text = placeholder(metadata.name, metadata.id, note)
    return ToolResult(metadata, text, "promised", None, None, error, promise)


def _end_of(until: Any, now: datetime) -> datetime | None:
    if until is None:
        return None
    if isinstance(until, timedelta):
        return now + until
    if not isinstance(until, datetime):
        raise TypeError(f"until takes a time or a duration, not {type(until).__name__}")
    if until.tzinfo is None:
        raise ValueError("until is a time without its zone: datetime.now(timezone.utc) has one")
    return until.astimezone(timezone.utc)


def still_running_reason(call_id: str) -> str:
    """Why a call isn't run that equals an open one of a `once` tool (rule LR13)."""
    return f"An equal call ({call_id}) is still running; its result comes by itself."


def may_be_late(call: Any) -> bool:
    """Whether the result of this call may come later (rule LR1): its tool was declared with
    `late=True`, or has no code of its own, so that the user's code answers it, or is polled.
    """
    selector = getattr(call, "selector", None)
    if selector is None:
        return False
    tool = selector.tool
    if selector.definition.options.late or not tool.is_runnable:
        return True
    return poller_of(tool) is not None


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call of a committed turn whose result is still to come.

    Attributes:
        call_id: Its id.
        tool: The name of the tool.
        arguments: The text of the arguments as the model wrote them.
        note: What the model was told when it was promised.
        handle: What the program keeps to find the work again: JSON. Not to be changed.
        since: When it was promised; `None` where that isn't known, as in a history.
        until: When it is given up; `None` for never.
        promised: What the transcript has of it.
    """

    call_id: str
    tool: str
    arguments: str
    note: str
    handle: JsonValue
    since: datetime | None
    until: datetime | None
    promised: PromisedCall

    @staticmethod
    def of(promised: PromisedCall) -> OpenCall:
        """The open call that a transcript has."""
        promise = promised.promise
        return OpenCall(
            promised.call_id,
            promised.name,
            promised.arguments,
            promise.note,
            promise.handle,
            promise.since,
            promise.until,
            promised,
        )

    def __hash__(self) -> int:
        return hash((self.call_id, self.tool))

    @property
    def metadata(self) -> ToolMetadata:
        """Which call it is."""
        return self.promised.metadata

    def complete(self, output: Any) -> ToolResult:
        """The result of the tool, for `session.deliver`.

        Never raises: an output that doesn't fit the tool's output type is reported by `deliver`.
        The type is known where the tool was called in this process, or `deliver` is given the
        toolset; else the output is text, content parts, or what JSON has a form for.
        """
        tool = self.promised.promise.tool
        if isinstance(tool, CompiledTool):
            return completed(self.metadata, tool, output)
        return _completed_untyped(self.metadata, output)

    def fail(
        self, error: str | BaseException, *, content: Any = None, reveal: bool = False
    ) -> ToolResult:
        """The result of a tool that failed; see `ToolCall.fail`."""
        return failed_result(self.metadata, error, content=content, reveal=reveal)

    def reject(self, reason: str) -> ToolResult:
        """The result of a call that was given up, and why."""
        return rejected(self.metadata, reason)


def _completed_untyped(metadata: ToolMetadata, output: Any) -> ToolResult:
    """The result for the output of a tool that isn't known here."""
    if isinstance(output, str):
        return ToolResult(metadata, output, "ok", None, output)
    parts = content_parts(output)
    if parts is not None:
        return ToolResult(metadata, parts, "ok", None, output, content_problem(parts))
    import pydantic_core  # only values without a type need it here

    try:
        text = pydantic_core.to_json(output, inf_nan_mode="constants").decode()
        pydantic_core.from_json(text, allow_inf_nan=False)
    except Exception as error:  # whatever the value's own code raises
        return ToolResult(metadata, "", "ok", None, output, f"it can't be written as JSON: {error}")
    return ToolResult(metadata, text, "ok", None, output)


def fit_late_result(result: ToolResult, tool: CompiledTool) -> ToolResult:
    """A result of an open call, its output checked against the tool's type (rule K3)."""
    if result.status != "ok" or result.output_error is not None or result.output is None:
        return result
    return completed(result.metadata, tool, result.output)
