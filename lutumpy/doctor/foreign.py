"""Histories that mix APIs: messages, items and parts in another API's spelling become this one's, pairing and all.

It is the usual accident when a provider is switched. Recognised are calls and results wherever another API puts them:
items of Responses among messages, `tool_calls` and messages of the role `tool`, blocks of Messages, old functions of Chat
Completions; and parts of content (images, documents, reasoning) of another API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lutumpy.apis import Api
from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import drop_entry, placed
from lutumpy.doctor.repair import RepairKind
from lutumpy.doctor.spellings import (
    ANY_PARTS,
    CALLS,
    ITEMS,
    PARTS,
    READABLE,
    RESULTS,
    TEXTS,
    Answered,
    Called,
    Opaque,
    Piece,
    Thought,
    legacy_id,
    read_entry,
    read_part,
    role_of,
    type_of,
)
from lutumpy.doctor.written import write_entry, write_part
from lutumpy.errors import Problem

_BLAMED = frozenset(
    "chat.role chat.parts chat.content chat.tool_calls chat.tool_call_id "
    "responses.role responses.parts responses.item_keys responses.item_type responses.content responses.input "
    "responses.call_id anthropic.role anthropic.messages anthropic.block anthropic.content".split()
)
"""The rules that a message in another API's spelling breaks."""

_OLD_ROLES = ("tool", "function")


def convert_messages(api: Api, editor: Editor, problems: list[Problem]) -> None:
    """Write the messages with calls or results of another API as this one does.

    It doesn't ask how sure the refusal is: no host of this API could read what the message says.
    """
    blamed: dict[int, Problem] = {}
    for problem, index in placed(problems):
        if (
            problem.rule in _BLAMED
            and index not in blamed
            and holds_foreign_calls(api, editor.get((index,)))
        ):
            blamed[index] = problem
    if blamed:
        last_calls = _old_calls(editor)
        for run in _runs(api, editor, sorted(blamed)):
            _convert(api, editor, blamed[run[0]], run, last_calls)


def holds_foreign_calls(api: Api, entry: Any) -> bool:
    """Whether a message or an item says something about calls in another API's spelling."""
    if not isinstance(entry, Mapping):
        return False
    kind, role = entry.get("type"), role_of(entry)
    if role is None:
        if not isinstance(kind, str):
            return False
        if api == "openai_responses" and kind in RESULTS and kind != "tool_result":
            return "call_id" not in entry and _has_other_id(entry)
        return kind in ("tool_use", "tool_result") or (api != "openai_responses" and kind in ITEMS)
    kinds = _kinds(entry.get("content"))
    own = {"tool_use", "tool_result"} if api == "anthropic_messages" else set[str]()
    if kinds & (CALLS | RESULTS) - own:
        return True
    calls = entry.get("tool_calls")
    if api != "openai_chat":
        return (
            role in _OLD_ROLES
            or _holds_calls(calls)
            or isinstance(entry.get("function_call"), Mapping)
        )
    if role == "tool" and not isinstance(entry.get("tool_call_id"), str):
        return _has_other_id(entry)
    return role == "assistant" and bool(_kinds(calls) & {*CALLS, "tool_call"})


def _holds_calls(calls: Any) -> bool:
    """Whether the value of `tool_calls` holds anything that can be read as a call: it may be any JSON."""
    return isinstance(calls, list) and any(isinstance(call, Mapping) and call for call in calls)


def _has_other_id(entry: Mapping[str, Any]) -> bool:
    return any(
        isinstance(entry.get(key), str) for key in ("tool_call_id", "tool_use_id", "call_id")
    )


def _kinds(content: Any) -> set[str]:
    parts = content if isinstance(content, list) else ()
    return {kind for part in parts if (kind := type_of(part))}


def _old_calls(editor: Editor) -> dict[int, dict[str, str]]:
    """For each message of the role `function`: the name that it has, and the id that the call before it gets."""
    last: dict[str, str] = {}
    found: dict[int, dict[str, str]] = {}
    for index, entry in enumerate(editor.document):
        if not isinstance(entry, Mapping):
            continue
        function = entry.get("function_call")
        if isinstance(function, Mapping):
            last[str(function.get("name"))] = legacy_id(function, index)
        elif entry.get("role") == "function" and (name := str(entry.get("name"))) in last:
            found[index] = {name: last[name]}
    return found


def _runs(api: Api, editor: Editor, indices: list[int]) -> Iterator[list[int]]:
    """Neighbours that another API writes apart and this one as one message: parallel calls, and on Messages their results."""
    run: list[int] = []
    for index in indices:
        side = _side(api, editor.get((index,)))
        if run and (
            index != run[-1] + 1 or side is None or side != _side(api, editor.get((run[-1],)))
        ):
            yield run
            run = []
        run.append(index)
    if run:
        yield run


def _side(api: Api, entry: Mapping[str, Any]) -> str | None:
    role = role_of(entry)
    if role in _OLD_ROLES or (role is None and type_of(entry) in RESULTS):
        return "results" if api == "anthropic_messages" else None
    return "model" if role is None and api != "openai_responses" else None


def _convert(
    api: Api,
    editor: Editor,
    problem: Problem,
    run: list[int],
    old_calls: Mapping[int, Mapping[str, str]],
) -> None:
    pieces: list[Piece] = []
    role = "assistant"
    for index in run:
        role, read = read_entry(api, editor.get((index,)), index, old_calls.get(index, {}))
        pieces += read
    entries = write_entry(api, role, pieces)
    if not entries:
        for index in run:
            reason = "Only the API that wrote it can read this, and it is none of this API's; it is left out."
            drop_entry(editor, (index,), problem, "drop_reasoning", reason)
        return
    for index in run:
        editor.expect((index,))
    editor.set_entry((run[0],), entries[0])
    for entry in entries[1:]:
        editor.insert((run[0] + 1,), entry)
    for index in run[1:]:
        editor.remove((index,))
    reason = (
        "Calls or results stand here in another API's spelling; the same is written in this one's."
    )
    if any(isinstance(piece, Thought) for piece in pieces):
        reason += " The reasoning beside them is left out: only the API that wrote it can read it."
    editor.done(_kind(api, editor, run, entries), problem, reason, *_about(pieces))


def _kind(api: Api, editor: Editor, run: list[int], entries: list[dict[str, Any]]) -> RepairKind:
    alone = len(run) == len(entries) == 1
    return (
        "set_role"
        if alone and api == "openai_responses" and "output" in entries[0]
        else "convert_message"
    )


def _about(pieces: list[Piece]) -> tuple[list[str], list[str]]:
    """The ids of the calls and results, and the names of the tools."""
    ids = [piece.call_id for piece in pieces if isinstance(piece, (Called, Answered))]
    names = [piece.name for piece in pieces if isinstance(piece, Called)]
    return (
        list(dict.fromkeys([value for value in ids if isinstance(value, str)])),
        list(dict.fromkeys([value for value in names if isinstance(value, str)])),
    )


# ------------------------------------------------------------------ parts


def mend_foreign_part(
    api: Api, editor: Editor, problem: Problem, path: Path, *, assistant: bool
) -> bool:
    """A part of another API in this one's spelling, in its place; whether it was one.

    An image or a file keeps what it shows, reasoning goes, and what only its own API has becomes its JSON text.
    """
    part = editor.get(path)
    kind = type_of(part)
    if kind not in ANY_PARTS or kind in PARTS[api] or kind in TEXTS:
        return False
    piece = read_part(api, part)
    if isinstance(piece, Thought):
        reason = (
            "Reasoning of another API stands here, which only that one can read; it is left out."
        )
        drop_entry(editor, path, problem, "drop_reasoning", reason)
        return True
    written = write_part(api, piece, assistant=assistant)
    if written is None or (isinstance(piece, Opaque) and kind in READABLE):
        return False  # one that lacks what it should show is left
    editor.expect(path)
    editor.set_entry(path, written)
    reason = f"A part of another API stands here; it becomes one of type {written['type']!r}, with this API."
    editor.done("set_content", problem, reason)
    return True
