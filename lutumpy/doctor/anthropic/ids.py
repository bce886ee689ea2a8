"""Repairs of Messages: ids of calls, in the call and in its result alike."""

# the call's id              what tells its results
# one call has it            the id, wherever the results stand
# several calls have it      the id, in the turn after the call
# missing                    the place: as many nameless calls as nameless results in that turn

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.doctor.anthropic.turns import Conversation, Turn
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.wording import Fresh
from lutumpy.errors import Problem

__all__ = ["mend_ids", "mend_repeats"]

_LIMIT = 64
_PREFIXES = {"tool_use": "toolu_", "server_tool_use": "srvtoolu_", "mcp_tool_use": "mcptoolu_"}


def _fresh_ids(conversation: Conversation) -> Fresh:
    found: list[str] = []
    for turn in conversation.turns:
        for _, block in turn.blocks:
            ids = (block.get("id"), block.get("tool_use_id"))
            found += [value for value in ids if isinstance(value, str)]
    return Fresh(found, _LIMIT)


def _is_same_id(left: Any, right: Any) -> bool:
    return type(left) is type(right) and left == right


# ------------------------------------------------------------- refused ids


def mend_ids(editor: Editor, problems: list[Problem]) -> None:
    """Ids that are missing or that the API refuses: a new one, in call and result alike."""
    conversation = Conversation(editor)
    fresh = _fresh_ids(conversation)
    owners, results = _find_owners_and_results(conversation)
    for problem in problems:
        path = problem.path[:3]
        block = editor.get(path)
        if problem.path[-1] != "id" or not isinstance(block, dict):
            continue
        old, kind = block.get("id"), str(block.get("type"))
        if isinstance(old, str) and old and owners.get(old) == 1:
            answers = results.get(old, [])
        else:
            answers = _find_results_by_place(editor, conversation, path, kind, old)
        new = fresh.id(old, _PREFIXES.get(kind, "toolu_"))
        editor.expect((*path, "type"))
        editor.put(problem.path, new)
        for place in answers:
            editor.put((*place, "tool_use_id"), new)
        has_text = isinstance(old, str) and bool(old)
        what = "is refused by the API" if has_text else "is missing or not a text"
        reason = f"The id of the call {what}; it becomes {new!r}, in the result as well."
        editor.done("replace_id", problem, reason, call_ids=(old,) if isinstance(old, str) else ())
    for problem in problems:
        if problem.path[-1] == "tool_use_id":
            _mend_result_id(editor, conversation, problem)


def _find_owners_and_results(
    conversation: Conversation,
) -> tuple[Mapping[str, int], Mapping[str, list[Path]]]:
    """How many calls have each id, and the results that name it."""
    owners: dict[str, int] = {}
    results: dict[str, list[Path]] = {}
    for turn in conversation.turns:
        for path, block in turn.blocks:
            if str(block.get("type")) in _PREFIXES and isinstance(block.get("id"), str):
                owners[block["id"]] = owners.get(block["id"], 0) + 1
            elif isinstance(block.get("tool_use_id"), str):
                results.setdefault(block["tool_use_id"], []).append(path)
    return owners, results


def _find_results_by_place(
    editor: Editor, conversation: Conversation, path: Path, kind: str, old: Any
) -> list[Path]:
    """The results, in the turn after it, of a call whose id can't be looked up."""
    turn = conversation.at(int(path[0]))
    after = conversation.after(turn) if turn is not None else None
    if turn is None or kind != "tool_use" or after is None:
        return []
    results = [place for place, _ in after.of("tool_result")]
    if old is not None and old != "":
        return [place for place in results if _is_same_id(editor.get((*place, "tool_use_id")), old)]
    # Calls of this turn that were mended before have ids by now, and so have their results.
    nameless = [place for place, _ in turn.of("tool_use") if not editor.get((*place, "id"))]
    unclaimed = [place for place in results if not editor.get((*place, "tool_use_id"))]
    is_next = len(nameless) == len(unclaimed) and nameless[:1] == [path]
    return unclaimed[:1] if is_next else []


def _mend_result_id(editor: Editor, conversation: Conversation, problem: Problem) -> None:
    """A result without an id answers the call in its place that has no other, or goes."""
    path = problem.path[:3]
    value = editor.get(problem.path)
    if isinstance(value, str) and value and _is_known(editor, conversation, path, value):
        return
    waiting, unclaimed = _find_unmatched(editor, conversation, path)
    editor.expect((*path, "type"))
    if len(waiting) == len(unclaimed) and path in unclaimed:
        call_id = waiting[unclaimed.index(path)]
        editor.put((*path, "tool_use_id"), call_id)
        reason = (
            "The result names no call; it gets the id of the call in its place, which has none."
        )
        editor.done("match_result", problem, reason, call_ids=(call_id,))
    else:
        editor.remove(path)
        reason = (
            "The result names no call, and its place doesn't show which one it answers; "
            "it is left out."
        )
        editor.done("drop_result", problem, reason)


def _turn_before(conversation: Conversation, path: Path) -> Turn | None:
    """The assistant turn before the turn that a path leads into."""
    turn = conversation.at(int(path[0]))
    before = conversation.at(turn.first - 1) if turn is not None else None
    return before if before is not None and before.role == "assistant" else None


def _is_known(editor: Editor, conversation: Conversation, path: Path, call_id: str) -> bool:
    """Whether a call of the turn before has this id by now."""
    before = _turn_before(conversation, path)
    if before is None:
        return False
    return any(editor.get((*place, "id")) == call_id for place, _ in before.of("tool_use"))


def _find_unmatched(
    editor: Editor, conversation: Conversation, path: Path
) -> tuple[list[str], list[Path]]:
    """Ids of the calls before a result that no result names, and the results that name no call."""
    turn, before = conversation.at(int(path[0])), _turn_before(conversation, path)
    if turn is None or before is None:
        return [], []
    ids = [editor.get((*place, "id")) for place, _ in before.of("tool_use")]
    named: set[str] = set()
    unclaimed: list[Path] = []
    for place, _ in turn.of("tool_result"):
        if editor.gone(place):
            continue
        value = editor.get((*place, "tool_use_id"))
        if isinstance(value, str):
            named.add(value)
        if value not in ids:
            unclaimed.append(place)
    waiting = [call_id for call_id in ids if isinstance(call_id, str) and call_id not in named]
    return waiting, unclaimed


# ------------------------------------------------------------ repeated ids


def mend_repeats(editor: Editor, problems: list[Problem]) -> None:
    """Calls that share an id: the later one gets another, and so does the result in its place."""
    conversation = Conversation(editor)
    fresh = _fresh_ids(conversation)
    for problem in problems:
        path = problem.path[:3]
        old = editor.get((*path, "id"))
        turn = conversation.with_problem(problem)
        if not isinstance(old, str) or turn is None:
            continue
        calls = [place for place, _ in turn.of("tool_use") if editor.get((*place, "id")) == old]
        after = conversation.after(turn)
        answers: list[Path] = []
        for place, _ in after.of("tool_result") if after is not None else ():
            if editor.get((*place, "tool_use_id")) == old:
                answers.append(place)
        number = calls.index(path) if path in calls else 0
        new = fresh.another(old)
        editor.expect((*path, "type"))
        editor.put((*path, "id"), new)
        for place in answers[number : number + 1]:
            editor.put((*place, "tool_use_id"), new)
        reason = (
            "Another call has this id, so the results can't be told apart; "
            "this call and its result get a new one."
        )
        editor.done("rename_id", problem, reason, call_ids=(old,))
