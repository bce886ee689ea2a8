"""`BedrockConverse`: Converse as a model, and its wire format for clients of the user's own."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from lutumpy.adapters.authority import host_of
from lutumpy.adapters.bedrock.blobs import with_bytes
from lutumpy.adapters.bedrock.decode import API, decode_response, is_response
from lutumpy.adapters.bedrock.offer import tool_list
from lutumpy.adapters.bedrock.request import check_forced, encoder_of, request_fields
from lutumpy.adapters.bedrock.stream import ConverseStreamDecoder
from lutumpy.adapters.bedrock.transport import BotoTransport
from lutumpy.adapters.cache_option import Cache, checked_cache
from lutumpy.adapters.replies import reply_object
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
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import AdapterError, InvalidToolConstraints
from lutumpy.plain import json_values
from lutumpy.plain.json_values import encode_text
from lutumpy.rules.host_facts import HostFacts, checked_host

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["BedrockConverse"]

_USUAL_REGION = re.compile(r"(?:af|ap|ca|eu|il|me|mx|sa|us)-(?:gov-)?[a-z]+-\d")
"""Those whose hosts are under `amazonaws.com`."""


class BedrockConverse(SdkModel):
    """A model at Amazon Bedrock, behind Converse and ConverseStream.

    Args:
        model: The model's id, that of an inference profile, or an ARN.
        client: A client of boto3 for `bedrock-runtime`: `collect_sync()` calls it, and `collect()`
            calls it in threads, since boto3 has no async client. A client of aiobotocore is awaited
            instead. Left out, one of boto3 is made at the first request; only then is the SDK
            imported.
        region: For a client made here: the region; the one of the environment when left out.
        base_url: For a client made here: where the API is.
        temperature: Sampling temperature, 0 to 1, unless a turn gives its own.
        max_output_tokens: Limit of an answer in tokens, unless a turn gives its own.
        strict: Offer tools that leave it open as strict ones, where their schema has a strict form;
            Claude alone takes them.
        cache: `auto` sets cache points in every request: behind the tools (not on Nova, which
            refuses it there), behind the system's texts, and in the last user message before any
            ephemeral one; never more than four together with those in `extra`, and none on models
            that are known to take none. `None` sets none: of many models nobody knows whether they
            take one.
        structured: How a structured turn asks for its value: `native` by the API's JSON schema
            output, `tool` by a tool that takes it.
        extra: Further parameters of every request; those of a turn win over them. What is in
            `inferenceConfig` and `toolConfig` is added to what is set here, and wins over it.
        headers: Further HTTP headers.
        timeout: Seconds for each request of a client made here; a given one has its own.
        host: What is known of the host, where its address doesn't say whose it is, as of a proxy.

    Raises:
        TypeError: An argument is of another type, as a client of another SDK.
        ValueError: The model's name is blank, or a limit is below 1.
    """

    api: ClassVar[str] = API
    sdk: ClassVar[str] = "botocore"
    _clients: ClassVar[str] = "boto3.client('bedrock-runtime')"
    _mark: ClassVar[str] = "converse"

    def __init__(
        self,
        model: str,
        client: Any | None = None,
        *,
        region: str | None = None,
        base_url: str | None = None,
        cache: Cache | None = None,
        host: HostFacts | None = None,
        **defaults: Unpack[RequestDefaults],
    ) -> None:
        timeout = defaults.get("timeout")
        self._facts = checked_host(host)
        self._region = region
        self._base_url = base_url

        def make() -> Any:
            import boto3  # type: ignore[import-untyped]
            from botocore.config import Config  # type: ignore[import-untyped]

            config = None if timeout is None else Config(read_timeout=timeout)
            return boto3.client(
                "bedrock-runtime", region_name=region, endpoint_url=base_url, config=config
            )

        super().__init__(
            model, client, make, make, {"region": region, "base_url": base_url}, **defaults
        )
        self._cache: Cache | None = checked_cache(cache)

    def _make_transport(self, **connection: Any) -> BotoTransport:
        self._boto = BotoTransport(**connection)
        return self._boto

    async def count_tokens(
        self,
        transcript: Transcript,
        offer: ToolOffering | None = None,
        options: TurnOptions | None = None,
    ) -> int:
        """How many tokens a request would have, as the provider counts them (`CountTokens`), with
        one request.

        Args:
            transcript: The conversation; it must have something to answer.
            offer: The tools.
            options: Those of the turn.

        Raises:
            AdapterError: the request failed; not every model is counted.
            NotSupportedError: boto3 is older than that call; nothing was sent.
        """
        fields, _ = self._request_fields(transcript, offer, options)
        return await self._boto.count(join_body(fields))

    def count_tokens_sync(
        self,
        transcript: Transcript,
        offer: ToolOffering | None = None,
        options: TurnOptions | None = None,
    ) -> int:
        """The same without an event loop."""
        fields, _ = self._request_fields(transcript, offer, options)
        return self._boto.count_sync(join_body(fields))

    def _find_host(self) -> str | None:
        if self._facts is not None and self._facts.address:
            return self._facts.address
        client = self._transport.client()
        if client is not None:
            return host_of(getattr(getattr(client, "meta", None), "endpoint_url", None))
        if self._base_url is not None:
            return host_of(self._base_url)
        return _host_of_environment(self._region)

    def takes_forced_choice(self, extra: Mapping[str, Any]) -> bool:
        """Whether a request with these parameters may require a tool call: Claude's thinking with a
        budget forbids it.
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
        blobs: Literal["base64", "bytes"] = "base64",
        **options: Any,
    ) -> dict[str, Any]:
        """The body of a request as a new dict, without the model: what `respond` sends.

        Args:
            transcript: The conversation.
            offer: The tools.
            stream: Changes nothing: a stream is another operation, with the same body.
            blobs: How images and documents are there: `base64`, as on the wire, or `bytes`, as
                `client.converse(modelId=..., **body)` of boto3 takes them.
            options: `model` (for what depends on it; not put in), `temperature`,
                `max_output_tokens`, `strict`, `cache` (`auto`: cache points; none when left out),
                `extra` (a mapping), `output` (an `OutputSpec`: the answer's schema); any other is a
                parameter of the API, as `guardrailConfig={...}`.

        Raises:
            InvalidToolConstraints: the API, or `model`, is known to refuse the offer.
            TranscriptError: there is nothing to answer.
        """
        cache = checked_cache(options.pop("cache", None))
        transcript = checked_transcript(transcript)
        offered = None if offer is None else checked_offer(offer)
        known = request_options(API, options, BedrockConverse._with_output)
        fields = request_fields(transcript, offered, stream=stream, cache=cache, **known)
        transcript.note_request(offered, known["record"])
        body = body_dict(fields)
        return with_bytes(body) if blobs == "bytes" else body

    @staticmethod
    def messages(transcript: Transcript, *, model: str | None = None) -> list[dict[str, Any]]:
        """The messages alone, as `request` puts them in; what was read from a history of this API
        is there unchanged.

        Unlike `request`, it takes a transcript that has nothing to answer.

        Args:
            transcript: The conversation; its leading system messages are in `system`.
            model: For what depends on it: reasoning, what is beside results.
        """
        return history_list(encoder_of(checked_transcript(transcript), model).history())

    @staticmethod
    def system(transcript: Transcript) -> list[dict[str, Any]] | None:
        """The request's `system`: the leading system messages, a block each; unchanged where it was
        read.
        """
        data = encoder_of(checked_transcript(transcript), None).system()
        system: list[dict[str, Any]] | None = json_values.decode(data) if data else None
        return system

    @staticmethod
    def stream_decoder() -> StreamDecoder:
        """A new decoder for one stream of your own: feed it the events as boto3 gives them."""
        return ConverseStreamDecoder()

    @staticmethod
    def tools(offer: ToolOffering, *, strict: bool | None = None) -> list[dict[str, Any]]:
        """The `toolConfig.tools` of a request alone, as for counting tokens. Calls share the
        tools' schemas: not to be changed.

        Raises:
            InvalidToolConstraints: the API is known to refuse the offer.
        """
        return tool_list(checked_offer(offer), bool(strict))

    @staticmethod
    def response(reply: Any) -> AssistantTurn:
        """The turn in an answer: what boto3 gives, a dict of JSON values, or JSON as bytes or text.
        It isn't changed.

        Raises:
            AdapterError: it is not a JSON object, or no answer. Nothing that a model can write
                raises.
        """
        found = reply_object(reply, API)
        meta = found.get("ResponseMetadata")
        request_id = meta.get("RequestId") if isinstance(meta, Mapping) else None
        return BedrockConverse._decode(found, request_id if isinstance(request_id, str) else None)

    def _fields(self, transcript: Transcript, offer: ToolOffering | None, **options: Any) -> Fields:
        return request_fields(transcript, offer, cache=self._cache, **options)

    @staticmethod
    def _with_output(output: OutputSpec, extra: Mapping[str, Any]) -> dict[str, Any]:
        schema: dict[str, Any] = {"name": output.name, "schema": encode_text(output.schema)}
        if output.description:
            schema["description"] = output.description
        form = {"type": "json_schema", "structure": {"jsonSchema": schema}}
        requested = extra.get("outputConfig")
        config = {"textFormat": form, **(requested if isinstance(requested, Mapping) else {})}
        return {**extra, "outputConfig": config}

    @staticmethod
    def _decode(reply: dict[str, Any], request_id: str | None) -> AssistantTurn:
        if not is_response(reply):
            message = reply.get("message") or reply.get("Message")
            what = (
                f"the provider answered with an error: {message}"
                if message
                else ("the answer is no response: it has neither output nor stopReason")
            )
            raise AdapterError(f"{API}: {what}", provider=API, request_id=request_id)
        return decode_response(reply, request_id)


def _host_of_environment(region: str | None) -> str | None:
    """Where the SDK will send requests, as far as it doesn't look into files for that."""
    if os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() != "true":
        for name in ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL"):
            if os.environ.get(name):
                return host_of(os.environ[name])
    region = region or os.environ.get("AWS_DEFAULT_REGION")
    is_fips = os.environ.get("AWS_USE_FIPS_ENDPOINT", "").lower() == "true"
    # Clouds of their own, as China's, have names of their own.
    if not region or is_fips or not _USUAL_REGION.fullmatch(region):
        return None
    return f"bedrock-runtime.{region}.amazonaws.com"
