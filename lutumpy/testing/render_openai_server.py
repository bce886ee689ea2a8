"""Chat Completions at the test server, and what Responses has in common with it: keys, refusals,
models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lutumpy.testing.api_server import CREATE, ApiServer, Json, Query, Resource, Route
from lutumpy.testing.render_openai import CREATED
from lutumpy.testing.replies import Failure

__all__ = ["ChatServer", "OpenAIServer"]

NO_KEY = (
    "You didn't provide an API key. You need to provide your API key in an Authorization header "
    "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank "
    "username) if you're accessing the API from your browser and are prompted for a username and "
    "password. You can obtain an API key from https://platform.openai.com/account/api-keys."
)
BAD_JSON = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using "
    "your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not "
    "valid JSON. If you have trouble figuring out how to fix this, please contact us through our "
    "help center at help.openai.com.)"
)
FIRST_MODEL = "gpt-5-mini"
"""The first model of the list, which has those that requests have named after it. Any other can be
retrieved.
"""


class OpenAIServer(ApiServer):
    """What both APIs of OpenAI refuse in the same words."""

    def unknown_path(self, method: str, path: str) -> Failure:
        return Failure(404, f"Invalid URL ({method} {path})")

    def unknown_method(self, method: str, path: str) -> Failure:
        return Failure(
            405,
            f"Not allowed to {method} on {path}. "
            "(HINT: Perhaps you meant to use a different HTTP method?)",
        )

    def unreadable_body(self) -> Failure:
        return Failure(400, BAD_JSON)

    def refuse_headers(self, headers: Mapping[str, str]) -> Failure | None:
        bearer = headers.get("authorization", "").removeprefix("Bearer").strip()
        has_key = bearer or headers.get("api-key")  # Azure has a header of its own
        return None if has_key else Failure(401, NO_KEY)


class ChatServer(OpenAIServer):
    """Chat Completions, and OpenAI's models, which stand at no path of an API."""

    path_starts: ClassVar[tuple[str, ...]] = ("/chat",)
    stream_end: ClassVar[bytes] = b"data: [DONE]\n\n"

    @property
    def routes(self) -> tuple[Route, ...]:
        deployment = "/openai/deployments/{deployment}/chat/completions"  # Azure names models so
        return (
            *super().routes,
            Route(deployment, {"POST": CREATE}, is_whole=True),
            Route("/models", {"GET": "models"}),
            Route("/models/{model:path}", {"GET": "model"}),
        )

    def complete_body(self, body: Json, ids: Mapping[str, str]) -> None:
        if "deployment" in ids and body.get("model") is None:
            body["model"] = ids["deployment"]

    def resources(self) -> Mapping[str, Resource]:
        return {"models": self._list_models, "model": self._retrieve_model}

    def arrange_events(self, events: list[Json], body: Mapping[str, Any]) -> list[Json]:
        """Chunks speak of usage only if `stream_options.include_usage` asked for it."""
        options = body.get("stream_options")
        if isinstance(options, Mapping) and options.get("include_usage") is True:
            return events
        return [
            {key: value for key, value in event.items() if key != "usage"}
            for event in events
            if event["choices"]
        ]

    def _list_models(self, query: Query) -> Json:
        names = dict.fromkeys([FIRST_MODEL, *self.models])
        return {"object": "list", "data": [_describe_model(name) for name in names]}

    def _retrieve_model(self, query: Query) -> Json:
        return _describe_model(query.ids["model"])


def _describe_model(name: str) -> Json:
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "openai"}
