"""One request of the test server on its way to an answer, and what the server remembers of its answers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from lutumpy.core.rules import Problem, anthropic, chat, responses
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

ECHOED = (
    "instructions max_output_tokens metadata parallel_tool_calls previous_response_id store temperature tool_choice "
    "tools top_p"
).split()
"""Parameters of a Responses request that come back in its answer."""


def json_response(status: int, body: Any, headers: Mapping[str, str]) -> Response:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return Response(text, status, dict(headers), "application/json")


class Exchange:
    """One request on its way to an answer."""

    def __init__(self, api: Api, number: int, request: Request) -> None:
        self.api: Api = api
        self.number = number
        self.sent: Mapping[str, str] = request.headers
        self.request_id: str = f"req_{number:024d}"
        name = "request-id" if api == "anthropic_messages" else "x-request-id"
        self.headers: dict[str, str] = {name: self.request_id}

    def refused_headers(self) -> Response | None:
        """The answer to a request without key or version; any key is good."""
        bearer = self.sent.get("authorization", "").removeprefix("Bearer").strip()
        if self.api != "anthropic_messages":
            return None if bearer or self.sent.get("api-key") else self.failure(401, NO_OPENAI_KEY)
        if not (bearer or self.sent.get("x-api-key")):
            return self.failure(401, NO_ANTHROPIC_KEY)
        return None if self.sent.get("anthropic-version") else self.failure(400, NO_ANTHROPIC_VERSION)

    def failure(self, status: int, message: str, kind: str = "", headers: Mapping[str, str] | None = None) -> Response:
        body = render_failure(self.api, status, message, kind=kind, request_id=self.request_id)
        return json_response(status, body, {**self.headers, **(headers or {})})

    def refusal(self, problem: Problem) -> Response:
        body = render_failure(
            self.api,
            problem.status,
            problem.message,
            kind=problem.kind,
            param=problem.param,
            code=problem.code,
            request_id=self.request_id,
        )
        return json_response(problem.status, body, self.headers)

    def respond(self, answer: Answer, body: Mapping[str, Any]) -> tuple[Response, dict[str, Any] | None]:
        """The response, and the JSON that it says if a later request may be checked against that."""
        streamed = body.get("stream") is True
        if isinstance(answer, Failure):
            return self.failure(answer.status, answer.message, answer.kind, answer.headers), None
        if isinstance(answer, dict):
            return json_response(200, answer, self.headers), answer
        if isinstance(answer, (bytes, str)):
            kind = "text/event-stream; charset=utf-8" if streamed else "application/json"
            return Response(answer, 200, dict(self.headers), kind), None
        model = str(body.get("model"))
        said = render(answer, self.api, number=self.number, model=model)
        echo = {key: body[key] for key in ECHOED if body.get(key) is not None}
        if not streamed:
            if self.api == "openai_responses":
                said.update(echo)
            return json_response(200, said, self.headers), said
        events = render_stream(answer, self.api, number=self.number, model=model)
        for event in events if self.api == "openai_responses" else ():
            if "response" in event:
                event["response"].update(echo)
        if self.api == "openai_chat":
            events = _with_or_without_usage(events, body)
        stream = _event_stream(self.api, events)
        return StreamingResponse(stream, 200, self.headers, "text/event-stream; charset=utf-8"), said


def _with_or_without_usage(events: list[dict[str, Any]], body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Chunks speak of usage only if `stream_options.include_usage` asked for it."""
    options = body.get("stream_options")
    if isinstance(options, Mapping) and options.get("include_usage") is True:
        return events
    return [{key: value for key, value in event.items() if key != "usage"} for event in events if event["choices"]]


def _event_stream(api: Api, events: list[dict[str, Any]]) -> Iterator[bytes]:
    for event in events:
        name = "" if api == "openai_chat" else f"event: {event['type']}\n"
        data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        yield f"{name}data: {data}\n\n".encode("utf-8", "surrogatepass")
    if api == "openai_chat":
        yield b"data: [DONE]\n\n"


class Memory:
    """What a real server knows of its own answers: reasoning before items, signed thinking, stored responses."""

    def __init__(self) -> None:
        self.reasoning: dict[str, str] = {}
        self.signed: dict[str, str] = {}
        self.stored: dict[str, list[Any]] = {}

    def check(self, api: Api, body: Any) -> list[Problem]:
        if api == "openai_chat":
            return chat.check_request(body)
        if api == "anthropic_messages":
            return anthropic.check_request(body, issued=self.signed)
        found = responses.check_request(body, required_reasoning=self.reasoning)
        previous = body.get("previous_response_id") if isinstance(body, Mapping) else None
        if previous is None or any(problem.certainty == "refused" for problem in found):
            return found
        held = self.stored.get(previous) if isinstance(previous, str) else None
        if held is None:
            message = f"Previous response with id '{previous}' not found."
            code, param = "previous_response_not_found", "previous_response_id"
            return [*found, Problem("responses.previous_response", param, message, "refused", param=param, code=code)]
        return found + responses.check_messages([*held, *_input_items(body)], required_reasoning=self.reasoning)

    def remember(self, api: Api, body: Mapping[str, Any], said: Mapping[str, Any]) -> None:
        if api == "anthropic_messages":
            for block in _objects(said.get("content")):
                if block.get("type") == "thinking" and isinstance(block.get("signature"), str):
                    self.signed[block["signature"]] = block.get("thinking", "")
        elif api == "openai_responses":
            output = _objects(said.get("output"))
            for before, item in itertools.pairwise(output):
                ids = (before.get("id"), item.get("id"))
                if before.get("type") == "reasoning" and isinstance(ids[0], str) and isinstance(ids[1], str):
                    self.reasoning[ids[1]] = ids[0]
            if isinstance(said.get("id"), str) and body.get("store") is not False:
                held = self.stored.get(str(body.get("previous_response_id")), [])
                self.stored[said["id"]] = [*held, *_input_items(body), *output]


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _input_items(body: Mapping[str, Any]) -> list[Any]:
    """The input as items; a text is a user's message."""
    entries = body.get("input")
    if isinstance(entries, str):
        return [{"role": "user", "content": entries}]
    return list(entries) if isinstance(entries, list) else []
