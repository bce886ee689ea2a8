"""What the repairs of all APIs share: dropping entries, replacing characters, matching results."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from lutumpy.doctor.editor import IDENTITY, Editor, Path
from lutumpy.doctor.repair import RepairKind
from lutumpy.errors import Problem
from lutumpy.plain import json_values
from lutumpy.plain.pointer import indices_in
from lutumpy.rules.encoding import encodable
from lutumpy.rules.nesting import MAX_NESTING, json_text

Mender: TypeAlias = "Callable[[Editor, Problem], None]"
"""Mends one problem, or leaves the editor as it is."""

Stage: TypeAlias = "Callable[[Editor, list[Problem]], None]"
"""Mends what it can of the problems of a pass."""


def mend_each(menders: Mapping[str, Mender]) -> Stage:
    """A stage that mends one problem after another, by the rule that each breaks."""

    def mend_stage(editor: Editor, problems: list[Problem]) -> None:
        for problem in problems:
            mender = menders.get(problem.rule)
            if mender is None or message_index(problem) is None or editor.gone(problem.path):
                continue
            mender(editor, problem)

    return mend_stage


def drop_entry(editor: Editor, path: Path, problem: Problem, kind: RepairKind, reason: str) -> None:
    """Take an entry out of its list, unless nothing would be left of the history."""
    # An empty list of messages is refused as well, and shows less of what was meant.
    if not editor.leaves_some(path):
        return
    expect_entry(editor, path)
    editor.remove(path)
    editor.done(kind, problem, reason)


def expect_entry(editor: Editor, path: Path) -> None:
    """The repair fits only if this message, item or block is there."""
    entry = editor.get(path)
    if isinstance(entry, dict) and not entry.keys().isdisjoint(IDENTITY):
        editor.expect_keys(path, *IDENTITY)
    else:
        editor.expect(path)


_BASE64_KEYS = frozenset(
    "bytes data images redactedContent thoughtSignature thought_signature".split()
)
"""Where the APIs have base64, and programs bytes that they hand to an SDK."""


def replace_characters(editor: Editor, problem: Problem) -> None:
    """Replace what JSON can't hold by what it can."""
    value = editor.get(problem.path)
    if encodable(value):
        return
    reason = (
        "Half a surrogate pair, or a value that JSON doesn't know, breaks every request with it; "
        "it is replaced by U+FFFD, or by its text."
    )
    names = [key for key in problem.path if isinstance(key, str)]
    if isinstance(value, bytes) and names and names[-1] in _BASE64_KEYS:
        written: Any = b64encode(value).decode("ascii")
        reason = "JSON knows no bytes, and breaks every request with them; they become base64."
    else:
        written = json_values.clean(value)
    # The patch of an entry can't test what is there: JSON can't hold it.
    if len(problem.path) == 1 or isinstance(problem.path[-1], int):
        editor.set_entry(problem.path, written)
    else:
        editor.put(problem.path, written)
    editor.done("replace_characters", problem, reason)


def write_nested(editor: Editor, problem: Problem) -> None:
    """Write what is nested deeper than readers follow as its JSON text, so that nothing is lost."""
    editor.set_entry(problem.path, json_text(editor.get(problem.path)))
    reason = (
        f"Many JSON readers don't follow more than {MAX_NESTING} levels; "
        "what is below them becomes its JSON text."
    )
    editor.done("set_content", problem, reason)


def drop_key(editor: Editor, problem: Problem, known: frozenset[str], path: Path) -> None:
    """Take out keys that the API doesn't know.

    Args:
        editor: The messages.
        problem: What was found. Its path may end at the object; then all unknown keys go.
        known: The keys that the object may have.
        path: The object.
    """
    value = editor.get(path)
    if not isinstance(value, dict):
        return
    extra = [key for key in value if key not in known]
    if len(problem.path) > len(path):
        extra = [key for key in extra if key == problem.path[-1]]
    for key in extra:
        editor.remove_key((*path, key))
    if extra:
        reason = "The API refuses keys that it doesn't know; this one is left out."
        editor.done("drop_key", problem, reason)


def message_index(problem: Problem) -> int | None:
    """The index of the message that a problem is in; `None` for one of the whole list."""
    return problem.path[0] if problem.path and isinstance(problem.path[0], int) else None


def placed(problems: Iterable[Problem]) -> list[tuple[Problem, int]]:
    """The problems that are in a message, each with the message's index."""
    found: list[tuple[Problem, int]] = []
    for problem in problems:
        index = message_index(problem)
        if index is not None:
            found.append((problem, index))
    return found


def separate_open_calls(
    problems: Iterable[Problem], open_call_rule: str
) -> tuple[list[Problem], dict[int, Problem]]:
    """The two sides of broken pairing.

    Args:
        problems: Problems of calls and of results.
        open_call_rule: The rule that a call without a result breaks.

    Returns:
        The problems of open calls; and those of results that answer nothing, by the index of the
        message that each is in.
    """
    open_calls: list[Problem] = []
    loose: dict[int, Problem] = {}
    for problem, index in placed(problems):
        if problem.rule == open_call_rule:
            open_calls.append(problem)
        else:
            loose[index] = problem
    return open_calls, loose


def drop_left_over(
    editor: Editor, loose: Mapping[int, Problem], second_rule: str, article: str, word: str
) -> None:
    """Leave out the results that no call has taken.

    Args:
        editor: The messages.
        loose: The problem of each, by the index of its message.
        second_rule: The rule that a second result of a call breaks.
        article: The article of the word.
        word: What the API calls a result.
    """
    for index, problem in loose.items():
        if editor.gone((index,)):
            continue
        reason = f"The call that this {word} answers is missing; the {word} is left out."
        if problem.rule == second_rule:
            reason = f"The call has {article} {word} already; this second one is left out."
        drop_entry(editor, (index,), problem, "drop_result", reason)


def by_id(editor: Editor, paths: Sequence[Path], key: str) -> dict[str, list[Path]]:
    """Paths of objects, by the id that each has under a key; those without one are left out."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        value: Any = editor.get(path)
        if isinstance(value, dict) and isinstance(value.get(key), str):
            found.setdefault(value[key], []).append(path)
    return found


def nearest(candidates: list[Path] | None, place: Path) -> Path | None:
    """Take the first candidate behind a place out of the list, or else the last before it."""
    if not candidates:
        return None
    number = len(candidates) - 1
    for other, path in enumerate(candidates):
        if indices_in(path) > indices_in(place):
            number = other
            break
    return candidates.pop(number)
