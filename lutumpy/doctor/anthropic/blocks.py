"""Repairs of Messages: single blocks, in a message or in a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lutumpy.core.tool_names import UNNAMED
from lutumpy.doctor.anthropic.paths import block_path
from lutumpy.doctor.anthropic.spelling import SPELLING
from lutumpy.doctor.block_turns import Conversation
from lutumpy.doctor.conversion import mend_foreign_part
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import Mender, drop_entry, drop_key
from lutumpy.doctor.wording import NO_TEXT, as_object, as_text
from lutumpy.errors import Problem
from lutumpy.rules.anthropic.blocks import CLOSED_BLOCKS, RESULT_TYPES
from lutumpy.rules.anthropic.limits import MAX_HISTORY_NAME
from lutumpy.rules.anthropic.prefix import THINKING
from lutumpy.rules.anthropic.wire import WIRE

__all__ = [
    "drop_private",
    "drop_provider_block",
    "drop_thinking_block",
    "drop_unknown_keys",
    "fill_empty_error",
    "mend_block",
    "mend_input",
    "mend_is_error",
    "mend_name",
    "mend_result_content",
    "mend_text",
    "move_out_of_error",
    "set_toolset_name",
]

_OTHER_TEXTS = (None, "input_text", "output_text")


def _for_block(mend: Callable[[Editor, Problem, Path, dict[str, Any]], None]) -> Mender:
    """A mender that gets the block of a problem; it isn't called when that is not an object."""

    def mend_block_of(editor: Editor, problem: Problem) -> None:
        path = block_path(problem)
        block = editor.get(path)
        if isinstance(block, dict):
            mend(editor, problem, path, block)

    return mend_block_of


def mend_block(editor: Editor, problem: Problem) -> None:
    """A block that is a bare value, a text of another type, or of another API."""
    path = block_path(problem)
    block = editor.get(path)
    if isinstance(block, str) and block:
        editor.expect(path)
        editor.set_entry(path, {"type": "text", "text": block})
        reason = "A bare text stands among the blocks; it becomes a text block."
        editor.done("set_content", problem, reason)
    elif not isinstance(block, dict):
        reason = "This entry of the content is not a block; it is left out."
        drop_entry(editor, path, problem, "drop_empty", reason)
    elif isinstance(block.get("text"), str) and block.get("type") in _OTHER_TEXTS:
        editor.expect((*path, "text"))
        editor.put((*path, "type"), "text")
        reason = "This text needs the type 'text' in this API; the block gets it."
        editor.done("set_content", problem, reason)
    else:
        by_model = len(path) == 3 and editor.get((path[0], "role")) == "assistant"
        mend_foreign_part(SPELLING, editor, problem, path, by_model=by_model)


@_for_block
def drop_unknown_keys(editor: Editor, problem: Problem, path: Path, block: dict[str, Any]) -> None:
    """Keys that a block of this type doesn't have."""
    known = CLOSED_BLOCKS.get(str(block.get("type")))
    if known is not None:
        drop_key(editor, problem, known, path)


@_for_block
def mend_text(editor: Editor, problem: Problem, path: Path, block: dict[str, Any]) -> None:
    """A text block without a text."""
    text = block.get("text")
    if text is None or text == "":
        reason = "The text block is empty, which the API refuses; it is left out."
        drop_entry(editor, path, problem, "drop_empty", reason)
    elif not isinstance(text, str):
        editor.put((*path, "text"), as_text(text))
        reason = "The value in the text block is not a text; it is written as JSON text."
        editor.done("set_content", problem, reason)


def drop_private(editor: Editor, problem: Problem) -> None:
    """A block or a field that one host alone can read."""
    path = problem.path
    if path[-1] == "citations":
        if isinstance(editor.get(path[:-1]), dict):
            editor.remove_key(path)
            reason = "Only the host that found these citations can read them; they are left out."
            editor.done("drop_key", problem, reason)
        return
    block = editor.get(path)
    if not isinstance(block, dict):
        return
    if "tool_use_id" in block:
        reason = "Only the host that ran this tool can read its result; it is left out."
        drop_entry(editor, path, problem, "drop_result", reason)
    elif block.get("type") in THINKING:
        reason = "Only who has signed this reasoning can read it; it is left out."
        drop_entry(editor, path, problem, "drop_reasoning", reason)
    else:
        reason = "Only the host that ran this tool can read the call; it is left out."
        drop_entry(editor, path, problem, "drop_call", reason)


def drop_thinking_block(editor: Editor, problem: Problem) -> None:
    """Reasoning that lacks its text, its signature or its data."""
    reason = "This API didn't write reasoning without a text or a signature; it is left out."
    drop_entry(editor, block_path(problem), problem, "drop_reasoning", reason)


# ------------------------------------------------------- calls and results


@_for_block
def mend_input(editor: Editor, problem: Problem, path: Path, block: dict[str, Any]) -> None:
    """Input of a call that is not an object."""
    editor.expect_keys(path, "id")
    editor.put((*path, "input"), as_object(block.get("input")))
    reason = (
        "The API takes only an object as input; "
        "the JSON of an object is read, and anything else is put into one."
    )
    editor.done("wrap_arguments", problem, reason)


@_for_block
def mend_name(editor: Editor, problem: Problem, path: Path, block: dict[str, Any]) -> None:
    """A tool's name that is missing or too long."""
    name = block.get("name")
    new = name[:MAX_HISTORY_NAME] if isinstance(name, str) and name else UNNAMED
    editor.expect_keys(path, "id")
    editor.put((*path, "name"), new)
    reason = f"The API refuses this tool name; the name becomes {new!r}."
    editor.done("rename_tool", problem, reason)


@_for_block
def mend_is_error(editor: Editor, problem: Problem, path: Path, block: dict[str, Any]) -> None:
    """`is_error` that is neither true nor false."""
    value = block.get("is_error")
    editor.expect_keys(path, "tool_use_id")
    if value is None:
        editor.remove_key((*path, "is_error"))
    elif isinstance(value, str):
        editor.put((*path, "is_error"), value.lower() == "true")
    else:
        editor.put((*path, "is_error"), bool(value))
    reason = "`is_error` must be true or false; this value is read as one of them."
    editor.done("set_field", problem, reason)


@_for_block
def mend_result_content(
    editor: Editor, problem: Problem, path: Path, block: dict[str, Any]
) -> None:
    """Content of a result that is neither a text nor a list."""
    content = block.get("content")
    editor.expect_keys(path, "tool_use_id")
    if content is None:
        editor.remove_key((*path, "content"))
    elif isinstance(content, dict) and content.get("type") in RESULT_TYPES:
        editor.put((*path, "content"), [content])
    else:
        editor.put((*path, "content"), as_text(content))
    reason = "The content of a result must be a text or a list of blocks; it is written as one."
    editor.done("set_content", problem, reason)


def fill_empty_error(editor: Editor, problem: Problem) -> None:
    """An error without a text."""
    path = problem.path[:3]
    editor.expect_keys(path, "tool_use_id", "is_error")
    editor.put((*path, "content"), NO_TEXT)
    reason = "A result that is an error must have some text; it gets one."
    editor.done("set_content", problem, reason)


def move_out_of_error(editor: Editor, problem: Problem) -> None:
    """What an error shows besides text goes behind the results of its message."""
    path = problem.path[:3]
    parts = editor.get((*path, "content"))
    if not isinstance(parts, list):
        return
    others: list[int] = []
    for number, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in RESULT_TYPES and kind != "text":
            others.append(number)
    if not others:
        return
    editor.expect_keys(path, "tool_use_id", "is_error")
    if len(others) == len(parts):
        note = {"type": "text", "text": f"{NO_TEXT} See below the results."}
        editor.insert((*path, "content", 0), note)
    for number in others:
        editor.move((*path, "content", number), editor.end(path[:2]))
    reason = "A result that is an error takes text only; the rest goes behind the results."
    editor.done("move_content", problem, reason)


def set_toolset_name(editor: Editor, problem: Problem) -> None:
    """The toolset that the call of a result named."""
    path = problem.path[:3]
    name = _find_toolset_name(editor, problem)
    if name is not None:
        editor.expect_keys(path, "tool_use_id")
        editor.put((*path, "toolset_name"), name)
        reason = "A result must name the toolset that its call named; it does now."
        editor.done("set_field", problem, reason)


def _find_toolset_name(editor: Editor, problem: Problem) -> str | None:
    """The toolset in the call, which is in the last assistant turn before the result."""
    for turn in reversed(Conversation(editor, WIRE).turns):
        if turn.role != "assistant" or turn.first >= int(problem.path[0]):
            continue
        for _, block in turn.of("tool_use"):
            if block.get("id") in problem.call_ids:
                name = block.get("toolset_name")
                return name if isinstance(name, str) else None
        return None
    return None


def drop_provider_block(editor: Editor, problem: Problem) -> None:
    """A call of the provider's own tool without its result, or a result without its call."""
    path = problem.path[:3]
    block = editor.get(path)
    kind = block.get("type") if isinstance(block, dict) else None
    if isinstance(kind, str) and kind.endswith("_tool_result"):
        reason = "The provider's own call that this result answers is missing; it is left out."
        drop_entry(editor, path, problem, "drop_result", reason)
    else:
        reason = (
            "The provider's own tool never answered this call, "
            "and the conversation has gone on; the call is left out."
        )
        drop_entry(editor, path, problem, "drop_call", reason)
