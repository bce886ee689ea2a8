"""Rule C9a: every finish reason that an SDK knows has a name here, whole and streamed alike, and a
loop can tell an answer that broke off from a whole one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import botocore.session
import pytest
from anthropic.types.beta.beta_stop_reason import BetaStopReason
from every_api import ADAPTERS
from google.genai import types as genai
from openai.types.responses.response import IncompleteDetails

from lutumpy import AssistantTurn, Session, TurnResult
from lutumpy.adapters.openai import OpenAIResponses
from lutumpy.errors import AdapterError
from lutumpy.loops import stop_reason
from lutumpy.models import FinishReason
from lutumpy.streaming import CallDone

# What a word comes to: this library's word, and whether the answer broke off. For Gemini, both
# depend on whether a call is there.
Ends = dict[str, tuple[FinishReason, bool]]

ANTHROPIC: Ends = {
    "end_turn": ("stop", False),
    "stop_sequence": ("stop", False),
    "tool_use": ("tool_calls", False),
    "max_tokens": ("length", True),
    "model_context_window_exceeded": ("length", True),
    "pause_turn": ("paused", False),
    "compaction": ("paused", False),
    "refusal": ("refusal", True),
}
BEDROCK: Ends = {
    "end_turn": ("stop", False),
    "stop_sequence": ("stop", False),
    "tool_use": ("tool_calls", False),
    "max_tokens": ("length", True),
    "model_context_window_exceeded": ("length", True),
    "malformed_model_output": ("length", True),
    "malformed_tool_use": ("tool_calls", True),
    "guardrail_intervened": ("content_filter", True),
    "content_filtered": ("content_filter", True),
}
RESPONSES: Ends = {
    "max_output_tokens": ("length", True),
    "max_messages": ("length", True),
    "content_filter": ("content_filter", True),
    "steered": ("paused", True),
}
UNNAMED_BY_GEMINI = {"FINISH_REASON_UNSPECIFIED", "OTHER", "IMAGE_OTHER"}


def words_of(literal: Any) -> set[str]:
    """The texts of a `Literal`, however it is wrapped."""
    found = get_args(literal)
    return {v for each in found for v in ({each} if isinstance(each, str) else words_of(each))}


def stop_reasons_of_converse() -> set[str]:
    model: Any = botocore.session.get_session().get_service_model("bedrock-runtime")
    return set(model.shape_for("StopReason").enum)


def test_every_word_of_the_sdks_is_in_these_tables() -> None:
    """Older SDKs know fewer."""
    assert words_of(BetaStopReason) <= set(ANTHROPIC)
    assert stop_reasons_of_converse() <= set(BEDROCK)
    assert words_of(IncompleteDetails.model_fields["reason"].annotation) <= set(RESPONSES)


# --- answers of each API, whole and streamed ------------------------------------------------------

Answer = tuple[dict[str, Any], list[dict[str, Any]]]


def of_gemini(reason: str, has_text: bool, call_count: int) -> Answer:
    parts: list[dict[str, Any]] = [{"text": "So far."}] if has_text else []
    parts += [{"functionCall": {"name": f"f{n}", "args": {"a": n}}} for n in range(call_count)]
    end = {"finishReason": reason}
    whole = {"candidates": [{"content": {"role": "model", "parts": parts}, **end}]}
    chunks = [{"candidates": [{"content": {"parts": [part]}}]} for part in parts]
    return whole, [*chunks, {"candidates": [end]}]


def of_bedrock(reason: str, has_text: bool, call_count: int) -> Answer:
    content: list[dict[str, Any]] = [{"text": "So far."}] if has_text else []
    events: list[dict[str, Any]] = [{"messageStart": {"role": "assistant"}}]
    if has_text:
        delta = {"contentBlockIndex": 0, "delta": {"text": "So far."}}
        events += [{"contentBlockDelta": delta}, {"contentBlockStop": {"contentBlockIndex": 0}}]
    for n in range(call_count):
        index = {"contentBlockIndex": len(content)}
        head = {"toolUseId": f"id{n}", "name": f"f{n}"}
        content.append({"toolUse": {**head, "input": {"a": n}}})
        delta = {"toolUse": {"input": f'{{"a":{n}}}'}}
        events.append({"contentBlockStart": {**index, "start": {"toolUse": head}}})
        events.append({"contentBlockDelta": {**index, "delta": delta}})
        events.append({"contentBlockStop": index})
    whole = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": reason,
    }
    return whole, [*events, {"messageStop": {"stopReason": reason}}]


def of_anthropic(reason: str, has_text: bool, call_count: int) -> Answer:
    content: list[dict[str, Any]] = [{"type": "text", "text": "So far."}] if has_text else []
    content += [
        {"type": "tool_use", "id": f"id{n}", "name": f"f{n}", "input": {"a": n}}
        for n in range(call_count)
    ]
    head = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": []}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": head}]
    for index, block in enumerate(content):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}})
    return {**head, "content": content, "stop_reason": reason}, [*events, {"type": "message_stop"}]


def of_responses(reason: str, has_text: bool, call_count: int) -> Answer:
    part = {"type": "output_text", "text": "So far.", "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
    output: list[dict[str, Any]] = [message] if has_text else []
    output += [
        {
            "type": "function_call",
            "id": f"fc_{n}",
            "call_id": f"id{n}",
            "name": f"f{n}",
            "arguments": f'{{"a":{n}}}',
        }
        for n in range(call_count)
    ]
    whole = {
        "id": "resp_1",
        "status": "incomplete",
        "incomplete_details": {"reason": reason},
        "output": output,
    }
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "resp_1", "output": []}}
    ]
    for index, item in enumerate(output):
        place = {"output_index": index, "item": item}
        events.append({"type": "response.output_item.added", **place})
        events.append({"type": "response.output_item.done", **place})
    return whole, [*events, {"type": "response.incomplete", "response": whole}]


MAKERS: dict[str, tuple[Any, Sequence[str]]] = {
    "anthropic_messages": (of_anthropic, [*ANTHROPIC]),
    "bedrock_converse": (of_bedrock, [*BEDROCK]),
    "openai_responses": (of_responses, [*RESPONSES]),
    "gemini_generate_content": (of_gemini, [reason.name for reason in genai.FinishReason]),
}


def turns(api: str, answer: Answer) -> tuple[AssistantTurn, AssistantTurn, int]:
    """The whole answer's turn, the stream's, and how many calls the stream called done."""
    whole, events = answer
    decoder = ADAPTERS[api].stream_decoder()
    deltas = [delta for event in events for delta in decoder.feed(event)]
    done = sum(isinstance(delta, CallDone) for delta in deltas)
    return ADAPTERS[api].response(whole), decoder.finish(), done


def every_answer(api: str) -> Iterator[tuple[str, bool, int, Answer]]:
    make, reasons = MAKERS[api]
    for reason, has_text, call_count in itertools.product(reasons, (False, True), range(3)):
        if reason != "FINISH_REASON_UNSPECIFIED":  # an answer that goes on
            yield reason, has_text, call_count, make(reason, has_text, call_count)


@pytest.mark.parametrize("api", MAKERS)
def test_a_stream_ends_for_the_reason_of_the_whole_answer_C9a_S1(api: str) -> None:
    for reason, _, call_count, answer in every_answer(api):
        whole, streamed, done = turns(api, answer)
        ends = (whole.finish_reason, whole.provider_finish_reason, whole.cut)
        found = (streamed.finish_reason, streamed.provider_finish_reason, streamed.cut)
        assert found == ends, (reason, found, ends)
        assert streamed.native == whole.native
        assert len(whole.calls) == call_count
        if not whole.cut:
            assert done == call_count, reason


@pytest.mark.parametrize("api", MAKERS)
def test_every_reason_has_a_name_C9a(api: str) -> None:
    for reason, _, _, answer in every_answer(api):
        turn = ADAPTERS[api].response(answer[0])
        assert turn.finish_reason in get_args(FinishReason)
        assert (turn.finish_reason == "unknown") == (reason in UNNAMED_BY_GEMINI), reason
        assert turn.provider_finish_reason == reason


@pytest.mark.parametrize(
    ("api", "table"),
    [
        ("anthropic_messages", ANTHROPIC),
        ("bedrock_converse", BEDROCK),
        ("openai_responses", RESPONSES),
    ],
)
def test_the_names_are_these_C9a(api: str, table: Ends) -> None:
    for reason, _, _, answer in every_answer(api):
        turn = ADAPTERS[api].response(answer[0])
        assert (turn.finish_reason, turn.cut) == table[reason], reason


@pytest.mark.parametrize("blocked", list(genai.BlockedReason))
def test_a_blocked_prompt_is_filtered_whatever_the_reason_C9a(blocked: genai.BlockedReason) -> None:
    if blocked.name == "BLOCKED_REASON_UNSPECIFIED":
        return
    turn = ADAPTERS["gemini_generate_content"].response(
        {"promptFeedback": {"blockReason": blocked.value}}
    )
    assert (turn.finish_reason, turn.cut) == ("content_filter", True)
    assert turn.provider_finish_reason == blocked.value


@pytest.mark.parametrize("api", MAKERS)
def test_a_loop_takes_no_answer_for_one_that_broke_off_or_has_nothing_C9a(api: str) -> None:
    for reason, has_text, call_count, answer in every_answer(api):
        turn = ADAPTERS[api].response(answer[0])
        if call_count:
            continue
        stopped_by = stop_reason(TurnResult(turn))
        whole_text = has_text and not turn.cut
        if stopped_by == "answer":
            assert whole_text or turn.finish_reason == "stop", reason
        if whole_text and turn.finish_reason in ("stop", "tool_calls"):
            assert stopped_by == "answer", reason


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
def test_a_call_that_was_announced_and_never_came_is_no_answer_C9a(reason: str) -> None:
    for has_text in (False, True):
        turn = ADAPTERS["gemini_generate_content"].response(of_gemini(reason, has_text, 0)[0])
        assert (turn.finish_reason, turn.cut) == ("tool_calls", True)
        assert stop_reason(TurnResult(turn)) == "unknown"


def test_calls_that_were_not_expected_are_whole_and_those_that_were_malformed_are_not_C2a() -> None:
    gemini = ADAPTERS["gemini_generate_content"]
    for count in (1, 2):
        assert not gemini.response(of_gemini("UNEXPECTED_TOOL_CALL", False, count)[0]).cut
        assert gemini.response(of_gemini("MALFORMED_FUNCTION_CALL", False, count)[0]).cut


def test_a_call_still_open_at_an_unexpected_call_is_done_C9a_S1() -> None:
    part = {"functionCall": {"name": "f", "willContinue": True}}
    decoder = ADAPTERS["gemini_generate_content"].stream_decoder()
    chunks = [
        {"candidates": [{"content": {"parts": [part]}}]},
        {"candidates": [{"finishReason": "UNEXPECTED_TOOL_CALL"}]},
    ]
    deltas = [delta for chunk in chunks for delta in decoder.feed(chunk)]
    assert sum(isinstance(delta, CallDone) for delta in deltas) == 1
    assert not decoder.finish().cut


def test_a_steered_answer_goes_on_without_a_new_message_C9a() -> None:
    session = Session()
    session.push_user("Go.")
    turn = OpenAIResponses.response(of_responses("steered", True, 0)[0])
    session.transcript.append_turn(turn)
    assert session.turns()[-1].finish_reason == "paused"
    assert OpenAIResponses.request(session.transcript)["input"][-1]["role"] == "assistant"


def test_a_failed_response_is_an_error_though_it_gives_no_reason() -> None:
    body = {"id": "resp_1", "status": "failed", "error": None, "output": []}
    with pytest.raises(AdapterError, match="failed") as raised:
        OpenAIResponses._decode(body, None)  # pyright: ignore[reportPrivateUsage]
    assert raised.value.partial is not None
    decoder = OpenAIResponses.stream_decoder()
    with pytest.raises(AdapterError, match="failed"):
        decoder.feed({"type": "response.failed", "response": body})
