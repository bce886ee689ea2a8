"""The words of the SDKs, and the table that says how each of them is treated."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["KINDS", "TABLE", "TREATMENTS", "Row", "Word", "read_table", "write_table"]

TABLE: Path = Path(__file__).parent / "table"

KINDS: dict[str, str] = {
    "option": "a field of a request",
    "item": "an item or message that an answer holds",
    "input": "an item, a message or a content part that requests alone hold",
    "block": "a content block, or part, of an answer",
    "field": "a field of the answer, beside its content",
    "tool": "a kind of tool in a request",
    "event": "an event of a stream",
    "delta": "a kind of piece inside an event",
    "finish": "why an answer ended",
    "error": "an error of the API, or of the SDK",
}
TREATMENTS: dict[str, str] = {
    "handled": "read, or written, by this library",
    "kept": "goes through unchanged: what an answer holds goes back or stays with the turn, what "
    "a request holds is sent as it was given",
    "ignored": "left alone on purpose",
    "refused": "an error with a name",
}


@dataclass(frozen=True)
class Word:
    """A word of an SDK.

    Attributes:
        kind: One of `KINDS`.
        word: As it is on the wire.
        where: Where the SDK has it.
        sample: A value of it, where its claim can be tried.
    """

    kind: str
    word: str
    where: str
    sample: Any = field(default=None, compare=False)


@dataclass(frozen=True)
class Row:
    """How a word is treated.

    Attributes:
        kind: One of `KINDS`.
        word: As it is on the wire.
        treatment: One of `TREATMENTS`.
        reason: Why it is so; needed for what is ignored or refused.
        gone: The last version of the SDK that had the word; empty for one that has it still.
    """

    kind: str
    word: str
    treatment: str
    reason: str = ""
    gone: str = ""


def read_table(api: str) -> list[Row]:
    """The rows of an API, in the order of the file."""
    with (TABLE / f"{api}.csv").open(encoding="utf-8", newline="") as file:
        return [Row(**row) for row in csv.DictReader(file)]


def write_table(api: str, rows: Iterable[Row]) -> None:
    """Write the rows of an API, sorted."""
    with (TABLE / f"{api}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*Row.__dataclass_fields__], lineterminator="\n")
        writer.writeheader()
        order = [*KINDS]
        for row in sorted(rows, key=lambda row: (order.index(row.kind), row.word)):
            writer.writerow(vars(row))
