"""Repairs of Converse: results first in the message right after their calls."""

# What is hard: results of one turn must all stand at the start of the very next message, in the
# order of their calls, and they may be anywhere: behind a text there (late), in another message
# (loose), or nowhere. Places are those of the start of the pass, so a result that goes to a place
# that isn't there yet ends the work on its turn; the next pass goes on.
#
#     next message            a result that is nowhere      a late or loose result
#     the user's, with a list put in among the results      moved in among the results
#     anything else           a new message before it       a new message before it, which holds it

from __future__ import annotations

from typing import Any

from lutumpy.doctor.bedrock.talk import Talk, block_path, expect_block
from lutumpy.doctor.editor import Editor, Path, copied
from lutumpy.doctor.mending import drop_entry, message_index, nearest
from lutumpy.doctor.wording import INTERRUPTED
from lutumpy.errors import Problem
from lutumpy.rules.bedrock.sequence import ASSISTANT_ONLY

__all__ = ["mend_pairing", "mend_speakers"]

# ----------------------------------------------- blocks of the model in other messages


def mend_speakers(editor: Editor, problems: list[Problem]) -> None:
    """What only the model says, in a user message: calls become the model's, reasoning goes."""
    become_models: set[int] = set()
    for problem in problems:
        index, path = message_index(problem), block_path(problem)
        block = editor.get(path)
        key = next(iter(block), "") if isinstance(block, dict) else ""
        if index is None or index in become_models or key not in ASSISTANT_ONLY:
            continue
        if key != "toolUse":
            expect_block(editor, path)
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
            _move_call(editor, problem, path)


def _move_call(editor: Editor, problem: Problem, path: Path) -> None:
    behind: Path = (int(path[0]) + 1,)
    message = {"role": "assistant", "content": [copied(editor.get(path))]}
    expect_block(editor, path)
    if editor.get(behind) == message:
        editor.remove(path)
        reason = "Only the model calls tools, and the next message holds the same call."
        editor.done("drop_duplicate", problem, reason)
        return
    editor.insert(behind, message)
    editor.remove(path)
    reason = "Only the model calls tools; the call goes into an assistant message after this."
    editor.done("move_call", problem, reason)


def _holds_only_model_blocks(blocks: Any) -> bool:
    return all(isinstance(block, dict) and set(block) & set(ASSISTANT_ONLY) for block in blocks)


# ------------------------------------------------------------------- pairing


def mend_pairing(editor: Editor, problems: list[Problem]) -> None:
    """Results move to their calls, calls without one are closed, leftover results go."""
    talk = Talk(editor)
    loose: dict[Path, Problem] = {}
    open_turns: dict[int, Problem] = {}
    for problem in problems:
        index, path = talk.with_problem(problem), block_path(problem)
        if index is None:
            continue
        if problem.rule == "converse.results_first":
            open_turns.setdefault(index - 1, problem)
        elif problem.rule == "converse.results_after_calls":
            open_turns.setdefault(index, problem)
        elif isinstance(editor.get((*path, "toolResult")), dict):
            loose[path] = problem
    candidates: dict[str, list[Path]] = {}
    for path in sorted(loose, key=lambda path: (int(path[0]), int(path[2]))):
        call_id = editor.get((*path, "toolResult", "toolUseId"))
        if isinstance(call_id, str):
            candidates.setdefault(call_id, []).append(path)
    # Messages that have lost a result, and may be empty now.
    robbed: set[int] = set()
    for index, problem in open_turns.items():
        _OpenTurn(editor, talk, index, problem, loose).answer(candidates, robbed)
    _drop_loose(editor, loose, robbed)
    _drop_emptied(editor, robbed)


def _drop_loose(editor: Editor, loose: dict[Path, Problem], robbed: set[int]) -> None:
    for path, problem in loose.items():
        if editor.gone(path):
            continue
        expect_block(editor, path)
        editor.remove(path)
        robbed.add(int(path[0]))
        reason = "The message before doesn't hold the call of this result; the result is left out."
        if problem.rule == "converse.single_result":
            reason = "The call has a result already; this second one is left out."
        editor.done("drop_result", problem, reason)


def _drop_emptied(editor: Editor, robbed: set[int]) -> None:
    for index in robbed:
        if editor.gone((index,)) or editor.get((index, "content")) != []:
            continue
        rule, where = "converse.empty_content", f"messages.{index}"
        problem = Problem(rule, where, "", "refused", path=(index,))
        reason = "Nothing is left in the message; it is left out."
        drop_entry(editor, (index,), problem, "drop_empty", reason)


class _OpenTurn:
    """A message with calls whose results don't stand at the start of the next one."""

    def __init__(
        self,
        editor: Editor,
        talk: Talk,
        index: int,
        problem: Problem,
        loose: dict[Path, Problem],
    ) -> None:
        self.editor = editor
        self.problem = problem
        self.before = index + 1
        """The place of a new message."""
        self.calls: list[tuple[Path, str]] = []
        self.leading: list[tuple[Path, int]] = []
        """Results at the start of the next message, each with the number of its call."""
        self.late: dict[str, Path] = {}
        """Results behind something else there."""
        self.end: Path | None = None
        """The place behind the leading results; `None` when a new message is needed."""
        seen: set[str] = set()
        for path, use in talk.calls(index):
            call_id = use.get("toolUseId")
            if isinstance(call_id, str) and call_id not in seen:
                seen.add(call_id)
                self.calls.append((path, call_id))
        if talk.role(index + 1) == "user":
            self._look_at_results(talk, loose)

    def _look_at_results(self, talk: Talk, loose: dict[Path, Problem]) -> None:
        number_of = {call_id: number for number, (_, call_id) in enumerate(self.calls)}
        if isinstance(self.editor.get((self.before, "content")), list):
            self.end = (self.before, "content", 0)
        is_leading = True
        for path, block in talk.blocks(self.before):
            result = block.get("toolResult")
            if not isinstance(result, dict):
                is_leading = False
                continue
            if is_leading:
                self.end = (*path[:2], int(path[2]) + 1)
            call_id = result.get("toolUseId")
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
            self.editor.expect((*path, "toolUse", "toolUseId"))
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
        expect_block(editor, source)
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
        expect_block(self.editor, source)
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
    result = {"toolUseId": call_id, "content": [{"text": INTERRUPTED}], "status": "error"}
    return {"toolResult": result}
