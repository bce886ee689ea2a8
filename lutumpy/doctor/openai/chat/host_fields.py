"""Repairs of Chat Completions: what a host doesn't take of another one's messages."""

from __future__ import annotations

from typing import Any

from lutumpy.doctor.editor import Editor
from lutumpy.doctor.mending import drop_entry
from lutumpy.errors import Problem

__all__ = ["add_host_reasoning", "drop_sealed", "mend_host_field"]

# In which fields hosts give reasoning; the text of the first ones can be read.
_TOLD_IN = ("reasoning_content", "reasoning", "reasoning_details")
_REASONING = (*_TOLD_IN, "thinking_blocks", "thought_signature", "thinking", "extra_content")


def mend_host_field(editor: Editor, problem: Problem) -> None:
    """A field or a part of another host: readable reasoning goes where this one takes it, and the
    rest is left out.
    """
    path = problem.path
    if isinstance(path[-1], int):
        part: Any = editor.get(path)
        is_reasoning = isinstance(part, dict) and part.get("type") in _REASONING
        reason = "The host doesn't know this part, which another one has said; it is left out."
        drop_entry(
            editor, path, problem, "drop_reasoning" if is_reasoning else "drop_empty", reason
        )
        return
    message: Any = editor.get(path[:-1])
    field = None if editor.facts is None else editor.facts.reasoning_field
    value = message[path[-1]]
    editor.remove_key(path)
    words = _words_of(value) if path[-1] in _TOLD_IN else ""
    if words and field and field not in message and len(path) == 2:
        editor.put((path[0], field), words)
        reason = f"The host takes reasoning as `{field}`, not as `{path[-1]}`."
        editor.done("move_content", problem, reason)
        return
    reason = "The host doesn't know this field, which another one has said; it is left out."
    editor.done("drop_reasoning" if path[-1] in _REASONING else "drop_key", problem, reason)


def _words_of(value: Any) -> str:
    """What can be read of reasoning."""
    if isinstance(value, str):
        return value
    details = [d for d in value if isinstance(d, dict)] if isinstance(value, list) else []
    texts = [detail.get("text") or detail.get("summary") for detail in details]
    return "\n\n".join([text for text in texts if isinstance(text, str)])


def add_host_reasoning(editor: Editor, problem: Problem) -> None:
    """Calls without the reasoning that the host wants with them: an empty text will do."""
    field = None if editor.facts is None else editor.facts.reasoning_field
    message: Any = editor.get(problem.path)
    if field and isinstance(message, dict) and field not in message:
        editor.put((*problem.path, field), "")
        reason = f"The host wants `{field}` with calls; an empty text will do."
        editor.done("set_field", problem, reason)


def drop_sealed(editor: Editor, problem: Problem) -> None:
    """What another model has sealed."""
    path = problem.path
    reason = "Only the model that sealed this can open it; it is left out."
    if path[1:2] == ("content",):
        drop_entry(editor, path, problem, "drop_reasoning", reason)
        return
    # The seal is in the field that is left out as a whole.
    length = 4 if path[1:2] == ("tool_calls",) else 2
    holder: Any = editor.get(path[: length - 1])
    if path[length - 1] in holder:  # it may hold several seals
        editor.remove_key(path[:length])
        editor.done("drop_reasoning", problem, reason)
