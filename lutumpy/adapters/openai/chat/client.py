"""`OpenAIChat`: sends transcripts to Chat Completions; encodes and decodes for other clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from lutumpy.adapters.openai.chat.decode import decode_chat
from lutumpy.adapters.openai.chat.request import (
    API,
    CallIds,
    chat_encoder,
    chat_fields,
    checked_call_ids,
)
from lutumpy.adapters.openai.chat.spelled_tools import chat_tools
from lutumpy.adapters.openai.chat.stream import ChatStreamDecoder
from lutumpy.adapters.openai.model import (
    OpenAIModel,
    checked_custom_tools,
    encoder_options,
    output_format,
)
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
from lutumpy.rules.host_facts import HostFacts

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI
    from typing_extensions import Unpack

    from lutumpy.adapters.sdk_model import RequestDefaults

__all__ = ["OpenAIChat"]


class OpenAIChat(OpenAIModel):
    """A model behind OpenAI's Chat Completions, or a host that speaks the same API.

    Args:
        model: The model's name.
        client: An `AsyncOpenAI` or `OpenAI`; see `OpenAIModel`, also for the arguments that are not
            named here: `base_url`, `api_key`, `custom_tools`, `host`, `temperature`,
            `max_output_tokens`, `strict`, `structured`, `extra`, `headers`, `timeout`.
        call_ids: The host's rule about call ids, for a session that began elsewhere: `openai` (at
            most 40 characters) or `mistral` (nine letters and digits). Ids that break it are
            replaced in requests, the same way each time (rule R2). If omitted, the host's address
            decides: those of OpenAI and Mistral are known. Any other host gets foreign ids of up to
            40 characters, and its own ids as they came.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The model's name is blank, a limit is below 1, or there is no such rule.
    """

    api: ClassVar[str] = API
    _path: ClassVar[str] = "/chat/completions"
    _stored_path: ClassVar[str | None] = "/chat/completions"

    def __init__(
        self,
        model: str,
        client: AsyncOpenAI | OpenAI | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        call_ids: CallIds | None = None,
        custom_tools: bool | None = None,
        host: HostFacts | None = None,
        **defaults: Unpack[RequestDefaults],
    ) -> None:
        super().__init__(
            model,
            client,
            base_url=base_url,
            api_key=api_key,
            custom_tools=custom_tools,
            host=host,
            **defaults,
        )
        self._call_ids: CallIds | None = checked_call_ids(call_ids)

    def _fields_for(self, host: HostFacts, custom_tools: bool | None) -> Callable[..., Fields]:
        # What its address says of the host needn't be looked up by its value each time.
        facts = self._host
        return partial(chat_fields, call_ids=self._call_ids, custom_tools=custom_tools, host=facts)

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
            stream: Ask for an event stream, with the usage at its end.
            options: `temperature`, `max_output_tokens` (sent as `max_completion_tokens`), `strict`,
                `extra` (a mapping of provider parameters), `output` (an `OutputSpec`: the answer's
                schema), `model` (for checks only; it is not put in), `call_ids` (`openai` or
                `mistral`: the host's rule about call ids), `custom_tools` (whether text tools are
                sent as custom tools; if omitted, the model decides), `host` (the `HostFacts` of who
                gets it). Any other is a provider parameter itself.

        Raises:
            TranscriptError: there is nothing to answer.
            InvalidToolConstraints: OpenAI is known to refuse the offer.
            DeclarationError: a tool asks to be strict, and its schema has no strict form.
            ValueError: there is no such rule about call ids.
        """
        call_ids = checked_call_ids(options.pop("call_ids", None))
        for_encoder = encoder_options(API, options, OpenAIChat._with_output)
        transcript = checked_transcript(transcript)
        checked = None if offer is None else checked_offer(offer)
        fields = chat_fields(transcript, checked, stream=stream, call_ids=call_ids, **for_encoder)
        transcript.note_request(checked, for_encoder["record"])
        return body_dict(fields)

    @staticmethod
    def messages(
        transcript: Transcript, *, call_ids: CallIds | None = None
    ) -> list[dict[str, Any]]:
        """The `messages` of a request alone; those that were read from a history are unchanged.

        Unlike `request`, it takes a transcript that has nothing to answer.

        Args:
            transcript: The conversation.
            call_ids: The host's rule about call ids, as for `request`.
        """
        encoder = chat_encoder(checked_transcript(transcript), checked_call_ids(call_ids))
        return history_list(encoder.history())

    @staticmethod
    def system(transcript: Transcript) -> str | None:
        """The system text that a request has beside its messages: `None`, on this API.

        System messages are among `messages` here. The method is there so that code for all
        adapters needs no exception for this one.

        Raises:
            TypeError: it is not a transcript.
        """
        checked_transcript(transcript)
        return None

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
        return chat_tools(checked_offer(offer), strict, checked_custom_tools(custom_tools))

    @staticmethod
    def response(reply: Any) -> AssistantTurn:
        """The turn in a reply's first choice.

        Args:
            reply: An object of the SDK, a dict, or JSON as text or bytes.

        Raises:
            AdapterError: the reply isn't a JSON object, has no choices, or is an error.
        """
        return _decode(reply_object(reply, API), getattr(reply, "_request_id", None))

    @staticmethod
    def stream_decoder() -> StreamDecoder:
        """A decoder for the events of one stream of your own: objects of the SDK, or dicts."""
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
