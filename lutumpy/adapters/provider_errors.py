"""Errors of the providers and of their SDKs, in this library's words.

The SDKs are not imported for it: their errors are known by the names of their classes and packages,
and only public attributes are read.
"""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from lutumpy.adapters.sdk_unsent import (
    is_closed_client,
    is_impossible_address,
    is_unsent,
)
from lutumpy.errors import AdapterError
from lutumpy.plain.json_values import encode_text
from lutumpy.plain.preview import shorten
from lutumpy.plain.safe_text import safe_str

if TYPE_CHECKING:
    from lutumpy.core.items import AssistantTurn

__all__ = [
    "adapter_error",
    "early_end",
    "error_body",
    "is_connection_error",
    "is_passing_status",
    "is_sdk_error",
    "retry_after",
    "shorten_text",
    "unreadable_error",
]

_SDK_PACKAGES = frozenset({"openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2"})
# Classes that stand for "no answer came": of the SDKs, and of the HTTP stack where an SDK lets them
# through.
_CONNECTION_ERRORS = frozenset({"APIConnectionError", "TransportError"})
# Error types that come without an HTTP status (in a body with status 200, or in a stream) and may
# pass.
_PASSING_TYPES = frozenset(
    {
        "api_error",
        "overloaded_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "server_error",
        "server_overloaded",
        "timeout_error",
        "vector_store_timeout",
    }
)
_LONGEST_MESSAGE = 2000


def early_end(
    provider: str, what: str, request_id: str | None, partial: AssistantTurn | None
) -> AdapterError:
    """The error of a stream that broke off; another request may get the whole answer.

    Args:
        provider: The name of the API.
        what: What was missing, in words.
        request_id: The provider's id of the request, where known.
        partial: What had arrived.
    """
    return AdapterError(
        f"{provider}: {what}",
        provider=provider,
        retryable=True,
        request_id=request_id,
        partial=partial,
    )


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
    code = _first_code(found.get("code"), found.get("type"))
    status = _find_status(found)
    if status is not None:
        code = _status_word(found) or code
    kinds = {str(found.get("code")), str(found.get("type"))}
    return AdapterError(
        f"{provider}: the provider answered with an error: {shorten_text(str(message))}",
        provider=provider,
        status=status,
        retryable=is_passing_status(status)
        if status is not None
        else not kinds.isdisjoint(_PASSING_TYPES),
        retry_after=_read_retry_info(found),
        request_id=request_id,
        code=code,
    )


def adapter_error(error: BaseException, provider: str) -> AdapterError:
    """An error of either SDK, or of the HTTP stack under it, in this library's words; to be raised
    `from` the original.

    Only public attributes of the SDK's errors are read: `status_code`, `response.headers`,
    `request_id`, `body`.
    """
    body: Any = getattr(error, "body", None)
    if isinstance(body, list) and body:
        body = body[0]  # Google's endpoints give an error in a list
    details: Any = body.get("error", body) if isinstance(body, Mapping) else body
    status = getattr(error, "status_code", None)
    # An error inside a stream comes after a status of success.
    status = status if isinstance(status, int) and status >= 300 else _find_status(details)
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", None) or {}
    code = _find_code(error, details)
    should = headers.get("x-should-retry")
    if should in ("true", "false"):
        retryable = should == "true"
    elif status is not None:
        retryable = is_passing_status(status)
    else:
        retryable = code in _PASSING_TYPES or is_connection_error(error)
    message = _find_message(error, details)
    return AdapterError(
        f"{provider}: {f'HTTP {status}: ' if status is not None else ''}{shorten_text(message)}",
        provider=provider,
        status=status,
        retryable=retryable,
        retry_after=_first_number(retry_after(headers), _read_retry_info(details)),
        request_id=getattr(error, "request_id", None)
        or headers.get("x-request-id")
        or headers.get("request-id"),
        code=code,
        sent=not is_unsent(error),
    )


def _find_status(details: Any) -> int | None:
    """The status that an error names itself, as hosts do that pass on another one's error."""
    code = details.get("code") if isinstance(details, Mapping) else None
    return code if type(code) is int and 400 <= code < 600 else None


def is_sdk_error(error: Exception) -> bool:
    if any(kind.__module__.partition(".")[0] in _SDK_PACKAGES for kind in type(error).__mro__):
        return True
    # A missing key is a plain TypeError when the first request is built.
    if isinstance(error, TypeError) and "Could not resolve authentication" in safe_str(error):
        return True
    return is_closed_client(error) or is_impossible_address(error)


def is_connection_error(error: BaseException) -> bool:
    """Whether an error says that no answer came: no connection, or none in time."""
    return any(kind.__name__ in _CONNECTION_ERRORS for kind in type(error).__mro__)


def unreadable_error(
    error: Exception, packages: Collection[str], api: str, what: str
) -> AdapterError | None:
    """What an SDK raised as it read a piece of a stream that it can't read; `None` for a bug, or
    something of the caller's.

    Args:
        error: What was raised while the stream was read.
        packages: Those of the SDK. What other code raises is a bug, or something of the caller's.
        api: The API.
        what: What the API calls a piece of its streams, as `an event`.
    """
    if not _is_unreadable(error, packages):
        return None
    text = shorten_text(safe_str(error))
    return AdapterError(
        f"{api}: the stream holds {what} that can't be read: {text}", provider=api, retryable=True
    )


def _is_unreadable(error: Exception, packages: Collection[str]) -> bool:
    """Whether an SDK couldn't read what came.

    The SDKs expect the shapes that their provider documents. What a proxy or another host sends
    may be refused in any words, or be a `TypeError` of the SDK's own code.
    """
    if isinstance(error, (ValueError, RecursionError)):
        return True
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    name = "" if place is None else str(place.tb_frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] in packages


def is_passing_status(status: int) -> bool:
    """Whether the same request may succeed later."""
    return status in (408, 409, 429) or status >= 500


def _find_code(error: BaseException, details: Any) -> str | None:
    inner: Mapping[str, Any] = details if isinstance(details, Mapping) else {}
    return _first_code(
        getattr(error, "error_code", None),
        _status_word(inner),
        inner.get("code"),
        getattr(error, "code", None),
        inner.get("type"),
        getattr(error, "type", None),
    )


def _first_code(*values: Any) -> str | None:
    """The first that is a word or a number; objects in its place may hold anything."""
    for value in values:
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return str(value)
    return None


def _status_word(details: Mapping[str, Any]) -> str | None:
    """The code of an error of `google.rpc.Status`, which has the HTTP status as its number."""
    word = details.get("status")
    return word if isinstance(word, str) and type(details.get("code")) is int else None


def _find_message(error: BaseException, details: Any) -> str:
    if isinstance(details, Mapping):
        for name in ("message", "detail"):
            if isinstance(details.get(name), str) and details[name]:
                return str(details[name])
    if isinstance(details, str) and details.strip():
        return details.strip()
    text = safe_str(error) or type(error).__name__
    # Some SDKs show an error of another form, others leave it out.
    if isinstance(details, Mapping) and details and (shown := safe_str(details)) not in text:
        text = f"{text}: {shown}"
    cause = error.__cause__
    if cause is None or str(cause) in ("", text):
        return text
    return f"{text} ({type(cause).__name__}: {cause})"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `retry-after-ms`, or `retry-after` as seconds or as a date (RFC 9110,
    section 10.2.3).
    """
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


def _read_retry_info(details: Any) -> float | None:
    """Seconds to wait, from the `RetryInfo` among the details of an error of `google.rpc.Status`:
    `{"retryDelay": "34.07s"}`.
    """
    listed = details.get("details") if isinstance(details, Mapping) else None
    for entry in listed if isinstance(listed, (list, tuple)) else ():
        delay = entry.get("retryDelay") if isinstance(entry, Mapping) else None
        if not isinstance(delay, str) or not delay.endswith("s"):
            continue
        try:
            seconds = float(delay[:-1])
        except ValueError:
            continue
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    return None


def _first_number(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def shorten_text(text: str) -> str:
    """A provider's own words, short enough for a message."""
    return shorten(text, _LONGEST_MESSAGE)
