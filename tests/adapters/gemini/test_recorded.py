"""Recorded exchanges: answers decode with the very calls they hold and go back as
they came, histories are read and replayed, streams end in what the whole answer gives.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import AssistantTurn, Transcript
from lutumpy.adapters.gemini import Gemini
from lutumpy.doctor import check_messages
from lutumpy.dumps import dump_transcript, load_transcript
from lutumpy.models import ResultBlock, ToolResults

FIXTURES = Path(__file__).parents[2] / "fixtures"
API = "gemini_generate_content"


def rows(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (FIXTURES / name).read_text(encoding="utf-8").split("\n")
        if line
    ]


WHOLE = rows("gemini_generate_content.jsonl")
STREAMED = rows("gemini_generate_content_sse.jsonl")


def chunks_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    lines = row["response"].replace("\r\n", "\n").split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


def parts_of(reply: dict[str, Any]) -> list[dict[str, Any]]:
    candidates = reply.get("candidates") or [{}]
    parts: list[dict[str, Any]] = (candidates[0].get("content") or {}).get("parts") or []
    return parts


def native(turn: AssistantTurn) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = json.loads(turn.native)["parts"] if turn.native else []
    return parts


def calls_in(parts: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    return [(call["name"], call.get("args") or {}) for call in calls]


def read_calls(turn: AssistantTurn) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments or "{}")) for call in turn.calls]


def name_of(row: dict[str, Any]) -> str:
    return str(row["source"]).rsplit("/", 1)[-1][-60:]


@pytest.mark.parametrize("row", WHOLE, ids=name_of)
def test_an_answer_gives_exactly_its_calls_and_goes_back_as_it_came(row: dict[str, Any]) -> None:
    """Rules C1 and R1."""
    before = json.dumps(row["response"])
    turn = Gemini.response(row["response"])
    assert json.dumps(row["response"]) == before
    assert read_calls(turn) == calls_in(parts_of(row["response"]))
    assert native(turn) == [part for part in parts_of(row["response"]) if part != {"text": ""}]
    usage = row["response"].get("usageMetadata", {})
    assert turn.usage.total_tokens == usage.get("totalTokenCount", 0)
    assert turn.usage.reasoning_tokens == usage.get("thoughtsTokenCount", 0)
    assert turn.usage.cached_input_tokens == usage.get("cachedContentTokenCount", 0)
    assert Gemini.response(json.dumps(row["response"])) == turn


@pytest.mark.parametrize("row", WHOLE + STREAMED, ids=name_of)
def test_a_history_is_read_and_goes_back_unchanged(row: dict[str, Any]) -> None:
    contents = row["request"]["contents"]
    system = row["request"].get("systemInstruction")
    transcript = Transcript.from_messages(API, contents, system)
    again = load_transcript(dump_transcript(transcript))
    for read in (transcript, again):
        assert Gemini.messages(read) == contents
        assert Gemini.system(read) == system


@pytest.mark.parametrize("row", WHOLE, ids=name_of)
def test_the_next_request_holds_the_answer_with_its_signatures(row: dict[str, Any]) -> None:
    """Rule R1: through a dump, with the answer's ids, or with none where it has none."""
    transcript = Transcript.from_messages(API, row["request"]["contents"])
    turn = transcript.fresh_ids(Gemini.response(row["response"]))
    results = [ResultBlock(call.id, call.name, "done") for call in turn.calls]
    transcript.append_turn(turn, ToolResults(tuple(results)) if results else None)
    if not results:
        transcript.push_user("Go on.")
    transcript = load_transcript(dump_transcript(transcript))
    body = Gemini.request(transcript, model=row["model"])
    if turn.native:
        assert body["contents"][-2] == json.loads(turn.native)
    answers = [part.get("functionResponse", {}) for part in body["contents"][-1]["parts"]]
    calls = [part["functionCall"] for part in native(turn) if "functionCall" in part]
    if calls:
        assert [(a["name"], a.get("id")) for a in answers] == [
            (call["name"], call.get("id")) for call in calls
        ]
    problems = check_messages(API, body["contents"], model=row["model"])
    assert [problem for problem in problems if problem.certainty == "refused"] == []


def streamed(chunks: list[Any]) -> AssistantTurn:
    decoder = Gemini.stream_decoder()
    for chunk in chunks:
        decoder.feed(chunk)
    return decoder.finish()


def joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbouring unsigned texts of one kind as one part, as a whole answer has them."""
    found: list[dict[str, Any]] = []
    for part in parts:
        if part == {"text": ""}:
            continue
        mergeable = set(part) <= {"text", "thought"}
        if found and mergeable and set(found[-1]) == set(part):
            found[-1] = {**part, "text": found[-1]["text"] + part["text"]}
        else:
            found.append(part)
    return found


@pytest.mark.parametrize("row", STREAMED, ids=name_of)
def test_a_stream_ends_in_what_the_whole_answer_gives(row: dict[str, Any]) -> None:
    """Rule S1."""
    chunks = chunks_of(row)
    turn = streamed(chunks)
    last = chunks[-1]
    reasons = [chunk["candidates"][0] for chunk in chunks if chunk.get("candidates")]
    candidate: dict[str, Any] = {}
    for entry in reasons:
        candidate |= entry
    candidate["content"] = {"parts": joined([p for c in chunks for p in parts_of(c)])}
    whole = Gemini.response({**last, "candidates": [candidate]})
    assert (turn.blocks, native(turn)) == (whole.blocks, native(whole))
    assert (turn.finish_reason, turn.usage) == (whole.finish_reason, whole.usage)
    # Without `alt=sse` the stream is one array.
    assert streamed([chunks]).native == turn.native


@pytest.mark.parametrize("row", WHOLE, ids=name_of)
@given(data=st.data())
@settings(max_examples=examples(5))
def test_a_whole_answer_in_pieces_is_the_same(row: dict[str, Any], data: st.DataObject) -> None:
    """Rule S1: however the texts of an answer are cut."""
    reply = row["response"]
    whole = Gemini.response(reply)
    chunks: list[dict[str, Any]] = []
    for part in parts_of(reply):
        text = part.get("text")
        pieces = [part]
        if text and set(part) <= {"text", "thought"}:
            at = data.draw(st.integers(0, len(text)))
            pieces = [{**part, "text": text[:at]}, {**part, "text": text[at:]}]
        chunks += [{"candidates": [{"content": {"parts": [piece]}}]} for piece in pieces]
    end = {
        **reply,
        "candidates": [
            {k: v for k, v in c.items() if k != "content"} for c in reply.get("candidates") or ()
        ],
    }
    turn = streamed([*chunks, end])
    if not whole.cut:
        assert turn == whole
    assert (turn.blocks, native(turn), turn.usage) == (whole.blocks, native(whole), whole.usage)
