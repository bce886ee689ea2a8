"""Requests of the Messages API: what each item becomes, what is refused, and that every legal
transcript can be sent.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import AssistantTurn, FilePart, ImagePart, TextPart, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.anthropic.prepared import encoder_of
from lutumpy.core.tool_specs import ToolMode
from lutumpy.errors import DeclarationError, InvalidToolConstraints, TranscriptError
from lutumpy.models import (
    CallBlock,
    Message,
    OpaqueBlock,
    ReasoningBlock,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    ToolOffering,
    ToolResults,
    ToolSpec,
)
from lutumpy.plain import json_values
from lutumpy.rules.anthropic.messages import check_request

FIXTURES = Path(__file__).parents[2] / "fixtures" / "anthropic_messages.jsonl"
ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in FIXTURES.read_text(encoding="utf-8").splitlines()
]
OLD, NEW, LATEST = "claude-sonnet-4-5", "claude-opus-4-8", "claude-opus-5-5"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"q": {"type": "string"}},
    "required": ["q"],
    "additionalProperties": False,
}
request = AnthropicMessages.request


def started(text: str = "hi") -> Transcript:
    transcript = Transcript()
    transcript.push_user(text)
    return transcript


def reply(*content: Any, stop_reason: str | None = "end_turn", **fields: Any) -> AssistantTurn:
    return AnthropicMessages.response(
        {"content": list(content), "stop_reason": stop_reason, **fields}
    )


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def tool_use(call_id: str, name: str = "search", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}, **fields}


def commit(
    transcript: Transcript, turn: AssistantTurn, *contents: Any, status: Any = "ok"
) -> AssistantTurn:
    turn = transcript.fresh_ids(turn)
    given = [*contents, *["ok"] * len(turn.calls)]
    calls = [call for call in turn.calls if call.answerable]
    results = [
        ResultBlock(c.id, c.name, content, status, c.kind)
        for c, content in zip(calls, given, strict=False)
    ]
    transcript.append_turn(turn, ToolResults(tuple(results)) if calls else None)
    return turn


def offering(
    *names: str, mode: ToolMode = "auto", parallel: bool = True, strict: bool | None = None
) -> ToolOffering:
    specs = tuple([ToolSpec(name, f"Does {name}.", SCHEMA, strict) for name in names])
    return ToolOffering(specs, mode, names[0] if mode == "specific" else None, parallel)


# --- messages -------------------------------------------------------------------------------------


def test_the_smallest_request() -> None:
    assert request(started()) == {
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_options_become_parameters_and_extra_wins() -> None:
    body = request(
        started(),
        model=NEW,
        temperature=0.5,
        max_output_tokens=10,
        stream=True,
        thinking={"type": "adaptive"},
        top_k=3,
        extra={"top_k": 4, "metadata": {"user_id": "u"}},
    )
    assert body == {
        "max_tokens": 10,
        "temperature": 0.5,
        "stream": True,
        "thinking": {"type": "adaptive"},
        "top_k": 4,
        "metadata": {"user_id": "u"},
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_leading_system_and_developer_messages_become_the_system_parameter() -> None:
    transcript = Transcript()
    transcript.push_system("Be brief.")
    transcript.push_user("hi")
    assert request(transcript)["system"] == "Be brief."
    transcript = Transcript()
    transcript.push_system(["Be brief.", " "])
    transcript.push_developer("Be kind.")
    transcript.push_user("hi")
    assert request(transcript)["system"] == [text("Be brief."), text("Be kind.")]


def test_later_system_messages_are_marked_user_text_where_the_model_takes_nothing_else() -> None:
    transcript = started()
    transcript.push_developer("Be kind.")
    for model in (None, OLD, "anthropic.claude-opus-4-8-v1:0", "llama"):
        assert request(transcript, model=model)["messages"][1:] == [
            {"role": "user", "content": "<system>\nBe kind.\n</system>"}
        ]


def test_later_system_messages_keep_their_role_where_the_model_takes_it() -> None:
    transcript = started()
    transcript.push_system("Be kind.")
    transcript.push_developer("Be brief.")
    held = {"role": "system", "content": [text("Be kind."), text("Be brief.")]}
    assert request(transcript, model=NEW)["messages"][1:] == [held]
    commit(transcript, reply(text("Yes.")))
    transcript.push_user("And?")
    assert request(transcript, model=f"{NEW}-20260528")["messages"][1] == held


def test_a_system_message_before_a_user_message_is_marked_user_text_on_every_model() -> None:
    transcript = started()
    transcript.push_system("Be kind.")
    transcript.push_user("And?")
    roles = [(m["role"], m["content"]) for m in request(transcript, model=NEW)["messages"]]
    assert roles == [("user", "hi"), ("user", "<system>\nBe kind.\n</system>"), ("user", "And?")]


def test_parts_of_a_user_message() -> None:
    transcript = Transcript()
    transcript.push_user(
        [
            "Look:",
            "  ",
            ImagePart(data=b"\x89PNG", media_type="image/png"),
            ImagePart(url="https://example.org/a.png"),
            ImagePart(data=b"x", media_type="image/tiff"),
            FilePart(data=b"%PDF", media_type="application/pdf", filename="a.pdf"),
            FilePart(url="https://example.org/a.pdf"),
            FilePart(data="ä".encode(), media_type="text/plain; charset=utf-8"),
            FilePart(data=b"PK", media_type="application/zip", filename="a.zip"),
        ]
    )
    assert request(transcript)["messages"][0]["content"] == [
        text("Look:"),
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="},
        },
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        text("[image left out: image/tiff, 1 bytes]"),
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": "a.pdf",
        },
        {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "ä"}},
        text("[file left out: a.zip, application/zip, 2 bytes]"),
    ]


def test_what_the_api_does_not_take_is_named_in_its_place() -> None:
    transcript = Transcript()
    transcript.push_user(
        [
            ImagePart(data=b"", media_type="image/png"),
            FilePart(data=b"", media_type="application/pdf", filename="e.pdf"),
            FilePart(data=b" \n", media_type="text/plain", filename="blank.txt"),
            FilePart(url="https://example.org/a.csv", media_type="text/csv", filename="a.csv"),
        ]
    )
    content = request(transcript)["messages"][0]["content"]
    assert [block["type"] for block in content] == ["text"] * 4
    assert [block["text"].partition(":")[0] for block in content] == ["[image left out"] + [
        "[file left out"
    ] * 3
    for block, name in zip(content[1:], ("e.pdf", "blank.txt", "a.csv"), strict=True):
        assert name in block["text"]


# --- answers and results --------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["source"].rsplit("/", 1)[-1])
def test_a_recorded_answer_goes_back_byte_for_byte(row: dict[str, Any]) -> None:
    transcript = started()
    turn = commit(transcript, AnthropicMessages.response(row["response"]))
    transcript.append(Message("user", (TextPart("go on"),))) if not turn.results_only else None
    body = request(transcript)
    assert body["messages"][1] == {"role": "assistant", "content": json.loads(turn.native)}
    # Two rows begin with the late result of a server tool that the turn before them called.
    late = (
        {"anthropic.use_for_server_result"}
        if row["response"]["content"][0]["type"].endswith("_tool_result")
        else set()
    )
    assert {
        p.rule for p in check_request({"model": LATEST, **body}) if p.certainty == "refused"
    } == late


def test_recorded_follow_ups_carry_earlier_answers_as_this_encoder_does() -> None:
    """Compared without what recorders added or left out: cache breakpoints, `caller`, nulls."""
    answers = {
        block["id"]: row["response"]
        for row in ROWS
        for block in row["response"]["content"]
        if block["type"] in ("tool_use", "server_tool_use")
    }

    def bare(blocks: Any) -> Any:
        return [
            {k: v for k, v in b.items() if k not in ("cache_control", "caller") and v is not None}
            for b in blocks
        ]

    compared = 0
    for row in ROWS:
        for message in row["request"]["messages"]:
            if message["role"] != "assistant" or not isinstance(message["content"], list):
                continue
            answer = answers.get(next((b["id"] for b in message["content"] if "id" in b), ""))
            if answer is None or row["source"].endswith(
                "web_fetch_tool.yaml#1"
            ):  # its recorder added a null further in
                continue
            assert bare(message["content"]) == bare(
                json.loads(AnthropicMessages.response(answer).native)
            )
            compared += 1
    assert compared >= 4


def test_all_results_stand_in_one_user_message_in_call_order() -> None:
    transcript = started()
    commit(transcript, reply(tool_use("a"), tool_use("b"), stop_reason="tool_use"), "one", "two")
    transcript.push_user("thanks")
    assert request(transcript)["messages"][2:] == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                {"type": "tool_result", "tool_use_id": "b", "content": "two"},
            ],
        },
        {"role": "user", "content": "thanks"},
    ]


def test_results_of_every_form() -> None:
    def result(content: Any, status: Any = "ok") -> Any:
        transcript = started()
        commit(transcript, reply(tool_use("a")), content, status=status)
        return request(transcript)["messages"][2]["content"][0]

    head = {"type": "tool_result", "tool_use_id": "a"}
    image = ImagePart(url="https://example.org/a.png")
    assert result("") == head
    assert result(" \n") == head
    assert result(()) == head
    assert result((TextPart("x"), TextPart(""), image)) == {
        **head,
        "content": [
            text("x"),
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        ],
    }
    assert result("boom", "error") == {**head, "is_error": True, "content": "boom"}
    assert result((TextPart("x"), image), "rejected") == {
        **head,
        "is_error": True,
        "content": "x\n[image left out: https://example.org/a.png]",
    }
    assert result("", "error") == {**head, "is_error": True, "content": "search: error"}


def test_a_toolset_call_is_answered_with_its_toolset() -> None:
    transcript = started()
    commit(
        transcript,
        reply(tool_use("a", "left_click", toolset_name="computer")),
        "no",
        status="rejected",
    )
    assert request(transcript)["messages"][2]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "toolset_name": "computer",
            "is_error": True,
            "content": "no",
        }
    ]


def test_calls_made_by_code_execution_are_answered_with_their_container() -> None:
    transcript = started()
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    running = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "code_execution",
        "input": {"code": "x"},
    }
    container = {"id": "container_1", "expires_at": "2026-11-21T00:00:00Z"}
    commit(
        transcript,
        reply(running, tool_use("a", caller=caller), stop_reason="tool_use", container=container),
    )
    assert request(transcript)["container"] == "container_1"
    assert request(transcript, container="mine")["container"] == "mine"
    commit(transcript, reply(tool_use("b", caller={"type": "direct"}), container=container))
    assert "container" not in request(transcript)


@pytest.mark.parametrize("called_by", [None, {"type": "direct"}])
def test_a_call_beside_code_that_still_runs_is_answered_with_its_container(called_by: Any) -> None:
    """ "container_id is required when there are pending tool uses generated by code execution"."""
    transcript = started()
    running = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "x"},
        "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_0"},
    }
    call = tool_use("a") if called_by is None else tool_use("a", caller=called_by)
    commit(
        transcript,
        reply(running, call, stop_reason="tool_use", container={"id": "container_1"}),
    )
    assert request(transcript)["container"] == "container_1"


def test_a_pause_while_code_runs_goes_on_in_its_container() -> None:
    transcript = started()
    running = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "code_execution",
        "input": {"code": "x"},
    }
    commit(transcript, reply(running, stop_reason="pause_turn", container={"id": "container_1"}))
    assert request(transcript)["container"] == "container_1"


def test_skills_are_loaded_into_the_container_that_has_to_be_named() -> None:
    transcript = started()
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    skills = [{"type": "anthropic", "skill_id": "pptx", "version": "latest"}]
    assert request(transcript, container={"skills": skills})["container"] == {"skills": skills}
    commit(
        transcript,
        reply(tool_use("a", caller=caller), container={"id": "container_1"}),
    )
    for own in ({"skills": skills}, {"id": None, "skills": skills}):
        sent = request(transcript, container=own)["container"]
        assert sent == {"id": "container_1", "skills": skills}
    named = {"id": "mine", "skills": skills}
    assert request(transcript, container=named)["container"] == named


def test_ids_and_names_that_the_wire_refuses_are_replaced_in_call_and_result_alike() -> None:
    transcript = started()
    long = "n" * 201
    commit(
        transcript,
        reply(tool_use("functions.search:0"), tool_use("ok_1", ""), tool_use("ok_2", long)),
    )
    assistant, user = request(transcript)["messages"][1:]
    ids = [block["id"] for block in assistant["content"]]
    assert [block["tool_use_id"] for block in user["content"]] == ids
    assert ids[1:] == ["ok_1", "ok_2"]
    assert ids[0].startswith("toolu_")
    assert assistant["content"][0]["name"] == "search"
    assert all(1 <= len(block["name"]) <= 200 for block in assistant["content"])
    assert transcript.turns()[0].calls[0].id == "functions.search:0"
    assert request(transcript)["messages"][1:] == [assistant, user]


def test_dropped_reasoning_is_left_out_and_so_is_a_turn_of_nothing_else() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    transcript = started()
    transcript.append_turn(replace(reply(thinking, text("Yes.")), reasoning_dropped=True))
    transcript.push_user("And?")
    transcript.append_turn(
        replace(reply(thinking, {"type": "redacted_thinking", "data": "x"}), reasoning_dropped=True)
    )
    assert request(transcript)["messages"][1:] == [
        {"role": "assistant", "content": [text("Yes.")]},
        {"role": "user", "content": "And?"},
    ]


def foreign(*blocks: Any, **fields: Any) -> AssistantTurn:
    calls = tuple([block for block in blocks if isinstance(block, CallBlock)])
    return AssistantTurn("openai_responses", blocks, b"[]", calls, **fields)


def test_a_turn_of_another_api_is_projected() -> None:
    transcript = started()
    turn = foreign(
        ReasoningBlock("Hm.", signed=True),
        TextBlock("Let me see."),
        TextBlock(" "),
        RefusalBlock("Not that."),
        OpaqueBlock("web_search_call"),
        CallBlock("call|1", "a b", '{"q": 1}', position=0),
        CallBlock("c2", "search", "", position=1),
        CallBlock("c3", "search", '{"q', position=2),
        CallBlock("c4", "search", "[1]", position=3),
        CallBlock("c5", "apply_patch", "*** Begin", kind="custom", position=4),
        CallBlock("c6", "computer", "{}", kind="computer", position=-1),
    )
    commit(transcript, turn)
    assistant, user = request(transcript)["messages"][1:]
    renamed = assistant["content"][2]
    assert assistant["content"] == [
        text("Let me see."),
        text("Not that."),
        {"type": "tool_use", "id": renamed["id"], "name": renamed["name"], "input": {"q": 1}},
        tool_use("c2"),
        tool_use("c3", input={"INVALID_JSON": '{"q'}),
        tool_use("c4", input={"INVALID_JSON": "[1]"}),
        tool_use("c5", "apply_patch", input={"input": "*** Begin"}),
    ]
    assert [block["tool_use_id"] for block in user["content"]] == [
        renamed["id"],
        "c2",
        "c3",
        "c4",
        "c5",
    ]
    assert set(renamed["id"] + renamed["name"]) <= set(string.ascii_letters + string.digits + "_-")


# --- nothing to answer, prefill, pause ------------------------------------------------------------


def finished(turn: AssistantTurn) -> Transcript:
    transcript = started()
    commit(transcript, turn)
    return transcript


def assistant_pushed() -> Transcript:
    transcript = started()
    transcript.push_assistant("The answer is \n")
    return transcript


def system_only() -> Transcript:
    transcript = Transcript()
    transcript.push_system("x")
    return transcript


@pytest.mark.parametrize(
    "make", [Transcript, system_only, assistant_pushed, lambda: finished(reply(text("Yes.")))]
)
@pytest.mark.parametrize("model", [None, "claude-sonnet-4-6", "claude-opus-5", "some-model"])
def test_nothing_to_answer_is_refused(make: Callable[[], Transcript], model: str | None) -> None:
    with pytest.raises(TranscriptError, match="nothing to answer"):
        request(make(), model=model)


@pytest.mark.parametrize(
    "model",
    [
        "claude-3-5-sonnet-latest",
        "claude-3-haiku-20240307",
        "claude-sonnet-4-20250514",
        "claude-opus-4-1-20250805",
        "claude-sonnet-4-5",
        "claude-haiku-4-5-20251001",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "claude-opus-4-5@20251101",
        "anthropic/claude-opus-4.5",
    ],
)
def test_models_before_4_6_take_the_beginning_of_an_answer(model: str) -> None:
    last = {"role": "assistant", "content": "The answer is"}
    assert request(assistant_pushed(), model=model)["messages"][-1] == last
    turn = finished(reply(text("One"), text("two \n")))
    assert request(turn, model=model)["messages"][-1]["content"] == [text("One"), text("two")]
    turn.push_user("And?")
    assert request(turn, model=model)["messages"][1]["content"] == [text("One"), text("two \n")]


def test_a_paused_turn_is_resumed_as_it_is() -> None:
    running = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "x"},
    }
    transcript = finished(reply(text("Searching "), running, stop_reason="pause_turn"))
    last = {"role": "assistant", "content": [text("Searching "), running]}
    assert request(transcript, model=LATEST)["messages"][-1] == last
    with pytest.raises(TranscriptError):
        transcript.push_user("Well?")


@pytest.mark.parametrize("model", [LATEST, "claude-sonnet-4-5"])
@pytest.mark.parametrize("words", ["Wait", "Wait \n", " "])
def test_a_paused_answer_of_text_alone_is_no_wrong_prefill_C10(model: str, words: str) -> None:
    """A model with prefill can't tell the two apart; another gets it as it came."""
    thinking = {"type": "thinking", "thinking": "Hm", "signature": "s"}
    transcript = finished(reply(thinking, text(words), stop_reason="pause_turn"))
    sent = request(transcript, model=model)["messages"]
    if model == LATEST:
        assert sent[-1]["content"] == [thinking, text(words)]
    else:
        shortened = [thinking, text("Wait")] if words.strip() else "hi"
        assert sent[-1]["content"] == shortened
    transcript.push_user("Well?")
    assert request(transcript, model=model)["messages"][1]["content"] == [thinking, text(words)]


def test_a_turn_that_was_paused_after_a_compaction_is_resumed_as_it_is_C10() -> None:
    summary = {"type": "compaction", "content": "What was said so far."}
    transcript = finished(reply(summary, stop_reason="compaction"))
    last = {"role": "assistant", "content": [summary]}
    sent = request(transcript, model=LATEST)
    assert sent["messages"][-1] == last
    assert check_request({"model": LATEST, **sent}) == []
    # The history alone says so, too.
    read = Transcript.from_messages("anthropic_messages", sent["messages"])
    assert request(read, model=LATEST)["messages"][-1] == last
    transcript.push_user("Well?")
    assert request(transcript, model=LATEST)["messages"][-1]["role"] == "user"


RUNNING = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "x"},
}
LATE = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def test_a_server_tool_beside_calls_gets_its_result_in_the_next_answer() -> None:
    transcript = finished(reply(RUNNING, tool_use("a"), stop_reason="tool_use"))
    before = request(transcript)["messages"]
    assert before[1]["content"] == [RUNNING, tool_use("a")]
    commit(transcript, reply(LATE, text("Yes.")))
    transcript.push_user("And?")
    assert request(transcript)["messages"][:3] == before


def test_a_server_tool_whose_result_never_came_is_left_out() -> None:
    """Another provider took the next turn: back here, the API would refuse the call without its
    result.
    """
    transcript = finished(reply(RUNNING, tool_use("a"), stop_reason="tool_use"))
    commit(transcript, foreign(TextBlock("Yes.")))
    transcript.push_user("And?")
    assert request(transcript)["messages"][1]["content"] == [tool_use("a")]
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    transcript = finished(reply(thinking, RUNNING, stop_reason="pause_turn"))
    commit(transcript, foreign(TextBlock("Yes.")))
    transcript.push_user("And?")
    assert [m["role"] for m in request(transcript)["messages"]] == ["user", "assistant", "user"]
    told = encoder_of(transcript, "claude-sonnet-4-5").state.unread
    assert [(turn, what) for turn, what, _ in told] == [(0, "a server's call")]  # OR5


def test_an_empty_turn_is_left_out() -> None:
    transcript = finished(reply())
    assert request(transcript)["messages"] == [{"role": "user", "content": "hi"}]


# --- the offer ------------------------------------------------------------------------------------


def test_tools_are_rendered_once_and_nothing_is_sent_for_none() -> None:
    offer = offering("search", "read")
    body = request(started(), offer)
    assert body["tools"] == [
        {"name": "search", "description": "Does search.", "input_schema": SCHEMA},
        {"name": "read", "description": "Does read.", "input_schema": SCHEMA},
    ]
    assert "tool_choice" not in body
    assert request(started("other"), offer)["tools"] == body["tools"]
    assert set(request(started(), offering(mode="auto"))) == {"max_tokens", "messages"}


@pytest.mark.parametrize(
    ("mode", "parallel", "choice"),
    [
        ("auto", True, None),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", True, {"type": "any"}),
        ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
        ("specific", True, {"type": "tool", "name": "search"}),
        ("specific", False, {"type": "tool", "name": "search", "disable_parallel_tool_use": True}),
    ],
)
def test_tool_choice(mode: ToolMode, parallel: bool, choice: Any) -> None:
    assert (
        request(started(), offering("search", mode=mode, parallel=parallel)).get("tool_choice")
        == choice
    )


@pytest.mark.parametrize("mode", ["required", "specific"])
def test_a_forced_choice_is_refused_where_the_model_is_known_to(mode: ToolMode) -> None:
    offer = offering("search", mode=mode)
    dated, hosted = "claude-sonnet-5-5-20260901", "us.anthropic.claude-opus-5-5-v1:0"
    for refusing in ("claude-fable-5", "claude-mythos-5-1", dated, hosted):
        with pytest.raises(InvalidToolConstraints, match="forced tool choice"):
            request(started(), offer, model=refusing)
    for model in (None, NEW, "claude-sonnet-5", "claude-haiku-5-5", "another"):
        assert "tool_choice" in request(started(), offer, model=model)
    assert "tool_choice" in request(
        started(), offering("search", parallel=False), model="claude-fable-5"
    )


def test_a_forced_choice_is_refused_with_a_thinking_budget() -> None:
    offer = offering("search", mode="required")
    budget = {"type": "enabled", "budget_tokens": 1024}
    with pytest.raises(InvalidToolConstraints, match="thinking"):
        request(started(), offer, model=OLD, thinking=budget)
    assert request(started(), offer, model=NEW, thinking={"type": "adaptive"})["tool_choice"] == {
        "type": "any"
    }
    assert request(started(), offering("search"), model=OLD, thinking=budget)["thinking"] == budget


def test_strict_tools() -> None:
    limited = {**SCHEMA, "properties": {"q": {"type": "string", "maxLength": 5}}}
    open_schema = {"type": "object", "additionalProperties": {"type": "string"}}
    asked = ToolSpec("asked", "d", limited, True)
    left_open = ToolSpec("left_open", "d", SCHEMA)
    refused = ToolSpec("refused", "d", SCHEMA, False)
    impossible = ToolSpec("impossible", "d", open_schema)
    offer = ToolOffering((asked, left_open, refused, impossible))
    assert [tool.get("strict") for tool in request(started(), offer)["tools"]] == [
        True,
        None,
        None,
        None,
    ]
    tools = request(started(), offer, strict=True)["tools"]
    assert [tool.get("strict") for tool in tools] == [True, True, None, None]
    assert "maxLength" not in tools[0]["input_schema"]["properties"]["q"]
    assert tools[3]["input_schema"] == open_schema
    for _ in range(2):
        with pytest.raises(DeclarationError):
            request(started(), ToolOffering((ToolSpec("x", "d", open_schema, True),)))
    both = ToolSpec("both", "d", open_schema)
    request(started(), ToolOffering((both,)), strict=True)
    both.strict = True
    with pytest.raises(DeclarationError):
        request(started(), ToolOffering((both,)))


def test_more_strict_tools_than_a_request_may_have_are_refused() -> None:
    names = [f"t{k}" for k in range(21)]
    with pytest.raises(InvalidToolConstraints, match=r"21 strict tools, 20 at most \(t0, .*t20\)"):
        request(started(), offering(*names, strict=True))
    assert len(request(started(), offering(*names))["tools"]) == 21
    with pytest.raises(InvalidToolConstraints, match="21 strict tools"):
        request(started(), offering(*names), strict=True)
    optional = {
        "type": "object",
        "properties": {f"p{k}": {"type": "string"} for k in range(13)},
        "additionalProperties": False,
    }
    specs = (
        ToolSpec("a", "d", optional, True),
        ToolSpec("b", "d", optional, True),
        ToolSpec("c", "d", SCHEMA, True),
    )
    with pytest.raises(
        InvalidToolConstraints, match=r"26 optional parameters in strict tools, 24 at most \(a, b\)"
    ):
        request(started(), ToolOffering(specs))
    union = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    unions = {
        "type": "object",
        "properties": {f"p{k}": union for k in range(9)},
        "required": [f"p{k}" for k in range(9)],
        "additionalProperties": False,
    }
    with pytest.raises(
        InvalidToolConstraints, match="18 union parameters in strict tools, 16 at most"
    ):
        request(
            started(),
            ToolOffering((ToolSpec("a", "d", unions, True), ToolSpec("b", "d", unions, True))),
        )


def test_names_that_the_api_refuses_are_refused_here() -> None:
    for name in ("", "a b", "n" * 129):
        with pytest.raises(InvalidToolConstraints, match="tool names"):
            request(started(), offering(name))
    with pytest.raises(InvalidToolConstraints, match="unique"):
        request(started(), offering("a", "a"))


# --- one request after the other ------------------------------------------------------------------


def test_each_request_is_a_prefix_of_the_next() -> None:
    transcript = Transcript()
    transcript.push_system("x")
    before: list[Any] = []
    for number in range(4):
        transcript.push_user(f"question {number}")
        if number == 2:
            transcript.push_system("Be kind.")
        for _ in range(2):
            now = request(transcript, model=NEW)["messages"]
            assert now[: len(before)] == before
            before = now
            commit(transcript, reply(tool_use(f"id{len(transcript)}"), stop_reason="tool_use"))
        commit(transcript, reply(text("Yes.")))


def test_the_body_is_new_each_time() -> None:
    transcript = started()
    request(transcript)["messages"][0]["content"] = "changed"
    assert request(transcript)["messages"][0]["content"] == "hi"


def test_ephemerals_are_sent_once_and_leave_no_trace() -> None:
    transcript = started()
    plain = request(transcript)
    transcript.push_ephemeral_user("now is 12:00")
    assert len(request(transcript)["messages"]) == 2
    transcript.request_succeeded(reply(text("x")), len(transcript))
    assert request(transcript) == plain
    assert request(transcript.fork()) == plain


# --- every legal transcript can be sent -----------------------------------------------------------

TEXT = st.text(st.characters(codec=None), max_size=6)
VISIBLE = TEXT.map(lambda value: value + "x")
JSONS: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
IDS = st.none() | st.sampled_from(("", "a", "toolu_1", "call|1", "ä")) | TEXT
NAMES = st.none() | st.sampled_from(("", "search", "a b", "n" * 300)) | TEXT
SERVER_TOOL = {"type": "web_search_20250305", "name": "web_search"}


def present(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


OWN_BLOCK = st.one_of(
    st.builds(lambda t: present(type="text", text=t), st.none() | TEXT),
    st.builds(
        lambda t, s: present(type="thinking", thinking=t, signature=s),
        st.none() | TEXT,
        st.none() | TEXT,
    ),
    st.builds(lambda d: present(type="redacted_thinking", data=d), st.none() | TEXT),
    st.builds(lambda i, n, v: present(type="tool_use", id=i, name=n, input=v), IDS, NAMES, JSONS),
    st.builds(
        lambda i, n, v: tool_use("x", caller=None) | present(id=i, name=n, input=v),
        IDS,
        NAMES,
        JSONS,
    ),
    JSONS,
)
OWN_TURN = st.builds(
    # Only an answer with a tool of the provider is ever paused.
    lambda blocks, stop, server: reply(
        *blocks, *server, stop_reason=stop if server or stop != "pause_turn" else None
    ),
    st.lists(OWN_BLOCK, max_size=4),
    st.sampled_from(("end_turn", "tool_use", "max_tokens", "refusal", "pause_turn", "odd")),
    st.sampled_from(
        (
            [],
            [],
            [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}],
        )
    ),
)
FOREIGN_BLOCK = st.one_of(
    st.builds(TextBlock, TEXT.map(json_values.clean_text)),
    st.builds(ReasoningBlock, st.just("Hm."), st.booleans()),
    st.builds(RefusalBlock, TEXT.map(json_values.clean_text)),
    st.builds(OpaqueBlock, st.just("x")),
    st.builds(
        lambda i, n, a, k, p: CallBlock(i or "", n or "", a, k, position=p),
        IDS,
        NAMES,
        TEXT | JSONS.map(json_values.encode_text),
        st.sampled_from(("function", "custom")),
        st.sampled_from((0, -1)),
    ),
)


@st.composite
def foreign_turns(draw: st.DrawFn) -> AssistantTurn:
    blocks = draw(st.lists(FOREIGN_BLOCK, max_size=4))
    entries: list[dict[str, str]] = []
    for index, block in enumerate(blocks):
        if isinstance(block, CallBlock) and block.answerable:
            blocks[index] = replace(block, position=len(entries))
            entries.append({"id": block.id})
    calls = tuple([block for block in blocks if isinstance(block, CallBlock)])
    finish: Any = draw(st.sampled_from(("stop", "tool_calls", "paused")))
    native = json_values.encode(entries) if blocks else b""
    return AssistantTurn("openai_responses", tuple(blocks), native, calls, finish_reason=finish)


CONTENTS = st.one_of(
    TEXT.map(json_values.clean_text),
    st.lists(
        st.sampled_from(
            (
                TextPart(""),
                TextPart("x"),
                ImagePart(url="https://e.org/a"),
                FilePart(data=b"", media_type="text/plain"),
            )
        ),
        max_size=3,
    ).map(tuple),
)
STEPS = st.one_of(
    st.tuples(
        st.sampled_from(("user", "system", "developer", "assistant")), VISIBLE, st.booleans()
    ),
    st.tuples(
        OWN_TURN | foreign_turns(),
        st.lists(CONTENTS, max_size=5),
        st.sampled_from(("ok", "error", "rejected")),
    ),
)


@pytest.mark.pure
@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(st.lists(STEPS, max_size=7), st.sampled_from((None, OLD, NEW, LATEST)))
def test_whatever_was_committed_is_a_request_that_the_api_takes(
    steps: Any, model: str | None
) -> None:
    transcript = Transcript()
    for step in steps:
        try:
            if isinstance(step[0], AssistantTurn):
                turn, contents, status = step
                if len(transcript):
                    transcript.request_succeeded(turn, len(transcript))
                    commit(transcript, turn, *contents, status=status)
            else:
                role, content, ephemeral = step
                getattr(transcript, f"push_{'ephemeral_' if ephemeral else ''}{role}")(content)
        except TranscriptError:
            continue
        try:
            body = request(transcript, model=model, extra={"tools": [SERVER_TOOL]})
        except TranscriptError:
            continue
        problems = [
            p for p in check_request({"model": model or "m", **body}) if p.certainty == "refused"
        ]
        assert problems == []
