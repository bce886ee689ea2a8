"""What the log shows of values that few runs have. The functions are asked themselves: a
conversation in which all of these come up would need every API.
"""

from __future__ import annotations

from typing import Any

from lutumpy import (
    ApprovalRequest,
    AssistantTurn,
    HandledTool,
    Session,
    TextPart,
    ToolMetadata,
    ToolResult,
    Usage,
)
from lutumpy.durable.log import load_event
from lutumpy.durable.shown import (
    decided_event,
    dump_event,
    held_event,
    show_blocks,
    show_message,
    show_result,
    unanswered,
)
from lutumpy.loops import RoundPlanned
from lutumpy.models import (
    CallBlock,
    FilePart,
    ImagePart,
    Message,
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
)

CALL = ToolMetadata("c1", "look", '{"word": "cat"}')


def test_every_kind_of_block_is_shown_without_what_the_provider_sent() -> None:
    blocks: Any = (
        ReasoningBlock("hm", signed=True),
        TextBlock("hello"),
        RefusalBlock("no"),
        CallBlock("c1", "look", "{}"),
        OpaqueBlock("web_search"),
    )
    assert show_blocks(AssistantTurn("openai_chat", blocks, b"secret")) == [
        {"block": "reasoning", "text": "hm"},
        {"block": "text", "text": "hello"},
        {"block": "refusal", "text": "no"},
        {"block": "call", "call_id": "c1", "tool": "look", "arguments": "{}"},
        {"block": "opaque", "kind": "web_search"},
    ]


def test_calls_of_the_providers_and_answers_made_by_hand_are_shown() -> None:
    approval = ApprovalRequest(ToolMetadata("a1", "remote", '{"x": 1}'), "desk")
    handled: HandledTool[Any, Any] = HandledTool(CALL, {"word": "cat"}, {"found": 1})
    planned: Any = load_event(dump_event(RoundPlanned(1, Usage(), (), (handled,), (), (approval,))))
    (shown,) = planned.approvals
    assert (shown.input, shown.edited, shown.effect) == ({"x": 1}, False, "")
    (result,) = planned.handled
    assert (result.call.input, result.content) == ({"word": "cat"}, '{"found":1}')
    held = held_event(approval, "far away", "sha256:1")
    assert (held["schema"], held["approval_id"]) == ({}, "sha256:1:a1")


def test_a_value_that_is_not_json_is_shown_as_its_text() -> None:
    class Odd:
        def __repr__(self) -> str:
            return "<odd>"

    handled: HandledTool[Any, Any] = HandledTool(CALL, Odd(), Odd())
    planned: Any = load_event(dump_event(RoundPlanned(1, Usage(), (), (handled,), ())))
    assert planned.handled[0].call.input == "<odd>"
    assert "<odd>" in planned.handled[0].content


def test_parts_of_results_and_messages_are_described() -> None:
    parts = (
        TextPart("two files"),
        ImagePart(b"x", "image/png"),
        FilePart(b"y", "application/pdf", filename="a.pdf"),
        FilePart(b"y", "application/pdf"),
    )
    shown = show_result(ToolResult(CALL, parts), {})
    assert shown["content"] == "two files\nimage\na.pdf\nfile"
    assert shown["call"]["tool"] == "look"
    message = Message("user", parts)
    assert show_message(message, "m1")["files"] == ["image", "a.pdf", "file"]
    session = Session()
    session.transcript.append(message)
    session.push_user("more")
    assert [each.text for each in unanswered(session)][1] == "more"


def test_a_decision_about_a_call_without_an_input_shows_its_arguments() -> None:
    plan = {
        "digest": "sha256:1",
        "calls": [
            {"call_id": "a1", "tool": "remote", "arguments": '{"x": 1}', "standing": "held"},
            {"call_id": "a2", "tool": "remote", "arguments": "{broken", "standing": "held"},
        ],
    }
    run: Any = load_event(decided_event(plan, "a1", {"decision": "run"}, "ann"))
    assert (run.decision, run.call.input) == ("run", {"x": 1})
    reject = {"decision": "reject", "reason": "no"}
    rejected: Any = load_event(decided_event(plan, "a2", reject, "ann"))
    assert (rejected.decision, rejected.reason) == ("reject", "no")
    assert rejected.call.input == "{broken"
