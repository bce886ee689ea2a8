"""A stream of google-genai that has begun: its first chunk has arrived, or its end.

The SDK's streams are generators that send the request when the first chunk is asked for. A stream
of this library sends it when it is entered, where a refused request is raised; so the first chunk
is read then. It also has the headers, which the SDK's generator itself doesn't show.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

__all__ = ["BegunStream", "BegunStreamSync", "lower_headers"]

_END: Any = object()


class BegunStream:
    """An async stream, closed by `aclose`.

    Attributes:
        headers: Those of the HTTP response, with names in lower case.
    """

    def __init__(self, chunks: AsyncIterator[Any], first: Any) -> None:
        self._chunks = chunks
        self._first = first
        self.headers: dict[str, str] = lower_headers(first)

    @classmethod
    async def begin(cls, stream: Any) -> BegunStream:
        """Send the request. Raises whatever the SDK raises for it or for its first chunk."""
        chunks = aiter(stream)
        return cls(chunks, await anext(chunks, _END))

    @property
    def response(self) -> BegunStream:
        """What has the headers; an SDK's stream has them there."""
        return self

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        first, self._first = self._first, _END
        return await anext(self._chunks) if first is _END else first

    async def aclose(self) -> None:
        """Close the stream of the SDK, if it can be closed."""
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()


class BegunStreamSync:
    """A stream without an event loop, closed by `close`; it has `headers` as `BegunStream` does."""

    def __init__(self, chunks: Iterator[Any], first: Any) -> None:
        self._chunks = chunks
        self._first = first
        self.headers: dict[str, str] = lower_headers(first)

    @classmethod
    def begin(cls, stream: Any) -> BegunStreamSync:
        """Send the request. Raises whatever the SDK raises for it or for its first chunk."""
        chunks = iter(stream)
        return cls(chunks, next(chunks, _END))

    @property
    def response(self) -> BegunStreamSync:
        """What has the headers; an SDK's stream has them there."""
        return self

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        first, self._first = self._first, _END
        return next(self._chunks) if first is _END else first

    def close(self) -> None:
        """Close the stream of the SDK, if it can be closed."""
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()


def lower_headers(reply: Any) -> dict[str, str]:
    """The headers that came with an answer or a chunk, with names in lower case."""
    response = getattr(reply, "sdk_http_response", None)
    headers: Mapping[str, str] = getattr(response, "headers", None) or {}
    found = {str(name).lower(): value for name, value in headers.items()}
    # Vertex AI and the Developer API name it differently; what reads a stream knows the first.
    if "x-goog-request-id" in found:
        found.setdefault("x-request-id", found["x-goog-request-id"])
    return found
