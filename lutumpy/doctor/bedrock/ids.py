"""Repairs of Converse: ids of calls, in the call and in its result alike."""

# the call's id              what tells its results
# one call has it            the id, wherever the results stand
# several calls have it      the id, in the message after the call
# missing                    the place: as many nameless calls as nameless results in that message

from __future__ import annotations

from typing import Any

from lutumpy.doctor.bedrock.talk import Talk, block_path
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.wording import Fresh
from lutumpy.errors import Problem
from lutumpy.rules.bedrock.limits import MAX_CALL_ID

__all__ = ["mend_ids", "mend_repeats"]

_PREFIX = "tooluse_"
_KEY = "toolUseId"


def _fresh_ids(talk: Talk) -> Fresh:
    found = [use.get(_KEY) for _, use in talk.every("toolUse")]
    found += [result.get(_KEY) for _, result in talk.every("toolResult")]
    return Fresh([value for value in found if isinstance(value, str)], MAX_CALL_ID)


def mend_ids(editor: Editor, problems: list[Problem]) -> None:
    """Ids that are missing or that the API refuses: a new one, in call and result alike."""
    talk = Talk(editor)
    fresh = _fresh_ids(talk)
    uses = [use.get(_KEY) for _, use in talk.every("toolUse")]
    for problem in problems:
        path = block_path(problem)
        use = editor.get((*path, "toolUse"))
        if not isinstance(use, dict):
            continue
        old = use.get(_KEY)
        answers = _find_answers(editor, talk, path, old, is_only=uses.count(old) == 1)
        new = fresh.id(old, _PREFIX)
        editor.put((*path, "toolUse", _KEY), new)
        for place in answers:
            editor.put((*place, "toolResult", _KEY), new)
        has_text = isinstance(old, str) and bool(old)
        what = "is refused by the API" if has_text else "is missing or not a text"
        reason = f"The id of the call {what}; it becomes {new!r}, in the result as well."
        ids = (old,) if isinstance(old, str) else ()
        editor.done("replace_id", problem, reason, call_ids=ids)
    for problem in problems:
        if isinstance(editor.get((*block_path(problem), "toolResult")), dict):
            _mend_result_id(editor, talk, problem)


def _find_answers(editor: Editor, talk: Talk, path: Path, old: Any, *, is_only: bool) -> list[Path]:
    """The results of a call whose id is going to be replaced."""
    index = int(path[0])
    if isinstance(old, str) and old and is_only:
        every = talk.every("toolResult")
        return [place for place, _ in every if editor.get((*place, "toolResult", _KEY)) == old]
    results = [place for place, _ in talk.of(index + 1, "toolResult")]
    if old is not None and old != "":
        return [
            place for place in results if _is_same(editor.get((*place, "toolResult", _KEY)), old)
        ]
    # Calls of this message that were mended before have ids by now, and so have their results.
    nameless = [
        place for place, _ in talk.calls(index) if not editor.get((*place, "toolUse", _KEY))
    ]
    unclaimed = [place for place in results if not editor.get((*place, "toolResult", _KEY))]
    is_next = len(nameless) == len(unclaimed) and nameless[:1] == [path]
    return unclaimed[:1] if is_next else []


def _is_same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and left == right


def _mend_result_id(editor: Editor, talk: Talk, problem: Problem) -> None:
    """A result without an id answers the call in its place that has no other, or goes."""
    path = block_path(problem)
    index = int(path[0])
    value = editor.get((*path, "toolResult", _KEY))
    ids = [editor.get((*place, "toolUse", _KEY)) for place, _ in talk.calls(index - 1)]
    if isinstance(value, str) and value and value in ids:
        return
    named: list[Any] = []
    unclaimed: list[Path] = []
    for place, _ in talk.of(index, "toolResult"):
        if not editor.gone(place):
            named.append(editor.get((*place, "toolResult", _KEY)))
            if named[-1] not in ids:
                unclaimed.append(place)
    waiting = [one for one in ids if isinstance(one, str) and one not in named]
    if len(waiting) == len(unclaimed) and path in unclaimed:
        call_id = waiting[unclaimed.index(path)]
        editor.put((*path, "toolResult", _KEY), call_id)
        reason = (
            "The result names no call; it gets the id of the call in its place, which has none."
        )
        editor.done("match_result", problem, reason, call_ids=(call_id,))
        return
    editor.expect(path)
    editor.remove(path)
    reason = (
        "The result names no call, and its place doesn't show which one it answers; it is left out."
    )
    editor.done("drop_result", problem, reason)


def mend_repeats(editor: Editor, problems: list[Problem]) -> None:
    """Calls that share an id: the later one gets another, and so does the result in its place."""
    talk = Talk(editor)
    fresh = _fresh_ids(talk)
    for problem in problems:
        path = block_path(problem)
        index = int(path[0])
        old = editor.get((*path, "toolUse", _KEY))
        if not isinstance(old, str):
            continue
        calls = [p for p, _ in talk.calls(index) if editor.get((*p, "toolUse", _KEY)) == old]
        answers = [
            p
            for p, _ in talk.of(index + 1, "toolResult")
            if editor.get((*p, "toolResult", _KEY)) == old
        ]
        number = calls.index(path) if path in calls else 0
        new = fresh.another(old)
        editor.put((*path, "toolUse", _KEY), new)
        for place in answers[number : number + 1]:
            editor.put((*place, "toolResult", _KEY), new)
        reason = (
            "Another call has this id, so the results can't be told apart; "
            "this call and its result get a new one."
        )
        editor.done("rename_id", problem, reason, call_ids=(old,))
