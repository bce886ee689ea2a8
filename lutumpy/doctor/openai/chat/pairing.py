"""Repairs of Chat Completions messages: ids, and results right behind the message that called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lutumpy.core import json_values
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import (
    by_id,
    drop_entry,
    drop_left_over,
    expect_entry,
    message_index,
    nearest,
    placed,
    told_apart,
)
from lutumpy.doctor.wording import INTERRUPTED, Fresh
from lutumpy.errors import Problem
from lutumpy.rules.openai.chat.limits import MAX_CALL_ID

_REPEATED = "The id is used by another call, so nobody can tell whose the results are; call and result get another one."


def _is_result(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "tool"


def _run(editor: Editor, index: int) -> list[int]:
    """The tool messages right behind a message."""
    found: list[int] = []
    while _is_result(editor.get((index + 1 + len(found),))):
        found.append(index + 1 + len(found))
    return found


def _calls(editor: Editor, index: int) -> list[Any]:
    message = editor.get((index,))
    calls = (
        message.get("tool_calls")
        if isinstance(message, dict) and message.get("role") == "assistant"
        else None
    )
    return calls if isinstance(calls, list) else []


def _ids(editor: Editor) -> Iterator[str]:
    for message in editor.document:
        if not isinstance(message, dict):
            continue
        calls = message.get("tool_calls")
        entries = [message, *(calls if isinstance(calls, list) else ())]
        for entry in entries:
            for key in ("tool_call_id", "id"):
                if isinstance(entry, dict) and isinstance(entry.get(key), str):
                    yield entry[key]


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and json_values.equal(left, right)


# --------------------------------------------------------------------- ids


def mend_ids(editor: Editor, problems: list[Problem]) -> None:
    """Ids that are missing, no text, or too long: another one, in the call and in its result alike."""
    fresh = Fresh(_ids(editor), MAX_CALL_ID)
    owners: dict[str, int] = {}
    for index in range(len(editor.document)):
        for call in _calls(editor, index):
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                owners[call["id"]] = owners.get(call["id"], 0) + 1
    results = [
        (index,) for index in range(len(editor.document)) if _is_result(editor.get((index,)))
    ]
    places = by_id(editor, results, "tool_call_id")
    for problem in problems:
        place = message_index(problem)
        call = editor.get(problem.path[:-1])
        if place is None or not isinstance(call, dict):
            continue
        old = call.get("id")
        if isinstance(old, str) and old and owners.get(old) == 1:
            answers = places.get(old, [])
        else:
            answers = _answers(editor, place, problem.path, old)
        new = fresh.id(old)
        editor.put(problem.path, new)
        for path in answers:
            editor.put((*path, "tool_call_id"), new)
        what = (
            "is longer than the API takes"
            if isinstance(old, str) and old
            else "is missing or no text"
        )
        reason = f"The call's id {what}; it is {new!r} instead, in its result as well."
        editor.done("replace_id", problem, reason, call_ids=(old,) if isinstance(old, str) else ())


def _answers(editor: Editor, index: int, path: Path, old: Any) -> list[Path]:
    """The results of a call whose id can't be looked up: those with the same one, or the one in the same place."""
    run = _run(editor, index)
    if old is not None and old != "":
        return [(at,) for at in run if _same(editor.get((at, "tool_call_id")), old)]
    nameless = [
        n
        for n, call in enumerate(_calls(editor, index))
        if isinstance(call, dict) and not call.get("id")
    ]
    unclaimed = [at for at in run if not editor.get((at, "tool_call_id"))]
    # The calls of this message that were mended before are no longer nameless, nor are their results unclaimed.
    if len(nameless) != len(unclaimed) or path[2] != nameless[0]:
        return []
    return [(unclaimed[0],)]


def mend_result_ids(editor: Editor, problems: list[Problem]) -> None:
    """Results without an id belong to the calls before them that have no other, if there are as many."""
    lost: list[Problem] = []
    for problem, index in placed(problems):
        call_id = _only_call(editor, index)
        if call_id is None:
            lost.append(problem)
            continue
        editor.expect((index, "role"))
        editor.put((index, "tool_call_id"), call_id)
        reason = (
            "The result doesn't say whose it is; it is of the call in its place that has no other."
        )
        editor.done("match_result", problem, reason, call_ids=(call_id,))
    for problem in lost:
        reason = "The result doesn't say whose it is, and its place doesn't tell; it is left out."
        drop_entry(editor, problem.path[:1], problem, "drop_result", reason)


def _only_call(editor: Editor, index: int) -> str | None:
    """The id of the call that a result without one belongs to, if its place tells."""
    start = index
    while start >= 0 and _is_result(editor.get((start,))):
        start -= 1
    if start < 0:
        return None
    run = _run(editor, start)
    named = {value for at in run if isinstance(value := editor.get((at, "tool_call_id")), str)}
    waiting = [
        call["id"]
        for call in _calls(editor, start)
        if isinstance(call, dict) and isinstance(call.get("id"), str) and call["id"] not in named
    ]
    unnamed = [at for at in run if not isinstance(editor.get((at, "tool_call_id")), str)]
    return (
        waiting[unnamed.index(index)] if len(waiting) == len(unnamed) and index in unnamed else None
    )


def mend_repeats(editor: Editor, problems: list[Problem]) -> None:
    """Two calls of a message with one id: the later ones get another, and so does the result in the same place."""
    fresh = Fresh(_ids(editor), MAX_CALL_ID)
    for problem, index in placed(problems):
        old = editor.get(problem.path)
        if not isinstance(old, str):
            continue
        with_it = [
            n
            for n, call in enumerate(_calls(editor, index))
            if isinstance(call, dict) and call.get("id") == old
        ]
        answers = [at for at in _run(editor, index) if editor.get((at, "tool_call_id")) == old]
        place = with_it.index(problem.path[2]) if problem.path[2] in with_it else 0
        _rename(editor, problem, old, fresh.another(old), answers[place : place + 1])


def _rename(editor: Editor, problem: Problem, old: str, new: str, answers: list[int]) -> None:
    editor.put(problem.path, new)
    for at in answers:
        editor.put((at, "tool_call_id"), new)
    editor.done("rename_id", problem, _REPEATED, call_ids=(old,))


def mend_reused(editor: Editor, problems: list[Problem]) -> None:
    """What works and is unwise: an id of an earlier message, results in another order than their calls."""
    fresh = Fresh(_ids(editor), MAX_CALL_ID)
    for problem, index in placed(problems):
        if problem.rule == "chat.reused_call_id":
            old = editor.get(problem.path)
            answers = [at for at in _run(editor, index) if editor.get((at, "tool_call_id")) == old]
            _rename(editor, problem, str(old), fresh.another(str(old)), answers[:1])
        else:
            _sort(editor, problem, index)


def _sort(editor: Editor, problem: Problem, index: int) -> None:
    order = [call.get("id") for call in _calls(editor, index) if isinstance(call, dict)]
    run = _run(editor, index)
    ids = {at: editor.get((at, "tool_call_id")) for at in run}
    wanted = sorted(run, key=lambda at: order.index(ids[at]) if ids[at] in order else len(order))
    if not run or wanted == run:
        return
    end = run[-1] + 1
    for at in wanted:
        expect_entry(editor, (at,))
        editor.move((at,), (end,))
    editor.done(
        "move_result",
        problem,
        "The results stand in another order than their calls; they are put in that order.",
    )


# ----------------------------------------------------------------- pairing


def mend_pairing(editor: Editor, problems: list[Problem]) -> None:
    """Results move right behind their calls, calls without one are closed, and what is left over goes."""
    opened, loose = told_apart(problems, "chat.results_after_calls")
    candidates = by_id(editor, [(index,) for index in sorted(loose)], "tool_call_id")
    opened = [problem for problem in opened if not _drop_twin(editor, problem)]
    windows = [_Window(editor, problem, loose) for problem in opened]
    for window in windows:
        window.answer(editor, candidates)
    drop_left_over(editor, loose, "chat.duplicate_result", "a", "result")


def _drop_twin(editor: Editor, problem: Problem) -> bool:
    """A message with open calls that stands there again right behind: one of the two goes, the results are the other's."""
    path = problem.path[:1]
    message, after = editor.get(path), editor.get((int(path[0]) + 1,))
    if not isinstance(message, dict) or not json_values.equal(message, after):
        return False
    editor.expect(path)
    drop_entry(
        editor,
        path,
        problem,
        "drop_duplicate",
        "The very message stands right behind; it is left out once.",
    )
    return True


class _Window:
    """A message with calls that lack results, as it was before the pass changed anything."""

    def __init__(self, editor: Editor, problem: Problem, loose: dict[int, Problem]) -> None:
        self.problem = problem
        self.index = int(problem.path[0])
        self.calls = [
            call.get("id") if isinstance(call, dict) else None
            for call in _calls(editor, self.index)
        ]
        run = _run(editor, self.index)
        self.end = self.index + 1 + len(run)
        ids = {at: editor.get((at, "tool_call_id")) for at in run if at not in loose}
        self.settled = [
            (at, self.calls.index(call_id)) for at, call_id in ids.items() if call_id in self.calls
        ]

    def answer(self, editor: Editor, candidates: dict[str, list[Path]]) -> None:
        problem, index = self.problem, self.index
        for number, call_id in enumerate(self.calls):
            if call_id not in problem.call_ids or self.calls.index(call_id) != number:
                continue
            # Results keep the order of their calls.
            slot = next((at for at, other in self.settled if other > number), self.end)
            editor.expect((index, "tool_calls", number, "id"))
            source = nearest(candidates.get(call_id), (index,))
            if source is None:
                editor.insert(
                    (slot,), {"role": "tool", "tool_call_id": call_id, "content": INTERRUPTED}
                )
                reason = (
                    "The call has no result, and the API wants one; it is closed as interrupted."
                )
                editor.done("close_call", problem, reason, call_ids=(call_id,))
            else:
                expect_entry(editor, source)
                editor.move(source, (slot,))
                reason = "The result has to stand right behind the message with its call; it is moved there."
                editor.done("move_result", problem, reason, call_ids=(call_id,))
