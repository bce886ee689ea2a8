"""Repairs of Anthropic's messages: ids of calls, in the call and in its result alike."""

from __future__ import annotations

from typing import Any

from lutumpy.doctor.anthropic.turns import Conversation, Turn
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import message_index
from lutumpy.doctor.wording import Fresh
from lutumpy.errors import Problem

_LIMIT = 64
_PREFIXES = {"tool_use": "toolu_", "server_tool_use": "srvtoolu_", "mcp_tool_use": "mcptoolu_"}


def _fresh(conversation: Conversation) -> Fresh:
    ids = [
        block.get(key)
        for turn in conversation.turns
        for _, block in turn.blocks
        for key in ("id", "tool_use_id")
    ]
    return Fresh([value for value in ids if isinstance(value, str)], _LIMIT)


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and left == right


def mend_ids(editor: Editor, problems: list[Problem]) -> None:
    """Ids that are missing, or that the pattern refuses: another one, in the call and in its result alike."""
    conversation = Conversation(editor)
    fresh = _fresh(conversation)
    owners: dict[str, int] = {}
    results: dict[str, list[Path]] = {}
    for turn in conversation.turns:
        for path, block in turn.blocks:
            if str(block.get("type")) in _PREFIXES and isinstance(block.get("id"), str):
                owners[block["id"]] = owners.get(block["id"], 0) + 1
            elif isinstance(block.get("tool_use_id"), str):
                results.setdefault(block["tool_use_id"], []).append(path)
    unclaimed = [problem for problem in problems if problem.path[-1] == "tool_use_id"]
    for problem in problems:
        block = editor.get(problem.path[:3])
        if problem.path[-1] != "id" or not isinstance(block, dict):
            continue
        old = block.get("id")
        kind = str(block.get("type"))
        if isinstance(old, str) and old and owners.get(old) == 1:
            answers = results.get(old, [])
        else:
            answers = _answers(editor, conversation, problem.path[:3], kind, old)
        new = fresh.id(old, _PREFIXES.get(kind, "toolu_"))
        editor.expect((*problem.path[:3], "type"))
        editor.put(problem.path, new)
        for path in answers:
            editor.put((*path, "tool_use_id"), new)
        what = (
            "is none that the API takes"
            if isinstance(old, str) and old
            else "is missing or no text"
        )
        reason = f"The call's id {what}; it is {new!r} instead, in its result as well."
        editor.done("replace_id", problem, reason, call_ids=(old,) if isinstance(old, str) else ())
    for problem in unclaimed:
        _claim(editor, conversation, problem)


def _answers(
    editor: Editor, conversation: Conversation, path: Path, kind: str, old: Any
) -> list[Path]:
    """The results of a call whose id can't be looked up: those with the same one, or the one in the same place."""
    turn = conversation.at(int(path[0]))
    after = conversation.after(turn) if turn is not None else None
    if turn is None or kind != "tool_use" or after is None:
        return []
    results = [place for place, _ in after.of("tool_result")]
    if old is not None and old != "":
        return [place for place in results if _same(editor.get((*place, "tool_use_id")), old)]
    nameless = [place for place, _ in turn.of("tool_use") if not editor.get((*place, "id"))]
    unclaimed = [place for place in results if not editor.get((*place, "tool_use_id"))]
    return unclaimed[:1] if len(nameless) == len(unclaimed) and nameless[:1] == [path] else []


def _claim(editor: Editor, conversation: Conversation, problem: Problem) -> None:
    """A result without an id is of the call before it that has no other, if there are as many; else it goes."""
    path = problem.path[:3]
    value = editor.get(problem.path)
    if isinstance(value, str) and value and _is_known(editor, conversation, path, value):
        return
    waiting, unclaimed = _unmatched(editor, conversation, path)
    if len(waiting) == len(unclaimed) and path in unclaimed:
        call_id = waiting[unclaimed.index(path)]
        editor.expect((*path, "type"))
        editor.put((*path, "tool_use_id"), call_id)
        reason = (
            "The result doesn't say whose it is; it is of the call in its place that has no other."
        )
        editor.done("match_result", problem, reason, call_ids=(call_id,))
        return
    editor.expect((*path, "type"))
    editor.remove(path)
    reason = "The result doesn't say whose it is, and its place doesn't tell; it is left out."
    editor.done("drop_result", problem, reason)


def _before(conversation: Conversation, path: Path) -> Turn | None:
    turn = conversation.at(int(path[0]))
    before = conversation.at(turn.first - 1) if turn is not None else None
    return before if before is not None and before.role == "assistant" else None


def _is_known(editor: Editor, conversation: Conversation, path: Path, value: str) -> bool:
    before = _before(conversation, path)
    return before is not None and any(
        editor.get((*place, "id")) == value for place, _ in before.of("tool_use")
    )


def _unmatched(
    editor: Editor, conversation: Conversation, path: Path
) -> tuple[list[str], list[Path]]:
    """Ids of the calls before a result that have none, and the results there that name no call."""
    turn, before = conversation.at(int(path[0])), _before(conversation, path)
    if turn is None or before is None:
        return [], []
    ids = [editor.get((*place, "id")) for place, _ in before.of("tool_use")]
    results = [place for place, _ in turn.of("tool_result") if not editor.gone(place)]
    named = {
        value for place in results if isinstance(value := editor.get((*place, "tool_use_id")), str)
    }
    waiting = [call_id for call_id in ids if isinstance(call_id, str) and call_id not in named]
    unclaimed = [place for place in results if editor.get((*place, "tool_use_id")) not in ids]
    return waiting, unclaimed


def mend_repeats(editor: Editor, problems: list[Problem]) -> None:
    """Calls that share an id: the later one gets another, and so does the result in the same place."""
    conversation = Conversation(editor)
    fresh = _fresh(conversation)
    for problem in problems:
        path = problem.path[:3]
        old = editor.get((*path, "id"))
        index = message_index(problem)
        turn = conversation.at(index) if index is not None else None
        if not isinstance(old, str) or turn is None:
            continue
        after = conversation.after(turn)
        same = [place for place, _ in turn.of("tool_use") if editor.get((*place, "id")) == old]
        results = after.of("tool_result") if after is not None else []
        answers = [place for place, _ in results if editor.get((*place, "tool_use_id")) == old]
        number = same.index(path) if path in same else 0
        new = fresh.another(old)
        editor.expect((*path, "type"))
        editor.put((*path, "id"), new)
        for place in answers[number : number + 1]:
            editor.put((*place, "tool_use_id"), new)
        reason = "Another call has this id, so nobody can tell whose the results are; call and result get another one."
        editor.done("rename_id", problem, reason, call_ids=(old,))
