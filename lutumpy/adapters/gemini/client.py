"""`Gemini`: generateContent as a model, and its wire format for users with clients of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from lutumpy.adapters.authority import host_of
from lutumpy.adapters.gemini.decode import API, decode_response, is_response
from lutumpy.adapters.gemini.errors import response_error
from lutumpy.adapters.gemini.names import TOOL_NAMES
from lutumpy.adapters.gemini.offer import tool_list
from lutumpy.adapters.gemini.request import encoder_of, request_fields, with_setting
from lutumpy.adapters.gemini.sdk_objects import response_object
from lutumpy.adapters.gemini.stream import GeminiStreamDecoder
from lutumpy.adapters.gemini.transport import GenaiTransport
from lutumpy.adapters.request_options import request_options
from lutumpy.adapters.sdk_body import (
    Fields,
    body_dict,
    checked_offer,
    checked_transcript,
    history_list,
    join_body,
)
from lutumpy.adapters.sdk_model import RequestDefaults, SdkModel
from lutumpy.core.items import AssistantTurn
from lutumpy.core.model import TurnOptions
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.streaming import StreamDecoder
from lutumpy.core.tool_names import ToolNames
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import AdapterError
from lutumpy.plain import json_values
from lutumpy.rules.gemini.fields import key_of
from lutumpy.rules.host_facts import HostFacts, checked_host

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Gemini"]

HOST_URL = "https://generativelanguage.googleapis.com"
VERTEX_HOST = "aiplatform.googleapis.com"
"""Where the SDK's own clients go, if the environment names no other address."""


class Gemini(SdkModel):
    """A Gemini model behind the Gemini API, or on Vertex AI.

    Args:
        model: The model's name, as `gemini-3-flash-preview`.
        client: A `google.genai.Client`, for `collect()` and `collect_sync()` alike, also one for
            Vertex AI; or its `aio`. Left out, one is made from the environment at the first
            request; only then is the SDK imported.
        base_url: For a client made here: where the API is.
        api_key: For a client made here: the key; `GOOGLE_API_KEY` or `GEMINI_API_KEY` when left
            out.
        temperature: Sampling temperature, 0 to 2, unless a turn gives its own.
        max_output_tokens: Limit of an answer in tokens, thoughts included, unless a turn gives its
            own.
        strict: Whether calls are held to the schemas of tools that leave it open (the mode
            VALIDATED; the API has no flag for one tool).
        structured: How a structured turn asks for its value: `native` by the API's JSON schema
            output, which models before Gemini 3 refuse beside tools; `tool` by a tool that takes
            it.
        extra: Further parameters of every request; those of a turn win over them. What is in
            `generationConfig` and `toolConfig` is added to what is set here, and wins over it.
        headers: Further HTTP headers.
        timeout: Seconds for each request; the client's own when left out.
        host: What is known of the host, where its address doesn't say whose it is, as of a proxy:
            `facts_of("aiplatform.googleapis.com")`.

    Raises:
        TypeError: An argument is of another type, as a client of another SDK.
        ValueError: The model's name is blank, or a limit is below 1.
    """

    api: ClassVar[str] = API
    sdk: ClassVar[str] = "google.genai"
    tool_names: ClassVar[ToolNames] = TOOL_NAMES
    """The names of tools in requests: the API refuses some that a toolset takes."""
    _clients: ClassVar[str] = "genai.Client"
    _mark: ClassVar[str] = "models"

    def __init__(
        self,
        model: str,
        client: Any | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        host: HostFacts | None = None,
        **defaults: Unpack[RequestDefaults],
    ) -> None:
        def make() -> Any:
            from google.genai import Client

            options: Any = None if base_url is None else {"base_url": base_url}
            return Client(api_key=api_key, http_options=options)

        self._base_url = base_url
        self._facts = checked_host(host)
        super().__init__(
            model, client, make, make, {"base_url": base_url, "api_key": api_key}, **defaults
        )

    def _find_host(self) -> str | None:
        if self._facts is not None and self._facts.address:
            return self._facts.address
        client = self._transport.client()
        if client is not None:
            # The SDK shows its address nowhere else.
            options = getattr(getattr(client, "_api_client", None), "_http_options", None)
            return host_of(getattr(options, "base_url", None))
        if self._base_url is not None:
            return host_of(self._base_url)
        if os.environ.get("GOOGLE_GENAI_USE_VERTEXAI", "").lower() in ("1", "true"):
            return VERTEX_HOST
        return host_of(os.environ.get("GOOGLE_GEMINI_BASE_URL") or HOST_URL)

    def _make_transport(self, **connection: Any) -> GenaiTransport:
        self._genai = GenaiTransport(**connection)
        return self._genai

    def takes_forced_choice(self, extra: Mapping[str, Any]) -> bool:
        """Whether a request with these parameters may require a tool call: always."""
        return True

    async def count_tokens(
        self,
        transcript: Transcript,
        offer: ToolOffering | None = None,
        options: TurnOptions | None = None,
    ) -> int:
        """How many tokens a request would have, as the provider counts them, with one request.

        Args:
            transcript: The conversation; it must have something to answer.
            offer: The tools.
            options: Those of the turn.

        Raises:
            AdapterError: the request failed.
        """
        fields, _ = self._request_fields(transcript, offer, options)
        return await self._genai.count(join_body(fields))

    def count_tokens_sync(
        self,
        transcript: Transcript,
        offer: ToolOffering | None = None,
        options: TurnOptions | None = None,
    ) -> int:
        """The same without an event loop."""
        fields, _ = self._request_fields(transcript, offer, options)
        return self._genai.count_sync(join_body(fields))

    @staticmethod
    def request(
        transcript: Transcript,
        offer: ToolOffering | None = None,
        *,
        stream: bool = False,
        **options: Any,
    ) -> dict[str, Any]:
        """The body of a request as a new dict of JSON values, without the model: what `respond`
        sends.

        Args:
            transcript: The conversation.
            offer: The tools.
            stream: Changes nothing: a stream is another method of the API, with the same body.
            options: `model` (for what depends on it: signatures of calls, images in results; not
                put in), `temperature`, `max_output_tokens`, `strict`, `extra` (a mapping), `output`
                (an `OutputSpec`: the answer's schema); any other is a parameter of the API, as
                `safetySettings=[...]`.

        Raises:
            InvalidToolConstraints: the API, or `model`, is known to refuse the offer.
            TranscriptError: there is nothing to answer.
        """
        transcript = checked_transcript(transcript)
        offered = None if offer is None else checked_offer(offer)
        known = request_options(API, options, Gemini._with_output)
        fields = request_fields(transcript, offered, stream=stream, **known)
        transcript.note_request(offered, known["record"])
        return body_dict(fields)

    @staticmethod
    def messages(transcript: Transcript, *, model: str | None = None) -> list[dict[str, Any]]:
        """The contents alone, as `request` puts them in; what was read from a history of this API
        is there unchanged.

        Unlike `request`, it takes a transcript that has nothing to answer.

        Args:
            transcript: The conversation; its leading system messages are in `system`.
            model: For what depends on it: signatures of calls, images in results.
        """
        return history_list(encoder_of(checked_transcript(transcript), model).history())

    @staticmethod
    def system(transcript: Transcript) -> dict[str, Any] | None:
        """The request's `systemInstruction`: the leading system messages, a part each; unchanged
        where it was read.
        """
        data = encoder_of(checked_transcript(transcript), None).system()
        system: dict[str, Any] | None = json_values.decode(data) if data else None
        return system

    @staticmethod
    def stream_decoder() -> StreamDecoder:
        """A new decoder for one stream of your own: feed it the API's chunks, objects of the SDK or
        dicts.
        """
        return GeminiStreamDecoder()

    @staticmethod
    def tools(offer: ToolOffering, *, strict: bool | None = None) -> list[dict[str, Any]]:
        """The `tools` of a request alone, as for counting tokens. They hold the tools' own schemas:
        not to be changed.

        Raises:
            InvalidToolConstraints: the API is known to refuse the offer.
        """
        return tool_list(checked_offer(offer))

    @staticmethod
    def response(reply: Any) -> AssistantTurn:
        """The turn in an answer: an object of the SDK, a dict, or JSON as bytes or text. It isn't
        changed.

        Raises:
            AdapterError: it is not a JSON object, or an error body. Nothing that a model can write
                raises.
        """
        return Gemini._decode(response_object(reply, API), None)

    def _fields(self, transcript: Transcript, offer: ToolOffering | None, **options: Any) -> Fields:
        return request_fields(transcript, offer, **options)

    @staticmethod
    def _with_output(output: OutputSpec, extra: Mapping[str, Any]) -> dict[str, Any]:
        # The API takes a description nowhere but in the schema, and has no name for it.
        schema = {**output.schema}
        if output.description:
            schema["description"] = output.description
        own = {"responseMimeType": "application/json", "responseJsonSchema": schema}
        key = key_of(extra, "generationConfig")
        return {**extra, key: with_setting(extra.get(key) or {}, own)}

    @staticmethod
    def _decode(reply: dict[str, Any], request_id: str | None) -> AssistantTurn:
        error = response_error(reply, request_id)
        if error is not None:
            raise error
        if not is_response(reply):
            raise AdapterError(
                f"{API}: the answer is no response: it has neither candidates nor promptFeedback",
                provider=API,
                request_id=request_id,
            )
        return decode_response(reply, request_id)
