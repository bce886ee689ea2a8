"""Repairs of APIs of blocks: ids of calls, in the call and in its result alike."""

# the call's id              what tells its results
# one call has it            the id, wherever the results are
# several calls have it      the id, in the turn after the call
# missing                    the place: as many nameless calls as nameless results in that turn

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lutumpy.doctor.block_turns import Conversation
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import Stage
from lutumpy.doctor.wording import Fresh
from lutumpy.errors import Problem
from lutumpy.rules.block_wire import BlockWire, Lens, Placed, Turn

__all__ = ["Ids", "mend_ids_of", "mend_repeats_of"]


@dataclass(frozen=True, slots=True)
class Ids:
    """What the repairs of ids need to know of an API.

    Attributes:
        wire: Where calls and results are.
        limit: The greatest length of an id.
        prefix: What a new id begins with.
        identified_by: The key that a repair tests beside the id that it replaces, if there is one.
        other_calls: What begins the ids of the calls that the provider answers itself, by the kind
            of their blocks, where those are of other kinds.
        other_results: Their results.
    """

    wire: BlockWire
    limit: int
    prefix: str
    identified_by: str | None = None
    other_calls: Mapping[str, str] = field(default_factory=dict[str, str])
    other_results: tuple[str, ...] = ()


class _Places:
    """The calls and results of a pass, whoever answers them."""

    def __init__(self, editor: Editor, ids: Ids) -> None:
        self._editor = editor
        self._ids = ids
        self.wire = ids.wire
        self.conversation = Conversation(editor, ids.wire)

    def calls(self) -> Iterator[Placed]:
        return self.conversation.every(self.wire.call.kind, *self._ids.other_calls)

    def results(self) -> Iterator[Placed]:
        return self.conversation.every(self.wire.result.kind, *self._ids.other_results)

    def results_after(self, turn: Turn | None) -> list[Path]:
        """The results in the turn after one."""
        after = self.conversation.after(turn) if turn is not None else None
        return [] if after is None else [path for path, _ in after.results]

    def id_at(self, path: Path, lens: Lens) -> Any:
        """The id of a call or result as it is now."""
        return self._editor.get((*path, lens.id_key))

    def fresh(self) -> Fresh:
        """New ids that no call and no result has."""
        found = [call.get(self.wire.call.id_key) for _, call in self.calls()]
        found += [result.get(self.wire.result.id_key) for _, result in self.results()]
        return Fresh([value for value in found if isinstance(value, str)], self._ids.limit)

    def rename(self, path: Path, new: str, answers: list[Path]) -> None:
        """Give a call and its results an id."""
        if self._ids.identified_by is not None:
            self._editor.expect((*path, self._ids.identified_by))
        self._editor.put((*path, self.wire.call.id_key), new)
        for place in answers:
            self._editor.put((*place, self.wire.result.id_key), new)


def _is_same_id(left: Any, right: Any) -> bool:
    return type(left) is type(right) and left == right


# ------------------------------------------------------------- refused ids


def mend_ids_of(ids: Ids) -> Stage:
    """A stage for ids that are missing or refused: a new one, in call and result alike."""
    kinds = (ids.wire.call.kind, *ids.other_calls)

    def mend_ids(editor: Editor, problems: list[Problem]) -> None:
        places = _Places(editor, ids)
        fresh = places.fresh()
        used = [call.get(ids.wire.call.id_key) for _, call in places.calls()]
        for problem in problems:
            found = _held_at(editor, ids.wire, problem, kinds)
            if found is None:
                continue
            (path, call), kind = found
            old = call.get(ids.wire.call.id_key)
            answers = _find_answers(places, path, kind, old, is_only=used.count(old) == 1)
            new = fresh.id(old, ids.other_calls.get(kind, ids.prefix))
            places.rename(path, new, answers)
            has_text = isinstance(old, str) and bool(old)
            what = "is refused by the API" if has_text else "is missing or not a text"
            reason = f"The id of the call {what}; it becomes {new!r}, in the result as well."
            call_ids = (old,) if isinstance(old, str) else ()
            editor.done("replace_id", problem, reason, call_ids=call_ids)
        for problem in problems:
            found = _held_at(editor, ids.wire, problem, (ids.wire.result.kind, *ids.other_results))
            if found is not None:
                _mend_result_id(editor, ids, places, problem, found[0][0])

    return mend_ids


def _held_at(
    editor: Editor, wire: BlockWire, problem: Problem, kinds: tuple[str, ...]
) -> tuple[Placed, str] | None:
    """What the block of a problem holds, and of which of some kinds it is."""
    block_path = problem.path[:3]
    block = editor.get(block_path)
    for kind in kinds if isinstance(block, dict) else ():
        held = wire.inside(block_path, block, kind)
        if held is not None:
            return held, kind
    return None


def _find_answers(places: _Places, path: Path, kind: str, old: Any, *, is_only: bool) -> list[Path]:
    """The results of a call whose id is going to be replaced."""
    wire = places.wire
    if isinstance(old, str) and old and is_only:
        return [place for place, _ in places.results() if places.id_at(place, wire.result) == old]
    turn = places.conversation.at(int(path[0]))
    if turn is None or kind != wire.call.kind:
        return []
    results = places.results_after(turn)
    if old is not None and old != "":
        return [place for place in results if _is_same_id(places.id_at(place, wire.result), old)]
    # Calls of this turn that were mended before have ids by now, and so have their results.
    nameless = [place for place, _ in turn.calls if not places.id_at(place, wire.call)]
    unclaimed = [place for place in results if not places.id_at(place, wire.result)]
    is_next = len(nameless) == len(unclaimed) and nameless[:1] == [path]
    return unclaimed[:1] if is_next else []


def _mend_result_id(
    editor: Editor, ids: Ids, places: _Places, problem: Problem, path: Path
) -> None:
    """A result without an id answers the call in its place that has no other, or goes."""
    wire = ids.wire
    turn = places.conversation.at(int(path[0]))
    before = places.conversation.before(turn) if turn is not None else None
    calls = before.calls if before is not None else []
    call_ids = [places.id_at(place, wire.call) for place, _ in calls]
    value = places.id_at(path, wire.result)
    if isinstance(value, str) and value and value in call_ids:
        return
    named: list[Any] = []
    unclaimed: list[Path] = []
    for place, _ in turn.results if turn is not None and before is not None else ():
        if not editor.gone(place):
            named.append(places.id_at(place, wire.result))
            if named[-1] not in call_ids:
                unclaimed.append(place)
    waiting = [one for one in call_ids if isinstance(one, str) and one not in named]
    if ids.identified_by is not None:
        editor.expect((*path, ids.identified_by))
    if len(waiting) == len(unclaimed) and path in unclaimed:
        call_id = waiting[unclaimed.index(path)]
        editor.put((*path, wire.result.id_key), call_id)
        reason = (
            "The result names no call; it gets the id of the call in its place, which has none."
        )
        editor.done("match_result", problem, reason, call_ids=(call_id,))
        return
    if ids.identified_by is None:
        editor.expect(path[:3])
    editor.remove(path[:3])
    reason = (
        "The result names no call, and its place doesn't show which one it answers; it is left out."
    )
    editor.done("drop_result", problem, reason)


# ------------------------------------------------------------ repeated ids


def mend_repeats_of(ids: Ids) -> Stage:
    """A stage for calls that share an id: the later one gets another, and so does the result in its
    place.
    """
    wire = ids.wire

    def mend_repeats(editor: Editor, problems: list[Problem]) -> None:
        places = _Places(editor, ids)
        fresh = places.fresh()
        for problem in problems:
            path = wire.path_inside(problem.path[:3], wire.call.kind)
            old = places.id_at(path, wire.call)
            turn = places.conversation.with_problem(problem)
            if not isinstance(old, str) or turn is None:
                continue
            calls = [place for place, _ in turn.calls if places.id_at(place, wire.call) == old]
            after = places.results_after(turn)
            answers = [place for place in after if places.id_at(place, wire.result) == old]
            number = calls.index(path) if path in calls else 0
            new = fresh.another(old)
            places.rename(path, new, answers[number : number + 1])
            reason = (
                "Another call has this id, so the results can't be told apart; "
                "this call and its result get a new one."
            )
            editor.done("rename_id", problem, reason, call_ids=(old,))

    return mend_repeats
