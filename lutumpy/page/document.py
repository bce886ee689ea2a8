"""The page: one HTML file that needs nothing else and asks nobody for anything.

What the transcript holds gets into it as text only. The templates escape everything, and should
that ever fail, the page's own policy lets nothing run or load but its one script and its one style
sheet, which it knows by their digests.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, cast

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
except ImportError as _error:
    raise ImportError(
        'lutumpy.page needs jinja2: python -m pip install ".[cli]" (in a clone)'
    ) from _error

from lutumpy import AssistantTurn, Session, Transcript
from lutumpy.apis import Api, api_names, api_row
from lutumpy.doctor import Problem
from lutumpy.page import readers
from lutumpy.page.model import ProblemView, RepairView, Step, ToolView
from lutumpy.page.notes import (
    RepairLike,
    flat_decisions,
    place_decisions,
    place_problems,
    place_repairs,
)
from lutumpy.page.pieces import unwrap
from lutumpy.page.text import LIMIT, data_value, plain, shown
from lutumpy.page.timeline import Timeline
from lutumpy.page.usage import charts, rows_of, usage_of

__all__ = ["render", "write"]


@dataclass(frozen=True, slots=True)
class Count:
    """A number of the overview, with its noun; `style` colours it."""

    number: str
    noun: str
    style: str = ""


def render(
    source: Session | Transcript | Sequence[Any] | str,
    *,
    api: Api | None = None,
    system: Any = None,
    tools: Iterable[Any] = (),
    answer: AssistantTurn | None = None,
    decisions: Iterable[Any] = (),
    usage: Iterable[Any] = (),
    problems: Iterable[Problem] | None = None,
    repairs: Iterable[RepairLike] = (),
    title: str = "Transcript",
    limit: int = LIMIT,
) -> str:
    """A conversation as one self-contained HTML page. Equal arguments give equal pages.

    Args:
        source: A session or transcript, or the messages of one API (items, on Responses): JSON
            values or SDK objects, in whatever state they are.
        api: Whose API the messages are; needed for messages, not asked for else.
        system: What stands beside the messages: Anthropic's `system`, the `instructions` of
            Responses.
        tools: The tools that were offered, as the API takes them.
        answer: A decoded answer that isn't in the source yet, such as `round.turn`; shown at the
            end.
        decisions: What hooks decided: round plans, or what their `decisions()` gives, of one round
            or several, in order.
        usage: Tokens of the answers among the messages, in order: `Usage`, or what the provider
            sent, or `None`. A transcript knows its own.
        problems: What a check found; `None` where nothing was checked.
        repairs: Proposed edits.
        title: The page's heading.
        limit: Characters of one text that are shown at most; the page says how many it left out.

    Raises:
        ValueError: messages without their `api`, or an unknown one.
        TypeError: the source, or a decision, is of another kind.
    """
    return "".join(
        _chunks(
            source, api, system, tools, answer, decisions, usage, problems, repairs, title, limit
        )
    )


def write(
    path: str | os.PathLike[str], source: Session | Transcript | Sequence[Any] | str, **options: Any
) -> None:
    """Write the page of `source` into a file, UTF-8; options and errors are those of `render`.

    The page is complete before the file is opened, so that an error leaves what was there.
    """
    Path(path).write_text(render(source, **options), encoding="utf-8", newline="\n")


def _chunks(
    source: Any,
    api: Api | None,
    system: Any,
    tools: Iterable[Any],
    answer: AssistantTurn | None,
    decisions: Iterable[Any],
    usage: Iterable[Any],
    problems: Iterable[Problem] | None,
    repairs: Iterable[RepairLike],
    title: str,
    limit: int,
) -> Iterator[str]:
    if limit < 1:
        raise ValueError(f"limit is a number of characters, at least 1, not {limit}")
    timeline = _read(source, api, system, limit)
    if answer is not None:
        readers.read_turn(timeline, "answer", answer)
    _count_tokens(timeline, usage)
    decided = place_decisions(timeline, flat_decisions(decisions), limit)
    found = None if problems is None else place_problems(timeline, problems)
    proposed = place_repairs(timeline, repairs, limit)
    rows = rows_of(timeline.steps)
    template = _environment().get_template("page.html.j2")
    yield from template.generate(
        title=title,
        api=_api_name(source, api),
        counts=_counts(timeline.steps, decided, found, proposed, sum([row.total for row in rows])),
        steps=timeline.steps,
        problems=found,
        repairs=proposed,
        tools=_tools(tools, limit),
        charts=charts(rows),
        rows=rows,
        jumps=_jumps(len(timeline.steps)),
        **_assets(),
    )


def _read(source: Any, api: Api | None, system: Any, limit: int) -> Timeline:
    if isinstance(source, Session):
        source = source.transcript
    if isinstance(source, Transcript):
        return readers.read_transcript(source, limit)
    if api is None:
        raise ValueError(f"messages need their api: one of {', '.join(api_names())}")
    api_row(api)  # it says which APIs there are
    if not isinstance(source, (list, tuple, str)):
        raise TypeError(
            "a page shows a session, a transcript or a list of messages, not "
            f"{type(source).__name__}"
        )
    return readers.read_messages(api, source, system, limit)


def _api_name(source: Any, api: Api | None) -> str:
    if api is not None:
        return api_row(api).title
    items: Iterable[Any] = source.transcript if isinstance(source, Session) else source
    return ", ".join(dict.fromkeys([item.api for item in items if isinstance(item, AssistantTurn)]))


def _count_tokens(timeline: Timeline, usage: Iterable[Any]) -> None:
    answers = iter(
        [step for step in timeline.steps if step.style == "assistant" and step.usage is None]
    )
    for entry in usage:
        step = next(answers, None)
        if step is not None:
            step.usage = usage_of(entry)


def _counts(
    steps: Sequence[Step],
    decided: int,
    problems: Sequence[ProblemView] | None,
    repairs: Sequence[RepairView],
    tokens: int,
) -> list[Count]:
    results = [
        r
        for step in steps
        for group in (*[c.results for c in step.calls], step.strays)
        for r in group
    ]
    failed = sum([result.status == "error" for result in results])
    rejected = sum([result.status == "rejected" for result in results])
    calls = sum([len(step.calls) for step in steps])
    counts = [
        _count(len(steps), "step"),
        _count(sum([bool(step.calls) for step in steps]), "round"),
        _count(calls, "tool call"),
    ]
    if failed:
        counts.append(_count(failed, "failed result", style="bad"))
    if rejected:
        counts.append(_count(rejected, "rejected result", style="warn"))
    if decided:
        counts.append(_count(decided, "decision by hooks", "decisions by hooks", style="warn"))
    if problems is not None:
        counts.append(_count(len(problems), "problem", style="bad" if problems else "good"))
    if repairs:
        counts.append(_count(len(repairs), "proposed repair", style="good"))
    if tokens:
        counts.append(_count(tokens, "token"))
    return counts


def _count(number: int, one: str, many: str = "", style: str = "") -> Count:
    return Count(f"{number:,}", one if number == 1 else many or f"{one}s", style)


def _tools(tools: Iterable[Any], limit: int) -> list[ToolView]:
    views: list[ToolView] = []
    for tool in tools:
        data = unwrap(tool)
        fields: dict[str, Any] = data if isinstance(data, dict) else {}
        inner = fields.get("function")
        body = cast("dict[str, Any]", inner) if isinstance(inner, dict) else fields
        name, description = body.get("name") or body.get("type"), body.get("description")
        views.append(
            ToolView(
                name if isinstance(name, str) else "unnamed",
                description if isinstance(description, str) else "",
                data_value(data, limit),
            )
        )
    return views


def _jumps(steps: int) -> range:
    """Steps to jump to in a long conversation: at most forty, evenly apart."""
    return range(1, steps + 1, max(25, -(-steps // 1_000) * 25)) if steps > 100 else range(0)


@cache
def _environment() -> Environment:
    # `finalize` sees every value before it is escaped, so hidden characters can't get through where
    # a template forgot the filter `shown`.
    environment = Environment(
        loader=PackageLoader("lutumpy.page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: plain(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters["shown"] = shown
    environment.filters["grouped"] = lambda number: f"{number:,}"
    return environment


@cache
def _assets() -> dict[str, Markup]:
    """The style sheet and the script, and the policy that names them by digest."""
    folder = resources.files("lutumpy.page") / "templates"
    style = (folder / "page.css").read_text(encoding="utf-8").strip()
    script = (folder / "page.js").read_text(encoding="utf-8").strip()
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return {"style": Markup(style), "script": Markup(script), "policy": Markup(policy)}


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
