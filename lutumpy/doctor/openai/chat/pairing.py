"""Repairs of Chat Completions: results right after the message that called."""

# What is hard: every call of a message needs its result in the messages right after it, in any
# order, and results may be anywhere. All places are those of the start of the pass:
#
#     assistant: a b c     results right after: c       elsewhere: a
#     slots                a goes before c, because results keep the order of their calls;
#                          b goes behind a, and is closed as interrupted if it has no result
#
# A result is taken from the nearest place after the message, or else before it. What no call
# takes is left out at the end of the pass.

from __future__ import annotations

from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import (
    by_id,
    drop_entry,
    drop_left_over,
    expect_entry,
    nearest,
    separate_open_calls,
)
from lutumpy.doctor.openai.chat.results import calls_of, results_after
from lutumpy.doctor.wording import INTERRUPTED
from lutumpy.errors import Problem
from lutumpy.plain import json_values

__all__ = ["mend_pairing"]


def mend_pairing(editor: Editor, problems: list[Problem]) -> None:
    """Results move right after their calls, calls without one are closed, leftover results go."""
    open_calls, loose = separate_open_calls(problems, "chat.results_after_calls")
    candidates = by_id(editor, [(index,) for index in sorted(loose)], "tool_call_id")
    open_calls = [problem for problem in open_calls if not _drop_twin(editor, problem)]
    # All of them are looked at before the first one changes anything.
    open_messages = [_OpenMessage(editor, problem, loose) for problem in open_calls]
    for message in open_messages:
        message.answer(candidates)
    drop_left_over(editor, loose, "chat.duplicate_result", "a", "result")


def _drop_twin(editor: Editor, problem: Problem) -> bool:
    """Drop a message with open calls that is there again right after: the results are its."""
    path = problem.path[:1]
    message, after = editor.get(path), editor.get((int(path[0]) + 1,))
    if not isinstance(message, dict) or not json_values.equal(message, after):
        return False
    editor.expect(path)
    reason = "The same message stands right after this one; this copy is left out."
    drop_entry(editor, path, problem, "drop_duplicate", reason)
    return True


class _OpenMessage:
    """A message with calls that lack results, as it was before the pass changed anything."""

    def __init__(self, editor: Editor, problem: Problem, loose: dict[int, Problem]) -> None:
        self.editor = editor
        self.problem = problem
        self.index = int(problem.path[0])
        self.call_ids: list[object] = []
        for call in calls_of(editor, self.index):
            self.call_ids.append(call.get("id") if isinstance(call, dict) else None)
        results = results_after(editor, self.index)
        self.end = self.index + 1 + len(results)
        self.settled: list[tuple[int, int]] = []
        """Results that stay, each with the number of its call."""
        for at in results:
            call_id = editor.get((at, "tool_call_id"))
            if at not in loose and call_id in self.call_ids:
                self.settled.append((at, self.call_ids.index(call_id)))

    def answer(self, candidates: dict[str, list[Path]]) -> None:
        """Give each open call its result; those that are used are taken out of the candidates."""
        for number, call_id in enumerate(self.call_ids):
            # The second call with an id is another rule's business.
            is_first = self.call_ids.index(call_id) == number
            if isinstance(call_id, str) and call_id in self.problem.call_ids and is_first:
                self._answer_call(number, call_id, nearest(candidates.get(call_id), (self.index,)))

    def _answer_call(self, number: int, call_id: str, source: Path | None) -> None:
        editor = self.editor
        slot = self._slot_for(number)
        editor.expect((self.index, "tool_calls", number, "id"))
        if source is None:
            result = {"role": "tool", "tool_call_id": call_id, "content": INTERRUPTED}
            editor.insert((slot,), result)
            reason = (
                "The call has no result, but the API requires one; it is closed as interrupted."
            )
            editor.done("close_call", self.problem, reason, call_ids=(call_id,))
        else:
            expect_entry(editor, source)
            editor.move(source, (slot,))
            reason = (
                "The result must stand right after the message with its call; it is moved there."
            )
            editor.done("move_result", self.problem, reason, call_ids=(call_id,))

    def _slot_for(self, number: int) -> int:
        """The place before the first result of a later call."""
        for at, other in self.settled:
            if other > number:
                return at
        return self.end
