"""What became of the calls of a conversation, and what would become of them now."""

# What is hard here is to know what became of a call, and what would become of it now:
#
#     the record says     it was      other tools or hooks would   it would be
#     ok, error           run         let it pass                  run
#     promised            run         edit its input               edited
#     rejected            refused     complete it                  answered
#                                     hold it                      held
#                                     reject it, or can't read it  refused
#
# Run and run is no difference, and refused and refused is none for the same reason. A record
# doesn't say whether a hook had edited or answered a call. So an edit is always a difference, and
# an answer is none if the model was told the same.
#
# Each round is judged for itself, against the history as it was. What the model would have said
# after a difference, only the model knows: `fork` asks one.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from lutumpy import HandledTool, NeedsTools, ToolRoundPlan
from lutumpy.models import AssistantTurn, ResultBlock, ToolResults
from lutumpy.plain import json_values
from lutumpy.plain.preview import shorten
from lutumpy.plain.values import dataclass
from lutumpy.testing.past_results import is_refused, text_of_result

__all__ = ["CallDifference", "PastRound", "compare"]

Fate: TypeAlias = Literal["run", "edited", "answered", "held", "refused"]

_SHOWN = 120


@dataclass(frozen=True, slots=True)
class PastRound:
    """An answer of the model in a conversation.

    Attributes:
        number: Which one it is, from 1.
        turn: The answer.
        results: What became of its calls; `None` where it has none.
    """

    number: int
    turn: AssistantTurn
    results: ToolResults | None


@dataclass(frozen=True, slots=True)
class CallDifference:
    """A call of a record that would fare otherwise.

    Attributes:
        round: In which answer it is, from 1.
        name: The tool's name.
        arguments: The arguments, as the model wrote them.
        was: What became of it: `run` or `refused`.
        now: What would become of it: also `edited` (run with another input), `answered` (by a
            hook) or `held` (for a person).
        detail: The reason, the input or the answer.
    """

    round: int
    name: str
    arguments: str
    was: Literal["run", "refused"]
    now: Fate
    detail: str

    def __str__(self) -> str:
        would = {
            "run": "would run",
            "edited": "would run with",
            "answered": "would be answered with",
            "held": "would wait for a person",
            "refused": "would be refused",
        }[self.now]
        call = f"{self.name}({shorten(self.arguments, _SHOWN)})"
        detail = " ".join(self.detail.split())
        between = " " if self.now in ("edited", "answered") else ": "
        more = f"{between}{shorten(detail, 2 * _SHOWN)}" if detail else ""
        return f"round {self.round}: {call} was {self.was}, {would}{more}"


def compare(
    past: PastRound, outcome: NeedsTools[Any], plan: ToolRoundPlan[Any]
) -> Iterator[CallDifference]:
    """The calls of a round that would fare otherwise, by the plan that was made of it now."""
    assert past.results is not None, "only rounds with results are judged"
    calls = {call.metadata.id: call for call in outcome.round.calls}
    handled = {one.metadata.id: one for one in plan.handled}
    for decision, result in zip(plan.decisions(), past.results.results, strict=False):
        now, detail = _fate_of(decision, calls, handled)
        was: Literal["run", "refused"] = "refused" if is_refused(result) else "run"
        if not _is_same(was, now, detail, result):
            name, arguments = decision["tool"], decision["arguments"]
            yield CallDifference(past.number, name, arguments, was, now, detail)


def _fate_of(
    decision: dict[str, Any], calls: dict[str, Any], handled: dict[str, HandledTool[Any, Any]]
) -> tuple[Fate, str]:
    kind = decision["decision"]
    if kind == "edited":
        return "edited", json_values.as_written(decision["input"])
    if kind in ("handled", "approved"):
        found = handled[decision["call_id"]]
        call = calls.get(decision["call_id"])
        if call is None:  # a call that the provider makes itself
            return "run", ""
        return "answered", str(text_of_result(call.complete(found.output)))
    if kind == "held":
        return "held", str(decision.get("reason") or "")
    if kind == "rejected":
        return "refused", str(decision.get("reason") or "")
    if kind == "issue":
        return "refused", str(decision.get("detail") or decision.get("reason") or "")
    return "run", ""


def _is_same(was: str, now: Fate, detail: str, result: ResultBlock) -> bool:
    if now == "answered":
        return was == "run" and json_values.equal_arguments(detail, result.text)
    if now == "refused":
        # What else is said then, as that this very call failed before, goes by the history.
        return was == "refused" and detail in result.text
    return was == now == "run"
