"""What a page shows of conversations of the three APIs, of transcripts and of sessions; good ones
and broken ones.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage

from lutumpy import AssistantTurn, FilePart, ImagePart, RawPart, Session, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.models import Api, ReasoningBlock, RefusalBlock, ResultBlock, ToolResults
from lutumpy.page import render
from lutumpy.page.readers import read_messages, read_transcript
from lutumpy.page.text import LIMIT
from lutumpy.page.timeline import LATE, NO_ID, REPEATED, UNKNOWN, Timeline


def outline(timeline: Timeline) -> list[Any]:
    """Steps as roles, answers as their calls with the places of their results."""
    return [
        (
            step.style,
            [(call.name, [r.place for r in call.results]) for call in step.calls],
            [r.place for r in step.strays],
        )
        if step.calls or step.strays
        else step.style
        for step in timeline.steps
    ]


def read(api: Api, messages: Any, system: Any = None) -> Timeline:
    return read_messages(api, messages, system, LIMIT)


def test_chat_results_stand_with_their_calls(chat: list[Any]) -> None:
    timeline = read("openai_chat", chat)
    calls = [
        ("weather", ["messages[3]"]),
        ("weather", ["messages[4]"]),
        ("trains", ["messages[5]"]),
        ("delete_file", ["messages[6]"]),
    ]
    assert outline(timeline) == ["system", "user", ("assistant", calls, []), "assistant"]
    assert timeline.steps[2].place == "messages[2] to messages[6]"
    assert [call.results[0].status for call in timeline.calls()] == ["ok", "ok", "ok", "rejected"]


def test_responses_items_of_one_answer_are_one_step() -> None:
    items = [
        {"role": "user", "content": "Weather?"},
        {
            "type": "reasoning",
            "id": "r",
            "summary": [{"type": "summary_text", "text": "Two."}],
            "encrypted_content": "x",
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Looking."}],
        },
        {"type": "function_call", "call_id": "a", "name": "weather", "arguments": "{}"},
        {
            "type": "function_call",
            "call_id": "b",
            "name": "time",
            "namespace": "clock",
            "arguments": "{}",
        },
        {"type": "web_search_call", "id": "ws", "status": "completed"},
        {"type": "function_call_output", "call_id": "b", "output": "noon"},
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": [{"type": "input_text", "text": "snow"}],
        },
        {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"},
    ]
    timeline = read("openai_responses", items, "Be brief.")
    calls = [("weather", ["input[7]"]), ("clock.time", ["input[6]"])]
    assert outline(timeline) == [
        "system",
        "user",
        ("assistant", calls, []),
        ("assistant", [("weather", [])], []),
    ]
    assert [piece.label for piece in timeline.steps[2].pieces] == [
        "Reasoning, encrypted",
        "",
        "web_search_call",
    ]


def test_anthropic_results_leave_the_message_and_its_text_stays() -> None:
    messages = [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Oslo"}},
                {"type": "tool_use", "id": "b", "name": "weather", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "snow"},
                {
                    "type": "tool_result",
                    "tool_use_id": "b",
                    "is_error": True,
                    "content": [{"type": "text", "text": "no"}],
                },
                {"type": "text", "text": "And now?"},
            ],
        },
    ]
    timeline = read("anthropic_messages", messages, [{"type": "text", "text": "Be brief."}])
    calls = [("weather", ["messages.2.content.0"]), ("weather", ["messages.2.content.1"])]
    assert outline(timeline) == ["system", "user", ("assistant", calls, []), "user"]
    assert [call.results[0].status for call in timeline.calls()] == ["ok", "error"]
    assert timeline.calls()[0].asked == '{"city":"Oslo"}'


def test_a_result_that_stands_wrong_says_so_and_so_does_its_call(broken: list[Any]) -> None:
    timeline = read("openai_chat", broken)
    look, again = timeline.calls()
    assert look.results == again.results == []
    late, unknown = timeline.steps[3].strays
    assert (late.astray, late.call) == (LATE, look)
    assert look.elsewhere is late
    assert (unknown.astray, unknown.call) == (UNKNOWN, None)


def test_a_second_result_and_one_without_an_id_are_shown_by_themselves(
    chat_call: Callable[..., Any],
) -> None:
    messages = [
        {"role": "assistant", "tool_calls": [chat_call("a", "f", "{}")]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "a", "content": "2"},
        {"role": "tool", "content": "3"},
    ]
    (step,) = read("openai_chat", messages).steps
    assert [r.place for r in step.calls[0].results] == ["messages[1]"]
    assert [r.astray for r in step.strays] == [REPEATED, NO_ID]


def test_calls_with_one_id_are_answered_in_their_order(chat_call: Callable[..., Any]) -> None:
    messages = [
        {"role": "assistant", "tool_calls": [chat_call("a", "f", "{}"), chat_call("a", "g", "{}")]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "a", "content": "2"},
    ]
    assert outline(read("openai_chat", messages)) == [
        ("assistant", [("f", ["messages[1]"]), ("g", ["messages[2]"])], [])
    ]


def test_nothing_of_a_message_is_hidden(broken: list[Any], safe: Callable[[str], Any]) -> None:
    page = safe(render(broken, api="openai_chat"))
    assert "Role: banana" in page.text
    assert '{"other":{"x":1}}' in page.text
    assert "not a message" in page.text
    assert "Hello?U+202Egnp.exe <script>alert(1)</script>U+0000" in page.text
    assert page.text.count("word ") >= 2_000


def test_images_of_known_kinds_are_shown_and_nothing_is_loaded(
    pixel: bytes, safe: Callable[[str], Any]
) -> None:
    good = "data:image/png;base64," + base64.b64encode(pixel).decode()
    bad = [
        "data:image/svg+xml;base64," + base64.b64encode(b"<svg onload=alert(1)>").decode(),
        "data:image/png;base64,"
        + base64.b64encode(b"<script>alert(1)</script> and more of it").decode(),
        good + '"onerror="alert(1)',
        good + "\u202e",
        "data:text/html;base64,AAAA",
        "https://example.com/tracker.png",
        "javascript:alert(1)",
        "data:,x",
    ]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in [good, *bad]]
    parts.append(
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
    )
    parts.append(
        {"type": "image", "source": {"type": "url", "url": "https://example.com/other.png"}}
    )
    page = safe(render([{"role": "user", "content": parts}], api="openai_chat"))
    assert [value for tag, name, value in page.attributes if (tag, name) == ("img", "src")] == [
        good
    ]
    assert "https://example.com/tracker.png (not loaded)" in page.text
    assert "https://example.com/other.png (not loaded)" in page.text


def test_files_and_documents_are_named() -> None:
    parts = [
        {
            "type": "file",
            "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,AAAA"},
        },
        {"type": "input_file", "file_url": "https://example.com/a.pdf"},
        {"type": "input_audio", "input_audio": {"format": "wav", "data": "AAAA"}},
        {
            "type": "document",
            "title": "Notes",
            "source": {"type": "text", "media_type": "text/plain", "data": "Hello"},
        },
    ]
    (step,) = read("openai_chat", [{"role": "user", "content": parts}]).steps
    labels = [piece.label for piece in step.pieces]
    assert [label.split(",")[0] for label in labels] == [
        "File: plan.pdf",
        "File: https://example.com/a.pdf",
        "File: wav",
        "Document: Notes",
    ]
    assert step.pieces[3].prose is not None
    assert step.pieces[3].prose.head == "Hello"


def test_objects_of_an_sdk_are_read_like_their_json() -> None:
    message = ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        }
    )
    assert outline(read("openai_chat", [message])) == [("assistant", [("f", [])], [])]


def test_calls_of_every_kind_are_calls() -> None:
    messages = [
        {"role": "assistant", "function_call": {"name": "old", "arguments": "{}"}},
        {"role": "function", "name": "old", "content": "done"},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "a", "type": "custom", "custom": {"name": "shell", "input": "ls"}},
                {"id": "b", "function": {"name": "bare"}},
                {"id": 3, "type": 4, "function": 5},
                "no call",
            ],
        },
        {"role": "assistant", "tool_calls": "none"},
    ]
    timeline = read("openai_chat", messages)
    assert [(c.name, c.kind, c.asked) for c in timeline.calls()] == [
        ("old", "function_call", "{}"),
        ("shell", "custom", "ls"),
        ("bare", "function", ""),
        ("", "4", ""),
    ]
    assert [r.place for r in timeline.calls()[0].results] == ["messages[1]"]
    labels = [piece.label for step in timeline.steps for piece in step.pieces]
    assert labels == ["Call of an unknown form", "tool_calls of an unknown form"]
    items = [
        {"type": "custom_tool_call", "call_id": "a", "name": "shell", "input": "ls"},
        {"type": "computer_call", "call_id": "b", "action": {"type": "click"}},
        {"type": "computer_call_output", "call_id": "b", "output": {"type": "computer_screenshot"}},
        {"role": "developer", "type": "additional_tools", "tools": []},
        {"role": "user", "content": {"text": "?"}},
    ]
    timeline = read("openai_responses", items)
    assert [(c.name, c.kind, c.asked, len(c.results)) for c in timeline.calls()] == [
        ("shell", "custom_tool_call", "ls", 0),
        ("computer_call", "computer_call", '{"type":"click"}', 1),
    ]
    assert [step.style for step in timeline.steps] == ["assistant", "developer", "user"]


def test_an_object_that_cannot_be_dumped_is_shown_by_its_name() -> None:
    class Stubborn:
        def model_dump(self, **_: Any) -> Any:
            raise RuntimeError("no")

        def __repr__(self) -> str:
            return "<stubborn>"

    (step,) = read("openai_chat", [Stubborn()]).steps
    assert step.pieces[0].value is not None
    assert step.pieces[0].value.brief == "<stubborn>"


def test_a_transcript_shows_reasoning_refusals_attachments_and_what_is_no_longer_sent(
    safe: Callable[[str], Any],
) -> None:
    transcript = Transcript()
    transcript.push_user(
        [
            "See",
            ImagePart(url="https://example.com/a.png"),
            FilePart(b"x", "application/pdf", filename="p.pdf"),
            RawPart("anthropic_messages", {"type": "container_upload", "file_id": "file_7"}),
        ]
    )
    blocks = (ReasoningBlock("Hm.", signed=True), RefusalBlock("I won't."))
    transcript.append_turn(
        AssistantTurn("openai_chat", blocks, b"{}", finish_reason="refusal", reasoning_dropped=True)
    )
    transcript.append_turn(AssistantTurn("openai_chat", (), b""))
    page = safe(render(transcript))
    assert "Image at https://example.com/a.png (not loaded)" in page.of("step-1")
    assert "File: p.pdf, application/pdf, 1 bytes" in page.of("step-1")
    assert "For anthropic_messages alone" in page.of("step-1")
    assert "file_7" in page.of("step-1")
    for words in (
        "Reasoning, signed",
        "Hm.",
        "I won't.",
        "finish: refusal",
        "reasoning no longer sent",
    ):
        assert words in page.of("step-2")
    assert "no content, not sent" in page.of("step-3")


def test_a_plain_text_is_one_user_message() -> None:
    assert outline(read("openai_responses", "Hello")) == ["user"]


def session_with_a_round(pixel: bytes) -> Session:
    session = Session()
    session.push_system("Be brief.")
    session.push_user(["What is this?", ImagePart(data=pixel, media_type="image/png")])
    turn = AnthropicMessages.response(
        {
            "content": [
                {"type": "text", "text": "Looking."},
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                {"type": "tool_use", "id": "a", "name": "look", "input": {"at": [1, 2]}},
                {"type": "tool_use", "id": "b", "name": "guess", "input": {}},
            ],
            "stop_reason": "tool_use",
            "model": "claude-x",
            "usage": {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 50},
        }
    )
    results = ToolResults(
        (ResultBlock("a", "look", "a pixel"), ResultBlock("b", "guess", "no idea", "error"))
    )
    session.transcript.append_turn(turn, results)
    session.push_ephemeral_user("A hint.")
    return session


def test_a_session_is_shown_with_its_results_their_status_and_its_tokens(
    pixel: bytes, safe: Callable[[str], Any]
) -> None:
    session = session_with_a_round(pixel)
    timeline = read_transcript(session.transcript, LIMIT)
    calls = [("look", ["item 3.0"]), ("guess", ["item 3.1"])]
    assert outline(timeline) == ["system", "user", ("assistant", calls, []), "user"]
    assert [call.results[0].status for call in timeline.calls()] == ["ok", "error"]
    assert timeline.steps[2].tags == ["claude-x"]
    assert timeline.steps[3].tags == ["in one request only"]
    page = safe(render(session))
    assert page.of("step-3").count("1,050 tokens") == 1
    assert "web_search" in page.text
    assert render(session) == render(session.transcript)


def test_an_answer_that_is_not_in_the_transcript_is_shown_at_the_end(
    safe: Callable[[str], Any],
) -> None:
    turn: AssistantTurn = OpenAIChat.response(
        {
            "choices": [
                {"message": {"role": "assistant", "content": "Not yet."}, "finish_reason": "length"}
            ]
        }
    )
    page = safe(render(Transcript(), answer=turn))
    assert "Not yet." in page.of("step-1")
    assert "finish: length" in page.of("step-1")


def test_usage_is_given_to_the_answers_in_order(
    chat: list[Any], safe: Callable[[str], Any]
) -> None:
    usage = [
        {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 60},
        },
        {
            "input_tokens": 10,
            "cache_read_input_tokens": 70,
            "cache_creation_input_tokens": 5,
            "output_tokens": 3,
        },
    ]
    html = render(chat, api="openai_chat", usage=usage)
    cells = re.findall(r"<td>([\d,]+)</td>", html)
    assert cells == ["100", "60", "20", "0", "120", "85", "70", "3", "0", "88"]
    assert "120 tokens" in safe(html).of("step-3")
    assert "88 tokens" in safe(html).of("step-4")


@pytest.mark.pure
@pytest.mark.slow
def test_a_long_conversation_has_at_most_120_bars_in_a_chart(safe: Callable[[str], Any]) -> None:
    messages = [{"role": "assistant", "content": "x"}] * 1_000
    page = safe(
        render(messages, api="openai_chat", usage=[{"input_tokens": k} for k in range(1, 1_001)])
    )
    assert page.tags.count("rect") <= 240
    assert (
        "1,000 turns, 500,500 input tokens, from 1 to 1,000 a turn. Each bar is the mean of 9 "
        "turns." in page.text
    )


@pytest.mark.parametrize(
    ("source", "api", "error"),
    [
        ([], None, "need their api"),
        ([], "openai", "unknown api 'openai'"),
        ({"messages": []}, "openai_chat", "not dict"),
        (None, "openai_chat", "not NoneType"),
    ],
)
def test_a_wrong_source_is_a_clear_error(source: Any, api: Any, error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        render(source, api=api)


def test_an_empty_conversation_is_a_page_too(safe: Callable[[str], Any]) -> None:
    assert "The conversation is empty." in safe(render([], api="openai_chat")).text
    assert "The conversation is empty." in safe(render(Session())).text
