"""`Telemetry`: what a program wraps its model, executor and loop with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, cast

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, SpanKind, TracerProvider, get_current_span, use_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from lutumpy import Model, ToolResult, ToolRound, ToolRoundPlan
from lutumpy.execution import ExecutionResult
from lutumpy.hooks import BaseToolCall
from lutumpy.models import StreamingModel
from lutumpy.otel import names
from lutumpy.otel.chat import TelemetryModel
from lutumpy.otel.content import CaptureContent, ContentWriter
from lutumpy.otel.decisions import note_commit, note_decisions
from lutumpy.otel.errors import error_type, mark_failed
from lutumpy.otel.names import SEMCONV_1_41, Names
from lutumpy.otel.recorder import Recorder
from lutumpy.otel.runs import RunSpan, within_run
from lutumpy.otel.tools import ToolSpan

__all__ = ["Telemetry"]

MAX_CONTENT_BYTES = 750_000
"""The limit of the Anthropic SDK's own spans."""

_PROPAGATOR = TraceContextTextMapPropagator()


class Telemetry:
    """Spans, events and metrics of turns, calls and loops.

    `run_tools(..., telemetry=t)` does all of it. For a loop of your own, each part stands alone:
    `t.model(llm)`, `ToolExecutor(around=t.tool_call)`, `with t.run(...)`, `t.decisions(plan)`.
    Where no SDK of OpenTelemetry is set up, nothing is made. What goes wrong in telemetry is logged
    on `lutumpy.otel`, and never raised. One of these serves any number of conversations and
    threads.

    Args:
        tracer_provider: Where spans go; to the process's own provider by default.
        meter_provider: The same for measurements.
        content: Whether prompts, answers, arguments and results are exported, see `CaptureContent`.
            By default only what `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says, and
            nothing if it isn't set. Names, ids, counts and kinds of errors are always exported; the
            words of errors and of hooks' reasons are content.
        conversation: The conversation's id, or a function that gives it when a span begins.
        provider: What the provider is called (`gen_ai.provider.name`), if not as its API.
        sdk_makes_spans: Whether something else makes spans of the SDK's calls. Spans of requests
            are called `turn` then, and have no token counts, so that nothing is counted twice. By
            default the client is asked, as far as it is the SDK's own tracing.
        names: The names of another release of the conventions, as `GEN_AI_0_1`.
        max_content_bytes: Of one attribute with content, at most.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        content: CaptureContent = None,
        conversation: str | Callable[[], str | None] | None = None,
        provider: str | None = None,
        *,
        sdk_makes_spans: bool | None = None,
        names: Names = SEMCONV_1_41,
        max_content_bytes: int = MAX_CONTENT_BYTES,
    ) -> None:
        self._recorder = Recorder(
            tracer_provider,
            meter_provider,
            ContentWriter(content, max_content_bytes),
            conversation,
            provider,
            sdk_makes_spans,
            names,
        )

    def model(self, llm: Model) -> StreamingModel:
        """The model, with a span for each of its requests.

        The span ends with the answer, so what is done with a streamed answer isn't inside it. A
        model whose requests have spans of this already stays as it is.
        """
        if any(each.is_watched_by(self._recorder) for each in TelemetryModel.around(llm)):
            return cast("StreamingModel", llm)
        return TelemetryModel(llm, self._recorder)

    def tool_call(
        self, call: BaseToolCall, attempt: int
    ) -> AbstractAsyncContextManager[Callable[[ExecutionResult], None]] | None:
        """The span of one attempt of a call, for `ToolExecutor(around=)`; `None` where nobody would
        see it.
        """
        return ToolSpan(self._recorder, call, attempt) if self._recorder.is_heard() else None

    @contextmanager
    def run(
        self,
        name: str = "",
        *,
        conversation: str | None = None,
        earlier: Mapping[str, str] | None = None,
    ) -> Iterator[RunSpan]:
        """The span of a whole loop, which is the current one in the block.

        Args:
            name: The agent's name.
            conversation: The conversation's id, in place of the one that was given before; for all
                spans in the block.
            earlier: What `carrier` gave in another process that began this: the span is linked to
                that one's.

        Yields:
            The run: its `usage` is what its requests cost, `ended(...)` notes how it ended.
        """
        recorder = self._recorder
        attributes: dict[str, Any] = {names.OPERATION: names.INVOKE_AGENT}
        if name:
            attributes[names.AGENT_NAME] = name
        known = conversation or recorder.conversation_id()
        if known is not None:
            attributes[names.CONVERSATION] = known
        span = recorder.tracer.start_span(
            f"{names.INVOKE_AGENT} {name}".strip(),
            kind=SpanKind.INTERNAL,
            attributes=attributes,
            links=_links_to(earlier),
        )
        with (
            use_span(
                span, end_on_exit=False, record_exception=False, set_status_on_exception=False
            ),
            within_run(span, conversation) as run,
        ):
            try:
                yield run
            except BaseException as error:
                mark_failed(span, error_type(error))
                raise
            finally:
                run.note_usage(recorder.names)
                span.end()

    @contextmanager
    def delivery(
        self,
        result: ToolResult,
        *,
        key: str | None = None,
        conversation: str | None = None,
        earlier: Mapping[str, str] | None = None,
    ) -> Iterator[None]:
        """The span of a delivery: of a result that comes later than its call.

        Usage: `with telemetry.delivery(result): session.deliver([result])`. It is linked to the
        span of the call, which ended when its result was promised. A `DurableLoop` with this
        telemetry makes it by itself.

        Args:
            result: The late result.
            key: The idempotency key of the call, as its ticket has it; by default that of the
                call's span, where that was made here.
            conversation: The conversation's id, in place of the one that was given before.
            earlier: What `carrier` gave in the tool, where that ran in another process.
        """
        recorder, metadata = self._recorder, result.metadata
        attributes: dict[str, Any] = {
            names.TOOL_NAME: metadata.name,
            names.TOOL_CALL_ID: metadata.id,
            names.DELIVERY_STATUS: result.status,
        }
        conversation = conversation or recorder.conversation_id()
        if conversation is not None:
            attributes[names.CONVERSATION] = conversation
        links = _links_to(earlier)
        promised = recorder.recall(metadata.id)
        if promised is not None and promised.context.is_valid:
            links.append(Link(promised.context, {names.LINK: names.LINK_PROMISE}))
            key = key or promised.key
        if key is not None:
            attributes[names.CALL_KEY] = key
        span = recorder.tracer.start_span(
            f"{names.DELIVER} {metadata.name}",
            kind=SpanKind.INTERNAL,
            attributes=attributes,
            links=links,
        )
        with use_span(
            span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        ):
            try:
                yield
            except BaseException as error:
                mark_failed(span, error_type(error))
                raise

    def decisions(self, opened: ToolRound[Any] | ToolRoundPlan[Any]) -> None:
        """Events on the current span: what hooks decided, and what can't be executed and why.

        Args:
            opened: A plan; or a round, of which only the issues are noted. Each once, before it is
                committed.
        """
        if self._recorder.is_heard():
            self._recorder.guard(note_decisions, self._recorder, opened)

    def committed(self, round: int, items: int) -> None:
        """An event on the current span: a round was committed.

        Args:
            round: Its number, from 1.
            items: How many items the conversation has now.
        """
        self._recorder.guard(note_commit, round, items)

    def carrier(self) -> dict[str, str]:
        """The current span as text, for `run(earlier=)` in another process; empty without one."""
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier)
        return carrier


def _links_to(earlier: Mapping[str, str] | None) -> list[Link]:
    if not earlier:
        return []
    context = get_current_span(_PROPAGATOR.extract(dict(earlier))).get_span_context()
    if not context.is_valid:
        return []
    return [Link(context, {names.LINK: names.LINK_EARLIER_PROCESS})]
