"""What the repairs of all three wires share: dropping what is empty, replacing characters, trying one mender after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from lutumpy.core import json_values
from lutumpy.doctor.editor import IDENTITY, Editor, Path
from lutumpy.doctor.repair import RepairKind
from lutumpy.errors import Problem
from lutumpy.rules.encoding import encodable
from lutumpy.rules.nesting import MAX_NESTING, json_text

Mender: TypeAlias = "Callable[[Editor, Problem], None]"
"""Mends one problem, or leaves the editor as it is."""

Stage: TypeAlias = "Callable[[Editor, list[Problem]], None]"
"""Mends what it can of the problems of a pass."""


def each(menders: Mapping[str, Mender]) -> Stage:
    """A stage that mends problem by problem."""

    def stage(editor: Editor, problems: list[Problem]) -> None:
        for problem in problems:
            mender = menders.get(problem.rule)
            if (
                mender is not None
                and message_index(problem) is not None
                and not editor.gone(problem.path)
            ):
                mender(editor, problem)

    return stage


def drop_entry(editor: Editor, path: Path, problem: Problem, kind: RepairKind, reason: str) -> None:
    """Take an entry out of its list, unless nothing would be left of the transcript."""
    if len(path) == 1 and len(editor.document) == 1:
        return
    expect_entry(editor, path)
    editor.remove(path)
    editor.done(kind, problem, reason)


def expect_entry(editor: Editor, path: Path) -> None:
    """The edit is for the very message, item or block at a path."""
    if isinstance(editor.get(path), dict):
        editor.expect_keys(path, *IDENTITY)
    else:
        editor.expect(path)


def replace_characters(editor: Editor, problem: Problem) -> None:
    """What no JSON text can hold, replaced by what can."""
    value = editor.get(problem.path)
    if encodable(value):
        return
    if len(problem.path) == 1 or isinstance(problem.path[-1], int):
        editor.set_entry(problem.path, json_values.clean(value))
    else:
        editor.put(problem.path, json_values.clean(value))
    editor.done(
        "replace_characters",
        problem,
        "A text with half of a surrogate pair, or a value that JSON doesn't know, breaks every request that holds it; "
        "it is replaced by U+FFFD, or by its text.",
    )


def write_nested(editor: Editor, problem: Problem) -> None:
    """What is nested deeper than readers follow, as its JSON text: nothing is lost, and it is one text."""
    editor.set_entry(problem.path, json_text(editor.get(problem.path)))
    editor.done(
        "set_content",
        problem,
        f"More than {MAX_NESTING} levels are more than JSON readers follow; what is below them becomes its JSON text.",
    )


def drop_key(editor: Editor, problem: Problem, known: frozenset[str], path: Path) -> None:
    """Take a key out that the API doesn't know; its position may name the object only."""
    value = editor.get(path)
    if not isinstance(value, dict):
        return
    extra = [key for key in value if key not in known]
    wanted = problem.path[-1] if len(problem.path) > len(path) else None
    for key in extra:
        if wanted is None or key == wanted:
            editor.remove_key((*path, key))
    if any(key not in value for key in extra):
        editor.done(
            "drop_key", problem, "The API refuses keys that it doesn't know; this one is left out."
        )


def message_index(problem: Problem) -> int | None:
    """The index of the message that a problem is in."""
    return problem.path[0] if problem.path and isinstance(problem.path[0], int) else None


def placed(problems: Iterable[Problem]) -> list[tuple[Problem, int]]:
    """The problems that are in a message, each with the index of it."""
    return [
        (problem, index) for problem in problems if (index := message_index(problem)) is not None
    ]


def told_apart(
    problems: Iterable[Problem], open_call: str
) -> tuple[list[Problem], dict[int, Problem]]:
    """The problems of calls that wait, by the rule's id; and those of results that stand loose, by the index of their message."""
    opened: list[Problem] = []
    loose: dict[int, Problem] = {}
    for problem, index in placed(problems):
        if problem.rule == open_call:
            opened.append(problem)
        else:
            loose[index] = problem
    return opened, loose


def drop_left_over(
    editor: Editor, loose: Mapping[int, Problem], twice: str, article: str, word: str
) -> None:
    """Take out what no call has claimed: second results, by the id of their rule, and those of calls that aren't there."""
    for index, problem in loose.items():
        if not editor.gone((index,)):
            reason = (
                f"The call has {article} {word} already; this second one is left out."
                if problem.rule == twice
                else f"The call that this {word} answers isn't there; the {word} is left out."
            )
            drop_entry(editor, (index,), problem, "drop_result", reason)


def by_id(editor: Editor, paths: Sequence[Path], key: str) -> dict[str, list[Path]]:
    """Paths by the id that stands under a key there."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        value: Any = editor.get(path)
        if isinstance(value, dict) and isinstance(value.get(key), str):
            found.setdefault(value[key], []).append(path)
    return found


def nearest(candidates: list[Path] | None, place: Path) -> Path | None:
    """The first candidate behind a place, else the last before it; taken out of the list."""
    if not candidates:
        return None
    number = next(
        (k for k, path in enumerate(candidates) if _order(path) > _order(place)),
        len(candidates) - 1,
    )
    return candidates.pop(number)


def _order(path: Path) -> tuple[int, ...]:
    return tuple([step for step in path if isinstance(step, int)])
