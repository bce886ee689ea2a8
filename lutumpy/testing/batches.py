"""Batches at the test server: many requests in one, whose answers are fetched later.

A batch takes its answers from the script when it is made, one for each of its requests that isn't
refused, in their order. It is in progress then, and ended for who asks next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from lutumpy.testing.api_server import Json

__all__ = [
    "CREATE_BATCH",
    "BatchAnswer",
    "BatchEntry",
    "TakesBatches",
    "read_answer",
    "write_lines",
]

CREATE_BATCH = "create_batch"
"""The operation that is a batch of requests for a model's answers."""


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """One request of a batch.

    Attributes:
        custom_id: What its sender calls it.
        path: The path that it would have alone.
        body: Its body.
    """

    custom_id: str
    path: str
    body: Any


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """What came of a request of a batch.

    Attributes:
        custom_id: What its sender calls it.
        number: Its number at this server.
        status: The HTTP status that it would have had alone.
        body: The JSON that it was answered with.
    """

    custom_id: str
    number: int
    status: int
    body: Json


class TakesBatches(Protocol):
    """What an `ApiServer` with batches has besides."""

    def read_batch(self, body: Any) -> list[BatchEntry]:
        """The requests of a batch. Raises `Refused`."""
        ...

    def keep_batch(self, body: Mapping[str, Any], answers: list[BatchAnswer], url: str) -> Json:
        """Keep what came of a batch; gives what is said of it at first.

        Args:
            body: The request that made it.
            answers: The answers, in order.
            url: The address that it was sent to.
        """
        ...


def read_answer(data: bytes) -> Json:
    """The JSON of an answer; a text of the script's own as an object with that text."""
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"raw": data.decode("utf-8", "replace")}


def write_lines(entries: list[Json]) -> bytes:
    """Objects as lines of JSON."""
    lines = [json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries]
    return "".join([f"{line}\n" for line in lines]).encode("utf-8", "surrogatepass")
