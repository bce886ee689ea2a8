"""A model that answers from a script, without HTTP: for tests of a program's own loop."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial
from typing import Any, TypeAlias

from lutumpy.adapters.provider_errors import adapter_error
from lutumpy.adapters.sdk_body import Fields, body_dict
from lutumpy.apis import Api, api_names, serving
from lutumpy.errors import AdapterError, Problem
from lutumpy.models import (
    AssistantTurn,
    StructuredMode,
    ToolOffering,
    Transcript,
    TurnOptions,
    checked_structured,
)
from lutumpy.rules.shape import ApiRules
from lutumpy.streaming import StreamDecoder
from lutumpy.testing.own_words import OwnWords
from lutumpy.testing.replies import Failure, Reply, read_script
from lutumpy.testing.script import (
    Rendering,
    failure_headers,
    render_failure,
    rendering_of,
    shaping_keys,
)

__all__ = ["ScriptEntry", "ScriptedModel"]

StreamEntry: TypeAlias = "dict[str, Any] | Failure"
# To type checkers, a list of dictionaries alone is a sequence of both, and not a list of both.
ScriptAnswer: TypeAlias = "Reply | Failure | dict[str, Any] | bytes | str | Sequence[StreamEntry]"
# The body is a dictionary to type checkers too, so that a function may take it as one.
ScriptEntry: TypeAlias = "ScriptAnswer | Callable[[Api, dict[str, Any]], ScriptAnswer]"


class ScriptedModel:
    """A model whose answers are written down beforehand.

    Every turn goes the way that it goes with a provider, but for the network: the request is built
    by the adapter, checked against the rules of its API, and the scripted answer is decoded by the
    adapter.

    Args:
        script: The answers in order. A `Reply` or `Failure`; a `dict`, `bytes` or `str`, taken as
            the API's own JSON; a list of stream events, a `Failure` among them breaking the stream
            there; or a function that is given the API and the request's body and returns one of
            these.
        api: Which API it simulates, as `lutumpy.apis.api_names` lists them; Chat Completions when
            left out.
        model: The model's name in requests and answers.
        structured: How a structured turn asks for its value, as for the adapters.
        check: Whether requests are held against the rules of the API. That walks the whole
            conversation each time: leave it on in tests, switch it off where time is measured.
        keep: How many of the last requests stay in `requests`; `None` for all.

    Attributes:
        api: As given.
        model: As given.
        structured: As given.
        requested: How many requests there were, refused ones too.
    """

    def __init__(
        self,
        script: Iterable[ScriptEntry],
        *,
        api: Api | None = None,
        model: str = "scripted",
        structured: StructuredMode = "native",
        check: bool = True,
        keep: int | None = None,
    ) -> None:
        self.api: Api = api if api is not None else api_names()[0]
        self.model = model
        self.structured: StructuredMode = checked_structured(structured)
        self.requested: int = 0
        self._adapter: Any = serving(self.api, "adapter")
        # The user's `extra` may set another model than this one, so the adapter puts it in.
        self._sender: Any = self._adapter(model)
        self._rules: ApiRules = serving(self.api, "rules")
        self._rendering: Rendering = rendering_of(self.api)
        self._shaping = shaping_keys(self.api)
        self._check = check
        self._own_words = OwnWords()
        # Put together when somebody looks at them, and not checked requests only then.
        self._requests: deque[_Request] = deque(maxlen=keep)
        self._script: deque[ScriptEntry] = read_script(script)

    def takes_forced_choice(self, extra: Mapping[str, Any]) -> bool:
        """Whether the adapter of its API would require a tool call of this model."""
        # Not every API forbids it, and only such adapters have the method.
        ask = getattr(self._sender, "takes_forced_choice", None)
        return ask is None or bool(ask(extra))

    @property
    def defers_tools(self) -> bool:
        """Whether its API keeps tools out of the prompt until a search has found them."""
        return bool(getattr(self._sender, "defers_tools", False))

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The bodies of the requests so far, refused ones too; the last `keep` of them."""
        return [request.body for request in self._requests]

    @property
    def remaining(self) -> int:
        """How many answers are still to be given."""
        return len(self._script)

    def play(self, *entries: ScriptEntry) -> None:
        """Add answers to the end of the script."""
        self._script.extend(entries)

    async def respond(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """The next answer; the transcript is not changed.

        Raises:
            AdapterError: the API would refuse the request, the script says `Failure`, or it has no
                answer left.
            InvalidToolConstraints: the API is known to refuse the offer.
            TranscriptError: there is nothing to answer.
        """
        return self.respond_sync(transcript, offering, options)

    def respond_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """The same without an event loop."""
        record = self.new_record()
        request = self._take_request(transcript, offering, options, record, stream=False)
        answer = self._take_answer(request)
        if isinstance(answer, Reply):
            answer = self._rendering.render(
                answer,
                number=self.requested,
                model=answer.model or self.model,
                body=request.shape,
            )
        elif isinstance(answer, (list, tuple)):
            raise AdapterError(
                f"{self.api}: the script has stream events for a turn without stream",
                provider=self.api,
                sent=False,
            )
        turn: AssistantTurn = self._adapter.response(answer)
        return turn if record is None else record.stamp(turn)

    def new_record(self) -> Any:
        """A record for one request, as the adapter makes it; `None` for one without records.

        Such an adapter's `request` notes what it says on the transcript.
        """
        make = getattr(self._sender, "new_record", None)
        return None if make is None else make()

    def open_stream(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ScriptedStream:
        """The next answer as a stream of the API's events, in the order of real ones. Raises as
        `respond` does, when entered.
        """
        return ScriptedStream(self, transcript, offering, options)

    def open_stream_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ScriptedStream:
        """The same without an event loop."""
        return ScriptedStream(self, transcript, offering, options)

    def events(
        self,
        transcript: Transcript,
        offering: ToolOffering | None,
        options: TurnOptions,
        record: Any = None,
    ) -> Sequence[StreamEntry]:
        """The events of the next answer; a `Failure` among them breaks the stream there."""
        request = self._take_request(transcript, offering, options, record, stream=True)
        answer = self._take_answer(request)
        if isinstance(answer, Reply):
            return [
                *self._rendering.render_stream(
                    answer,
                    number=self.requested,
                    model=answer.model or self.model,
                    body=request.shape,
                ),
            ]
        if not isinstance(answer, (list, tuple)):
            raise AdapterError(
                f"{self.api}: a streamed turn needs a Reply or a list of events in the script, "
                f"not {type(answer).__name__}",
                provider=self.api,
                sent=False,
            )
        return answer

    def error_of(self, failure: Failure) -> AdapterError:
        """The error that the adapter raises for a failure."""
        return self._make_error(failure.status, failure.message, failure.headers, kind=failure.kind)

    def _take_request(
        self,
        transcript: Transcript,
        offering: ToolOffering | None,
        options: TurnOptions,
        record: Any,
        *,
        stream: bool,
    ) -> _Request:
        """What the adapter would send, noted and checked."""
        read_body = self._prepare_request(transcript, offering, options, record, stream=stream)
        extra = options.extra
        shape = {key: extra[key] for key in self._shaping if key in extra} if extra else {}
        request = _Request(read_body, shape)
        if offering is not None and (offering.deferred or offering.has_late_tools):
            # A call of the tool that finds others, or of a late one, may have a shape of its own.
            shape["tools"] = request.body.get("tools")
        self.requested += 1
        self._requests.append(request)
        if self._check:
            problems = self._rules.check_request(request.body)
            refused = [problem for problem in problems if problem.certainty == "refused"]
            if refused and not self._own_words.excuse(refused):
                raise self._make_refusal(refused[0])
        return request

    def _prepare_request(
        self,
        transcript: Transcript,
        offering: ToolOffering | None,
        options: TurnOptions,
        record: Any,
        *,
        stream: bool,
    ) -> Callable[[], dict[str, Any]]:
        """Make the request; what is returned reads the body of it, as often as it is asked."""
        # Adapters of the SDKs have the fields of a request as ready JSON. They are joined only if
        # somebody looks at the body, so that a turn costs the same however long the conversation
        # is. `request` is the way that every adapter has.
        make_fields = getattr(self._sender, "_request", None)
        if make_fields is not None:
            fields: Fields = make_fields(transcript, offering, options, record, stream=stream)
            return partial(body_dict, fields)
        known = {
            "temperature": options.temperature,
            "max_output_tokens": options.max_output_tokens,
            "output": options.output,
            "effort": options.effort,
            "on_prefix_change": options.on_prefix_change,
        }
        chosen = {name: value for name, value in known.items() if value is not None}
        extra = dict(options.extra)
        body = self._adapter.request(transcript, offering, stream=stream, **chosen, **extra)
        # A parameter of the user's may name another model, and wins.
        return partial(copy.deepcopy, {"model": self.model, **body})

    def stream_decoder(self) -> StreamDecoder:
        """A new decoder of its API for one stream."""
        decoder: StreamDecoder = self._adapter.stream_decoder()
        return decoder

    def _take_answer(
        self, request: _Request
    ) -> Reply | dict[str, Any] | bytes | str | Sequence[StreamEntry]:
        if not self._script:
            raise AdapterError(
                f"{self.api}: the script has no answer left for request {self.requested}",
                provider=self.api,
                sent=False,
            )
        entry = self._script.popleft()
        answer = entry(self.api, request.fresh_body()) if callable(entry) else entry
        if isinstance(answer, Failure):
            raise self.error_of(answer)
        if self._check:
            self._own_words.note(answer)
        return answer

    def _make_refusal(self, problem: Problem) -> AdapterError:
        return self._make_error(
            problem.status,
            problem.message,
            {},
            kind=problem.kind,
            param=problem.param,
            code=problem.code,
        )

    def _make_error(
        self, status: int, message: str, headers: Mapping[str, str], **more: Any
    ) -> AdapterError:
        body = render_failure(self.api, status, message, **more)
        typed = failure_headers(self.api, status, kind=more.get("kind", ""))
        lower = {name.lower(): value for name, value in {**typed, **headers}.items()}
        cause = ScriptedStatusError(status, message, lower, body)
        error = adapter_error(cause, self.api)
        error.__cause__ = cause
        return error

    def __repr__(self) -> str:
        return (
            f"<ScriptedModel {self.api}: {self.requested} requests, {self.remaining} answers left>"
        )


class _Request:
    """What would have been sent."""

    __slots__ = ("_body", "fresh_body", "shape")

    def __init__(self, fresh_body: Callable[[], dict[str, Any]], shape: dict[str, Any]) -> None:
        self._body: dict[str, Any] | None = None
        # The JSON of it, read anew: for a script's function, which may change it.
        self.fresh_body = fresh_body
        # What of the body an answer's shape depends on.
        self.shape = shape

    @property
    def body(self) -> dict[str, Any]:
        """The very JSON of it, read back once."""
        if self._body is None:
            self._body = self.fresh_body()
        return self._body


class ScriptedStatusError(Exception):
    """The cause of an `AdapterError` from a script: what an SDK's status error says, under the same
    names.
    """

    def __init__(
        self, status_code: int, message: str, headers: Mapping[str, str], body: dict[str, Any]
    ) -> None:
        self.status_code = status_code
        self.headers = headers
        self.body = body
        super().__init__(message)

    @property
    def response(self) -> ScriptedStatusError:
        """Itself: errors of the SDKs have their headers there."""
        return self


class ScriptedStream:
    """A stream of a scripted answer; entered with `async with` or `with`.

    Attributes:
        decoder: The adapter's stream decoder.
        request_id: `None`: there was no request.
        closed: Whether the block was left.
    """

    def __init__(
        self,
        model: ScriptedModel,
        transcript: Transcript,
        offering: ToolOffering | None,
        options: TurnOptions,
    ) -> None:
        record = model.new_record()
        decoder = model.stream_decoder()
        if record is not None:
            decoder = record.decoding(decoder)
        self.decoder: StreamDecoder = decoder
        self.request_id: str | None = None
        self.closed: bool = False
        self._model = model
        self._request = (transcript, offering, options, record)
        self._events: AsyncGenerator[Any, None] | None = None

    def __enter__(self) -> Iterator[Any]:
        return self._chunks(self._model.events(*self._request))

    def __exit__(self, *exc: object) -> None:
        self.closed = True

    async def __aenter__(self) -> AsyncIterator[Any]:
        self._events = _iterate(self.__enter__())
        return self._events

    async def __aexit__(self, *exc: object) -> None:
        self.closed = True
        if self._events is not None:
            await self._events.aclose()

    def _chunks(self, events: Iterable[StreamEntry]) -> Iterator[Any]:
        for event in events:
            if isinstance(event, Failure):
                error = self._model.error_of(event)
                error.partial = self.decoder.partial()
                raise error
            yield event


async def _iterate(chunks: Iterator[Any]) -> AsyncGenerator[Any, None]:
    for chunk in chunks:
        yield chunk
