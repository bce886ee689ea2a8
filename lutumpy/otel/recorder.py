"""What spans and measurements of one `Telemetry` have in common: where they go, and whether anybody
listens.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from opentelemetry import metrics, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import SpanContext, Tracer, TracerProvider

from lutumpy import __version__
from lutumpy.otel.content import ContentWriter
from lutumpy.otel.errors import guard
from lutumpy.otel.metrics import Instruments
from lutumpy.otel.names import Names
from lutumpy.otel.runs import conversation_of_run

__all__ = ["Recorder"]

T = TypeVar("T")

_MOST_PROMISED = 10_000
# The API looks at the environment each time that it is asked for a provider.
_SECONDS_BETWEEN_QUESTIONS = 0.1

# Providers of OpenTelemetry's API that do nothing: none was set, or one that is for nothing.
_SILENT = frozenset(
    {"NoOpMeterProvider", "NoOpTracerProvider", "ProxyTracerProvider", "_ProxyMeterProvider"}
)


class PromisedSpan(NamedTuple):
    """The span of a call whose result comes later.

    Attributes:
        context: Where it is.
        key: The idempotency key of the call, where that was fixed.
    """

    context: SpanContext
    key: str | None


class Recorder:
    """Where one `Telemetry` writes.

    Args:
        tracer_provider: Makes the tracer; that of the process when `None`.
        meter_provider: Makes the meter; that of the process when `None`.
        content: Writes content, or nothing.
        conversation: The conversation's id, or a function that gives it.
        provider: What the provider is called, whatever the API says.
        sdk_makes_spans: Whether the SDK's calls have spans of their own; `None` to find out.
        chosen: The names of a release of the conventions.

    Attributes:
        content: As given.
        names: As `chosen`.
        provider: As given.
        sdk_makes_spans: As given.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
        content: ContentWriter,
        conversation: str | Callable[[], str | None] | None,
        provider: str | None,
        sdk_makes_spans: bool | None,
        chosen: Names,
    ) -> None:
        self._tracer_provider = tracer_provider
        self._meter_provider = meter_provider
        self._conversation = conversation
        self.content: ContentWriter = content
        self.names: Names = chosen
        self.provider: str | None = provider
        self.sdk_makes_spans: bool | None = sdk_makes_spans
        self._is_heard = False
        self._ask_again_at = 0.0
        # Spans of calls whose results come later, by call id, oldest first.
        self._promised: OrderedDict[str, PromisedSpan] = OrderedDict()
        self._tracer: Tracer | None = None
        self._instruments: Instruments | None = None

    def is_heard(self) -> bool:
        """Whether an SDK is set up, for spans or for measurements.

        Asked before anything else, since most of the work is to put attributes together. A provider
        that the process sets later is noticed within a tenth of a second.
        """
        if self._is_heard:
            return True
        now = monotonic()
        if now < self._ask_again_at:
            return False
        self._ask_again_at = now + _SECONDS_BETWEEN_QUESTIONS
        # What was set once stays set.
        self._is_heard = self._find_listeners()
        return self._is_heard

    def _find_listeners(self) -> bool:
        tracers, meters = self._tracer_provider, self._meter_provider
        if tracers is None:
            tracers = trace.get_tracer_provider()
        if type(tracers).__name__ not in _SILENT:
            return True
        if meters is None:
            meters = metrics.get_meter_provider()
        return type(meters).__name__ not in _SILENT

    @property
    def tracer(self) -> Tracer:
        """Makes spans."""
        if self._tracer is None:
            self._tracer = trace.get_tracer("lutumpy", __version__, self._tracer_provider)
        return self._tracer

    @property
    def instruments(self) -> Instruments:
        """Measures."""
        if self._instruments is None:
            meter = metrics.get_meter("lutumpy", __version__, self._meter_provider)
            self._instruments = Instruments(meter, self.names)
        return self._instruments

    def conversation_id(self) -> str | None:
        """The conversation's id, where one is known: that of the run, else that of the telemetry. A
        function that raises knows none.
        """
        said = conversation_of_run()
        if said is not None:
            return said
        conversation = self._conversation
        return guard(conversation) if callable(conversation) else conversation

    def remember(self, call_id: str, context: SpanContext, key: str | None = None) -> None:
        """Keep the span of a call whose result comes later, and the key of the call."""
        self._promised[call_id] = PromisedSpan(context, key)
        while len(self._promised) > _MOST_PROMISED:
            self._promised.popitem(last=False)

    def recall(self, call_id: str) -> PromisedSpan | None:
        """The span of a call whose result comes now, if it was made here."""
        return self._promised.pop(call_id, None)

    def guard(self, note: Callable[..., T], *arguments: Any) -> T | None:
        """Note something. What goes wrong is logged: telemetry must not end a conversation."""
        return guard(note, *arguments)
