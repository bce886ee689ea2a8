"""A model that answers from a script, without HTTP: for tests of a program's own loop."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.adapters.provider_errors import adapter_error
from lutumpy.adapters.sdk_body import Fields, body_dict
from lutumpy.adapters.sdk_model import SdkModel
from lutumpy.core.items import AssistantTurn
from lutumpy.core.model import StructuredMode, TurnOptions, checked_structured
from lutumpy.core.streaming import StreamDecoder
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import AdapterError, Problem
from lutumpy.rules.anthropic import messages as anthropic
from lutumpy.rules.openai.chat import messages as chat
from lutumpy.rules.openai.responses import items as responses
from lutumpy.testing.script import (
    Api,
    Failure,
    Reply,
    entries,
    render,
    render_failure,
    render_stream,
)

__all__ = ["ScriptEntry", "ScriptedModel"]

StreamEntry: TypeAlias = "dict[str, Any] | Failure"
ScriptAnswer: TypeAlias = "Reply | Failure | dict[str, Any] | bytes | str | list[StreamEntry]"
ScriptEntry: TypeAlias = "ScriptAnswer | Callable[[Api, Mapping[str, Any]], ScriptAnswer]"

_ADAPTERS: Mapping[str, Any] = {
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "anthropic_messages": AnthropicMessages,
}
SHAPING = ("compaction", "n")
"""Parameters of a request on which the shape of its answer depends."""

_CHECKS: Mapping[str, Callable[[Mapping[str, Any]], list[Problem]]] = {
    "openai_chat": chat.check_request,
    "openai_responses": responses.check_request,
    "anthropic_messages": anthropic.check_request,
}


class ScriptedModel:
    """A model whose answers are written down beforehand.

    Every turn goes the way that it goes with a provider, but for the network: the request is built by the adapter, checked
    against the rules of its API, and the scripted answer is decoded by the adapter.

    Args:
        script: The answers in order. A `Reply` or `Failure`; a `dict`, `bytes` or `str`, taken as the API's own JSON; a list
            of stream events, a `Failure` among them breaking the stream there; or a function that is given the API and the
            request's body and returns one of these.
        api: Which API it stands for: `openai_chat`, `openai_responses` or `anthropic_messages`.
        model: The model's name in requests and answers.
        structured: How a structured turn asks for its value, as for the adapters.
        check: Whether requests are held against the rules of the API. That walks the whole conversation each time: leave it
            on in tests, switch it off where time is measured.
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
        api: Api = "openai_chat",
        model: str = "scripted",
        structured: StructuredMode = "native",
        check: bool = True,
        keep: int | None = None,
    ) -> None:
        if api not in _ADAPTERS:
            raise ValueError(f"api={api!r} is none of {', '.join(_ADAPTERS)}")
        self.api: Api = api
        self.model = model
        self.structured: StructuredMode = checked_structured(structured)
        self.requested: int = 0
        # The user's `extra` may set another model than this one, so the adapter puts it in.
        self._adapter: SdkModel = _ADAPTERS[api](model)
        self._check = check
        # Put together when somebody looks at them, and not checked requests only then.
        self._requests: deque[_Request] = deque(maxlen=keep)
        self._script: deque[ScriptEntry] = entries(script)

    def takes_forced_choice(self, extra: Mapping[str, Any]) -> bool:
        """Whether the adapter of its API would require a tool call of this model."""
        return self.api != "anthropic_messages" or AnthropicMessages(
            self.model
        ).takes_forced_choice(extra)

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
            AdapterError: the API would refuse the request, the script says `Failure`, or it has no answer left.
            InvalidToolConstraints: the API is known to refuse the offer.
            TranscriptError: there is nothing to answer.
        """
        return self.respond_sync(transcript, offering, options)

    def respond_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """The same without an event loop."""
        request = self._asked(transcript, offering, options, stream=False)
        answer = self._next(request)
        if isinstance(answer, Reply):
            answer = render(
                answer, self.api, number=self.requested, model=self.model, body=request.shape
            )
        elif isinstance(answer, list):
            raise AdapterError(
                f"{self.api}: the script has stream events for a turn without stream",
                provider=self.api,
                sent=False,
            )
        turn: AssistantTurn = _ADAPTERS[self.api].response(answer)
        return turn

    def open_stream(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ScriptedStream:
        """The next answer as a stream of the API's events, in the order of real ones. Raises as `respond` does, when entered."""
        return ScriptedStream(self, transcript, offering, options)

    def open_stream_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ScriptedStream:
        """The same without an event loop."""
        return ScriptedStream(self, transcript, offering, options)

    def events(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> list[StreamEntry]:
        """The events of the next answer; a `Failure` among them breaks the stream there."""
        request = self._asked(transcript, offering, options, stream=True)
        answer = self._next(request)
        if isinstance(answer, Reply):
            return [
                *render_stream(
                    answer, self.api, number=self.requested, model=self.model, body=request.shape
                ),
            ]
        if not isinstance(answer, list):
            raise AdapterError(
                f"{self.api}: a streamed turn needs a Reply or a list of events in the script, not {type(answer).__name__}",
                provider=self.api,
                sent=False,
            )
        return answer

    def failed(self, failure: Failure) -> AdapterError:
        """The error that the adapter raises for a failure."""
        return self._failed(failure.status, failure.message, failure.headers, kind=failure.kind)

    def _asked(
        self,
        transcript: Transcript,
        offering: ToolOffering | None,
        options: TurnOptions,
        *,
        stream: bool,
    ) -> _Request:
        """What the adapter would send, noted and checked."""
        request = _Request(self._adapter._request(transcript, offering, options, stream=stream))
        self.requested += 1
        self._requests.append(request)
        if self._check:
            for problem in _CHECKS[self.api](request.body):
                if problem.certainty == "refused":
                    raise self._refused(problem)
        return request

    def _next(self, request: _Request) -> Reply | dict[str, Any] | bytes | str | list[StreamEntry]:
        if not self._script:
            raise AdapterError(
                f"{self.api}: the script has no answer left for request {self.requested}",
                provider=self.api,
                sent=False,
            )
        entry = self._script.popleft()
        answer = entry(self.api, body_dict(request.fields)) if callable(entry) else entry
        if isinstance(answer, Failure):
            raise self.failed(answer)
        return answer

    def _refused(self, problem: Problem) -> AdapterError:
        return self._failed(
            problem.status,
            problem.message,
            {},
            kind=problem.kind,
            param=problem.param,
            code=problem.code,
        )

    def _failed(
        self, status: int, message: str, headers: Mapping[str, str], **more: Any
    ) -> AdapterError:
        body = render_failure(self.api, status, message, **more)
        cause = ScriptedStatusError(
            status, {name.lower(): value for name, value in headers.items()}, body
        )
        error = adapter_error(cause, self.api)
        error.__cause__ = cause
        return error

    def __repr__(self) -> str:
        return (
            f"<ScriptedModel {self.api}: {self.requested} requests, {self.remaining} answers left>"
        )


class _Request:
    """What would have been sent."""

    __slots__ = ("_body", "fields")

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self._body: dict[str, Any] | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The very JSON of it, read back once."""
        if self._body is None:
            self._body = body_dict(self.fields)
        return self._body

    @property
    def shape(self) -> dict[str, Any]:
        """What of the body an answer's shape depends on."""
        shaping = {name: self.fields[name] for name in SHAPING if name in self.fields}
        return body_dict(shaping) if shaping else {}


class ScriptedStatusError(Exception):
    """The cause of an `AdapterError` from a script: what an SDK's status error says, under the same names."""

    def __init__(self, status_code: int, headers: Mapping[str, str], body: dict[str, Any]) -> None:
        self.status_code = status_code
        self.headers = headers
        self.body = body
        super().__init__(str(body["error"]["message"]))

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
        self.decoder: StreamDecoder = _ADAPTERS[model.api].stream_decoder()
        self.request_id: str | None = None
        self.closed: bool = False
        self._model = model
        self._request = (transcript, offering, options)
        self._events: AsyncGenerator[Any, None] | None = None

    def __enter__(self) -> Iterator[Any]:
        return self._chunks(self._model.events(*self._request))

    def __exit__(self, *exc: object) -> None:
        self.closed = True

    async def __aenter__(self) -> AsyncIterator[Any]:
        self._events = _async(self.__enter__())
        return self._events

    async def __aexit__(self, *exc: object) -> None:
        self.closed = True
        if self._events is not None:
            await self._events.aclose()

    def _chunks(self, events: list[StreamEntry]) -> Iterator[Any]:
        for event in events:
            if isinstance(event, Failure):
                error = self._model.failed(event)
                error.partial = self.decoder.partial()
                raise error
            yield event


async def _async(chunks: Iterator[Any]) -> AsyncGenerator[Any, None]:
    for chunk in chunks:
        yield chunk
