"""The span of one request: what it asked, how it ended, what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from opentelemetry.trace import Span, SpanKind, use_span

from lutumpy import AdapterError, LutumpyError, Model, Usage
from lutumpy.apis import api_row
from lutumpy.models import (
    AssistantTurn,
    ModelRequest,
    ModelWrapper,
    RequestWatch,
    collect_retries,
)
from lutumpy.otel import names
from lutumpy.otel.errors import error_type, mark_failed
from lutumpy.otel.metrics import list_tokens
from lutumpy.otel.recorder import Recorder
from lutumpy.otel.runs import add_to_run

__all__ = ["TelemetryModel"]

# Wrappers hold the model that they wrap as `model`; at most so many are looked into.
_DEEPEST_WRAPPING = 10


class TelemetryModel(ModelWrapper):
    """A model whose requests have spans and are measured."""

    def __init__(self, model: Model, recorder: Recorder) -> None:
        super().__init__(model)
        self._recorder = recorder
        # What is the same for every request; made at the first one, which makes the client.
        self._facts: _ModelFacts | None = None

    def is_watched_by(self, recorder: Recorder) -> bool:
        """Whether this is who records its requests."""
        return self._recorder is recorder

    def begin_sync(self, request: ModelRequest) -> RequestWatch | None:
        """The watch of a request; `None` where nobody would see what it reports."""
        recorder = self._recorder
        if not recorder.is_heard():
            return None
        return recorder.guard(self._make_watch, request)

    def _make_watch(self, request: ModelRequest) -> RequestWatch:
        if self._facts is None:
            self._facts = _ModelFacts(self.model, self._recorder.provider)
        return _ChatWatch(self._recorder, self._facts, request)


class _ModelFacts:
    """What is the same for every request of a model."""

    def __init__(self, model: Model, provider: str | None) -> None:
        innermost: Any = model
        api: Any = None
        for _ in range(_DEEPEST_WRAPPING):
            api = getattr(innermost, "api", api)
            if not hasattr(getattr(innermost, "model", None), "respond"):
                break
            innermost = innermost.model
        name = getattr(innermost, "model", None)
        self.model: str | None = name if isinstance(name, str) else None
        self.makes_spans: bool = bool(getattr(innermost, "makes_spans", False))
        shared: dict[str, Any] = {names.PROVIDER: provider or _find_provider(api)}
        try:
            host = getattr(innermost, "host", None)
        except LutumpyError:  # no client can be made: the request says so
            host = None
        if isinstance(host, str):
            address, _, port = host.rpartition(":")
            if not port.isdigit():
                address, port = host, "443"
            shared |= {names.SERVER_ADDRESS: address, names.SERVER_PORT: int(port)}
        self.shared: Mapping[str, Any] = shared


def _find_provider(api: Any) -> str:
    if not isinstance(api, str):
        return "unknown"
    try:
        row = api_row(api)
    except LutumpyError:
        return api
    return row.provider or row.family


class _ChatWatch(RequestWatch):
    """One request."""

    __slots__ = ("_counted_by", "_first_chunk", "_has_usage", "_recorder", "_span", "_started")

    def __init__(self, recorder: Recorder, facts: _ModelFacts, request: ModelRequest) -> None:
        self._recorder = recorder
        model = request.options.extra.get("model", facts.model)
        shared = dict(facts.shared)
        if isinstance(model, str):
            shared[names.REQUEST_MODEL] = model
        # The SDK's own span is a `chat` and has the usage: this one is then neither, so that no
        # back end counts the request twice.
        beside = recorder.sdk_makes_spans
        self._has_usage = not (facts.makes_spans if beside is None else beside)
        attributes = {**shared, **_describe_request(request)}
        conversation = recorder.conversation_id()
        if conversation is not None:
            attributes[names.CONVERSATION] = conversation
        if self._has_usage:
            attributes[names.OPERATION] = names.CHAT
        self._counted_by: dict[str, Any] = {names.OPERATION: names.CHAT, **shared}
        word = names.CHAT if self._has_usage else names.TURN
        name = f"{word} {model}" if isinstance(model, str) else word
        kind = SpanKind.CLIENT if self._has_usage else SpanKind.INTERNAL
        self._first_chunk: float | None = None
        self._span: Span = recorder.tracer.start_span(name, kind=kind, attributes=attributes)
        if self._span.is_recording():
            self._span.set_attributes(recorder.content.request(request.transcript))
        self._started = perf_counter()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """The span as the current one: the SDK's own, and that of the HTTP client, are inside."""
        span = self._span
        with (
            use_span(
                span, end_on_exit=False, record_exception=False, set_status_on_exception=False
            ),
            collect_retries() as retries,
        ):
            try:
                yield
            finally:
                if retries:
                    # The SDK tells of them when they are over, so they are one event.
                    noted = {names.REQUEST_RETRIES: sum(retries)}
                    span.add_event(names.RETRY_EVENT, noted)
                    span.set_attributes(noted)

    def first_chunk(self) -> None:
        self._first_chunk = perf_counter() - self._started

    def answered(self, turn: AssistantTurn) -> None:
        self._recorder.guard(self._note_answer, turn)

    def failed(self, error: BaseException) -> None:
        self._recorder.guard(self._note_error, error)

    def left(self, partial: AssistantTurn | None, request_id: str | None) -> None:
        self._recorder.guard(self._note_left, partial)

    def _note_answer(self, turn: AssistantTurn) -> None:
        span = self._span
        if span.is_recording():
            span.set_attributes(_describe_answer(turn))
            span.set_attributes(self._recorder.content.answer(turn))
        if turn.model is not None:
            self._counted_by[names.RESPONSE_MODEL] = turn.model
        self._end(turn.usage)

    def _note_error(self, error: BaseException) -> None:
        kind = error_type(error)
        mark_failed(self._span, kind)
        self._counted_by[names.ERROR_TYPE] = kind
        partial = error.partial if isinstance(error, AdapterError) else None
        if isinstance(error, AdapterError) and error.response_id:
            self._span.set_attribute(names.RESPONSE_ID, error.response_id)
        self._end(partial.usage if isinstance(partial, AssistantTurn) else Usage())

    def _note_left(self, partial: AssistantTurn | None) -> None:
        self._span.set_attribute(names.TURN_LEFT, True)
        if partial is not None and partial.response_id:
            self._span.set_attribute(names.RESPONSE_ID, partial.response_id)
        self._end(Usage() if partial is None else partial.usage)

    def _end(self, usage: Usage) -> None:
        seconds = perf_counter() - self._started
        recorder, span = self._recorder, self._span
        if self._first_chunk is not None:
            span.set_attribute(names.RESPONSE_TIME_TO_FIRST_CHUNK, self._first_chunk)
        if usage != Usage():
            add_to_run(usage)
            if self._has_usage and span.is_recording():
                for name, count in list_tokens(usage, recorder.names).items():
                    span.set_attribute(f"{names.USAGE}.{name}", count)
        span.end()
        recorder.instruments.record_request(seconds, self._first_chunk, self._counted_by)
        if usage != Usage():
            recorder.instruments.record_usage(usage, self._counted_by)


def _describe_request(request: ModelRequest) -> dict[str, Any]:
    options, offering = request.options, request.offering
    found: dict[str, Any] = {
        names.REQUEST_TEMPERATURE: options.temperature,
        names.REQUEST_MAX_TOKENS: options.max_output_tokens,
        names.OUTPUT_TYPE: "text" if options.output is None else "json",
    }
    if request.stream:
        found[names.REQUEST_STREAM] = True
    if offering is not None:
        found[names.OFFER_TOOLS] = [spec.name for spec in offering.specs]
        found[names.OFFER_MODE] = offering.mode
    return {name: value for name, value in found.items() if value is not None}


def _describe_answer(turn: AssistantTurn) -> dict[str, Any]:
    found: dict[str, Any] = {
        names.RESPONSE_ID: turn.response_id,
        names.RESPONSE_MODEL: turn.model,
        names.RESPONSE_FINISH_REASONS: [turn.finish_reason],
        names.TURN_CALLS: len(turn.calls),
    }
    report = turn.prefix
    if report is not None:
        if report.left_out:
            found[names.REQUEST_LEFT_OUT] = sorted({each.what for each in report.left_out})
        if report.dropped:
            found[names.REQUEST_DROPPED] = sorted({each.reason for each in report.dropped})
        if report.cache != "unknown":
            found[names.REQUEST_CACHE] = report.cache
    return {name: value for name, value in found.items() if value is not None}
