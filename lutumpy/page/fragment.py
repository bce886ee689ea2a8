"""What a notebook shows of a value: a piece of the page, without a script and without links to
anything outside.
"""

# What is hard: a notebook keeps what it shows, so a fragment has a limit of its own, whatever a
# tool returned. The latest steps matter most. So the texts of a step are cut, and steps are left
# out from the beginning until what is left fits.

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from markupsafe import Markup

from lutumpy import AssistantTurn, Session, ToolRound, ToolRoundPlan
from lutumpy.loops import LoopResult
from lutumpy.page import readers
from lutumpy.page.document import load_templates
from lutumpy.page.model import Step
from lutumpy.page.notes import flat_decisions, place_decisions
from lutumpy.page.timeline import Timeline

__all__ = ["MOST_BYTES", "render_fragment"]

MOST_BYTES = 100_000
"""How long a fragment may be, in bytes of UTF-8."""

_TEXT = 2_000  # characters of one text
_SHORT_TEXT = 200
_STEPS = 40

Facts = Sequence[tuple[str, str]]


def render_fragment(value: Any) -> str:
    """A session, a round, a plan or the result of a loop as HTML of at most `MOST_BYTES` bytes.

    Of a plan the calls that wait for a person come first, with the reason and the input.

    Raises:
        TypeError: The value is of another type.
    """
    for limit in (_TEXT, _SHORT_TEXT):
        facts, timeline = _read_value(value, limit)
        steps = timeline.steps[-_STEPS:]
        while True:
            left_out = len(timeline.steps) - len(steps)
            html = _render(repr(value), [(n, t[:limit]) for n, t in facts], steps, left_out)
            if len(html.encode()) < MOST_BYTES:
                return html
            if len(steps) <= 1:
                break
            steps = steps[len(steps) // 2 :]
    # One step of thousands of calls.
    return _render(repr(value), [], [], len(timeline.steps))


def _read_value(value: Any, limit: int) -> tuple[Facts, Timeline]:
    if isinstance(value, Session):
        return (), readers.read_transcript(value.transcript, limit)
    timeline = readers.read_transcript((), limit)
    if isinstance(value, LoopResult):
        return _list_facts(value), timeline
    if not isinstance(value, (ToolRound, ToolRoundPlan)):
        raise TypeError(f"a notebook shows no {type(value).__name__} this way")
    turn: AssistantTurn = value.turn
    readers.read_turn(timeline, "answer", turn)
    if isinstance(value, ToolRoundPlan):
        place_decisions(timeline, flat_decisions([value]), limit)
        for step in timeline.steps:
            step.calls.sort(key=lambda call: not (call.decision and call.decision.kind == "held"))
    return (), timeline


def _list_facts(result: LoopResult[Any]) -> Facts:
    facts = [
        ("stopped by", result.stopped_by),
        ("rounds", str(result.rounds)),
        ("tokens", f"{result.usage.total_tokens:,}"),
        ("text", result.text),
    ]
    if result.value is not None:
        facts.append(("value", repr(result.value)))
    if result.value_error is not None:
        facts.append(("no value", result.value_error))
    return facts


def _render(title: str, facts: Facts, steps: Sequence[Step], left_out: int) -> str:
    template = load_templates().get_template("fragment.html.j2")
    return template.render(
        title=title, facts=facts, steps=steps, left_out=left_out, style=_load_style()
    )


@cache
def _load_style() -> Markup:
    style = (resources.files("lutumpy.page") / "templates" / "fragment.css").read_text("utf-8")
    return Markup(style.strip())
