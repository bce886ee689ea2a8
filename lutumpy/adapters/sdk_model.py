"""What every adapter shares: the options of its requests, and one request with one answer, whole or streamed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from lutumpy.adapters.arguments import check_connection, check_model_and_client
from lutumpy.adapters.json_bytes import encode
from lutumpy.adapters.sdk import SdkReply, SdkTransport, reply_object
from lutumpy.adapters.sdk_body import Fields, join_body
from lutumpy.core.items import AssistantTurn
from lutumpy.core.model import OutputSpec, StructuredMode, TurnOptions, check_options, checked_structured
from lutumpy.core.streaming import ChunkStream, ChunkStreamSync, StreamDecoder
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["SdkModel"]


class SdkModel(ABC):
    """A model behind one wire of an SDK. The adapters say how a request is built and an answer read.

    Args:
        model: The model's name.
        client: The user's client of the SDK, async or sync; one is made at the first request when it is `None`.
        make_async: Makes an async client; it imports the SDK.
        make_sync: The same for a sync client.
        made_here: Options for a client made here, by name; they go with no client that was given.
        temperature: Default for every request; an option of the turn wins.
        max_output_tokens: Default limit of an answer, in tokens; an option of the turn wins.
        strict: Offer tools that leave it open as strict ones, where their schema has a strict form.
        structured: How a structured turn asks for its value.
        extra: Provider parameters for every request; those of a turn win over them.
        headers: Further HTTP headers for every request.
        timeout: Seconds for a request; the client's own when `None`.
    """

    api: ClassVar[str]
    # The package whose clients speak this wire.
    sdk: ClassVar[str]
    _path: ClassVar[str]
    # Takes transcript, offer and options; gives the fields of a request, as ready JSON by name. `model` is among them
    # only where a parameter of the user's sets it.
    _fields: Callable[..., Fields]

    def __init__(
        self,
        model: str,
        client: Any,
        make_async: Callable[[], Any],
        make_sync: Callable[[], Any],
        made_here: Mapping[str, str | None],
        *,
        temperature: float | None,
        max_output_tokens: int | None,
        strict: bool | None,
        structured: StructuredMode,
        extra: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
        timeout: float | None,
    ) -> None:
        check_model_and_client(type(self).__name__, self.sdk, model, client)
        check_options(temperature, max_output_tokens, extra, strict)
        check_connection({**made_here}, headers, timeout)
        if client is not None and any(value is not None for value in made_here.values()):
            names = " and ".join(made_here)
            raise TypeError(
                f"{names} are for a client made here; the client that was given has its own, so give them to the client"
            )
        self.model: str = model
        self.structured: StructuredMode = checked_structured(structured)
        self._temperature = temperature
        self._max_output_tokens = max_output_tokens
        self._strict = strict
        self._extra: Mapping[str, Any] = dict(extra or {})
        self._transport = SdkTransport(
            self.api,
            self._path,
            client=client,
            make_async=make_async,
            make_sync=make_sync,
            headers=headers,
            timeout=timeout,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    async def aclose(self) -> None:
        """Close the clients that were made here, async and sync; the next request makes another.

        A client that was given is the caller's, and stays open. `async with OpenAIChat(...) as llm` closes at its end.
        """
        await self._transport.aclose()

    def close(self) -> None:
        """Close the sync client that was made here, as `aclose` does; `with OpenAIChat(...) as llm` closes at its end."""
        self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def respond(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """One request through an async client, and its answer; the transcript is not changed.

        Raises:
            AdapterError: the request failed after the SDK's own retries, or the answer is no answer.
            InvalidToolConstraints: the API, or this model, is known to refuse the offer; nothing was sent.
            TranscriptError: there is nothing to answer; nothing was sent.
        """
        return self._answer(await self._transport.send(self._body(transcript, offering, options)))

    def respond_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """The same without an event loop, through a sync client."""
        return self._answer(self._transport.send_sync(self._body(transcript, offering, options)))

    def open_stream(self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions) -> ChunkStream:
        """One streamed request, sent when the stream is entered; the transcript isn't changed. Raises as `respond` does."""
        return self._transport.stream(self._body(transcript, offering, options, stream=True), self.stream_decoder())

    def open_stream_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ChunkStreamSync:
        """The same without an event loop, through a sync client."""
        body = self._body(transcript, offering, options, stream=True)
        return self._transport.stream_sync(body, self.stream_decoder())

    @staticmethod
    @abstractmethod
    def stream_decoder() -> StreamDecoder:
        """A new decoder for one stream of your own: feed it the API's events, objects of the SDK or dicts."""

    def _body(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions, *, stream: bool = False
    ) -> bytes:
        return join_body(self._request(transcript, offering, options, stream=stream))

    def _request(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions, *, stream: bool = False
    ) -> Fields:
        temperature, limit = options.temperature, options.max_output_tokens
        extra = {**self._extra, **options.extra} if self._extra else options.extra
        if options.output is not None:
            extra = self._with_output(options.output, extra)
        fields = self._fields(
            transcript,
            offering,
            model=self.model,
            temperature=self._temperature if temperature is None else temperature,
            max_output_tokens=self._max_output_tokens if limit is None else limit,
            strict=self._strict,
            stream=stream,
            extra=extra,
        )
        if "model" not in fields:
            fields["model"] = encode(self.model)
        return fields

    def _answer(self, reply: SdkReply) -> AssistantTurn:
        return self._decode(reply_object(reply.content, self.api), reply.request_id)

    @staticmethod
    @abstractmethod
    def _with_output(output: OutputSpec, extra: Mapping[str, Any]) -> dict[str, Any]:
        """The provider parameters with the schema of the answer among them."""

    @staticmethod
    @abstractmethod
    def _decode(reply: dict[str, Any], request_id: str | None) -> AssistantTurn:
        """The answer, or an `AdapterError` for what is none."""
