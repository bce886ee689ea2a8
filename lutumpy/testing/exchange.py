"""One request of the test server on its way to an answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from lutumpy.errors import Problem
from lutumpy.testing.paths import Target
from lutumpy.testing.render_responses import waiting
from lutumpy.testing.script import Api, Failure, Reply, render, render_failure, render_stream

Answer = Reply | Failure | dict[str, Any] | bytes | str
"""What one request is answered with: a scripted reply or failure, JSON sent as it is, or a raw body."""

NO_OPENAI_KEY = (
    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth "
    "(i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if you're accessing the API "
    "from your browser and are prompted for a username and password. You can obtain an API key from "
    "https://platform.openai.com/account/api-keys."
)
NO_ANTHROPIC_KEY = "x-api-key header is required"
NO_ANTHROPIC_VERSION = "anthropic-version: header is required"
BAD_OPENAI_JSON = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
    "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble "
    "figuring out how to fix this, please contact us through our help center at help.openai.com.)"
)
BAD_ANTHROPIC_JSON = "The request body is not valid JSON"
EVENT_STREAM = "text/event-stream; charset=utf-8"


class Exchange:
    """One request on its way to an answer."""

    def __init__(self, api: Api, number: int, request: Request) -> None:
        self.api: Api = api
        self.number = number
        self.method: str = request.method
        self.path: str = request.url.path
        self.sent: Mapping[str, str] = request.headers
        self.request_id: str = f"req_{number:024d}"
        name = "request-id" if api == "anthropic_messages" else "x-request-id"
        self.headers: dict[str, str] = {name: self.request_id}

    # ---------------------------------------------------------- refusals

    def nowhere(self, target: Target) -> Response | None:
        """The answer to a request for a path that there isn't, or with a method that the path doesn't take."""
        if target.operation:
            return None
        anthropic = self.api == "anthropic_messages"
        if not target.methods:
            return self.failure(
                404, "Not Found" if anthropic else f"Invalid URL ({self.method} {self.path})"
            )
        message = "Method Not Allowed"
        if not anthropic:
            message = (
                f"Not allowed to {self.method} on {self.path}. "
                "(HINT: Perhaps you meant to use a different HTTP method?)"
            )
        return self.failure(405, message, headers={"allow": ", ".join(target.methods)})

    def refused_headers(self) -> Response | None:
        """The answer to a request without key or version; any key is good."""
        bearer = self.sent.get("authorization", "").removeprefix("Bearer").strip()
        if self.api != "anthropic_messages":
            return None if bearer or self.sent.get("api-key") else self.failure(401, NO_OPENAI_KEY)
        if not (bearer or self.sent.get("x-api-key")):
            return self.failure(401, NO_ANTHROPIC_KEY)
        return (
            None if self.sent.get("anthropic-version") else self.failure(400, NO_ANTHROPIC_VERSION)
        )

    def not_json(self) -> Response:
        """The answer to a body that is no JSON."""
        return self.failure(
            400, BAD_ANTHROPIC_JSON if self.api == "anthropic_messages" else BAD_OPENAI_JSON
        )

    def failure(
        self, status: int, message: str, kind: str = "", headers: Mapping[str, str] | None = None
    ) -> Response:
        body = render_failure(self.api, status, message, kind=kind, request_id=self.request_id)
        return self._json(status, body, {**self.headers, **(headers or {})})

    def refusal(self, problems: Iterable[Problem]) -> Response | None:
        """The answer to a request with a problem that the API refuses: the first of them."""
        problem = next((problem for problem in problems if problem.certainty == "refused"), None)
        if problem is None:
            return None
        body = render_failure(
            self.api,
            problem.status,
            problem.message,
            kind=problem.kind,
            param=problem.param,
            code=problem.code,
            request_id=self.request_id,
        )
        return self._json(problem.status, body, self.headers)

    # ----------------------------------------------------------- answers

    def json(self, body: Any) -> Response:
        return self._json(200, body, self.headers)

    def events(self, events: list[dict[str, Any]]) -> Response:
        return StreamingResponse(_event_stream(self.api, events), 200, self.headers, EVENT_STREAM)

    def respond(
        self, answer: Answer, body: Mapping[str, Any]
    ) -> tuple[Response, dict[str, Any] | None, list[dict[str, Any]] | None]:
        """The response, the JSON that it says if a later request may be checked against that, and its stream events."""
        streamed = body.get("stream") is True
        if isinstance(answer, Failure):
            return (
                self.failure(answer.status, answer.message, answer.kind, answer.headers),
                None,
                None,
            )
        if isinstance(answer, dict):
            return self.json(answer), answer, None
        if isinstance(answer, (bytes, str)):
            kind = EVENT_STREAM if streamed else "application/json"
            return Response(answer, 200, dict(self.headers), kind), None, None
        model = str(body.get("model"))
        said = render(answer, self.api, number=self.number, model=model, body=body)
        if not streamed:
            background = self.api == "openai_responses" and body.get("background") is True
            return self.json(waiting(said, "queued") if background else said), said, None
        events = render_stream(answer, self.api, number=self.number, model=model, body=body)
        if self.api == "openai_chat":
            events = _with_or_without_usage(events, body)
        return self.events(events), said, events

    def _json(self, status: int, body: Any, headers: Mapping[str, str]) -> Response:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "surrogatepass"
        )
        return Response(text, status, dict(headers), "application/json")


def _with_or_without_usage(
    events: list[dict[str, Any]], body: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Chunks speak of usage only if `stream_options.include_usage` asked for it."""
    options = body.get("stream_options")
    if isinstance(options, Mapping) and options.get("include_usage") is True:
        return events
    return [
        {key: value for key, value in event.items() if key != "usage"}
        for event in events
        if event["choices"]
    ]


def _event_stream(api: Api, events: list[dict[str, Any]]) -> Iterator[bytes]:
    for event in events:
        name = "" if api == "openai_chat" else f"event: {event['type']}\n"
        data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        yield f"{name}data: {data}\n\n".encode("utf-8", "surrogatepass")
    if api == "openai_chat":
        yield b"data: [DONE]\n\n"
