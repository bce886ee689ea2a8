"""The rules about the sequence of contents: who begins, calls with their results, signatures."""

# What is hard here
# -----------------
# Neighbouring contents of one role are one turn to the API, so pairs are looked for between turns
# (`Turn`), and problems still name contents. Ids may be missing on both sides, and then only
# its place shows which call a result answers:
#
#   | the results in the turn after N calls are ...    | rule                            |
#   |--------------------------------------------------|---------------------------------|
#   | N, first, with the names in the calls' order     | fine, with ids and without      |
#   | fewer or more                                    | `results_count`, refused        |
#   | behind another content of the user               | `results_first`, refused        |
#   | behind another part of their own content         | `results_first`, some           |
#   | before another part of their own content         | `results_alone`, discouraged    |
#   | in another order                                 | `result_order`, discouraged     |
#   | of another name, or another id                   | `result_name`, `result_id`, some|
#   | after a turn without calls                       | `call_for_result`, refused      |
#
# A signature is required on the first call of a content, and on no other, from Gemini 3 on; only
# in the turn that goes on, which begins with the last thing that the user has said. Of earlier
# turns nothing is known.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.block_wire import Turn, join_turns
from lutumpy.rules.gemini.fields import field, key_of
from lutumpy.rules.gemini.models import signs_calls
from lutumpy.rules.gemini.wire import WIRE
from lutumpy.rules.gemini.wording import Path, problem
from lutumpy.rules.problem import Certainty, Problem, text

__all__ = ["check_sequence", "current_start"]

_CALLS_AFTER_USER = (
    "Please ensure that function call turn comes immediately after a user turn or after a function "
    "response turn."
)
_RESULTS_AFTER_CALLS = (
    "Please ensure that function response turn comes immediately after a function call turn."
)
_AS_MANY = (
    "Please ensure that the number of function response parts is equal to the number of function "
    "call parts of the function call turn."
)
_UNSIGNED = (
    "Function call is missing a thought_signature in functionCall parts. This is required for "
    "tools to work correctly, and missing thought_signature may lead to degraded model "
    "performance. Additional data, function call `default_api:{name}` , position {position}. "
    "Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
_CORRUPTED = "Corrupted thought signature."


def check_sequence(
    contents: Any,
    *,
    model: str | None = None,
    issued: Mapping[str, Any] | None = None,
    held: bool = False,
) -> list[Problem]:
    """Problems of the order and pairing of parts; their shapes are checked in `blocks`.

    Args:
        contents: The request's `contents`.
        model: The model that is asked.
        issued: Signature to the part that the server has sent with it.
        held: The conversation's start is in a cache of the server.
    """
    turns = join_turns(WIRE, contents)
    found = _check_sides(turns)
    found += _check_first(turns, held)
    for number, turn in enumerate(turns):
        before = turns[number - 1] if number else None
        after = turns[number + 1] if number + 1 < len(turns) else None
        if turn.calls:
            found += _check_answers(turn, after, model)
        if turn.results and (before is not None or not held):
            found += _check_called(turn, before)
    return found + _check_signatures(turns, model) + _check_issued(turns, issued or {})


def _check_sides(turns: list[Turn]) -> list[Problem]:
    """Calls are the model's and results the user's [recorded: 646 of 646]."""
    found: list[Problem] = []
    for turn in turns:
        name, message = "functionCall", _CALLS_AFTER_USER
        if turn.role == "model":
            name, message = "functionResponse", _RESULTS_AFTER_CALLS
        elif turn.role != "user":
            continue
        for path, part in turn.blocks:
            value = field(part, name)
            if isinstance(value, Mapping):
                where = (*path, key_of(part, name))
                found.append(problem("gemini.part_role", where, message, **_names(value)))
    return found


def _names(value: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    call_id, name = text(value.get("id")), text(value.get("name"))
    return {"call_ids": (call_id,) if call_id else (), "tools": (name,) if name else ()}


def _check_first(turns: list[Turn], held: bool) -> list[Problem]:
    """The user speaks first [recorded: 1,545 of 1,545]."""
    if held or not turns or turns[0].role != "model":
        return []
    certainty: Certainty = "refused" if turns[0].calls else "some"
    return [problem("gemini.user_first", (turns[0].first,), _CALLS_AFTER_USER, certainty)]


# ----------------------------------------------------------------- pairing


def _check_answers(turn: Turn, after: Turn | None, model: str | None) -> list[Problem]:
    """As many results as calls, in the next turn of the user, first, alone, and told apart."""
    calls = [call for _, call in turn.calls]
    answers = after.results if after is not None else []
    if len(answers) != len(calls):
        # The message names no place: it is said of the turn.
        about = {
            "call_ids": tuple([call["id"] for call in calls if text(call.get("id"))]),
            "tools": tuple(
                dict.fromkeys([call["name"] for call in calls if text(call.get("name"))])
            ),
        }
        return [problem("gemini.results_count", (turn.last,), _AS_MANY, **about)]
    assert after is not None, "there are results"
    found = _check_place(after, answers, model)
    found += _check_ids(turn)
    return found + _check_pairs(calls, answers)


def _check_place(
    turn: Turn, answers: list[tuple[Path, Mapping[str, Any]]], model: str | None
) -> list[Problem]:
    """Results come first in their turn, and their content holds nothing else."""
    holding = {path[0] for path, _ in answers}
    last = answers[-1][0][:3]
    places = {path[:3] for path, _ in answers}
    for path, _ in turn.blocks:
        if path in places:
            continue
        if path < last:
            certainty: Certainty = "some" if path[0] in holding else "refused"
            return [problem("gemini.results_first", path, _AS_MANY, certainty)]
        if path[0] in holding and signs_calls(model) is not False:
            message = (
                "Another part stands beside function responses, which newer models take for the "
                "end of the turn that the responses continue."
            )
            return [problem("gemini.results_alone", path, message, "discouraged")]
    return []


def _check_ids(turn: Turn) -> list[Problem]:
    """Ids of one turn differ, or its results can't be told apart by them."""
    seen: set[str] = set()
    found: list[Problem] = []
    for path, call in turn.calls:
        call_id = text(call.get("id"))
        if call_id and call_id in seen:
            message = f"Two function calls of one turn have the id {call_id!r}."
            where = (*path, "id")
            found.append(problem("gemini.unique_ids", where, message, "some", **_names(call)))
        seen.add(call_id or "")
    return found


def _check_pairs(
    calls: list[Mapping[str, Any]], answers: list[tuple[Path, Mapping[str, Any]]]
) -> list[Problem]:
    """Each result names a call of its own: by its id, or by its name and place."""
    ids = [text(call.get("id")) or "" for call in calls]
    result_ids = [text(result.get("id")) or "" for _, result in answers]
    has_ids = len(set(ids)) == len(ids) and "" not in ids
    if has_ids and sorted(ids) == sorted(result_ids):
        place = {call_id: number for number, call_id in enumerate(ids)}
        order = [place[call_id] for call_id in result_ids]
        found = _check_names([calls[number] for number in order], answers)
        return found + ([] if order == sorted(order) else [_disorder(answers)])
    found = []
    for call_id, other, (path, result) in zip(ids, result_ids, answers, strict=True):
        if call_id != other:
            message = (
                f"The function response has the id {other or None!r}, and the function call in its "
                f"place {call_id or None!r}."
            )
            where = (*path, "id")
            found.append(problem("gemini.result_id", where, message, "some", **_names(result)))
    names = [text(call.get("name")) for call in calls]
    named = [text(result.get("name")) for _, result in answers]
    if names != named and None not in named and sorted(map(str, names)) == sorted(map(str, named)):
        return [*found, _disorder(answers)]
    return found + _check_names(calls, answers)


def _check_names(
    calls: list[Mapping[str, Any]], answers: list[tuple[Path, Mapping[str, Any]]]
) -> list[Problem]:
    found: list[Problem] = []
    for call, (path, result) in zip(calls, answers, strict=True):
        wanted, name = text(call.get("name")), text(result.get("name"))
        if wanted and name and wanted != name:
            message = f"The function response is named {name!r}, and its function call {wanted!r}."
            where = (*path, "name")
            found.append(problem("gemini.result_name", where, message, "some", **_names(result)))
    return found


def _disorder(answers: list[tuple[Path, Mapping[str, Any]]]) -> Problem:
    message = "The function responses stand in another order than their function calls."
    return problem("gemini.result_order", answers[0][0][:1], message, "discouraged")


def _check_called(turn: Turn, before: Turn | None) -> list[Problem]:
    """Results follow calls. Where there are calls, how many results is another rule's business."""
    if before is not None and before.calls:
        return []
    path, result = turn.results[0]
    return [problem("gemini.call_for_result", path, _RESULTS_AFTER_CALLS, **_names(result))]


# -------------------------------------------------------------- signatures


def current_start(turns: list[Turn]) -> int:
    """The index of the content with which the turn begins that goes on: the last one in which the
    user says something; -1 where there is none.
    """
    for turn in reversed(turns):
        if turn.role == "user":
            spoken = [path for path, part in turn.blocks if field(part, "functionResponse") is None]
            if spoken:
                return int(spoken[-1][0])
    return -1


def _check_signatures(turns: list[Turn], model: str | None) -> list[Problem]:
    signs = signs_calls(model)
    if signs is False:
        return []
    start = current_start(turns)
    found: list[Problem] = []
    for turn in turns:
        if turn.role != "model":
            continue
        seen: set[int] = set()
        for path, part in turn.blocks:
            call = field(part, "functionCall")
            if not isinstance(call, Mapping):
                continue
            is_signed = bool(field(part, "thoughtSignature"))
            index = int(path[0])
            where = (*path, key_of(part, "thoughtSignature"))
            if index not in seen and not is_signed:
                certainty: Certainty = "refused" if signs and index > start else "some"
                message = _UNSIGNED.format(name=call.get("name"), position=index + 1)
                found.append(problem("gemini.signature", where, message, certainty, **_names(call)))
            elif index in seen and is_signed:
                message = (
                    "Only the first function call of a content has a thought signature; another "
                    "one costs quality."
                )
                found.append(problem("gemini.second_signature", where, message, "discouraged"))
            seen.add(index)
    return found


def _check_issued(turns: list[Turn], issued: Mapping[str, Any]) -> list[Problem]:
    """A signature comes back with the part that it was sent with."""
    found: list[Problem] = []
    for turn in turns if issued else ():
        for path, part in turn.blocks:
            signature = text(field(part, "thoughtSignature"))
            if signature and signature in issued and not _is_same(part, issued[signature]):
                where = (*path, key_of(part, "thoughtSignature"))
                found.append(problem("gemini.signature_modified", where, _CORRUPTED))
    return found


def _is_same(part: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    """Whether a call is the one that was sent; of other parts pieces may have been joined."""
    call, before = field(part, "functionCall"), field(sent, "functionCall")
    if not isinstance(before, Mapping):
        return not isinstance(call, Mapping)
    if not isinstance(call, Mapping):
        return False
    return call.get("name") == before.get("name") and (call.get("args") or {}) == (
        before.get("args") or {}
    )
