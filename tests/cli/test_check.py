"""`lutumpy check`: what it finds, where it says that it is, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_toolkit import AMBIGUOUS, BROKEN, FIXTURES, SYSTEM, WHOLE, Run, Write, calls, user
from counting import calls_made


def test_a_valid_history_ends_with_0(run: Run, write: Write) -> None:
    ended = run("check", write("a.json", WHOLE))
    assert (ended.code, ended.err) == (0, "")
    assert "a.json  openai_chat, 5 messages: no problem" in ended.out


def test_a_refused_history_ends_with_1_and_says_what_where_and_which(
    run: Run, write: Write
) -> None:
    ended = run("check", write("a.json", BROKEN))
    assert ended.code == 1
    for piece in (
        "messages[1]",
        "chat.results_after_calls",
        "did not have response messages: c2",
        "call c2, tool look",
    ):
        assert piece in ended.out
    assert "1 document checked: 1 refused" in ended.out


def test_what_is_not_refused_for_sure_counts_only_when_strict(run: Run, write: Write) -> None:
    body = {
        "model": "m",
        "input": "Hi.",
        "tools": [{"type": "function", "name": "t", "parameters": None}],
    }
    file = write("a.json", body)
    assert run("check", file).code == 0
    assert "discouraged" in run("check", file).out
    assert run("check", file, "--strict").code == 1
    assert run("check", write("b.json", WHOLE), "--strict").code == 0


def test_a_whole_request_is_checked_as_one(run: Run, write: Write) -> None:
    body = {"model": "m", "messages": WHOLE, "tool_choice": "auto", "zzz": 1}
    rules = [
        r["rule"]
        for r in run("check", write("a.json", body), "--json").records
        if r["type"] == "problem"
    ]
    assert "chat.unknown_parameter" in rules
    # What was never a request lacks nothing: training data, for one.
    assert run("check", write("b.json", {"messages": WHOLE})).code == 0


def test_a_request_that_continues_a_thread_may_hold_results_alone(run: Run, write: Write) -> None:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}
    body = {
        "model": "claude-sonnet-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [result]}],
    }
    thread = {"type": "continue", "previous_message_id": "msg_1"}
    assert run("check", write("a.json", {**body, "thread": thread})).code == 0
    assert run("check", write("b.json", {**body, "thread": {"type": "create"}})).code == 1


def test_lines_are_reported_by_number_and_a_bad_one_stops_no_other(run: Run, write: Write) -> None:
    lines = [json.dumps(WHOLE), "{bad", json.dumps(BROKEN), '{"a": 1}', json.dumps(BROKEN)]
    ended = run("check", write("a.jsonl", text="\n".join(lines)))
    assert ended.code == 2
    assert "cannot read a.jsonl:2:2: not JSON: expecting property name" in ended.err
    assert "cannot read a.jsonl:4: the object is not a document" in ended.err
    assert "a.jsonl:3  openai_chat" in ended.out
    assert "a.jsonl:5  openai_chat" in ended.out
    assert "a.jsonl:1 " not in ended.out  # of many documents only those with problems are shown
    assert "3 documents checked: 2 refused" in ended.out


def test_an_array_of_documents_is_read_one_by_one(run: Run, write: Write) -> None:
    ended = run("check", write("a.json", [{"messages": WHOLE}, {"messages": BROKEN}]), "--json")
    assert [r["number"] for r in ended.records if r["type"] == "document"] == [1, 2]
    assert ended.code == 1


def test_standard_input_is_a_file(run: Run) -> None:
    ended = run("check", "-", stdin=json.dumps(BROKEN).encode())
    assert ended.code == 1
    assert ended.out.startswith("-  openai_chat")


def test_files_that_are_not_there_stop_no_other(run: Run, write: Write, tmp_path: Path) -> None:
    ended = run("check", "none.json", tmp_path, write("a.json", WHOLE), "b\0c")
    assert ended.code == 2
    assert "none.json: can't be read: No such file" in ended.err
    assert "it is a directory" in ended.err
    assert "1 document checked" in ended.out


def test_an_ambiguous_history_is_asked_about(run: Run, write: Write) -> None:
    file = write("a.json", AMBIGUOUS)
    ended = run("check", file)
    assert ended.code == 2
    assert "say which one with --api" in ended.err
    for api in ("openai_chat", "openai_responses", "anthropic_messages"):
        assert run("check", file, "--api", api).code == 0


def test_the_api_that_was_named_is_the_one_that_is_checked(run: Run, write: Write) -> None:
    file = write("a.json", SYSTEM + AMBIGUOUS)
    assert run("check", file, "--api", "openai_chat").code == 0
    assert run("check", file, "--api", "anthropic_messages").code == 1


def test_an_unknown_api_is_a_wrong_command_line(run: Run, write: Write) -> None:
    ended = run("check", write("a.json", WHOLE), "--api", "cohere")
    assert ended.code == 2
    assert "openai_responses" in ended.err


@pytest.mark.parametrize(
    "arguments", [["check"], ["check", "--nope", "x"], ["nothing"], ["--nope"], []]
)
def test_a_wrong_command_line_ends_with_2_and_says_how_it_is_used(
    run: Run, arguments: list[str]
) -> None:
    ended = run(*arguments)
    assert ended.code == 2
    assert "usage: lutumpy" in ended.err.lower()


PROBLEM = {
    "type": str,
    "file": str,
    "line": int,
    "number": int,
    "api": str,
    "rule": str,
    "certainty": str,
    "position": str,
    "path": list,
    "message": str,
    "status": int,
    "code": (str, type(None)),
    "call_ids": list,
    "tools": list,
}
DOCUMENT = {
    "type": str,
    "file": str,
    "line": int,
    "number": int,
    "api": str,
    "kind": str,
    "messages": int,
    "problems": dict,
}
UNREADABLE = {
    "type": str,
    "file": str,
    "line": (int, type(None)),
    "column": (int, type(None)),
    "cause": str,
}
SUMMARY = {
    "type": str,
    "documents": int,
    "refused": int,
    "some": int,
    "discouraged": int,
    "unreadable": int,
    "exit_code": int,
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "problem": PROBLEM,
    "document": DOCUMENT,
    "unreadable": UNREADABLE,
    "summary": SUMMARY,
}


def test_json_lines_have_the_documented_fields(run: Run, write: Write) -> None:
    lines = [json.dumps(WHOLE), "{bad", json.dumps(BROKEN), json.dumps({"model": "m", "input": 5})]
    ended = run("check", write("a.jsonl", text="\n".join(lines)), "none", "--json")
    assert ended.err == ""
    assert {record["type"] for record in ended.records} == set(SCHEMAS)
    for record in ended.records:
        schema = SCHEMAS[record["type"]]
        assert list(record) == list(schema)
        for key, kind in schema.items():
            assert isinstance(record[key], kind), (record["type"], key)
    assert ended.records[-1]["exit_code"] == ended.code == 2
    (problem,) = [r for r in ended.records if r["type"] == "problem" and r["line"] == 3]
    assert (problem["path"], problem["call_ids"]) == ([1], ["c2"])


@pytest.mark.sweep
@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*.json*")), ids=lambda file: file.name)
def test_every_recorded_file_is_checked_without_a_crash(run: Run, file: Path) -> None:
    ended = run("check", file, "--json")
    assert ended.err == ""
    summary = ended.records[-1]
    assert summary["type"] == "summary"
    lines = (
        len([line for line in file.read_text().splitlines() if line.strip()])
        if file.suffix == ".jsonl"
        else 1
    )
    assert summary["documents"] + summary["unreadable"] == lines
    accepted = {
        "anthropic_messages",
        "openai_chat",
        "openai_responses",
        "compat_openai_chat",
        "compat_openai_responses",
    }
    if file.stem in accepted:
        assert (ended.code, summary["documents"], summary["refused"]) == (0, lines, 0)


def test_hostile_text_does_not_reach_the_terminal(run: Run, write: Write) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202e\ud800\x9b31m"
    messages = [user(), calls(evil), user("\r" + evil)]
    for arguments in (["check"], ["show"], ["repair"], ["check", "--json"], ["show", "--json"]):
        ended = run(*arguments, write("a.json", messages))
        text = (ended.out + ended.err).replace("\n", "")
        assert text.isprintable(), arguments
    assert run("check", "no\x1b[2Jfile").err.replace("\n", "").isprintable()


def test_a_file_without_documents_is_not_passed_over_in_silence(run: Run, write: Write) -> None:
    Path("a.jsonl").write_text("\n  \n")
    ended = run("check", "a.jsonl")
    assert (ended.code, ended.out) == (0, "0 documents checked: there is none in what was given\n")


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_a_line_that_is_no_json_costs_a_few_calls_whatever_it_is_reported_as(
    run: Run, write: Write, form: tuple[str, ...]
) -> None:
    few, many = [write(f"{count}.jsonl", text="not json\n" * count) for count in (200, 1200)]
    run("check", *form, few)  # what is imported is imported
    cost = [calls_made(lambda file=file: run("check", *form, file)) for file in (few, many)]
    assert (cost[1] - cost[0]) / 1000 < 70


def test_the_first_hundred_faults_of_a_file_are_shown_and_the_others_counted(
    run: Run, write: Write
) -> None:
    whole, broken = (
        write("whole.jsonl", *[{"messages": WHOLE}]),
        write("broken.jsonl", text="not json\n" * 103),
    )
    barely = write("barely.jsonl", text="not json\n" * 101)
    ended = run("check", broken, whole, barely, broken)
    lines = ended.err.splitlines()
    assert ended.code == 2
    assert len(lines) == 303
    assert lines[99] == "cannot read broken.jsonl:100:1: not JSON: expecting value"
    assert lines[100] == "cannot read broken.jsonl: 3 more places; --json lists all of them"
    assert lines[201] == "cannot read barely.jsonl: one more place; --json lists all of them"
    assert lines[302] == lines[100]
    assert [record["type"] for record in run("check", "--json", broken).records].count(
        "unreadable"
    ) == 103
