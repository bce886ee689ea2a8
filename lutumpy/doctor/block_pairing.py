"""Repairs of APIs of blocks with ids: results first in the message right after their calls."""

# What is hard: results of one turn must all stand at the start of the next user turn, in the
# order of their calls, and they may be anywhere: behind a text there (late), in another message
# (loose), or nowhere. Places are those of the start of the pass, so a result that goes to a place
# that isn't there yet ends the work on its turn; the next pass goes on.
#
#     next user turn        a result that is nowhere      a late or loose result
#     starts with results   put in among them             moved in among them
#     starts otherwise      put in at its start           moved to its start
#     content is a text     a new message before it       a new message before it, which holds it
#     is missing            a new message                 a new message, which holds it

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lutumpy.doctor.block_turns import Conversation, expect_block
from lutumpy.doctor.editor import Editor, Path, copied
from lutumpy.doctor.mending import Stage, drop_entry, message_index, nearest
from lutumpy.errors import Problem
from lutumpy.rules.block_wire import BlockWire, Turn

__all__ = ["Pairing", "mend_pairing_of", "mend_speakers_of"]


@dataclass(frozen=True, slots=True)
class Pairing:
    """What the repairs of pairing need to know of an API.

    Attributes:
        wire: Where calls and results stand.
        open_call_rules: The rules that a call without a result in its place breaks.
        second_result_rule: The rule that a second result of a call breaks.
        empty_rule: The rule that a message breaks from which the only block was taken.
        model_kinds: The kinds of blocks that only the model's messages hold.
        reasoning_kinds: Those of them that are left out elsewhere; the others are calls.
        write_interrupted: Writes the block of a result for a call without one, by the call's id.
    """

    wire: BlockWire
    open_call_rules: tuple[str, ...]
    second_result_rule: str
    empty_rule: str
    model_kinds: tuple[str, ...]
    reasoning_kinds: tuple[str, ...]
    write_interrupted: Callable[[str], dict[str, Any]]


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
            open_turn = _OpenTurn(editor, pairing, conversation, turn, problem, loose)
            open_turn.answer(candidates, robbed)
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
    """A turn with calls whose results don't stand at the start of the next one."""

    def __init__(
        self,
        editor: Editor,
        pairing: Pairing,
        conversation: Conversation,
        turn: Turn,
        problem: Problem,
        loose: dict[Path, Problem],
    ) -> None:
        self.editor = editor
        self.pairing = pairing
        self.problem = problem
        self.calls: list[tuple[Path, str]] = []
        self.leading: list[tuple[Path, int]] = []
        """Results at the start of the next turn, each with the number of its call."""
        self.late: dict[str, Path] = {}
        """Results behind something else there."""
        self.end: Path | None = None
        """The place behind the leading results; `None` when a new message is needed."""
        self.before = turn.last + 1
        """The place of that message."""
        seen: set[str] = set()
        for path, call in turn.calls:
            call_id = call.get(pairing.wire.call.id_key)
            if isinstance(call_id, str) and call_id not in seen:
                seen.add(call_id)
                self.calls.append((path, call_id))
        after = conversation.after(turn)
        if after is not None:
            self._look_at_results(after, loose)

    def _look_at_results(self, after: Turn, loose: dict[Path, Problem]) -> None:
        wire = self.pairing.wire
        number_of = {call_id: number for number, (_, call_id) in enumerate(self.calls)}
        self.before = after.first
        if isinstance(self.editor.get((after.first, "content")), list):
            self.end = (after.first, "content", 0)
        is_leading = True
        for path, block in after.blocks:
            result = wire.inside(path, block, wire.result.kind)
            if result is None:
                is_leading = False
                continue
            if is_leading:
                self.end = (*path[:2], int(path[2]) + 1)
            call_id = result[1].get(wire.result.id_key)
            if not isinstance(call_id, str) or path in loose or call_id not in number_of:
                continue
            if is_leading:
                self.leading.append((path, number_of[call_id]))
            else:
                self.late.setdefault(call_id, path)

    def answer(self, candidates: dict[str, list[Path]], robbed: set[int]) -> None:
        """Give each open call its result.

        Args:
            candidates: Loose results, by the id that they name. Those that are used are taken out.
            robbed: The indices of messages that results are taken from; they are added here.
        """
        answered = {number for _, number in self.leading}
        for number, (path, call_id) in enumerate(self.calls):
            if number in answered:
                continue
            source = self.late.get(call_id) or nearest(candidates.get(call_id), path)
            if source is not None and self.editor.gone(source):
                source = None
            self.editor.expect((*path, self.pairing.wire.call.id_key))
            slot = self._slot_for(number)
            if slot is None:
                # The first result makes the message for all; the next pass finds it there.
                self._put_into_new_message(call_id, source, robbed)
                return
            self._put_into_slot(call_id, source, slot, robbed)

    def _slot_for(self, number: int) -> Path | None:
        """The place before the first result of a later call."""
        for path, other in self.leading:
            if other > number:
                return path
        return self.end

    def _put_into_new_message(self, call_id: str, source: Path | None, robbed: set[int]) -> None:
        if source is None:
            self._insert_message(self.pairing.write_interrupted(call_id))
            self._report_closed(call_id)
            return
        result = copied(self.editor.get(source))
        expect_block(self.editor, self.pairing.wire, source)
        self.editor.remove(source)
        self._insert_message(result)
        robbed.add(int(source[0]))
        self._report_moved(call_id)

    def _insert_message(self, result: dict[str, Any]) -> None:
        message = {"role": self.pairing.wire.user, "content": [result]}
        self.editor.insert((self.before,), message)

    def _put_into_slot(
        self, call_id: str, source: Path | None, slot: Path, robbed: set[int]
    ) -> None:
        if source is None:
            self.editor.insert(slot, self.pairing.write_interrupted(call_id))
            self._report_closed(call_id)
            return
        expect_block(self.editor, self.pairing.wire, source)
        self.editor.move(source, slot)
        robbed.add(int(source[0]))
        self._report_moved(call_id)

    def _report_closed(self, call_id: str) -> None:
        reason = (
            "The call has no result in the next message, but the API requires one; "
            "it is closed as interrupted."
        )
        self.editor.done("close_call", self.problem, reason, call_ids=(call_id,))

    def _report_moved(self, call_id: str) -> None:
        reason = (
            "The result must stand first in the message right after its call; it is moved there."
        )
        self.editor.done("move_result", self.problem, reason, call_ids=(call_id,))
