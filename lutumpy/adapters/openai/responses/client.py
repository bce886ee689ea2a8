"""`OpenAIResponses`: a transcript answered by Responses, and its encode and decode for clients of your own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from lutumpy.adapters.openai.model import OpenAIModel, output_format, passed_options
from lutumpy.adapters.openai.responses.decode import PENDING, decode_response, pending_error
from lutumpy.adapters.openai.responses.encode import (
    API,
    ResponsesEncoder,
    responses_fields,
    responses_tools,
)
from lutumpy.adapters.openai.responses.stream import ResponsesStreamDecoder
from lutumpy.adapters.provider_errors import error_body
from lutumpy.adapters.replies import reply_object
from lutumpy.adapters.sdk_body import body_dict, checked_offer, checked_transcript, history_list
from lutumpy.core import json_values
from lutumpy.core.items import AssistantTurn
from lutumpy.core.model import OutputSpec
from lutumpy.core.streaming import StreamDecoder
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import AdapterError

__all__ = ["OpenAIResponses"]


class OpenAIResponses(OpenAIModel):
    """A model behind OpenAI's Responses, or a host that speaks the same. See `OpenAIModel` for the arguments.

    The whole transcript is sent with every request, so nothing depends on what the provider stored. With
    `extra={"store": False}`, ask for `"include": ["reasoning.encrypted_content"]` too, or reasoning can't be sent back.
    """

    api: ClassVar[str] = API
    _fields = staticmethod(responses_fields)
    _path: ClassVar[str] = "/responses"

    @staticmethod
    def request(
        transcript: Transcript,
        offer: ToolOffering | None = None,
        *,
        stream: bool = False,
        **options: Any,
    ) -> dict[str, Any]:
        """The body of a request, as a dict of JSON values without `model`, for a client of your own.

        Args:
            transcript: What has been said.
            offer: The tools of this turn.
            stream: Ask for an event stream.
            options: `temperature`, `max_output_tokens`, `strict`, `extra` (a mapping of provider parameters), `output`
                (an `OutputSpec`: the answer's schema), `model` (for checks only, not put in); any other is a provider
                parameter itself.

        Raises:
            TranscriptError: there is nothing to answer.
            InvalidToolConstraints: OpenAI is known to refuse the offer.
            DeclarationError: a tool asks to be strict, and its schema has no strict form.
        """
        given = passed_options(options, OpenAIResponses._with_output)
        checked = None if offer is None else checked_offer(offer)
        return body_dict(
            responses_fields(checked_transcript(transcript), checked, stream=stream, **given)
        )

    @staticmethod
    def messages(transcript: Transcript) -> list[dict[str, Any]]:
        """The input items alone, as `request` puts them in; what was read from a history of this API is unchanged.

        Unlike `request`, it takes a transcript that has nothing to answer.
        """
        return history_list(checked_transcript(transcript).encoded(API, ResponsesEncoder).history())

    @staticmethod
    def system(transcript: Transcript) -> str | None:
        """The `instructions` that the transcript was read with; system messages that were pushed are items."""
        encoder = checked_transcript(transcript).encoded(API, ResponsesEncoder)
        instructions: str | None = (
            json_values.decode(encoder.instructions) if encoder.instructions else None
        )
        return instructions

    @staticmethod
    def tools(offer: ToolOffering, *, strict: bool | None = None) -> list[dict[str, Any]]:
        """The `tools` of a request alone, as for counting tokens. They hold the tools' own schemas: not to be changed.

        Raises:
            InvalidToolConstraints: OpenAI is known to refuse the offer.
            DeclarationError: a tool asks to be strict, and its schema has no strict form.
        """
        return responses_tools(checked_offer(offer), strict)

    @staticmethod
    def response(reply: Any) -> AssistantTurn:
        """The answer in a reply: an object of the SDK, a dict, or JSON as text or bytes.

        A reply with the status `failed` is a turn whose finish reason is `unknown`.

        Raises:
            AdapterError: the reply is no answer: no JSON object, no output, or one that is still being made in the
                background (`queued`, `in_progress`); `response_id` is the one to retrieve it by.
        """
        value = reply_object(reply, API)
        request_id = getattr(reply, "_request_id", None)
        if not isinstance(value.get("output"), list) or value.get("status") in PENDING:
            raise _no_answer(value, request_id)
        return decode_response(value, request_id)

    @staticmethod
    def stream_decoder() -> StreamDecoder:
        """A decoder for the events of one streamed answer, for a client of your own: objects of the SDK, or dicts."""
        return ResponsesStreamDecoder()

    @staticmethod
    def _with_output(output: OutputSpec, extra: Mapping[str, Any]) -> dict[str, Any]:
        # `text` holds more than the format, as `verbosity`.
        text = {
            "format": {"type": "json_schema", **output_format(output)},
            **(extra.get("text") or {}),
        }
        return {**extra, "text": text}

    @staticmethod
    def _decode(reply: dict[str, Any], request_id: str | None) -> AssistantTurn:
        if (
            not isinstance(reply.get("output"), list)
            or reply.get("error")
            or reply.get("status") in PENDING
        ):
            raise _no_answer(reply, request_id)
        return decode_response(reply, request_id)


def _no_answer(reply: dict[str, Any], request_id: str | None) -> AdapterError:
    error = error_body(reply, API, request_id)
    if error is None and reply.get("status") in PENDING:
        error = pending_error(reply, request_id)
    if error is None:
        error = AdapterError(
            f"{API}: the answer has no output", provider=API, request_id=request_id
        )
    if reply.get("id") or reply.get("usage"):
        # What a failed answer cost, and what it is called, stands in the reply.
        error.partial = replace(decode_response(reply, request_id), cut=True)
    return error
