"""The table of the SDKs' words, and what finds a word that is not in it, or is treated otherwise.

Without an SDK: whether the table fits those that are installed is what `nox -s words` tells.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sdk_words.check import APIS, Found, check_api, table_faults
from sdk_words.words import Row, Word, read_table

API = "bedrock_converse"
MEDIA = {"format": "mp4", "source": {"bytes": "eHg="}}
USE = {"toolUseId": "x", "name": "x", "input": {}}
WORDS = [
    Word("option", "requestMetadata", "ConverseRequest", {}),
    Word("block", "text", "ContentBlock", "x"),
    Word("block", "toolUse", "ContentBlock", USE),
    Word("block", "video", "ContentBlock", MEDIA),
    Word("field", "metrics", "ConverseResponse", {"latencyMs": 1}),
    Word("field", "stopReason", "ConverseResponse", "end_turn"),
    Word("field", "trace", "ConverseResponse", {"x": 1}),
    Word("tool", "systemTool", "Tool", {"name": "x"}),
    Word("event", "metadata", "ConverseStreamOutput", {"usage": {"inputTokens": 1}}),
    Word("finish", "max_tokens", "StopReason"),
    Word("error", "ThrottlingException", "Converse"),
]
FOUND: Found = {(word.kind, word.word): word for word in WORDS}
ROWS = [row for row in read_table(API) if (row.kind, row.word) in FOUND]


@pytest.fixture(autouse=True)
def no_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sdk_words.check._module_of", lambda api: pytest)
    monkeypatch.setattr(pytest, "version", "sdk 1.0", raising=False)


@pytest.mark.parametrize("api", APIS)
def test_the_table_is_in_order(api: str) -> None:
    assert table_faults(read_table(api)) == []


def test_these_words_are_treated_as_the_table_says() -> None:
    assert len(ROWS) == len(WORDS)
    assert check_api(API, ROWS, FOUND) == []


def test_a_word_without_a_row_is_open() -> None:
    for missing in ROWS:
        (fault,) = check_api(API, [row for row in ROWS if row is not missing], FOUND)
        assert fault.startswith(f"{missing.kind} {missing.word}: has no row; it stands in ")
    tomorrow = Word("finish", "bored", "StopReason")
    (fault,) = check_api(API, ROWS, {**FOUND, ("finish", "bored"): tomorrow})
    assert fault == "finish bored: has no row; it stands in StopReason"


def test_a_row_without_a_word_is_open_unless_it_says_when_the_word_went() -> None:
    for index, row in enumerate(ROWS):
        fewer = {key: word for key, word in FOUND.items() if key != (row.kind, row.word)}
        (fault,) = check_api(API, ROWS, fewer)
        assert fault == f"{row.kind} {row.word}: no such word in sdk 1.0"
        marked = [*ROWS[:index], replace(row, gone="1.0"), *ROWS[index + 1 :]]
        assert check_api(API, marked, fewer) == []


@pytest.mark.parametrize(
    ("kind", "word", "treatment", "fault"),
    [
        ("finish", "max_tokens", "ignored", "'length'"),
        ("block", "video", "handled", "nothing of it is read"),
        ("block", "text", "ignored", "goes back"),
        ("field", "trace", "ignored", "depends on it"),
        ("field", "metrics", "kept", "same without it"),
        ("field", "stopReason", "kept", "more than to keep it"),
        ("event", "metadata", "ignored", "has an effect"),
        ("option", "requestMetadata", "handled", "never writes it"),
        ("option", "requestMetadata", "refused", "no error"),
        ("tool", "systemTool", "handled", "never writes it"),
        ("error", "ThrottlingException", "handled", "retryable is True"),
    ],
)
def test_a_row_that_says_what_is_not_so_is_open(
    kind: str, word: str, treatment: str, fault: str
) -> None:
    row = Row(kind, word, treatment, "tried")
    faults = check_api(API, [row], {(kind, word): FOUND[kind, word]})
    assert len(faults) == 1
    assert fault in faults[0]


def test_a_word_that_its_row_calls_a_call_has_to_become_one_C8() -> None:
    video = {("block", "video"): FOUND["block", "video"]}
    (fault,) = check_api(API, [Row("block", "video", "kept", "a call")], video)
    assert "no call of it" in fault
    use: Any = {("block", "toolUse"): FOUND["block", "toolUse"]}
    assert check_api(API, [Row("block", "toolUse", "handled", "a call")], use) == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (Row("finish", "x", "ignored"), "without a reason"),
        (Row("option", "x", "refused"), "without a reason"),
        (Row("finish", "x", "lost", "so"), "no treatment"),
        (Row("finnish", "x", "kept"), "no such kind"),
    ],
)
def test_a_row_has_a_kind_a_treatment_and_a_reason(row: Row, fault: str) -> None:
    (found_fault,) = table_faults([row])
    assert fault in found_fault


def test_rows_stand_once_and_in_order() -> None:
    assert "has 2 rows" in " ".join(table_faults([Row("tool", "x", "kept")] * 2))
    assert "not sorted" in " ".join(table_faults(ROWS[::-1]))
