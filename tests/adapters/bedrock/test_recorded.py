"""Recorded exchanges: answers decode with the very calls they hold and go back as
they came, histories are read and replayed, streams end in what the whole answer gives.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from each_case import each
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import AssistantTurn, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.gemini import Gemini
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.doctor import check_messages
from lutumpy.dumps import dump_transcript, load_transcript
from lutumpy.models import ResultBlock, ToolResults

FIXTURES = Path(__file__).parents[2] / "fixtures"
API = "bedrock_converse"
OTHERS: list[Any] = [OpenAIChat, OpenAIResponses, AnthropicMessages, Gemini]
ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (FIXTURES / "bedrock_converse.jsonl").read_text(encoding="utf-8").split("\n")
    if line
]
WHOLE = [row for row in ROWS if not row["stream"]]


def events_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The events as boto3 gives them."""
    return [{event["event"]: event["payload"]} for event in row["response"]]


STREAMED = [row for row in ROWS if row["stream"]]


def content_of(reply: dict[str, Any]) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = reply["output"]["message"]["content"]
    return content


def native(turn: AssistantTurn) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = json.loads(turn.native) if turn.native else []
    return blocks


def sent_back(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks without what no request may hold: the type of a client's call, empty texts."""
    kept: list[dict[str, Any]] = []
    for block in content:
        use = block.get("toolUse")
        if use is not None and use.get("type") != "server_tool_use":
            use = {name: value for name, value in use.items() if name != "type"}
            kept.append({"toolUse": use})
        elif block != {"text": ""}:
            kept.append(block)
    return kept


def calls_in(content: list[dict[str, Any]]) -> list[tuple[str, str, Any]]:
    uses = [block["toolUse"] for block in content if "toolUse" in block]
    return [
        (use["toolUseId"], use["name"], use["input"])
        for use in uses
        if use.get("type") != "server_tool_use"
    ]


def read_calls(turn: AssistantTurn) -> list[tuple[str, str, Any]]:
    return [(call.id, call.name, json.loads(call.arguments or "{}")) for call in turn.calls]


def name_of(row: dict[str, Any]) -> str:
    return str(row["source"]).rsplit("/", 1)[-1][-60:]


@pytest.mark.parametrize("row", WHOLE, ids=name_of)
def test_an_answer_gives_exactly_its_calls_and_goes_back_as_it_came(row: dict[str, Any]) -> None:
    """Rules C1 and R1."""
    before = json.dumps(row["response"])
    turn = BedrockConverse.response(row["response"])
    assert json.dumps(row["response"]) == before
    assert read_calls(turn) == calls_in(content_of(row["response"]))
    assert native(turn) == sent_back(content_of(row["response"]))
    usage = row["response"]["usage"]
    assert turn.usage.total_tokens == usage["totalTokens"]
    assert turn.usage.output_tokens == usage["outputTokens"]
    assert turn.usage.cached_input_tokens == usage.get("cacheReadInputTokens", 0)
    assert BedrockConverse.response(json.dumps(row["response"])) == turn


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_a_history_is_read_and_goes_back_unchanged(row: dict[str, Any]) -> None:
    messages, system = row["request"]["messages"], row["request"].get("system") or None
    transcript = Transcript.from_messages(API, messages, system)
    again = load_transcript(dump_transcript(transcript))
    for read in (transcript, again):
        assert BedrockConverse.messages(read) == messages
        assert BedrockConverse.system(read) == system


@pytest.mark.parametrize("row", WHOLE, ids=name_of)
def test_the_next_request_holds_the_answer_as_it_came(row: dict[str, Any]) -> None:
    """Rule R1: through a dump."""
    transcript = Transcript.from_messages(API, row["request"]["messages"])
    turn = transcript.fresh_ids(BedrockConverse.response(row["response"]))
    results = [ResultBlock(call.id, call.name, "done") for call in turn.calls]
    transcript.append_turn(turn, ToolResults(tuple(results)) if results else None)
    if not results:
        transcript.push_user("Go on.")
    transcript = load_transcript(dump_transcript(transcript))
    body = BedrockConverse.request(transcript, model=row["model"])
    if turn.native:
        assert body["messages"][-2]["content"] == native(turn)
    found = [b["toolResult"] for b in body["messages"][-1]["content"] if "toolResult" in b]
    assert [result["toolUseId"] for result in found] == [call.id for call in turn.calls]
    if calls_in(body["messages"][-2]["content"]):
        assert body["toolConfig"]["tools"]
    problems = check_messages(API, body["messages"], model=row["model"])
    assert [problem for problem in problems if problem.certainty == "refused"] == []


@pytest.mark.parametrize("other", OTHERS)
@each("row", WHOLE, name_of)
def test_the_other_apis_take_the_conversation(row: dict[str, Any], other: Any) -> None:
    """Rule R2."""
    transcript = Transcript.from_messages(API, row["request"]["messages"])
    turn = transcript.fresh_ids(BedrockConverse.response(row["response"]))
    results = [ResultBlock(call.id, call.name, "done", "failed") for call in turn.calls]
    transcript.append_turn(turn, ToolResults(tuple(results)) if results else None)
    transcript.push_user("Go on.")
    problems = check_messages(other.api, other.messages(transcript))
    assert [problem for problem in problems if problem.certainty == "refused"] == []


def streamed(events: list[Any]) -> AssistantTurn:
    decoder = BedrockConverse.stream_decoder()
    for event in events:
        decoder.feed(event)
    return decoder.finish()


def gathered(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The answer that the events are the pieces of, put together by hand."""
    blocks: dict[int, dict[str, Any]] = {}
    reply: dict[str, Any] = {}
    for event in events:
        for name, value in event.items():
            if name == "contentBlockStart":
                blocks[value["contentBlockIndex"]] = {
                    kind: {**inner, "input": ""} for kind, inner in value["start"].items()
                }
            elif name == "contentBlockDelta":
                block = blocks.setdefault(value["contentBlockIndex"], {})
                for kind, piece in value["delta"].items():
                    if kind == "text":
                        block["text"] = block.get("text", "") + piece
                    elif kind == "toolUse":
                        block["toolUse"]["input"] += piece["input"]
                    else:
                        told = block.setdefault("reasoningContent", {})
                        if "redactedContent" in piece:
                            told |= piece
                            continue
                        words = told.setdefault("reasoningText", {"text": ""})
                        for key, text in piece.items():
                            words[key] = words.get(key, "") + text
            elif name == "messageStop":
                reply["stopReason"] = value["stopReason"]
            elif name == "metadata":
                reply |= value
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
    content = [blocks[index] for index in sorted(blocks)]
    return {**reply, "output": {"message": {"role": "assistant", "content": content}}}


@pytest.mark.parametrize("row", STREAMED, ids=name_of)
def test_a_stream_ends_in_what_the_whole_answer_gives(row: dict[str, Any]) -> None:
    """Rule S1."""
    events = events_of(row)
    turn, whole = streamed(events), BedrockConverse.response(gathered(events))
    assert (turn.blocks, turn.calls, native(turn)) == (whole.blocks, whole.calls, native(whole))
    assert (turn.finish_reason, turn.usage) == (whole.finish_reason, whole.usage)


def pieces(text: str, data: st.DataObject) -> list[str]:
    at = data.draw(st.integers(0, len(text)))
    return [text[:at], text[at:]]


@pytest.mark.parametrize("row", WHOLE, ids=name_of)
@given(data=st.data())
@settings(max_examples=examples(5))
def test_a_whole_answer_in_pieces_is_the_same(row: dict[str, Any], data: st.DataObject) -> None:
    """Rule S1: however the texts, the arguments and the reasoning of an answer are cut."""
    reply = row["response"]
    events: list[dict[str, Any]] = [{"messageStart": {"role": "assistant"}}]
    for index, block in enumerate(content_of(reply)):
        deltas: list[dict[str, Any]] = []
        place = {"contentBlockIndex": index}
        if "text" in block:
            deltas = [{"text": piece} for piece in pieces(block["text"], data)]
        elif "toolUse" in block:
            use = dict(block["toolUse"])
            given_input = json.dumps(use.pop("input"))
            events.append({"contentBlockStart": {**place, "start": {"toolUse": use}}})
            deltas = [{"toolUse": {"input": piece}} for piece in pieces(given_input, data)]
        elif "reasoningText" in block.get("reasoningContent", {}):
            told = block["reasoningContent"]["reasoningText"]
            parts = [{"text": piece} for piece in pieces(told["text"], data)]
            if "signature" in told:
                parts += [{"signature": piece} for piece in pieces(told["signature"], data)]
            deltas = [{"reasoningContent": part} for part in parts]
        elif "reasoningContent" in block:
            deltas = [block]
        else:
            return  # streams have no other kinds
        events += [{"contentBlockDelta": {**place, "delta": delta}} for delta in deltas]
        events.append({"contentBlockStop": place})
    events += [{"messageStop": {"stopReason": reply["stopReason"]}}]
    events += [{"metadata": {"usage": reply["usage"], "metrics": reply["metrics"]}}]
    turn, whole = streamed(events), BedrockConverse.response(reply)
    assert (turn.blocks, turn.calls, native(turn)) == (whole.blocks, whole.calls, native(whole))
    assert (turn.finish_reason, turn.usage, turn.cut) == (
        whole.finish_reason,
        whole.usage,
        whole.cut,
    )


def test_the_rows_have_every_kind_of_block() -> None:
    kinds = {key for row in WHOLE for block in content_of(row["response"]) for key in block}
    kinds |= {
        key for row in ROWS for m in row["request"]["messages"] for b in m["content"] for key in b
    }
    assert kinds >= {"text", "toolUse", "toolResult", "reasoningContent"}
    assert len(STREAMED) >= 3
