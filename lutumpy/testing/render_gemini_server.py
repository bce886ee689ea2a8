"""generateContent at the test server: paths with model and method, keys, signatures, counts."""

# The same paths come after any version (`v1beta`, `v1`, `v1beta1`), and on Vertex behind a
# project and a place as well. A stream is another method; without `alt=sse` it is one JSON array.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from lutumpy.apis import Api
from lutumpy.errors import Problem
from lutumpy.rules.gemini.fields import field
from lutumpy.rules.gemini.messages import check_request
from lutumpy.rules.gemini.moves import find_sealed, refuse_seal
from lutumpy.testing.api_server import (
    CREATE,
    NO_HEADERS,
    ApiServer,
    Json,
    Query,
    Refused,
    Resource,
    Route,
    first_refusal,
    objects,
)
from lutumpy.testing.prompt_cache import PromptTokens, count_tokens
from lutumpy.testing.render_gemini import write_chunk
from lutumpy.testing.replies import Failure
from lutumpy.testing.script import render_failure

__all__ = ["GeminiServer"]

NO_KEY = (
    "Method doesn't allow unregistered callers (callers without established identity). Please use "
    "API Key or other form of API consumer identity to call this API."
)
FIRST_MODEL = "gemini-3-flash-preview"
"""The first model of the list, which has those that requests have named after it."""

_PARENTS = (
    "",
    "/publishers/google",
    "/projects/{project}/locations/{location}/publishers/google",
)
_COUNTED = ("systemInstruction", "tools", "contents")
"""What costs tokens in a request."""


class GeminiServer(ApiServer):
    """generateContent of the Gemini API and of Vertex, and its models."""

    request_id_header: ClassVar[str] = "x-request-id"
    seals_by_model: ClassVar[bool] = True
    path_starts: ClassVar[tuple[str, ...]] = ("/v1beta", "/v1beta1", "/v1alpha")
    needs_body: ClassVar[frozenset[str]] = ApiServer.needs_body | {"count"}

    def __init__(self, api: Api, models: dict[str, None]) -> None:
        super().__init__(api, models)
        # Parts by the signature that was sent with them.
        self._signed: dict[str, Json] = {}

    @property
    def routes(self) -> tuple[Route, ...]:
        found: list[Route] = []
        for parent in _PARENTS:
            model = f"/{{version}}{parent}/models/{{model}}"
            found += [
                Route(f"{model}:generateContent", {"POST": CREATE}, True, streams=False),
                Route(f"{model}:streamGenerateContent", {"POST": CREATE}, True, streams=True),
                Route(f"{model}:countTokens", {"POST": "count"}, True),
            ]
        for version in ("v1", "v1beta", "v1alpha", "v1beta1"):
            found += [
                Route(f"/{version}/models", {"GET": "models"}, True),
                Route(f"/{version}/models/{{model}}", {"GET": "model"}, True),
            ]
        return tuple(found)

    def write_cached(self, usage: Json, tokens: PromptTokens) -> None:
        if tokens.cached:
            usage["cachedContentTokenCount"] = tokens.cached

    def claims(self, headers: Mapping[str, str]) -> bool:
        return "x-goog-api-key" in headers

    # --- Refusals --------------------------------------------------------------------------------

    def unknown_path(self, method: str, path: str) -> Failure:
        return Failure(404, f"Method not found: {method} {path}")

    def unreadable_body(self) -> Failure:
        return Failure(400, "Invalid JSON payload received. Unexpected end of string.")

    def refuse_request(
        self, headers: Mapping[str, str], options: Mapping[str, str]
    ) -> Failure | None:
        bearer = headers.get("authorization", "").removeprefix("Bearer").strip()
        has_key = bearer or headers.get("x-goog-api-key") or options.get("key")
        return None if has_key else Failure(403, NO_KEY)

    def check(
        self, body: Any, *, headers: Mapping[str, str] = NO_HEADERS, is_counted: bool = False
    ) -> list[Problem]:
        return check_request(body, issued=self._signed)

    def complete_body(self, body: Json, ids: Mapping[str, str]) -> None:
        body["model"] = ids["model"]

    def find_seals(
        self, body: Mapping[str, Any], answer: Mapping[str, Any] | None = None
    ) -> list[tuple[str, str]]:
        contents = field(body, "contents")
        if answer is not None:
            contents = [one.get("content") for one in objects(answer.get("candidates"))]
        return find_sealed(contents)

    def refuse_seal(self, path: str, seal: str) -> Problem:
        return refuse_seal(path)

    # --- Answers ---------------------------------------------------------------------------------

    def write_event(self, event: Json) -> bytes:
        return f"data: {write_chunk(event)}\r\n\r\n".encode("utf-8", "surrogatepass")

    def write_failure(self, failure: Failure) -> bytes:
        """An error after a stream has begun is a chunk of it."""
        return self.write_event(self._error_of(failure))

    def _error_of(self, failure: Failure) -> Json:
        return render_failure(self.api, failure.status, failure.message, kind=failure.kind)

    def write_stream(
        self, events: Iterable[Json | Failure], options: Mapping[str, str]
    ) -> tuple[str, Iterator[bytes]]:
        if options.get("alt") == "sse":
            return super().write_stream(events, options)
        chunks = [self._error_of(each) if isinstance(each, Failure) else each for each in events]
        return "application/json; charset=UTF-8", _write_array(chunks)

    def remember(
        self, body: Mapping[str, Any], answer: Mapping[str, Any], events: list[Json] | None = None
    ) -> None:
        super().remember(body, answer, events)
        for candidate in objects(answer.get("candidates")):
            content = candidate.get("content")
            for part in objects(content.get("parts") if isinstance(content, dict) else None):
                signature = field(part, "thoughtSignature")
                if isinstance(signature, str):
                    self._signed[signature] = part

    # --- Models and counts -----------------------------------------------------------------------

    def resources(self) -> Mapping[str, Resource]:
        return {"models": self._list_models, "model": self._retrieve_model, "count": self._count}

    def _list_models(self, query: Query) -> Json:
        names = dict.fromkeys([FIRST_MODEL, *self.models])
        return {"models": [_describe_model(name) for name in names]}

    def _retrieve_model(self, query: Query) -> Json:
        return _describe_model(query.ids["model"])

    def _count(self, query: Query) -> Json:
        body = query.body if isinstance(query.body, Mapping) else {}
        # The whole request may be under a key of its own.
        whole = field(body, "generateContentRequest")
        counted = whole if isinstance(whole, Mapping) else body
        problems = self.check({**counted, "model": query.ids["model"]}, is_counted=True)
        if first_refusal(problems) is not None:
            raise Refused(*sorted(problems, key=lambda problem: problem.certainty != "refused"))
        parts = [field(counted, name) for name in _COUNTED]
        number = count_tokens([part for part in parts if part is not None])
        return {
            "totalTokens": number,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": number}],
        }


def _write_array(events: Iterable[Json]) -> Iterator[bytes]:
    before = "["
    for event in events:
        yield f"{before}{write_chunk(event)}".encode("utf-8", "surrogatepass")
        before = ",\r\n"
    yield b"]" if before != "[" else b"[]"


def _describe_model(name: str) -> Json:
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name,
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }
