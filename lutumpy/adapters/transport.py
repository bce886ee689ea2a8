"""The way of a request through an SDK's client: ready JSON bytes in, the reply or an open stream
out.

The bytes go through the SDK client's own `post`, so that keys, retries, timeouts, proxies and
middleware stay the SDK's. The SDK itself is imported only when a client has to be made, or by
whoever made the one that was given.
"""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from lutumpy.adapters.provider_errors import adapter_error, is_sdk_error, shorten_text
from lutumpy.adapters.replies import SdkReply, read_reply
from lutumpy.adapters.request_headers import NO_HEADERS, Headers, join_headers
from lutumpy.adapters.sdk_clients import ClientHolder
from lutumpy.adapters.sdk_events import EventError
from lutumpy.adapters.sdk_spans import TracedMethod
from lutumpy.adapters.sdk_stream import SdkStream, SdkStreamSync
from lutumpy.core.sdk_retries import note_retries_of
from lutumpy.core.streaming import ChunkStream, ChunkStreamSync, StreamDecoder
from lutumpy.errors import AdapterError
from lutumpy.plain import json_values

__all__ = ["SdkTransport", "Transport"]

_PLAIN_MODULES = frozenset(
    {f"{sdk}.{name}" for sdk in ("openai", "anthropic") for name in ("_client", "_base_client")}
)
# Methods of the SDKs' clients that see the body. A client that overrides one of them, as those for
# Azure, Bedrock and Vertex do, expects an object there, and gets the bytes parsed.
_REWRITERS = ("_prepare_options", "_build_request", "_prepare_url")


class Transport(Protocol):
    """What sends the requests of an adapter: ready JSON bytes in, the reply or an open stream out.

    `SdkTransport` is one; its methods say more.
    """

    async def send(self, body: bytes, headers: Headers = NO_HEADERS) -> SdkReply: ...

    def send_sync(self, body: bytes, headers: Headers = NO_HEADERS) -> SdkReply: ...

    def stream(
        self, body: bytes, decoder: StreamDecoder, headers: Headers = NO_HEADERS
    ) -> ChunkStream: ...

    def stream_sync(
        self, body: bytes, decoder: StreamDecoder, headers: Headers = NO_HEADERS
    ) -> ChunkStreamSync: ...

    def client(self) -> Any: ...

    async def aclose(self) -> None: ...

    def close(self) -> None: ...


class SdkTransport(ClientHolder):
    """Sends ready JSON bytes through an SDK client.

    Args:
        provider: The adapter's name, for errors.
        path: The path below the client's base URL, as the SDK spells it: `/chat/completions`.
        client: The user's client, async or sync; `None` makes one from the environment at the first
            request.
        make_async: Makes an async client; it imports the SDK.
        make_sync: The same for a sync client.
        headers: Further headers for every request.
        timeout: Seconds for each request; the client's own when `None`.
        method: The SDK's own method for such a request, where it makes a span of it.
    """

    __slots__ = ("_headers", "_method", "_path", "_provider", "_timeout")

    def __init__(
        self,
        provider: str,
        path: str,
        *,
        client: Any | None,
        make_async: Callable[[], Any],
        make_sync: Callable[[], Any],
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        method: TracedMethod | None = None,
    ) -> None:
        super().__init__(client, _is_async, make_async, make_sync)
        self._method = method
        self._provider = provider
        self._path = path
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        self._timeout = timeout

    async def send(self, body: bytes, headers: Headers = NO_HEADERS) -> SdkReply:
        """Post `body`, a JSON object.

        Raises:
            AdapterError: the request failed after the SDK's own retries, or no client can be made.
            TypeError: the client that was given is a sync one.
        """
        try:
            client = await self._async_client_here()
            reply = await client.post(self._path, **self._post_arguments(client, body, headers))
            note_retries_of(reply)
            return read_reply(reply)
        except Exception as error:
            self._raise_in_our_words(error)
            raise

    def send_sync(self, body: bytes, headers: Headers = NO_HEADERS) -> SdkReply:
        """Post `body` without an event loop.

        Raises:
            AdapterError: the request failed after the SDK's own retries, or no client can be made.
            TypeError: the client that was given is an async one.
        """
        try:
            client = self._sync_client_here()
            reply = client.post(self._path, **self._post_arguments(client, body, headers))
            note_retries_of(reply)
            return read_reply(reply)
        except Exception as error:
            self._raise_in_our_words(error)
            raise

    async def ask(self, path: str, body: bytes | None, headers: Headers = NO_HEADERS) -> SdkReply:
        """Post to another path than that of answers; without a body, get what is there.

        Raises:
            AdapterError: as `send`.
            TypeError: as `send`.
        """
        try:
            client = await self._async_client_here()
            return read_reply(await self._send_to(client, path, body, headers))
        except Exception as error:
            self._raise_in_our_words(error)
            raise

    def ask_sync(self, path: str, body: bytes | None, headers: Headers = NO_HEADERS) -> SdkReply:
        """The same without an event loop."""
        try:
            client = self._sync_client_here()
            return read_reply(self._send_to(client, path, body, headers))
        except Exception as error:
            self._raise_in_our_words(error)
            raise

    def _send_to(self, client: Any, path: str, body: bytes | None, headers: Headers) -> Any:
        # Rarely asked, so the body is always an object, which every client takes.
        cast_to, options = _response_class(type(client)), self._options(headers)
        if body is None:
            return client.get(path, cast_to=cast_to, options=options)
        value = json_values.decode(body)
        return client.post(path, body=value, cast_to=cast_to, options=options)

    def stream(
        self, body: bytes, decoder: StreamDecoder, headers: Headers = NO_HEADERS
    ) -> ChunkStream:
        """Post `body`, a JSON object that asks for a stream, when the result is entered; it gives
        the events as dicts.

        Errors of the SDK, of the connection and of the event format are raised as `AdapterError`
        with `.partial`.
        """

        async def open_response() -> Any:
            client = await self._async_client_here()
            return await client.post(
                self._path, **self._stream_post_arguments(client, body, headers, "AsyncStream")
            )

        return SdkStream(open_response, decoder, self._read_error)

    def stream_sync(
        self, body: bytes, decoder: StreamDecoder, headers: Headers = NO_HEADERS
    ) -> ChunkStreamSync:
        """The same without an event loop."""

        def open_response() -> Any:
            client = self._sync_client_here()
            return client.post(
                self._path, **self._stream_post_arguments(client, body, headers, "Stream")
            )

        return SdkStreamSync(open_response, decoder, self._read_error)

    def _post_arguments(self, client: Any, body: bytes, headers: Headers) -> dict[str, Any]:
        options = self._options(headers)
        traced = (
            None if self._method is None else self._method.post_arguments(client, body, options)
        )
        if traced is not None:
            return traced
        kind = type(client)
        known = _CLIENT_KINDS.get(kind)
        if known is None:
            known = _CLIENT_KINDS[kind] = (_rewrites_body(kind), _response_class(kind))
        as_object, cast_to = known
        if as_object:
            return {"body": json_values.decode(body), "cast_to": cast_to, "options": options}
        return {"content": body, "cast_to": cast_to, "options": options}

    def _stream_post_arguments(
        self, client: Any, body: bytes, headers: Headers, stream_class: str
    ) -> dict[str, Any]:
        if self._method is not None:
            traced = self._method.post_arguments(client, body, self._options(headers), stream=True)
            if traced is not None:
                return traced
        arguments = self._post_arguments(client, body, headers)
        return arguments | {
            "cast_to": object,
            "stream": True,
            "stream_cls": _stream_class(type(client), stream_class),
        }

    def _options(self, headers: Headers) -> dict[str, Any]:
        wanted = self._headers if not headers else join_headers(self._headers, headers)
        options: dict[str, Any] = {"headers": wanted}
        if self._timeout is not None:
            options["timeout"] = self._timeout
        return options

    def _read_error(self, error: Exception, reading: bool) -> AdapterError | None:
        """What was raised while a stream was opened or read; `None` for a bug, or something of the
        caller's.
        """
        if isinstance(error, EventError) or is_sdk_error(error):
            if not reading:
                note_retries_of(error)
            return adapter_error(error, self._provider)
        if reading and isinstance(
            error, (ValueError, RecursionError)
        ):  # from the SDK's own parsing of an event
            return AdapterError(
                f"{self._provider}: the stream holds an event that is not JSON: "
                f"{shorten_text(str(error))}",
                provider=self._provider,
                retryable=True,
            )
        return None

    def _raise_in_our_words(self, error: Exception) -> None:
        """Raise what the SDK raised as an `AdapterError`; everything else is a bug or the caller's,
        and passes.
        """
        if is_sdk_error(error):
            note_retries_of(error)
            raise adapter_error(error, self._provider) from error


# (does it rewrite the body, which class to ask for as the answer) by class of the client.
# Looking through the methods of a class takes longer than the rest of preparing a request, and a
# program has few such classes, so what was found is kept as long as the class lives.
_CLIENT_KINDS: weakref.WeakKeyDictionary[type, tuple[bool, Any]] = weakref.WeakKeyDictionary()


def _is_async(client: Any) -> bool:
    names = {kind.__name__ for kind in type(client).__mro__}
    if "AsyncAPIClient" in names:
        return True
    return "SyncAPIClient" not in names and inspect.iscoroutinefunction(
        getattr(client, "post", None)
    )


def _rewrites_body(kind: type) -> bool:
    """Whether the client reads or changes the body as an object, as those for Azure, Bedrock and
    Vertex do.
    """
    for base in kind.__mro__:
        for name in _REWRITERS:
            method = base.__dict__.get(name)
            # The method's module, since the SDKs set that of their public classes to the package
            # itself.
            if method is not None and getattr(method, "__module__", "") not in _PLAIN_MODULES:
                return True
    return False


def _response_class(kind: type) -> Any:
    """The response class of the HTTP stack that this client's SDK uses: asked for, it gives the
    answer unparsed.
    """
    for base in kind.__mro__:
        if base.__module__.endswith("._base_client"):
            module = sys.modules[base.__module__]
            stack = getattr(module, "httpx2", None) or getattr(module, "httpx", None)
            if stack is not None:
                return stack.Response
    return bytes


def _stream_class(kind: type, name: str) -> Any:
    """The class of an event stream that this client's SDK uses, of plain objects; `None` for a
    client of no SDK.
    """
    for base in kind.__mro__:
        if base.__module__.endswith("._base_client"):
            found = getattr(sys.modules[base.__module__], name, None)
            return None if found is None else found[object]
    return None
