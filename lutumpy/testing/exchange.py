"""One request of the test server on its way to an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from lutumpy.apis import Api
from lutumpy.errors import Problem
from lutumpy.testing.api_server import ApiServer, Json, Query, Refused, first_refusal
from lutumpy.testing.paths import Target
from lutumpy.testing.replies import Failure, Reply
from lutumpy.testing.script import failure_headers, render_failure

__all__ = ["Answer", "Exchange"]

Answer: TypeAlias = Reply | Failure | dict[str, Any] | bytes | str | list[Any]
"""What one request is answered with: a scripted reply or failure, JSON sent as it is, a raw body,
or the events of a stream, sent as they are; a `Failure` among them is an error after the stream has
begun, and ends it.
"""


class Exchange:
    """One request on its way to an answer."""

    def __init__(self, target: Target, number: int, request: Request) -> None:
        self.target: Target = target
        self.server: ApiServer = target.server
        self.number: int = number
        self.request = request
        self.request_id: str = f"req_{number:024d}"
        self.failures: Api = self.server.failures_of(target.way)
        self.headers: dict[str, str] = {self.server.request_id_header: self.request_id}

    # --- Refusals --------------------------------------------------------------------------------

    def refuse_target(self) -> Response | None:
        """The answer to a request for a path that doesn't exist, or with a method that the path
        doesn't take.
        """
        target, method, path = self.target, self.request.method, self.request.url.path
        if target.operation:
            return None
        if not target.methods:
            return self.send_failure(self.server.unknown_path(method, path))
        failure = self.server.unknown_method(method, path)
        return self.send_failure(failure, {"allow": ", ".join(target.methods)})

    def refuse_headers(self) -> Response | None:
        """The answer to a request that lacks a header that the API requires."""
        request = self.request
        way = self.target.way
        failure = self.server.refuse_at(way, request.headers, request.query_params)
        return None if failure is None else self.send_failure(failure)

    def refuse_body(self) -> Response:
        """The answer to a body that isn't JSON."""
        return self.send_failure(self.server.unreadable_body())

    def refuse_problems(self, problems: list[Problem]) -> Response | None:
        """The answer to a request with a problem that the API refuses: the first of them."""
        problem = first_refusal(problems)
        if problem is None:
            return None
        body = render_failure(
            self.failures,
            problem.status,
            problem.message,
            kind=problem.kind,
            param=problem.param,
            code=problem.code,
            request_id=self.request_id,
        )
        headers = failure_headers(self.failures, problem.status, kind=problem.kind)
        return self.send_json(body, problem.status, headers)

    def send_failure(self, failure: Failure, more: Mapping[str, str] | None = None) -> Response:
        """An error of the API, with its own headers and `more`."""
        body = render_failure(
            self.failures,
            failure.status,
            failure.message,
            kind=failure.kind,
            request_id=self.request_id,
        )
        typed = failure_headers(self.failures, failure.status, kind=failure.kind)
        return self.send_json(body, failure.status, {**typed, **failure.headers, **(more or {})})

    # --- Answers ---------------------------------------------------------------------------------

    def respond_from_memory(self, body: Any) -> tuple[Response, list[Problem]]:
        """The answer to what isn't asked of a model, and the problems that were found."""
        resource = self.server.resources()[self.target.operation]
        query = Query(self.target.ids, self.request.query_params, body)
        try:
            answer = resource(query)
        except Refused as refused:
            response = self.refuse_problems(refused.problems)
            assert response is not None, "what is raised is a refusal"
            return response, refused.problems
        if isinstance(answer, list):
            return self._send_events(answer), []
        if isinstance(answer, bytes):
            return Response(answer, 200, dict(self.headers), "application/octet-stream"), []
        return self.send_json(answer), []

    def respond(
        self, answer: Answer, body: Mapping[str, Any]
    ) -> tuple[Response, Json | None, list[Json] | None]:
        """The response, the JSON in it if a later request may be checked against that, and its
        stream events.
        """
        if isinstance(answer, Failure):
            return self.send_failure(answer), None, None
        # JSON of the script's own may be an answer like any other, so it is remembered.
        if isinstance(answer, dict):
            return self.send_json(answer), answer, None
        if isinstance(answer, list):
            return self._send_events(answer), None, None
        is_streamed = self.target.streams
        if is_streamed is None:
            asked = body.get("stream")
            is_streamed = self.server.streams_by_default if asked is None else asked is True
        # A raw body may be broken on purpose: nothing of it can be remembered.
        if isinstance(answer, (bytes, str)):
            kind = self.server.stream_type if is_streamed else "application/json"
            return Response(answer, 200, dict(self.headers), kind), None, None
        options: Any = {"number": self.number, "model": str(body.get("model")), "body": body}
        rendered = self.server.render_reply(answer, **options)
        if not is_streamed:
            return self.send_json(self.server.arrange(rendered, body)), rendered, None
        events = self.server.render_events(answer, **options)
        events = self.server.arrange_events(events, body)
        return self._send_events(events), rendered, events

    def _send_events(self, events: list[Any]) -> Response:
        options = self.request.query_params
        kind, pieces = self.server.write_stream_at(self.target.way, events, options)
        return StreamingResponse(pieces, 200, self.headers, kind)

    def send_json(
        self, body: Any, status: int = 200, more: Mapping[str, str] | None = None
    ) -> Response:
        """JSON with the headers of the API, and `more`."""
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        # Models write halves of surrogate pairs, which UTF-8 proper has no form for.
        data = text.encode("utf-8", "surrogatepass")
        return Response(data, status, {**self.headers, **(more or {})}, "application/json")
