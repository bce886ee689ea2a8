"""Where the calls and results of Chat Completions are: what repairs of ids and pairing share."""

from __future__ import annotations

from typing import Any

from lutumpy.doctor.editor import Editor

__all__ = ["calls_of", "end_of_results", "is_result", "results_after"]


def is_result(message: Any) -> bool:
    """Whether a message is a result."""
    return isinstance(message, dict) and message.get("role") == "tool"


def end_of_results(editor: Editor, index: int) -> int:
    """The index of the first message from an index on that is not a result."""
    while is_result(editor.get((index,))):
        index += 1
    return index


def results_after(editor: Editor, index: int) -> list[int]:
    """The indices of the results right after a message."""
    return list(range(index + 1, end_of_results(editor, index + 1)))


def calls_of(editor: Editor, index: int) -> list[Any]:
    """The entries of an assistant message's `tool_calls`; empty for any other message."""
    message = editor.get((index,))
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return []
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else []
