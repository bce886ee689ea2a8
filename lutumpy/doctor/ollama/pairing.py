"""Repairs of Ollama's API: results right behind the message that called."""

# What is hard: a result belongs to a call by its id, its name or its place, so its place among
# the others counts. All places are those of the start of the pass:
#
#     assistant: a b c     results right behind: c      elsewhere: a
#     slots                a goes before c, because results keep the order of their calls;
#                          b goes behind a, and is closed as interrupted if it has no result
#
# A result is taken from the nearest place behind the message, or else before it. What no call
# takes is left out at the end of the pass.

from __future__ import annotations

from typing import Any

from lutumpy.core.tool_names import UNNAMED
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import (
    drop_left_over,
    expect_entry,
    nearest,
    separate_open_calls,
)
from lutumpy.doctor.wording import INTERRUPTED
from lutumpy.errors import Problem
from lutumpy.rules.ollama.sequence import Named, call_named, match_results, result_named

__all__ = ["mend_pairing"]


def mend_pairing(editor: Editor, problems: list[Problem]) -> None:
    """Results move right behind their calls, calls without one are closed, leftover results go."""
    open_calls, loose = separate_open_calls(problems, "ollama.results_after_calls")
    candidates: dict[Named, list[Path]] = {}
    for index in sorted(loose):
        message = editor.get((index,))
        if isinstance(message, dict):
            candidates.setdefault(result_named(message), []).append((index,))
    # All of them are looked at before the first one changes anything.
    calls = [_OpenCall(editor, problem) for problem in open_calls if len(problem.path) >= 3]
    for call in calls:
        call.answer(candidates)
    taken = {path for paths in candidates.values() for path in paths}
    left = {index: problem for index, problem in loose.items() if (index,) in taken}
    drop_left_over(editor, left, "ollama.single_result", "a", "result")


class _OpenCall:
    """A call that lacks its result, as it was before the pass changed anything."""

    def __init__(self, editor: Editor, problem: Problem) -> None:
        self._editor = editor
        self._problem = problem
        self._index = int(problem.path[0])
        self._number = int(problem.path[2])
        calls: Any = editor.get((self._index, "tool_calls"))
        named = [call_named(call) for call in calls]
        self._named = named[self._number]
        results: list[dict[str, Any]] = []
        end = self._index + 1
        while _is_result(message := editor.get((end,))):
            results.append(message)
            end += 1
        answers = match_results(named, [result_named(result) for result in results])
        later = [at for at in answers.of_calls[self._number + 1 :] if at is not None]
        self._slot = self._index + 1 + min(later) if later else end

    def answer(self, candidates: dict[Named, list[Path]]) -> None:
        """Give it its result; what is used is taken out of the candidates."""
        source = self._find(candidates)
        editor, call = self._editor, self._named
        editor.expect((self._index, "tool_calls", self._number))
        if source is None:
            result = {"role": "tool", "content": INTERRUPTED, "tool_name": call.name or UNNAMED}
            if call.id is not None:
                result["tool_call_id"] = call.id
            editor.insert((self._slot,), result)
            reason = "The call has no result; it is closed as interrupted."
            editor.done("close_call", self._problem, reason)
        else:
            expect_entry(editor, source)
            editor.move(source, (self._slot,))
            reason = (
                "The result must stand right behind the message with its call; it is moved there."
            )
            editor.done("move_result", self._problem, reason)

    def _find(self, candidates: dict[Named, list[Path]]) -> Path | None:
        for named, paths in candidates.items():
            fits = named.id == self._named.id if named.id else named.name == self._named.name
            if paths and fits:
                return nearest(paths, (self._index,))
        return None


def _is_result(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "tool"
