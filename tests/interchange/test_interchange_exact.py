"""A history that was read is given back to its own API unchanged, item for item (rule R1)."""

from __future__ import annotations

import base64
import contextlib
import json
import pickle
from collections import deque
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from each_case import each
from histories import (
    ADAPTERS,
    BESIDE,
    HISTORIES,
    HISTORY,
    ROWS,
    SYSTEM,
    as_text,
    body_of,
    broken_rules,
    name_of,
    read,
    written,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import AssistantTurn, ImagePart, Session, Transcript, TranscriptError
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.doctor import check_messages
from lutumpy.models import CallBlock, Message, OpaqueBlock, ToolResults, Verbatim
from lutumpy.testing import Reply, ScriptedModel

Json = Any
PNG = b"\x89PNG\r\n\x1a\n\xff\xfe"
PNG_TEXT = base64.b64encode(PNG).decode()


@each("row", ROWS, name_of)
def test_a_recorded_history_is_written_back_unchanged_R1(row: dict[str, Json]) -> None:
    transcript = read(row)
    expected = as_text(row["system"], row["history"])
    assert written(row["api"], transcript) == expected
    assert written(row["api"], transcript.fork()) == expected


@pytest.mark.pure
@pytest.mark.slow
@each("row", ROWS, name_of)
def test_a_dump_of_it_sends_the_same_bytes_to_every_api_R4(row: dict[str, Json]) -> None:
    transcript = read(row)
    loaded = Session.load(json.dumps(Session(transcript).dump())).transcript
    assert list(loaded) == list(transcript)
    for api in ADAPTERS:
        assert written(api, loaded) == written(api, transcript)


@each("row", [row for row in ROWS if row["status"] == 200], name_of)
def test_the_request_holds_it_where_it_goes_on(row: dict[str, Json]) -> None:
    """K5: it goes on like any other transcript, and what was read stays as it was."""
    api, transcript = row["api"], read(row)
    asked = [{"role": "user", "content": "And?"}]
    if transcript.turns() and transcript.turns()[-1].results_only:
        # A tool of the provider still runs, so its turn goes on without a word (rule R6).
        asked = []
    else:
        transcript.push_user("And?")
    body = ADAPTERS[api].request(transcript)
    system, history = as_text(row["system"], row["history"])
    assert json.dumps(body[HISTORY[api]]) == json.dumps([*json.loads(history), *asked])
    if api in SYSTEM:
        assert json.dumps(body.get(SYSTEM[api])) == system


def test_every_recording_beside_the_repository_is_written_back() -> None:
    files = sorted(BESIDE.glob("fixtures/*.jsonl"))
    if not files:
        pytest.skip("the whole set of recordings isn't beside this repository")
    found = 0
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            api, request = row.get("api"), row.get("request")
            if api not in HISTORY or request is None:
                continue  # traffic of providers that have no adapter
            if row.get("status", 200) >= 400 and broken_rules(api, request):
                continue  # a request that was refused, as the rules say
            system = request.get(SYSTEM.get(api, "system"))
            transcript = Transcript.from_messages(api, request[HISTORY[api]], system=system)
            assert written(api, transcript) == as_text(system, request[HISTORY[api]]), row["source"]
            found += 1
    assert found > 900


def test_the_recorded_histories_are_varied() -> None:
    kinds = {"openai_chat": set(), "openai_responses": set(), "anthropic_messages": set()}  # type: dict[str, set[str]]
    for row in ROWS:
        for item in read(row):
            kinds[row["api"]].add(type(item).__name__)
            if isinstance(item, AssistantTurn):
                kinds[row["api"]] |= {type(block).__name__ for block in item.blocks}
    for found in kinds.values():
        assert found >= {
            "Message",
            "AssistantTurn",
            "ToolResults",
            "CallBlock",
            "TextBlock",
            "ReasoningBlock",
        }
    assert {row["status"] for row in ROWS} >= {200, 400}
    assert all(row["source"] and row["licence"] for row in ROWS)


# --- forms that the recordings lack ---------------------------------------------------------------

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {"b": 1, "a": 2}}
USE_2 = {"type": "tool_use", "id": "t2", "name": "g", "input": {}}
USER = {"role": "user", "content": "Go"}
FORMS: list[tuple[str, str, Json, Json]] = [
    (
        "names and unknown fields",
        "openai_chat",
        None,
        [{"role": "user", "name": "Ada", "content": "x", "y": {"z": [1]}}],
    ),
    (
        "empty and absent content",
        "openai_chat",
        None,
        [{"role": "user", "content": ""}, {"role": "user"}],
    ),
    (
        "results in another order, with names",
        "openai_chat",
        None,
        [
            USER,
            {"role": "assistant", "tool_calls": [CALL, {**CALL, "id": "c2"}]},
            {
                "role": "tool",
                "tool_call_id": "c2",
                "name": "f",
                "content": [{"type": "text", "text": "two"}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
        ],
    ),
    (
        "the older form of calls",
        "openai_chat",
        None,
        [
            USER,
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "f", "arguments": "{}"},
            },
            {"role": "function", "name": "f", "content": "1"},
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "f", "arguments": "{}"},
            },
            {"role": "function", "name": "f", "content": None},
            {"role": "function", "name": "other", "content": "nobody asked"},
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "g", "arguments": "{}"},
            },
            {"role": "function", "name": "f", "content": "for another one"},
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "g", "arguments": "{}"},
            },
            USER,
        ],
    ),
    (
        "audio, refusal, annotations, a beginning of an answer",
        "openai_chat",
        None,
        [
            USER,
            {"role": "assistant", "audio": {"id": "audio_1"}},
            {"role": "assistant", "content": None, "refusal": "No.", "annotations": []},
            {
                "role": "assistant",
                "content": [
                    {"type": "refusal", "refusal": "No."},
                    {"type": "thinking", "thinking": []},
                ],
            },
            {"role": "assistant", "content": "The answer is ", "prefix": True},
        ],
    ),
    (
        "ids that come back, are empty, or no provider's",
        "openai_chat",
        None,
        [
            USER,
            *[
                message
                for call_id in ("c1", "c1", "", "functions.f:0" * 9)
                for message in (
                    {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": call_id}]},
                    {"role": "tool", "tool_call_id": call_id, "content": "1"},
                )
            ],
        ],
    ),
    (
        "two calls of one id",
        "openai_chat",
        None,
        [
            USER,
            {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "1"},
        ],
    ),
    (
        "a single message of instructions",
        "openai_responses",
        "Be brief.",
        [{"role": "user", "content": "x"}],
    ),
    (
        "user items between a call and its output, an output twice",
        "openai_responses",
        None,
        [
            USER,
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "c1",
                "name": "f",
                "arguments": "{}",
                "status": "completed",
            },
            {"role": "user", "content": "Hurry."},
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": "1",
                "status": "completed",
                "id": "o_1",
            },
            {"type": "function_call_output", "call_id": "c1", "output": "1"},
            {
                "type": "function_call_output",
                "call_id": None,
                "name": "host",
                "output": "by the way",
            },
        ],
    ),
    (
        "items of every kind",
        "openai_responses",
        None,
        [
            {"type": "additional_tools", "role": "developer", "tools": []},
            {
                "type": "message",
                "role": "developer",
                "content": [{"type": "input_text", "text": "x"}],
            },
            {"type": "item_reference", "id": "msg_0"},
            {"id": "msg_1"},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [],
                "encrypted_content": None,
                "status": None,
            },
            {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
            {
                "type": "mcp_approval_request",
                "id": "mcpr_1",
                "name": "f",
                "arguments": "{}",
                "server_label": "s",
            },
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
            {
                "type": "computer_call",
                "id": "cu_1",
                "call_id": "cc",
                "action": {"type": "wait"},
                "status": "completed",
            },
            {
                "type": "computer_call_output",
                "call_id": "cc",
                "output": {"type": "computer_screenshot", "file_id": "f"},
            },
            {
                "type": "apply_patch_call",
                "call_id": "ap",
                "operation": {"type": "delete_file", "path": "x"},
            },
            {
                "type": "apply_patch_call_output",
                "call_id": "ap",
                "status": "failed",
                "output": "no",
            },
            {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}},
            {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": []},
            {"type": "function_call", "call_id": "ob", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "ob", "output": {"of": "another kind"}},
            {"type": "function_call", "call_id": "no", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "no", "output": None},
            {"type": "program", "id": "p", "fingerprint": "x", "code": ""},
            {"type": "zebra", "stripes": [1, {"type": "x"}]},
            {
                "role": "assistant",
                "content": [{"type": "input_text", "text": "hm"}],
                "phase": "final",
            },
            {"type": "compaction_trigger"},
        ],
    ),
    (
        "system as a text",
        "anthropic_messages",
        "Be brief.",
        [{"content": [{"type": "text", "text": "x"}], "role": "user"}],
    ),
    ("system of other blocks", "anthropic_messages", [{"type": "text", "text": " "}, 7], [USER]),
    ("system that is empty", "anthropic_messages", "", [USER]),
    ("system without blocks", "anthropic_messages", [], [USER]),
    (
        "results and texts in one message, split over two",
        "anthropic_messages",
        [
            {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "y"},
        ],
        [
            USER,
            {"role": "assistant", "content": [USE, USE_2]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t2"}]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "content": [],
                        "cache_control": {"type": "ephemeral"},
                    },
                    {"type": "text", "text": "Now?"},
                ],
            },
            {"role": "user", "content": "Well?"},
        ],
    ),
    (
        "an empty answer, neighbours of one role, the beginning of an answer",
        "anthropic_messages",
        None,
        [
            USER,
            {"role": "assistant", "content": []},
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": "a", "x_unknown": 1},
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "b", "citations": [{"type": "x"}]}],
            },
            {"role": "assistant", "content": [USE]},
            {"role": "assistant", "content": "c"},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "1"}],
            },
            {"role": "assistant", "content": "The answer is "},
        ],
    ),
    (
        "calls of the provider: one still running, with ours",
        "anthropic_messages",
        None,
        [
            USER,
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "server_tool_use",
                        "id": "srvtoolu_1",
                        "name": "web_search",
                        "input": {},
                    },
                    USE,
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "1"}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
                ],
            },
        ],
    ),
]


@pytest.mark.parametrize(
    ("api", "system", "history"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS]
)
def test_every_form_is_written_back_unchanged(api: str, system: Json, history: Json) -> None:
    transcript = Transcript.from_messages(api, history, system=system)  # type: ignore[arg-type]
    assert written(api, transcript) == as_text(system, history)
    loaded = Session.load(json.dumps(Session(transcript).dump())).transcript
    assert written(api, loaded) == as_text(system, history)
    for other in ADAPTERS:
        assert written(other, loaded) == written(other, transcript)


@pytest.mark.parametrize("api", list(HISTORIES))
def test_random_histories_are_written_back_unchanged(api: str) -> None:
    @settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck))
    @given(HISTORIES[api])
    def exact(given_history: tuple[Json, Json]) -> None:
        system, history = given_history
        transcript = Transcript.from_messages(api, history, system=system)  # type: ignore[arg-type]
        assert written(api, transcript) == as_text(system, history)
        again = Transcript.from_messages(api, ADAPTERS[api].messages(transcript), system=system)  # type: ignore[arg-type]
        assert list(again) == list(transcript)

    exact()


# --- arbitrary JSON -------------------------------------------------------------------------------

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
)
KINDS = (
    "text image document tool_use tool_result thinking redacted_thinking server_tool_use "
    "web_search_tool_result "
    "function custom function_call function_call_output message reasoning computer_call "
    "computer_call_output file "
    "tool_search_call tool_search_output mcp_approval_request mcp_approval_response item_reference "
    "image_url "
    "input_text input_file base64 url content search_result compaction shell_call shell_call_output"
).split()
WORDS = (
    "role content type id call_id tool_call_id tool_use_id name tool_calls function_call function "
    "arguments input "
    "output text thinking signature data source url image_url file summary status execution action "
    "is_error refusal "
    "audio custom approval_request_id approve file_data media_type"
).split()
roles = st.sampled_from(["user", "assistant", "system", "developer", "tool", "function"])
fields = st.fixed_dictionaries(
    {},
    optional={
        **{word: leaves | st.sampled_from(["c1", "c2"]) for word in WORDS},
        "type": st.sampled_from(KINDS) | leaves,
        "role": roles,
    },
)


def nested(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.builds(
        lambda base, extra: {**base, **extra},
        fields,
        st.dictionaries(
            st.sampled_from(
                [
                    "content",
                    "tool_calls",
                    "function",
                    "source",
                    "output",
                    "input",
                    "file",
                    "image_url",
                ]
            ),
            inner | st.lists(inner, max_size=3),
            max_size=2,
        ),
    )


# Most entries are somebody's whose words need no answer, so that most histories are read; the rest
# is anything.
tame = st.builds(
    lambda role, entry: {**entry, "role": role, "type": "message"},
    st.sampled_from(["user", "assistant"]),
    st.recursive(fields, nested, max_leaves=8),
)
wild = st.recursive(fields, nested, max_leaves=8) | values
odd = (
    st.lists(tame, max_size=4)
    | st.lists(tame, max_size=4)
    | st.lists(tame | wild, max_size=5)
    | values
)


def as_system(api: str, system: Json) -> Json:
    """A text as the APIs write it that take none as it is."""
    if not isinstance(system, str) or api not in ("gemini_generate_content", "bedrock_converse"):
        return system
    blocks = [{"text": system}] if system.strip() else None
    return {"parts": blocks} if blocks and api == "gemini_generate_content" else blocks


@pytest.mark.parametrize("api", list(ADAPTERS))
def test_any_json_is_written_back_equal_or_refused(api: str) -> None:
    @settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck))
    @given(odd, st.none() | st.text(max_size=4) | values, st.sampled_from([None, True, False]))
    def exact(history: Json, system: Json, held: bool | None) -> None:
        try:
            transcript = Transcript.from_messages(
                api, history, system=system, server_held_prefix=held
            )  # type: ignore[arg-type]
        except TranscriptError:
            return
        if api not in SYSTEM and system is not None:
            history, system = [{"role": "system", "content": system}, *history], None
        assert written(api, transcript) == as_text(as_system(api, system), history)
        loaded = Session.load(json.dumps(Session(transcript).dump())).transcript
        for other in ADAPTERS:
            assert written(other, loaded) == written(other, transcript)
            assert (body_of(other, loaded) is None) == (body_of(other, transcript) is None)
        for model in (None, "claude-3-5-haiku-latest"):
            with contextlib.suppress(TranscriptError):
                AnthropicMessages.request(transcript, model=model, cache="auto")

    exact()


# --- objects of the SDKs --------------------------------------------------------------------------


def test_objects_of_the_openai_sdk_are_read_as_it_would_send_them() -> None:
    from openai.types.chat import ChatCompletion, ParsedChatCompletionMessage

    made = {
        "id": "c1",
        "type": "function",
        "function": {"name": "f", "arguments": '{"parsed": 1}', "x": 1},
    }
    message = {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "annotations": [],
        "tool_calls": [made],
        "y": {},
    }
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    reply = {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [choice],
    }
    answer = ChatCompletion.model_validate(reply).choices[0].message
    parsed = ParsedChatCompletionMessage[Any].model_validate({**message, "parsed": None})
    result = {"role": "tool", "tool_call_id": "c1", "content": "1"}
    history = [USER, answer, result, parsed, result]
    transcript = Transcript.from_messages("openai_chat", history)
    assert OpenAIChat.messages(transcript) == [USER, message, result, message, result]


def test_items_of_the_responses_sdk_are_read_as_it_would_send_them() -> None:
    from openai.types.responses import Response

    output = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c1",
            "name": "f",
            "arguments": "{}",
            "status": "completed",
        },
        {
            "type": "function_call",
            "id": "fc_2",
            "call_id": "c2",
            "name": "f",
            "arguments": "{}",
            "caller": {"type": "direct"},
        },
    ]
    reply = {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": "m",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    items = Response.model_validate(reply).output
    outputs = [{"type": "function_call_output", "call_id": c, "output": "1"} for c in ("c1", "c2")]
    transcript = Transcript.from_messages(
        "openai_responses", [USER, *items, *outputs], system="Be brief."
    )
    assert OpenAIResponses.messages(transcript) == [USER, *output, *outputs]
    assert OpenAIResponses.system(transcript) == "Be brief."


def test_blocks_of_the_anthropic_sdk_are_read_as_it_would_send_them() -> None:
    from anthropic.types import Message as Reply
    from anthropic.types import ParsedTextBlock

    content = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "x", "citations": None},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"parsed_output": 1}},
    ]
    usage = {"input_tokens": 1, "output_tokens": 1}
    reply = Reply.model_validate(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": content,
            "usage": usage,
        }
    )
    result = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": reply.content[1:2]}],
    }
    parsed = ParsedTextBlock[Any].model_validate(
        {"type": "text", "text": "y", "parsed_output": {"a": 1}}
    )
    made = [{"role": "assistant", "content": said} for said in (reply.content, [parsed])]
    history = (entry for entry in [USER, made[0], result, made[1]])
    transcript = Transcript.from_messages("anthropic_messages", history)
    assert AnthropicMessages.messages(transcript) == [
        USER,
        {"role": "assistant", "content": content},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": content[1:2]}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "y"}]},
    ]


def test_contents_of_the_gemini_sdk_are_read_as_it_would_send_them() -> None:
    """It has signatures and images as bytes, which are base64 on the wire."""
    from google.genai import types

    content = {
        "role": "model",
        "parts": [
            {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "AY89a18w"},
        ],
    }
    answer = types.GenerateContentResponse.model_validate({"candidates": [{"content": content}]})
    (candidate,) = answer.candidates or []
    shown = types.Part(inline_data=types.Blob(data=PNG, mime_type="image/png"))
    asked = types.Content(role="user", parts=[types.Part(text="x"), shown])
    by_hand = {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}]}
    result = {"functionResponse": {"name": "f", "response": {"output": "1"}}}
    results = {"role": "user", "parts": [result]}
    history = [asked, candidate.content, results, by_hand]
    transcript = Transcript.from_messages("gemini_generate_content", history)
    image = {"inlineData": {"data": PNG_TEXT, "mimeType": "image/png"}}
    assert ADAPTERS["gemini_generate_content"].messages(transcript) == [
        {"role": "user", "parts": [{"text": "x"}, image]},
        content,
        results,
        {"role": "user", "parts": [image]},
    ]
    assert image_of(transcript) == PNG


def test_messages_of_the_ollama_sdk_are_read_as_it_would_send_them() -> None:
    import ollama

    message = ollama.Message(role="user", content="x", images=[ollama.Image(value=PNG)])
    by_hand = {"role": "user", "content": "y", "images": [PNG, bytearray(PNG)]}
    transcript = Transcript.from_messages("ollama_chat", [message, by_hand])
    assert ADAPTERS["ollama_chat"].messages(transcript) == [
        {"role": "user", "content": "x", "images": [PNG_TEXT]},
        {"role": "user", "content": "y", "images": [PNG_TEXT, PNG_TEXT]},
    ]
    assert image_of(transcript) == PNG


def image_of(transcript: Transcript) -> bytes | None:
    """The first image that the user shows, as other APIs are sent it."""
    (first, *_) = [item for item in transcript if isinstance(item, Message)]
    (image,) = [part for part in first.parts if isinstance(part, ImagePart)]
    return image.data


# --- going on -------------------------------------------------------------------------------------


def test_it_goes_on_with_a_model_and_keeps_what_it_was() -> None:
    history = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
    ]
    session = Session(Transcript.from_messages("openai_chat", history))
    result = session.text_turn(ScriptedModel([Reply("Done.")])).collect_sync()
    session.push_user("More")
    assert result.text == "Done."
    assert OpenAIChat.messages(session.transcript)[:3] == history
    assert [turn.text for turn in session.turns()] == ["", "Done."]


def test_ids_of_its_calls_count_as_used_C6() -> None:
    history = [
        USER,
        {"role": "assistant", "content": [USE, USE_2]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": i, "content": "1"} for i in ("t1", "t2")
            ],
        },
    ]
    transcript = Transcript.from_messages("anthropic_messages", history)
    again = AnthropicMessages.response(
        {"content": [USE, {**USE_2, "id": "t3"}], "stop_reason": "tool_use"}
    )
    assert [call.id for call in transcript.fresh_ids(again).calls] == ["call00003", "t3"]


def test_its_failed_calls_count_as_repeats_C3() -> None:
    blocks = [{"type": "tool_result", "tool_use_id": "t1", "content": "no", "is_error": True}]
    history = [USER, {"role": "assistant", "content": [USE]}, {"role": "user", "content": blocks}]
    transcript = Transcript.from_messages("anthropic_messages", history)
    assert transcript.failures("f", '{"a": 2, "b": 1}') == 1
    assert transcript.failures("f", "{}") == 0


def test_a_turn_of_it_that_is_paused_can_be_continued_and_takes_no_text_R6() -> None:
    running = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    history = [USER, {"role": "assistant", "content": [running]}]
    transcript = Transcript.from_messages("anthropic_messages", history)
    assert transcript.turns()[0].finish_reason == "paused"
    assert AnthropicMessages.request(transcript)["messages"] == history
    with pytest.raises(TranscriptError, match="takes no text"):
        transcript.push_user("And?")


def test_reasoning_that_no_longer_verifies_leaves_what_was_read_R5() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    anthropic = Transcript.from_messages(
        "anthropic_messages",
        [USER, {"role": "assistant", "content": [thinking, USE], "x": 1}, {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "1"}]}],
    )  # fmt: skip
    chat = Transcript.from_messages(
        "openai_chat", [USER, {"role": "assistant", "content": "x", "reasoning": "hm"}]
    )
    responses = Transcript.from_messages(
        "openai_responses",
        [
            USER,
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": "x"},
        ],
    )
    for transcript in (anthropic, chat, responses):
        transcript._stable[1] = replace(transcript.turns()[0], reasoning_dropped=True)
    assert AnthropicMessages.messages(anthropic)[1] == {
        "role": "assistant",
        "x": 1,
        "content": [USE],
    } or (
        AnthropicMessages.messages(anthropic)[1] == {"role": "assistant", "content": [USE], "x": 1}
    )
    assert OpenAIChat.messages(chat)[1] == {"role": "assistant", "content": "x"}
    assert OpenAIResponses.messages(responses)[1:] == [
        {"type": "message", "role": "assistant", "content": "x"}
    ]


def test_breakpoints_of_the_cache_are_set_on_what_was_read_and_counted() -> None:
    """The four breakpoints of a request hold with those that the history has."""
    marked = {"type": "text", "text": "see", "cache_control": {"type": "ephemeral"}}
    plain = Transcript.from_messages(
        "anthropic_messages", [USER, {"role": "assistant", "content": "x"}, USER], system="s"
    )
    body = AnthropicMessages.request(plain, cache="auto")
    breakpoint = {"cache_control": {"type": "ephemeral"}}
    assert body["system"] == [{"type": "text", "text": "s", **breakpoint}]
    assert body["messages"][-1] == {
        "role": "user",
        "content": [{"type": "text", "text": "Go", **breakpoint}],
    }
    full = Transcript.from_messages(
        "anthropic_messages", [{"role": "user", "content": [marked] * 3}], system=[marked]
    )
    body = AnthropicMessages.request(full, cache="auto")
    assert body["messages"] == [{"role": "user", "content": [marked] * 3}]
    assert body["system"] == [marked]
    full.push_system("More.")
    assert len(AnthropicMessages.request(full, cache="auto")["system"]) == 1


@pytest.mark.parametrize("content", ["The answer is", [{"type": "text", "text": "The answer is"}]])
def test_the_beginning_of_an_answer_is_sent_as_it_was_read(content: Json) -> None:
    history = [USER, {"role": "assistant", "content": content, "x_unknown": 1}]
    transcript = Transcript.from_messages("anthropic_messages", history)
    assert (
        AnthropicMessages.request(transcript, model="claude-3-5-haiku-latest")["messages"]
        == history
    )
    with pytest.raises(TranscriptError, match="nothing to answer"):
        AnthropicMessages.request(transcript, model="claude-sonnet-5")


def test_what_is_pushed_joins_the_system_that_was_read() -> None:
    marked = {"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}
    for system, first in (("s", {"type": "text", "text": "s"}), ([marked], marked)):
        transcript = Transcript.from_messages("anthropic_messages", [], system=system)
        transcript.push_system("More.")
        transcript.push_user("Go")
        assert AnthropicMessages.request(transcript)["system"] == [
            first,
            {"type": "text", "text": "More."},
        ]
    transcript = Transcript.from_messages("openai_responses", [], system="s")
    with pytest.raises(TranscriptError, match="instructions only"):
        OpenAIResponses.request(transcript)
    transcript.push_user("Go")
    assert OpenAIResponses.request(transcript) == {"input": [USER], "instructions": "s"}
    assert OpenAIResponses.request(transcript, instructions="mine")["instructions"] == "mine"


def test_a_transcript_of_our_own_can_be_read_back() -> None:
    transcript = Transcript()
    transcript.push_system("Be brief.")
    transcript.push_user("Go")
    transcript.append_turn(
        OpenAIChat.response({"choices": [{"message": {"role": "assistant", "content": "Done."}}]})
    )
    for api, adapter in ADAPTERS.items():
        system = adapter.system(transcript)
        again = Transcript.from_messages(api, adapter.messages(transcript), system=system)  # type: ignore[arg-type]
        assert written(api, again) == written(api, transcript)
        assert [type(item) for item in again] == [Message, Message, AssistantTurn]


def test_items_say_what_was_read() -> None:
    history = [
        USER,
        {"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "zebra"}, USE]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "1"},
                {"type": "text", "text": "y"},
            ],
        },
    ]
    transcript = Transcript.from_messages("anthropic_messages", history)
    user, turn, results, said = transcript
    assert isinstance(user, Message)
    assert isinstance(turn, AssistantTurn)
    assert isinstance(results, ToolResults)
    assert isinstance(said, Message)
    assert (user.text, turn.text, turn.finish_reason) == ("Go", "x", "tool_calls")
    assert OpaqueBlock("zebra") in turn.blocks
    assert [type(block) for block in turn.calls] == [CallBlock]
    assert results.results[0].text == "1"
    assert said.text == "y"
    assert said.verbatim == Verbatim("anthropic_messages", ())
    assert pickle.loads(pickle.dumps(list(transcript))) == list(transcript)


def test_content_may_come_as_any_sequence_or_mapping() -> None:
    part = MappingProxyType({"type": "text", "text": "Go"})
    plain = [{"role": "user", "content": [{"type": "text", "text": "Go"}]}]
    for content in ((part,), (entry for entry in [part]), deque([part])):
        history = [MappingProxyType({"role": "user", "content": content})]
        assert OpenAIChat.messages(Transcript.from_messages("openai_chat", history)) == plain


@pytest.mark.parametrize(
    "searched",
    [
        [{"type": "tool_search_call", "execution": "client", "arguments": {}}],
        [
            {"type": "tool_search_call", "call_id": "c1", "arguments": {}},
            {"type": "tool_search_output", "call_id": "c1", "tools": []},
        ],
        [
            {"type": "tool_search_call", "call_id": "c1", "execution": "client", "arguments": {}},
            {"type": "tool_search_output", "call_id": "c1", "tools": []},
        ],
    ],
    ids=["without an id", "the provider's", "the client's"],
)
def test_what_the_check_takes_of_searches_for_tools_is_read(searched: list[dict[str, Any]]) -> None:
    items = [{"role": "user", "content": "x"}, *searched, {"role": "user", "content": "y"}]
    assert check_messages("openai_responses", items) == []
    assert OpenAIResponses.messages(Transcript.from_messages("openai_responses", items)) == items
