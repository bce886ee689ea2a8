"""Chat Completions at the test server, and what Responses has in common with it: keys, refusals,
models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from lutumpy.apis import Api
from lutumpy.errors import Problem
from lutumpy.rules.openai.chat.host_fields import check_host, check_host_parameters, find_sealed
from lutumpy.testing.api_server import (
    CREATE,
    NO_HEADERS,
    ApiServer,
    Json,
    Query,
    Resource,
    Route,
    objects,
)
from lutumpy.testing.batches import BatchAnswer, BatchEntry
from lutumpy.testing.prompt_cache import PromptTokens
from lutumpy.testing.render_chat_store import STORE_ROUTES, ChatStore
from lutumpy.testing.render_openai import CREATED
from lutumpy.testing.render_openai_batches import BATCH_ROUTES, OpenAIBatches, read_upload
from lutumpy.testing.replies import Failure, Reply, split_text

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
    """Chat Completions, and OpenAI's models, which are at no path of an API."""

    path_starts: ClassVar[tuple[str, ...]] = ("/chat",)
    stream_end: ClassVar[bytes] = b"data: [DONE]\n\n"

    def __init__(self, api: Api, models: dict[str, None]) -> None:
        super().__init__(api, models)
        self._store = ChatStore()
        self._batches = OpenAIBatches()

    @property
    def routes(self) -> tuple[Route, ...]:
        deployment = "/openai/deployments/{deployment}/chat/completions"  # Azure names models so
        return (
            Route("/chat/completions", {"POST": CREATE, "GET": "list_completions"}),
            *STORE_ROUTES,
            *BATCH_ROUTES,
            *super().routes,
            Route(deployment, {"POST": CREATE}, is_whole=True),
            Route("/models", {"GET": "models"}),
            Route("/models/{model:path}", {"GET": "model"}),
        )

    def check(
        self, body: Any, *, headers: Mapping[str, str] = NO_HEADERS, is_counted: bool = False
    ) -> list[Problem]:
        return self.rules.check_request(body, compatible=self.place.is_compatible(self.api))

    def check_facts(self, body: Mapping[str, Any]) -> list[Problem]:
        """Fields, parts and missing reasoning as the host refuses them, and parameters that it
        calls by another name.
        """
        facts = self.place.facts
        if facts is None:
            return []
        found = check_host(body.get("messages"), facts) + check_host_parameters(body, facts)
        return [replace(problem, certainty="refused") for problem in found]

    def find_seals(
        self, body: Mapping[str, Any], answer: Mapping[str, Any] | None = None
    ) -> list[tuple[str, str]]:
        if answer is None:
            return [*find_sealed(objects(body.get("messages")))]
        choices = objects(answer.get("choices"))
        return [*find_sealed([choice.get("message") for choice in choices])]

    def complete_body(self, body: Json, ids: Mapping[str, str]) -> None:
        if "deployment" in ids and body.get("model") is None:
            body["model"] = ids["deployment"]

    def resources(self) -> Mapping[str, Resource]:
        models: Mapping[str, Resource] = {
            "models": self._list_models,
            "model": self._retrieve_model,
        }
        return {**models, **self._store.resources(), **self._batches.resources()}

    def read_form(self, kind: str, data: bytes) -> Json | None:
        return read_upload(kind, data)

    def read_batch(self, body: Any) -> list[BatchEntry]:
        return self._batches.read(body)

    def keep_batch(self, body: Mapping[str, Any], answers: list[BatchAnswer], url: str) -> Json:
        return self._batches.keep(body, answers)

    def remember(
        self, body: Mapping[str, Any], answer: Mapping[str, Any], events: list[Json] | None = None
    ) -> None:
        super().remember(body, answer, events)
        self._store.keep(body, answer)

    def write_cached(self, usage: Json, tokens: PromptTokens) -> None:
        usage["prompt_tokens_details"] = {
            **usage["prompt_tokens_details"],
            "cached_tokens": tokens.cached,
        }

    @property
    def _reasoning_field(self) -> str | None:
        facts = self.place.facts
        return None if facts is None else facts.reasoning_field

    def render_reply(
        self, reply: Reply, *, number: int, model: str, body: Mapping[str, Any]
    ) -> Json:
        """The API shows no reasoning, but its other hosts do, in a field of their own."""
        answer = super().render_reply(reply, number=number, model=model, body=body)
        field = self._reasoning_field
        if field is not None and reply.reasoning is not None:
            for choice in answer["choices"]:
                choice["message"][field] = reply.reasoning
        return answer

    def render_events(
        self, reply: Reply, *, number: int, model: str, body: Mapping[str, Any]
    ) -> list[Json]:
        events = super().render_events(reply, number=number, model=model, body=body)
        field = self._reasoning_field
        if field is None or reply.reasoning is None:
            return events
        shown: list[Json] = []
        for event in events:
            shown.append(event)
            choice = event["choices"][0] if event["choices"] else {}
            if "role" in choice.get("delta", {}):  # a choice begins
                shown += [
                    {**event, "choices": [{**choice, "delta": {field: part}}]}
                    for part in split_text(reply.reasoning)
                ]
        return shown

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
