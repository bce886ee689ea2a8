"""`lutumpy convert`: the same conversation for another API, and what is said of the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_toolkit import BROKEN, FIXTURES, SYSTEM, WHOLE, Run, Write

APIS = ("openai_chat", "openai_responses", "anthropic_messages")
TOOL = {
    "openai_chat": {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Look.",
            "parameters": {"type": "object", "properties": {}},
        },
    },
    "openai_responses": {
        "type": "function",
        "name": "look",
        "description": "Look.",
        "parameters": {"type": "object", "properties": {}},
        "strict": False,
    },
    "anthropic_messages": {
        "name": "look",
        "description": "Look.",
        "input_schema": {"type": "object", "properties": {}},
    },
}


@pytest.mark.parametrize("to", APIS)
def test_a_history_goes_to_each_api_and_is_accepted_there(run: Run, write: Write, to: str) -> None:
    ended = run("convert", write("a.json", SYSTEM + WHOLE), "--to", to)
    assert (ended.code, ended.err) == (0, "")
    assert run("check", write("b.json", text=ended.out), "--api", to).code == 0


def test_a_bare_list_stays_one_where_it_can(run: Run, write: Write) -> None:
    assert json.loads(run("convert", write("a.json", WHOLE), "--to", "openai_chat").out) == WHOLE
    assert isinstance(json.loads(run("convert", "a.json", "--to", "openai_responses").out), list)
    body = json.loads(
        run("convert", write("b.json", SYSTEM + WHOLE), "--to", "anthropic_messages").out
    )
    assert body["system"] == "Be kind."


@pytest.mark.parametrize("source", APIS)
@pytest.mark.parametrize("to", APIS)
def test_function_tools_are_converted(run: Run, write: Write, source: str, to: str) -> None:
    key = "input" if source == "openai_responses" else "messages"
    body: dict[str, Any] = {
        "model": "m",
        key: [{"role": "user", "content": "Hi."}],
        "tools": [TOOL[source]],
    }
    ended = run("convert", write("a.json", body), "--to", to, "--api", source)
    assert json.loads(ended.out)["tools"] == [TOOL[to]]
    assert "left out: model" in ended.err


def test_what_has_no_counterpart_is_named(run: Run, write: Write) -> None:
    body = {
        "model": "m",
        "input": "Hi.",
        "tools": [{"type": "web_search"}, TOOL["openai_responses"]],
        "store": True,
    }
    ended = run("convert", write("a.json", body), "--to", "openai_chat")
    assert "the provider's own: web_search" in ended.err
    assert "left out: model, store" in ended.err
    assert json.loads(ended.out)["tools"] == [TOOL["openai_chat"]]


def test_an_invalid_history_is_not_converted_and_nothing_is_written(run: Run, write: Write) -> None:
    ended = run("convert", write("a.json", BROKEN), "--to", "openai_responses", "-o", "b.json")
    assert ended.code == 1
    assert "c2" in ended.err
    assert "`lutumpy repair FILE` may mend it" in ended.err
    assert not Path("b.json").exists()


def test_lines_stay_lines_and_a_bad_one_stops_no_other(run: Run, write: Write) -> None:
    lines = [json.dumps(WHOLE), "{bad", json.dumps(BROKEN), json.dumps(WHOLE)]
    ended = run(
        "convert",
        write("a.jsonl", text="\n".join(lines)),
        "--to",
        "anthropic_messages",
        "-o",
        "b.jsonl",
    )
    assert ended.code == 2
    assert len(Path("b.jsonl").read_text().splitlines()) == 2
    assert run("check", "b.jsonl").code == 0


def test_json_lines_have_the_place_around_the_body(run: Run, write: Write) -> None:
    ended = run("convert", write("a.jsonl", WHOLE, BROKEN), "--to", "openai_responses", "--json")
    first, second = ended.records
    assert list(first) == ["type", "file", "line", "number", "api", "to", "body", "notes"]
    assert list(second) == ["type", "file", "line", "number", "api", "message"]
    assert (first["type"], first["to"], second["type"], second["line"]) == (
        *("conversation", "openai_responses"),
        *("failed", 2),
    )


@pytest.mark.parametrize("to", APIS)
@pytest.mark.parametrize("name", ["anthropic_messages", "openai_chat", "openai_responses"])
def test_recorded_requests_are_converted_without_a_crash(run: Run, name: str, to: str) -> None:
    ended = run("convert", FIXTURES / f"{name}.jsonl", "--to", to, "--json")
    assert ended.err == ""
    done = [r for r in ended.records if r["type"] == "conversation"]
    assert len(done) >= 0.9 * len((FIXTURES / f"{name}.jsonl").read_text().splitlines())
    if name == to:  # back to its own API it is what it was
        lines = (FIXTURES / f"{name}.jsonl").read_text().splitlines()
        key = "input" if to == "openai_responses" else "messages"
        for record in done:
            request = json.loads(lines[record["line"] - 1])["request"]
            sent = request.get(key)
            if isinstance(sent, list):
                assert record["body"][key] == sent


def test_a_note_about_many_documents_is_said_once(run: Run, write: Write) -> None:
    file = write("a.jsonl", *[{"model": "m", "messages": WHOLE}] * 50)
    ended = run("convert", file, "--to", "openai_responses", "-o", "b.jsonl")
    assert ended.err == "a.jsonl: left out: model (in 50 documents)\n"
    notes = [
        record["notes"]
        for record in run("convert", file, "--to", "openai_responses", "--json").records
    ]
    assert notes == [["left out: model"]] * 50


def test_a_dump_is_converted_and_its_messages_go_back_unchanged(run: Run, write: Write) -> None:
    from lutumpy import Session

    session = Session()
    session.push_system("Be kind.")
    session.push_user("Hello.")
    body = json.loads(
        run("convert", write("a.json", session.dump()), "--to", "anthropic_messages").out
    )
    assert body == {"system": "Be kind.", "messages": [{"role": "user", "content": "Hello."}]}
