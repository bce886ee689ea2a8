"""The instruments, with the units and buckets that the conventions give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.metrics import Meter

from lutumpy import Usage
from lutumpy.otel import names
from lutumpy.otel.names import Names

__all__ = ["Instruments", "list_tokens"]

_SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
_TOKENS = [
    1,
    4,
    16,
    64,
    256,
    1024,
    4096,
    16384,
    65536,
    262144,
    1048576,
    4194304,
    16777216,
    67108864,
]


class Instruments:
    """What is measured.

    Args:
        meter: Makes the instruments.
        chosen: The names of a release of the conventions.
    """

    def __init__(self, meter: Meter, chosen: Names) -> None:
        self._chosen = chosen
        self._duration = _histogram(meter, chosen.duration, "s", "How long requests took.")
        self._first_chunk = _histogram(
            meter, chosen.first_chunk, "s", "Time until a streamed answer began."
        )
        self._tokens: Any = None
        self._counters: dict[str, Any] = {}
        if chosen.tokens is not None:
            self._tokens = _histogram(meter, chosen.tokens, "{token}", "Tokens of requests.")
        self._meter = meter
        self._tool_duration = _histogram(
            meter, names.TOOL_DURATION, "s", "How long attempts of tool calls took."
        )
        self._issues = meter.create_counter(
            names.TOOL_ISSUES, "{issue}", "Tool calls that could not be executed."
        )

    def record_request(
        self, seconds: float, first_chunk: float | None, attributes: Mapping[str, Any]
    ) -> None:
        """One request has ended.

        Args:
            seconds: How long it took.
            first_chunk: After how many seconds its stream began; `None` without a stream.
            attributes: By which it is counted.
        """
        self._duration.record(seconds, attributes)
        if first_chunk is not None:
            self._first_chunk.record(first_chunk, attributes)

    def record_usage(self, usage: Usage, attributes: Mapping[str, Any]) -> None:
        """What one request cost, as far as it is known."""
        if self._tokens is not None:
            counts = {"input": usage.all_input_tokens, "output": usage.output_tokens}
            for kind, count in counts.items():
                if count:
                    self._tokens.record(count, {**attributes, names.TOKEN_TYPE: kind})
            return
        for name, count in list_tokens(usage, self._chosen).items():
            if name not in self._counters:
                self._counters[name] = self._meter.create_counter(
                    f"{self._chosen.token_counters}.{name}", "{token}", "Tokens of requests."
                )
            self._counters[name].add(count, {**attributes, names.TOKEN_MODALITY: "unknown"})

    def record_tool(self, seconds: float, attributes: Mapping[str, Any]) -> None:
        """One attempt of a call has ended."""
        self._tool_duration.record(seconds, attributes)

    def record_issue(self, attributes: Mapping[str, Any]) -> None:
        """A model wrote a call that can't be executed."""
        self._issues.add(1, attributes)


def list_tokens(usage: Usage, chosen: Names) -> dict[str, int]:
    """The tokens of a usage by what comes after `gen_ai.usage.`; cached input is in the input.

    What is 0 is left out, but for input and output.
    """
    found = {
        names.INPUT_TOKENS: usage.all_input_tokens,
        names.OUTPUT_TOKENS: usage.output_tokens,
    }
    more = {
        names.CACHE_READ_TOKENS: usage.cached_input_tokens,
        chosen.cache_write: usage.cache_creation_tokens,
        names.REASONING_TOKENS: usage.reasoning_tokens,
    }
    return found | {name: count for name, count in more.items() if count}


def _histogram(meter: Meter, name: str, unit: str, description: str) -> Any:
    buckets = _TOKENS if unit == "{token}" else _SECONDS
    try:
        return meter.create_histogram(
            name, unit, description, explicit_bucket_boundaries_advisory=buckets
        )
    except TypeError:  # an API of before that argument
        return meter.create_histogram(name, unit, description)
