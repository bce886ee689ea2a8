"""What every adapter shares: the options of its requests, and one request with one answer, whole or
streamed.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, TypeVar

from lutumpy.adapters.authority import host_of
from lutumpy.adapters.repeated_streams import RepeatedStream, RepeatedStreamSync
from lutumpy.adapters.replies import SdkReply, reply_object
from lutumpy.adapters.request_headers import Headers
from lutumpy.adapters.request_record import RecordingDecoder, RequestRecord
from lutumpy.adapters.sdk_body import Fields, join_body
from lutumpy.adapters.sdk_spans import TracedMethod
from lutumpy.adapters.token_counting import TokenCounting
from lutumpy.adapters.transport import SdkTransport, Transport
from lutumpy.apis import api_names, serving
from lutumpy.core.items import AssistantTurn
from lutumpy.core.model import (
    StructuredMode,
    TurnOptions,
    check_effort,
    check_options,
    checked_structured,
)
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.prefix import OnPrefixChange, checked_policy
from lutumpy.core.streaming import ChunkStream, ChunkStreamSync, StreamDecoder
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.core.turn_origin import TurnOrigin
from lutumpy.core.unset import unset_names
from lutumpy.errors import AdapterError
from lutumpy.plain.json_values import encode
from lutumpy.plain.signatures import signature_of

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["RequestDefaults", "SdkModel"]

S = TypeVar("S")  # a stream, with an event loop or without


class RequestDefaults(TypedDict, total=False):
    """What every request of a model is made with, unless a turn has an option of its own.

    The constructors of adapters take these as keywords, which checkers and editors show one by one.
    The arguments of `SdkModel` say what each means, and have their default values.
    """

    temperature: float | None
    max_output_tokens: int | None
    strict: bool | None
    structured: StructuredMode
    extra: Mapping[str, Any] | None
    headers: Mapping[str, str] | None
    timeout: float | None
    effort: str | None
    on_prefix_change: OnPrefixChange


class SdkModel(TokenCounting, ABC):
    """A model behind one wire of an SDK. The adapters say how a request is built and an answer
    read.

    Args:
        model: The model's name.
        client: The user's client of the SDK, async or sync; one is made at the first request when
            it is `None`.
        make_async: Makes an async client; it imports the SDK.
        make_sync: The same for a sync client.
        made_here: Options for a client made here, by name; they go with no client that was given.
        temperature: Default for every request; an option of the turn wins.
        max_output_tokens: Default limit of an answer, in tokens; an option of the turn wins.
        strict: Offer tools that leave it open as strict ones, where their schema has a strict form.
        structured: How a structured turn asks for its value.
        extra: Provider parameters for every request; those of a turn win over them, and `UNSET`
            takes one away.
        headers: Further HTTP headers for every request.
        timeout: Seconds for a request; the client's own when `None`.
        effort: How much the model should think, in the provider's word; an option of the turn wins.
        on_prefix_change: What happens when settings have changed since the turn before, see
            `OnPrefixChange`; an option of the turn wins.
    """

    api: ClassVar[str]
    # The package whose clients speak this wire.
    sdk: ClassVar[str]
    # How the SDK calls its clients, for errors.
    _clients: ClassVar[str]
    # A method that every client of this wire has, so that one of no SDK is noticed.
    _mark: ClassVar[str] = "post"
    _path: ClassVar[str] = ""
    # The SDK's own method for such a request, where it makes a span of it.
    _method: ClassVar[TracedMethod | None] = None
    # Takes transcript, offer and options; gives the fields of a request, as ready JSON by name.
    # `model` is among them only where a parameter of the user's sets it.
    _fields: Callable[..., Fields]
    # What `help()` shows of the constructor.
    __signature__: ClassVar[inspect.Signature]

    def __init__(
        self,
        model: str,
        client: Any,
        make_async: Callable[[], Any],
        make_sync: Callable[[], Any],
        made_here: Mapping[str, str | None],
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        strict: bool | None = None,
        structured: StructuredMode = "native",
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        effort: str | None = None,
        on_prefix_change: OnPrefixChange = "append",
    ) -> None:
        if client is not None and any(value is not None for value in made_here.values()):
            names = " and ".join(made_here)
            raise TypeError(
                f"{names} are for a client made here; the client that was given has its own, so "
                "give them to the client"
            )
        _check_model_and_client(type(self), model, client)
        check_options(temperature, max_output_tokens, extra, strict)
        _check_connection({**made_here}, headers, timeout)
        self.model: str = model
        # Empty where the client doesn't show it; `None` before it was looked for.
        self._authority: str | None = None
        # What turns without signed reasoning come from.
        self._origin: TurnOrigin | None = None
        self.structured: StructuredMode = checked_structured(structured)
        self._temperature = temperature
        self._max_output_tokens = max_output_tokens
        self._strict = strict
        self._extra: Mapping[str, Any] = dict(extra or {})
        check_effort(effort)
        self._effort = effort
        self._on_prefix_change: OnPrefixChange = checked_policy(on_prefix_change)
        self._transport = self._make_transport(
            client=client,
            make_async=make_async,
            make_sync=make_sync,
            headers=headers,
            timeout=timeout,
        )

    def _make_transport(self, **connection: Any) -> Transport:
        """What sends the requests; an SDK whose clients have no `post` has one of its own.

        Args:
            connection: `client`, `make_async`, `make_sync`, `headers` and `timeout`.
        """
        return SdkTransport(self.api, self._path, method=self._method, **connection)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__signature__ = _full_signature(cls)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    async def aclose(self) -> None:
        """Close the clients that were made here, async and sync; the next request makes another.

        A client that was given is the caller's, and stays open. `async with OpenAIChat(...) as llm`
        closes at its end.
        """
        await self._transport.aclose()

    def close(self) -> None:
        """Close the sync client that was made here, as `aclose` does; `with OpenAIChat(...) as llm`
        closes at its end.
        """
        self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def respond(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """One request through an async client, and its answer; the transcript is not changed.

        Raises:
            AdapterError: the request failed after the SDK's own retries, or the answer is no
                answer.
            InvalidToolConstraints: the API, or this model, is known to refuse the offer; nothing
                was sent.
            TranscriptError: there is nothing to answer; nothing was sent.
        """
        record = RequestRecord()
        body = self._body(transcript, offering, options, record)
        try:
            reply = await self._transport.send(body, record.headers)
        except AdapterError as error:
            again = self._record_without(error, record, options)
            if again is None:
                raise
            record = again
            body = self._body(transcript, offering, options, record)
            reply = await self._transport.send(body, record.headers)
        return record.stamp(self._answer(reply))

    def respond_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """The same without an event loop, through a sync client."""
        record = RequestRecord()
        body = self._body(transcript, offering, options, record)
        try:
            reply = self._transport.send_sync(body, record.headers)
        except AdapterError as error:
            again = self._record_without(error, record, options)
            if again is None:
                raise
            record = again
            body = self._body(transcript, offering, options, record)
            reply = self._transport.send_sync(body, record.headers)
        return record.stamp(self._answer(reply))

    def open_stream(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ChunkStream:
        """One streamed request, sent when the stream is entered; the transcript isn't changed.
        Raises as `respond` does.
        """
        return self._open(self._transport.stream, RepeatedStream, transcript, offering, options)

    def open_stream_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ChunkStreamSync:
        """The same without an event loop, through a sync client."""
        return self._open(
            self._transport.stream_sync, RepeatedStreamSync, transcript, offering, options
        )

    def _open(
        self,
        send: Callable[[bytes, StreamDecoder, Headers], S],
        repeated: Callable[[S, Callable[[AdapterError], S | None]], S],
        transcript: Transcript,
        offering: ToolOffering | None,
        options: TurnOptions,
    ) -> S:
        """A streamed request, with an event loop or without: `send` gives its stream, `repeated`
        one that may be opened a second time.
        """
        record = RequestRecord()
        body = self._body(transcript, offering, options, record, stream=True)
        decoder = RecordingDecoder(self.stream_decoder(), record)
        stream = send(body, decoder, record.headers)
        if not self._may_repeat:
            return stream

        def repeat(error: AdapterError) -> S | None:
            again = self._record_without(error, record, options)
            if again is None:
                return None
            body = self._body(transcript, offering, options, again, stream=True)
            decoder.record = again
            return send(body, decoder, again.headers)

        return repeated(stream, repeat)

    @staticmethod
    @abstractmethod
    def stream_decoder() -> StreamDecoder:
        """A new decoder for one stream of your own: feed it the API's events, objects of the SDK or
        dicts.
        """

    def _body(
        self,
        transcript: Transcript,
        offering: ToolOffering | None,
        options: TurnOptions,
        record: RequestRecord | None = None,
        *,
        stream: bool = False,
    ) -> bytes:
        return join_body(self._request(transcript, offering, options, record, stream=stream))

    new_record: ClassVar[type[RequestRecord]] = RequestRecord
    """Makes a record for one request: what builds the body fills it in, its answer is stamped."""

    @property
    def host(self) -> str | None:
        """The authority of the address that requests go to, as `api.openai.com`; `None` where the
        client doesn't show it.

        Raises:
            AdapterError: no client can be made.
        """
        if self._authority is None:
            self._authority = self._find_host() or ""
            self._origin = TurnOrigin(self.api, self._authority or None, self.model)
        return self._authority or None

    @property
    def makes_spans(self) -> bool:
        """Whether the client makes OpenTelemetry spans of its requests by itself.

        Raises:
            AdapterError: no client can be made.
        """
        return self._method is not None and self._method.is_traced(self._transport.client())

    def _find_host(self) -> str | None:
        """The host of the client that was given, or of the one that will be made here."""
        client = self._transport.client()
        return None if client is None else host_of(getattr(client, "base_url", None))

    # Whether a request may be sent again without reasoning that the provider refused.
    _may_repeat: ClassVar[bool] = False

    def _record_without(
        self, error: AdapterError, record: RequestRecord, options: TurnOptions
    ) -> RequestRecord | None:
        """The record of the same request without the reasoning that this error refuses (rule PB10);
        `None` if the error is about something else, or is to reach the user.
        """
        return None

    def _request(
        self,
        transcript: Transcript,
        offering: ToolOffering | None,
        options: TurnOptions,
        record: RequestRecord | None = None,
        *,
        stream: bool = False,
    ) -> Fields:
        if record is None:
            record = RequestRecord()
        temperature, limit = options.temperature, options.max_output_tokens
        extra = {**self._extra, **options.extra} if self._extra else options.extra
        if options.output is not None:
            extra = {**self._with_output(options.output, extra), **unset_names(extra)}
        record.api = self.api
        record.model = extra.get("model", self.model)
        # Once, and not before the first request: only then does the SDK read the environment.
        record.host = self.host if self._authority is None else self._authority or None
        if record.model == self.model:
            record.origin = self._origin
        record.policy = options.on_prefix_change or self._on_prefix_change
        record.effort = options.effort or self._effort
        record.output = options.output
        fields = self._fields(
            transcript,
            offering,
            model=self.model,
            temperature=self._temperature if temperature is None else temperature,
            max_output_tokens=self._max_output_tokens if limit is None else limit,
            strict=self._strict,
            stream=stream,
            extra=extra,
            record=record,
        )
        if "model" not in fields:
            fields["model"] = encode(self.model)
        return fields

    def _answer(self, reply: SdkReply) -> AssistantTurn:
        try:
            return self._decode(reply_object(reply.content, self.api), reply.request_id)
        except AdapterError as error:
            error.request_id = error.request_id or reply.request_id
            raise

    @staticmethod
    @abstractmethod
    def _with_output(output: OutputSpec, extra: Mapping[str, Any]) -> dict[str, Any]:
        """The provider parameters with the schema of the answer among them."""

    @staticmethod
    @abstractmethod
    def _decode(reply: dict[str, Any], request_id: str | None) -> AssistantTurn:
        """The answer, or an `AdapterError` for what is none."""


def _full_signature(cls: type[SdkModel]) -> inspect.Signature:
    """The signature of an adapter's constructor, with the keywords of `RequestDefaults` one by one.

    Checkers and editors know them from the annotation; `help()` would show `**defaults` only.
    """
    known = inspect.signature(SdkModel.__init__).parameters
    own = signature_of(cls.__init__)
    shown: list[inspect.Parameter] = []
    for parameter in list(own.parameters.values())[1:]:
        is_defaults = RequestDefaults.__name__ in str(parameter.annotation)
        if is_defaults and parameter.kind is parameter.VAR_KEYWORD:
            shown += [known[name] for name in RequestDefaults.__annotations__]
        else:
            shown.append(parameter)
    return own.replace(parameters=shown, return_annotation=inspect.Signature.empty)


def _check_model_and_client(kind: type[SdkModel], model: Any, client: Any) -> None:
    """Refuse a model that isn't a name, and a client that can't be one of this API.

    Raises:
        TypeError: The message says what to write, also where the two were given in the other order.
        ValueError: The name is blank.
    """
    adapter = kind.__name__
    if not isinstance(model, str):
        swapped = model is not None and hasattr(model, kind._mark)
        hint = f"; the name comes first: {adapter}(model, client)" if swapped else ""
        raise TypeError(
            f"{adapter} takes the model's name as text, not {type(model).__name__}{hint}"
        )
    if not model.strip():
        raise ValueError(f"{adapter} needs the model's name, not {model!r}")
    if client is None:
        return
    if isinstance(client, type):
        raise TypeError(
            f"{adapter} takes a client, not the class {client.__name__}: make one, as "
            f"{client.__name__}()"
        )
    wanted = f"{adapter} takes a client of {kind.sdk} ({kind._clients})"
    for base in type(client).__mro__:
        package = base.__module__.partition(".")[0]
        if package == kind.sdk.partition(".")[0]:
            return
        if others := _adapters_of(package):
            raise TypeError(
                f"{wanted}, not {package}'s {type(client).__name__}; {others} speaks with that"
            )
    if not hasattr(client, kind._mark):
        raise TypeError(f"{wanted}, not {type(client).__name__}")


def _adapters_of(package: str) -> str:
    """The adapters whose clients are of an SDK with this package, as text."""
    adapters = [serving(name, "adapter") for name in api_names()]
    return " or ".join(
        [
            adapter.__name__
            for adapter in adapters
            if str(getattr(adapter, "sdk", "")).partition(".")[0] == package
        ]
    )


def _check_connection(made_here: Mapping[str, Any], headers: Any, timeout: Any) -> None:
    """Refuse addresses, keys, headers and timeouts of another type.

    Args:
        made_here: Texts by the names of their arguments, or `None`.
        headers: Texts by name, or `None`.
        timeout: Seconds, or `None`.
    """
    for name, value in made_here.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} takes text, not {type(value).__name__}")
    if headers is not None:
        if not isinstance(headers, Mapping):
            raise TypeError(
                f"headers takes a mapping of texts by name, not {type(headers).__name__}"
            )
        wrong = [
            name
            for name, value in headers.items()
            if not isinstance(name, str) or not isinstance(value, str)
        ]
        if wrong:
            raise TypeError(f"headers takes texts by name; that of {wrong[0]!r} isn't one")
    if timeout is not None:
        if not isinstance(timeout, (int, float)) or isinstance(timeout, bool):
            raise TypeError(f"timeout takes seconds as a number, not {timeout!r:.100}")
        if not timeout > 0:
            raise ValueError(f"timeout is more than 0 seconds, not {timeout}")
