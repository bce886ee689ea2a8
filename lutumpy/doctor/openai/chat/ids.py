"""Repairs of Chat Completions: ids of calls, in the call and in its result alike."""

# the call's id              what tells its results
# one call has it            the id, wherever the results are
# several calls have it      the id, in the results right after the message
# missing                    the place: as many nameless calls as nameless results there

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import by_id, drop_entry, expect_entry, message_index, placed
from lutumpy.doctor.openai.chat.results import calls_of, is_result, results_after
from lutumpy.doctor.wording import Fresh
from lutumpy.errors import Problem
from lutumpy.plain import json_values
from lutumpy.rules.openai.chat.limits import MAX_CALL_ID

__all__ = ["mend_ids", "mend_repeats", "mend_result_ids", "mend_reused"]


def _fresh_ids(editor: Editor) -> Fresh:
    return Fresh(_find_ids(editor), MAX_CALL_ID)


def _find_ids(editor: Editor) -> Iterator[str]:
    """Every id of a call in the history, in calls and in results."""
    for message in editor.document:
        if not isinstance(message, dict):
            continue
        calls = message.get("tool_calls")
        for entry in [message, *(calls if isinstance(calls, list) else ())]:
            for key in ("tool_call_id", "id"):
                if isinstance(entry, dict) and isinstance(entry.get(key), str):
                    yield entry[key]


def _result_id(editor: Editor, index: int) -> Any:
    return editor.get((index, "tool_call_id"))


def _results_with(editor: Editor, index: int, call_id: Any) -> list[int]:
    """The results right after a message that name a call by this id."""
    return [at for at in results_after(editor, index) if _result_id(editor, at) == call_id]


# ------------------------------------------------------------- refused ids


def mend_ids(editor: Editor, problems: list[Problem]) -> None:
    """Ids that are missing, not a text, or too long: a new one, in call and result alike."""
    fresh = _fresh_ids(editor)
    owners = _count_owners(editor)
    indices = range(len(editor.document))
    results: list[Path] = [(index,) for index in indices if is_result(editor.get((index,)))]
    results_by_id = by_id(editor, results, "tool_call_id")
    for problem in problems:
        index = message_index(problem)
        call = editor.get(problem.path[:-1])
        if index is None or not isinstance(call, dict):
            continue
        old = call.get("id")
        if isinstance(old, str) and old and owners.get(old) == 1:
            answers = results_by_id.get(old, [])
        else:
            answers = _find_results_by_place(editor, index, problem.path, old)
        new = fresh.id(old)
        editor.put(problem.path, new)
        for path in answers:
            editor.put((*path, "tool_call_id"), new)
        has_text = isinstance(old, str) and bool(old)
        what = "is longer than the API takes" if has_text else "is missing or not a text"
        reason = f"The id of the call {what}; it becomes {new!r}, in the result as well."
        editor.done("replace_id", problem, reason, call_ids=(old,) if isinstance(old, str) else ())


def _count_owners(editor: Editor) -> Mapping[str, int]:
    """How many calls have each id."""
    owners: dict[str, int] = {}
    for index in range(len(editor.document)):
        for call in calls_of(editor, index):
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                owners[call["id"]] = owners.get(call["id"], 0) + 1
    return owners


def _find_results_by_place(editor: Editor, index: int, path: Path, old: Any) -> list[Path]:
    """The results, right after its message, of a call whose id can't be looked up."""
    results = results_after(editor, index)
    if old is not None and old != "":
        return [(at,) for at in results if _is_same_id(_result_id(editor, at), old)]
    nameless: list[int] = []
    for number, call in enumerate(calls_of(editor, index)):
        if isinstance(call, dict) and not call.get("id"):
            nameless.append(number)
    unclaimed = [at for at in results if not _result_id(editor, at)]
    # Calls of this message that were mended before have ids by now, and so have their results.
    if len(nameless) != len(unclaimed) or path[2] != nameless[0]:
        return []
    return [(unclaimed[0],)]


def _is_same_id(left: Any, right: Any) -> bool:
    return type(left) is type(right) and json_values.equal(left, right)


# -------------------------------------------------------- results without ids


def mend_result_ids(editor: Editor, problems: list[Problem]) -> None:
    """A result without an id answers the call in its place that has no other, or goes."""
    lost: list[Problem] = []
    for problem, index in placed(problems):
        call_id = _find_call_by_place(editor, index)
        if call_id is None:
            lost.append(problem)
            continue
        editor.expect((index, "role"))
        editor.put((index, "tool_call_id"), call_id)
        reason = (
            "The result names no call; it gets the id of the call in its place, which has none."
        )
        editor.done("match_result", problem, reason, call_ids=(call_id,))
    # Dropping comes last: until then every result keeps its place among the others.
    for problem in lost:
        reason = (
            "The result names no call, and its place doesn't show which one it answers; "
            "it is left out."
        )
        drop_entry(editor, problem.path[:1], problem, "drop_result", reason)


def _find_call_by_place(editor: Editor, index: int) -> str | None:
    """The id of the call that a result without one answers, if its place tells."""
    start = index
    while start >= 0 and is_result(editor.get((start,))):
        start -= 1
    if start < 0:
        return None
    named: set[str] = set()
    unnamed: list[int] = []
    for at in results_after(editor, start):
        call_id = _result_id(editor, at)
        if isinstance(call_id, str):
            named.add(call_id)
        else:
            unnamed.append(at)
    waiting: list[str] = []
    for call in calls_of(editor, start):
        call_id = call.get("id") if isinstance(call, dict) else None
        if isinstance(call_id, str) and call_id not in named:
            waiting.append(call_id)
    if len(waiting) != len(unnamed) or index not in unnamed:
        return None
    return waiting[unnamed.index(index)]


# ------------------------------------------------------------ repeated ids


def mend_repeats(editor: Editor, problems: list[Problem]) -> None:
    """Calls of a message that share an id: the later ones get another, and so do their results."""
    fresh = _fresh_ids(editor)
    for problem, index in placed(problems):
        old = editor.get(problem.path)
        if not isinstance(old, str):
            continue
        sharing: list[int] = []
        for number, call in enumerate(calls_of(editor, index)):
            if isinstance(call, dict) and call.get("id") == old:
                sharing.append(number)
        own = int(problem.path[2])
        place = sharing.index(own) if own in sharing else 0
        results = _results_with(editor, index, old)[place : place + 1]
        _rename(editor, problem, old, fresh.another(old), results)


def mend_reused(editor: Editor, problems: list[Problem]) -> None:
    """What works and is unwise: an id of an earlier message, results in another order."""
    fresh = _fresh_ids(editor)
    for problem, index in placed(problems):
        if problem.rule == "chat.reused_call_id":
            old = editor.get(problem.path)
            results = _results_with(editor, index, old)[:1]
            _rename(editor, problem, str(old), fresh.another(str(old)), results)
        else:
            _sort_results(editor, problem, index)


def _rename(editor: Editor, problem: Problem, old: str, new: str, results: list[int]) -> None:
    editor.put(problem.path, new)
    for at in results:
        editor.put((at, "tool_call_id"), new)
    reason = (
        "Another call has this id, so the results can't be told apart; "
        "this call and its result get a new one."
    )
    editor.done("rename_id", problem, reason, call_ids=(old,))


def _sort_results(editor: Editor, problem: Problem, index: int) -> None:
    """Put the results after a message into the order of its calls."""
    order = [call.get("id") for call in calls_of(editor, index) if isinstance(call, dict)]
    results = results_after(editor, index)
    ids = {at: _result_id(editor, at) for at in results}
    in_order = sorted(
        results, key=lambda at: order.index(ids[at]) if ids[at] in order else len(order)
    )
    if not results or in_order == results:
        return
    end = results[-1] + 1
    for at in in_order:
        expect_entry(editor, (at,))
        editor.move((at,), (end,))
    reason = "The results stand in another order than their calls; they get the calls' order."
    editor.done("move_result", problem, reason)
