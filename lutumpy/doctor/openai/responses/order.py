"""Repairs of Responses that only make it work better: cut-off calls, parallel calls apart."""

from __future__ import annotations

from collections import Counter

from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import drop_entry, expect_entry, placed
from lutumpy.doctor.openai.responses.kinds import call_id_of, kind_of, outputs_by_call
from lutumpy.errors import Problem
from lutumpy.rules.openai.responses.kinds import calls_of_output, is_call
from lutumpy.rules.problem import is_json

__all__ = ["drop_truncated", "mend_interleaved"]


def _outputs_by_id(editor: Editor) -> dict[str, list[Path]]:
    entries = enumerate(editor.document)
    return outputs_by_call(editor, [at for at, item in entries if calls_of_output(kind_of(item))])


def drop_truncated(editor: Editor, problems: list[Problem]) -> None:
    """A call whose arguments end in the middle can't have run: it goes, with its output.

    A call whose arguments can be read stays, because a tool may have done what they say.
    """
    outputs = _outputs_by_id(editor)
    calls = Counter([call_id_of(item) for item in editor.document if is_call(kind_of(item))])
    for problem in problems:
        path = problem.path[:1]
        call = editor.get(path)
        if kind_of(call) != "function_call" or not _is_cut_off(call.get("arguments")):
            continue
        call_id = call_id_of(call) or ""
        # Where another call shares the id, an output is its own: this one can't have run.
        answers = outputs.get(call_id, []) if calls[call_id] < 2 else []
        # With several outputs it is unclear whose they are; and something must be left at all.
        if len(answers) > 1 or not editor.leaves_some(path, *answers):
            continue
        editor.expect((*path, "arguments"))
        reason = (
            "The call was cut off before its arguments ended, so no tool can have run; "
            "it is left out."
        )
        drop_entry(editor, path, problem, "drop_call", reason)
        reason = "The call that this output answers was cut off and is left out; so is the output."
        for answer in answers:
            if not editor.gone(answer):
                drop_entry(editor, answer, problem, "drop_result", reason)


def _is_cut_off(arguments: object) -> bool:
    """Whether arguments begin and can't be read; no arguments at all are not cut off."""
    return isinstance(arguments, str) and bool(arguments.strip()) and not is_json(arguments)


def mend_interleaved(editor: Editor, problems: list[Problem]) -> None:
    """Calls with something between them: the outputs of those before it move right behind those."""
    outputs = _outputs_by_id(editor)
    for problem, index in placed(problems):
        start = index - 1
        while start >= 0 and not _is_call_of(editor, start, problem.call_ids):
            start -= 1
        if start < 0:
            continue
        calls: list[str] = []
        end = start
        while _is_call(editor, end):
            calls.append(editor.get((end, "call_id")))
            end += 1
        moved = False
        for call_id in calls:
            output = _first_behind(outputs.get(call_id, []), index)
            if output is not None and not editor.gone(output):
                expect_entry(editor, output)
                editor.move(output, (end,))
                moved = True
        if moved:
            reason = (
                "Something stands between parallel calls; "
                "the outputs of the calls before it move right behind them."
            )
            editor.done("move_result", problem, reason, call_ids=calls)


def _first_behind(paths: list[Path], index: int) -> Path | None:
    for path in paths:
        if int(path[0]) > index:
            return path
    return None


def _is_call(editor: Editor, index: int) -> bool:
    item = editor.get((index,))
    return is_call(kind_of(item)) and isinstance(item.get("call_id"), str)


def _is_call_of(editor: Editor, index: int, call_ids: tuple[str, ...]) -> bool:
    return _is_call(editor, index) and editor.get((index, "call_id")) in call_ids
