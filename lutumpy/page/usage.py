"""Tokens of each turn as the bars of a small chart.

Lengths are in units of the drawing, which scales with the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from lutumpy import Usage
from lutumpy.apis import by_name, is_built_in
from lutumpy.page.model import Step

__all__ = ["Bar", "Chart", "Row", "Segment", "charts", "rows_of", "usage_of"]

WIDTH, HEIGHT = 720.0, 96.0
# More bars than these would be narrower than a finger or a pixel: neighbours are averaged instead.
_MOST_BARS = 120
_WIDEST = 40.0  # so that two turns don't become two walls
_COMMON_COUNTS = frozenset({"input_tokens", "prompt_tokens", "output_tokens", "completion_tokens"})


@dataclass(frozen=True, slots=True)
class Row:
    """The tokens of one turn. `read` and `reasoning` are parts of `input` and `output`."""

    step: int
    anchor: str
    input: int
    read: int
    output: int
    reasoning: int

    @property
    def total(self) -> int:
        """Everything that the turn cost."""
        return self.input + self.output


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
    """The `Usage` in `value`: a `Usage` itself, or the usage object of a provider's answer.

    `None` if `value` is neither.
    """
    if isinstance(value, Usage):
        return value
    dump = getattr(value, "model_dump", None)
    data: Any = dump(mode="json") if dump is not None else value
    if not isinstance(data, Mapping):
        return None
    modules = by_name("page")
    # What most APIs have in common isn't read by the module of an added one.
    asked = [api for api in modules if is_built_in(api) or not data.keys() & _COMMON_COUNTS]
    for api in asked:
        read = getattr(modules[api], "read_usage", None)
        found = read(data) if read is not None else None
        if found is not None:
            return cast("Usage", found)
    input_ = _read_count(data.get("input_tokens", data.get("prompt_tokens")))
    output = _read_count(data.get("output_tokens", data.get("completion_tokens")))
    details = data.get("input_tokens_details", data.get("prompt_tokens_details"))
    cached = _read_count(details.get("cached_tokens")) if isinstance(details, Mapping) else 0
    written = _read_count(
        data.get("cache_creation_input_tokens", data.get("cache_creation_tokens"))
    )
    beside = _read_count(data.get("cache_read_input_tokens"))
    output_details = data.get("output_tokens_details", data.get("completion_tokens_details"))
    reasoning = data.get("reasoning_tokens")
    if isinstance(output_details, Mapping):
        reasoning = output_details.get(
            "reasoning_tokens", output_details.get("thinking_tokens", reasoning)
        )
    total, thought = _read_count(data.get("total_tokens")), _read_count(reasoning)
    if thought and total == input_ + output + thought:
        output = output + thought  # xAI counts reasoning beside the answer
    if not total:
        total = input_ + output + beside
        # Whoever counts cache reads beside the input counts cache writes beside it too; elsewhere
        # they are part of the input.
        if "cache_read_input_tokens" in data:
            total += written
    cached = cached or beside or _read_count(data.get("cached_input_tokens"))
    return Usage(input_, output, total, cached, written, thought)


def _read_count(value: Any) -> int:
    # A history may hold anything in the place of a number. Past 10**15 the chart's arithmetic would
    # lose digits, and no conversation has so many tokens.
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**15:
        return value
    return 0


def rows_of(steps: Sequence[Step]) -> list[Row]:
    """The tokens of every step that has any."""
    rows: list[Row] = []
    for step in steps:
        usage = step.usage
        if usage is None or not (usage.input_tokens or usage.output_tokens or usage.total_tokens):
            continue
        output = usage.output_tokens
        all_input = usage.all_input_tokens
        read = min(usage.cached_input_tokens, all_input)
        rows.append(
            Row(
                step.number,
                step.anchor,
                all_input,
                read,
                output,
                min(usage.reasoning_tokens, output),
            )
        )
    return rows


def charts(rows: Sequence[Row]) -> tuple[Chart, ...]:
    """Two charts, input and output, because their sizes differ too much for one scale."""
    if not rows:
        return ()
    inputs = [(row.read, row.input - row.read) for row in rows]
    outputs = [(row.reasoning, row.output - row.reasoning) for row in rows]
    return (
        _draw_chart(
            "Input tokens",
            rows,
            inputs,
            (("cached", "read from the cache"), ("fresh", "new")),
            "input",
        ),
        _draw_chart(
            "Output tokens",
            rows,
            outputs,
            (("reasoning", "reasoning"), ("answer", "answer")),
            "output",
        ),
    )


def _draw_chart(
    title: str,
    rows: Sequence[Row],
    values: Sequence[tuple[int, int]],
    legend: tuple[tuple[str, str], tuple[str, str]],
    word: str,
) -> Chart:
    # Turns for one bar, rounded up.
    size = -(-len(rows) // _MOST_BARS)
    groups = [(rows[k : k + size], values[k : k + size]) for k in range(0, len(rows), size)]
    means = [(sum([a for a, _ in v]) / len(v), sum([b for _, b in v]) / len(v)) for _, v in groups]
    # All bars may be zero, and they are divided by the highest.
    highest = max([a + b for a, b in means]) or 1
    slot = WIDTH / len(groups)
    # A fifth of each slot stays empty, so that bars don't touch.
    width = min(slot * 0.78, _WIDEST)
    bars: list[Bar] = []
    for k, ((members, _), (low, high)) in enumerate(zip(groups, means, strict=True)):
        x = k * min(slot, _WIDEST / 0.78)
        heights = [low / highest * HEIGHT, high / highest * HEIGHT]
        segments = [
            Segment(
                kind,
                _format_length(x),
                _format_length(HEIGHT - sum(heights[: n + 1])),
                _format_length(width),
                _format_length(heights[n]),
            )
            for n, (kind, _) in enumerate(legend)
            if heights[n] > 0
        ]
        bars.append(Bar(_label_bar(members, low, high, legend, word), tuple(segments)))
    totals = [a + b for a, b in values]
    summary = (
        f"{len(rows):,} turn{'s' * (len(rows) > 1)}, {sum(totals):,} {word} tokens, from "
        f"{min(totals):,} to {max(totals):,} a turn."
    )
    if size > 1:
        summary += f" Each bar is the mean of {size} turns."
    shown = tuple([entry for n, entry in enumerate(legend) if any(value[n] for value in values)])
    return Chart(title, round(highest), tuple(bars), shown, summary)


def _label_bar(
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


def _format_length(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
