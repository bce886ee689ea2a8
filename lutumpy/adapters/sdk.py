"""What the clients of both SDKs share: posting ready bytes, reading the answer, and telling errors apart.

The bytes go through the SDK client's own `post`, so that keys, retries, timeouts, proxies and middleware stay the SDK's.
The SDK itself is imported only when a client has to be made, or by whoever made the one that was given.
"""

from __future__ import annotations

import email.utils
import inspect
import json
import math
import sys
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic_core import from_json

from lutumpy.adapters.json_bytes import encode, encode_text
from lutumpy.adapters.sdk_clients import OwnClients
from lutumpy.adapters.sdk_events import EventError
from lutumpy.adapters.sdk_spans import TracedMethod
from lutumpy.adapters.sdk_stream import SdkStream, SdkStreamSync
from lutumpy.adapters.sdk_unsent import is_closed_client, is_unsent
from lutumpy.core import json_values
from lutumpy.core.safe_text import safe_repr, safe_str
from lutumpy.core.streaming import ChunkStream, ChunkStreamSync, StreamDecoder
from lutumpy.errors import AdapterError

__all__ = [
    "SdkReply",
    "SdkTransport",
    "adapter_error",
    "error_body",
    "reply_object",
]

_SDK_PACKAGES = frozenset({"openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2"})
# Classes that stand for "no answer came": of the SDKs, and of the HTTP stack where an SDK lets them through.
_CONNECTION_ERRORS = frozenset({"APIConnectionError", "TransportError"})
# Error types that come without an HTTP status (in a body with status 200, or in a stream) and may pass.
_PASSING_TYPES = frozenset(
    {
        "api_error",
        "overloaded_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "server_error",
        "server_overloaded",
        "timeout_error",
    }
)
_PLAIN_MODULES = frozenset(
    {f"{sdk}.{name}" for sdk in ("openai", "anthropic") for name in ("_client", "_base_client")}
)
_REWRITERS = ("_prepare_options", "_build_request", "_prepare_url")
_LONGEST_MESSAGE = 2000


class SdkReply(NamedTuple):
    """The answer to one request: the bytes of its body, and the provider's id of the request where it gave one."""

    content: bytes
    request_id: str | None


class SdkTransport:
    """Sends ready JSON bytes through an SDK client.

    Args:
        provider: The adapter's name, for errors.
        path: The path below the client's base URL, as the SDK spells it: `/chat/completions`.
        client: The user's client, async or sync; `None` makes one from the environment at the first request.
        make_async: Makes an async client; it imports the SDK.
        make_sync: The same for a sync client.
        headers: Further headers for every request.
        timeout: Seconds for each request; the client's own when `None`.
        method: The SDK's own method for such a request, where it makes a span of it.
    """

    __slots__ = (
        "_async_client",
        "_headers",
        "_make_sync",
        "_method",
        "_own",
        "_path",
        "_provider",
        "_sync_client",
        "_timeout",
    )

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
        self._method = method
        self._provider = provider
        self._path = path
        self._async_client: Any = None
        self._sync_client: Any = None
        self._own: OwnClients | None = OwnClients(make_async) if client is None else None
        self._make_sync: Callable[[], Any] | None = make_sync if client is None else None
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        self._timeout = timeout
        if client is not None:
            if _is_async(client):
                self._async_client = client
            else:
                self._sync_client = client

    async def send(self, body: bytes) -> SdkReply:
        """Post `body`, a JSON object.

        Raises:
            AdapterError: the request failed after the SDK's own retries, or no client can be made.
            TypeError: the client that was given is a sync one.
        """
        try:
            client = await self._async()
            return _read(await client.post(self._path, **self._arguments(client, body)))
        except Exception as error:
            self._raise(error)
            raise

    def send_sync(self, body: bytes) -> SdkReply:
        """Post `body` without an event loop.

        Raises:
            AdapterError: the request failed after the SDK's own retries, or no client can be made.
            TypeError: the client that was given is an async one.
        """
        try:
            client = self._sync()
            return _read(client.post(self._path, **self._arguments(client, body)))
        except Exception as error:
            self._raise(error)
            raise

    def stream(self, body: bytes, decoder: StreamDecoder) -> ChunkStream:
        """Post `body`, a JSON object that asks for a stream, when the result is entered; it gives the events as dicts.

        Errors of the SDK, of the connection and of the event format are raised as `AdapterError` with `.partial`.
        """

        async def open_response() -> Any:
            client = await self._async()
            return await client.post(
                self._path, **self._stream_arguments(client, body, "AsyncStream")
            )

        return SdkStream(open_response, decoder, self._told)

    def stream_sync(self, body: bytes, decoder: StreamDecoder) -> ChunkStreamSync:
        """The same without an event loop."""

        def open_response() -> Any:
            client = self._sync()
            return client.post(self._path, **self._stream_arguments(client, body, "Stream"))

        return SdkStreamSync(open_response, decoder, self._told)

    def client(self) -> Any:
        """The client that requests go through, async or sync; `None` before one is made here."""
        return self._async_client if self._async_client is not None else self._sync_client

    async def aclose(self) -> None:
        """Close the clients that were made here, also the sync one; the next request makes another.

        An async one that belongs to another event loop is closed when that ends.
        """
        if self._own is not None:
            await self._own.aclose()
        self.close()

    def close(self) -> None:
        """Close the sync client that was made here; the next request makes another."""
        if self._make_sync is None:
            return
        client, self._sync_client = self._sync_client, None
        if client is not None:
            client.close()

    async def _async(self) -> Any:
        if self._own is not None:
            return await self._own.current()
        if self._async_client is None:
            raise TypeError(
                f"{type(self._sync_client).__name__} is a sync client: use collect_sync() or respond_sync(), "
                f"or give the adapter an async client"
            )
        return self._async_client

    def _sync(self) -> Any:
        if self._sync_client is None:
            if self._make_sync is None:
                raise TypeError(
                    f"{type(self._async_client).__name__} is an async client: use collect() or respond(), "
                    f"or give the adapter a sync client"
                )
            self._sync_client = self._make_sync()
        return self._sync_client

    def _arguments(self, client: Any, body: bytes) -> dict[str, Any]:
        options = self._options()
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
            return {"body": from_json(body), "cast_to": cast_to, "options": options}
        return {"content": body, "cast_to": cast_to, "options": options}

    def _stream_arguments(self, client: Any, body: bytes, stream_class: str) -> dict[str, Any]:
        if self._method is not None:
            traced = self._method.post_arguments(client, body, self._options(), stream=True)
            if traced is not None:
                return traced
        arguments = self._arguments(client, body)
        return arguments | {
            "cast_to": object,
            "stream": True,
            "stream_cls": _stream_class(type(client), stream_class),
        }

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"headers": self._headers}
        if self._timeout is not None:
            options["timeout"] = self._timeout
        return options

    def _told(self, error: Exception, reading: bool) -> AdapterError | None:
        """What was raised while a stream was opened or read; `None` for a bug, or something of the caller's."""
        if isinstance(error, EventError) or _is_sdk_error(error):
            return adapter_error(error, self._provider)
        if reading and isinstance(
            error, (ValueError, RecursionError)
        ):  # from the SDK's own parsing of an event
            return AdapterError(
                f"{self._provider}: the stream holds an event that is no JSON: {_cut(str(error))}",
                provider=self._provider,
                retryable=True,
            )
        return None

    def _raise(self, error: Exception) -> None:
        """Raise what the SDK raised as an `AdapterError`; everything else is a bug or the caller's, and passes."""
        if _is_sdk_error(error):
            raise adapter_error(error, self._provider) from error


# (does it rewrite the body, which class to ask for as the answer) by class of the client.
_CLIENT_KINDS: weakref.WeakKeyDictionary[type, tuple[bool, Any]] = weakref.WeakKeyDictionary()


def _is_async(client: Any) -> bool:
    names = {kind.__name__ for kind in type(client).__mro__}
    if "AsyncAPIClient" in names:
        return True
    return "SyncAPIClient" not in names and inspect.iscoroutinefunction(
        getattr(client, "post", None)
    )


def _rewrites_body(kind: type) -> bool:
    """Whether the client reads or changes the body as an object, as those for Azure, Bedrock and Vertex do."""
    for base in kind.__mro__:
        for name in _REWRITERS:
            method = base.__dict__.get(name)
            # The method's module, since the SDKs set that of their public classes to the package itself.
            if method is not None and getattr(method, "__module__", "") not in _PLAIN_MODULES:
                return True
    return False


def _response_class(kind: type) -> Any:
    """The response class of the HTTP stack that this client's SDK uses: asked for, it gives the answer unparsed."""
    for base in kind.__mro__:
        if base.__module__.endswith("._base_client"):
            module = sys.modules[base.__module__]
            stack = getattr(module, "httpx2", None) or getattr(module, "httpx", None)
            if stack is not None:
                return stack.Response
    return bytes


def _stream_class(kind: type, name: str) -> Any:
    """The class of an event stream that this client's SDK uses, of plain objects; `None` for a client of no SDK."""
    for base in kind.__mro__:
        if base.__module__.endswith("._base_client"):
            found = getattr(sys.modules[base.__module__], name, None)
            return None if found is None else found[object]
    return None


def _read(reply: Any) -> SdkReply:
    """The bytes of whatever `post` gave: a response, the SDK's raw one, or the ready value of a replaced `post`."""
    reply = getattr(reply, "http_response", reply)
    content = getattr(reply, "content", None)
    if isinstance(content, bytes):
        headers: Mapping[str, str] = getattr(reply, "headers", None) or {}
        return SdkReply(content, headers.get("x-request-id") or headers.get("request-id"))
    if isinstance(reply, (bytes, bytearray)):
        return SdkReply(bytes(reply), None)
    if isinstance(reply, str):
        return SdkReply(json_values.clean_text(reply).encode(), None)
    if isinstance(reply, Mapping):
        return SdkReply(encode(reply if isinstance(reply, dict) else dict(reply)), None)
    dump = getattr(reply, "model_dump_json", None)
    if dump is None:
        raise TypeError(
            f"the client's post() gave a {type(reply).__name__}, which is no answer of a provider"
        )
    text: str = dump(by_alias=True, exclude_unset=True, warnings=False)
    return SdkReply(text.encode(), getattr(reply, "_request_id", None))


# --- answers -------------------------------------------------------------------------------------------------------


def reply_object(reply: Any, provider: str) -> dict[str, Any]:
    """A provider's answer as a dict of JSON values: from bytes or text, a mapping, or an object of an SDK.

    A mapping is given back as it is, so the caller must not change it.

    Raises:
        AdapterError: it is no JSON object, or it is an error body (some hosts send those with status 200).
    """
    if isinstance(reply, dict):
        value: Any = reply
    elif isinstance(reply, (bytes, bytearray, str)):
        value = _parse(reply, provider)
    elif isinstance(reply, Mapping):
        value = dict(reply)
    elif hasattr(reply, "model_dump"):
        value = reply.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    elif isinstance(getattr(reply, "content", None), bytes):
        value = _parse(reply.content, provider)
    else:
        value = reply
    if not isinstance(value, dict):
        raise AdapterError(
            f"{provider}: the answer is no JSON object: {_cut(safe_repr(value))}", provider=provider
        )
    return value


def error_body(
    reply: Mapping[str, Any], provider: str, request_id: str | None = None
) -> AdapterError | None:
    """The error that an answer with status 200 holds, or `None`."""
    error = reply.get("error")
    if not error and reply.get("object") != "error" and reply.get("type") != "error":
        return None
    found = (
        error
        if isinstance(error, Mapping)
        else {"message": error}
        if isinstance(error, str)
        else reply
    )
    message = found.get("message") or found.get("detail") or encode_text(dict(found))
    code = found.get("code") if found.get("code") is not None else found.get("type")
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    kinds = {str(found.get("code")), str(found.get("type"))}
    return AdapterError(
        f"{provider}: the provider answered with an error: {_cut(str(message))}",
        provider=provider,
        status=status,
        retryable=_may_pass(status) if status is not None else not kinds.isdisjoint(_PASSING_TYPES),
        request_id=request_id,
        code=None if code is None else str(code),
    )


def _parse(data: bytes | bytearray | str, provider: str) -> Any:
    try:
        return from_json(data)
    except ValueError:
        pass
    try:
        # Slower, and takes what the first one refuses though providers send it: lone surrogates, deep nesting, a byte
        # order mark (of bytes; of a text it doesn't).
        return json.loads(data.removeprefix("\ufeff") if isinstance(data, str) else data)
    except (ValueError, RecursionError):
        text = data if isinstance(data, str) else bytes(data).decode("utf-8", "replace")
        raise AdapterError(
            f"{provider}: the answer is no JSON: {_cut(text.strip()) or 'it is empty'}",
            provider=provider,
        ) from None


# --- errors --------------------------------------------------------------------------------------------------------


def adapter_error(error: BaseException, provider: str) -> AdapterError:
    """An error of either SDK, or of the HTTP stack under it, in this library's words; to be raised `from` the original.

    Only public attributes of the SDK's errors are read: `status_code`, `response.headers`, `request_id`, `body`.
    """
    body: Any = getattr(error, "body", None)
    details: Any = body.get("error", body) if isinstance(body, Mapping) else body
    status = getattr(error, "status_code", None)
    # An error inside a stream comes after a status that told of success.
    status = status if isinstance(status, int) and status >= 300 else _told_status(details)
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", None) or {}
    code = _code(error, details)
    should = headers.get("x-should-retry")
    if should in ("true", "false"):
        retryable = should == "true"
    elif status is not None:
        retryable = _may_pass(status)
    else:
        retryable = code in _PASSING_TYPES or any(
            c.__name__ in _CONNECTION_ERRORS for c in type(error).__mro__
        )
    message = _message(error, details)
    return AdapterError(
        f"{provider}: {f'HTTP {status}: ' if status is not None else ''}{_cut(message)}",
        provider=provider,
        status=status,
        retryable=retryable,
        retry_after=_retry_after(headers),
        request_id=getattr(error, "request_id", None)
        or headers.get("x-request-id")
        or headers.get("request-id"),
        code=code,
        sent=not is_unsent(error),
    )


def _told_status(details: Any) -> int | None:
    """The status that an error names itself, as hosts do that pass on another one's error."""
    code = details.get("code") if isinstance(details, Mapping) else None
    return code if type(code) is int and 400 <= code < 600 else None


def _is_sdk_error(error: Exception) -> bool:
    if any(kind.__module__.partition(".")[0] in _SDK_PACKAGES for kind in type(error).__mro__):
        return True
    # A missing key is told by a plain TypeError when the first request is built.
    if isinstance(error, TypeError) and "Could not resolve authentication" in safe_str(error):
        return True
    return is_closed_client(error)


def _may_pass(status: int) -> bool:
    return status in (408, 409, 429) or status >= 500


def _code(error: BaseException, details: Any) -> str | None:
    inner: Mapping[str, Any] = details if isinstance(details, Mapping) else {}
    for value in (
        getattr(error, "error_code", None),
        inner.get("code"),
        getattr(error, "code", None),
        inner.get("type"),
        getattr(error, "type", None),
    ):
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return str(value)
    return None


def _message(error: BaseException, details: Any) -> str:
    if isinstance(details, Mapping):
        for name in ("message", "detail"):
            if isinstance(details.get(name), str) and details[name]:
                return str(details[name])
    if isinstance(details, str) and details.strip():
        return details.strip()
    text = safe_str(error) or type(error).__name__
    cause = error.__cause__
    return f"{text} ({type(cause).__name__}: {cause})" if cause is not None and str(cause) else text


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `retry-after-ms`, or `retry-after` as seconds or as a date (RFC 9110, section 10.2.3)."""
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            delay = float(value) / divisor
        except ValueError:
            continue
        return delay if math.isfinite(delay) and delay >= 0 else None
    try:
        return max(
            0.0, email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time()
        )
    except (KeyError, TypeError, ValueError, OverflowError, IndexError):
        return None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_MESSAGE] + "..."
