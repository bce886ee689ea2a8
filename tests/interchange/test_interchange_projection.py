"""A history of one API is sent to the others with the same meaning, in a form that they take (rules
R2, R3, K5).
"""

from __future__ import annotations

from typing import Any

import pytest
from each_case import each
from histories import ADAPTERS, HISTORIES, ROWS, body_of, name_of, read, refused
from hypothesis import HealthCheck, given, settings
from profiles import examples

from lutumpy import FilePart, ImagePart, TextPart, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.models import Message, ToolResults

Json = Any
PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
PNG_URL = "data:image/png;base64,iVBORw=="


@pytest.mark.pure
@pytest.mark.slow
@each("row", ROWS, name_of)
def test_a_recorded_history_is_taken_by_the_other_apis(row: dict[str, Json]) -> None:
    transcript = read(row)
    for api in ADAPTERS.keys() - {row["api"]}:
        body = body_of(api, transcript)
        if body is not None:
            assert refused(api, body) == []


@pytest.mark.parametrize("api", list(HISTORIES))
def test_random_histories_are_taken_by_the_other_apis(api: str) -> None:
    @settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
    @given(HISTORIES[api])
    def taken(given_history: tuple[Json, Json]) -> None:
        system, history = given_history
        transcript = Transcript.from_messages(api, history, system=system)  # type: ignore[arg-type]
        for other in ADAPTERS.keys() - {api}:
            body = body_of(other, transcript)
            if body is not None:
                assert refused(other, body) == []

    taken()


CHAT: list[Json] = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "name": "Ada",
        "content": [
            {"type": "text", "text": "See"},
            {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "low"}},
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
            },
            {"type": "file", "file": {"file_id": "file-abc"}},
            {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
        ],
    },
    {
        "role": "assistant",
        "content": "Let me look.",
        "reasoning_content": "hm",
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "look", "arguments": '{"at": 1}'},
            },
            {
                "id": "call_2",
                "type": "function",
                "function": {"name": "look", "arguments": "broken"},
            },
        ],
    },
    {"role": "tool", "tool_call_id": "call_2", "content": "Tool call rejected: not JSON"},
    {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "a cat"}]},
    {"role": "assistant", "content": "A cat."},
    {"role": "user", "content": "Sure?"},
]


def test_chat_to_anthropic() -> None:
    body = AnthropicMessages.request(Transcript.from_messages("openai_chat", CHAT))
    assert body["system"] == "Be brief."
    asked, answered, results, answer, last = body["messages"]
    assert asked["content"] == [
        {"type": "text", "text": "See"},
        {"type": "image", "source": PNG},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": "a.pdf",
        },
        {"type": "text", "text": "[file left out: file-abc]"},
        {"type": "text", "text": "[input_audio left out]"},
    ]
    assert answered["content"] == [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": 1}},
        {"type": "tool_use", "id": "call_2", "name": "look", "input": {"INVALID_JSON": "broken"}},
    ]
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": "call_1", "content": "a cat"},
        {
            "type": "tool_result",
            "tool_use_id": "call_2",
            "is_error": True,
            "content": "Tool call rejected: not JSON",
        },
    ]
    assert answer == {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]}
    assert last == {"role": "user", "content": "Sure?"}


def test_chat_to_responses() -> None:
    body = OpenAIResponses.request(Transcript.from_messages("openai_chat", CHAT))
    assert body["input"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "See"},
                {"type": "input_image", "image_url": PNG_URL, "detail": "low"},
                {
                    "type": "input_file",
                    "filename": "a.pdf",
                    "file_data": "data:application/pdf;base64,JVBERg==",
                },
                {"type": "input_text", "text": "[file left out: file-abc]"},
                {"type": "input_text", "text": "[input_audio left out]"},
            ],
        },
        {"type": "message", "role": "assistant", "content": "Let me look."},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"at": 1}'},
        {
            "type": "function_call",
            "call_id": "call_2",
            "name": "look",
            "arguments": '{"INVALID_JSON":"broken"}',
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "a cat"},
        {
            "type": "function_call_output",
            "call_id": "call_2",
            "output": "Tool call rejected: not JSON",
        },
        {"type": "message", "role": "assistant", "content": "A cat."},
        {"role": "user", "content": "Sure?"},
    ]


ANTHROPIC: list[Json] = [
    {
        "role": "user",
        "content": [{"type": "text", "text": "See"}, {"type": "image", "source": PNG}],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {
                "type": "server_tool_use",
                "id": "srvtoolu_1",
                "name": "web_search",
                "input": {"query": "q"},
            },
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"b": 1, "a": 2}},
            {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": True, "content": "no"},
            {
                "type": "tool_result",
                "tool_use_id": "toolu_1",
                "content": [{"type": "text", "text": "a cat"}, {"type": "image", "source": PNG}],
            },
            {"type": "text", "text": "Hurry."},
        ],
    },
]


def test_anthropic_to_chat() -> None:
    system = [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}]
    body = OpenAIChat.request(
        Transcript.from_messages("anthropic_messages", ANTHROPIC, system=system)
    )
    image = {"type": "image_url", "image_url": {"url": PNG_URL}}
    assert body["messages"] == [
        {
            "role": "system",
            "content": [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}],
        },
        {"role": "user", "content": [{"type": "text", "text": "See"}, image]},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {
                    "id": "toolu_1",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"b":1,"a":2}'},
                },
                {
                    "id": "toolu_2",
                    "type": "function",
                    "function": {"name": "look", "arguments": "{}"},
                },
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "toolu_1",
            "content": [
                {"type": "text", "text": "a cat"},
                {
                    "type": "text",
                    "text": (
                        "[1 attachment of the result of call toolu_1 (look): see the user message "
                        "after the tool results]"
                    ),
                },
            ],
        },
        {"role": "tool", "tool_call_id": "toolu_2", "content": "no"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[1 attachment of the result of call toolu_1 (look):]"},
                image,
            ],
        },
        {"role": "user", "content": "Hurry."},
    ]


def test_error_flags_survive_the_way_through_two_apis() -> None:
    transcript = Transcript.from_messages("anthropic_messages", ANTHROPIC)
    results = next(item for item in transcript if isinstance(item, ToolResults)).results
    assert [(r.call_id, r.status) for r in results] == [("toolu_1", "ok"), ("toolu_2", "error")]
    rejected = Transcript.from_messages("openai_chat", CHAT)
    results = next(item for item in rejected if isinstance(item, ToolResults)).results
    assert [(r.call_id, r.status) for r in results] == [("call_1", "ok"), ("call_2", "rejected")]


def test_responses_to_the_others() -> None:
    history: list[Json] = [
        {"role": "user", "content": "Go"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "cc",
            "action": {"type": "wait"},
            "status": "completed",
        },
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "a cat"}],
        },
        {"role": "user", "content": "Hurry."},
        {
            "type": "computer_call_output",
            "call_id": "cc",
            "output": {"type": "computer_screenshot", "image_url": PNG_URL},
        },
        {"type": "item_reference", "id": "msg_9"},
        {"type": "shell_call", "call_id": "sh", "action": {"commands": ["ls"]}},
        {
            "type": "shell_call_output",
            "call_id": "sh",
            "output": [{"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 2}}],
        },
    ]
    transcript = Transcript.from_messages("openai_responses", history, system="Be brief.")
    body = AnthropicMessages.request(transcript)
    assert body["system"] == "Be brief."
    asked, made, results, hurry, shell, failed = body["messages"]
    assert asked == {"role": "user", "content": "Go"}
    assert [(b["type"], b["id"], b["name"]) for b in made["content"]] == [
        ("tool_use", "cc", "computer"),
        ("tool_use", "c1", "look"),
    ]
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": "cc", "content": [{"type": "image", "source": PNG}]},
        {
            "type": "tool_result",
            "tool_use_id": "c1",
            "content": [{"type": "text", "text": "a cat"}],
        },
    ]
    assert hurry == {"role": "user", "content": "Hurry."}
    assert [(b["type"], b["id"], b["name"]) for b in shell["content"]] == [
        ("tool_use", "sh", "shell")
    ]
    assert failed["content"] == [
        {"type": "tool_result", "tool_use_id": "sh", "is_error": True, "content": "no"}
    ]
    assert refused("openai_chat", {"model": "m", **OpenAIChat.request(transcript)}) == []


def test_calls_that_the_server_holds_are_told_to_other_apis_as_far_as_known() -> None:
    outputs = [{"type": "function_call_output", "call_id": c, "output": "1"} for c in ("c1", "c2")]
    transcript = Transcript.from_messages(
        "openai_responses", [*outputs, {"role": "user", "content": "And?"}], server_held_prefix=True
    )
    body = OpenAIChat.request(transcript)
    assert [message["role"] for message in body["messages"]] == [
        "assistant",
        "tool",
        "tool",
        "user",
    ]
    assert [call["function"] for call in body["messages"][0]["tool_calls"]] == [
        {"name": "unknown_tool", "arguments": "{}"}
    ] * 2
    assert refused("openai_chat", {"model": "m", **body}) == []


def test_ids_that_come_back_are_told_apart_elsewhere_C6() -> None:
    turn = [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "1"}]},
    ]
    transcript = Transcript.from_messages(
        "anthropic_messages", [{"role": "user", "content": "Go"}, *turn, *turn]
    )
    messages = OpenAIChat.request(transcript)["messages"]
    ids = [call["id"] for message in messages for call in message.get("tool_calls", [])]
    assert len(set(ids)) == 2
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == ids


def test_content_without_a_form_elsewhere_leaves_no_empty_message() -> None:
    for content in ("", [], None, [{"type": "text", "text": ""}]):
        history = [{"role": "user", "content": content}, {"role": "user", "content": "Go"}]
        transcript = Transcript.from_messages("openai_chat", history)
        assert OpenAIResponses.messages(transcript) == [{"role": "user", "content": "Go"}]
        assert AnthropicMessages.messages(transcript) == [{"role": "user", "content": "Go"}]


def parts_of(api: str, content: Json) -> tuple[Any, ...]:
    transcript = Transcript.from_messages(api, [{"role": "user", "content": content}])  # type: ignore[arg-type]
    message = transcript[0]
    assert isinstance(message, Message)
    return message.parts


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, "title": "T"},
         FilePart(b"x", "text/plain", filename="T")),
        ({"type": "document", "source": {"type": "url", "url": "https://x.org/a.pdf"}},
         FilePart(url="https://x.org/a.pdf", media_type="application/pdf")),
        ({"type": "document", "source": {"type": "content", "content": "x"}}, TextPart("x")),
        ({"type": "document", "source": {"type": "file", "file_id": "f1"}}, TextPart("[document left out: f1]")),
        ({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "?"}},
         TextPart("[document left out]")),
        ({"type": "image", "source": {"type": "url", "url": "https://x.org/a.png"}}, ImagePart(url="https://x.org/a.png")),
        ({"type": "image", "source": {"type": "url", "url": "gs://a.png"}}, TextPart("[image left out: gs://a.png]")),
        ({"type": "image", "source": {"type": "base64", "media_type": None, "data": "iVBORw=="}}, TextPart("[image left out]")),
        ({"type": "image", "source": {"type": "file", "file_id": "f1"}}, TextPart("[image left out: f1]")),
        ({"type": "image"}, TextPart("[image left out]")),
        ({"type": "container_upload", "file_id": "f1"}, TextPart("[container_upload left out: f1]")),
        (7, TextPart("[content left out]")),
    ],
)  # fmt: skip
def test_anthropic_blocks_as_parts(part: Json, expected: Any) -> None:
    assert parts_of("anthropic_messages", [part]) == (expected,)


def test_what_anthropics_models_are_told_about_a_document_is_told_to_others() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "x"}
    block = {"type": "document", "source": source, "context": "about it"}
    file = FilePart(b"x", "text/plain")
    assert parts_of("anthropic_messages", [block]) == (TextPart("about it"), file)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "image_url", "image_url": "https://x.org/a.png"}, ImagePart(url="https://x.org/a.png")),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}, TextPart("[image left out: data:image/png;base64,]")),
        ({"type": "image_url"}, TextPart("[image left out]")),
        ({"type": "document_url", "document_url": 7, "document_name": "a"}, TextPart("[file left out: a]")),
        ({"type": "document_url", "document_url": "https://x.org/a.pdf"}, FilePart(url="https://x.org/a.pdf")),
        ({"type": "refusal", "refusal": "No."}, TextPart("No.")),
        ("Go", TextPart("Go")),
        ({"type": "zebra"}, TextPart("[zebra left out]")),
    ],
)  # fmt: skip
def test_chat_parts_as_parts(part: Json, expected: Any) -> None:
    assert parts_of("openai_chat", [part]) == (expected,)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "input_file", "file_url": "https://x.org/a.pdf"}, FilePart(url="https://x.org/a.pdf")),
        ({"type": "input_file", "file_id": "f1"}, TextPart("[file left out: f1]")),
        ({"type": "input_file", "file_data": "JVBERg==", "filename": "a.pdf"}, TextPart("[file left out: a.pdf]")),
        ({"type": "input_image", "file_id": "f1"}, TextPart("[image left out: f1]")),
        ({"type": "input_image", "image_url": PNG_URL, "detail": "original"}, ImagePart(b"\x89PNG", "image/png")),
        ({"type": "input_audio"}, TextPart("[input_audio left out]")),
    ],
)  # fmt: skip
def test_responses_parts_as_parts(part: Json, expected: Any) -> None:
    assert parts_of("openai_responses", [part]) == (expected,)
