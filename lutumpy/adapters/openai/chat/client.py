"""`OpenAIChat`: a transcript answered by Chat Completions, and its encode and decode for clients of your own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from lutumpy.adapters.openai.chat.decode import decode_chat
from lutumpy.adapters.openai.chat.encode import (
    API,
    CallIds,
    chat_encoder,
    chat_fields,
    chat_tools,
    checked_call_ids,
)
from lutumpy.adapters.openai.chat.stream import ChatStreamDecoder
from lutumpy.adapters.openai.model import OpenAIModel, output_format, passed_options
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
from lutumpy.core.model import OutputSpec, StructuredMode
from lutumpy.core.streaming import StreamDecoder
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import AdapterError
from lutumpy.rules.call_ids import host_rule

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = ["OpenAIChat"]


class OpenAIChat(OpenAIModel):
    """A model behind OpenAI's Chat Completions, or a host that speaks the same.

    Args:
        model: The model's name.
        client: As for `OpenAIModel`; so are the others but the last.
        call_ids: Whose rule about call ids holds at the host, for a session that began elsewhere: `openai` (at most 40
            characters) or `mistral` (nine letters and digits). Ids that break it are replaced in requests, the same way
            each time (rule R2). Left out, the host's address decides: that of OpenAI and of Mistral are known, and to
            any other go ids of up to 40 characters, and its own as they came.

    Raises:
        ValueError: there is no such rule.
    """

    api: ClassVar[str] = API
    _path: ClassVar[str] = "/chat/completions"

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
        call_ids: CallIds | None = None,
    ) -> None:
        super().__init__(
            model,
            client,
            base_url=base_url,
            api_key=api_key,
            temperature=temperature,
            max_output_tokens=max_output_tokens,
            strict=strict,
            structured=structured,
            extra=extra,
            headers=headers,
            timeout=timeout,
        )
        self._fields = self._first_fields
        if checked_call_ids(call_ids) is not None:
            self._fields = partial(chat_fields, call_ids=call_ids)

    def _first_fields(
        self, transcript: Transcript, offer: ToolOffering | None, **options: Any
    ) -> Fields:
        # The host is asked for once, and not before the first request: only then does the SDK read the environment.
        self._fields = partial(chat_fields, call_ids=host_rule(self._host()))
        return self._fields(transcript, offer, **options)

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
            stream: Ask for an event stream, with the usage at its end.
            options: `temperature`, `max_output_tokens` (sent as `max_completion_tokens`), `strict`, `extra` (a mapping of
                provider parameters), `output` (an `OutputSpec`: the answer's schema), `model` (for checks only, not put in),
                `call_ids` (`openai` or `mistral`: whose rule about call ids holds at the host); any other is a provider
                parameter itself.

        Raises:
            TranscriptError: there is nothing to answer.
            InvalidToolConstraints: OpenAI is known to refuse the offer.
            DeclarationError: a tool asks to be strict, and its schema has no strict form.
            ValueError: there is no such rule about call ids.
        """
        call_ids = checked_call_ids(options.pop("call_ids", None))
        given = passed_options(options, OpenAIChat._with_output)
        transcript = checked_transcript(transcript)
        checked = None if offer is None else checked_offer(offer)
        return body_dict(
            chat_fields(transcript, checked, stream=stream, call_ids=call_ids, **given)
        )

    @staticmethod
    def messages(
        transcript: Transcript, *, call_ids: CallIds | None = None
    ) -> list[dict[str, Any]]:
        """The history alone, as `request` puts it in; what was read from a history of this API stands there unchanged.

        Unlike `request`, it takes a transcript that has nothing to answer.

        Args:
            transcript: What has been said.
            call_ids: Whose rule about call ids holds at the host, as for `request`.
        """
        return history_list(
            chat_encoder(checked_transcript(transcript), checked_call_ids(call_ids)).history()
        )

    @staticmethod
    def tools(offer: ToolOffering, *, strict: bool | None = None) -> list[dict[str, Any]]:
        """The `tools` of a request alone, as for counting tokens. They hold the tools' own schemas: not to be changed.

        Raises:
            InvalidToolConstraints: OpenAI is known to refuse the offer.
            DeclarationError: a tool asks to be strict, and its schema has no strict form.
        """
        return chat_tools(checked_offer(offer), strict)

    @staticmethod
    def response(reply: Any) -> AssistantTurn:
        """The answer in a reply: an object of the SDK, a dict, or JSON as text or bytes. Its first choice is read.

        Raises:
            AdapterError: the reply is no answer: no JSON object, no choices, or an error.
        """
        return _decode(reply_object(reply, API), getattr(reply, "_request_id", None))

    @staticmethod
    def stream_decoder() -> StreamDecoder:
        """A decoder for the events of one streamed answer, for a client of your own: objects of the SDK, or dicts."""
        return ChatStreamDecoder()

    @staticmethod
    def _with_output(output: OutputSpec, extra: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "response_format": {"type": "json_schema", "json_schema": output_format(output)},
            **extra,
        }

    @staticmethod
    def _decode(reply: dict[str, Any], request_id: str | None) -> AssistantTurn:
        return _decode(reply, request_id)


def _decode(reply: Mapping[str, Any], request_id: str | None) -> AssistantTurn:
    if not reply.get("choices") or reply.get("error"):
        error = error_body(reply, API, request_id)
        raise error or AdapterError(
            f"{API}: the answer has no choices", provider=API, request_id=request_id
        )
    return decode_chat(reply, request_id)
