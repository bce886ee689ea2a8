"""Repairs of Messages: marks for the prompt cache (`cache_control`)."""

from __future__ import annotations

from collections.abc import Iterator

from lutumpy.doctor.block_turns import Conversation
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import message_index
from lutumpy.errors import Problem
from lutumpy.rules.anthropic.limits import MAX_BREAKPOINTS
from lutumpy.rules.anthropic.wire import WIRE

__all__ = ["mend_cache_marks"]


def mend_cache_marks(editor: Editor, problems: list[Problem]) -> None:
    """Drop marks that the API doesn't know, and the first ones of too many.

    The last marks are the useful ones: the cache is looked up from the end of the prompt.
    """
    for problem in problems:
        if message_index(problem) is not None and editor.get(problem.path) is not None:
            _drop_wrong_mark(editor, problem)
    counted = [problem for problem in problems if not problem.path]
    if not counted:
        return
    marked = [path for path in _find_blocks(editor) if _is_marked(editor, path)]
    outside = 0
    for block in editor.outside:
        if isinstance(block, dict) and block.get("cache_control") is not None:
            outside += 1
    too_many = max(0, len(marked) + outside - MAX_BREAKPOINTS)
    reason = f"A request takes {MAX_BREAKPOINTS} of these marks; the first ones are left out."
    for path in marked[:too_many]:
        editor.remove_key((*path, "cache_control"))
        editor.done("drop_key", counted[0], reason)


def _drop_wrong_mark(editor: Editor, problem: Problem) -> None:
    editor.remove_key(problem.path)
    reason = "The API doesn't know such a mark for the cache; it is left out."
    if problem.path[-1] == "ttl":
        reason = (
            "A mark can't last so long, or longer than an earlier one; it gets the usual lifetime."
        )
    editor.done("drop_key", problem, reason)


def _find_blocks(editor: Editor) -> Iterator[Path]:
    """The paths of all blocks, of those in results too."""
    for turn in Conversation(editor, WIRE).turns:
        for path, block in turn.blocks:
            if len(path) != 3:
                continue  # a content that is a text can't be marked
            yield path
            inner = block.get("content")
            for number, part in enumerate(inner if isinstance(inner, list) else ()):
                if isinstance(part, dict):
                    yield (*path, "content", number)


def _is_marked(editor: Editor, path: Path) -> bool:
    return editor.get((*path, "cache_control")) is not None
