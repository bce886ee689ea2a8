"""The way of a request through boto3: ready JSON bytes in, the raw answer or an open stream out.

The client's own methods are called, so that credentials, regions, signatures, retries, timeouts and
proxies stay the SDK's. Its public events put the body in (`before-call`) and show the answer as it
came (`before-parse`), so that an older service model neither refuses nor loses a field.
"""

# What is hard here
# -----------------
# Handlers belong to a client, and requests run side by side. So the handlers are registered once
# for each client, and find their request in a context variable: boto3 calls them in the thread of
# the request, aiobotocore in its task. Requests of the user's own have none there, and pass.
#
# What botocore makes of an answer isn't needed, and it raises for one that isn't as its service
# model has it, in any words: `AttributeError` for a number in the place of an object. Where it
# fails between `before-parse` and `response-received`, the answer is read here all the same, or
# told with its status (`_Request.is_unread`).
#
# boto3 has no async client. With one of aiobotocore requests are awaited; with one of boto3 they
# run in threads.

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from lutumpy.adapters.bedrock.errors import (
    OPERATIONS,
    broken_reply,
    missing_sdk,
    sdk_error,
    unread_error,
    unread_event,
)
from lutumpy.adapters.replies import SdkReply
from lutumpy.adapters.request_headers import NO_HEADERS, Headers, join_headers
from lutumpy.adapters.sdk_clients import OwnSyncClient
from lutumpy.adapters.sdk_stream import SdkStream, SdkStreamSync
from lutumpy.core.sdk_retries import note_retries
from lutumpy.core.streaming import ChunkStream, ChunkStreamSync, StreamDecoder
from lutumpy.errors import AdapterError, NotSupportedError
from lutumpy.plain import json_values

__all__ = ["BotoTransport"]

# What of a request is counted: the members of the SDK's `ConverseTokensRequest`.
_COUNTED = ("messages", "system", "toolConfig", "additionalModelRequestFields")
_HANDLER = "lutumpy"
_END: Any = object()


class _Request:
    """One request on its way.

    Attributes:
        body: What is sent.
        headers: Further headers.
        raw: The answer as it came.
        status: The HTTP status that it came with.
        raw_headers: The headers that it came with.
        is_unread: Whether the SDK has begun to read the answer, and didn't come to its end.
    """

    __slots__ = ("body", "headers", "is_unread", "raw", "raw_headers", "status")

    def __init__(self, body: bytes, headers: Mapping[str, str]) -> None:
        self.body = body
        self.headers = headers
        self.raw: bytes | None = None
        self.status = 0
        self.raw_headers: Mapping[str, str] = {}
        self.is_unread = False


_CURRENT: ContextVar[_Request | None] = ContextVar("lutumpy_bedrock_request", default=None)


def _put_body(params: dict[str, Any], **_: Any) -> None:
    request = _CURRENT.get()
    if request is not None:
        params["body"] = request.body
        params["headers"].update(request.headers)


def _keep_answer(response_dict: Mapping[str, Any], **_: Any) -> None:
    request = _CURRENT.get()
    body = response_dict.get("body")
    if request is not None and isinstance(body, bytes):
        request.raw = body
        request.status = response_dict["status_code"]
        request.raw_headers = response_dict["headers"]
        request.is_unread = True


def _note_read(**_: Any) -> None:
    request = _CURRENT.get()
    if request is not None:
        request.is_unread = False


class BotoTransport:
    """Sends ready JSON bytes through a client of boto3 or aiobotocore.

    Args:
        client: The user's client for `bedrock-runtime`; `None` makes one at the first request.
        make_async: The same as `make_sync`, since boto3 has no other.
        make_sync: Makes a client; it imports the SDK.
        headers: Further headers for every request.
        timeout: Seconds for each request; with a client made here only.
    """

    __slots__ = ("_client", "_headers", "_own")

    def __init__(
        self,
        *,
        client: Any | None,
        make_async: Callable[[], Any],
        make_sync: Callable[[], Any],
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        if client is not None and timeout is not None:
            raise TypeError(
                "timeout is for a client made here; give a client of boto3 its own, as "
                "config=Config(read_timeout=...)"
            )
        self._client = client
        self._own = OwnSyncClient(make_sync)
        self._headers = dict(headers or {})

    async def send(self, body: bytes, headers: Headers = NO_HEADERS) -> SdkReply:
        """Send `body`, a JSON object with the model in it.

        Raises:
            AdapterError: the request failed after the SDK's own retries, or no client can be made.
        """
        if self._client is None or not _is_async(self._client):
            sent: SdkReply = await _in_thread(lambda: self.send_sync(body, headers))
            return sent
        model, request = self._prepare(body, headers)
        token = _CURRENT.set(request)
        try:
            reply = await _ready(self._client).converse(**_arguments(model))
            return _read_reply(reply, request)
        except Exception as error:
            return _read_unread(error, request)
        finally:
            _CURRENT.reset(token)

    def send_sync(self, body: bytes, headers: Headers = NO_HEADERS) -> SdkReply:
        """The same without an event loop.

        Raises:
            AdapterError: the request failed after the SDK's own retries, or no client can be made.
            TypeError: the client that was given is one of aiobotocore.
        """
        client = self._sync_client()
        model, request = self._prepare(body, headers)
        token = _CURRENT.set(request)
        try:
            return _read_reply(client.converse(**_arguments(model)), request)
        except Exception as error:
            return _read_unread(error, request)
        finally:
            _CURRENT.reset(token)

    async def count(self, body: bytes) -> int:
        """The tokens of a request.

        Raises:
            AdapterError: the request failed.
            NotSupportedError: boto3 is older than that call; nothing was sent.
        """
        if self._client is None or not _is_async(self._client):
            counted: int = await _in_thread(lambda: self.count_sync(body))
            return counted
        try:
            return _read_count(await _count_of(self._client)(**_count_arguments(body)))
        except Exception as error:
            _raise_in_our_words(error)
            raise

    def count_sync(self, body: bytes) -> int:
        """The same without an event loop."""
        client = self._sync_client()
        try:
            return _read_count(_count_of(client)(**_count_arguments(body)))
        except Exception as error:
            _raise_in_our_words(error)
            raise

    def stream(
        self, body: bytes, decoder: StreamDecoder, headers: Headers = NO_HEADERS
    ) -> ChunkStream:
        """Send `body` when the result is entered; it gives the events as the SDK does.

        Errors of the SDK and of the connection are raised as `AdapterError` with `.partial`.
        """

        async def open_response() -> Any:
            if self._client is None or not _is_async(self._client):
                return _Threaded(await _in_thread(lambda: self._open(body, headers)))
            model, request = self._prepare(body, headers)
            token = _CURRENT.set(request)
            try:
                return _Opened(await _ready(self._client).converse_stream(**_arguments(model)))
            except Exception as error:
                _raise_answered(error, request)
                raise
            finally:
                _CURRENT.reset(token)

        return SdkStream(open_response, decoder, _read_error)

    def stream_sync(
        self, body: bytes, decoder: StreamDecoder, headers: Headers = NO_HEADERS
    ) -> ChunkStreamSync:
        """The same without an event loop."""
        return SdkStreamSync(lambda: self._open(body, headers), decoder, _read_error)

    def _open(self, body: bytes, headers: Headers) -> _Opened:
        client = self._sync_client()
        model, request = self._prepare(body, headers)
        token = _CURRENT.set(request)
        try:
            return _Opened(client.converse_stream(**_arguments(model)))
        except Exception as error:
            _raise_answered(error, request)
            raise
        finally:
            _CURRENT.reset(token)

    def client(self) -> Any:
        """The client that requests go through; `None` before one is made here."""
        return self._client if self._client is not None else self._own.known

    async def aclose(self) -> None:
        """Close the client that was made here; the next request makes another."""
        self.close()

    def close(self) -> None:
        """Close the client that was made here; the next request makes another."""
        self._own.close()

    def _sync_client(self) -> Any:
        if self._client is not None:
            if _is_async(self._client):
                raise TypeError(
                    f"{type(self._client).__name__} is an async client: use collect() or "
                    "respond(), or give BedrockConverse a client of boto3"
                )
            return _ready(self._client)
        try:
            client = self._own.current()
        except Exception as error:
            if isinstance(error, ImportError):
                raise missing_sdk(error) from error
            _raise_in_our_words(error)
            raise
        return _ready(client)

    def _prepare(self, body: bytes, headers: Headers) -> tuple[str, _Request]:
        fields = json_values.decode(body)
        model = str(fields.pop("model", ""))
        return model, _Request(json_values.encode(fields), join_headers(self._headers, headers))


class _Opened:
    """An open stream with what a stream of other SDKs has."""

    def __init__(self, answer: Any) -> None:
        _note_retries(answer)
        self.response = _Headers(answer)
        self._stream = answer["stream"]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._stream)

    def __aiter__(self) -> AsyncIterator[Any]:
        return aiter(self._stream)

    def close(self) -> Any:
        """Give the connection up; what aiobotocore gives is awaited."""
        found = self._stream.close()
        return found if inspect.isawaitable(found) else None


class _Headers:
    def __init__(self, answer: Any) -> None:
        request_id = _request_id(answer)
        self.headers: dict[str, str] = {} if request_id is None else {"x-request-id": request_id}


class _Threaded:
    """A stream of boto3 for an event loop: each event is waited for in a thread."""

    def __init__(self, opened: _Opened) -> None:
        self.response = opened.response
        self._opened = opened
        self._events = iter(opened)

    def __aiter__(self) -> _Threaded:
        return self

    async def __anext__(self) -> Any:
        event = await _in_thread(lambda: next(self._events, _END))
        if event is _END:
            raise StopAsyncIteration
        return event

    def close(self) -> None:
        """Give the connection up."""
        self._opened.close()


async def _in_thread(work: Callable[[], Any]) -> Any:
    from anyio import to_thread  # with the extra, and only where boto3 is awaited

    return await to_thread.run_sync(work, abandon_on_cancel=True)


def _ready(client: Any) -> Any:
    """The client with this module's handlers; registering them again changes nothing."""
    meta = getattr(client, "meta", None)
    if meta is not None:
        for name in OPERATIONS:
            place = f"bedrock-runtime.{name}"
            key = f"{_HANDLER}.{name}"
            meta.events.register(f"before-call.{place}", _put_body, unique_id=f"{key}.body")
            meta.events.register(f"before-parse.{place}", _keep_answer, unique_id=f"{key}.raw")
            meta.events.register(f"response-received.{place}", _note_read, unique_id=f"{key}.read")
    return client


def _arguments(model: str) -> dict[str, Any]:
    # The messages are replaced by the body.
    return {"modelId": model, "messages": [{"role": "user", "content": [{"text": "-"}]}]}


def _count_of(client: Any) -> Any:
    found = getattr(client, "count_tokens", None)
    if found is None:
        raise NotSupportedError(
            f"{type(client).__name__} is of a release without count_tokens; nothing was sent"
        )
    return found


def _count_arguments(body: bytes) -> dict[str, Any]:
    from lutumpy.adapters.bedrock.blobs import with_bytes

    fields = json_values.decode(body)
    counted = {name: with_bytes(fields[name]) for name in _COUNTED if name in fields}
    return {"modelId": str(fields.get("model", "")), "input": {"converse": counted}}


def _read_count(reply: Any) -> int:
    found = reply.get("inputTokens") if isinstance(reply, Mapping) else None
    if not isinstance(found, int):
        raise AdapterError("the count of tokens has no number", provider="bedrock_converse")
    return found


def _is_async(client: Any) -> bool:
    packages = {kind.__module__.partition(".")[0] for kind in type(client).__mro__}
    return "aiobotocore" in packages or inspect.iscoroutinefunction(
        getattr(client, "converse", None)
    )


def _read_reply(reply: Any, request: _Request) -> SdkReply:
    _note_retries(reply)
    if request.raw is not None:
        return _read_raw(request.raw, request, _request_id(reply))
    # A client of the user's own, as in tests, may give a ready answer.
    from lutumpy.adapters.bedrock.blobs import with_base64

    return SdkReply(json_values.encode(with_base64(reply)), _request_id(reply))


def _read_raw(raw: bytes, request: _Request, request_id: str | None) -> SdkReply:
    """An answer as it came. The SDK takes one that was cut short for a whole one."""
    length = request.raw_headers.get("content-length", "")
    if length.isdecimal() and len(raw) < int(length):
        raise broken_reply(len(raw), int(length), request_id)
    return SdkReply(raw, request_id)


def _read_unread(error: Exception, request: _Request) -> SdkReply:
    """The answer on which the SDK failed. If it failed on none, `error` is raised, in our words
    where it is the SDK's.
    """
    if request.is_unread and request.raw is not None and request.status < 300:
        return _read_raw(request.raw, request, request.raw_headers.get("x-amzn-requestid"))
    _raise_answered(error, request)
    _raise_in_our_words(error)
    raise error


def _raise_answered(error: Exception, request: _Request) -> None:
    """Raise the error that was answered in our words, whether or not the SDK could read it;
    anything else passes.
    """
    if request.raw is None or request.status < 300:
        return
    if request.is_unread:
        raise unread_error(request.status, request.raw_headers, request.raw) from error
    _raise_in_our_words(error, request.raw)


def _note_retries(answer: Any) -> None:
    """Note how often the SDK repeated a request, from the answer or from that of an error."""
    meta = answer.get("ResponseMetadata") if isinstance(answer, Mapping) else None
    count = meta.get("RetryAttempts") if isinstance(meta, Mapping) else None
    if isinstance(count, int):
        note_retries(count)


def _request_id(reply: Any) -> str | None:
    meta = reply.get("ResponseMetadata") if isinstance(reply, Mapping) else None
    found = meta.get("RequestId") if isinstance(meta, Mapping) else None
    return found if isinstance(found, str) else None


def _read_error(error: Exception, reading: bool) -> AdapterError | None:
    if not reading:
        _note_retries(getattr(error, "response", None))
    found = sdk_error(error)
    return unread_event(error) if found is None and reading else found


def _raise_in_our_words(error: Exception, raw: bytes = b"") -> None:
    """Raise what the SDK raised as an `AdapterError`; everything else is a bug or the caller's, and
    passes.
    """
    found = sdk_error(error, raw)
    if found is not None:
        _note_retries(getattr(error, "response", None))
        raise found from error
