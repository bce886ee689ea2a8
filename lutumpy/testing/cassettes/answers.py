"""The bytes of an answer as JSON that a person can read, and back."""

# What is kept of an answer goes by its media type:
#
#     JSON                         its value, but of a text the text with its quotes
#     server-sent events, lines    the text as it came, and the sizes of its pieces (rule V5)
#     Amazon's event stream        a list of its events, and the sizes of its pieces
#     anything else                its text
#
# A piece is what came at once. Where a mask made a text shorter, the pieces behind it move along:
# each is cut at the same place of its line.

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from lutumpy.testing.cassettes.secrets import Secrets
from lutumpy.testing.event_frames import json_bytes, read_frames, write_frame

__all__ = ["FRAMES", "cut", "events_of", "is_stream", "keep_answer", "written_answer"]

FRAMES = "application/vnd.amazon.eventstream"
_STREAMS = ("text/event-stream", "application/x-ndjson", "application/jsonl", FRAMES)
_ERRORS = "surrogateescape"
"""Bytes that aren't UTF-8 go into a text and come out of it again."""

_EVENT_HEADERS = {":content-type": "application/json", ":message-type": "event"}
_EXCEPTION_HEADERS = {":content-type": "application/json", ":message-type": "exception"}


def is_stream(media_type: str) -> bool:
    """Whether an answer of this type comes as a stream of events."""
    return media_type.partition(";")[0].strip().lower() in _STREAMS


def keep_answer(
    data: bytes, media_type: str, sizes: Sequence[int], secrets: Secrets
) -> tuple[Any, list[int] | None]:
    """What is written of an answer, and of a stream the sizes of its pieces.

    Args:
        data: The whole answer.
        media_type: Its `content-type`.
        sizes: Bytes of each piece.
        secrets: What is taken out of it.
    """
    if media_type.startswith(FRAMES):
        try:
            events = [secrets.mask_value(event) for event in _read_events(data)]
        except (ValueError, KeyError):
            return _mask_lines(data, sizes, secrets)
        whole = written_answer(events, FRAMES)
        return events, list(sizes) if len(whole) == len(data) else _moved(sizes, len(whole))
    if is_stream(media_type):
        return _mask_lines(data, sizes, secrets)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return secrets.mask_text(data.decode(errors=_ERRORS)), None
    if isinstance(value, str):  # as a text in the file, it would stand for an answer without quotes
        return secrets.mask_line(data.decode(errors=_ERRORS)), None
    return secrets.mask_value(value), None


def _mask_lines(data: bytes, sizes: Sequence[int], secrets: Secrets) -> tuple[str, list[int]]:
    """The text of a stream without secrets, and the sizes of its pieces in it."""
    ends = list(accumulate(sizes))
    moved: list[int] = []
    lines: list[str] = []
    read = written = 0
    for line in data.splitlines(keepends=True):
        text = line.decode(errors=_ERRORS)
        bare = text.rstrip("\r\n")
        masked = secrets.mask_line(bare)
        kept = text if masked == bare else masked + text[len(bare) :]
        size = len(kept.encode(errors=_ERRORS))
        while len(moved) < len(ends) and ends[len(moved)] <= read + len(line):
            within = ends[len(moved)] - read
            moved.append(written + (size if within == len(line) else min(within, size)))
        lines.append(kept)
        read, written = read + len(line), written + size
    moved += [written] * (len(ends) - len(moved))
    return "".join(lines), [end - start for start, end in zip([0, *moved], moved, strict=False)]


def _moved(sizes: Sequence[int], total: int) -> list[int]:
    """Sizes of pieces that are `total` together: what is too much is left out at the end."""
    ends = [min(end, total) for end in accumulate(sizes)]
    if ends:
        ends[-1] = total
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def written_answer(kept: Any, media_type: str) -> bytes:
    """The bytes of an answer, from what was kept of it."""
    if isinstance(kept, str):
        return kept.encode(errors=_ERRORS)
    if isinstance(kept, list) and media_type.startswith(FRAMES):
        return b"".join(map(_write_event, kept))
    return json_bytes(kept)


def cut(data: bytes, sizes: Sequence[int] | None) -> Iterator[bytes]:
    """An answer in its pieces; what is left over is the last one."""
    start = 0
    for size in sizes or ():
        if size:
            yield data[start : start + size]
        start += size
    if start < len(data):
        yield data[start:]


def events_of(kept: Any) -> Iterator[Any]:
    """The JSON values of the events in a stream that was kept."""
    if isinstance(kept, list):
        yield from kept
    elif isinstance(kept, str):
        for line in kept.split("\n"):
            text = line.removeprefix("data:").strip()
            try:
                yield json.loads(text)
            except (ValueError, RecursionError):
                continue


# --- frames ---------------------------------------------------------------------------------------


def _read_events(data: bytes) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for headers, payload in read_frames(data):
        value = json.loads(payload)
        if headers.get(":message-type") == "exception":
            events.append({"exception": headers[":exception-type"], "payload": value})
            continue
        inner = value.get("bytes")
        if isinstance(inner, str):
            # The API of another vendor within Amazon's: a text that nobody could read, or search.
            events.append(
                {
                    "event": headers[":event-type"],
                    "data": json.loads(base64.b64decode(inner)),
                }
            )
        else:
            events.append({"event": headers[":event-type"], "payload": value})
    return events


def _write_event(event: Mapping[str, Any]) -> bytes:
    if "exception" in event:
        headers = {":exception-type": event["exception"], **_EXCEPTION_HEADERS}
        return write_frame(headers, json_bytes(event["payload"]))
    headers = {":event-type": event["event"], **_EVENT_HEADERS}
    if "data" in event:
        inner = base64.b64encode(json_bytes(event["data"])).decode()
        return write_frame(headers, json_bytes({"bytes": inner}))
    return write_frame(headers, json_bytes(event.get("payload", {})))
