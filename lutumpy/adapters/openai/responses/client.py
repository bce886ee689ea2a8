"""`OpenAIResponses`: sends transcripts to Responses; encodes and decodes for other clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from lutumpy.adapters.openai.model import (
    OpenAIModel,
    checked_custom_tools,
    encoder_options,
    output_format,
)
from lutumpy.adapters.openai.responses.decode import PENDING, decode_response, pending_error
from lutumpy.adapters.openai.responses.encode import API, ResponsesEncoder
from lutumpy.adapters.openai.responses.request import (
    encoding_for,
    responses_fields,
    responses_tools,
)
from lutumpy.adapters.openai.responses.stream import ResponsesStreamDecoder
from lutumpy.adapters.provider_errors import error_body
from lutumpy.adapters.replies import reply_object
from lutumpy.adapters.sdk_body import (
    Fields,
    body_dict,
    checked_offer,
    checked_transcript,
    history_list,
)
from lutumpy.core.items import AssistantTurn
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.streaming import StreamDecoder
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import AdapterError
from lutumpy.plain import json_values
from lutumpy.rules.host_facts import HostFacts
from lutumpy.rules.openai.models import takes_tool_search

__all__ = ["OpenAIResponses"]


class OpenAIResponses(OpenAIModel):
    """A model behind OpenAI's Responses, or a host that speaks the same API.

    See `OpenAIModel` for the arguments.

    The whole transcript is sent with every request, so nothing depends on what the provider stored.
    With `extra={"store": False}`, ask for `"include": ["reasoning.encrypted_content"]` too, or
    reasoning can't be sent back.
    """

    api: ClassVar[str] = API
    _path: ClassVar[str] = "/responses"
    _count_path: ClassVar[str | None] = "/responses/input_tokens"
    # As the SDK's `InputTokenCountParams` has them.
    _count_fields: ClassVar[frozenset[str]] = frozenset(
        "conversation input instructions model parallel_tool_calls previous_response_id reasoning "
        "text tool_choice tools truncation".split()
    )
    _stored_path: ClassVar[str | None] = "/responses"

    @property
    def defers_tools(self) -> bool:
        """Whether tools can be kept out of the prompt until a search has found them."""
        return takes_tool_search(self.model)

    def _fields_for(self, host: HostFacts, custom_tools: bool | None) -> Callable[..., Fields]:
        # What its address says of the host needn't be looked up by its value each time.
        return partial(responses_fields, custom_tools=custom_tools, host=self._host)

    @staticmethod
    def request(
        transcript: Transcript,
        offer: ToolOffering | None = None,
        *,
        stream: bool = False,
        **options: Any,
    ) -> dict[str, Any]:
        """The body of a request without `model`, as JSON values, for a client of your own.

        Args:
            transcript: The conversation.
            offer: The tools of this turn.
            stream: Ask for an event stream.
            options: `temperature`, `max_output_tokens`, `strict`, `extra` (a mapping of provider
                parameters), `output` (an `OutputSpec`: the answer's schema), `model` (for what
                depends on it, as whether tools are deferred; it is not put in), `custom_tools`
                (whether text tools are sent as custom tools; if omitted, the model decides), `host`
                (the `HostFacts` of who gets it). Any other is a provider parameter itself.

        Raises:
            TranscriptError: there is nothing to answer.
            InvalidToolConstraints: OpenAI is known to refuse the offer.
            DeclarationError: a tool asks to be strict, and its schema has no strict form.
        """
        for_encoder = encoder_options(API, options, OpenAIResponses._with_output)
        transcript = checked_transcript(transcript)
        checked = None if offer is None else checked_offer(offer)
        sent, model = checked, options.get("model")
        if checked is not None and model and takes_tool_search(model):
            sent = checked.deferring()
        fields = responses_fields(transcript, sent, stream=stream, **for_encoder)
        transcript.note_request(checked, for_encoder["record"])
        return body_dict(fields)

    @staticmethod
    def messages(transcript: Transcript) -> list[dict[str, Any]]:
        """The `input` of a request alone; items that were read from a history are unchanged.

        Unlike `request`, it takes a transcript that has nothing to answer.
        """
        return history_list(_encoder_of(transcript).history())

    @staticmethod
    def system(transcript: Transcript) -> str | None:
        """The `instructions` of a request: those that the transcript was read with, if it was.

        System messages that were pushed are items of `messages`.
        """
        encoder = _encoder_of(transcript)
        if not encoder.instructions:
            return None
        instructions: str = json_values.decode(encoder.instructions)
        return instructions

    @staticmethod
    def tools(
        offer: ToolOffering, *, strict: bool | None = None, custom_tools: bool | None = None
    ) -> list[dict[str, Any]]:
        """The `tools` of a request alone, for example to count their tokens.

        They hold the tools' own schemas, so don't change them.

        Raises:
            InvalidToolConstraints: OpenAI is known to refuse the offer.
            DeclarationError: a tool asks to be strict, and its schema has no strict form.
        """
        return responses_tools(checked_offer(offer), strict, checked_custom_tools(custom_tools))

    @staticmethod
    def response(reply: Any) -> AssistantTurn:
        """The turn in a reply. With the status `failed`, its finish reason is `unknown`.

        Args:
            reply: An object of the SDK, a dict, or JSON as text or bytes.

        Raises:
            AdapterError: the reply isn't a JSON object, has no output, or is still being made in
                the background (`queued`, `in_progress`); then retrieve it by `response_id`.
        """
        value = reply_object(reply, API)
        request_id = getattr(reply, "_request_id", None)
        if not isinstance(value.get("output"), list) or value.get("status") in PENDING:
            raise _error_of(value, request_id)
        return decode_response(value, request_id)

    @staticmethod
    def stream_decoder() -> StreamDecoder:
        """A decoder for the events of one stream of your own: objects of the SDK, or dicts."""
        return ResponsesStreamDecoder()

    @staticmethod
    def _with_output(output: OutputSpec, extra: Mapping[str, Any]) -> dict[str, Any]:
        # A user's `text` may hold more than the format, for example `verbosity`, so it is kept.
        text = {
            "format": {"type": "json_schema", **output_format(output)},
            **(extra.get("text") or {}),
        }
        return {**extra, "text": text}

    @staticmethod
    def _decode(reply: dict[str, Any], request_id: str | None) -> AssistantTurn:
        has_output = isinstance(reply.get("output"), list)
        status = reply.get("status")
        if not has_output or reply.get("error") or status == "failed" or status in PENDING:
            raise _error_of(reply, request_id)
        return decode_response(reply, request_id)


def _error_of(reply: dict[str, Any], request_id: str | None) -> AdapterError:
    """The error for a reply that isn't a turn."""
    error = error_body(reply, API, request_id)
    if error is None and reply.get("status") in PENDING:
        error = pending_error(reply, request_id)
    if error is None:
        what = "failed" if reply.get("status") == "failed" else "has no output"
        error = AdapterError(f"{API}: the answer {what}", provider=API, request_id=request_id)
    if reply.get("id") or reply.get("usage"):
        # The reply says what a failed request cost and what its id is.
        error.partial = replace(decode_response(reply, request_id), cut=True)
    return error


def _encoder_of(transcript: Transcript) -> ResponsesEncoder:
    """The transcript as it came, for nobody in particular."""
    _, key, make = encoding_for(None, None, None)
    return checked_transcript(transcript).encoded(key, make)
