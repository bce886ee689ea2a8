"""Messages at the clouds that serve Claude: their paths, keys, streams and errors.

As the vendor's SDK asks there: Google Cloud by `rawPredict`, Amazon Bedrock by `invoke`, whose
streams are frames, and Foundry behind `/anthropic`. The model is in the path of the first two,
and the version of the API in the body.
"""

#     cloud     path                                         key                    stream
#     vertex    .../publishers/anthropic/models/M:rawPredict, Bearer                events
#               M:streamRawPredict
#     bedrock   /model/M/invoke, invoke-with-response-stream a signature, or Bearer frames
#     foundry   /anthropic/v1/messages                       api-key, or Bearer     events

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lutumpy.apis import Api
from lutumpy.testing.api_server import CREATE, Json, Route
from lutumpy.testing.render_bedrock import failure_type
from lutumpy.testing.render_bedrock_frames import write_event_frame, write_exception_frame
from lutumpy.testing.replies import Failure

__all__ = [
    "CLOUDS",
    "CLOUD_ROUTES",
    "betas_in_body",
    "failures_at_cloud",
    "refuse_at_cloud",
    "write_framed",
]

_VERTEX, _BEDROCK, _FOUNDRY = "vertex", "bedrock", "foundry"

CLOUDS = frozenset({_VERTEX, _BEDROCK, _FOUNDRY})
"""The clouds by name."""

_MODELS = "/{version}/projects/{project}/locations/{location}/publishers/anthropic/models"

CLOUD_ROUTES: tuple[Route, ...] = (
    Route(f"{_MODELS}/count-tokens:rawPredict", {"POST": "count"}, True, way=_VERTEX),
    Route(f"{_MODELS}/{{cloud_model}}:rawPredict", {"POST": CREATE}, True, False, _VERTEX),
    Route(f"{_MODELS}/{{cloud_model}}:streamRawPredict", {"POST": CREATE}, True, True, _VERTEX),
    Route("/model/{cloud_model:path}/invoke", {"POST": CREATE}, True, False, _BEDROCK),
    Route(
        "/model/{cloud_model:path}/invoke-with-response-stream",
        {"POST": CREATE},
        True,
        True,
        _BEDROCK,
    ),
    Route("/anthropic/v1/messages", {"POST": CREATE}, True, way=_FOUNDRY),
    Route("/anthropic/v1/messages/count_tokens", {"POST": "count"}, True, way=_FOUNDRY),
)
"""Where the clouds answer requests of Messages."""


def refuse_at_cloud(cloud: str, headers: Mapping[str, str]) -> Failure | None:
    """The answer to a request without a key."""
    bearer = headers.get("authorization", "").removeprefix("Bearer").strip()
    if bearer or (cloud == _FOUNDRY and (headers.get("api-key") or headers.get("x-api-key"))):
        return None
    if cloud == _BEDROCK:
        return Failure(403, "Missing Authentication Token", "MissingAuthenticationTokenException")
    return Failure(401, "Request is missing required authentication credential.")


def failures_at_cloud(cloud: str) -> Api | None:
    """The API whose errors a cloud writes, where they aren't those of Messages."""
    return "bedrock_converse" if cloud == _BEDROCK else None


def betas_in_body(body: Any) -> list[str]:
    """The beta names that a body has, where the clouds have no header for them."""
    names = body.get("anthropic_beta") if isinstance(body, Mapping) else None
    return [str(name) for name in names] if isinstance(names, list) else []


def write_framed(
    cloud: str, events: Iterable[Json | Failure]
) -> tuple[str, Iterator[bytes]] | None:
    """The media type and the frames of a stream; `None` where it is one of events."""
    if cloud != _BEDROCK:
        return None
    return "application/vnd.amazon.eventstream", _write_frames(events)


def _write_frames(events: Iterable[Json | Failure]) -> Iterator[bytes]:
    for event in events:
        if isinstance(event, Failure):
            name = failure_type(event.status, event.kind)
            yield write_exception_frame(name[:1].lower() + name[1:], event.message)
            return
        text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        data = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
        yield write_event_frame("chunk", {"bytes": data})
