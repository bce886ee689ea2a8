"""An API added while the program runs: what its module may define, and what it may leave out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar

import pytest
from composed import APIS, said

from lutumpy.apis import ApiRow, add_api, remove_api
from lutumpy.doctor import apply_repairs, check_messages, propose_repairs
from lutumpy.doctor.catalogue import StageRow
from lutumpy.doctor.mending import placed
from lutumpy.doctor.spelling import PartReader, ResultReader
from lutumpy.doctor.writing import (
    Call,
    Editor,
    Json,
    Piece,
    ReadContent,
    Result,
    Spelling,
    Text,
    conversion_to,
    drop_entry,
)
from lutumpy.errors import Problem
from lutumpy.rules.shape import HistoryContext, RequestShape

# An API with three types of entries: texts, calls and results.
RULES = ModuleType("added_api_rules")
REPAIRS = ModuleType("added_api_repairs")
ASK: Json = {"type": "ask", "ask": "a", "tool": "weather", "with": {"city": "Oslo"}}
TOLD: Json = {"type": "told", "told": "a", "line": "rain"}
LINE: Json = {"type": "line", "by": "user", "line": "Weather?"}


def check_history(messages: Any, context: HistoryContext) -> list[Problem]:
    """Every entry is one of the three."""
    found: list[Problem] = []
    for index, entry in enumerate(messages if isinstance(messages, list) else ()):
        if not isinstance(entry, dict) or entry.get("type") not in ("line", "ask", "told"):
            path = (index,)
            found.append(Problem("added.line", f"lines[{index}]", "what?", "refused", path=path))
    return found


def drop_wrong_lines(editor: Editor, problems: list[Problem]) -> None:
    for problem, index in placed(problems):
        drop_entry(editor, (index,), problem, "drop_empty", "This is not a line; it is left out.")


def read_ask(entry: Mapping[str, Any]) -> Piece | None:
    return Call(entry.get("ask"), entry.get("tool"), entry.get("with"))


def read_told(entry: Mapping[str, Any], read_content: ReadContent) -> Piece:
    return Result(entry.get("told"), read_content(entry.get("line")))


class AddedSpelling(Spelling):
    """The spelling of the added API."""

    calls: ClassVar[Mapping[str, PartReader]] = {"ask": read_ask}
    results: ClassVar[Mapping[str, ResultReader]] = {"told": read_told}
    entries = frozenset({"line", "ask", "told"})
    result_id_key = "told"
    takes_calls_in_messages = False

    def write_group(self, role: str, pieces: Sequence[Piece]) -> list[Json]:
        found: list[Json] = []
        for piece in pieces:
            if isinstance(piece, Call):
                ask = {"type": "ask", "ask": piece.call_id, "tool": piece.name}
                found.append({**ask, "with": piece.arguments})
            elif isinstance(piece, Result):
                found.append({"type": "told", "told": piece.call_id, "line": piece.content})
            elif isinstance(piece, Text):
                found.append({"type": "line", "by": role, "line": piece.text})
        return found


SPELLING = AddedSpelling()


@pytest.fixture
def added() -> Iterator[ModuleType]:
    """The API in the table; gives the module for its repairs, which has nothing yet."""
    RULES.__dict__.update(
        PREFIX="added",
        SHAPE=RequestShape(
            messages_key="lines",
            system_key=None,
            paths=("/lines",),
            host="api.added.example",
            position="lines[{}]",
            turn_form="list",
        ),
        check_history=check_history,
    )
    for name in ("STAGES", "ROWS", "SPELLING"):
        REPAIRS.__dict__.pop(name, None)
    sys.modules[RULES.__name__], sys.modules[REPAIRS.__name__] = RULES, REPAIRS
    row = ApiRow(
        name="added",
        title="Added",
        family="added",
        adapter=RULES.__name__,
        rules=RULES.__name__,
        reader=RULES.__name__,
        repairs=REPAIRS.__name__,
    )
    add_api(row)
    yield REPAIRS
    remove_api("added")
    del sys.modules[RULES.__name__], sys.modules[REPAIRS.__name__]


def test_without_repairs_histories_are_checked_and_nothing_is_mended(added: ModuleType) -> None:
    assert [problem.rule for problem in check_messages("added", [LINE, 5])] == ["added.line"]
    assert propose_repairs("added", [LINE, 5], thorough=True) == []
    with pytest.raises(ValueError, match="unknown host"):
        propose_repairs("added", [LINE], host="nowhere")


def test_stages_alone_mend_what_is_sure_to_be_refused(added: ModuleType) -> None:
    added.__dict__["STAGES"] = ((frozenset({"added.line"}), drop_wrong_lines),)
    for host in (None, "api.added.example", "compatible"):
        repairs = propose_repairs("added", [LINE, 5], host=host)
        assert apply_repairs([LINE, 5], repairs) == [LINE]


def test_calls_of_other_apis_are_written_in_its_spelling(added: ModuleType) -> None:
    convert = StageRow(frozenset({"added.line"}), conversion_to(SPELLING), any_certainty=True)
    added.__dict__.update(SPELLING=SPELLING, STAGES=(convert,))
    call = {"name": "weather", "arguments": '{"city":"Oslo"}'}
    histories: list[list[Any]] = [
        [
            {
                "role": "assistant",
                "tool_calls": [{"id": "a", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "a", "content": "rain"},
        ],
        [
            {"type": "function_call", "call_id": "a", **call},
            {"type": "function_call_output", "call_id": "a", "output": "rain"},
        ],
    ]
    for history in histories:
        mended = apply_repairs(history, propose_repairs("added", history))
        assert mended == [{**ASK, "with": '{"city":"Oslo"}'}, TOLD]
    use = {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Oslo"}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "rain"}
    blocks = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    assert apply_repairs(blocks, propose_repairs("added", blocks)) == [ASK, TOLD]


@pytest.mark.parametrize("api", APIS)
def test_its_calls_are_written_in_the_spelling_of_other_apis(added: ModuleType, api: str) -> None:
    added.__dict__["SPELLING"] = SPELLING
    asked: Json = {"content": said(api, "Weather?")}
    # A result of this API has the name of its call, which another repair puts there.
    kinds = {"convert_message", "set_role"}
    if api == "gemini_generate_content":
        asked, kinds = {"parts": [{"text": "Weather?"}]}, kinds | {"rename_tool"}
    history: list[Any] = [{"role": "user", **asked}, ASK, TOLD]
    repairs = propose_repairs(api, history)
    assert {repair.kind for repair in repairs} <= kinds
    mended = apply_repairs(history, repairs)
    assert check_messages(api, mended) == []
    assert len(mended) == 3
    assert "Oslo" in str(mended[1])
    assert "rain" in str(mended[2])


@pytest.mark.parametrize("api", APIS)
def test_once_it_is_removed_its_calls_are_unknown_again(added: ModuleType, api: str) -> None:
    added.__dict__["SPELLING"] = SPELLING
    remove_api("added")
    for repair in propose_repairs(api, [{"role": "user", "content": "Weather?"}, ASK, TOLD]):
        assert repair.kind not in ("convert_message", "set_role")
