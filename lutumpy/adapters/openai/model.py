"""What `OpenAIChat` and `OpenAIResponses` share: their options, and one request with one answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from lutumpy.adapters.sdk import SdkReply, SdkTransport, join_body, reply_object
from lutumpy.core import json_values
from lutumpy.core.items import AssistantTurn
from lutumpy.core.model import OutputSpec, StructuredMode, TurnOptions, checked_structured
from lutumpy.core.streaming import ChunkStream, ChunkStreamSync, StreamDecoder
from lutumpy.core.strict import OPENAI_STRICT, strict_schema
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import DeclarationError

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = ["OpenAIModel", "output_format", "passed_options"]

_OPTIONS = frozenset({"model", "temperature", "max_output_tokens", "strict"})


class OpenAIModel:
    """A model behind one of OpenAI's wires.

    Args:
        model: The model's name.
        client: An `AsyncOpenAI` for `collect()`, or an `OpenAI` for `collect_sync()`; subclasses such as the Azure ones
            too. Left out, one is made from the environment at the first request.
        base_url: For a client made here: where the API is, as of a compatible host.
        api_key: For a client made here: the key.
        temperature: Default for every request; an option of the turn wins.
        max_output_tokens: Default limit of an answer, in tokens; an option of the turn wins.
        strict: Offer tools that leave it open as strict ones, where their schema has a strict form.
        structured: How a structured turn asks for its value: `native` by the API's JSON schema output; `tool`, for endpoints
            without one, by a tool that takes it.
        extra: Provider parameters for every request; they win over what the library sets, those of a turn over them.
        headers: Further HTTP headers for every request.
        timeout: Seconds for a request; the client's own when left out.
    """

    api: ClassVar[str]
    _path: ClassVar[str]

    def __init__(
        self,
        model: str,
        client: AsyncOpenAI | OpenAI | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        strict: bool | None = None,
        structured: StructuredMode = "native",
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        if client is not None and (base_url is not None or api_key is not None):
            raise TypeError("base_url and api_key are for a client made here; the client that was given has its own")
        self.model = model
        self.structured: StructuredMode = checked_structured(structured)
        self._temperature = temperature
        self._max_output_tokens = max_output_tokens
        self._strict = strict
        self._extra = dict(extra or {})

        def make_async() -> AsyncOpenAI:
            from openai import AsyncOpenAI

            return AsyncOpenAI(api_key=api_key, base_url=base_url)

        def make_sync() -> OpenAI:
            from openai import OpenAI

            return OpenAI(api_key=api_key, base_url=base_url)

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

    async def respond(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """One request through an async client, and its answer; the transcript is not changed.

        Raises:
            AdapterError: the request failed, or the answer is no answer.
            InvalidToolConstraints: OpenAI is known to refuse the offer; nothing was sent.
            TranscriptError: there is nothing to answer; nothing was sent.
        """
        return self._answer(await self._transport.send(self._body(transcript, offering, options)))

    def respond_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """The same through a sync client."""
        return self._answer(self._transport.send_sync(self._body(transcript, offering, options)))

    def open_stream(self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions) -> ChunkStream:
        """One streamed request through an async client, sent when the stream is entered; raises as `respond` does."""
        return self._transport.stream(self._body(transcript, offering, options, stream=True), self.stream_decoder())

    def open_stream_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ChunkStreamSync:
        """The same through a sync client."""
        return self._transport.stream_sync(
            self._body(transcript, offering, options, stream=True), self.stream_decoder()
        )

    def _body(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions, *, stream: bool = False
    ) -> bytes:
        temperature = options.temperature
        limit = options.max_output_tokens
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
            fields["model"] = json_values.encode(self.model)
        return join_body(fields)

    def _answer(self, reply: SdkReply) -> AssistantTurn:
        return self._decode(reply_object(reply.content, self.api), reply.request_id)

    @staticmethod
    def stream_decoder() -> StreamDecoder:
        """A decoder for the events of one streamed answer."""
        raise NotImplementedError

    @staticmethod
    def _fields(transcript: Transcript, offer: ToolOffering | None, **options: Any) -> dict[str, bytes]:
        """The fields of a request but for `model`, as ready JSON by name."""
        raise NotImplementedError

    @staticmethod
    def _with_output(output: OutputSpec, extra: Mapping[str, Any]) -> dict[str, Any]:
        """The provider parameters with the schema of the answer among them."""
        raise NotImplementedError

    @staticmethod
    def _decode(reply: dict[str, Any], request_id: str | None) -> AssistantTurn:
        """The answer, or an `AdapterError` for what is none."""
        raise NotImplementedError


def passed_options(
    options: Mapping[str, Any], with_output: Callable[[OutputSpec, Mapping[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """The keywords of `request` as the encoders take them: what is no option of ours is a provider parameter."""
    known = {name: value for name, value in options.items() if name in _OPTIONS}
    extra = {name: value for name, value in options.items() if name not in _OPTIONS and name not in ("extra", "output")}
    extra |= options.get("extra") or {}
    output = options.get("output")
    return {**known, "extra": extra if output is None else with_output(output, extra)}


def output_format(output: OutputSpec) -> dict[str, Any]:
    """Name, schema and `strict` as both wires spell them; strict where the schema has a strict form."""
    try:
        return {"name": output.name, "schema": strict_schema(output.schema, OPENAI_STRICT), "strict": True}
    except DeclarationError:
        return {"name": output.name, "schema": output.schema, "strict": False}
