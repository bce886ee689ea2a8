"""`AnthropicMessages`: the Anthropic Messages API as a model, and its wire format for users with
clients of their own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from lutumpy.adapters.anthropic.bound_form import refused_message
from lutumpy.adapters.anthropic.containers import Container, container_of
from lutumpy.adapters.anthropic.decode import API, decode_message
from lutumpy.adapters.anthropic.offer import check_forced, tool_list
from lutumpy.adapters.anthropic.request import encoder_of, request_fields
from lutumpy.adapters.anthropic.stream import MessagesStreamDecoder
from lutumpy.adapters.authority import host_of
from lutumpy.adapters.cache_option import Cache, checked_cache
from lutumpy.adapters.provider_errors import error_body
from lutumpy.adapters.replies import reply_object
from lutumpy.adapters.request_options import request_options
from lutumpy.adapters.request_record import RequestRecord
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
from lutumpy.core.model import StructuredMode, TurnOptions
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.prefix import OnPrefixChange
from lutumpy.core.streaming import StreamDecoder
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import AdapterError, DeclarationError, InvalidToolConstraints
from lutumpy.plain import json_values
from lutumpy.rules.anthropic import models as anthropic_models
from lutumpy.rules.host_facts import HostFacts, checked_host
from lutumpy.rules.strict import ANTHROPIC_STRICT, strict_schema

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

__all__ = ["AnthropicMessages"]

HOST_URL = "https://api.anthropic.com"
"""Where the SDK's own clients go, if the environment names no other address."""


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
            what is here.
        headers: Further HTTP headers, as `anthropic-beta`.
        timeout: Seconds for each request; the client's own when left out.
        effort: How much the model should think, as `low`, unless a turn gives its own.
        on_prefix_change: What happens when settings have changed since the turn before: `append`,
            `drop` or `error`, see `OnPrefixChange`; a turn's own wins.
        host: What is known of the host, where its address doesn't say whose it is, as of a proxy:
            `facts_of("api.anthropic.com")`.

    Raises:
        TypeError: An argument is of another type, as a client of another SDK.
        ValueError: The model's name is blank, or a limit is below 1.
    """

    api: ClassVar[str] = API
    sdk: ClassVar[str] = "anthropic"
    _clients: ClassVar[str] = "AsyncAnthropic or Anthropic"
    _path: ClassVar[str] = "/v1/messages"
    _count_path: ClassVar[str | None] = "/v1/messages/count_tokens"
    # As the SDK's `MessageCountTokensParams` has them, those of beta headers included.
    _count_fields: ClassVar[frozenset[str]] = frozenset(
        "cache_control context_management mcp_servers messages model output_config output_format "
        "speed system thinking tool_choice tools".split()
    )
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
        effort: str | None = None,
        on_prefix_change: OnPrefixChange = "append",
        host: HostFacts | None = None,
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
            effort=effort,
            on_prefix_change=on_prefix_change,
        )
        self._facts = checked_host(host)
        self._base_url = base_url
        self._cache: Cache | None = checked_cache(cache)

    def _find_host(self) -> str | None:
        if self._facts is not None and self._facts.address:
            return self._facts.address
        if self._transport.client() is not None:
            return super()._find_host()
        return host_of(self._base_url or os.environ.get("ANTHROPIC_BASE_URL") or HOST_URL)

    _may_repeat: ClassVar[bool] = True

    def _record_without(
        self, error: AdapterError, record: RequestRecord, options: TurnOptions
    ) -> RequestRecord | None:
        # A proxy, or an address whose bytes have changed, can spoil a prefix that we know as equal.
        refused = refused_message(error)
        is_repeated = record.repeated_without is not None
        if refused is None or is_repeated or record.policy == "error":
            return None
        thinking = {**self._extra, **options.extra}.get("thinking")
        if isinstance(thinking, Mapping) and "block_binding" in thinking:
            return None  # the program says itself what is to happen
        turn = None if record.turns is None else record.turns().get(refused)
        if turn is None:
            return None
        again = RequestRecord()
        again.repeated_without = turn
        return again

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
            options: `model` (for what depends on it, as whether tools are deferred; not put in),
                `temperature`, `max_output_tokens` (4096 when left out), `strict`, `cache` (`auto`:
                breakpoints of the prompt cache; none when left out), `extra`, `output` (an
                `OutputSpec`: the answer's schema); any other is a parameter of the API, as
                `thinking={"type": "adaptive"}`.

        Raises:
            InvalidToolConstraints: the API, or `model`, is known to refuse the offer.
            TranscriptError: there is nothing to answer.
        """
        cache = checked_cache(options.pop("cache", None))
        transcript = checked_transcript(transcript)
        offered = None if offer is None else checked_offer(offer)
        known = request_options(API, options, AnthropicMessages._with_output)
        sent, model = offered, options.get("model")
        if offered is not None and model and anthropic_models.takes_tool_search(model):
            sent = offered.deferring()
        fields = request_fields(transcript, sent, stream=stream, cache=cache, **known)
        transcript.note_request(offered, known["record"])
        return body_dict(fields)

    @staticmethod
    def betas(body: Mapping[str, Any], *, model: str | None = None) -> list[str]:
        """The beta names that a request needs for what it says in the middle of the conversation:
        `client.beta.messages.create(model=..., betas=AnthropicMessages.betas(body), **body)`.

        Args:
            body: What `request` gave.
            model: The model; one that binds its reasoning to what was sent before is then asked to
                say what it left out of the request.
        """
        # Who lets the adapter send needs none of the rules.
        from lutumpy.rules.anthropic.changes import needed_betas

        found = needed_betas(body.get("messages"))
        if anthropic_models.needs_record(model):
            found.append(anthropic_models.BINDING_CONTROLS)
        return found

    @staticmethod
    def messages(transcript: Transcript, *, model: str | None = None) -> list[dict[str, Any]]:
        """The messages alone, as `request` puts them in; what was read from a history of this API
        is there unchanged.

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
        data = encoder_of(checked_transcript(transcript), None).system.write()
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
