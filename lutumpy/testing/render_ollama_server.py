"""`/api/chat` at the test server, and the lists of models. It asks for no key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from lutumpy.testing.api_server import ApiServer, Json, Query, Resource, Route
from lutumpy.testing.replies import Failure
from lutumpy.testing.script import render_failure

__all__ = ["OllamaServer"]

FIRST_MODEL = "qwen3:4b"
"""The first model of the list, which has those that requests have named after it."""

VERSION = "0.12.0"
"""The release that the server says it is."""


class OllamaServer(ApiServer):
    """Ollama, as it runs on one's own machine."""

    path_starts: ClassVar[tuple[str, ...]] = ("/api",)
    stream_type: ClassVar[str] = "application/x-ndjson"
    streams_by_default: ClassVar[bool] = True

    @property
    def routes(self) -> tuple[Route, ...]:
        return (
            *super().routes,
            Route("/api/tags", {"GET": "models"}, True),
            Route("/api/version", {"GET": "version"}, True),
        )

    def unknown_path(self, method: str, path: str) -> Failure:
        return Failure(404, "404 page not found")

    def unreadable_body(self) -> Failure:
        return Failure(400, "invalid character in the request body: it is not JSON")

    def write_event(self, event: Json) -> bytes:
        text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        return f"{text}\n".encode("utf-8", "surrogatepass")

    def write_failure(self, failure: Failure) -> bytes:
        """An error after a stream has begun is a line of it."""
        return self.write_event(render_failure(self.api, failure.status, failure.message))

    def resources(self) -> Mapping[str, Resource]:
        return {"models": self._list_models, "version": lambda query: {"version": VERSION}}

    def _list_models(self, query: Query) -> Json:
        names = dict.fromkeys([FIRST_MODEL, *self.models])
        return {"models": [_describe_model(name) for name in names]}


def _describe_model(name: str) -> dict[str, Any]:
    return {"name": name, "model": name, "size": 0, "digest": "", "details": {"format": "gguf"}}
