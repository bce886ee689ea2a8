"""`AnthropicMessages`: the Anthropic Messages API as a model, and its wire format for users with clients of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from lutumpy.adapters.anthropic.cache import Cache, checked_cache
from lutumpy.adapters.anthropic.decode import API, decode_message
from lutumpy.adapters.anthropic.encode import request_fields
from lutumpy.adapters.anthropic.offer import check_forced
from lutumpy.adapters.anthropic.stream import MessagesStreamDecoder
from lutumpy.adapters.sdk import SdkReply, SdkTransport, body_dict, error_body, join_body, reply_object
from lutumpy.core import json_values
from lutumpy.core.items import AssistantTurn
from lutumpy.core.model import OutputSpec, StructuredMode, TurnOptions, checked_structured
from lutumpy.core.streaming import ChunkStream, ChunkStreamSync, StreamDecoder
from lutumpy.core.strict import ANTHROPIC_STRICT, strict_schema
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import AdapterError, DeclarationError, InvalidToolConstraints

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

__all__ = ["AnthropicMessages"]


class AnthropicMessages:
    """A model behind the Anthropic Messages API.

    Args:
        model: The model's name.
        client: An `AsyncAnthropic` or `Anthropic` client, also one for Bedrock, Vertex or Foundry. Left out, one is made from
            the environment at the first request; only then is the SDK imported.
        base_url: For a client made here: where the API is.
        api_key: For a client made here: the key; `ANTHROPIC_API_KEY` when left out.
        temperature: Sampling temperature, 0 to 1, unless a turn gives its own. Newer models refuse any but 1.
        max_output_tokens: Limit of an answer in tokens, unless a turn gives its own; 4096 when neither does.
        strict: Whether tools that leave it open are offered with `strict`, where their schema has a strict form.
        cache: `auto` sets breakpoints of the prompt cache (`cache_control`) in every request: on the last tool, the last
            block of the system's, and the last block before any ephemeral message; never more than four together with
            those in `extra`, and none beside a top-level `cache_control` there. `None` sets none.
        structured: How a structured turn asks for its value: `native` by the API's JSON schema output; `tool`, for endpoints
            without one, by a tool that takes it.
        extra: Further parameters of every request; those of a turn win over them, and both over what stands here.
        headers: Further HTTP headers, as `anthropic-beta`.
        timeout: Seconds for each request; the client's own when left out.
    """

    api: ClassVar[str] = API

    def __init__(
        self,
        model: str,
        client: AsyncAnthropic | Anthropic | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        strict: bool | None = None,
        cache: Cache | None = "auto",
        structured: StructuredMode = "native",
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        if client is not None and (base_url is not None or api_key is not None):
            raise TypeError("base_url and api_key are for a client made here: give them to the client instead")
        self.model = model
        self.structured: StructuredMode = checked_structured(structured)
        self._temperature = temperature
        self._max_output_tokens = max_output_tokens
        self._strict = strict
        self._cache: Cache | None = checked_cache(cache)
        self._extra: Mapping[str, Any] = dict(extra or {})

        def make_async() -> AsyncAnthropic:
            from anthropic import AsyncAnthropic

            return AsyncAnthropic(api_key=api_key, base_url=base_url)

        def make_sync() -> Anthropic:
            from anthropic import Anthropic

            return Anthropic(api_key=api_key, base_url=base_url)

        self._transport = SdkTransport(
            API,
            "/v1/messages",
            client=client,
            make_async=make_async,
            make_sync=make_sync,
            headers=headers,
            timeout=timeout,
        )

    def __repr__(self) -> str:
        return f"AnthropicMessages({self.model!r})"

    def takes_forced_choice(self, extra: Mapping[str, Any]) -> bool:
        """Whether a request with these parameters may require a tool call: some models, and thinking with a budget, forbid it."""
        try:
            check_forced(ToolOffering(mode="required"), self.model, {**self._extra, **extra})
        except InvalidToolConstraints:
            return False
        return True

    async def respond(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """One request; the transcript isn't changed.

        Raises:
            AdapterError: the request failed after the SDK's own retries, or what came back is no message.
            InvalidToolConstraints: the API, or this model, is known to refuse the offer; nothing was sent.
            TranscriptError: there is nothing to answer; nothing was sent.
        """
        return _read(await self._transport.send(self._body(transcript, offering, options)))

    def respond_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """The same without an event loop, with a sync client."""
        return _read(self._transport.send_sync(self._body(transcript, offering, options)))

    def open_stream(self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions) -> ChunkStream:
        """One streamed request, sent when the stream is entered; the transcript isn't changed. Raises as `respond` does."""
        return self._transport.stream(self._body(transcript, offering, options, stream=True), MessagesStreamDecoder())

    def open_stream_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ChunkStreamSync:
        """The same without an event loop, with a sync client."""
        body = self._body(transcript, offering, options, stream=True)
        return self._transport.stream_sync(body, MessagesStreamDecoder())

    def _body(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions, *, stream: bool = False
    ) -> bytes:
        temperature, limit = options.temperature, options.max_output_tokens
        extra = {**self._extra, **options.extra} if options.extra else self._extra
        if options.output is not None:
            extra = _with_output(options.output, extra)
        fields = request_fields(
            transcript,
            offering,
            model=self.model,
            temperature=self._temperature if temperature is None else temperature,
            max_output_tokens=self._max_output_tokens if limit is None else limit,
            strict=self._strict,
            stream=stream,
            cache=self._cache,
            extra=extra,
        )
        return join_body({"model": json_values.encode(self.model), **fields})

    @staticmethod
    def request(
        transcript: Transcript, offer: ToolOffering | None = None, *, stream: bool = False, **options: Any
    ) -> dict[str, Any]:
        """The body of a request as a new dict of JSON values, without `model`; with `cache="auto"` what `respond` sends.

        Args:
            transcript: The conversation.
            offer: The tools.
            stream: Ask for a stream of events.
            options: `model` (for checks that depend on it, not put in), `temperature`, `max_output_tokens` (4096 when left
                out), `strict`, `cache` (`auto`: breakpoints of the prompt cache; none when left out), `extra` (a
                mapping), `output` (an `OutputSpec`: the answer's schema); any other is a parameter of the API, as
                `thinking={"type": "adaptive"}`.

        Raises:
            InvalidToolConstraints: the API, or `model`, is known to refuse the offer.
            TranscriptError: there is nothing to answer.
        """
        model = options.pop("model", None)
        temperature = options.pop("temperature", None)
        max_output_tokens = options.pop("max_output_tokens", None)
        strict = options.pop("strict", None)
        cache = checked_cache(options.pop("cache", None))
        output = options.pop("output", None)
        further = options.pop("extra", None) or {}
        extra = {**options, **further}
        fields = request_fields(
            transcript,
            offer,
            model=model,
            temperature=temperature,
            max_output_tokens=max_output_tokens,
            strict=strict,
            stream=stream,
            cache=cache,
            extra=extra if output is None else _with_output(output, extra),
        )
        return body_dict(fields)

    @staticmethod
    def stream_decoder() -> StreamDecoder:
        """A new decoder for one stream of your own: feed it the API's events, objects of the SDK or dicts."""
        return MessagesStreamDecoder()

    @staticmethod
    def response(reply: Any) -> AssistantTurn:
        """The turn in an answer: an object of the SDK, a dict, or JSON as bytes or text. It isn't changed.

        Raises:
            AdapterError: it is no JSON object, or an error body. Nothing that a model can write raises.
        """
        message = reply_object(reply, API)
        request_id = getattr(reply, "_request_id", None)
        request_id = request_id if isinstance(request_id, str) else None
        error = error_body(message, API, request_id)
        if error is not None:
            raise error
        return decode_message(message, request_id)


def _with_output(output: OutputSpec, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The provider parameters with the schema of the answer among them; the API takes strict schemas only."""
    try:
        schema = strict_schema(output.schema, ANTHROPIC_STRICT)
    except DeclarationError as error:
        raise InvalidToolConstraints(f"the Messages API can't answer with {output.name}: {error}") from error
    # `output_config` holds more than the format, as `effort`.
    config = {"format": {"type": "json_schema", "schema": schema}, **(extra.get("output_config") or {})}
    return {**extra, "output_config": config}


def _read(reply: SdkReply) -> AssistantTurn:
    message = reply_object(reply.content, API)
    error = error_body(message, API, reply.request_id)
    if error is not None:
        raise error
    if "content" not in message:
        raise AdapterError(
            f"{API}: the answer is no message: it has no content", provider=API, request_id=reply.request_id
        )
    return decode_message(message, reply.request_id)
