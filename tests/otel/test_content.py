"""What was said leaves the process only where the program asks for it: "everything, but not the
output" holds of spans, events, metrics and logs alike.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from each_case import each
from every_api import APIS
from otel_toolkit import CANARY, SCRIPT, Exported, Shelf, asked, converse

from lutumpy import AdapterError, FilePart, ImagePart, RawPart, Session
from lutumpy.loops import run_tools_sync
from lutumpy.testing import Failure, Reply, ScriptedModel

VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CONTENT = {
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
}


def attributes(exported: Exported) -> set[str]:
    return {name for span in exported.spans for name in span.attributes or ()}


@pytest.mark.parametrize("stream", [False, True])
def test_no_text_of_prompts_arguments_results_or_reasons_is_exported_unless_asked_for(
    exported: Exported, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lutumpy")
    telemetry = exported.telemetry(content=False)
    converse(telemetry, stream=stream)
    # An error whose words quote the prompt.
    llm = ScriptedModel([Failure(400, f"bad prompt: {CANARY}")])
    with pytest.raises(AdapterError):
        run_tools_sync(asked(), llm, tools=Shelf, telemetry=telemetry)
    assert len(exported.spans) == 8
    assert CANARY not in exported.text()
    logged = [record for record in caplog.records if record.name != "lutumpy.testing"]
    assert logged
    assert all(CANARY not in f"{record.getMessage()} {vars(record)}" for record in logged)
    assert not attributes(exported) & CONTENT


@each("api", APIS)
def test_whatever_a_host_writes_for_a_code_holds_no_content(api: Any) -> None:
    def ask(llm: Any, streamed: bool) -> None:
        turn: Any = asked().text_turn(llm)
        if not streamed:
            turn.collect_sync()
        with turn.stream_sync() as stream:
            list(stream)

    odd: list[Any] = [{"input": CANARY}, [CANARY], f"cannot say {CANARY}", CANARY * 20, True, 1.5]
    for code in odd:
        for error in ({"code": code}, {"type": code}, {"code": code, "type": "bad_input"}):
            answer = {"type": "error", "error": {**error, "message": f"bad prompt: {CANARY}"}}
            for streamed in (False, True):
                with Exported() as exported:
                    llm = ScriptedModel([[answer] if streamed else answer], api=api)
                    with pytest.raises(AdapterError):
                        ask(exported.telemetry(content=False).model(llm), streamed)
                    assert CANARY not in exported.text(), error
                    (span,) = exported.spans
                    assert span.attributes is not None
                    assert span.attributes["error.type"] in ("bad_input", "AdapterError")


def test_the_negative_control_content_is_exported_where_it_is_asked_for(exported: Exported) -> None:
    converse(exported.telemetry(content="messages"))
    assert CANARY in exported.text()
    assert attributes(exported) >= CONTENT
    first = next(span for span in exported.spans if span.name == "chat m-1")
    found: Any = first.attributes
    assert json.loads(found["gen_ai.system_instructions"]) == [
        {"type": "text", "content": f"You know {CANARY}."}
    ]
    assert json.loads(found["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": f"What is {CANARY}?"}]}
    ]
    (answer,) = json.loads(found["gen_ai.output.messages"])
    assert (answer["role"], answer["finish_reason"]) == ("assistant", "tool_calls")
    assert {"type": "text", "content": f"Let me see {CANARY}."} in answer["parts"]
    calls = [part for part in answer["parts"] if part["type"] == "tool_call"]
    assert [(call["id"], call["name"]) for call in calls][:2] == [("c1", "look"), ("c2", "count")]
    second = [span for span in exported.spans if span.name == "chat m-1"][1]
    sent: Any = second.attributes
    tool_message = json.loads(sent["gen_ai.input.messages"])[-1]
    assert tool_message["role"] == "tool"
    assert tool_message["parts"][1] == {
        "type": "tool_call_response",
        "id": "c2",
        "response": "5",
    }
    tools: list[Any] = [s.attributes for s in exported.spans if s.name == "execute_tool count"]
    assert tools[0]["gen_ai.tool.call.result"] == "5"
    assert json.loads(tools[0]["gen_ai.tool.call.arguments"]) == {"word": "three"}
    events = [event for span in exported.spans for event in span.events]
    details: list[Any] = [event.attributes for event in events]
    reasons = [each.get("lutumpy.decision.reason") for each in details]
    assert f"nobody burns {CANARY}" in reasons


def test_the_variable_of_the_conventions_is_followed_where_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for value, option, expected in [
        ("SPAN_ONLY", None, True),
        ("true", None, True),
        ("NO_CONTENT", None, False),
        ("EVENT_ONLY", None, False),
        ("SPAN_ONLY", False, False),
    ]:
        monkeypatch.setenv(VARIABLE, value)
        with Exported() as exported:
            converse(exported.telemetry(content=option))
            assert bool(attributes(exported) & CONTENT) is expected, value
    monkeypatch.delenv(VARIABLE)
    with Exported() as exported:
        converse(exported.telemetry())
        assert not attributes(exported) & CONTENT


def test_a_function_cleans_what_is_exported_or_keeps_it_back(exported: Exported) -> None:
    def clean(name: str, text: str) -> str | None:
        if name == "gen_ai.tool.call.result":
            return None
        return text.replace(CANARY, "***")

    converse(exported.telemetry(content=clean))
    assert CANARY not in exported.text()
    assert "***" in exported.text()
    assert attributes(exported) & CONTENT == CONTENT - {"gen_ai.tool.call.result"}


def test_content_is_cut_at_its_limit_oldest_first_and_the_span_says_so(exported: Exported) -> None:
    session = Session()
    for number in range(50):
        session.push_user(f"message {number} " + "x" * 50)
    llm = exported.telemetry(content="messages", max_content_bytes=1000).model(
        ScriptedModel([Reply(text="y" * 2000)])
    )
    session.text_turn(llm).collect_sync()
    (span,) = exported.spans
    found: Any = span.attributes
    messages = json.loads(found["gen_ai.input.messages"])
    assert messages[-1]["parts"][0]["content"].startswith("message 49")
    assert 1 < len(messages) < 50
    assert len(found["gen_ai.input.messages"].encode()) <= 1000
    # An answer that doesn't fit at all is left out.
    assert "gen_ai.output.messages" not in found
    assert found["lutumpy.content.cut"] is True


def test_every_kind_of_content_is_written_and_files_never_are(exported: Exported) -> None:
    session = Session()
    session.push_user(
        [
            "look",
            ImagePart(b"\x00" * 9, "image/png"),
            ImagePart(url="https://example.com/a.png"),
            FilePart(b"%PDF-1.4", "application/pdf"),
            ImagePart(url="data:image/png;base64,AAAAAAAAAAA="),
            RawPart("openai_chat", {"type": "text", "text": "raw"}, "a raw part"),
        ]
    )
    session.push_developer("Be kind.")
    script = ScriptedModel([Reply(refusal="No.")], check=False)
    session.text_turn(exported.telemetry(content="messages").model(script)).collect_sync()
    (span,) = exported.spans
    found: Any = span.attributes
    user, developer = json.loads(found["gen_ai.input.messages"])
    types = [part["type"] for part in user["parts"]]
    assert types == ["text", "blob", "uri", "blob", "blob", "text"]
    image = {"type": "blob", "modality": "image", "mime_type": "image/png"}
    assert user["parts"][1] == {**image, "size": 9}
    assert user["parts"][4] == {**image, "size": 8}
    assert "AAAA" not in exported.text()
    assert developer["role"] == "developer"
    (answer,) = json.loads(found["gen_ai.output.messages"])
    assert {"type": "text", "content": "No."} in answer["parts"]


def test_what_is_no_choice_of_content_is_refused() -> None:
    with Exported() as exported, pytest.raises(TypeError, match="content= is False"):
        exported.telemetry(content="everything")
    assert SCRIPT
