"""Repairs of Messages: results first in the message right after their calls."""

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

from typing import Any

from lutumpy.doctor.anthropic.turns import Conversation, Turn
from lutumpy.doctor.editor import Editor, Path, copied
from lutumpy.doctor.mending import by_id, drop_entry, expect_entry, message_index, nearest
from lutumpy.doctor.wording import INTERRUPTED
from lutumpy.errors import Problem
from lutumpy.rules.anthropic.sequence import ASSISTANT_ONLY, THINKING

__all__ = ["mend_pairing", "mend_speakers"]

_OPEN_CALL_RULES = ("anthropic.results_after_uses", "anthropic.results_first")


# ----------------------------------------------- blocks of the model in other messages


def mend_speakers(editor: Editor, problems: list[Problem]) -> None:
    """What only the model says, in another message: calls become the model's, reasoning goes."""
    become_models: set[int] = set()
    for problem in problems:
        index, path = message_index(problem), problem.path[:3]
        block = editor.get(path)
        kind = block.get("type") if isinstance(block, dict) else None
        if index is None or index in become_models or kind not in ASSISTANT_ONLY:
            continue
        if kind in THINKING:
            expect_entry(editor, path)
            editor.remove(path)
            reason = (
                "Only the model has reasoning, and this message isn't the model's; it is left out."
            )
            editor.done("drop_reasoning", problem, reason)
        elif _holds_only_model_blocks(editor.get((index, "content"))):
            editor.put((index, "role"), "assistant")
            reason = "The message holds only the model's calls; its role becomes 'assistant'."
            editor.done("set_role", problem, reason)
            become_models.add(index)
        else:
            expect_entry(editor, path)
            editor.insert((index + 1,), {"role": "assistant", "content": [copied(block)]})
            editor.remove(path)
            reason = (
                "Only the model calls tools; the call goes into an assistant message after this."
            )
            editor.done("move_call", problem, reason)


def _holds_only_model_blocks(blocks: Any) -> bool:
    return all(isinstance(block, dict) and block.get("type") in ASSISTANT_ONLY for block in blocks)


# ------------------------------------------------------------------- pairing


def mend_pairing(editor: Editor, problems: list[Problem]) -> None:
    """Results move to their calls, calls without one are closed, leftover results go."""
    conversation = Conversation(editor)
    loose: dict[Path, Problem] = {}
    open_turns: dict[int, tuple[Turn, Problem]] = {}
    for problem in problems:
        turn = conversation.with_problem(problem)
        if turn is None:
            continue
        if problem.rule in _OPEN_CALL_RULES:
            open_turns.setdefault(turn.first, (turn, problem))
        elif editor.get((*problem.path[:3], "type")) == "tool_result":
            loose[problem.path[:3]] = problem
    in_order = sorted(loose, key=lambda path: (int(path[0]), int(path[2])))
    candidates = by_id(editor, in_order, "tool_use_id")
    # Messages that have lost a result, and may be empty now.
    robbed: set[int] = set()
    for turn, problem in open_turns.values():
        open_turn = _OpenTurn(editor, conversation, turn, problem, loose)
        open_turn.answer(candidates, robbed)
    _drop_loose(editor, loose, robbed)
    _drop_emptied(editor, robbed)


def _drop_loose(editor: Editor, loose: dict[Path, Problem], robbed: set[int]) -> None:
    for path, problem in loose.items():
        if editor.gone(path):
            continue
        expect_entry(editor, path)
        editor.remove(path)
        robbed.add(int(path[0]))
        reason = "The message before doesn't hold the call of this result; the result is left out."
        if problem.rule == "anthropic.single_result":
            reason = "The call has a result already; this second one is left out."
        editor.done("drop_result", problem, reason)


def _drop_emptied(editor: Editor, robbed: set[int]) -> None:
    for index in robbed:
        if editor.gone((index,)) or editor.get((index, "content")) != []:
            continue
        problem = Problem("anthropic.empty_user", f"messages.{index}", "", "refused", path=(index,))
        reason = "Nothing is left in the message; it is left out."
        drop_entry(editor, (index,), problem, "drop_empty", reason)


class _OpenTurn:
    """A turn with calls whose results don't stand at the start of the next one."""

    def __init__(
        self,
        editor: Editor,
        conversation: Conversation,
        turn: Turn,
        problem: Problem,
        loose: dict[Path, Problem],
    ) -> None:
        self.editor = editor
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
        for path, block in turn.of("tool_use"):
            if isinstance(block.get("id"), str) and block["id"] not in seen:
                seen.add(block["id"])
                self.calls.append((path, block["id"]))
        after = conversation.after(turn)
        if after is not None:
            self._look_at_results(after, loose)

    def _look_at_results(self, after: Turn, loose: dict[Path, Problem]) -> None:
        number_of = {call_id: number for number, (_, call_id) in enumerate(self.calls)}
        self.before = after.first
        if isinstance(self.editor.get((after.first, "content")), list):
            self.end = (after.first, "content", 0)
        is_leading = True
        for path, block in after.blocks:
            if block.get("type") != "tool_result":
                is_leading = False
                continue
            if is_leading:
                self.end = (*path[:2], int(path[2]) + 1)
            call_id = block.get("tool_use_id")
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
            self.editor.expect((*path, "id"))
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
        editor = self.editor
        if source is None:
            result = _write_interrupted(call_id)
            editor.insert((self.before,), {"role": "user", "content": [result]})
            self._report_closed(call_id)
            return
        result = copied(editor.get(source))
        expect_entry(editor, source)
        editor.remove(source)
        editor.insert((self.before,), {"role": "user", "content": [result]})
        robbed.add(int(source[0]))
        self._report_moved(call_id)

    def _put_into_slot(
        self, call_id: str, source: Path | None, slot: Path, robbed: set[int]
    ) -> None:
        if source is None:
            self.editor.insert(slot, _write_interrupted(call_id))
            self._report_closed(call_id)
            return
        expect_entry(self.editor, source)
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


def _write_interrupted(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "is_error": True, "content": INTERRUPTED}
