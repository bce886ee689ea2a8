"""The clients of boto3, for recorded traffic.

They have no transport that could be replaced. Their public events are enough: `before-send` may
answer a request, and `before-parse` sees what came.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

from lutumpy.testing.cassettes.clients import NO_KEY
from lutumpy.testing.cassettes.tape import Playback, Recording, Tape

__all__ = ["recorded_client"]


def recorded_client(
    tape: Tape, make: Any, args: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    """A client of boto3 whose requests go through a cassette; `None` where `make` makes others."""
    module = getattr(make, "__module__", None) or type(getattr(make, "__self__", None)).__module__
    if module.partition(".")[0] not in ("boto3", "botocore"):
        return None
    keywords = dict(options)
    if tape.mode == "replay":
        # Without credentials it would look for some on the network.
        keywords.setdefault("aws_access_key_id", NO_KEY)
        keywords.setdefault("aws_secret_access_key", NO_KEY)
        keywords.setdefault("region_name", "us-east-1")
    else:
        tape.add_key(keywords.get("aws_secret_access_key"))  # it signs, and is never sent
    client = make(*args, **keywords)
    events = _Events(tape)
    client.meta.events.register_first("before-send", events.before_send)
    client.meta.events.register_first("before-parse", events.before_parse)
    return client


class _Events:
    """What is done for one client. A request and its answer are of one thread."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._threads = threading.local()

    def before_send(self, request: Any, **more: Any) -> Any:
        """Give the recorded answer, or note the request."""
        body = request.body or b""
        data = body.encode() if isinstance(body, str) else bytes(body)
        headers = {name: _text(value) for name, value in request.headers.items()}
        found = self._tape.begin(request.method, request.url, headers, data)
        if isinstance(found, Recording):
            self._threads.recording = found
            return None
        from botocore.awsrequest import AWSResponse  # type: ignore[import-untyped]

        return AWSResponse(request.url, found.status, dict(found.headers), _Played(found))

    def before_parse(self, response_dict: dict[str, Any], **more: Any) -> None:
        """Keep what came, and what is still to come."""
        recording: Recording | None = getattr(self._threads, "recording", None)
        if recording is None:
            return
        self._threads.recording = None
        headers = {name: _text(value) for name, value in response_dict["headers"].items()}
        recording.begin(response_dict["status_code"], headers)
        body = response_dict["body"]
        if isinstance(body, bytes):
            recording.take(body)
            recording.end()
        else:
            response_dict["body"] = _Recorded(body, recording)


class _Played:
    """The body of a recorded answer."""

    def __init__(self, played: Playback) -> None:
        self._played = played

    def stream(self, *sizes: Any, **more: Any) -> Iterator[bytes]:
        """Its pieces."""
        yield from self._played.pieces
        if self._played.is_broken:
            from botocore.exceptions import ReadTimeoutError  # type: ignore[import-untyped]

            raise ReadTimeoutError(endpoint_url="the recorded one")

    def close(self) -> None:
        """There is nothing to close."""


class _Recorded:
    """The body of an answer that is being recorded."""

    def __init__(self, body: Any, recording: Recording) -> None:
        self._body = body
        self._recording = recording

    def stream(self, *sizes: Any, **more: Any) -> Iterator[bytes]:
        """Its pieces, which are kept."""
        try:
            for piece in self._body.stream(*sizes, **more):
                self._recording.take(piece)
                yield piece
        except GeneratorExit:
            raise
        except BaseException:
            self._recording.end("broken")
            raise
        self._recording.end()

    def close(self) -> None:
        """Nobody reads on."""
        self._recording.end("left")
        self._body.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
