"""The user has the whole envelope of every run; the model is told what it needs."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import anyio.lowlevel
import pytest
from clad_toolkit import BACKENDS, Workshop, call, run, run_all, told

from lutumpy import NeedsTools, Session
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import ToolExecutor
from lutumpy.testing import Call, Reply, ScriptedModel
from lutumpy.toolclad import Evidence, EvidenceKeeper

TOLD = {"status", "exit_code", "results", "duration_ms", "output_hash"}


class Keeper:
    def __init__(self) -> None:
        self.kept: list[tuple[str, Mapping[str, Any]]] = []

    def __call__(self, name: str, envelope: Mapping[str, Any]) -> None:
        self.kept.append((name, envelope))


def test_the_envelope_has_everything(workshop: Workshop) -> None:
    keeper = Keeper()
    path = workshop.write("say", ["printf", "%s", "{text}"], {"text": {"type": "string"}})
    result = run(workshop.load(evidence=keeper), "say", {"text": "two words"})
    ((name, envelope),) = keeper.kept
    assert name == "say"
    moment = datetime.fromisoformat(envelope["timestamp"])
    assert abs(moment.timestamp() - datetime.now().timestamp()) < 60
    seconds, _, random = envelope["scan_id"].partition("-")
    assert (int(seconds), len(random)) == (int(moment.timestamp()), 12)
    assert envelope == {
        "status": "success",
        "scan_id": envelope["scan_id"],
        "tool": "say",
        "version": "1.0",
        "manifest_hash": f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}",
        "command": "printf %s 'two words'",
        "program": envelope["program"],
        "duration_ms": envelope["duration_ms"],
        "timestamp": envelope["timestamp"],
        "exit_code": 0,
        "stderr": "",
        "output_file": "",
        "output_hash": f"sha256:{hashlib.sha256(b'two words').hexdigest()}",
        "results": {"raw_output": "two words"},
    }
    assert json.loads(json.dumps(envelope)) == envelope
    # The result has it, too: as what its output says besides.
    output = result.output
    assert isinstance(output, Evidence)
    assert output.succeeded
    assert output.envelope is envelope
    assert told(result) == output == {key: envelope[key] for key in TOLD}


@pytest.mark.parametrize("code", [1, 77])
def test_a_program_that_fails_is_a_failed_result_with_the_same_json(
    workshop: Workshop, code: int
) -> None:
    keeper = Keeper()
    script = f"echo some\necho why >&2\nexit {code}"
    workshop.write("act", [workshop.program("act", script)])
    result = run(workshop.load(evidence=keeper), "act", {})
    assert (result.status, result.outcome) == ("error", "failed")
    answer = told(result)
    assert answer.keys() == TOLD
    assert (answer["status"], answer["exit_code"]) == ("error", code)
    assert answer["results"] == {
        "error": f"the program ended with the code {code}",
        "stderr": "why\n",
        "raw_output": "some\n",
    }
    assert keeper.kept[0][1]["stderr"] == "why\n"
    assert isinstance(result.output, Evidence)
    assert not result.output.succeeded
    assert result.output.envelope["command"] == "./act"


# --- what a program prints ------------------------------------------------------------------------

READ: list[tuple[str, str, Any]] = [
    ("text", "a\nb", {"raw_output": "a\nb"}),
    ("text", "", {"raw_output": ""}),
    ("json", '{"a": [1, null]}', {"a": [1, None]}),
    ("json", "[1]", {"parsed_output": [1]}),
    ("jsonl", '{"a": 1}\n\n{"a": "\u2028"}\n', {"parsed_output": [{"a": 1}, {"a": "\u2028"}]}),
    (
        "csv",
        'n,zip,ok\n1,007,TRUE\n2.5,"a,b",no\n',
        {
            "parsed_output": [
                {"n": 1, "zip": "007", "ok": True},
                {"n": 2.5, "zip": "a,b", "ok": "no"},
            ]
        },
    ),
    ("csv", "a|b\n1|x\n", {"parsed_output": [{"a": 1, "b": "x"}]}),
    ("csv", "a\tb\n1\tnan\n", {"parsed_output": [{"a": 1, "b": "nan"}]}),
    ("csv", "", {"parsed_output": []}),
    (
        "xml",
        '<!DOCTYPE r><r v="1"><x>a</x><x/><y> b </y></r>',
        {"r": {"@v": "1", "x": [{"#text": "a"}, {}], "y": {"#text": "b"}}},
    ),
]


@pytest.mark.parametrize(("format", "text", "results"), READ)
def test_output_is_read_as_declared(
    workshop: Workshop, format: str, text: str, results: Any
) -> None:
    (workshop.place / "out").write_text(text)
    workshop.write("show", ["cat", "out"], output={"format": format})
    answer = told(run(workshop.load(), "show", {}))
    assert (answer["status"], answer["results"]) == ("success", results)


@pytest.mark.parametrize(
    ("format", "text", "reason"),
    [
        ("json", "{", "the output is not JSON: "),
        ("json", "[NaN]", "NaN is not JSON"),
        ("json", "[1e999]", "too large for JSON"),
        ("json", "[" * 20_000, "the output is "),
        ("json", "[" * 150 + "]" * 150, "nested too deeply"),
        ("jsonl", "{}\n{", "the output is not JSON lines: "),
        ("csv", "a,b\n1\n", "row 2 has 1 cells, not 2"),
        ("csv", "a,a\n1,2\n", "two columns have one name"),
        ("xml", "<a>", "the output is not XML: "),
        ("xml", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "entities, which are not expanded"),
        ("xml", "<a>" * 200 + "</a>" * 200, "nested too deeply"),
    ],
)
def test_output_that_cannot_be_read_is_a_failure_and_no_success(
    workshop: Workshop, format: str, text: str, reason: str
) -> None:
    (workshop.place / "out").write_text(text)
    workshop.write("show", ["cat", "out"], output={"format": format})
    result = run(workshop.load(), "show", {})
    answer = told(result)
    assert (result.outcome, answer["status"], answer["exit_code"]) == ("failed", "error", 0)
    assert answer["results"].keys() == {"error"}
    assert reason in answer["results"]["error"]


def test_output_that_does_not_fit_its_schema_is_a_failure(workshop: Workshop) -> None:
    schema = {
        "type": "object",
        "properties": {"hosts": {"type": "array"}},
        "required": ["hosts", "count"],
    }
    (workshop.place / "out").write_text('{"hosts": "none"}')
    workshop.write("show", ["cat", "out"], output={"format": "json", "schema": schema})
    answer = told(run(workshop.load(), "show", {}))
    assert answer["status"] == "error"
    assert answer["results"]["error"].startswith("the output doesn't fit its schema: ")
    assert "count: Field required" in answer["results"]["error"]
    assert "hosts: " in answer["results"]["error"]


def test_output_that_is_too_long_to_be_read_is_a_failure(workshop: Workshop) -> None:
    (workshop.place / "out").write_text(json.dumps(["x" * 100]))
    workshop.write("show", ["cat", "out"], output={"format": "json"})
    assert told(run(workshop.load(), "show", {}))["status"] == "success"
    answer = told(run(workshop.load(max_output=100), "show", {}))
    assert answer["results"] == {
        "error": "the output has 104 bytes; only the first of them are kept, which can't be read "
        "alone"
    }


# --- who keeps it ---------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_who_keeps_evidence_may_be_async(workshop: Workshop, backend: str) -> None:
    kept: list[Mapping[str, Any]] = []

    async def keep(name: str, envelope: Mapping[str, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        kept.append(envelope)

    workshop.write("say", ["printf", "%s"])
    run(workshop.load(evidence=keep), "say", {}, backend=backend)
    assert [envelope["tool"] for envelope in kept] == ["say"]


def test_evidence_that_cannot_be_kept_is_no_success(
    workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    def keep(name: str, envelope: Mapping[str, Any]) -> None:
        raise OSError("the disk is full, at /secret/place")

    workshop.write("say", ["printf", "%s", "hello"])
    keeper: EvidenceKeeper = keep
    result = run(workshop.load(evidence=keeper), "say", {})
    assert result.outcome == "maybe_executed"
    assert "hello" not in str(result.content)
    assert "secret" not in str(result.content)


def test_nothing_is_logged_of_what_a_program_prints_or_gets(
    workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    program = workshop.program("say", "echo out-word; echo err-word >&2; [ $1 = ok-word ]")
    workshop.write("say", [program, "{text}"], {"text": {"type": "string"}})
    clad = workshop.load()
    calls = [call(clad, "say", {"text": text}) for text in ("ok-word", "bad-word")]
    run_all(clad, calls)
    assert [record.__dict__["tool"] for record in caplog.records] == ["say", "say"]
    assert "-word" not in caplog.text


# --- in a conversation ----------------------------------------------------------------------------


def test_a_conversation_with_manifests_can_be_sent_everywhere(workshop: Workshop) -> None:
    args = {"file": {"type": "path", "required": True}}
    workshop.write("count", ["wc", "-l", "{file}"], args, tool={"risk_tier": "info"})
    (workshop.place / "a.txt").write_text("1\n2\n")
    clad = workshop.load()
    replies = [
        Reply(
            calls=[
                Call("count", {"file": "a.txt"}),
                Call("count", {"file": "/etc/passwd"}),
                Call("count", {"file": "b.txt"}),
            ]
        ),
        Reply(text="Two."),
    ]
    session = Session()
    session.push_user("How many lines?")
    llm = ScriptedModel(replies)
    outcome = session.text_turn(llm, tools=clad.toolset).collect_sync()
    assert isinstance(outcome, NeedsTools)
    (issue,) = outcome.round.issues
    assert "must be relative" in issue.detail
    results = ToolExecutor().run_sync(outcome.round.calls, clad.dispatch)
    outcome.round.commit(session, results)
    body = OpenAIChat.request(session.transcript)
    said = [message for message in body["messages"] if message["role"] == "tool"]
    assert json.loads(said[0]["content"])["results"] == {"raw_output": "2 a.txt\n"}
    assert "must be relative" in said[1]["content"]
    assert json.loads(said[2]["content"])["status"] == "error"


def test_equal_calls_run_once_also_where_values_are_cleaned(workshop: Workshop) -> None:
    args = {"n": {"type": "integer", "max": 9, "clamp": True}, "f": {"type": "number"}}
    keeper = Keeper()
    workshop.write("say", ["printf", "%s", "{n}", "{f}"], args)
    clad = workshop.load(evidence=keeper)
    calls = [
        call(clad, "say", '{"n": 100, "f": 1}'),
        call(clad, "say", '{"f":1.0,"n":100}'),
        call(clad, "say", '{"n": 100, "f": 2}'),
    ]
    results = run_all(clad, calls, deduplicate=True)
    assert [result.outcome for result in results] == ["ok", "rejected", "ok"]
    assert results[1].content == "Tool call rejected: Duplicate tool call skipped."
    assert len(keeper.kept) == 2
