"""`lutumpy repair`: it shows before it writes, writes whole files or none, and leaves what was
valid as it stood.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from cli_toolkit import BROKEN, FIXTURES, WHOLE, Run, Write, calls, user


def test_without_apply_nothing_is_written(run: Run, write: Write, tmp_path: Path) -> None:
    file = write("a.json", BROKEN)
    before = Path(file).read_bytes()
    ended = run("repair", file)
    assert ended.code == 1
    assert "close_call  messages[1]  chat.results_after_calls" in ended.out
    assert '+ /messages/3  {"role":"tool","tool_call_id":"c2"' in ended.out
    assert "Nothing was written" in ended.out
    assert Path(file).read_bytes() == before
    assert os.listdir(tmp_path) == ["a.json"]


def test_apply_writes_into_the_file_and_the_second_time_nothing(
    run: Run, write: Write, tmp_path: Path
) -> None:
    file = write("a.json", BROKEN)
    Path(file).chmod(0o640)
    assert run("repair", file, "--apply").code == 0
    assert run("check", file).code == 0
    assert Path(file).stat().st_mode & 0o777 == 0o640
    os.utime(file, (1, 1))
    ended = run("repair", file, "--apply")
    assert (ended.code, "nothing to repair" in ended.out) == (0, True)
    assert Path(file).stat().st_mtime == 1  # nothing changed, nothing was written
    assert os.listdir(tmp_path) == ["a.json"]


def test_out_writes_elsewhere_and_leaves_the_file(run: Run, write: Write) -> None:
    file = write("a.json", BROKEN)
    assert run("repair", file, "-o", "b.json").code == 0
    assert json.loads(Path(file).read_text()) == BROKEN
    repaired = json.loads(Path("b.json").read_text())
    assert [m for m in repaired if m in BROKEN] == BROKEN
    assert len(repaired) == len(BROKEN) + 1


def test_out_to_standard_output_shows_the_edits_beside_it(run: Run) -> None:
    ended = run("repair", "-", "-o", "-", stdin=json.dumps(BROKEN).encode())
    assert ended.code == 0
    assert len(json.loads(ended.out)) == len(BROKEN) + 1
    assert "close_call" in ended.err


@pytest.mark.parametrize(
    "value",
    [
        {"model": "m", "messages": BROKEN, "temperature": 1.0},
        {"request": {"model": "m", "messages": BROKEN}, "response": None, "note": "kept"},
    ],
)
def test_what_stands_around_the_messages_stays(run: Run, write: Write, value: Any) -> None:
    file = write("a.json", value)
    assert run("repair", file, "--apply").code == 0
    after = json.loads(Path(file).read_text())
    inner = after.get("request", after)
    assert len(inner.pop("messages")) == len(BROKEN) + 1
    before = json.loads(json.dumps(value))
    before.get("request", before).pop("messages")
    assert after == before


def test_lines_that_need_nothing_stay_as_they_were_written(run: Run, write: Write) -> None:
    odd = '{"messages" :  [ {"role":"user", "content":"\\u00e4"} ],  "model":"m"}'
    file = write("a.jsonl", text=f"{odd}\n\n{json.dumps(BROKEN)}\n")
    assert run("repair", file, "--apply").code == 0
    first, second = Path(file).read_text().splitlines()
    assert first == odd
    assert len(json.loads(second)) == len(BROKEN) + 1


def test_an_array_of_documents_stays_one(run: Run, write: Write) -> None:
    file = write("a.json", [{"messages": WHOLE}, {"messages": BROKEN}, {"messages": WHOLE}])
    assert run("repair", file, "--apply").code == 0
    after = json.loads(Path(file).read_text())
    assert [len(entry["messages"]) for entry in after] == [5, 5, 5]
    assert run("check", file).code == 0


@pytest.mark.parametrize("target", [["--apply"], ["-o", "b.jsonl"]])
def test_a_file_of_which_a_part_cannot_be_read_is_not_written(
    run: Run, write: Write, target: list[str]
) -> None:
    file = write("a.jsonl", text=f"{json.dumps(BROKEN)}\n{{bad\n")
    before = Path(file).read_bytes()
    ended = run("repair", file, *target)
    assert ended.code == 2
    assert "was not written: a part of a.jsonl can't be read" in ended.err
    assert Path(file).read_bytes() == before
    assert not Path("b.jsonl").exists()


def test_a_target_that_cannot_be_written_is_said(run: Run, write: Write, tmp_path: Path) -> None:
    ended = run("repair", write("a.json", BROKEN), "-o", tmp_path)
    assert ended.code == 2
    assert "it is a directory" in ended.err
    assert run("repair", "a.json", "-o", "none/b.json").code == 2
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["a", "--apply", "-o", "b"],
        ["-", "--apply"],
        ["a", "b", "-o", "c"],
        ["a", "-o", "-", "--json"],
    ],
)
def test_contradicting_options_are_refused(run: Run, arguments: list[str]) -> None:
    assert run("repair", *arguments).code == 2


def test_what_no_edit_mends_is_left_and_told(run: Run, write: Write) -> None:
    body = {"model": "m", "messages": WHOLE, "zzz": 1}
    ended = run("repair", write("a.json", body), "--apply")
    assert ended.code == 1
    assert "no edit mends" in ended.out
    assert "chat.unknown_parameter" in ended.out


def test_json_lines_carry_patches_that_fit(run: Run, write: Write) -> None:
    from lutumpy.doctor.json_patch import apply_operations

    ended = run("repair", write("a.json", BROKEN), "--json")
    assert [record["type"] for record in ended.records] == ["repair", "document", "summary"]
    repair, document, summary = ended.records
    assert set(repair) == {
        *(
            "type",
            "file",
            "line",
            "number",
            "api",
            "kind",
            "rule",
            "reason",
            "position",
            "call_ids",
            "tools",
            "patch",
            "drops_reasoning",
        )
    }
    assert set(document) == {
        "type",
        "file",
        "line",
        "number",
        "api",
        "repairs",
        "refused",
        "left",
        "written",
    }
    assert set(summary) == {"type", "documents", "edits", "left", "unreadable", "exit_code"}
    assert (document["repairs"], document["refused"], document["left"], document["written"]) == (
        1,
        1,
        0,
        False,
    )
    messages = apply_operations(json.loads(json.dumps(BROKEN)), repair["patch"])
    assert run("check", write("b.json", messages)).code == 0


def test_halves_of_characters_survive(run: Run, write: Write) -> None:
    file = write("a.json", [user("\ud800 ä"), calls("c1")])
    run("repair", file, "--apply")
    assert isinstance(json.loads(Path(file).read_text())[0]["content"], str)


@pytest.mark.sweep
@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*.jsonl")), ids=lambda file: file.name)
def test_every_recorded_file_is_looked_at_without_a_crash(run: Run, file: Path) -> None:
    ended = run("repair", file, "--json")
    assert ended.err == ""
    if ended.code == 0:
        assert ended.records[-1]["edits"] == 0
