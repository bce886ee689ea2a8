"""Tokens of each turn as the bars of a small chart.

Lengths are in units of the drawing, which scales with the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lutumpy import Usage
from lutumpy.page.model import Step

__all__ = ["Bar", "Chart", "Row", "Segment", "charts", "rows_of", "usage_of"]

WIDTH, HEIGHT = 720.0, 96.0
_MOST_BARS = 120
_WIDEST = 40.0


@dataclass(frozen=True, slots=True)
class Row:
    """The tokens of one turn. `read` and `reasoning` are parts of `given` and `made`."""

    step: int
    anchor: str
    given: int
    read: int
    made: int
    reasoning: int

    @property
    def total(self) -> int:
        """Everything that the turn cost."""
        return self.given + self.made


@dataclass(frozen=True, slots=True)
class Segment:
    """A rectangle of a bar; `kind` says what it counts."""

    kind: str
    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A turn, or several in a row where there are too many for one bar each."""

    label: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """One measure over all turns.

    Attributes:
        title: What is measured.
        highest: The tokens of the highest bar.
        bars: From first to last.
        legend: Kind of a segment and its words, the lower one first.
        summary: The chart in words.
    """

    title: str
    highest: int
    bars: tuple[Bar, ...]
    legend: tuple[tuple[str, str], ...]
    summary: str


def usage_of(value: Any) -> Usage | None:
    """A `Usage` from one, or from the object that a provider's answer has; `None` where there is
    nothing to count.
    """
    if isinstance(value, Usage):
        return value
    dump = getattr(value, "model_dump", None)
    data: Any = dump(mode="json") if dump is not None else value
    if not isinstance(data, Mapping):
        return None
    given = _count(data.get("input_tokens", data.get("prompt_tokens")))
    made = _count(data.get("output_tokens", data.get("completion_tokens")))
    details = data.get("input_tokens_details", data.get("prompt_tokens_details"))
    cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else 0
    written = _count(data.get("cache_creation_input_tokens", data.get("cache_creation_tokens")))
    beside = _count(data.get("cache_read_input_tokens"))
    made_details = data.get("output_tokens_details", data.get("completion_tokens_details"))
    reasoning = data.get("reasoning_tokens")
    if isinstance(made_details, Mapping):
        reasoning = made_details.get(
            "reasoning_tokens", made_details.get("thinking_tokens", reasoning)
        )
    total = _count(data.get("total_tokens")) or given + made + beside + written * (
        "cache_read_input_tokens" in data
    )
    cached = cached or beside or _count(data.get("cached_input_tokens"))
    return Usage(given, made, total, cached, written, _count(reasoning))


def _count(value: Any) -> int:
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**15
        else 0
    )


def rows_of(steps: Sequence[Step]) -> list[Row]:
    """The tokens of every step that has any."""
    rows: list[Row] = []
    for step in steps:
        usage = step.usage
        if usage is None or not (usage.input_tokens or usage.output_tokens or usage.total_tokens):
            continue
        made = usage.output_tokens
        given = usage.all_input_tokens
        read = min(usage.cached_input_tokens, given)
        rows.append(
            Row(step.number, step.anchor, given, read, made, min(usage.reasoning_tokens, made))
        )
    return rows


def charts(rows: Sequence[Row]) -> tuple[Chart, ...]:
    """Two charts, input and output: their sizes differ too much for one scale."""
    if not rows:
        return ()
    given = [(row.read, row.given - row.read) for row in rows]
    made = [(row.reasoning, row.made - row.reasoning) for row in rows]
    return (
        _chart(
            "Input tokens",
            rows,
            given,
            (("cached", "read from the cache"), ("fresh", "new")),
            "input",
        ),
        _chart(
            "Output tokens",
            rows,
            made,
            (("reasoning", "reasoning"), ("answer", "answer")),
            "output",
        ),
    )


def _chart(
    title: str,
    rows: Sequence[Row],
    values: Sequence[tuple[int, int]],
    legend: tuple[tuple[str, str], tuple[str, str]],
    word: str,
) -> Chart:
    size = -(-len(rows) // _MOST_BARS)
    groups = [(rows[k : k + size], values[k : k + size]) for k in range(0, len(rows), size)]
    means = [(sum([a for a, _ in v]) / len(v), sum([b for _, b in v]) / len(v)) for _, v in groups]
    highest = max([a + b for a, b in means]) or 1
    slot = WIDTH / len(groups)
    width = min(slot * 0.78, _WIDEST)
    bars: list[Bar] = []
    for k, ((members, _), (low, high)) in enumerate(zip(groups, means, strict=True)):
        x = k * min(slot, _WIDEST / 0.78)
        heights = [low / highest * HEIGHT, high / highest * HEIGHT]
        segments = [
            Segment(
                kind,
                _number(x),
                _number(HEIGHT - sum(heights[: n + 1])),
                _number(width),
                _number(heights[n]),
            )
            for n, (kind, _) in enumerate(legend)
            if heights[n] > 0
        ]
        bars.append(Bar(_label(members, low, high, legend, word), tuple(segments)))
    totals = [a + b for a, b in values]
    summary = (
        f"{len(rows):,} turn{'s' * (len(rows) > 1)}, {sum(totals):,} {word} tokens, from "
        f"{min(totals):,} to {max(totals):,} a turn."
    )
    if size > 1:
        summary += f" Each bar is the mean of {size} turns."
    shown = tuple([entry for n, entry in enumerate(legend) if any(value[n] for value in values)])
    return Chart(title, round(highest), tuple(bars), shown, summary)


def _label(
    members: Sequence[Row],
    low: float,
    high: float,
    legend: tuple[tuple[str, str], tuple[str, str]],
    word: str,
) -> str:
    first, last = members[0].step, members[-1].step
    where = f"Step {first}" if first == last else f"Steps {first} to {last}, mean"
    part = f", {round(low):,} of them {legend[0][1]}" if low else ""
    return f"{where}: {round(low + high):,} {word} tokens{part}"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
