"""Repairs of Anthropic's messages: results first in the message right behind their calls, blocks in the role they belong to."""

from __future__ import annotations

from typing import Any

from lutumpy.doctor.anthropic.turns import Conversation, Turn
from lutumpy.doctor.editor import Editor, Path, copied
from lutumpy.doctor.mending import by_id, drop_entry, expect_entry, message_index, nearest
from lutumpy.doctor.wording import INTERRUPTED
from lutumpy.errors import Problem
from lutumpy.rules.anthropic.sequence import ASSISTANT_ONLY, THINKING

_CALLS_OPEN = ("anthropic.results_after_uses", "anthropic.results_first")


def mend_roles(editor: Editor, problems: list[Problem]) -> None:
    """What only the model says, in a message of another role: calls become the model's, reasoning goes."""
    done: set[int] = set()
    for problem in problems:
        index, path = message_index(problem), problem.path[:3]
        block = editor.get(path)
        if (
            index is None
            or index in done
            or not isinstance(block, dict)
            or block.get("type") not in ASSISTANT_ONLY
        ):
            continue
        if block.get("type") in THINKING:
            expect_entry(editor, path)
            editor.remove(path)
            reason = "Reasoning is the model's alone, and this message isn't the model's; it is left out."
            editor.done("drop_reasoning", problem, reason)
            continue
        blocks = editor.get((index, "content"))
        if all(isinstance(other, dict) and other.get("type") in ASSISTANT_ONLY for other in blocks):
            editor.put((index, "role"), "assistant")
            editor.done(
                "set_role",
                problem,
                "The message holds nothing but the model's calls; its role is `assistant`.",
            )
            done.add(index)
            continue
        expect_entry(editor, path)
        editor.insert((index + 1,), {"role": "assistant", "content": [copied(block)]})
        editor.remove(path)
        editor.done(
            "move_call",
            problem,
            "Only the model calls tools; the call goes into an assistant message behind this one.",
        )


def mend_pairing(editor: Editor, problems: list[Problem]) -> None:
    """Results move to where the API wants them, calls without one are closed, and what is left over goes."""
    conversation = Conversation(editor)
    loose: dict[Path, Problem] = {}
    opened: dict[int, tuple[Turn, Problem]] = {}
    for problem in problems:
        index = message_index(problem)
        turn = conversation.at(index) if index is not None else None
        if turn is None:
            continue
        if problem.rule in _CALLS_OPEN:
            opened.setdefault(turn.first, (turn, problem))
        elif (editor.get(problem.path[:3]) or {}).get("type") == "tool_result":
            loose[problem.path[:3]] = problem
    candidates = by_id(
        editor, sorted(loose, key=lambda path: (int(path[0]), int(path[2]))), "tool_use_id"
    )
    left: set[int] = set()
    for turn, problem in opened.values():
        _Opened(editor, conversation, turn, problem, loose).answer(candidates, left)
    for path, problem in loose.items():
        if editor.gone(path):
            continue
        expect_entry(editor, path)
        editor.remove(path)
        left.add(int(path[0]))
        reason = (
            "The call has a result already; this second one is left out."
            if problem.rule == "anthropic.single_result"
            else "The call that this result answers isn't in the message before; the result is left out."
        )
        editor.done("drop_result", problem, reason)
    for index in left:
        if not editor.gone((index,)) and editor.get((index, "content")) == []:
            empty = Problem(
                "anthropic.empty_user", f"messages.{index}", "", "refused", path=(index,)
            )
            drop_entry(
                editor,
                (index,),
                empty,
                "drop_empty",
                "Nothing is left in the message; it is left out.",
            )


class _Opened:
    """A turn whose calls lack results at the start of the next message."""

    def __init__(
        self,
        editor: Editor,
        conversation: Conversation,
        turn: Turn,
        problem: Problem,
        loose: dict[Path, Problem],
    ) -> None:
        self.editor = editor
        self.turn = turn
        self.problem = problem
        self.calls: list[tuple[Path, str]] = []
        seen: set[str] = set()
        for path, block in turn.of("tool_use"):
            if isinstance(block.get("id"), str) and block["id"] not in seen:
                seen.add(block["id"])
                self.calls.append((path, block["id"]))
        order = {call_id: number for number, (_, call_id) in enumerate(self.calls)}
        after = conversation.after(turn)
        self.leading: list[
            tuple[Path, int]
        ] = []  # results at the start, and the order of their calls
        self.late: dict[str, Path] = {}
        self.end: Path | None = None  # where results may be put behind those
        self.before = turn.last + 1  # where a message for them would go
        blocked = False
        if after is not None:
            self.before = after.first
            if isinstance(editor.get((after.first, "content")), list):
                self.end = (after.first, "content", 0)
            for path, block in after.blocks:
                is_result = block.get("type") == "tool_result"
                blocked = blocked or not is_result
                call_id = block.get("tool_use_id")
                if not is_result:
                    continue
                if not blocked:
                    self.end = (*path[:2], int(path[2]) + 1)
                if not isinstance(call_id, str) or path in loose or call_id not in order:
                    continue
                if blocked:
                    self.late.setdefault(call_id, path)
                else:
                    self.leading.append((path, order[call_id]))

    def answer(self, candidates: dict[str, list[Path]], left: set[int]) -> None:
        answered = {number for _, number in self.leading}
        for number, (path, call_id) in enumerate(self.calls):
            if number in answered:
                continue
            slot = next((place for place, other in self.leading if other > number), self.end)
            source = self.late.get(call_id) or nearest(candidates.get(call_id), path)
            if source is not None and self.editor.gone(source):
                source = None
            self.editor.expect((*path, "id"))
            if slot is None:
                # The message for the results is made with the first of them; the next pass finds it there.
                self._begin(call_id, source, left)
                return
            self._put(call_id, source, slot, left)

    def _begin(self, call_id: str, source: Path | None, left: set[int]) -> None:
        editor = self.editor
        if source is None:
            editor.insert((self.before,), {"role": "user", "content": [_interrupted(call_id)]})
            self._closed(call_id)
            return
        result = copied(editor.get(source))
        expect_entry(editor, source)
        editor.remove(source)
        editor.insert((self.before,), {"role": "user", "content": [result]})
        left.add(int(source[0]))
        self._moved(call_id)

    def _put(self, call_id: str, source: Path | None, slot: Path, left: set[int]) -> None:
        if source is None:
            self.editor.insert(slot, _interrupted(call_id))
            self._closed(call_id)
            return
        expect_entry(self.editor, source)
        self.editor.move(source, slot)
        left.add(int(source[0]))
        self._moved(call_id)

    def _closed(self, call_id: str) -> None:
        reason = "The call has no result in the message behind it, and the API wants one; it is closed as interrupted."
        self.editor.done("close_call", self.problem, reason, call_ids=(call_id,))

    def _moved(self, call_id: str) -> None:
        reason = (
            "The result has to stand first in the message right behind its call; it is moved there."
        )
        self.editor.done("move_result", self.problem, reason, call_ids=(call_id,))


def _interrupted(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "is_error": True, "content": INTERRUPTED}


def mend_order(editor: Editor, problems: list[Problem]) -> None:
    """Results in another order than their calls, where they work and shouldn't stand."""
    conversation = Conversation(editor)
    for problem in problems:
        index = message_index(problem)
        before = conversation.at(index) if index is not None else None
        after = conversation.after(before) if before is not None else None
        if after is None or before is None:
            continue
        order = {block.get("id"): number for number, (_, block) in enumerate(before.of("tool_use"))}
        places = []
        for path, block in after.blocks:
            if block.get("type") != "tool_result":
                break
            places.append((path, order.get(block.get("tool_use_id"), len(order))))
        wanted = sorted(places, key=lambda place: place[1])
        if len({path[:2] for path, _ in places}) != 1 or wanted == places:
            continue
        end = places[-1][0]
        for path, _ in wanted:
            expect_entry(editor, path)
            editor.move(path, (*end[:2], int(end[2]) + 1))
        reason = "The results stand in another order than their calls; they are put in that order."
        editor.done("move_result", problem, reason)
