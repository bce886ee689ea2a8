"""Converse at the test server: models in the path, frames, signed reasoning, counts of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from lutumpy.apis import Api
from lutumpy.errors import Problem
from lutumpy.rules.writing import mapping
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
from lutumpy.testing.prompt_cache import Piece, PromptTokens, count_tokens
from lutumpy.testing.reasoning_memory import ReasoningMemory
from lutumpy.testing.render_bedrock import failure_type
from lutumpy.testing.render_bedrock_frames import write_event_frame, write_exception_frame
from lutumpy.testing.replies import Failure

__all__ = ["ConverseServer"]

NO_KEY = "Missing Authentication Token"
NO_JSON = "Unexpected token in the request body: it is not valid JSON."
COUNTED = ("system", "toolConfig", "messages")
"""What costs tokens in a request."""


class ConverseServer(ApiServer):
    """Converse and ConverseStream."""

    request_id_header: ClassVar[str] = "x-amzn-RequestId"
    path_starts: ClassVar[tuple[str, ...]] = ("/model",)
    stream_type: ClassVar[str] = "application/vnd.amazon.eventstream"

    def __init__(self, api: Api, models: dict[str, None]) -> None:
        super().__init__(api, models)
        # Reasoning texts by the signature that was given with them.
        self._signed: dict[str, str] = {}

    @property
    def routes(self) -> tuple[Route, ...]:
        # A model's name may be an ARN, which has slashes.
        return (
            Route("/model/{model:path}/converse", {"POST": CREATE}, streams=False),
            Route("/model/{model:path}/converse-stream", {"POST": CREATE}, streams=True),
            Route("/model/{model:path}/count-tokens", {"POST": "count"}),
        )

    # --- What it refuses -------------------------------------------------------------------------

    def unknown_path(self, method: str, path: str) -> Failure:
        return Failure(404, "UnknownOperationException", "UnknownOperationException")

    def unknown_method(self, method: str, path: str) -> Failure:
        return Failure(405, "UnknownOperationException", "UnknownOperationException")

    def unreadable_body(self) -> Failure:
        return Failure(400, NO_JSON, "SerializationException")

    def refuse_headers(self, headers: Mapping[str, str]) -> Failure | None:
        # A signature or an API key; both are in one header.
        has_key = bool(headers.get("authorization", "").strip())
        return None if has_key else Failure(403, NO_KEY, "MissingAuthenticationTokenException")

    def check(
        self, body: Any, *, headers: Mapping[str, str] = NO_HEADERS, is_counted: bool = False
    ) -> list[Problem]:
        found = self.rules.check_request(body)
        if first_refusal(found) is None:
            found = [*found, *self._check_issued(body)]
        return found if first_refusal(found) is not None else [*found, *self._check_bound(body)]

    @property
    def _memory(self) -> ReasoningMemory:
        assert self.reasoning is not None, "the rules of Converse say how it binds reasoning"
        return self.reasoning

    def prompt_of(self, body: Mapping[str, Any]) -> list[Piece]:
        """Tools, system and messages block by block; what comes before a cache point is kept."""
        config = mapping(body.get("toolConfig")) or {}
        blocks = [*objects(config.get("tools")), *objects(body.get("system"))]
        for message in objects(body.get("messages")):
            blocks += [
                {"role": message.get("role"), **block} if "cachePoint" not in block else block
                for block in objects(message.get("content"))
            ]
        pieces: list[Piece] = []
        for block in blocks:
            if "cachePoint" not in block:
                pieces.append(Piece(block, is_end=False))
            elif pieces:
                pieces[-1] = Piece(pieces[-1].value)
        return pieces

    def write_cached(self, usage: Json, tokens: PromptTokens) -> None:
        written = max(0, tokens.kept - tokens.cached)
        if tokens.cached or written:
            usage["inputTokens"] = tokens.total - tokens.cached - written
            usage["cacheReadInputTokens"] = tokens.cached
            usage["cacheWriteInputTokens"] = written

    def output_of(self, answer: Mapping[str, Any]) -> Any:
        return ((answer.get("output") or {}).get("message") or {}).get("content")

    def _check_bound(self, body: Mapping[str, Any]) -> list[Problem]:
        """Reasoning of another conversation, where the Claude that is asked refuses it. What is
        taken away, Converse has no word for.
        """
        if not self._memory.is_enforced(body.get("model"), new_account=self.is_new_account):
            return []
        more = mapping(body.get("additionalModelRequestFields")) or {}
        binding = mapping((mapping(more.get("thinking")) or {}).get("block_binding")) or {}
        mismatched = self._memory.judge(body).mismatched
        if not mismatched or binding.get("prefix_mismatch_behavior") == "drop_block":
            return []
        where = mismatched[0].path
        words = self._memory.binding.refusal.replace("{}", where)
        problem = Problem("converse.reasoning_bound", where, words, "refused")
        return [replace(problem, kind="ValidationException")]

    def _check_issued(self, body: Any) -> list[Problem]:
        """A signed text goes back as it was signed."""
        found: list[Problem] = []
        for index, message in enumerate(body.get("messages") or []):
            for number, block in enumerate(objects(message.get("content"))):
                readable = (block.get("reasoningContent") or {}).get("reasoningText") or {}
                signed = self._signed.get(str(readable.get("signature")))
                if signed is None or signed == readable.get("text"):
                    continue
                where = f"messages.{index}.content.{number}"
                words = (
                    f"The model returned the following errors: {where}: `thinking` or "
                    "`redacted_thinking` blocks in the latest assistant message cannot be "
                    "modified. These blocks must remain as they were in the original response."
                )
                problem = Problem("converse.signature", where, words, "refused")
                found.append(replace(problem, kind="ValidationException"))
        return found

    # --- What it answers and remembers -----------------------------------------------------------

    def complete_body(self, body: Json, ids: Mapping[str, str]) -> None:
        body["model"] = ids["model"]

    def resources(self) -> Mapping[str, Resource]:
        return {"count": self._count}

    def _count(self, query: Query) -> Json:
        held = query.body.get("input") if isinstance(query.body, Mapping) else None
        body = held.get("converse") if isinstance(held, Mapping) else None
        problems = self.check(body if isinstance(body, Mapping) else {}, is_counted=True)
        if first_refusal(problems) is not None:
            # The sort keeps the order among the refusals, and puts the doubtful ones behind them.
            raise Refused(*sorted(problems, key=lambda problem: problem.certainty != "refused"))
        assert isinstance(body, Mapping), "a request without messages is refused"
        return {"inputTokens": count_tokens([body[key] for key in COUNTED if body.get(key)])}

    def write_event(self, event: Json) -> bytes:
        """The frame of an event."""
        name, payload = next(iter(event.items()))
        return write_event_frame(name, payload)

    def write_failure(self, failure: Failure) -> bytes:
        """The frame of an error after the stream has begun; its name begins in lower case."""
        name = failure_type(failure.status, failure.kind)
        return write_exception_frame(name[:1].lower() + name[1:], failure.message)

    def remember(
        self, body: Mapping[str, Any], answer: Mapping[str, Any], events: list[Json] | None = None
    ) -> None:
        super().remember(body, answer, events)
        message = (answer.get("output") or {}).get("message") or {}
        for block in objects(message.get("content")):
            readable = (block.get("reasoningContent") or {}).get("reasoningText") or {}
            if isinstance(readable.get("signature"), str):
                self._signed[readable["signature"]] = readable.get("text", "")
        self._memory.remember(body, message.get("content"))
