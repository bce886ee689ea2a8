"""The OpenTelemetry spans that an SDK's client makes of its own calls, also for a request that is
posted as ready bytes.

The Anthropic SDK (since 2.0) makes one span for each call of its methods. It does so in `post`, and
takes from there all that it says of the call: name, route and attributes from the options, the rest
of the request from the body as an object, what to record of the answer from the class that is asked
for. A request that names no span gets none.

What a method hands to `post` differs from release to release, so it isn't repeated here: the method
itself is asked. It runs on a resource of its own whose `_post` takes everything down and sends
nothing. Building names of spans here was tried and dropped: three of nine attributes were missing
with another release.

Parsing the body and building models of the answer costs time. Where no span would come of it, the
bytes are posted as ever.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lutumpy.plain import json_values

__all__ = ["TracedMethod"]

# What the SDKs' own `with_raw_response` sends: the answer is given back unparsed, with its span
# made as for a parsed one.
_RAW = {"X-Stainless-Raw-Response": "raw"}

# Providers of OpenTelemetry's API that make no spans: none was set, or one that does nothing.
_SILENT = frozenset({"NoOpTracerProvider", "ProxyTracerProvider"})


class TracedMethod(NamedTuple):
    """The SDK's method that makes a span of such a request.

    Attributes:
        sdk: The package of the SDK.
        resource: The client's attribute that has the method.
        name: The method.
        arguments: The least that it takes; none of it is sent.
    """

    sdk: str
    resource: str
    name: str
    arguments: Mapping[str, Any]

    def post_arguments(
        self, client: Any, body: bytes, options: Mapping[str, Any], *, stream: bool = False
    ) -> dict[str, Any] | None:
        """The arguments of `post` for a request that gets a span; `None` for one that gets none.

        The answer comes as the SDK's raw response. Of a stream the events come as its models: those
        are what the span is told of.

        Args:
            client: The client.
            body: The request.
            options: Its options, with headers among them.
            stream: Whether the answer is a stream.
        """
        if not self.is_traced(client):
            return None
        taken = self._record_arguments(client, options["headers"], stream=stream)
        if taken is None:
            return None
        options = {
            **options,
            **{name: value for name, value in taken["options"].items() if name.startswith("span_")},
        }
        if stream:
            more = {"stream": True, "stream_cls": taken["stream_cls"]}
        else:
            more = {}
            options["headers"] = {**options["headers"], **_RAW}
        return {
            "body": json_values.decode(body),
            "cast_to": taken["cast_to"],
            "options": options,
            **more,
        }

    def is_traced(self, client: Any) -> bool:
        """Whether a call of this client makes a span, or passes one on that is there already."""
        if not any(kind.__module__.partition(".")[0] == self.sdk for kind in type(client).__mro__):
            return False
        chosen = getattr(client, "open_telemetry", None)
        if not isinstance(chosen, Mapping):
            return False  # a release of before that option
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
            if type(provider).__name__ not in _SILENT:
                return True
            return bool(trace.get_current_span().get_span_context().is_valid)
        except Exception:
            # The environment names a provider that isn't installed: the SDK makes no spans either.
            return False

    def _record_arguments(
        self, client: Any, headers: Mapping[str, str], *, stream: bool
    ) -> dict[str, Any] | None:
        """What the method hands to `post`; `None` when it doesn't work like that: the request is
        sent without a span then.
        """
        taken: list[dict[str, Any]] = []

        def post(path: str, **arguments: Any) -> _Nothing:
            taken.append(arguments)
            return _Nothing()

        try:
            resource = type(getattr(client, self.resource))(client)
            resource._post = post
            # A timeout, since the SDK would work out its own otherwise.
            returned = getattr(resource, self.name)(
                **self.arguments, stream=stream, extra_headers=dict(headers), timeout=1.0
            )
            if inspect.iscoroutine(returned):
                try:
                    returned.send(None)
                except StopIteration:
                    pass
                finally:
                    returned.close()
            handed = taken[0]
            return handed if handed["options"]["span_name"] and "cast_to" in handed else None
        except Exception:
            return None


class _Nothing:
    """What the method gets back, awaited or not."""

    def __await__(self) -> Iterator[Any]:
        return iter(())
