"""Spans, events and metrics of turns, calls and whole loops, by OpenTelemetry's GenAI conventions.

Opt-in: nothing else in lutumpy imports it. It needs OpenTelemetry's API alone (extra `otel`); what
becomes of the spans is the business of the SDK that the program has set up, if it has.
"""

from __future__ import annotations

try:
    import opentelemetry.metrics as _metrics  # noqa: F401  # so that the error names it
    import opentelemetry.trace as _trace  # noqa: F401
except ImportError as _error:
    raise ImportError(
        "lutumpy.otel needs opentelemetry-api; "
        'install it with: python -m pip install ".[otel]" (in a clone)'
    ) from _error

from lutumpy.otel.content import CaptureContent
from lutumpy.otel.names import GEN_AI_0_1, SEMCONV_1_41, Names
from lutumpy.otel.runs import RunSpan
from lutumpy.otel.telemetry import Telemetry

__all__ = ["GEN_AI_0_1", "SEMCONV_1_41", "CaptureContent", "Names", "RunSpan", "Telemetry"]
