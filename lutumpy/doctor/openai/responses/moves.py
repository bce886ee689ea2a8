"""Repairs of Responses: what another host doesn't get of a history."""

from __future__ import annotations

from typing import Any

from lutumpy.doctor.editor import Editor
from lutumpy.doctor.mending import drop_entry
from lutumpy.doctor.openai.responses.kinds import kind_of
from lutumpy.errors import Problem

__all__ = ["drop_private"]


def drop_private(editor: Editor, problem: Problem) -> None:
    """An item or a field that one host alone knows or can open."""
    path = problem.path
    if len(path) == 1:
        is_reasoning = kind_of(editor.get(path)) in ("reasoning", "compaction")
        reason = "Only the host that said this item can read it; it is left out."
        drop_entry(editor, path, problem, "drop_reasoning" if is_reasoning else "drop_call", reason)
        return
    holder: Any = editor.get(path[:-1])
    if isinstance(holder, dict) and path[-1] in holder:
        editor.remove_key(path)
        reason = "Only the host that said this item knows this field of it; it is left out."
        editor.done("drop_id" if path[-1] == "id" else "drop_key", problem, reason)
