"""Answers of a model, written once and rendered as each API would send them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from lutumpy.apis import Api, serving
from lutumpy.testing.replies import Call, Failure, Reply

__all__ = [
    "Api",
    "Call",
    "Failure",
    "Rendering",
    "Reply",
    "failure_headers",
    "render",
    "render_failure",
    "render_stream",
    "shaping_keys",
]


class Rendering(Protocol):
    """What the `rendering` module of an API defines.

    Four more names may be in it. `render_failure` takes status and message, and `kind`,
    `param`, `code` and `request_id` by name, and gives the JSON of an error; without it an error is
    an object with these under `error`. `failure_headers` takes its status, and `kind` by name, and
    gives the headers that an error has beside the usual ones. `SHAPING` names the parameters of a
    request on which the shape of its answer depends. `recorded_client` takes a tape, what makes a
    client of the SDK, its arguments and its options, and gives one whose requests go through the
    tape, or `None` where it isn't a client of this SDK; for an SDK that takes no HTTP client.
    """

    def render(
        self, reply: Reply, *, number: int, model: str, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The JSON of an answer; arguments as of `lutumpy.testing.render`."""
        ...

    def render_stream(
        self, reply: Reply, *, number: int, model: str, body: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """The same answer as the JSON of its stream events."""
        ...


def render(
    reply: Reply, api: Api, *, number: int, model: str, body: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The JSON of the answer, as `api` sends it.

    Args:
        reply: The answer.
        api: The name of an API, as `lutumpy.apis.api_names` lists them.
        number: Number of the answer; ids are counted from it, so equal numbers give equal ids.
        model: The model that was asked for.
        body: The request, where the answer depends on it: Chat's `n` gives as many choices, which
            all say the same, Messages' `compaction` a summary, which is the reply's text; Responses
            repeats its settings.

    On Messages, arguments that aren't a JSON object become `{}` where the answer was cut off, and
    else `{"INVALID_JSON": text}`.

    Raises:
        ValueError: there is no such API, or nothing renders its answers.
    """
    return rendering_of(api).render(
        reply, number=number, model=reply.model or model, body=body or {}
    )


def render_stream(
    reply: Reply, api: Api, *, number: int, model: str, body: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The same answer as the JSON of its stream events, in the order in which `api` sends them;
    arguments as of `render`.

    Chat chunks end with the usage chunk, which the API sends only if asked. On Messages the text of
    arguments is streamed as it is, broken or not.
    """
    return rendering_of(api).render_stream(
        reply, number=number, model=reply.model or model, body=body or {}
    )


def render_failure(
    api: Api,
    status: int,
    message: str,
    *,
    kind: str = "",
    param: str | None = None,
    code: str | None = None,
    request_id: str = "",
) -> dict[str, Any]:
    """The JSON of an error, in the envelope of `api`."""
    # An API that is only made up for a test needs no envelope of its own.
    write = getattr(rendering_of(api), "render_failure", None)
    if write is None:
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}
    failure: dict[str, Any] = write(
        status, message, kind=kind, param=param, code=code, request_id=request_id
    )
    return failure


def failure_headers(api: Api, status: int, *, kind: str = "") -> dict[str, str]:
    """The headers that say what an error is, where an API has some."""
    write = getattr(rendering_of(api), "failure_headers", None)
    headers: dict[str, str] = {} if write is None else write(status, kind=kind)
    return headers


def shaping_keys(api: Api) -> frozenset[str]:
    """The parameters of a request on which the shape of an answer depends."""
    keys: frozenset[str] = getattr(rendering_of(api), "SHAPING", frozenset())
    return keys


def rendering_of(api: Api) -> Rendering:
    """What writes the answers of an API. Raises `ValueError` if there is none."""
    rendering: Rendering = serving(api, "rendering")
    return rendering
