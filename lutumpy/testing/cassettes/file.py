"""The file of a cassette: one exchange on each line, in the order in which the requests were made.

    {"api": "...", "host": "api.example.com", "url": "/v1/chat/completions", "stream": true,
     "request": {...}, "status": 200, "headers": {...}, "response": "data: ...", "chunks": [...]}

It is the form in which `lutumpy check`, `show` and `repair` read exchanges. `request`, `response`
and `status` are enough for a replay, so lines that others have written are read as well.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lutumpy.apis import Api, by_name
from lutumpy.errors import CassetteError
from lutumpy.rules.shape import ApiRules

__all__ = ["Exchange", "Sent", "describe", "place_of", "read_exchanges", "write_lines"]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request, without secrets.

    Attributes:
        method: `POST` nearly always.
        host: To whom it went, with the port.
        url: Path and query.
        body: The JSON in it; a digest of what isn't JSON, and `None` without a body.
    """

    method: str
    host: str
    url: str
    body: Any


@dataclass(frozen=True, slots=True)
class Exchange:
    """A recorded request with its answer.

    Attributes:
        sent: The request.
        status: HTTP status of the answer.
        headers: What was kept of the answer's headers.
        response: JSON, the text of a stream, or the events of one.
        chunks: Bytes of each piece of a stream; `None` for what came whole.
        ended: How an answer ended that isn't whole: `broken`, the connection was lost; `left`,
            nobody wanted to read on. `None` for a whole one.
    """

    sent: Sent
    status: int
    headers: Mapping[str, str]
    response: Any
    chunks: Sequence[int] | None = None
    ended: str | None = None

    def line(self) -> str:
        """The line of the file, without its end."""
        sent = self.sent
        entry: dict[str, Any] = {**describe(sent), "host": sent.host, "url": sent.url}
        if sent.method != "POST":
            entry["method"] = sent.method
        entry["stream"] = self.chunks is not None
        entry |= {"request": sent.body, "status": self.status, "headers": dict(self.headers)}
        entry["response"] = self.response
        if self.chunks is not None:
            entry["chunks"] = list(self.chunks)
        if self.ended is not None:
            entry["ended"] = self.ended
        text = json.dumps(entry, ensure_ascii=False)
        # A lone surrogate is no UTF-8, and neither is a byte that was none to begin with.
        is_utf8 = text.isascii() or text.encode(errors="replace").decode() == text
        return text if is_utf8 else json.dumps(entry)


def place_of(url: str) -> str:
    """Path and query of an address, as far as they say what is asked for. Of the APIs that are
    known, what comes before their own paths, and the query, goes by the host and the SDK.
    """
    path = urlsplit(url).path
    rules: Mapping[Api, ApiRules] = by_name("rules")
    for known in rules.values():
        for end in known.SHAPE.paths:
            if path.endswith(end):
                pattern = known.SHAPE.model_path
                named = None if pattern is None else pattern.search(path)
                return end if named is None else path[named.start() :]
    return url


def describe(sent: Sent) -> dict[str, Any]:
    """The API that a request is for, and its model, where they are known."""
    path = urlsplit(sent.url).path
    rules: Mapping[Api, ApiRules] = by_name("rules")
    for api, known in rules.items():
        if path.endswith(known.SHAPE.paths):
            found: dict[str, Any] = {"api": api}
            pattern = known.SHAPE.model_path
            named = None if pattern is None else pattern.search(path)
            return found if named is None else {**found, "model": unquote(named[1])}
    return {}


def read_exchanges(path: Path) -> list[Exchange]:
    """The exchanges of a file.

    Raises:
        CassetteError: there is no such file, or a line of it isn't an exchange, as the last one of
            a truncated file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CassetteError(f"there is no cassette {path}: record it with mode='record'") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CassetteError(f"the cassette {path} can't be read: {error}") from error
    found: list[Exchange] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            found.append(_read_line(line, f"{path}:{number}"))
    return found


def _read_line(line: str, place: str) -> Exchange:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CassetteError(f"{place} isn't JSON, or was cut off: {error}") from error
    if not isinstance(entry, dict) or "request" not in entry or "response" not in entry:
        raise CassetteError(f"{place} is not an exchange: it needs a request and a response")
    status, headers, chunks = entry.get("status", 200), entry.get("headers"), entry.get("chunks")
    if not isinstance(status, int) or not isinstance(headers or {}, dict):
        raise CassetteError(f"{place} is not an exchange: status is a number, headers an object")
    if chunks is not None and not (
        isinstance(chunks, list) and all(type(size) is int and size >= 0 for size in chunks)
    ):
        raise CassetteError(f"{place} is not an exchange: chunks are sizes in bytes")
    response = entry["response"]
    if headers is None:
        headers = {"content-type": _media_type(response)}
    if chunks is None and entry.get("stream") is True:
        chunks = []
    sent = Sent(
        str(entry.get("method", "POST")),
        str(entry.get("host", "")),
        str(entry.get("url", "")),
        entry["request"],
    )
    return Exchange(sent, status, headers, response, chunks, entry.get("ended"))


def _media_type(response: Any) -> str:
    """The type of an answer whose headers nobody kept."""
    if isinstance(response, list):
        return "application/vnd.amazon.eventstream"
    if not isinstance(response, str):
        return "application/json"
    return "application/x-ndjson" if response.startswith("{") else "text/event-stream"


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write a file anew; whoever reads it meanwhile sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
        os.chmod(name, 0o644)  # it holds no secret, and is to be committed
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
