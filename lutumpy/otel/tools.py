"""The span of one attempt of one call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from time import perf_counter
from types import TracebackType
from typing import Any

from opentelemetry.trace import Span, SpanKind, get_current_span, use_span

from lutumpy import ToolMetadata
from lutumpy.execution import ExecutionResult
from lutumpy.hooks import BaseToolCall
from lutumpy.otel import names
from lutumpy.otel.errors import error_type, mark_failed
from lutumpy.otel.recorder import Recorder

__all__ = ["ToolSpan"]


class ToolSpan:
    """What is entered around one attempt, as `ToolExecutor(around=)` wants it.

    Args:
        recorder: Where it is written.
        call: The call.
        attempt: The number of the attempt, from 1.
    """

    def __init__(self, recorder: Recorder, call: BaseToolCall, attempt: int) -> None:
        self._recorder = recorder
        self._call = call
        self._attempt = attempt
        self._span: Span | None = None
        self._current: AbstractContextManager[Any] | None = None
        self._result: ExecutionResult | None = None
        self._started = 0.0

    async def __aenter__(self) -> Callable[[ExecutionResult], None]:
        self._recorder.guard(self._begin)
        return self._note_result

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._current is not None:
            self._current.__exit__(None, None, None)
            self._recorder.guard(self._end, error)

    def _note_result(self, result: ExecutionResult) -> None:
        self._result = result

    def _begin(self) -> None:
        metadata, attempt = self._call.metadata, self._attempt
        definition = self._call.selector.definition
        attributes: dict[str, Any] = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL_NAME: metadata.name,
            names.TOOL_CALL_ID: metadata.id,
            names.TOOL_TYPE: "function",
            names.TOOL_DESCRIPTION: definition.description,
            names.TOOL_EFFECT: definition.options.effect,
            names.CALL_ATTEMPT: attempt,
        }
        if self._call.key is not None:
            attributes[names.CALL_KEY] = str(self._call.key)
        conversation = self._recorder.conversation_id()
        if conversation is not None:
            attributes[names.CONVERSATION] = conversation
        repairs = getattr(self._call, "repairs", ())
        if repairs:
            attributes[names.CALL_REPAIRS] = len(repairs)
        attributes |= self._recorder.content.text(names.TOOL_CALL_ARGUMENTS, metadata.arguments)
        if attempt > 1:
            _add_retry_event(metadata, attempt)
        self._span = self._recorder.tracer.start_span(
            f"{names.EXECUTE_TOOL} {metadata.name}", kind=SpanKind.INTERNAL, attributes=attributes
        )
        self._current = use_span(
            self._span, end_on_exit=False, record_exception=False, set_status_on_exception=False
        )
        self._current.__enter__()
        self._started = perf_counter()

    def _end(self, error: BaseException | None) -> None:
        seconds, span, result = perf_counter() - self._started, self._span, self._result
        assert span is not None
        if result is not None:
            outcome: str = result.outcome
        else:
            # The run was cut off; or something else around the call didn't let it in.
            outcome = "failed" if isinstance(error, Exception) else "interrupted"
        span.set_attribute(names.CALL_OUTCOME, outcome)
        measured = {names.TOOL_NAME: self._call.metadata.name, names.CALL_OUTCOME: outcome}
        if outcome == "promised":
            self._recorder.remember(self._call.metadata.id, span.get_span_context(), self._call.key)
        elif outcome not in ("ok", "asked"):
            kind = outcome if error is None else error_type(error)
            mark_failed(span, kind)
            measured[names.ERROR_TYPE] = kind
        if result is not None and isinstance(result.content, str):
            span.set_attributes(self._recorder.content.text(names.TOOL_CALL_RESULT, result.content))
        span.end()
        self._recorder.instruments.record_tool(seconds, measured)


def _add_retry_event(metadata: ToolMetadata, attempt: int) -> None:
    """Say on the span around the call that it is tried again."""
    attributes: dict[str, Any] = {
        names.TOOL_NAME: metadata.name,
        names.TOOL_CALL_ID: metadata.id,
        names.CALL_ATTEMPT: attempt,
    }
    get_current_span().add_event(names.RETRY_EVENT, attributes)
