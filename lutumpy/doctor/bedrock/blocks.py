"""Repairs of Converse: single blocks, in a message or in a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from lutumpy.doctor.bedrock.paths import part_path
from lutumpy.doctor.bedrock.spelling import SPELLING
from lutumpy.doctor.block_turns import Conversation
from lutumpy.doctor.conversion import mend_foreign_part
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import Mender, drop_entry, drop_key
from lutumpy.doctor.wording import NO_TEXT, Fresh, as_object, as_text
from lutumpy.errors import Problem
from lutumpy.rules.bedrock.blocks import BLOCK_KEYS, KEYS_OF, RESULT_KEYS
from lutumpy.rules.bedrock.limits import MAX_NAME, STATUSES
from lutumpy.rules.bedrock.wire import WIRE

__all__ = [
    "drop_cache_point",
    "drop_reasoning",
    "drop_sealed",
    "drop_type",
    "drop_unknown_keys",
    "fill_empty_error",
    "mend_block",
    "mend_input",
    "mend_names",
    "mend_result_content",
    "mend_result_json",
    "mend_status",
    "mend_text",
]


_MendInner: TypeAlias = "Callable[[Editor, Problem, Path, dict[str, Any]], None]"


def _under(key: str) -> Callable[[_MendInner], Mender]:
    """A decorator for a mender of what is under a key of the block of a problem."""

    def decorate(mend: _MendInner) -> Mender:
        def mend_inner(editor: Editor, problem: Problem) -> None:
            path = (*problem.path[:3], key)
            inner = editor.get(path)
            if isinstance(inner, dict):
                mend(editor, problem, path, inner)

        return mend_inner

    return decorate


def mend_block(editor: Editor, problem: Problem) -> None:
    """A block that is a bare value, that has further keys or none, or that is of another API."""
    path = part_path(problem)
    block = editor.get(path)
    known = RESULT_KEYS if len(path) == 6 else BLOCK_KEYS
    if isinstance(block, str) and block.strip():
        editor.expect(path)
        editor.set_entry(path, {"text": block})
        reason = "A bare text stands among the blocks; it becomes a text block."
        editor.done("set_content", problem, reason)
    elif not block or not isinstance(block, dict):
        reason = "This entry of the content is not a block; it is left out."
        drop_entry(editor, path, problem, "drop_empty", reason)
    elif len(problem.path) > len(path) + 1:
        return  # something inside it: only the program knows what it was to say
    else:
        _mend_keys(editor, problem, path, block, known)


def _mend_keys(
    editor: Editor, problem: Problem, path: Path, block: dict[str, Any], known: tuple[str, ...]
) -> None:
    own = [key for key in block if key in known and block[key] is not None]
    # A null is a key that isn't set: so typed models write the kinds that a block isn't of.
    is_null = all(value is None for value in block.values())
    if is_null or (len(block) == 1 and own and not block[own[0]]):
        drop_entry(editor, path, problem, "drop_empty", "The block holds nothing; it is left out.")
        return
    if "type" in block or not own:
        by_model = len(path) == 3 and editor.get((path[0], "role")) == "assistant"
        if mend_foreign_part(SPELLING, editor, problem, path, by_model=by_model):
            return
    if not own:
        return
    if len(block) == 1:
        return  # it holds what it may not: only the program knows what it was to say
    editor.expect(path)
    editor.set_entry(path, {own[0]: block[own[0]]})
    behind = (*path[:-1], int(path[-1]) + 1)
    for key in own[1:]:
        # What is there already need not be said twice, and no patch adds it.
        if editor.get(behind) != {key: block[key]}:
            editor.insert(behind, {key: block[key]})
    reason = "A block says one thing, under one key; others are left out, or blocks of their own."
    editor.done("set_content", problem, reason)


def drop_unknown_keys(editor: Editor, problem: Problem) -> None:
    """Keys that what is in a block doesn't have."""
    path = problem.path[:-1]
    known = KEYS_OF.get(str(path[-1])) if path else None
    if known is not None:
        drop_key(editor, problem, known, path)


def mend_text(editor: Editor, problem: Problem) -> None:
    """A text that says nothing, or that is none."""
    path = part_path(problem)
    block = editor.get(path)
    text = block.get("text") if isinstance(block, dict) else None
    if text is None or (isinstance(text, str) and not text.strip()):
        reason = "The text block is blank, which the API refuses; it is left out."
        drop_entry(editor, path, problem, "drop_empty", reason)
    elif not isinstance(text, str):
        editor.put((*path, "text"), as_text(text))
        reason = "The value in the text block is not a text; it is written as JSON text."
        editor.done("set_content", problem, reason)


def drop_reasoning(editor: Editor, problem: Problem) -> None:
    """Reasoning that lacks its text or its signature."""
    path = problem.path[:3]
    reason = "The model didn't write reasoning without a text or a signature; it is left out."
    drop_entry(editor, path, problem, "drop_reasoning", reason)


def drop_sealed(editor: Editor, problem: Problem) -> None:
    """Reasoning that another host has signed."""
    path = problem.path[:3]
    reason = "Only who has signed this reasoning can read it; it is left out."
    drop_entry(editor, path, problem, "drop_reasoning", reason)


def drop_cache_point(editor: Editor, problem: Problem) -> None:
    """A cache point that the API doesn't know."""
    path = problem.path[:3]
    if isinstance(editor.get(path), dict):
        reason = "The API doesn't know such a cache point; it is left out."
        drop_entry(editor, path, problem, "drop_key", reason)


# ------------------------------------------------------- calls and results


@_under("toolUse")
def mend_input(editor: Editor, problem: Problem, path: Path, use: dict[str, Any]) -> None:
    """Input of a call that is not an object."""
    editor.expect_keys(path, "toolUseId")
    editor.put((*path, "input"), as_object(use.get("input")))
    reason = (
        "The API takes only an object as input; "
        "the JSON of an object is read, and anything else is put into one."
    )
    editor.done("wrap_arguments", problem, reason)


@_under("toolUse")
def drop_type(editor: Editor, problem: Problem, path: Path, use: dict[str, Any]) -> None:
    """The type of a call, which answers have and requests may not."""
    editor.expect_keys(path, "toolUseId")
    editor.remove_key((*path, "type"))
    reason = "Answers give calls a type that the API refuses in requests; it is left out."
    editor.done("drop_key", problem, reason)


def mend_names(editor: Editor, problems: list[Problem]) -> None:
    """Names that the API refuses: the same new one at every call with such a name."""
    names = [use.get("name") for _, use in Conversation(editor, WIRE).every("toolUse")]
    fresh = Fresh([name for name in names if isinstance(name, str)], MAX_NAME)
    chosen: dict[str, str] = {}
    for problem in problems:
        path = (*problem.path[:3], "toolUse")
        use = editor.get(path)
        if not isinstance(use, dict):
            continue
        old = use.get("name")
        key = old if isinstance(old, str) else ""
        if key not in chosen:
            chosen[key] = fresh.name(old)
        editor.expect_keys(path, "toolUseId")
        editor.put((*path, "name"), chosen[key])
        reason = f"The API refuses this tool name; the name becomes {chosen[key]!r}."
        editor.done("rename_tool", problem, reason)


@_under("toolResult")
def mend_result_content(
    editor: Editor, problem: Problem, path: Path, result: dict[str, Any]
) -> None:
    """Content of a result that is not a list."""
    content = result.get("content")
    editor.expect_keys(path, "toolUseId")
    written: list[Any] = []
    if isinstance(content, str):
        written = [{"text": content}] if content.strip() else []
    elif isinstance(content, dict):
        is_block = len(content) == 1 and next(iter(content)) in RESULT_KEYS
        written = [content] if is_block or "type" in content else [{"json": content}]
    elif content is not None:
        written = [{"text": as_text(content)}]
    editor.put((*path, "content"), written)
    reason = "The content of a result must be a list of parts; it is written as one."
    editor.done("set_content", problem, reason)


def mend_result_json(editor: Editor, problem: Problem) -> None:
    """A list or a scalar where the API takes an object."""
    path = (*part_path(problem), "json")
    if isinstance(editor.get(path[:-1]), dict):
        editor.put(path, {"result": editor.get(path)})
        reason = "The API takes only an object as JSON of a result; the value is put into one."
        editor.done("set_content", problem, reason)


@_under("toolResult")
def mend_status(editor: Editor, problem: Problem, path: Path, result: dict[str, Any]) -> None:
    """A status that is none of the two."""
    status = result.get("status")
    word = status.strip().lower() if isinstance(status, str) else ""
    word = {"failed": "error", "failure": "error", "ok": "success"}.get(word, word)
    editor.expect_keys(path, "toolUseId")
    if word in STATUSES:
        editor.put((*path, "status"), word)
    else:
        editor.remove_key((*path, "status"))
    reason = "The status of a result is 'success' or 'error'; it is read as one, or left out."
    editor.done("set_field", problem, reason)


@_under("toolResult")
def fill_empty_error(editor: Editor, problem: Problem, path: Path, result: dict[str, Any]) -> None:
    """An error without a text."""
    editor.expect_keys(path, "toolUseId", "status")
    editor.put((*path, "content"), [{"text": NO_TEXT}])
    reason = "A result that is an error must have some text; it gets one."
    editor.done("set_content", problem, reason)
