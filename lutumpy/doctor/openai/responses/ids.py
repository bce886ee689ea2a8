"""Repairs of Responses: ids of calls, in the call and in its output alike, and ids of items."""

# What is hard: a call and its output know each other by `call_id` alone. When that is missing, only
# the places tell which two belong together; when it is there and wrong, both must get the new one.
#
#     the call's id        the output's id      what is done
#     refused text         the same text        both get a new id
#     missing              missing              paired by their places, both get a new id
#     good                 missing              paired by their places; the output gets that id
#     missing              a refused text       the output is left out: no call has that id
#     whatever             missing, no pairing  the output is left out
#
# Places pair only when there are as many nameless outputs as calls without an output, and each
# output comes after its call.

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from lutumpy.doctor.editor import Editor
from lutumpy.doctor.mending import drop_entry, placed
from lutumpy.doctor.openai.responses.items import NEEDS_ID
from lutumpy.doctor.openai.responses.kinds import TEXT_OUTPUTS, is_by_model, kind_of
from lutumpy.doctor.wording import Fresh
from lutumpy.errors import Problem
from lutumpy.plain import json_values
from lutumpy.rules.openai.responses.items import item_type
from lutumpy.rules.openai.responses.kinds import OUTPUT_TO_CALLS, calls_of_output, waits_for_output
from lutumpy.rules.openai.responses.limits import MAX_CALL_ID

__all__ = ["mend_ids", "mend_items", "mend_repeats"]


def _fresh_ids(editor: Editor) -> Fresh:
    ids = [item.get("call_id") for item in editor.document if isinstance(item, dict)]
    return Fresh([call_id for call_id in ids if isinstance(call_id, str)], MAX_CALL_ID)


def _find_items(editor: Editor, kinds: Collection[str]) -> list[int]:
    """The indices of the items of some kinds."""
    return [index for index, item in enumerate(editor.document) if kind_of(item) in kinds]


def _call_id(editor: Editor, index: int) -> Any:
    return editor.get((index, "call_id"))


def _problem_by_item(problems: Sequence[Problem]) -> dict[int, Problem]:
    """The problem of each item."""
    return {index: problem for problem, index in placed(problems)}


# ------------------------------------------------------------- refused ids


def mend_ids(editor: Editor, problems: list[Problem]) -> None:
    """Ids of calls that are missing, not a text, or too long; see the table above."""
    fresh = _fresh_ids(editor)
    by_item = _problem_by_item(problems)
    outputs = _find_items(editor, OUTPUT_TO_CALLS)
    nameless = [at for at in outputs if at in by_item and _is_nameless(_call_id(editor, at))]
    output_of = _pair_by_place(_find_unanswered(editor, outputs), nameless)
    outputs_by_id: dict[tuple[str, str], list[int]] = {}
    for at in outputs:
        outputs_by_id.setdefault(_id_key(_call_id(editor, at)), []).append(at)
    for at in _find_items(editor, TEXT_OUTPUTS):
        old = _call_id(editor, at)
        if at in by_item:
            answers: list[int] = []
            if at in output_of:
                answers = [output_of[at]]
            elif not _is_nameless(old):
                answers = outputs_by_id.get(_id_key(old), [])
            _replace_id(editor, by_item[at], [at, *answers], fresh.id(old))
        elif at in output_of:
            output = output_of[at]
            _give_id_of_call(editor, by_item[output], output, old)
    unpaired = set(nameless) - set(output_of.values())
    _drop_nameless(editor, by_item, unpaired, outputs)


def _find_unanswered(editor: Editor, outputs: Sequence[int]) -> list[int]:
    """Calls without an id, and calls whose id no output has."""
    ids = [_call_id(editor, at) for at in outputs]
    answered = {call_id for call_id in ids if isinstance(call_id, str)}
    found: list[int] = []
    for at in _find_items(editor, TEXT_OUTPUTS):
        call_id = _call_id(editor, at)
        if _is_nameless(call_id) or (isinstance(call_id, str) and call_id not in answered):
            found.append(at)
    return found


def _pair_by_place(calls: Sequence[int], outputs: Sequence[int]) -> dict[int, int]:
    """The output of each call, in their order; nothing when their places don't tell."""
    # In every recording outputs are in the order of their calls [83 recorded].
    if len(calls) != len(outputs):
        return {}
    pairs = dict(zip(calls, outputs, strict=True))
    return pairs if all(call < output for call, output in pairs.items()) else {}


def _drop_nameless(
    editor: Editor, by_item: Mapping[int, Problem], unpaired: set[int], outputs: Sequence[int]
) -> None:
    """Outputs that no call could be found for."""
    for at, problem in by_item.items():
        if at in unpaired:
            reason = (
                "The output names no call, and its place doesn't show which one it answers; "
                "it is left out."
            )
            drop_entry(editor, (at,), problem, "drop_result", reason)
        elif at in outputs and _is_refused(_call_id(editor, at)):
            reason = "The API refuses the output's call_id, and no call has it; it is left out."
            drop_entry(editor, (at,), problem, "drop_result", reason)


def _is_nameless(value: Any) -> bool:
    """Whether a value can't tell one call from another."""
    return value is None or value == "" or isinstance(value, (dict, list, bool))


def _is_refused(call_id: Any) -> bool:
    if call_id is None:
        return False
    return not isinstance(call_id, str) or not 0 < len(call_id) <= MAX_CALL_ID


def _id_key(value: Any) -> tuple[str, str]:
    """A key for any JSON value: `1` and `"1"` are different ids."""
    return type(value).__name__, json_values.encode_text(value)


def _replace_id(editor: Editor, problem: Problem, places: list[int], new: str) -> None:
    old = _call_id(editor, places[0])
    for at in places:
        editor.expect((at, "type"))
        editor.put((at, "call_id"), new)
    what = "is missing or not a text"
    if isinstance(old, str) and old:
        what = "is longer than the API takes"
    reason = f"The call_id {what}; it becomes {new!r}, in the output as well."
    editor.done("replace_id", problem, reason, call_ids=(old,) if isinstance(old, str) else ())


def _give_id_of_call(editor: Editor, problem: Problem, at: int, call_id: str) -> None:
    editor.expect((at, "type"))
    editor.put((at, "call_id"), call_id)
    reason = "The output names no call; it gets the id of the call in its place, which has none."
    editor.done("match_result", problem, reason, call_ids=(call_id,))


# ---------------------------------------------------------- items that come twice


def mend_items(editor: Editor, problems: list[Problem]) -> None:
    """Items with the id of an earlier one: the same item goes, another one loses its id."""
    first_with: dict[str, int] = {}
    for index, item in enumerate(editor.document):
        if isinstance(item, dict) and isinstance(item.get("id"), str):
            first_with.setdefault(item["id"], index)
    for problem in problems:
        path = problem.path[:1]
        item = editor.get(path)
        if not isinstance(item, dict) or not isinstance(item.get("id"), str):
            continue
        kind = kind_of(item)
        if json_values.equal(editor.get((first_with[item["id"]],)), item):
            reason = "The same item stands earlier in the input; this copy is left out."
            drop_entry(editor, path, problem, "drop_duplicate", reason)
        elif kind == "reasoning" and not item.get("encrypted_content"):
            reason = (
                "An earlier item has this id, and reasoning without one can't be sent back; "
                "it is left out."
            )
            drop_entry(editor, path, problem, "drop_reasoning", reason)
        elif item_type(item) == "item_reference":
            # The API reads an object with neither type nor role as a reference too.
            reason = "The item refers to one that stands in the input already; it is left out."
            drop_entry(editor, path, problem, "drop_duplicate", reason)
        elif kind not in NEEDS_ID:
            editor.expect_keys(path, "type", "call_id")
            editor.remove_key((*path, "id"))
            reason = "An earlier item has this id; items need none, so this one's is left out."
            editor.done("drop_id", problem, reason)


# -------------------------------------------------------- calls that share an id


def mend_repeats(editor: Editor, problems: list[Problem]) -> None:
    """Calls that share an id: the later ones get another, and so does the output of each."""
    fresh = _fresh_ids(editor)
    by_item = _problem_by_item(problems)
    for calls, output_of in _find_sharing(editor):
        for earlier, at in itertools.pairwise(calls):
            if at not in by_item:
                continue
            if at not in output_of and _is_same_call(editor.get((earlier,)), editor.get((at,))):
                reason = "The same call stands earlier in the input; this copy is left out."
                drop_entry(editor, (at,), by_item[at], "drop_duplicate", reason)
                continue
            old = _call_id(editor, at)
            new = fresh.another(old)
            places = [at, output_of[at]] if at in output_of else [at]
            for place in places:
                editor.expect((place, "type"))
                editor.put((place, "call_id"), new)
            reason = (
                "Another call has this id, so the outputs can't be told apart; "
                "this call and its output get a new one."
            )
            editor.done("rename_id", by_item[at], reason, call_ids=(old,))


def _find_sharing(editor: Editor) -> Iterator[tuple[list[int], dict[int, int]]]:
    """Calls that one kind of output answers under one id, and the output of each call.

    The output of a call is the first one after its turn that no call before it has taken.
    """
    searches = _find_items(editor, ("tool_search_output",))
    ids = [_call_id(editor, at) for at in searches]
    searched_ids = {call_id for call_id in ids if isinstance(call_id, str)}
    calls: dict[tuple[str, str], list[int]] = {}
    output_of: dict[int, int] = {}
    waiting: dict[tuple[str, str], list[int]] = {}
    last_turn: dict[tuple[str, str], int] = {}
    turn = 0
    for index, item in enumerate(editor.document):
        if not is_by_model(item):
            turn += 1
        call_id = item.get("call_id") if isinstance(item, dict) else None
        if not isinstance(call_id, str):
            continue
        kind = kind_of(item)
        if answered := calls_of_output(kind):
            key = (call_id, answered[0])
            if waiting.get(key):
                output_of[waiting[key].pop(0)] = index
        elif isinstance(item, dict) and waits_for_output(item):
            # A function's output may answer a search, unless an output of searches does.
            is_answered_as_function = kind == "tool_search_call" and call_id not in searched_ids
            key = (call_id, "function_call" if is_answered_as_function else kind)
            if last_turn.get(key) != turn:
                # What an earlier turn left open stays open: this output is for this turn's call.
                waiting[key], last_turn[key] = [], turn
            waiting[key].append(index)
            calls.setdefault(key, []).append(index)
    for sharing in calls.values():
        if len(sharing) > 1:
            yield sharing, output_of


def _is_same_call(left: Any, right: Any) -> bool:
    if not isinstance(left, dict):
        return False
    keys = ("type", "name", "arguments", "input")
    return all(json_values.equal(left.get(key), right.get(key)) for key in keys)
