"""`OllamaChat`: `/api/chat` as a model, and its wire format for users with clients of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from lutumpy.adapters.http_model import HttpModel
from lutumpy.adapters.http_transport import StreamFormat
from lutumpy.adapters.ollama.decode import API, decode_answer, is_answer
from lutumpy.adapters.ollama.encode import encoder_of
from lutumpy.adapters.ollama.offer import tool_list
from lutumpy.adapters.ollama.request import request_fields
from lutumpy.adapters.ollama.stream import OllamaStreamDecoder
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
from lutumpy.core.items import AssistantTurn
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.streaming import StreamDecoder
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import AdapterError

if TYPE_CHECKING:
    import httpx2
    from typing_extensions import Unpack

    from lutumpy.adapters.sdk_model import RequestDefaults

__all__ = ["OllamaChat"]

_PORT = 11434
"""Where Ollama listens."""


class OllamaChat(HttpModel):
    """A model behind Ollama's own API, on one's own machine or in Ollama's cloud.

    It needs no SDK and, for models on one's own machine, no key.

    Args:
        model: The model's name, as `ollama list` shows it: `qwen3:4b`.
        client: An `httpx2.AsyncClient` or `httpx2.Client`, with a `base_url`. Left out, one is made
            at the first request.
        base_url: For a client made here: where Ollama listens; `OLLAMA_HOST`, or
            `http://127.0.0.1:11434`, when left out.
        api_key: The key of Ollama's cloud (`base_url="https://ollama.com"`); for a client made here
            `OLLAMA_API_KEY` when left out. Models on one's own machine need none.
        max_retries: How often a request is sent again at most when no answer came or the server was
            busy.
        temperature: Sampling temperature, unless a turn gives its own.
        max_output_tokens: Limit of an answer in tokens (`num_predict`), unless a turn gives its
            own.
        strict: Changes nothing: the API has no strict tools.
        structured: How a structured turn asks for its value: `native` by `format`, which takes all
            tools away from the model, so a turn with tools is refused; `tool` by a tool that takes
            it, which nothing makes the model call.
        extra: Further parameters of every request: `think`, `keep_alive`, and `options`, as
            `{"num_ctx": 16384}`. Those of a turn win over them.
        headers: Further HTTP headers.
        timeout: Seconds for each request; 600 when left out.

    Raises:
        TypeError: An argument is of another type.
        ValueError: The model's name is blank, or a limit is out of its range.
    """

    api: ClassVar[str] = API
    path: ClassVar[str] = "/api/chat"
    default_url: ClassVar[str] = f"http://127.0.0.1:{_PORT}"
    stream_format: ClassVar[StreamFormat] = "lines"

    def __init__(
        self,
        model: str,
        client: httpx2.AsyncClient | httpx2.Client | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        max_retries: int = 2,
        **defaults: Unpack[RequestDefaults],
    ) -> None:
        super().__init__(
            model,
            client,
            base_url=base_url,
            api_key=api_key,
            max_retries=max_retries,
            **defaults,
        )

    def takes_forced_choice(self, extra: Mapping[str, Any]) -> bool:
        """Whether a request with these parameters may require a tool call: never."""
        return False

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
            stream: Ask for a stream. The body says so in either case, since the API streams where
                it doesn't.
            options: `temperature` and `max_output_tokens` (both are under the API's `options`),
                `strict` (changes nothing), `extra` (a mapping of parameters), `output` (an
                `OutputSpec`: the answer's schema), `model` (not put in). Any other is a parameter
                of the API itself, as `think=True`, `keep_alive="10m"`, `options={"num_ctx": 8192}`.

        Raises:
            TranscriptError: there is nothing to answer.
            InvalidToolConstraints: a call is required, or tools are beside a format, or the API
                refuses a tool.
        """
        transcript = checked_transcript(transcript)
        offered = None if offer is None else checked_offer(offer)
        known = request_options(API, options, OllamaChat._with_output)
        fields = request_fields(transcript, offered, stream=stream, **known)
        transcript.note_request(offered, known["record"])
        return body_dict(fields)

    @staticmethod
    def messages(transcript: Transcript) -> list[dict[str, Any]]:
        """The `messages` of a request alone; those that were read from a history are unchanged.

        Unlike `request`, it takes a transcript that has nothing to answer.
        """
        return history_list(encoder_of(checked_transcript(transcript)).history())

    @staticmethod
    def system(transcript: Transcript) -> str | None:
        """The system text that a request has beside its messages: `None`, on this API.

        System messages are among `messages` here.

        Raises:
            TypeError: it is not a transcript.
        """
        checked_transcript(transcript)
        return None

    @staticmethod
    def tools(offer: ToolOffering, *, strict: bool | None = None) -> list[dict[str, Any]]:
        """The `tools` of a request alone. They hold the tools' own schemas: not to be changed.

        Raises:
            InvalidToolConstraints: the API is known to refuse the offer.
        """
        return tool_list(checked_offer(offer))

    @staticmethod
    def response(reply: Any) -> AssistantTurn:
        """The turn in an answer: a dict, JSON as bytes or text, or an object of Ollama's client.

        Raises:
            AdapterError: it is not a JSON object, or an error. Nothing that a model can write
                raises.
        """
        value = reply_object(reply, API)
        if value.get("error") or not is_answer(value):
            raise error_body(value, API) or AdapterError(
                f"{API}: the answer has no message", provider=API
            )
        return decode_answer(value)

    @staticmethod
    def stream_decoder() -> StreamDecoder:
        """A new decoder for one stream of your own: feed it the chunks, as dicts."""
        return OllamaStreamDecoder()

    # --- what the environment says, and what helps ------------------------------------------------

    @staticmethod
    def environment_url() -> str | None:
        """The address in `OLLAMA_HOST`, as Ollama itself reads it."""
        host = os.environ.get("OLLAMA_HOST", "").strip().strip("\"'")
        if not host:
            return None
        scheme, found, place = host.partition("://")
        if not found:
            scheme, place = "http", host
        place, _, path = place.partition("/")
        # A server listens at 0.0.0.0; nobody is there to be asked.
        name, port = _split_port(place)
        name = "127.0.0.1" if name in ("", "0.0.0.0") else name
        usual = {"http": "80", "https": "443"}.get(scheme, "") if found else str(_PORT)
        return f"{scheme}://{name}:{port or usual}{f'/{path}' if path else ''}"

    @staticmethod
    def environment_key() -> str | None:
        """The key in `OLLAMA_API_KEY`."""
        return os.environ.get("OLLAMA_API_KEY") or None

    @staticmethod
    def explain(error: AdapterError) -> str | None:
        """What helps if the server doesn't run or lacks the model, or the model knows no tools."""
        if error.status is None and not error.sent:
            return (
                "is Ollama running? `ollama serve` starts it, and base_url= or OLLAMA_HOST says "
                "where it listens"
            )
        if error.status == 404 and "not found" in str(error):
            return "`ollama pull` with the model's name fetches it"
        if error.status == 400 and "does not support tools" in str(error):
            return "choose a model with tools, or give this one to lutumpy.text_tools.TextTools"
        return None

    # --- what the base class asks -----------------------------------------------------------------

    def _fields(self, transcript: Transcript, offer: ToolOffering | None, **options: Any) -> Fields:
        return request_fields(transcript, offer, **options)

    @staticmethod
    def _with_output(output: OutputSpec, extra: Mapping[str, Any]) -> dict[str, Any]:
        schema = {**output.schema}
        if output.description:
            schema.setdefault("description", output.description)
        return {"format": schema, **extra}


def _split_port(place: str) -> tuple[str, str]:
    """Host and port; an address of IPv6 is in brackets."""
    name, colon, port = place.rpartition(":")
    if colon and port.isdigit() and (":" not in name or name.endswith("]")):
        return name, port
    return place, ""
