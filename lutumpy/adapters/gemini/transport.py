"""The way of a request through google-genai: ready JSON bytes in, the reply or an open stream out.

The SDK's own methods are called, so that keys, Vertex AI's credentials, retries, timeouts and
proxies stay the SDK's. They are given a body that is theirs in name alone: `extra_body`, which is
public, replaces what they made of it.
"""

# What is hard here
# -----------------
# One `Client` serves both ways of calling: `client.models` without an event loop, and
# `client.aio.models` in one. So one client of the user's is enough for both; of its two halves
# `client.aio` is taken too, which can't do without a loop.
#
# Whole answers come back raw (`should_return_http_response`): the SDK's own model of an answer
# drops fields that it doesn't know, and raises for enums that it doesn't know. Streams come as
# models only, since the SDK gives nothing else; they are begun when they are entered
# (`begun_stream.py`).
#
# The SDK would ask again by itself when an answer says that it isn't complete (CONTINUATION), and
# run functions. Neither is its business here, so both are turned off.

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from lutumpy.adapters.gemini.begun_stream import BegunStream, BegunStreamSync, lower_headers
from lutumpy.adapters.gemini.decode import API
from lutumpy.adapters.gemini.errors import is_unread, missing_sdk, sdk_error, unread_chunk
from lutumpy.adapters.replies import SdkReply
from lutumpy.adapters.request_headers import NO_HEADERS, Headers, join_headers
from lutumpy.adapters.sdk_clients import OwnClients, OwnSyncClient
from lutumpy.adapters.sdk_stream import SdkStream, SdkStreamSync
from lutumpy.core.streaming import ChunkStream, ChunkStreamSync, StreamDecoder
from lutumpy.errors import AdapterError
from lutumpy.plain import json_values

__all__ = ["GenaiTransport"]


class GenaiTransport:
    """Sends ready JSON bytes through a client of google-genai.

    Args:
        client: The user's `Client`, or its `aio`; `None` makes one from the environment at the
            first request.
        make_async: Makes a `Client`; it imports the SDK.
        make_sync: The same, for requests without an event loop.
        headers: Further headers for every request.
        timeout: Seconds for each request; the client's own when `None`.
    """

    __slots__ = ("_client", "_headers", "_own", "_own_sync", "_timeout")

    def __init__(
        self,
        *,
        client: Any | None,
        make_async: Callable[[], Any],
        make_sync: Callable[[], Any],
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        self._client = client
        self._own = OwnClients(make_async, _close) if client is None else None
        self._own_sync = OwnSyncClient(make_sync)
        self._headers = dict(headers or {})
        self._timeout = timeout

    async def send(self, body: bytes, headers: Headers = NO_HEADERS) -> SdkReply:
        """Send `body`, a JSON object with the model in it.

        Raises:
            AdapterError: the request failed after the SDK's own retries, or no client can be made.
            TypeError: the client that was given can't be awaited.
        """
        models = await self._async_models()
        try:
            return _read_reply(
                await models.generate_content(
                    **self._arguments(body, headers, should_return_http_response=True)
                )
            )
        except Exception as error:
            _raise_in_our_words(error)
            raise

    def send_sync(self, body: bytes, headers: Headers = NO_HEADERS) -> SdkReply:
        """The same without an event loop."""
        models = self._sync_models()
        try:
            arguments = self._arguments(body, headers, should_return_http_response=True)
            return _read_reply(models.generate_content(**arguments))
        except Exception as error:
            _raise_in_our_words(error)
            raise

    async def count(self, body: bytes) -> int:
        """The tokens of a request.

        Raises:
            AdapterError: the request failed.
        """
        client = await self._async_client()
        try:
            arguments = self._count_arguments(body, client)
            return _read_count(
                await _models_of(client, _is_async(client)).count_tokens(**arguments)
            )
        except Exception as error:
            _raise_in_our_words(error)
            raise

    def count_sync(self, body: bytes) -> int:
        """The same without an event loop."""
        client = self._sync_client()
        try:
            return _read_count(client.models.count_tokens(**self._count_arguments(body, client)))
        except Exception as error:
            _raise_in_our_words(error)
            raise

    def stream(
        self, body: bytes, decoder: StreamDecoder, headers: Headers = NO_HEADERS
    ) -> ChunkStream:
        """Send `body` when the result is entered; it gives the chunks as objects of the SDK.

        Errors of the SDK and of the connection are raised as `AdapterError` with `.partial`.
        """

        async def open_response() -> Any:
            models = await self._async_models()
            stream = await models.generate_content_stream(
                **self._arguments(body, headers, automatic_continuation=False)
            )
            try:
                return await BegunStream.begin(stream)
            except Exception as error:
                _raise_first_chunk(error)
                raise

        return SdkStream(open_response, decoder, _stream_error)

    def stream_sync(
        self, body: bytes, decoder: StreamDecoder, headers: Headers = NO_HEADERS
    ) -> ChunkStreamSync:
        """The same without an event loop."""

        def open_response() -> Any:
            stream = self._sync_models().generate_content_stream(
                **self._arguments(body, headers, automatic_continuation=False)
            )
            try:
                return BegunStreamSync.begin(stream)
            except Exception as error:
                _raise_first_chunk(error)
                raise

        return SdkStreamSync(open_response, decoder, _stream_error)

    def client(self) -> Any:
        """The client that requests go through; `None` before one is made here."""
        return self._client if self._client is not None else self._own_sync.known

    async def aclose(self) -> None:
        """Close the clients that were made here, also the one for requests without a loop."""
        if self._own is not None:
            await self._own.aclose()
        self.close()

    def close(self) -> None:
        """Close the client that was made here for requests without a loop."""
        self._own_sync.close()

    # --- clients ----------------------------------------------------------------------------------

    async def _async_client(self) -> Any:
        if self._own is None:
            return self._client
        try:
            return await self._own.current()
        except Exception as error:
            _raise_in_our_words(error, making=True)
            raise

    async def _async_models(self) -> Any:
        client = await self._async_client()
        models = _models_of(client, _is_async(client))
        if models is None:
            raise TypeError(
                f"{type(client).__name__} has no `aio`: use collect_sync() or respond_sync(), or "
                "give Gemini a genai.Client"
            )
        return models

    def _sync_client(self) -> Any:
        if self._client is not None:
            if _is_async(self._client):
                raise TypeError(
                    f"{type(self._client).__name__} is an async client: use collect() or "
                    "respond(), or give Gemini the genai.Client that it belongs to"
                )
            return self._client
        try:
            return self._own_sync.current()
        except Exception as error:
            _raise_in_our_words(error, making=True)
            raise

    def _sync_models(self) -> Any:
        return self._sync_client().models

    # --- requests ---------------------------------------------------------------------------------

    def _arguments(self, body: bytes, headers: Headers, **config: Any) -> dict[str, Any]:
        fields = json_values.decode(body)
        model = fields.pop("model", "")
        return {
            "model": model,
            # Replaced by the body.
            "contents": "-",
            "config": {
                "http_options": self._http_options(fields, headers),
                "automatic_function_calling": {"disable": True},
                **config,
            },
        }

    def _count_arguments(self, body: bytes, client: Any) -> dict[str, Any]:
        fields = json_values.decode(body)
        model = str(fields.pop("model", ""))
        if getattr(client, "vertexai", False):
            kept = ("contents", "systemInstruction", "tools", "generationConfig")
            counted = {name: fields[name] for name in kept if name in fields}
        else:
            # Beside a whole request, there are no contents; an empty list says so.
            named = model if "/" in model else f"models/{model}"
            counted = {"contents": [], "generateContentRequest": {"model": named, **fields}}
        return {
            "model": model,
            "contents": "-",
            "config": {"http_options": self._http_options(counted)},
        }

    def _http_options(self, body: dict[str, Any], headers: Headers = NO_HEADERS) -> dict[str, Any]:
        options: dict[str, Any] = {"extra_body": body}
        if self._headers or headers:
            options["headers"] = join_headers(self._headers, headers)
        if self._timeout is not None:
            options["timeout"] = max(1, round(self._timeout * 1000))
        return options


async def _close(client: Any) -> None:
    """Close both halves."""
    await client.aio.aclose()
    client.close()


def _is_async(client: Any) -> bool:
    """Whether a client is the half for event loops, `client.aio`."""
    return not hasattr(client, "aio") and inspect.iscoroutinefunction(
        getattr(getattr(client, "models", None), "generate_content", None)
    )


def _models_of(client: Any, is_async: bool) -> Any:
    return client.models if is_async else getattr(getattr(client, "aio", None), "models", None)


def _read_reply(reply: Any) -> SdkReply:
    response = getattr(reply, "sdk_http_response", None)
    body = getattr(response, "body", None)
    if isinstance(body, str):
        content = json_values.clean_text(body).encode()
    elif isinstance(body, bytes):
        content = body
    else:
        # A client of the user's own, as in tests, may give a ready answer.
        from lutumpy.adapters.gemini.sdk_objects import response_object

        content = json_values.encode(response_object(reply, API))
    return SdkReply(content, lower_headers(reply).get("x-request-id"))


def _read_count(reply: Any) -> int:
    found = getattr(reply, "total_tokens", None)
    if not isinstance(found, int):
        raise AdapterError(f"{API}: the answer names no number of tokens", provider=API)
    return found


def _stream_error(error: Exception, reading: bool) -> AdapterError | None:
    found = missing_sdk(error) if isinstance(error, ImportError) else sdk_error(error)
    if reading and (found is None or is_unread(error)):
        return unread_chunk(error)
    return found


def _raise_first_chunk(error: Exception) -> None:
    """Raise what came in place of a stream's first chunk in our words; a bug passes."""
    found = _stream_error(error, reading=True)
    if found is not None:
        raise found from error


def _raise_in_our_words(error: Exception, *, making: bool = False) -> None:
    """Raise what the SDK raised as an `AdapterError`; everything else is a bug or the caller's, and
    passes.
    """
    found = missing_sdk(error) if making and isinstance(error, ImportError) else None
    found = found or sdk_error(error, making=making)
    if found is not None:
        raise found from error
