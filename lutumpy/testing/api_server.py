"""One API at the test server: where it listens, what it refuses, what it remembers.

`ApiServer` is enough for an API whose requests each hold their whole conversation: it takes what
the API's rules let pass, at the paths that they name, and remembers nothing. The `server` of a row
in the table of APIs is a subclass for one that does more: the words of its refusals, and what it
keeps of its own answers, to which later requests refer.
"""

# A request passes these stations; a refusal ends it at once:
#
#     path and method     routes, unknown_path, unknown_method
#     headers             refuse_headers
#     JSON                unreadable_body
#     an operation        resources: answered from memory, without the script
#     a model's answer    complete_body, check, (the script,) arrange or arrange_events, remember;
#                         release at the end

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

from lutumpy.apis import Api, serving
from lutumpy.errors import Problem
from lutumpy.rules.shape import ApiRules
from lutumpy.testing.host_place import HostPlace
from lutumpy.testing.prompt_cache import Piece, PromptCache, PromptTokens
from lutumpy.testing.reasoning_memory import ReasoningMemory
from lutumpy.testing.replies import Failure, Reply
from lutumpy.testing.script import render, render_failure, render_stream

__all__ = [
    "CREATE",
    "NO_HEADERS",
    "ApiServer",
    "Json",
    "Query",
    "Refused",
    "Resource",
    "Route",
    "first_refusal",
    "objects",
]

Json: TypeAlias = dict[str, Any]

CREATE = "create"
"""The operation that a model answers; every other one is answered from memory."""


NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Route:
    """A path of an API.

    Attributes:
        path: The path; `{name}` stands for one segment, `{name:path}` for what is left.
        methods: What each HTTP method means there: the name of an operation.
        is_whole: Whether the path begins at the root, and not behind what base URLs end with.
        streams: Whether what a model answers there is a stream; `None` where `stream` in the body
            says it.
        way: By which way in it is asked, where an API has several: a cloud's, for example.
    """

    path: str
    methods: Mapping[str, str]
    is_whole: bool = False
    streams: bool | None = None
    way: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A request for something that isn't a model's answer.

    Attributes:
        ids: What its path names.
        options: What comes after the question mark.
        body: Its JSON; `None` where it has none.
    """

    ids: Mapping[str, str] = field(default_factory=dict[str, str])
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Any = None


Resource: TypeAlias = Callable[[Query], "Json | list[Json] | bytes"]
"""Answers a query: a JSON object, the events of a stream, or the bytes of a file. It may raise
`Refused`.
"""


class Refused(Exception):
    """A request that gets an error; the first of the problems is what it says."""

    def __init__(self, *problems: Problem) -> None:
        self.problems: list[Problem] = list(problems)
        super().__init__(problems[0].message)


class ApiServer:
    """One API at the test server. Nothing here is locked: the server calls one method at a time.

    Args:
        api: The API.
        models: The models that requests of this API's maker have named, in order; shared by the
            APIs of one maker.

    Attributes:
        is_new_account: Whether the vendor treats the account as a new one, for which it refuses
            more.
        reasoning: What it remembers of the reasoning that it has sealed; `None` for an API whose
            rules know of no reasoning that is bound to what comes before it.
        place: The host that it stands for.
    """

    request_id_header: ClassVar[str] = "x-request-id"
    """The header of an answer with the id of its request."""

    path_starts: ClassVar[tuple[str, ...]] = ()
    """How paths begin that are taken for this API's where no route is known."""

    stream_type: ClassVar[str] = "text/event-stream; charset=utf-8"
    """The media type of a stream."""

    stream_end: ClassVar[bytes] = b""
    """What an event stream ends with."""

    streams_by_default: ClassVar[bool] = False
    """Whether an answer is a stream where `stream` isn't in the body."""

    seals_by_model: ClassVar[bool] = False
    """Whether what a model has sealed can be opened by that model alone."""

    needs_body: ClassVar[frozenset[str]] = frozenset({CREATE})
    """Operations that can't come without a body."""

    def __init__(self, api: Api, models: dict[str, None]) -> None:
        self.api: Api = api
        self.models = models
        self.rules: ApiRules = serving(api, "rules")
        self.is_new_account: bool = False
        self.place: HostPlace = HostPlace()
        self._prompts = PromptCache()
        binding = getattr(self.rules, "reasoning_binding", None)
        self.reasoning: ReasoningMemory | None = (
            None if binding is None else ReasoningMemory(binding())
        )

    # --- Where it listens ------------------------------------------------------------------------

    @property
    def routes(self) -> tuple[Route, ...]:
        """Its paths; the first that fits counts."""
        return tuple([Route(path, {"POST": CREATE}) for path in self.rules.SHAPE.paths])

    def claims(self, headers: Mapping[str, str]) -> bool:
        """Whether headers say that a request is for this API, where its path is one of several
        APIs.
        """
        return False

    # --- What it refuses -------------------------------------------------------------------------

    def unknown_path(self, method: str, path: str) -> Failure:
        """The answer to a request for a path that doesn't exist."""
        return Failure(404, "Not Found")

    def unknown_method(self, method: str, path: str) -> Failure:
        """The answer to a request with a method that its path doesn't take."""
        return Failure(405, "Method Not Allowed")

    def read_form(self, kind: str, data: bytes) -> Json | None:
        """The fields of a body that isn't JSON, by its media type; `None` if it can't be read."""
        return None

    def unreadable_body(self) -> Failure:
        """The answer to a body that isn't JSON."""
        return Failure(400, "The request body is not valid JSON")

    def refuse_headers(self, headers: Mapping[str, str]) -> Failure | None:
        """The answer to a request without a key, or `None`; any key is good."""
        return None

    def refuse_request(
        self, headers: Mapping[str, str], options: Mapping[str, str]
    ) -> Failure | None:
        """The same, with what comes after the question mark, where some APIs take a key."""
        return self.refuse_headers(headers)

    def refuse_at(
        self, way: str, headers: Mapping[str, str], options: Mapping[str, str]
    ) -> Failure | None:
        """The same, by one of the ways in."""
        return self.refuse_request(headers, options)

    def failures_of(self, way: str) -> Api:
        """The API whose errors are written by one of the ways in."""
        return self.api

    def check(
        self, body: Any, *, headers: Mapping[str, str] = NO_HEADERS, is_counted: bool = False
    ) -> list[Problem]:
        """The problems of a request for an answer, with what it refers to.

        Args:
            body: The request.
            headers: Its headers, which may allow what is refused without them.
            is_counted: It only asks for its tokens to be counted.
        """
        return self.rules.check_request(body)

    def check_at_host(self, body: Any, *, headers: Mapping[str, str]) -> list[Problem]:
        """The same, as the host finds them that this server stands for."""
        found = self.check(body, headers=headers)
        if first_refusal(found) is not None or not isinstance(body, Mapping):
            return found
        found += self.check_facts(body)
        model = str(body.get("model"))
        for path, seal in self.find_seals(body):
            if not self.place.can_open(seal, model, by_model=self.seals_by_model):
                found.append(self.refuse_seal(path, seal))
        return found

    def check_facts(self, body: Mapping[str, Any]) -> list[Problem]:
        """What its host refuses beside what the API does."""
        return []

    def find_seals(
        self, body: Mapping[str, Any], answer: Mapping[str, Any] | None = None
    ) -> list[tuple[str, str]]:
        """Place and seal of each piece of reasoning in a request that only who made it can open; of
        an answer, of those in it alone.
        """
        if self.reasoning is None:
            return []
        found = self.reasoning.binding.find(
            body, None if answer is None else self.output_of(answer)
        )
        wanted = answer is not None
        return [(block.path, block.seal) for block in found if block.is_new is wanted]

    def output_of(self, answer: Mapping[str, Any]) -> Any:
        """The blocks or items of an answer, in which its reasoning is."""
        return None

    def refuse_seal(self, path: str, seal: str) -> Problem:
        """The refusal of reasoning that somebody else has sealed."""
        message = f"{path}: the signature could not be verified."
        return Problem(f"{self.rules.PREFIX}.sealed", path, message, "refused")

    # --- What it answers and remembers -----------------------------------------------------------

    def complete_body(self, body: Json, ids: Mapping[str, str]) -> None:
        """Put into the body what the path says."""

    def resources(self) -> Mapping[str, Resource]:
        """What is answered from memory, by operation."""
        return {}

    def render_reply(
        self, reply: Reply, *, number: int, model: str, body: Mapping[str, Any]
    ) -> Json:
        """A scripted reply as the host's answer, with the tokens of its request; arguments as of
        `lutumpy.testing.render`.
        """
        tokens, reply = self._count_prompt(reply, body)
        answer = render(reply, self.api, number=number, model=model, body=body)
        self._tell_cached(answer, tokens)
        return answer

    def render_events(
        self, reply: Reply, *, number: int, model: str, body: Mapping[str, Any]
    ) -> list[Json]:
        """The same as the events of a stream."""
        tokens, reply = self._count_prompt(reply, body)
        events = render_stream(reply, self.api, number=number, model=model, body=body)
        self._tell_cached(events, tokens)
        return events

    def prompt_of(self, body: Mapping[str, Any]) -> list[Piece]:
        """What a request gives the model to read, in the order in which it is cached."""
        shape = self.rules.SHAPE
        tools = body.get("tools")
        keys = [shape.system_key] if shape.system_key else []
        pieces = [Piece(tool) for tool in objects(tools)]
        pieces += [Piece(body[key]) for key in keys if body.get(key)]
        return [*pieces, *[Piece(entry) for entry in objects(body.get(shape.messages_key))]]

    def write_cached(self, usage: Json, tokens: PromptTokens) -> None:
        """Put the cached tokens into a usage as the API spells it; some tell nothing of them."""

    def _count_prompt(
        self, reply: Reply, body: Mapping[str, Any]
    ) -> tuple[PromptTokens | None, Reply]:
        """The tokens of a request, and the reply with as many; a usage of the script's stays as it
        is.
        """
        if reply.usage is not None:
            return None, reply
        counted = self._prompts.count(str(body.get("model")), self.prompt_of(body))
        return counted, replace(reply, usage=(counted.total, reply.tokens[1]))

    def _tell_cached(self, value: Any, tokens: PromptTokens | None) -> None:
        """Tell the cached tokens in each usage of an answer, or of its events."""
        if tokens is None:
            return
        if isinstance(value, list):
            for entry in value:
                self._tell_cached(entry, tokens)
        elif isinstance(value, dict):
            for key in ("usage", "usageMetadata"):
                if isinstance(value.get(key), dict):
                    self.write_cached(value[key], tokens)
            for key in ("message", "response", "metadata"):
                self._tell_cached(value.get(key), tokens)

    def arrange(self, answer: Json, body: Mapping[str, Any]) -> Json:
        """A rendered answer as it is sent."""
        return answer

    def arrange_events(self, events: list[Json], body: Mapping[str, Any]) -> list[Json]:
        """The rendered events of an answer as they are sent."""
        return events

    def write_event(self, event: Json) -> bytes:
        """An event of a stream; its `type` is its name, where it has one."""
        kind = event.get("type")
        name = f"event: {kind}\n" if isinstance(kind, str) else ""
        data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        return f"{name}data: {data}\n\n".encode("utf-8", "surrogatepass")

    def write_failure(self, failure: Failure) -> bytes:
        """An error after a stream has begun, as an event."""
        body = render_failure(self.api, failure.status, failure.message, kind=failure.kind)
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        return f"event: error\ndata: {data}\n\n".encode("utf-8", "surrogatepass")

    def write_stream(
        self, events: Iterable[Json | Failure], options: Mapping[str, str]
    ) -> tuple[str, Iterator[bytes]]:
        """The media type of a stream and its pieces.

        Args:
            events: Its events; a failure among them ends it.
            options: What comes after the question mark.
        """
        return self.stream_type, self._write_events(events)

    def write_stream_at(
        self, way: str, events: Iterable[Json | Failure], options: Mapping[str, str]
    ) -> tuple[str, Iterator[bytes]]:
        """The same, by one of the ways in."""
        return self.write_stream(events, options)

    def _write_events(self, events: Iterable[Json | Failure]) -> Iterator[bytes]:
        for event in events:
            if isinstance(event, Failure):
                yield self.write_failure(event)
                return
            yield self.write_event(event)
        if self.stream_end:
            yield self.stream_end

    def remember(
        self, body: Mapping[str, Any], answer: Mapping[str, Any], events: list[Json] | None = None
    ) -> None:
        """Keep what later requests may refer to.

        Args:
            body: The request.
            answer: The answer's JSON.
            events: Its events, if it was streamed.
        """
        if isinstance(body.get("model"), str):
            self.models[body["model"]] = None
        self._prompts.note(str(body.get("model")), self.prompt_of(body))
        for _, seal in self.find_seals(body, answer):
            if seal:
                self.place.note(seal, str(body.get("model")))

    def release(self, body: Any) -> None:
        """The request was answered or has failed: nothing is in flight for it any more."""


def first_refusal(problems: list[Problem]) -> Problem | None:
    """The first problem that the API refuses for sure."""
    return next((problem for problem in problems if problem.certainty == "refused"), None)


def objects(value: Any) -> list[Json]:
    """The objects of a list; none of what isn't a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
