"""Repairs of Responses: each output after its call."""

# What is hard: outputs needn't come right after their calls, parallel calls are side by side
# with all outputs after them, and the call of an output may be at the server. So each open call
# gets a slot, worked out for all calls in one walk before anything moves:
#
#     user   call a   call b   output b   user          open: a
#                                       ^
#     the slot of a comes after the model's items and behind the outputs of earlier calls;
#     here none is earlier, so it is right before `output b`
#
# A call is answered by the nearest output that answers nothing else: one that comes before it,
# or one of another kind that can be given its kind. Where an output before got another kind, the
# one behind the call was no second one: it stays. If there is none, the call is closed as
# interrupted.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import (
    drop_entry,
    drop_left_over,
    expect_entry,
    nearest,
    separate_open_calls,
)
from lutumpy.doctor.openai.responses.kinds import (
    TEXT_OUTPUTS,
    call_id_of,
    is_by_model,
    kind_of,
    outputs_by_call,
)
from lutumpy.doctor.wording import INTERRUPTED
from lutumpy.errors import Problem
from lutumpy.rules.openai.responses.kinds import calls_of_output, is_call

__all__ = ["mend_outputs"]


def mend_outputs(editor: Editor, problems: list[Problem]) -> None:
    """Outputs move behind their calls, calls without one are closed, leftover outputs go."""
    open_calls, loose = separate_open_calls(problems, "responses.output_for_call")
    slots = _find_slots(editor, [problem.path[0] for problem in open_calls])
    early = _find_early_outputs(editor) if open_calls else set()
    candidates = outputs_by_call(editor, sorted({*loose, *early}))
    pairing = _Pairing(editor, candidates, loose)
    for problem in open_calls:
        pairing.answer(problem, slots[int(problem.path[0])])
    drop_left_over(editor, loose, "responses.duplicate_output", "an", "output")


def _find_early_outputs(editor: Editor) -> set[int]:
    """Outputs that come before every call of their id.

    The server may hold another call, but no two calls have one id.
    """
    called: set[str] = set()
    found: set[int] = set()
    for index, item in enumerate(editor.document):
        call_id = call_id_of(item)
        if call_id is None:
            continue
        if is_call(kind_of(item)):
            called.add(call_id)
        elif calls_of_output(kind_of(item)) and call_id not in called:
            found.add(index)
    return found


def _find_slots(editor: Editor, open_calls: Sequence[str | int]) -> dict[int, int]:
    """Where the output of each open call goes, by the index of the call."""
    wanted = set(open_calls)
    call_index: dict[str, int] = {}
    for index, item in enumerate(editor.document):
        call_id = call_id_of(item)
        if is_call(kind_of(item)) and call_id is not None:
            call_index.setdefault(call_id, index)
    found: dict[int, int] = {}
    index, length = 0, len(editor.document)
    while index < length:
        start = index
        while index < length and is_by_model(editor.document[index]):
            index += 1
        slot = index
        for at in range(start, index):
            if at not in wanted:
                continue
            # Outputs keep the order of their calls. Slots of a turn never go back, so that the
            # whole search is one walk over the items.
            while slot < length and 0 <= _answered_call(editor.document[slot], call_index) < at:
                slot += 1
            found[at] = slot
        index = max(index, start + 1)
    return found


def _answered_call(item: Any, call_index: dict[str, int]) -> int:
    """The index of the call that an item answers; -1 when it answers none."""
    call_id = call_id_of(item) if calls_of_output(kind_of(item)) else None
    return -1 if call_id is None else call_index.get(call_id, -1)


@dataclass(slots=True)
class _Pairing:
    """The outputs of a pass that are free to answer an open call.

    Attributes:
        editor: The items.
        candidates: Their places, by the id that they name.
        loose: The problem of each output that answers nothing, by its index. One that gets a call
            is taken out.
    """

    editor: Editor
    candidates: dict[str, list[Path]]
    loose: dict[int, Problem]

    def answer(self, problem: Problem, slot: int) -> None:
        """Give an open call an output, or drop the call if there can't be one."""
        editor = self.editor
        path = problem.path[:1]
        call = editor.get(path)
        if not isinstance(call, dict):
            return
        output = self._take_output(path, call)
        if output is not None:
            self._use(problem, output, slot)
            return
        interrupted = _write_interrupted(call)
        if interrupted is None:
            reason = (
                "The call has no output, and for a call of this kind none can be written; "
                "the call is left out."
            )
            drop_entry(editor, path, problem, "drop_call", reason)
            return
        editor.expect_keys(path, "type", "call_id")
        editor.insert((slot,), interrupted)
        reason = "The call has no output, but the API requires one; it is closed as interrupted."
        editor.done("close_call", problem, reason)

    def _take_output(self, path: Path, call: dict[str, Any]) -> Path | None:
        """The nearest output that can become this call's."""
        candidates = self.candidates.get(str(call.get("call_id")), [])
        fitting = [
            place
            for place in candidates
            if _can_answer(self.editor.get(place), call, is_before=place < path)
        ]
        output = nearest(fitting or self._find_later(candidates, path, call), path)
        if output is not None:
            candidates.remove(output)
        return output

    def _find_later(
        self, candidates: Sequence[Path], path: Path, call: dict[str, Any]
    ) -> list[Path]:
        """The outputs of the call's own kind that come after it."""
        kind = kind_of(call)
        return [
            place
            for place in candidates
            if path < place and kind in calls_of_output(kind_of(self.editor.get(place)))
        ]

    def _use(self, problem: Problem, output: Path, slot: int) -> None:
        """An output before its call moves behind it; one of another kind gets the call's kind."""
        editor = self.editor
        path = problem.path[:1]
        kind = kind_of(editor.get(path))
        if path < output and kind in calls_of_output(kind_of(editor.get(output))):
            self.loose.pop(int(output[0]), None)
            return
        expect_entry(editor, output)
        if kind not in calls_of_output(kind_of(editor.get(output))):
            editor.put((*output, "type"), TEXT_OUTPUTS[kind])
        if output < path:
            editor.move(output, (slot,))
            reason = "The output stands before its call; it is moved behind the call."
            editor.done("move_result", problem, reason)
        else:
            self.loose.pop(int(output[0]), None)
            reason = "The output is of another kind than its call; it gets the call's kind."
            editor.done("set_field", problem, reason)


def _can_answer(output: Any, call: dict[str, Any], *, is_before: bool) -> bool:
    """Whether an output can become a call's by moving behind it, or by getting its kind."""
    kind = kind_of(call)
    if kind in calls_of_output(kind_of(output)):
        return is_before
    return kind in TEXT_OUTPUTS and kind_of(output) in TEXT_OUTPUTS.values()


def _write_interrupted(call: dict[str, Any]) -> dict[str, Any] | None:
    """An output that says that the call was interrupted; `None` where no output can say that."""
    kind, call_id = kind_of(call), str(call.get("call_id"))
    output: dict[str, Any]
    if kind in TEXT_OUTPUTS:
        output = {"type": TEXT_OUTPUTS[kind], "call_id": call_id, "output": INTERRUPTED}
    elif kind == "shell_call":
        failure = {"type": "exit", "exit_code": 1}
        ran = {"stdout": "", "stderr": INTERRUPTED, "outcome": failure}
        output = {"type": "shell_call_output", "call_id": call_id, "output": [ran]}
    elif kind == "apply_patch_call":
        output = {"type": "apply_patch_call_output", "call_id": call_id, "status": "failed"}
        output["output"] = INTERRUPTED
    elif kind == "tool_search_call":
        output = {"type": "tool_search_output", "call_id": call_id, "execution": "client"}
        return {**output, "status": "incomplete", "tools": []}
    elif kind == "local_shell_call":
        output = {"type": "local_shell_call_output", "id": call_id, "call_id": call_id}
        return {**output, "output": INTERRUPTED}
    else:
        return None
    # Calls that a program made, and not the model, say so, and so must their outputs.
    if isinstance(call.get("caller"), dict):
        output["caller"] = call["caller"]
    return output
