"""Messages of Converse on the page: blocks without a type, results and files."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from lutumpy.page import render
from lutumpy.page.readers import read_messages

API = "bedrock_converse"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


def said(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def use(call_id: str, **more: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call_id, "name": "weather", "input": {"a": 1}, **more}}


def result(call_id: str, *content: Any, **more: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": call_id, "content": list(content), **more}}


def read(*messages: Any, system: Any = None) -> Any:
    return read_messages(API, list(messages), system, 1000)


def test_results_leave_the_message_and_its_text_stays() -> None:
    reasoning = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "S"}}}
    timeline = read(
        said("user", {"text": "Weather?"}),
        said("assistant", reasoning, use("a"), use("b")),
        said(
            "user",
            result("a", {"text": "snow"}),
            result("b", {"text": "no"}, status="error"),
            {"text": "And now?"},
        ),
        system=[{"text": "Be brief."}],
    )
    assert [step.role for step in timeline.steps] == ["system", "user", "assistant", "user"]
    calls = timeline.steps[2].calls
    assert [(call.call_id, call.results[0].status) for call in calls] == [
        ("a", "ok"),
        ("b", "error"),
    ]
    assert calls[0].asked == '{"a":1}'
    assert [piece.label for piece in timeline.steps[2].pieces] == ["Reasoning, signed"]
    assert calls[1].results[0].place == "messages.2.content.1"


def test_the_providers_own_results_stand_with_their_calls() -> None:
    own = result("a", {"json": {"stdOut": "7"}}, type="nova_code_interpreter_result")
    timeline = read(said("assistant", use("a", type="server_tool_use"), own, use("b")))
    (step,) = timeline.steps
    assert [len(call.results) for call in step.calls] == [1, 0]


def test_every_kind_of_block_is_shown(safe: Callable[[str], Any]) -> None:
    file = {"format": "pdf", "name": "plan", "source": {"bytes": "aGVsbG8="}}
    blocks = [
        {"image": {"format": "png", "source": {"bytes": PNG}}},
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/x.png"}}}},
        {"document": file},
        {"document": {**file, "source": {"text": "written out"}}},
        {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/x.mp4"}}}},
        {"reasoningContent": {"redactedContent": "aaaa"}},
        {"reasoningContent": {"reasoningText": {"text": 7}}},
        {"guardContent": {"text": {"text": "guarded"}}},
        {"type": "text", "text": "of another API"},
        {"cachePoint": {"type": "default"}},
        {},
        "bare",
        7,
    ]
    page = safe(render([said("user", *blocks)], api=API))
    for shown in (
        "Document: plan, pdf, 6 bytes",
        "written out",
        "Video: mp4, s3://b/x.mp4",
        "redacted by the provider",
        "guarded",
        "of another API",
        "cachePoint",
        "bare",
    ):
        assert shown in page.text, shown


def test_broken_messages_are_shown_as_they_are(safe: Callable[[str], Any]) -> None:
    messages = [
        {"role": "user", "content": "a text"},
        {"role": "user", "content": {"text": "alone"}, "id": 5},
        said("user", result("ghost", {"text": "who asked?"})),
        said("user", {"toolResult": {"toolUseId": "x", "content": "bare text"}}),
        said("user", {"toolResult": {"toolUseId": "y", "content": [7, {"text": 8}]}}),
        said(
            "user",
            result("z", {"image": {"format": "png", "source": {"bytes": PNG}}}, {"text": "seen"}),
        ),
        said("user", {"toolUse": "broken"}),
    ]
    page = safe(render(messages, api=API))
    for shown in ("a text", "alone", "Other fields", "who asked?", "bare text", "seen", "broken"):
        assert shown in page.text, shown


def test_results_of_the_user_answer_what_stands_before_also_beside_a_stray_call() -> None:
    timeline = read(said("assistant", use("a")), said("user", result("a", {"text": "7"}), use("b")))
    first, second = timeline.steps
    assert [len(call.results) for call in first.calls] == [1]
    assert ([call.call_id for call in second.calls], second.strays) == (["b"], [])


def test_a_result_of_messages_that_stands_beside_its_call_is_shown_with_it() -> None:
    call = {"type": "tool_use", "id": "a", "name": "weather", "input": {}}
    own = {"type": "tool_result", "tool_use_id": "a", "content": "7", "is_error": True}
    content = [{"type": "text", "text": "See:"}, call, own]
    message = {"role": "assistant", "content": content}
    (step,) = read_messages("anthropic_messages", [message], None, 1000).steps
    (shown,) = step.calls
    assert [(each.status, each.place) for each in shown.results] == [
        ("error", "messages.0.content.2")
    ]
