"""The page: one HTML file that needs no other file and no network.

The transcript gets into it as text only. The templates escape everything. Should that ever fail,
the page's own content security policy still lets nothing run or load but its one script and its one
style sheet, which the policy names by their digests.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
except ImportError as _error:
    raise ImportError(
        'lutumpy.page needs jinja2: python -m pip install ".[cli]" (in a clone)'
    ) from _error

from lutumpy import AssistantTurn, Session, Transcript
from lutumpy.apis import Api, api_names, api_row, serving
from lutumpy.doctor import Problem
from lutumpy.page import readers
from lutumpy.page.model import ProblemView, RepairView, ResultView, Step, ToolView
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

if TYPE_CHECKING:
    from lutumpy.budget import Prices

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
    prices: Prices | None = None,
) -> str:
    """A conversation as one self-contained HTML page. Equal arguments give equal pages.

    Args:
        source: A session or transcript, or the messages of one API (items, on Responses): JSON
            values or SDK objects, in whatever state they are.
        api: The API of the messages. Required for messages; ignored for a session or transcript,
            except as the name in the heading.
        system: What is beside the messages: Anthropic's `system`, the `instructions` of
            Responses.
        tools: The tools that were offered, as the API takes them.
        answer: A decoded answer that isn't in the source yet, such as `round.turn`; shown at the
            end.
        decisions: What hooks decided: round plans, their dumps, or what their `decisions()` gives,
            of one round or several, in order. So a plan that waits in a store can be shown.
        usage: Tokens of the answers among the messages, in order: `Usage`, or what the provider
            sent, or `None`. A transcript knows its own.
        problems: What a check found; `None` if nothing was checked.
        repairs: Proposed edits.
        title: The page's heading.
        limit: The most characters of one text to show; the page says how many it left out.
        prices: Prices of `lutumpy.budget`: the heading says what a session or transcript has cost.

    Raises:
        UnknownPriceError: `prices` refuse a model that they don't know.
        ValueError: Messages come without their `api`, the API is unknown, or `limit` is below 1.
        TypeError: The source or a decision is of an unsupported type.
    """
    if limit < 1:
        raise ValueError(f"limit is a number of characters, at least 1, not {limit}")
    timeline = _read_source(source, api, system, limit)
    if answer is not None:
        readers.read_turn(timeline, "answer", answer)
    _add_usage(timeline, usage)
    # Notes come after the last step, so that each finds what it is about. Decisions come first:
    # those of a round that isn't committed add a step and calls, which problems may name.
    decided = place_decisions(timeline, flat_decisions(decisions), limit)
    found = None if problems is None else place_problems(timeline, problems)
    proposed = place_repairs(timeline, repairs, limit)
    rows = rows_of(timeline.steps)
    tokens = sum([row.total for row in rows])
    counts = _count_all(timeline.steps, decided, found, proposed, tokens)
    if prices is not None:
        counts += _count_dollars(source, prices)
    return (
        load_templates()
        .get_template("page.html.j2")
        .render(
            title=title,
            api=_api_name(source, api),
            counts=counts,
            steps=timeline.steps,
            problems=found,
            repairs=proposed,
            tools=_view_tools(tools, api, limit),
            charts=charts(rows),
            rows=rows,
            jumps=_choose_jumps(len(timeline.steps)),
            **_load_assets(),
        )
    )


def write(
    path: str | os.PathLike[str], source: Session | Transcript | Sequence[Any] | str, **options: Any
) -> None:
    """Write the page of `source` into a file, UTF-8; options and errors are those of `render`.

    The page is complete before the file is opened, so that an error leaves what was there.
    """
    Path(path).write_text(render(source, **options), encoding="utf-8", newline="\n")


def _read_source(source: Any, api: Api | None, system: Any, limit: int) -> Timeline:
    if isinstance(source, Session):
        source = source.transcript
    if isinstance(source, Transcript):
        return readers.read_transcript(source, limit)
    if api is None:
        raise ValueError(f"messages need their api: one of {', '.join(api_names())}")
    api_row(api)  # raises for an unknown API, and lists the known ones
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


def _add_usage(timeline: Timeline, usage: Iterable[Any]) -> None:
    answers = iter(
        [step for step in timeline.steps if step.style == "assistant" and step.usage is None]
    )
    for entry in usage:
        step = next(answers, None)
        if step is not None:
            step.usage = usage_of(entry)


def _count_all(
    steps: Sequence[Step],
    decided: int,
    problems: Sequence[ProblemView] | None,
    repairs: Sequence[RepairView],
    tokens: int,
) -> list[Count]:
    results: list[ResultView] = []
    for step in steps:
        for call in step.calls:
            results.extend(call.results)
        results.extend(step.strays)
    failed = sum([result.status == "error" for result in results])
    rejected = sum([result.status == "rejected" for result in results])
    calls = sum([len(step.calls) for step in steps])
    counts = [
        _make_count(len(steps), "step"),
        _make_count(sum([bool(step.calls) for step in steps]), "round"),
        _make_count(calls, "tool call"),
    ]
    if failed:
        counts.append(_make_count(failed, "failed result", style="bad"))
    if rejected:
        counts.append(_make_count(rejected, "rejected result", style="warn"))
    if decided:
        counts.append(_make_count(decided, "decision by hooks", "decisions by hooks", style="warn"))
    if problems is not None:
        counts.append(_make_count(len(problems), "problem", style="bad" if problems else "good"))
    if repairs:
        counts.append(_make_count(len(repairs), "proposed repair", style="good"))
    if tokens:
        counts.append(_make_count(tokens, "token"))
    return counts


def _count_dollars(source: Any, prices: Prices) -> list[Count]:
    """What a session or transcript has cost; messages don't say what they cost."""
    if not isinstance(source, (Session, Transcript)):
        return []
    from lutumpy.budget import cost_of

    return [Count(f"{cost_of(source, prices).normalize():f}", "dollars", "")]


def _make_count(number: int, one: str, many: str = "", style: str = "") -> Count:
    noun = one if number == 1 else many or f"{one}s"
    return Count(f"{number:,}", noun, style)


def _view_tools(tools: Iterable[Any], api: Api | None, limit: int) -> list[ToolView]:
    listed = [unwrap(tool) for tool in tools]
    rules: Any = serving(api, "rules") if api in api_names() else None
    if hasattr(rules, "tools_of"):  # one entry may declare several
        listed = rules.tools_of({"tools": listed}) or listed
    views: list[ToolView] = []
    for data in listed:
        declared = None if rules is None else rules.read_tool(data)
        if declared is not None:
            words = declared.description or ""
            views.append(ToolView(declared.name, words, data_value(data, limit)))
            continue
        fields: dict[str, Any] = data if isinstance(data, dict) else {}
        # Chat Completions wraps what a tool declares; the others have it at the top.
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


def _choose_jumps(steps: int) -> range:
    """Steps to jump to in a long conversation: at most forty, evenly apart."""
    if steps <= 100:
        return range(0)
    return range(1, steps + 1, max(25, -(-steps // 1_000) * 25))


@cache
def load_templates() -> Environment:
    # `finalize` gets every value before it is escaped, so hidden characters can't get through even
    # where a template forgot the filter `shown`.
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
def _load_assets() -> dict[str, Markup]:
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
