"""Problems, repairs and decisions of hooks, put to what they are about."""

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
from lutumpy.page.positions import Origins, find, of_pointer, of_position, of_problem
from lutumpy.page.text import data_value
from lutumpy.page.timeline import Timeline
from lutumpy.plain import json_values

__all__ = ["RepairLike", "flat_decisions", "place_decisions", "place_problems", "place_repairs"]

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
    calls = _first_calls(timeline)
    views: list[ProblemView] = []
    for number, problem in enumerate(problems, 1):
        found = find(timeline, of_problem(problem)) or next(
            (calls[i] for i in problem.call_ids if i in calls), None
        )
        # The common answer is `400 invalid_request_error`; any other one says something.
        usual = (problem.status, problem.kind) == (400, "invalid_request_error")
        details = [] if usual else [f"HTTP {problem.status} {problem.kind}"]
        details += [f"code {problem.code}"] if problem.code else []
        details += [f"call {call_id}" for call_id in problem.call_ids[:20]] + [
            f"tool {name}" for name in problem.tools[:20]
        ]
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
        paths = [*_changed(repair.patch), of_position(repair.position)]
        places = [find(timeline, origins.steps(path)) for path in paths]
        found = next((place for place in places if place is not None), None)
        if isinstance(found, Step):
            # A call that the repair names is nearer than the message that holds it.
            named = [call for call in found.calls if call.call_id in repair.call_ids]
            found = named[0] if len(named) == 1 else found
        origins.apply(repair.patch)
        anchor = found.anchor if found is not None else None
        operations = tuple(_operations(repair.patch, limit))
        view = RepairView(
            number, repair.reason, repair.position or "the request", anchor, operations
        )
        if found is not None:
            found.repairs.append(view)
        views.append(view)
    return views


def _changed(patch: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The paths that say best what an edit is about, the best first: what it takes or changes, what
    it tests, what it adds.
    """
    keys = (
        ("move", "from"),
        ("remove", "path"),
        ("replace", "path"),
        ("test", "path"),
        ("add", "path"),
        ("copy", "path"),
    )
    return [
        of_pointer(str(entry.get(key, "")))
        for name, key in keys
        for entry in patch
        if entry.get("op") == name
    ]


def _operations(patch: Iterable[Mapping[str, Any]], limit: int) -> Iterator[Operation]:
    """What the operations of a patch do.

    Its tests change nothing, but know what stands where something is changed.
    """
    tested: dict[str, Any] = {}
    for entry in patch:
        name, path, origin = str(entry.get("op", "")), str(entry.get("path", "")), entry.get("from")
        if name == "test":
            tested[path] = entry.get("value")
            continue
        before = (
            data_value(tested[path], limit)
            if name in ("replace", "remove") and path in tested
            else None
        )
        after = data_value(entry["value"], limit) if "value" in entry else None
        yield Operation(name, path, before, after, None if origin is None else str(origin))


def _first_calls(timeline: Timeline) -> dict[str, CallView]:
    calls: dict[str, CallView] = {}
    for call in timeline.calls():
        calls.setdefault(call.call_id, call)
    return calls


# --- decisions of hooks ---------------------------------------------------------------------------


def flat_decisions(decisions: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Single decisions of what may be plans, lists of decisions, or decisions."""
    for entry in decisions:
        if isinstance(entry, Mapping):
            yield entry
        elif hasattr(entry, "decisions"):
            yield from flat_decisions(entry.decisions())
        elif isinstance(entry, Iterable) and not isinstance(entry, (str, bytes)):
            yield from flat_decisions(entry)
        else:
            raise TypeError(
                f"decisions are plans or what their decisions() gives, not {type(entry).__name__}"
            )


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
                open_round = timeline.say(
                    "assistant", (), ("open-round",), ("a round that is not in the transcript",)
                )
            call = timeline.call(
                open_round, call_id, tool, asked, ("open-round", len(open_round.calls))
            )
        call.decision = _decision(data, call, limit)
        count += call.decision.kind not in ("pending", "issue")
    return count


def _decision(data: Mapping[str, Any], call: CallView, limit: int) -> DecisionView:
    kind = str(data.get("decision", ""))
    by = " ".join([str(data[key]) for key in ("source", "by") if data.get(key)])
    reason = ": ".join([str(data[key]) for key in ("reason", "detail") if data.get(key)])
    changes: list[Change] = []
    additions: list[Change] = []
    value = None
    if "input" in data and kind in ("edited", "handled", "rejected"):
        before = _parsed(call.asked)
        for change in _changes(before, data["input"], ""):
            (additions if change.before is None else changes).append(change)
        if changes or kind == "edited":
            value = data_value(data["input"], limit)
        else:
            additions = []
    asked = tuple(_asked(data.get("hooks")))
    return DecisionView(
        kind,
        by,
        reason,
        tuple(changes[:_MOST_CHANGES]),
        tuple(additions[:_MOST_CHANGES]),
        value,
        asked,
    )


def _asked(hooks: Any) -> Iterator[str]:
    """What each of several hooks did, as `hook Paths.read_file_hook: edited`."""
    for hook in hooks[:_MOST_CHANGES] if isinstance(hooks, (list, tuple)) else ():
        if isinstance(hook, Mapping):
            who = " ".join([str(hook[key]) for key in ("source", "by") if hook.get(key)])
            yield f"{who}: {hook.get('did', '')}"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return text


def _changes(before: Any, after: Any, path: str, depth: int = 0) -> Iterator[Change]:
    """The fields that differ, deepest objects first opened; arrays and unlike values are compared
    whole.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping) and depth < 20:
        for key in [*before, *[key for key in after if key not in before]]:
            inner = f"{path}.{key}" if path else str(key)
            if key not in after:
                yield Change(inner, _short(before[key]), None)
            elif key not in before:
                yield Change(inner, None, _short(after[key]))
            else:
                yield from _changes(before[key], after[key], inner, depth + 1)
    elif not json_values.equal(before, after):
        yield Change(path or "input", _short(before), _short(after))


def _short(value: Any) -> str:
    text = json_values.encode_text(value)
    return text if len(text) <= _LONGEST_CHANGE else text[:_LONGEST_CHANGE] + "…"
