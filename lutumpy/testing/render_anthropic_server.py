"""Messages at the test server: signed and bound thinking, threads, models, counts of tokens."""

# A thread is a conversation that the API holds. Each of its answers is a place to go on from, once:
#
#     state        how it gets there                          a request that continues it
#     open         its answer was given                       is answered, and in flight meanwhile
#     in flight    a request continues it                     thread_continue_in_flight
#     continued    the answer to that request was given       thread_already_continued
#     unknown      it was never given, or without `thread`    thread_not_found
#
# A request that fails puts the thread back from "in flight" to "open".

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from lutumpy.apis import Api
from lutumpy.errors import Problem
from lutumpy.rules.anthropic.messages import check_request
from lutumpy.rules.anthropic.models import BINDING_CONTROLS
from lutumpy.rules.anthropic.moves import refuse_seal
from lutumpy.rules.anthropic.requests import FIXED_BY_THREAD, continues_thread
from lutumpy.rules.writing import BoundBlock
from lutumpy.testing.api_server import (
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
from lutumpy.testing.batches import BatchAnswer, BatchEntry
from lutumpy.testing.lists import index_after, write_page
from lutumpy.testing.prompt_cache import Piece, PromptTokens, count_tokens
from lutumpy.testing.reasoning_memory import ReasoningMemory
from lutumpy.testing.render_anthropic_batches import BATCH_ROUTES, MessageBatches
from lutumpy.testing.render_anthropic_clouds import (
    CLOUD_ROUTES,
    CLOUDS,
    betas_in_body,
    failures_at_cloud,
    refuse_at_cloud,
    write_framed,
)
from lutumpy.testing.replies import Failure

__all__ = ["MessagesServer"]

NO_KEY = "x-api-key header is required"
NO_VERSION = "anthropic-version: header is required"
FIRST_MODEL = "claude-sonnet-5"
"""The first model of the list, which has those that requests have named after it. Any other can be
retrieved.
"""

UNFINISHED = ("pause_turn", "compaction")
"""Stop reasons after which a thread goes on without a new message."""

COUNTED = ("system", "tools", "messages")
"""What costs tokens in a request."""

MAX_PAGE = 100


@dataclass(slots=True)
class Thread:
    """A conversation that Messages holds, up to one of its answers.

    Attributes:
        messages: Everything up to that answer, with it.
        fixed: The `system` and `tools` that it was created with.
        is_unfinished: Whether the answer doesn't end a turn.
        is_continued: Whether another answer has followed: each can be continued once.
        is_in_flight: Whether one is being given.
    """

    messages: list[Any]
    fixed: dict[str, Any]
    is_unfinished: bool
    is_continued: bool = False
    is_in_flight: bool = False


class MessagesServer(ApiServer):
    """Messages, and Anthropic's models."""

    request_id_header: ClassVar[str] = "request-id"
    path_starts: ClassVar[tuple[str, ...]] = ("/messages",)
    needs_body: ClassVar[frozenset[str]] = ApiServer.needs_body | {"count"}

    def __init__(self, api: Api, models: dict[str, None]) -> None:
        super().__init__(api, models)
        # Thinking texts by the signature that was given with them.
        self._signed: dict[str, str] = {}
        # The contents of answers that don't end a turn, as JSON.
        self._unfinished: set[str] = set()
        # What answers tell of the reasoning of requests in flight, by the identity of these.
        self._changes: dict[int, list[Json]] = {}
        # The beta names that bodies of such requests had, at clouds that have no header for them.
        self._betas: dict[int, list[str]] = {}
        self._batches = MessageBatches()
        # By the id of the answer that a thread ends with.
        self._threads: dict[str, Thread] = {}

    @property
    def routes(self) -> tuple[Route, ...]:
        return (
            *super().routes,
            Route("/messages/count_tokens", {"POST": "count"}),
            *BATCH_ROUTES,
            Route("/models", {"GET": "models"}),
            Route("/models/{model:path}", {"GET": "model"}),
            *CLOUD_ROUTES,
        )

    def claims(self, headers: Mapping[str, str]) -> bool:
        # OpenAI has its models at the same path; this header is required here.
        return "anthropic-version" in headers

    def refuse_at(
        self, way: str, headers: Mapping[str, str], options: Mapping[str, str]
    ) -> Failure | None:
        if way in CLOUDS:
            return refuse_at_cloud(way, headers)
        return super().refuse_at(way, headers, options)

    def failures_of(self, way: str) -> Api:
        return failures_at_cloud(way) or self.api

    def complete_body(self, body: Json, ids: Mapping[str, str]) -> None:
        self._betas.pop(id(body), None)
        if "cloud_model" in ids:
            body["model"] = ids["cloud_model"]
            # What the vendor's own API has in headers.
            body.pop("anthropic_version", None)
            self._betas[id(body)] = betas_in_body(body)
            body.pop("anthropic_beta", None)

    def write_stream_at(
        self, way: str, events: Iterable[Json | Failure], options: Mapping[str, str]
    ) -> tuple[str, Iterator[bytes]]:
        framed = write_framed(way, events)
        return super().write_stream_at(way, events, options) if framed is None else framed

    def refuse_headers(self, headers: Mapping[str, str]) -> Failure | None:
        bearer = headers.get("authorization", "").removeprefix("Bearer").strip()
        if not (bearer or headers.get("x-api-key")):
            return Failure(401, NO_KEY)
        return None if headers.get("anthropic-version") else Failure(400, NO_VERSION)

    def resources(self) -> Mapping[str, Resource]:
        return {
            "models": self._list_models,
            "model": self._retrieve_model,
            "count": self._count,
            **self._batches.resources(),
        }

    def read_batch(self, body: Any) -> list[BatchEntry]:
        return self._batches.read(body)

    def keep_batch(self, body: Mapping[str, Any], answers: list[BatchAnswer], url: str) -> Json:
        return self._batches.keep(answers, url)

    # --- Models and counts -----------------------------------------------------------------------

    def _list_models(self, query: Query) -> Json:
        names = dict.fromkeys([FIRST_MODEL, *self.models])
        data = [_describe_model(name) for name in names]
        start = index_after(data, query.options.get("after_id"))
        stop = len(data)
        if "before_id" in query.options:
            stop = index_after(data, query.options["before_id"]) - 1
        limit = query.options.get("limit", "")
        shown = data[start:stop][: int(limit) if limit.isdecimal() else MAX_PAGE]
        has_more = bool(shown) and shown[-1]["id"] != data[stop - 1]["id"]
        return write_page(shown, has_more=has_more)

    def _retrieve_model(self, query: Query) -> Json:
        return _describe_model(query.ids["model"])

    def _count(self, query: Query) -> Json:
        asked = query.body
        if "project" in query.ids and isinstance(asked, Mapping):
            # At a cloud, what the vendor's own API has in a header.
            asked = {key: value for key, value in asked.items() if key != "anthropic_version"}
        problems = self.check(asked, is_counted=True)
        if first_refusal(problems) is not None:
            # The sort keeps the order among the refusals, and puts the doubtful ones behind them.
            raise Refused(*sorted(problems, key=lambda problem: problem.certainty != "refused"))
        counted = [query.body[key] for key in COUNTED if query.body.get(key) is not None]
        answer: Json = {"input_tokens": count_tokens(counted)}
        if query.body.get("context_management") is not None:
            answer["context_management"] = {"original_input_tokens": answer["input_tokens"]}
        return answer

    # --- Signed thinking and threads -------------------------------------------------------------

    def check(
        self, body: Any, *, headers: Mapping[str, str] = NO_HEADERS, is_counted: bool = False
    ) -> list[Problem]:
        """As for every API; a thread that the request may continue is in flight from then on."""
        betas = [name.strip() for name in headers.get("anthropic-beta", "").split(",")]
        betas += self._betas.get(id(body), [])
        found = check_request(
            body,
            issued=self._signed,
            counted=is_counted,
            betas=betas,
            compatible=self.place.is_compatible(self.api),
        )
        if self._resumes(body):
            found = _without_prefill(found)
        if first_refusal(found) is not None or not isinstance(body, Mapping):
            return found
        if not continues_thread(body):
            return found + self._judge_thinking(body, betas, keeps=not is_counted)
        previous = body["thread"]["previous_message_id"]
        thread = self._threads.get(previous)
        refusal = _refuse_thread(thread, previous)
        if refusal is not None:
            return [*found, refusal]
        assert thread is not None, "a thread that isn't there is refused"
        if not body["messages"] and not thread.is_unfinished:
            message = "messages: at least one message is required"
            return [*found, Problem("anthropic.messages", "messages", message, "refused")]
        found = self._check_whole(thread, body, betas)
        thread.is_in_flight = first_refusal(found) is None
        return found

    def prompt_of(self, body: Mapping[str, Any]) -> list[Piece]:
        """Tools, system and messages block by block; what ends with a mark is kept."""
        thread = self._continued_by(body)
        whole = body if thread is None else _join_thread(thread, body)
        system = whole.get("system")
        blocks = [*objects(whole.get("tools"))]
        blocks += [{"text": system}] if isinstance(system, str) else objects(system)
        for message in objects(whole.get("messages")):
            content = message.get("content")
            parts = [{"text": content}] if isinstance(content, str) else objects(content)
            blocks += [{"role": message.get("role"), **part} for part in parts]
        pieces = [Piece(_without_cache_control(block), _is_marked(block)) for block in blocks]
        if pieces and body.get("cache_control") is not None:
            pieces[-1] = Piece(pieces[-1].value)
        return pieces

    def write_cached(self, usage: Json, tokens: PromptTokens) -> None:
        if "input_tokens" not in usage:
            return
        written = max(0, tokens.kept - tokens.cached)
        usage["input_tokens"] = tokens.total - tokens.cached - written
        usage["cache_read_input_tokens"] = tokens.cached
        usage["cache_creation_input_tokens"] = written
        usage["cache_creation"] = {
            "ephemeral_5m_input_tokens": written,
            "ephemeral_1h_input_tokens": 0,
        }

    def output_of(self, answer: Mapping[str, Any]) -> Any:
        return answer.get("content")

    def refuse_seal(self, path: str, seal: str) -> Problem:
        return refuse_seal(path)

    def _check_whole(
        self, thread: Thread, body: Mapping[str, Any], betas: list[str]
    ) -> list[Problem]:
        """The problems of the request that says all of what a thread and its continuation say."""
        whole = _join_thread(thread, body)
        found = check_request(whole, issued=self._signed, betas=betas)
        return found if body["messages"] else _without_prefill(found)

    def _resumes(self, body: Any) -> bool:
        """Whether a request ends with an answer of this server that is to go on."""
        messages = objects(body.get("messages")) if self._unfinished else []
        if not messages or messages[-1].get("role") != "assistant":
            return False
        return _shown(messages[-1].get("content")) in self._unfinished

    def _judge_thinking(
        self, body: Mapping[str, Any], betas: list[str], *, keeps: bool
    ) -> list[Problem]:
        """The refusal of reasoning that is bound to another conversation, if there is one; what the
        answer says of it is kept until it is written.
        """
        refusal = _refuse_binding(body, betas)
        if refusal is not None:
            return [refusal]
        judged = self._memory.judge(body)
        behavior = _binding_of(body).get("prefix_mismatch_behavior")
        dropped, allowed = judged.mismatched, judged.differing
        if behavior == "drop_block":
            allowed = ()
        elif self._memory.is_enforced(body.get("model"), new_account=self.is_new_account):
            if dropped:
                path = dropped[0].path
                message = self._memory.binding.refusal.replace("{}", path)
                return [Problem("anthropic.reasoning_bound", path, message, "refused")]
        else:
            dropped = ()
        changes = [_transformation("thinking_dropped", block, "model") for block in judged.hidden]
        changes += [_transformation("thinking_dropped", block, "prefix") for block in dropped]
        changes += [
            _transformation("thinking_mismatch_allowed", block, "prefix") for block in allowed
        ]
        if keeps and BINDING_CONTROLS in betas:
            self._changes[id(body)] = changes
        return []

    @property
    def _memory(self) -> ReasoningMemory:
        assert self.reasoning is not None, "the rules of Messages say how it binds thinking"
        return self.reasoning

    def arrange(self, answer: Json, body: Mapping[str, Any]) -> Json:
        changes = self._changes.get(id(body))
        return answer if changes is None else {**answer, "input_transformations": changes}

    def arrange_events(self, events: list[Json], body: Mapping[str, Any]) -> list[Json]:
        changes = self._changes.get(id(body))
        if changes is None:
            return events
        return [
            {**event, "message": {**event["message"], "input_transformations": changes}}
            if event.get("type") == "message_start"
            else event
            for event in events
        ]

    def remember(
        self, body: Mapping[str, Any], answer: Mapping[str, Any], events: list[Json] | None = None
    ) -> None:
        super().remember(body, answer, events)
        for block in objects(answer.get("content")):
            if block.get("type") == "thinking" and isinstance(block.get("signature"), str):
                self._signed[block["signature"]] = block.get("thinking", "")
        self._remember_bound(body, answer)
        if answer.get("stop_reason") in UNFINISHED:
            self._unfinished.add(_shown(answer.get("content")))
        if body.get("thread") is not None and isinstance(answer.get("id"), str):
            self._keep_thread(body, answer)

    def _remember_bound(self, body: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Keep what new reasoning was made with; where a thread goes on, all of the thread."""
        thread = self._continued_by(body)
        whole = body if thread is None else _join_thread(thread, body)
        self._memory.remember(whole, answer.get("content"))

    def release(self, body: Any) -> None:
        self._changes.pop(id(body), None)
        self._betas.pop(id(body), None)
        thread = self._continued_by(body)
        if thread is not None:
            thread.is_in_flight = False

    def _continued_by(self, body: Any) -> Thread | None:
        """The thread that a request continues, if there is one."""
        if not isinstance(body, Mapping) or not continues_thread(body):
            return None
        previous = body["thread"].get("previous_message_id")
        return self._threads.get(previous) if isinstance(previous, str) else None

    def _keep_thread(self, body: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        continued = self._continued_by(body)
        fixed = {key: body[key] for key in FIXED_BY_THREAD if body.get(key) is not None}
        messages = _without_cache_control(body.get("messages") or [])
        if continued is not None:
            continued.is_continued = True
            fixed = continued.fixed
            messages = [*continued.messages, *messages]
        stop = answer.get("stop_reason")
        if stop == "compaction":
            messages = []  # the summary stands for all of them
        turn = {"role": "assistant", "content": answer.get("content")}
        self._threads[answer["id"]] = Thread(
            [*messages, turn], _without_cache_control(fixed), stop in UNFINISHED
        )


def _shown(content: Any) -> str:
    """A content as JSON, whatever marks of the cache it has."""
    return json.dumps(_without_cache_control(content), sort_keys=True)


def _without_prefill(problems: list[Problem]) -> list[Problem]:
    """The problems of a request that ends with an answer that is to go on: it is no prefill."""
    return [problem for problem in problems if not problem.rule.startswith("anthropic.prefill")]


def _binding_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """`thinking.block_binding` of a request; empty if it has none."""
    thinking = body.get("thinking")
    binding = thinking.get("block_binding") if isinstance(thinking, Mapping) else None
    return binding if isinstance(binding, Mapping) else {}


def _refuse_binding(body: Mapping[str, Any], betas: list[str]) -> Problem | None:
    """Why a request can't say what happens to reasoning of another conversation [documentation];
    the words are made up after the API's manner.
    """
    thinking = body.get("thinking")
    if not isinstance(thinking, Mapping) or thinking.get("block_binding") is None:
        return None
    where = "thinking.block_binding"
    if BINDING_CONTROLS not in betas:
        words = "Extra inputs are not permitted"
    elif thinking.get("type") == "disabled":
        words = "can't be set when thinking is disabled"
    elif _binding_of(body).get("prefix_mismatch_behavior") not in (None, "error", "drop_block"):
        where = f"{where}.prefix_mismatch_behavior"
        words = "Input should be 'error' or 'drop_block'"
    else:
        return None
    return Problem("anthropic.thinking", where, f"{where}: {words}", "refused")


def _transformation(kind: str, block: BoundBlock, check: str) -> Json:
    return {"type": kind, "path": block.path, "reason": f"{check}_binding_mismatch"}


def _join_thread(thread: Thread, body: Mapping[str, Any]) -> Json:
    """The request that says all of what a thread and its continuation say."""
    whole = {key: value for key, value in body.items() if key != "thread"}
    whole.update(thread.fixed, messages=[*thread.messages, *body["messages"]])
    return whole


def _refuse_thread(thread: Thread | None, previous: str) -> Problem | None:
    """Why a thread can't be continued; status and code are the SDK's, the words are its
    descriptions of them.
    """
    if thread is None:
        message = (
            f"No usable Thread state was found for `previous_message_id` {previous}. "
            'Replay the full conversation with `thread: {"type": "create"}` to start a new Thread.'
        )
        return _thread_problem(message, "thread_not_found", status=404, kind="not_found_error")
    if thread.is_continued:
        message = (
            f"The response that `previous_message_id` names ({previous}) has already been "
            "continued, and each response can be continued only once. Continue from the Thread's "
            "most recent response `id`."
        )
        return _thread_problem(message, "thread_already_continued")
    if thread.is_in_flight:
        message = (
            f"Another request is still continuing from the same `previous_message_id` ({previous})."
        )
        return _thread_problem(message, "thread_continue_in_flight")
    return None


def _thread_problem(message: str, code: str, **more: Any) -> Problem:
    where = "thread.continue.previous_message_id"
    return Problem("anthropic.thread", where, message, "refused", code=code, **more)


def _without_cache_control(value: Any) -> Any:
    """A copy without the cache markers, which were set for the request that came with them."""
    if isinstance(value, Mapping):
        return {
            key: _without_cache_control(inner)
            for key, inner in value.items()
            if key != "cache_control"
        }
    return [_without_cache_control(inner) for inner in value] if isinstance(value, list) else value


def _is_marked(block: Mapping[str, Any]) -> bool:
    """Whether a block, or one in it, ends a beginning that is kept."""
    inner = block.get("content")
    return block.get("cache_control") is not None or any(_is_marked(one) for one in objects(inner))


def _describe_model(name: str) -> Json:
    return {
        "type": "model",
        "id": name,
        "display_name": name.replace("-", " ").title(),
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "line": None,
        "deprecated_at": None,
        "retires_at": None,
        "max_input_tokens": 200_000,
        "max_tokens": 64_000,
        "capabilities": None,
        "allowed_fallback_models": [],
    }
