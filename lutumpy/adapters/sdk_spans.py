"""The OpenTelemetry spans that an SDK's client makes of its own calls, also for a request that is posted as ready bytes.

The Anthropic SDK (since 2.12) makes one span for each call of its methods. It does so in `post`, and takes all that it says
of the call from there: the span's name and route from the options, the request's attributes from the body as an object, what
to record of the answer from the class that it is asked for. A request without a name gets no span; so that is what is given
here, as the SDK's own method does. `tests/adapters/test_sdk_spans.py` compares both with the installed SDK.

Parsing the body and building models of the answer costs time. Where no span would come of it, the bytes are posted as ever.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic_core import from_json

__all__ = ["CallSpan", "is_traced"]

# What the SDKs' own `with_raw_response` sends: the answer is given back unparsed, with its span made as for a parsed one.
_RAW = {"X-Stainless-Raw-Response": "raw"}

# Providers of OpenTelemetry's API that make no spans: none was set, or one that does nothing.
_SILENT = frozenset({"NoOpTracerProvider", "ProxyTracerProvider"})


class CallSpan(NamedTuple):
    """What the SDK's own method says of its call.

    Attributes:
        sdk: The package of the SDK.
        name: The span's name.
        route: The route of the endpoint.
        attributes: Gives further attributes for the body of a request.
        answer: The class of an answer, in the SDK's `types`.
        event: The class of a stream's events there.
    """

    sdk: str
    name: str
    route: str
    attributes: Callable[[Any], Mapping[str, Any]]
    answer: str
    event: str

    def arguments(self, body: bytes, options: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of `post` for a request that gets a span; the answer comes as the SDK's raw response.

        Args:
            body: The request.
            options: Its options, with headers among them.
        """
        options = self._with_span(options)
        options["headers"] = {**options["headers"], **_RAW}
        return {"body": from_json(body), "cast_to": self._type(self.answer), "options": options}

    def stream_arguments(self, body: bytes, options: Mapping[str, Any], stream_class: Any) -> dict[str, Any]:
        """The same for a stream. Its events are the SDK's models: those are what the span is told of.

        Args:
            body: The request.
            options: Its options.
            stream_class: The SDK's class of streams.
        """
        return {
            "body": from_json(body),
            "cast_to": self._type(self.answer),
            "options": self._with_span(options),
            "stream": True,
            "stream_cls": stream_class[self._type(self.event)],
        }

    def _with_span(self, options: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **options,
            "span_name": self.name,
            "span_route": self.route,
            "span_attributes": self.attributes,
        }

    def _type(self, name: str) -> Any:
        # The client's package is loaded: the client is one of its objects.
        return getattr(sys.modules[f"{self.sdk}.types"], name)


def is_traced(client: Any, sdk: str) -> bool:
    """Whether a call of this client makes a span, or passes one on that is there already.

    Args:
        client: The client.
        sdk: The package of the SDK whose spans are known.
    """
    if not any(kind.__module__.partition(".")[0] == sdk for kind in type(client).__mro__):
        return False
    chosen = getattr(client, "open_telemetry", None)
    if not isinstance(chosen, Mapping):
        return False  # the SDK is of before that option
    traces: Any = chosen.get("traces")
    if not isinstance(traces, Mapping) or not traces.get("enabled"):
        return False
    # The SDK has imported it.
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return False
    provider = chosen.get("tracer_provider")
    try:
        if provider is None:
            provider = trace.get_tracer_provider()
        return type(provider).__name__ not in _SILENT or bool(trace.get_current_span().get_span_context().is_valid)
    except Exception:
        return False  # the environment names a provider that isn't installed: then the SDK makes no spans either
