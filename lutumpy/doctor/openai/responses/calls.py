"""Repairs of Responses input that work better than what stands: calls that were cut off, parallel calls apart from each other."""

from __future__ import annotations

from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import by_id, drop_entry, expect_entry, placed
from lutumpy.errors import Problem
from lutumpy.rules.openai.responses.sequence import CALL_WORDS, OUTPUT_TO_CALLS
from lutumpy.rules.problem import is_json


def _outputs(editor: Editor) -> dict[str, list[Path]]:
    paths: list[Path] = []
    for index, item in enumerate(editor.document):
        kind = item.get("type") if isinstance(item, dict) else None
        if isinstance(kind, str) and kind in OUTPUT_TO_CALLS:
            paths.append((index,))
    return by_id(editor, paths, "call_id")


def drop_truncated(editor: Editor, problems: list[Problem]) -> None:
    """A call whose arguments end in the middle can't have run: it goes with what was answered to it.

    One that can be read stays: a tool may have done what it says.
    """
    outputs = _outputs(editor)
    for problem in problems:
        path = problem.path[:1]
        call = editor.get(path)
        arguments = call.get("arguments") if isinstance(call, dict) else None
        if (
            not isinstance(call, dict)
            or call.get("type") != "function_call"
            or not isinstance(arguments, str)
        ):
            continue
        answers = outputs.get(str(call.get("call_id")), [])
        if is_json(arguments) or not arguments.strip() or len(answers) > 1:
            continue
        if len(editor.document) == 1 + len(answers):
            continue  # nothing would be left
        editor.expect((*path, "arguments"))
        reason = "The call was cut off before its arguments ended, so no tool can have run; it is left out."
        drop_entry(editor, path, problem, "drop_call", reason)
        for answer in answers:
            reason = (
                "The call that this output answers was cut off and is left out; so is the output."
            )
            if not editor.gone(answer):
                drop_entry(editor, answer, problem, "drop_result", reason)


def mend_interleaved(editor: Editor, problems: list[Problem]) -> None:
    """Calls with something between them: the outputs of those before it move right behind those."""
    outputs = _outputs(editor)
    for problem, before in placed(problems):
        start = before - 1
        while start >= 0 and not _is_call(editor, start, problem.call_ids):
            start -= 1
        end = start
        calls: list[str] = []
        while start >= 0 and _is_call(editor, end):
            calls.append(editor.get((end, "call_id")))
            end += 1
        moved = False
        for call_id in calls:
            answer = next(
                (path for path in outputs.get(call_id, ()) if int(path[0]) > before), None
            )
            if answer is not None and not editor.gone(answer):
                expect_entry(editor, answer)
                editor.move(answer, (end,))
                moved = True
        if moved:
            reason = "Something stands between parallel calls; the outputs of those before it move right behind them."
            editor.done("move_result", problem, reason, call_ids=calls)


def _is_call(editor: Editor, index: int, call_ids: tuple[str, ...] | None = None) -> bool:
    item = editor.get((index,))
    kind, call_id = (
        (item.get("type"), item.get("call_id")) if isinstance(item, dict) else (None, None)
    )
    if not isinstance(kind, str) or kind not in CALL_WORDS or not isinstance(call_id, str):
        return False
    return call_ids is None or call_id in call_ids
