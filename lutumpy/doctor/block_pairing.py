"""Repairs of APIs of blocks with ids: results first in the message right after their calls."""

# What is hard: results of one turn must all be at the start of the next user turn, in the
# order of their calls, and they may be anywhere: behind a text there (late), in another message
# (loose), or nowhere. Places are those of the start of the pass, so a result that goes to a place
# that isn't there yet ends the work on its turn; the next pass goes on.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lutumpy.doctor.block_turns import Conversation, expect_block
from lutumpy.doctor.editor import Editor, Path, copied
from lutumpy.doctor.mending import Stage, drop_entry, message_index, nearest
from lutumpy.doctor.result_slots import ResultForm, ResultSlots
from lutumpy.errors import Problem
from lutumpy.rules.block_wire import BlockWire, Placed, Turn

__all__ = ["Pairing", "mend_pairing_of", "mend_speakers_of"]


@dataclass(frozen=True, slots=True)
class Pairing:
    """What the repairs of pairing need to know of an API.

    Attributes:
        wire: Where calls and results are.
        open_call_rules: The rules that a call without a result in its place breaks.
        second_result_rule: The rule that a second result of a call breaks.
        empty_rule: The rule that a message breaks from which the only block was taken.
        model_kinds: The kinds of blocks that only the model's messages hold.
        reasoning_kinds: Those of them that are left out elsewhere; the others are calls.
        write_interrupted: Writes the block of a result for a call without one, by the call's id.

    The ids of calls tell which result is whose.
    """

    wire: BlockWire
    open_call_rules: tuple[str, ...]
    second_result_rule: str
    empty_rule: str
    model_kinds: tuple[str, ...]
    reasoning_kinds: tuple[str, ...]
    write_interrupted: Callable[[str], dict[str, Any]]

    @property
    def form(self) -> ResultForm:
        """How a result gets to its place."""
        id_key = self.wire.call.id_key
        return ResultForm(
            self.wire,
            "message",
            lambda call: self.write_interrupted(call[id_key]),
            lambda editor, path: expect_block(editor, self.wire, path),
            lambda call: ((call[id_key],), None),
        )


# ----------------------------------------------- blocks of the model in other messages


def mend_speakers_of(pairing: Pairing) -> Stage:
    """A stage for what only the model says, in another message: calls become the model's, and
    reasoning goes.
    """

    def mend_speakers(editor: Editor, problems: list[Problem]) -> None:
        become_models: set[int] = set()
        for problem in problems:
            index = message_index(problem)
            block = editor.get(problem.path[:3])
            kind = pairing.wire.kind_of(block) if isinstance(block, dict) else None
            if index is None or index in become_models or kind not in pairing.model_kinds:
                continue
            if kind in pairing.reasoning_kinds:
                _drop_reasoning(editor, pairing.wire, problem)
            elif _holds_only_model_blocks(editor.get((index, "content")), pairing):
                editor.put((index, "role"), pairing.wire.model)
                reason = "The message holds only the model's calls; its role becomes 'assistant'."
                editor.done("set_role", problem, reason)
                become_models.add(index)
            else:
                _move_call(editor, pairing.wire, problem)

    return mend_speakers


def _drop_reasoning(editor: Editor, wire: BlockWire, problem: Problem) -> None:
    path = problem.path[:3]
    expect_block(editor, wire, path)
    editor.remove(path)
    reason = "Only the model has reasoning, and this message isn't the model's; it is left out."
    editor.done("drop_reasoning", problem, reason)


def _move_call(editor: Editor, wire: BlockWire, problem: Problem) -> None:
    path = problem.path[:3]
    behind: Path = (int(path[0]) + 1,)
    message = {"role": wire.model, "content": [copied(editor.get(path))]}
    expect_block(editor, wire, path)
    if editor.get(behind) == message:
        editor.remove(path)
        reason = "Only the model calls tools, and the next message holds the same call."
        editor.done("drop_duplicate", problem, reason)
        return
    editor.insert(behind, message)
    editor.remove(path)
    reason = "Only the model calls tools; the call goes into an assistant message after this."
    editor.done("move_call", problem, reason)


def _holds_only_model_blocks(blocks: Any, pairing: Pairing) -> bool:
    kind_of = pairing.wire.kind_of
    return all(
        isinstance(block, dict) and kind_of(block) in pairing.model_kinds for block in blocks
    )


# ------------------------------------------------------------------- pairing


def mend_pairing_of(pairing: Pairing) -> Stage:
    """A stage that moves results to their calls, closes calls without one, and leaves out the
    results that are left over.
    """

    def mend_pairing(editor: Editor, problems: list[Problem]) -> None:
        conversation = Conversation(editor, pairing.wire)
        loose: dict[Path, Problem] = {}
        open_turns: dict[int, tuple[Turn, Problem]] = {}
        for problem in problems:
            if problem.rule in pairing.open_call_rules:
                turn = conversation.calling(problem)
                if turn is not None:
                    open_turns.setdefault(turn.first, (turn, problem))
            elif conversation.with_problem(problem) and _is_result(editor, pairing, problem):
                loose[problem.path[:3]] = problem
        candidates = _by_call_id(editor, pairing.wire, loose)
        # Messages that have lost a result, and may be empty now.
        robbed: set[int] = set()
        for turn, problem in open_turns.values():
            slots = ResultSlots(editor, pairing.form, problem, robbed, turn.last + 1)
            _OpenTurn(editor, pairing, conversation, turn, slots, loose).answer(candidates)
        _drop_loose(editor, pairing, loose, robbed)
        _drop_emptied(editor, pairing, robbed)

    return mend_pairing


def _is_result(editor: Editor, pairing: Pairing, problem: Problem) -> bool:
    path = problem.path[:3]
    block = editor.get(path)
    wire = pairing.wire
    return isinstance(block, dict) and wire.inside(path, block, wire.result.kind) is not None


def _by_call_id(
    editor: Editor, wire: BlockWire, loose: dict[Path, Problem]
) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(loose, key=lambda path: (int(path[0]), int(path[2]))):
        inside = wire.path_inside(path, wire.result.kind)
        call_id = editor.get((*inside, wire.result.id_key))
        if isinstance(call_id, str):
            found.setdefault(call_id, []).append(path)
    return found


def _drop_loose(
    editor: Editor, pairing: Pairing, loose: dict[Path, Problem], robbed: set[int]
) -> None:
    for path, problem in loose.items():
        if editor.gone(path):
            continue
        expect_block(editor, pairing.wire, path)
        editor.remove(path)
        robbed.add(int(path[0]))
        reason = "The message before doesn't hold the call of this result; the result is left out."
        if problem.rule == pairing.second_result_rule:
            reason = "The call has a result already; this second one is left out."
        editor.done("drop_result", problem, reason)


def _drop_emptied(editor: Editor, pairing: Pairing, robbed: set[int]) -> None:
    for index in robbed:
        if editor.gone((index,)) or editor.get((index, "content")) != []:
            continue
        problem = Problem(pairing.empty_rule, f"messages.{index}", "", "refused", path=(index,))
        reason = "Nothing is left in the message; it is left out."
        drop_entry(editor, (index,), problem, "drop_empty", reason)


class _OpenTurn:
    """A turn with calls whose results aren't at the start of the next one."""

    def __init__(
        self,
        editor: Editor,
        pairing: Pairing,
        conversation: Conversation,
        turn: Turn,
        slots: ResultSlots,
        loose: dict[Path, Problem],
    ) -> None:
        self.editor = editor
        self.wire = pairing.wire
        self.slots = slots
        self.calls: list[tuple[Placed, str]] = []
        self.late: dict[str, Path] = {}
        """Results behind something else in the next turn."""
        seen: set[str] = set()
        for placed in turn.calls:
            call_id = placed[1].get(self.wire.call.id_key)
            if isinstance(call_id, str) and call_id not in seen:
                seen.add(call_id)
                self.calls.append((placed, call_id))
        after = conversation.after(turn)
        if after is not None:
            self._look_at_results(after, loose)

    def _look_at_results(self, after: Turn, loose: dict[Path, Problem]) -> None:
        slots, wire = self.slots, self.wire
        number_of = {call_id: number for number, (_, call_id) in enumerate(self.calls)}
        slots.before = after.first
        if isinstance(self.editor.get((after.first, wire.blocks_key)), list):
            slots.end = (after.first, wire.blocks_key, 0)
        is_leading = True
        for path, block in after.blocks:
            result = wire.inside(path, block, wire.result.kind)
            if result is None:
                is_leading = False
                continue
            if is_leading:
                slots.end = (*path[:2], int(path[2]) + 1)
            call_id = result[1].get(wire.result.id_key)
            if not isinstance(call_id, str) or path in loose or call_id not in number_of:
                continue
            if is_leading:
                slots.leading.append((path, number_of[call_id]))
            else:
                self.late.setdefault(call_id, path)

    def answer(self, candidates: dict[str, list[Path]]) -> None:
        """Give each open call its result.

        Args:
            candidates: Loose results, by the id that they name. Those that are used are taken out.
        """
        answered = {number for _, number in self.slots.leading}
        for number, ((path, call), call_id) in enumerate(self.calls):
            if number in answered:
                continue
            source = self.late.get(call_id) or nearest(candidates.get(call_id), path)
            if source is not None and self.editor.gone(source):
                source = None
            self.editor.expect((*path, self.wire.call.id_key))
            if not self.slots.put(number, call, source):
                return
