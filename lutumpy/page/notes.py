"""Problems, repairs and decisions of hooks, each noted at what it is about."""

# What is hard: the three are written in three languages, and none of them is the page's.
#
#   what        says where it belongs by                          found by
#   ---------------------------------------------------------------------------------------------
#   a problem   a path or a position in the source, call ids      `find`, else its first known call
#   a repair    the paths of its patch, its position, call ids    `Origins`, since earlier repairs
#                                                                 have moved things; then `find`
#   a decision  the id of its call, in the order of the rounds    the oldest call with that id that
#                                                                 has no decision yet
#
# Whatever can't be placed is still shown: problems and repairs in the list at the top of the page,
# decisions in a last step of their own, since a round that isn't committed has no place yet.

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from lutumpy.errors import Problem
from lutumpy.page.model import (
    CallView,
    Change,
    DecisionView,
    Operation,
    ProblemView,
    RepairView,
    Step,
)
from lutumpy.page.positions import Origins, find, of_position, of_problem
from lutumpy.page.text import data_value
from lutumpy.page.timeline import Timeline
from lutumpy.plain import json_values
from lutumpy.plain.pointer import tokens
from lutumpy.plain.preview import shorten

__all__ = ["RepairLike", "flat_decisions", "place_decisions", "place_problems", "place_repairs"]

# A problem's certainty as the page says it.
WORDS: Mapping[str, str] = {
    "refused": "Refused",
    "some": "May be refused",
    "discouraged": "Discouraged",
}

_LONGEST_CHANGE = 2_000
_MOST_CHANGES = 50


class RepairLike(Protocol):
    """A proposed edit, as `lutumpy.doctor` makes them."""

    @property
    def reason(self) -> str:
        """Why it is proposed, in words."""
        ...

    @property
    def position(self) -> str:
        """What it is about, spelled as the position of a problem."""
        ...

    @property
    def call_ids(self) -> Sequence[str]:
        """Ids of the calls that it is about."""
        ...

    @property
    def patch(self) -> Sequence[Mapping[str, Any]]:
        """The edit: the operations of a JSON Patch (RFC 6902)."""
        ...


def place_problems(timeline: Timeline, problems: Iterable[Problem]) -> list[ProblemView]:
    """Every problem in the order given, each noted where it belongs."""
    calls = _index_calls(timeline)
    views: list[ProblemView] = []
    for number, problem in enumerate(problems, 1):
        found = find(timeline, of_problem(problem))
        if found is None:
            found = next((calls[i] for i in problem.call_ids if i in calls), None)
        # Almost every refusal is `400 invalid_request_error`; only another one is worth a line.
        usual = (problem.status, problem.kind) == (400, "invalid_request_error")
        details = [] if usual else [f"HTTP {problem.status} {problem.kind}"]
        if problem.code:
            details.append(f"code {problem.code}")
        details += [f"call {call_id}" for call_id in problem.call_ids[:20]]
        details += [f"tool {name}" for name in problem.tools[:20]]
        view = ProblemView(
            number,
            problem.rule,
            problem.certainty if problem.certainty in WORDS else "some",
            WORDS.get(problem.certainty, str(problem.certainty)),
            problem.message,
            problem.position or "the request",
            found.anchor if found is not None else None,
            tuple(details),
        )
        if found is not None:
            found.problems.append(view)
        views.append(view)
    return views


def place_repairs(
    timeline: Timeline, repairs: Iterable[RepairLike], limit: int
) -> list[RepairView]:
    """Every repair in the order given, each noted where it belongs in the transcript before all of
    them.
    """
    origins = Origins(timeline.size)
    views: list[RepairView] = []
    for number, repair in enumerate(repairs, 1):
        paths = [*_list_touched_paths(repair.patch), of_position(repair.position)]
        places = [find(timeline, origins.steps(path)) for path in paths]
        found = next((place for place in places if place is not None), None)
        if isinstance(found, Step):
            # A call that the repair names is nearer than the message that holds it.
            named = [call for call in found.calls if call.call_id in repair.call_ids]
            found = named[0] if len(named) == 1 else found
        origins.apply(repair.patch)
        anchor = found.anchor if found is not None else None
        operations = tuple(_view_operations(repair.patch, limit))
        view = RepairView(
            number, repair.reason, repair.position or "the request", anchor, operations
        )
        if found is not None:
            found.repairs.append(view)
        views.append(view)
    return views


def _list_touched_paths(patch: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The paths of a patch, those first that best say what it is about."""
    # What is taken away or changed is shown; what is added isn't there yet.
    keys = (
        ("move", "from"),
        ("remove", "path"),
        ("replace", "path"),
        ("test", "path"),
        ("add", "path"),
        ("copy", "path"),
    )
    return [
        tokens(str(entry.get(key, "")))
        for name, key in keys
        for entry in patch
        if entry.get("op") == name
    ]


def _view_operations(patch: Iterable[Mapping[str, Any]], limit: int) -> Iterator[Operation]:
    """What each operation of a patch changes, with the value before it where that is known."""
    # The patches of repairs test a value before they replace or remove it. The tests change nothing
    # and aren't shown, but they are the only ones that say what was there.
    tested: dict[str, Any] = {}
    for entry in patch:
        name, path, origin = str(entry.get("op", "")), str(entry.get("path", "")), entry.get("from")
        if name == "test":
            tested[path] = entry.get("value")
            continue
        before = None
        if name in ("replace", "remove") and path in tested:
            before = data_value(tested[path], limit)
        after = data_value(entry["value"], limit) if "value" in entry else None
        yield Operation(name, path, before, after, None if origin is None else str(origin))


def _index_calls(timeline: Timeline) -> dict[str, CallView]:
    calls: dict[str, CallView] = {}
    for call in timeline.calls():
        calls.setdefault(call.call_id, call)
    return calls


# --- decisions of hooks ---------------------------------------------------------------------------


def flat_decisions(decisions: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Single decisions of what may be plans, their dumps, lists of decisions, or decisions."""
    for entry in decisions:
        if isinstance(entry, Mapping):
            if entry.get("format") == "lutumpy.plan":
                yield from _decisions_of_dump(entry)
            else:
                yield entry
        elif hasattr(entry, "decisions"):
            yield from flat_decisions(entry.decisions())
        elif isinstance(entry, Iterable) and not isinstance(entry, (str, bytes)):
            yield from flat_decisions(entry)
        else:
            raise TypeError(
                f"decisions are plans or what their decisions() gives, not {type(entry).__name__}"
            )


def _decisions_of_dump(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What was decided about the calls of a plan that was written down."""
    calls = plan.get("calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            is_edited = call.get("standing") == "pending" and call.get("edited") is True
            yield {**call, "decision": "edited" if is_edited else call.get("standing")}


def place_decisions(timeline: Timeline, decisions: Iterable[Mapping[str, Any]], limit: int) -> int:
    """Show each decision with its call; those of calls that aren't in the transcript make a last
    step of their own.

    Returns:
        How many calls were changed, answered or rejected by somebody.
    """
    waiting: dict[str, deque[CallView]] = defaultdict(deque)
    for call in timeline.calls():
        waiting[call.call_id].append(call)
    open_round: Step | None = None
    count = 0
    for data in decisions:
        call_id, tool = str(data.get("call_id", "")), str(data.get("tool", ""))
        asked = data.get("arguments")
        asked = asked if isinstance(asked, str) else json_values.encode_text(asked)
        queue = waiting[call_id]
        if queue:
            call = queue.popleft()
        else:
            if open_round is None:
                open_round = timeline.add_step(
                    "assistant", (), ("open-round",), ("a round that is not in the transcript",)
                )
            call = timeline.add_call(
                open_round, call_id, tool, asked, ("open-round", len(open_round.calls))
            )
        call.decision = _view_decision(data, call, limit)
        count += call.decision.kind not in ("pending", "issue")
    return count


def _view_decision(data: Mapping[str, Any], call: CallView, limit: int) -> DecisionView:
    kind = str(data.get("decision", ""))
    by = " ".join([str(data[key]) for key in ("source", "by") if data.get(key)])
    reason = ": ".join([str(data[key]) for key in ("reason", "detail") if data.get(key)])
    changes: list[Change] = []
    additions: list[Change] = []
    value = None
    if "input" in data and kind in ("edited", "held", "handled", "rejected"):
        before = _parse_json(call.asked)
        for change in _compare_values(before, data["input"], ""):
            (additions if change.before is None else changes).append(change)
        if changes or kind == "edited":
            value = data_value(data["input"], limit)
        else:
            # Nothing but defaults of the tool were added: nobody decided that.
            additions = []
    asked = tuple(_describe_hooks(data.get("hooks")))
    return DecisionView(
        kind,
        by,
        reason,
        tuple(changes[:_MOST_CHANGES]),
        tuple(additions[:_MOST_CHANGES]),
        value,
        asked,
    )


def _describe_hooks(hooks: Any) -> Iterator[str]:
    """What each of several hooks did, as `hook Paths.read_file_hook: edited`."""
    for hook in hooks[:_MOST_CHANGES] if isinstance(hooks, (list, tuple)) else ():
        if isinstance(hook, Mapping):
            who = " ".join([str(hook[key]) for key in ("source", "by") if hook.get(key)])
            yield f"{who}: {hook.get('did', '')}"


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return text


def _compare_values(before: Any, after: Any, path: str, depth: int = 0) -> Iterator[Change]:
    """The fields that differ, as deep as objects go; arrays are compared whole."""
    if isinstance(before, Mapping) and isinstance(after, Mapping) and depth < 20:
        for key in [*before, *[key for key in after if key not in before]]:
            inner = f"{path}.{key}" if path else str(key)
            if key not in after:
                yield Change(inner, _preview_value(before[key]), None)
            elif key not in before:
                yield Change(inner, None, _preview_value(after[key]))
            else:
                yield from _compare_values(before[key], after[key], inner, depth + 1)
    elif not json_values.equal(before, after):
        yield Change(path or "input", _preview_value(before), _preview_value(after))


def _preview_value(value: Any) -> str:
    return shorten(json_values.encode_text(value), _LONGEST_CHANGE)
