"""Errors of the API, of google-genai and of what it stands on, in this library's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.gemini.decode import API
from lutumpy.adapters.provider_errors import (
    adapter_error,
    error_body,
    is_sdk_error,
    shorten_text,
    unreadable_error,
)
from lutumpy.errors import AdapterError
from lutumpy.plain.safe_text import safe_str

__all__ = ["is_unread", "missing_sdk", "response_error", "sdk_error", "unread_chunk"]

_PACKAGES = frozenset({"aiohttp", "google", "requests", "urllib3"})
_SDK = frozenset({"google"})
_CONNECTION = frozenset(
    {"ClientConnectionError", "ConnectionError", "ServerTimeoutError", "TransportError", "Timeout"}
)
_CREDENTIALS = frozenset({"DefaultCredentialsError", "RefreshError"})
_KEYS = (
    "set GOOGLE_API_KEY (or GEMINI_API_KEY), or give Gemini api_key=; for Vertex AI give it "
    "client=genai.Client(vertexai=True, project=..., location=...)"
)


class _Answered(Exception):
    """An error of the SDK with the attributes that those of the other SDKs have."""

    def __init__(self, error: Any) -> None:
        super().__init__(safe_str(error))
        self.status_code: Any = getattr(error, "code", None)
        self.response: Any = getattr(error, "response", None)
        self.body: Any = getattr(error, "details", None)


def response_error(reply: Any, request_id: str | None = None) -> AdapterError | None:
    """The error that an answer, or a chunk, with status 200 holds; `None` if it holds none."""
    if isinstance(reply, Mapping) and reply.get("error"):
        return error_body(reply, API, request_id)
    return None


def missing_sdk(error: ImportError) -> AdapterError:
    """The SDK isn't installed; to be raised `from` the original."""
    return AdapterError(
        f"{API}: Gemini needs {error.name or 'google-genai'}; install it with: "
        'python -m pip install ".[gemini]" (in a clone)',
        provider=API,
        sent=False,
    )


def is_unread(error: Exception) -> bool:
    """Whether google-genai says of a chunk that it isn't JSON."""
    return type(error).__name__ == "UnknownApiResponseError"


def unread_chunk(error: Exception) -> AdapterError | None:
    """What google-genai raised as it read a chunk of a stream that it can't read; `None` for a bug,
    or something of the caller's.
    """
    return unreadable_error(error, _SDK, API, "a chunk")


def sdk_error(error: Exception, *, making: bool = False) -> AdapterError | None:
    """What was raised by the SDK, or under it, in this library's words; to be raised `from` the
    original. `None` for a bug, or something of the caller's.

    Args:
        error: What was raised.
        making: It was raised while a client was made.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    if "APIError" in names and "google" in packages:
        return adapter_error(_Answered(error), API)
    if names & _CREDENTIALS or (making and isinstance(error, ValueError)):
        text = " ".join(safe_str(error).split())
        return AdapterError(
            f"{API}: no client can be made: {shorten_text(text)}; {_KEYS}",
            provider=API,
            sent=False,
        )
    if is_sdk_error(error):
        return adapter_error(error, API)
    if packages & _PACKAGES:
        found = adapter_error(error, API)
        found.retryable = found.retryable or bool(names & _CONNECTION)
        # What failed was the request for a token, before that for an answer.
        found.sent = found.sent and "GoogleAuthError" not in names
        return found
    return None
