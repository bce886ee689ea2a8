"""Repairs of Responses input: ids, outputs behind their calls, reasoning with what it led to."""

from __future__ import annotations

import itertools
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
    told_apart,
)
from lutumpy.doctor.wording import INTERRUPTED, Fresh
from lutumpy.errors import Problem
from lutumpy.rules.openai.responses.limits import MAX_CALL_ID
from lutumpy.rules.openai.responses.sequence import AFTER_REASONING, CALL_WORDS, OUTPUT_TO_CALLS

_TEXT_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
_NEEDS_ID = ("item_reference", "mcp_approval_request")


def _kind(item: Any) -> str:
    """The type of an item; a message and a reference may come without one."""
    if not isinstance(item, dict):
        return ""
    kind = item.get("type")
    if isinstance(kind, str):
        return kind
    return "message" if kind is None and "role" in item else ""


def _is_the_models(item: Any) -> bool:
    kind = _kind(item)
    return kind in AFTER_REASONING or (kind == "message" and item.get("role") == "assistant")


def _fresh(editor: Editor) -> Fresh:
    ids = [item.get("call_id") for item in editor.document if isinstance(item, dict)]
    return Fresh([value for value in ids if isinstance(value, str)], MAX_CALL_ID)


def _with(editor: Editor, kinds: Any) -> list[int]:
    return [index for index, item in enumerate(editor.document) if _kind(item) in kinds]


# --------------------------------------------------------------------- ids


def mend_ids(editor: Editor, problems: list[Problem]) -> None:
    """Ids of calls that are missing, no text, or too long: another one, in the call and in its output alike."""
    fresh = _fresh(editor)
    outputs = _with(editor, OUTPUT_TO_CALLS)
    answered = {
        editor.get((at, "call_id"))
        for at in outputs
        if isinstance(editor.get((at, "call_id")), str)
    }
    blamed = {
        index: problem for problem in problems if (index := message_index(problem)) is not None
    }
    nameless = [at for at in outputs if at in blamed and _nameless(editor.get((at, "call_id")))]
    waiting = [
        at
        for at in _with(editor, _TEXT_OUTPUTS)
        if _nameless(call_id := editor.get((at, "call_id")))
        or (isinstance(call_id, str) and call_id not in answered)
    ]
    # Outputs have always stood in call order [83 recorded].
    paired = len(nameless) == len(waiting) and all(
        a < b for a, b in zip(waiting, nameless, strict=True)
    )
    partner = dict(zip(waiting, nameless, strict=True)) if paired else {}
    lost = set(nameless) - set(partner.values())
    by_value: dict[tuple[str, str], list[int]] = {}
    for at in outputs:
        by_value.setdefault(_key(editor.get((at, "call_id"))), []).append(at)
    for at in _with(editor, _TEXT_OUTPUTS):
        old = editor.get((at, "call_id"))
        answers = (
            [partner[at]]
            if at in partner
            else []
            if _nameless(old)
            else by_value.get(_key(old), [])
        )
        if at in blamed:
            _replace(editor, blamed[at], [at, *answers], fresh.id(old))
        elif at in partner:
            _match(editor, blamed[partner[at]], partner[at], old)
    for at, problem in blamed.items():
        if at in lost:
            reason = (
                "The output doesn't say whose it is, and its place doesn't tell; it is left out."
            )
            drop_entry(editor, (at,), problem, "drop_result", reason)
        elif (
            at in outputs
            and editor.get((at, "call_id")) is not None
            and _still_blamed(editor.get((at, "call_id")))
        ):
            drop_entry(
                editor,
                (at,),
                problem,
                "drop_result",
                "No call has this id, which the API refuses; it is left out.",
            )


def _nameless(value: Any) -> bool:
    return value is None or value == "" or isinstance(value, (dict, list, bool))


def _still_blamed(value: Any) -> bool:
    return not isinstance(value, str) or not 0 < len(value) <= MAX_CALL_ID


def _key(value: Any) -> tuple[str, str]:
    return type(value).__name__, json_values.encode_text(value)


def _replace(editor: Editor, problem: Problem, places: list[int], new: str) -> None:
    old = editor.get((places[0], "call_id"))
    for at in places:
        editor.expect((at, "type"))
        editor.put((at, "call_id"), new)
    what = (
        "is longer than the API takes" if isinstance(old, str) and old else "is missing or no text"
    )
    reason = f"The call_id {what}; it is {new!r} instead, in the output as well."
    editor.done("replace_id", problem, reason, call_ids=(old,) if isinstance(old, str) else ())


def _match(editor: Editor, problem: Problem, at: int, call_id: str) -> None:
    editor.expect((at, "type"))
    editor.put((at, "call_id"), call_id)
    reason = "The output doesn't say whose it is; it is of the call in its place that has no other."
    editor.done("match_result", problem, reason, call_ids=(call_id,))


def mend_items(editor: Editor, problems: list[Problem]) -> None:
    """Items that come twice: the second goes, or loses its id where it is another item."""
    first: dict[str, int] = {}
    for index, item in enumerate(editor.document):
        if isinstance(item, dict) and isinstance(item.get("id"), str):
            first.setdefault(item["id"], index)
    for problem in problems:
        path = problem.path[:1]
        item = editor.get(path)
        if not isinstance(item, dict) or not isinstance(item.get("id"), str):
            continue
        original = editor.get((first[item["id"]],))
        if json_values.equal(original, item):
            drop_entry(
                editor,
                path,
                problem,
                "drop_duplicate",
                "The very item stands in the input before; it is left out.",
            )
        elif _kind(item) == "reasoning" and not item.get("encrypted_content"):
            reason = "Another item has this id, and reasoning without one can't be sent back; it is left out."
            drop_entry(editor, path, problem, "drop_reasoning", reason)
        elif _kind(item) not in _NEEDS_ID and _kind(item):
            editor.expect_keys(path, "type", "call_id")
            editor.remove_key((*path, "id"))
            editor.done(
                "drop_id",
                problem,
                "Another item has this id; items need none, so this one's is left out.",
            )


def mend_repeats(editor: Editor, problems: list[Problem]) -> None:
    """Calls that share an id: the later ones get another, and so does the output of each."""
    fresh = _fresh(editor)
    blamed = {
        index: problem for problem in problems if (index := message_index(problem)) is not None
    }
    for calls, partner in _sharing(editor):
        for before, at in itertools.pairwise(calls):
            if at not in blamed:
                continue
            if at not in partner and _twin(editor.get((before,)), editor.get((at,))):
                reason = "The very call stands in the input before; it is left out."
                drop_entry(editor, (at,), blamed[at], "drop_duplicate", reason)
                continue
            old = editor.get((at, "call_id"))
            new = fresh.another(old)
            for place in (at, *([partner[at]] if at in partner else [])):
                editor.expect((place, "type"))
                editor.put((place, "call_id"), new)
            reason = "Another call has this id, so nobody can tell whose the outputs are; call and output get another one."
            editor.done("rename_id", blamed[at], reason, call_ids=(old,))


def _sharing(editor: Editor) -> Iterator[tuple[list[int], dict[int, int]]]:
    """Calls that one kind of output answers under one id, and the output of each: the first free one behind its turn."""
    searched = {editor.get((at, "call_id")) for at in _with(editor, ("tool_search_output",))}
    calls: dict[tuple[str, str], list[int]] = {}
    partner: dict[int, int] = {}
    waiting: dict[tuple[str, str], list[int]] = {}
    turn: dict[tuple[str, str], int] = {}
    number = 0
    for index, item in enumerate(editor.document):
        number += not _is_the_models(item)
        call_id, kind = (item.get("call_id"), _kind(item)) if isinstance(item, dict) else (None, "")
        if not isinstance(call_id, str):
            continue
        if kind in OUTPUT_TO_CALLS:
            key = (call_id, OUTPUT_TO_CALLS[kind][0])
            if waiting.get(key):
                partner[waiting[key].pop(0)] = index
        elif kind in CALL_WORDS and _waits(item):
            alike = kind == "tool_search_call" and call_id not in searched
            key = (call_id, "function_call" if alike else kind)
            if turn.get(key) != number:
                # What an earlier turn left open stays open: this output is for the call of this turn.
                waiting[key], turn[key] = [], number
            waiting[key].append(index)
            calls.setdefault(key, []).append(index)
    for same in calls.values():
        if len(same) > 1:
            yield same, partner


def _waits(call: Any) -> bool:
    """Whether a call wants an output of ours: a search may be the provider's own."""
    return _kind(call) != "tool_search_call" or call.get("execution") == "client"


def _twin(left: Any, right: Any) -> bool:
    keys = ("type", "name", "arguments", "input")
    return isinstance(left, dict) and all(
        json_values.equal(left.get(key), right.get(key)) for key in keys
    )


# ------------------------------------------------------------------ outputs


def mend_outputs(editor: Editor, problems: list[Problem]) -> None:
    """Outputs move behind their calls, calls without one are closed, and what is left over goes."""
    opened, loose = told_apart(problems, "responses.output_for_call")
    slots = _slots(editor, [problem.path[0] for problem in opened])
    early = _before_any_call(editor) if opened else set()
    candidates = by_id(editor, [(at,) for at in sorted({*loose, *early})], "call_id")
    for problem in opened:
        _answer(editor, problem, slots[int(problem.path[0])], candidates, loose)
    drop_left_over(editor, loose, "responses.duplicate_output", "an", "output")


def _before_any_call(editor: Editor) -> set[int]:
    """Outputs that stand before every call of their id; the server may hold another call of it, but ids are unique."""
    called: set[str] = set()
    found: set[int] = set()
    for index, item in enumerate(editor.document):
        call_id = item.get("call_id") if isinstance(item, dict) else None
        if isinstance(call_id, str) and _kind(item) in CALL_WORDS:
            called.add(call_id)
        elif isinstance(call_id, str) and _kind(item) in OUTPUT_TO_CALLS and call_id not in called:
            found.add(index)
    return found


def _slots(editor: Editor, opened: list[str | int]) -> dict[int, int]:
    """Where the output of each open call goes: behind the model's items, and behind the outputs of earlier calls."""
    wanted = set(opened)
    found: dict[int, int] = {}
    position: dict[str, int] = {}
    for index, item in enumerate(editor.document):
        call_id = item.get("call_id") if isinstance(item, dict) else None
        if _kind(item) in CALL_WORDS and isinstance(call_id, str):
            position.setdefault(call_id, index)
    index, length = 0, len(editor.document)
    while index < length:
        start = index
        while index < length and _is_the_models(editor.document[index]):
            index += 1
        slot = index
        for at in range(start, index):
            if at not in wanted:
                continue
            # Outputs keep the order of their calls; the slots of a run never go back, so all of it is one walk.
            while slot < length and 0 <= _answers_from(editor.document[slot], position) < at:
                slot += 1
            found[at] = slot
        index = max(index, start + 1)
    return found


def _answers_from(item: Any, position: dict[str, int]) -> int:
    """Where the call of an output stands; -1 for what is no output or answers nothing."""
    call_id = item.get("call_id") if _kind(item) in OUTPUT_TO_CALLS else None
    return position.get(call_id, -1) if isinstance(call_id, str) else -1


def _answer(
    editor: Editor,
    problem: Problem,
    slot: int,
    candidates: dict[str, list[Path]],
    loose: dict[int, Problem],
) -> None:
    path = problem.path[:1]
    call = editor.get(path)
    if not isinstance(call, dict):
        return
    call_id, kind = str(call.get("call_id")), _kind(call)
    fitting = [
        at
        for at in candidates.get(call_id, ())
        if _can_answer(editor.get(at), kind, before=at < path)
    ]
    source = nearest(fitting, path)
    if source is not None:
        candidates[call_id].remove(source)
        _use(editor, problem, path, kind, source, slot, loose)
        return
    made = _interrupted(call, kind, call_id)
    if made is None:
        reason = "The call has no output, and none can be made for one of this kind; the call is left out."
        drop_entry(editor, path, problem, "drop_call", reason)
        return
    editor.expect_keys(path, "type", "call_id")
    editor.insert((slot,), made)
    reason = "The call has no output, and the API wants one; it is closed as interrupted."
    editor.done("close_call", problem, reason)


def _can_answer(output: Any, kind: str, *, before: bool) -> bool:
    """Whether an output that answers nothing becomes this call's by moving behind it, or by getting its kind."""
    found = _kind(output)
    if kind in OUTPUT_TO_CALLS.get(found, ()):
        return before
    return kind in _TEXT_OUTPUTS and found in _TEXT_OUTPUTS.values()


def _use(
    editor: Editor,
    problem: Problem,
    path: Path,
    kind: str,
    source: Path,
    slot: int,
    loose: dict[int, Problem],
) -> None:
    """An output that stands before its call moves behind it; one of another kind gets the call's."""
    wrong_kind = kind not in OUTPUT_TO_CALLS[_kind(editor.get(source))]
    expect_entry(editor, source)
    if wrong_kind:
        editor.put((*source, "type"), _TEXT_OUTPUTS[kind])
    if source < path:
        editor.move(source, (slot,))
        editor.done(
            "move_result", problem, "The output stands before its call; it is moved behind it."
        )
    else:
        loose.pop(int(source[0]), None)
        editor.done(
            "set_field",
            problem,
            "The output is of another kind than its call; it gets the call's kind.",
        )


def _interrupted(call: dict[str, Any], kind: str, call_id: str) -> dict[str, Any] | None:
    """An output that says that the call was interrupted; `None` where the kind takes no text."""
    caller = {"caller": call["caller"]} if isinstance(call.get("caller"), dict) else {}
    if kind in _TEXT_OUTPUTS:
        return {"type": _TEXT_OUTPUTS[kind], "call_id": call_id, "output": INTERRUPTED, **caller}
    if kind == "tool_search_call":
        found_none = {
            "call_id": call_id,
            "execution": "client",
            "status": "incomplete",
            "tools": [],
        }
        return {"type": "tool_search_output", **found_none}
    if kind == "shell_call":
        said = {"stdout": "", "stderr": INTERRUPTED, "outcome": {"type": "exit", "exit_code": 1}}
        return {"type": "shell_call_output", "call_id": call_id, "output": [said], **caller}
    if kind == "apply_patch_call":
        said_failed = {"call_id": call_id, "status": "failed", "output": INTERRUPTED}
        return {"type": "apply_patch_call_output", **said_failed, **caller}
    if kind == "local_shell_call":
        return {
            "type": "local_shell_call_output",
            "id": call_id,
            "call_id": call_id,
            "output": INTERRUPTED,
        }
    return None


# ---------------------------------------------------------------- reasoning


def mend_reasoning(editor: Editor, problems: list[Problem]) -> None:
    """Reasoning without what it led to goes, and with it the ids of what the model said after it in that turn."""
    for problem in problems:
        index = message_index(problem)
        if index is None:
            continue
        _drop_reasoning(editor, problem, index)
        # Reasoning that led to this one has nothing now either.
        while index and isinstance(before := editor.get((index - 1,)), dict):
            if _kind(before) != "reasoning" or not isinstance(before.get("id"), str):
                break
            index -= 1
            _drop_reasoning(editor, problem, index)


def _drop_reasoning(editor: Editor, problem: Problem, index: int) -> None:
    if editor.gone((index,)) or len(editor.document) == 1:
        return
    expect_entry(editor, (index,))
    behind = index + 1
    while _is_the_models(item := editor.get((behind,))):
        if "id" in item and _kind(item) not in _NEEDS_ID and _kind(item) != "reasoning":
            editor.remove_key((behind, "id"))
        behind += 1
    editor.remove((index,))
    editor.done(
        "drop_reasoning",
        problem,
        "The item that this reasoning led to is gone or has lost its id, and the API refuses one without the other; "
        "the reasoning is left out, and the ids that would ask for it.",
    )
