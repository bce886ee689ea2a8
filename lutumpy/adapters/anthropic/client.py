"""`AnthropicMessages`: the Anthropic Messages API as a model, and its wire format for users with
clients of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from lutumpy.adapters.anthropic.containers import Container, container_of
from lutumpy.adapters.anthropic.decode import API, decode_message
from lutumpy.adapters.anthropic.offer import check_forced, tool_list
from lutumpy.adapters.anthropic.request import encoder_of, request_fields
from lutumpy.adapters.anthropic.stream import MessagesStreamDecoder
from lutumpy.adapters.cache_option import Cache, checked_cache
from lutumpy.adapters.provider_errors import error_body
from lutumpy.adapters.replies import reply_object
from lutumpy.adapters.request_options import request_options
from lutumpy.adapters.sdk_body import (
    Fields,
    body_dict,
    checked_offer,
    checked_transcript,
    history_list,
)
from lutumpy.adapters.sdk_model import SdkModel
from lutumpy.adapters.sdk_spans import TracedMethod
from lutumpy.core.items import AssistantTurn
from lutumpy.core.model import OutputSpec, StructuredMode
from lutumpy.core.streaming import StreamDecoder
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import AdapterError, DeclarationError, InvalidToolConstraints
from lutumpy.plain import json_values
from lutumpy.rules.anthropic import models as anthropic_models
from lutumpy.rules.strict import ANTHROPIC_STRICT, strict_schema

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

__all__ = ["AnthropicMessages"]


class AnthropicMessages(SdkModel):
    """A model behind the Anthropic Messages API.

    Args:
        model: The model's name.
        client: An `AsyncAnthropic` or `Anthropic` client, also one for Bedrock, Vertex or Foundry.
            Left out, one is made from the environment at the first request; only then is the SDK
            imported.
        base_url: For a client made here: where the API is.
        api_key: For a client made here: the key; `ANTHROPIC_API_KEY` when left out.
        temperature: Sampling temperature, 0 to 1, unless a turn gives its own. Newer models refuse
            any but 1.
        max_output_tokens: Limit of an answer in tokens, unless a turn gives its own; 4096 when
            neither does.
        strict: Whether tools that leave it open are offered with `strict`, where their schema has a
            strict form.
        cache: `auto` sets breakpoints of the prompt cache (`cache_control`) in every request: on
            the last tool, the last block of the system's, and the last block before any ephemeral
            message; never more than four together with those in `extra`, and none beside a
            top-level `cache_control` there. `None` sets none.
        structured: How a structured turn asks for its value: `native` by the API's JSON schema
            output; `tool`, for endpoints without one, by a tool that takes it.
        extra: Further parameters of every request; those of a turn win over them, and both over
            what stands here.
        headers: Further HTTP headers, as `anthropic-beta`.
        timeout: Seconds for each request; the client's own when left out.

    Raises:
        TypeError: An argument is of another type, as a client of another SDK.
        ValueError: The model's name is blank, or a limit is below 1.
    """

    api: ClassVar[str] = API
    sdk: ClassVar[str] = "anthropic"
    _clients: ClassVar[str] = "AsyncAnthropic or Anthropic"
    _path: ClassVar[str] = "/v1/messages"
    _method: ClassVar[TracedMethod | None] = TracedMethod(
        "anthropic", "messages", "create", {"model": "m", "max_tokens": 1, "messages": ()}
    )

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

        def make_async() -> AsyncAnthropic:
            from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

            # The SDK's own default, but for a finalizer that would close the connections of a dead
            # event loop in another.
            return AsyncAnthropic(
                api_key=api_key, base_url=base_url, http_client=DefaultAsyncHttpxClient()
            )

        def make_sync() -> Anthropic:
            from anthropic import Anthropic

            return Anthropic(api_key=api_key, base_url=base_url)

        super().__init__(
            model,
            client,
            make_async,
            make_sync,
            {"base_url": base_url, "api_key": api_key},
            temperature=temperature,
            max_output_tokens=max_output_tokens,
            strict=strict,
            structured=structured,
            extra=extra,
            headers=headers,
            timeout=timeout,
        )
        self._cache: Cache | None = checked_cache(cache)

    @property
    def defers_tools(self) -> bool:
        """Whether tools can be kept out of the prompt until a search has found them."""
        return anthropic_models.takes_tool_search(self.model)

    def takes_forced_choice(self, extra: Mapping[str, Any]) -> bool:
        """Whether a request with these parameters may require a tool call: some models, and
        thinking with a budget, forbid it.
        """
        try:
            check_forced(ToolOffering(mode="required"), self.model, {**self._extra, **extra})
        except InvalidToolConstraints:
            return False
        return True

    @staticmethod
    def request(
        transcript: Transcript,
        offer: ToolOffering | None = None,
        *,
        stream: bool = False,
        **options: Any,
    ) -> dict[str, Any]:
        """The body of a request as a new dict of JSON values, without `model`; with `cache="auto"`
        what `respond` sends.

        Args:
            transcript: The conversation.
            offer: The tools.
            stream: Ask for a stream of events.
            options: `model` (for checks that depend on it, not put in), `temperature`,
                `max_output_tokens` (4096 when left out), `strict`, `cache` (`auto`: breakpoints of
                the prompt cache; none when left out), `extra` (a mapping), `output` (an
                `OutputSpec`: the answer's schema); any other is a parameter of the API, as
                `thinking={"type": "adaptive"}`.

        Raises:
            InvalidToolConstraints: the API, or `model`, is known to refuse the offer.
            TranscriptError: there is nothing to answer.
        """
        cache = checked_cache(options.pop("cache", None))
        fields = request_fields(
            checked_transcript(transcript),
            None if offer is None else checked_offer(offer),
            stream=stream,
            cache=cache,
            **request_options(options, AnthropicMessages._with_output),
        )
        return body_dict(fields)

    @staticmethod
    def messages(transcript: Transcript, *, model: str | None = None) -> list[dict[str, Any]]:
        """The messages alone, as `request` puts them in; what was read from a history of this API
        stands there unchanged.

        Unlike `request`, it takes a transcript that has nothing to answer.

        Args:
            transcript: The conversation; its leading system messages are in `system`.
            model: For what depends on it: system messages that were pushed later.
        """
        return history_list(encoder_of(checked_transcript(transcript), model).history())

    @staticmethod
    def system(transcript: Transcript) -> str | list[dict[str, Any]] | None:
        """The request's `system`: the leading system messages, as text or blocks; unchanged where
        it was read.
        """
        data = encoder_of(checked_transcript(transcript), None).system()
        system: str | list[dict[str, Any]] | None = json_values.decode(data) if data else None
        return system

    @staticmethod
    def container(source: Transcript | AssistantTurn) -> Container | None:
        """The container in which the provider ran code last: that of the latest answer that names
        one.

        A later request goes on in it, and finds its files, with `extra={"container": found.id}`.
        Calls that code in a container has made are answered with it in any case.

        Args:
            source: The conversation, or one answer, as `round.turn` or `result.turn`.
        """
        if isinstance(source, AssistantTurn):
            return container_of(source) if source.api == API else None
        for turn in reversed(checked_transcript(source).turns()):
            found = container_of(turn) if turn.api == API else None
            if found is not None:
                return found
        return None

    @staticmethod
    def stream_decoder() -> StreamDecoder:
        """A new decoder for one stream of your own: feed it the API's events, objects of the SDK or
        dicts.
        """
        return MessagesStreamDecoder()

    @staticmethod
    def tools(offer: ToolOffering, *, strict: bool | None = None) -> list[dict[str, Any]]:
        """The `tools` of a request alone, as for counting tokens. They hold the tools' own schemas:
        not to be changed.

        Raises:
            InvalidToolConstraints: the API is known to refuse the offer.
            DeclarationError: a tool asks for strict, and its schema has no strict form.
        """
        return tool_list(checked_offer(offer), bool(strict))

    @staticmethod
    def response(reply: Any) -> AssistantTurn:
        """The turn in an answer: an object of the SDK, a dict, or JSON as bytes or text. It isn't
        changed.

        Raises:
            AdapterError: it is not a JSON object, or an error body. Nothing that a model can write
                raises.
        """
        message = reply_object(reply, API)
        request_id = getattr(reply, "_request_id", None)
        request_id = request_id if isinstance(request_id, str) else None
        error = error_body(message, API, request_id)
        if error is not None:
            raise error
        return decode_message(message, request_id)

    def _fields(self, transcript: Transcript, offer: ToolOffering | None, **options: Any) -> Fields:
        return request_fields(transcript, offer, cache=self._cache, **options)

    @staticmethod
    def _with_output(output: OutputSpec, extra: Mapping[str, Any]) -> dict[str, Any]:
        # The API takes strict schemas only, and a description nowhere but in the schema.
        described = output.schema
        if output.description:
            described = {**described, "description": output.description}
        try:
            schema = strict_schema(described, ANTHROPIC_STRICT)
        except DeclarationError as error:
            raise InvalidToolConstraints(
                f"the Messages API can't answer with {output.name}: {error}"
            ) from error
        # `output_config` holds more than the format, as `effort`.
        config = {
            "format": {"type": "json_schema", "schema": schema},
            **(extra.get("output_config") or {}),
        }
        return {**extra, "output_config": config}

    @staticmethod
    def _decode(reply: dict[str, Any], request_id: str | None) -> AssistantTurn:
        error = error_body(reply, API, request_id)
        if error is not None:
            raise error
        if "content" not in reply:
            raise AdapterError(
                f"{API}: the answer is not a message: it has no content",
                provider=API,
                request_id=request_id,
            )
        return decode_message(reply, request_id)
