"""The way of a request to an API without an SDK: ready JSON bytes in, the reply or an open stream
out.

It goes through httpx2, which the SDKs of OpenAI and Anthropic bring with them. It is imported when
the first client has to be made.
"""

# What is hard here
# -----------------
# A request is tried several times, with and without an event loop. What decides about the tries is
# `Retries`, which does no I/O; the two drivers (`_post` and `_post_sync`) only send and wait:
#
#   a try ends in          | then
#   -----------------------+-------------------------------------------------------------------
#   a status below 300     | its bytes are the answer; nothing is sent again from here on, also
#                          | if a stream breaks off later: its first events may be shown already
#   another status         | it is sent again, or is a `StatusError`
#   no connection, no time | it is sent again, or what httpx2 raised passes on
#
# The streams are those of the SDKs (`SdkStream`), which take a splitter of the stream's own.

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

from lutumpy.adapters.http_lines import LineSplitter
from lutumpy.adapters.http_retries import Retries
from lutumpy.adapters.provider_errors import adapter_error, is_sdk_error, shorten_text
from lutumpy.adapters.replies import SdkReply, read_reply
from lutumpy.adapters.request_headers import NO_HEADERS, Headers, join_headers
from lutumpy.adapters.sdk_clients import ClientHolder, close_httpx
from lutumpy.adapters.sdk_events import EventError, EventSplitter, Splitter
from lutumpy.adapters.sdk_stream import SdkStream, SdkStreamSync
from lutumpy.core.streaming import ChunkStream, ChunkStreamSync, StreamDecoder
from lutumpy.errors import AdapterError
from lutumpy.plain import json_values

__all__ = ["HttpTransport", "StreamFormat"]

StreamFormat: TypeAlias = Literal["events", "lines"]
"""How the events of a stream are told apart: server-sent events (`data: {...}`), or one JSON object
on each line.
"""

# As the SDKs have them: a model may think for minutes, but a connection is there at once.
_TIMEOUT = 600.0
_CONNECT_TIMEOUT = 5.0
_CONNECTIONS = 500
_IDLE_CONNECTIONS = 100


class StatusError(Exception):
    """An answer with the status of an error; has what the errors of SDKs have."""

    def __init__(self, response: Any) -> None:
        self.status_code: int = response.status_code
        self.response: Any = response
        self.body: Any = _read_body(response)
        super().__init__(str(getattr(response, "reason_phrase", "")) or "the request failed")


class _Stream(NamedTuple):
    """An open stream, as `SdkStream` takes one; what `close` gives is awaited where it can be."""

    response: Any
    splitter: Splitter
    close: Callable[[], Any]


class HttpTransport(ClientHolder):
    """Sends ready JSON bytes to one address, with retries as the SDKs have them, and keeps the
    connections open.

    A request is sent again (`max_retries` times at most, with pauses that double, up to eight
    seconds) when no connection or no answer came, and after the statuses 408, 409, 429 and from 500
    on. `retry-after` and `x-should-retry` of an answer are heeded. A stream that broke off isn't
    asked for again. Whatever fails in the end is an `AdapterError`.

    Args:
        provider: The adapter's name, for errors.
        url: The address: scheme, host and path.
        client: An `httpx2.AsyncClient` or `httpx2.Client` of the user's; `None` makes them at the
            first request. Where it has a `base_url` of its own, that takes the place of the host in
            `url`.
        headers: Further headers for every request, as `Authorization`.
        timeout: Seconds for each request; the client's own when `None`, which are 600 for one that
            is made here, 5 of them for the connection.
        max_retries: How often a request is sent again at most.
        stream_format: How streams are written.
        explain: Gives a sentence for an error that says what can be done about it, or `None`. It is
            added to the message.
    """

    __slots__ = (
        "_explain",
        "_format",
        "_headers",
        "_max_retries",
        "_provider",
        "_timeout",
        "_url",
    )

    def __init__(
        self,
        provider: str,
        url: str,
        *,
        client: Any | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        max_retries: int = 2,
        stream_format: StreamFormat = "events",
        explain: Callable[[AdapterError], str | None] | None = None,
    ) -> None:
        super().__init__(
            client,
            _is_async,
            partial(_make_client, "AsyncClient"),
            partial(_make_client, "Client"),
            close_httpx,
        )
        self._provider = provider
        self._url = url
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        self._timeout = timeout
        self._max_retries = max_retries
        self._format = stream_format
        self._explain = explain

    async def send(self, body: bytes, headers: Headers = NO_HEADERS) -> SdkReply:
        """Post `body`, a JSON object.

        Raises:
            AdapterError: the request failed after its retries, or no client can be made.
            TypeError: the client of the user's is a sync one.
        """
        retries = Retries(self._max_retries)
        try:
            return read_reply(await self._post(body, retries, headers, stream=False))
        except Exception as error:
            self._raise_in_our_words(error, retries)
            raise

    def send_sync(self, body: bytes, headers: Headers = NO_HEADERS) -> SdkReply:
        """The same without an event loop.

        Raises:
            TypeError: the client of the user's is an async one.
        """
        retries = Retries(self._max_retries)
        try:
            return read_reply(self._post_sync(body, retries, headers, stream=False))
        except Exception as error:
            self._raise_in_our_words(error, retries)
            raise

    def stream(
        self, body: bytes, decoder: StreamDecoder, headers: Headers = NO_HEADERS
    ) -> ChunkStream:
        """Post `body`, which asks for a stream, when the result is entered; it gives the events as
        JSON values.

        What fails is raised as `AdapterError` with `.partial`.
        """
        retries = Retries(self._max_retries)

        async def open_response() -> _Stream:
            response = await self._post(body, retries, headers, stream=True)
            return _Stream(response, self._make_splitter(response), response.aclose)

        return SdkStream(open_response, decoder, self._error_reader(retries))

    def stream_sync(
        self, body: bytes, decoder: StreamDecoder, headers: Headers = NO_HEADERS
    ) -> ChunkStreamSync:
        """The same without an event loop."""
        retries = Retries(self._max_retries)

        def open_response() -> _Stream:
            response = self._post_sync(body, retries, headers, stream=True)
            return _Stream(response, self._make_splitter(response), response.close)

        return SdkStreamSync(open_response, decoder, self._error_reader(retries))

    # --- one request ------------------------------------------------------------------------------

    async def _post(self, body: bytes, retries: Retries, headers: Headers, *, stream: bool) -> Any:
        client = await self._async_client_here()
        while True:
            try:
                response = await client.send(self._build(client, body, headers), stream=stream)
            except Exception as error:
                pause = retries.after_error(error)
                if pause is None:
                    raise
            else:
                if response.status_code < 300:
                    return response
                try:
                    pause = retries.after_status(response.status_code, response.headers)
                    if pause is None:
                        await response.aread()
                        raise StatusError(response)
                finally:
                    await response.aclose()
            await _sleep(pause)

    def _post_sync(self, body: bytes, retries: Retries, headers: Headers, *, stream: bool) -> Any:
        client = self._sync_client_here()
        while True:
            try:
                response = client.send(self._build(client, body, headers), stream=stream)
            except Exception as error:
                pause = retries.after_error(error)
                if pause is None:
                    raise
            else:
                if response.status_code < 300:
                    return response
                try:
                    pause = retries.after_status(response.status_code, response.headers)
                    if pause is None:
                        response.read()
                        raise StatusError(response)
                finally:
                    response.close()
            time.sleep(pause)

    def _build(self, client: Any, body: bytes, headers: Headers) -> Any:
        options: dict[str, Any] = {} if self._timeout is None else {"timeout": self._timeout}
        url = self._url
        if self._own is None and str(getattr(client, "base_url", "")):
            url = "/" + url.partition("://")[2].partition("/")[2]
        return client.build_request(
            "POST", url, content=body, headers=join_headers(self._headers, headers), **options
        )

    def _make_splitter(self, response: Any) -> Splitter:
        if self._format == "lines":
            return LineSplitter()
        return EventSplitter(response, named=False)

    # --- errors -----------------------------------------------------------------------------------

    def _error_reader(self, retries: Retries) -> Callable[[Exception, bool], AdapterError | None]:
        def read_error(error: Exception, reading: bool) -> AdapterError | None:
            if reading and isinstance(error, (ValueError, RecursionError)):
                return AdapterError(
                    f"{self._provider}: the stream holds an event that is not JSON: "
                    f"{shorten_text(str(error))}",
                    provider=self._provider,
                    retryable=True,
                )
            return self._in_our_words(error, retries)

        return read_error

    def _raise_in_our_words(self, error: Exception, retries: Retries) -> None:
        """Raise what httpx2 raised as an `AdapterError`; a bug, or something of the caller's,
        passes.
        """
        found = self._in_our_words(error, retries)
        if found is not None:
            raise found from error

    def _in_our_words(self, error: Exception, retries: Retries) -> AdapterError | None:
        if isinstance(error, ModuleNotFoundError) and error.name == "httpx2":
            return AdapterError(
                f"{self._provider}: requests need httpx2; install it with: "
                "python -m pip install httpx2",
                provider=self._provider,
                sent=False,
            )
        if not isinstance(error, (StatusError, EventError)) and not is_sdk_error(error):
            return None
        found = adapter_error(error, self._provider)
        # A try before the last one may have arrived.
        found.sent = found.sent or retries.was_sent
        more = None if self._explain is None else self._explain(found)
        if more:
            found.args = (f"{found}; {more}",)
        return found


def _is_async(client: Any) -> bool:
    return inspect.iscoroutinefunction(getattr(client, "send", None))


def _make_client(kind: str) -> Any:
    import httpx2

    return getattr(httpx2, kind)(
        timeout=httpx2.Timeout(_TIMEOUT, connect=_CONNECT_TIMEOUT),
        limits=httpx2.Limits(
            max_connections=_CONNECTIONS, max_keepalive_connections=_IDLE_CONNECTIONS
        ),
        follow_redirects=True,
    )


async def _sleep(seconds: float) -> None:
    import anyio  # httpx2 stands on it; it knows on which event loop this runs

    await anyio.sleep(seconds)


def _read_body(response: Any) -> Any:
    try:
        return json_values.decode(response.content)
    except (ValueError, RecursionError):
        return response.text
