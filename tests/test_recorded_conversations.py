"""Recorded conversations, rebuilt from their answers: the history is the one that the recorded
follow-up request holds.

Each conversation of `fixtures/conversations.jsonl` is the history of one recorded request, and the
recorded answers that its assistant parts came from, as JSON or as the text of an event stream. The
recorders' clients left fields out, wrote arguments anew, or added defaults of their own; every such
difference is named in `EXPLAINED`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lutumpy import AssistantTurn, TextPart, Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.models import Message, ResultBlock, ToolResults

Json = Any
ADAPTERS: dict[str, Any] = {
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "anthropic_messages": AnthropicMessages,
}
HISTORY = {"openai_chat": "messages", "openai_responses": "input", "anthropic_messages": "messages"}
ROWS: list[dict[str, Json]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "fixtures" / "conversations.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


# --- one conversation, rebuilt --------------------------------------------------------------------


def decode(api: str, answer: Json) -> AssistantTurn:
    """A recorded answer: an object, or the text of an event stream."""
    if not isinstance(answer, str):
        turn: AssistantTurn = ADAPTERS[api].response(answer)
        return turn
    decoder = ADAPTERS[api].stream_decoder()
    lines = [
        line.removeprefix("data:").strip()
        for line in answer.splitlines()
        if line.startswith("data:")
    ]
    for line in lines:
        if line != "[DONE]":
            decoder.feed(json.loads(line))
    streamed: AssistantTurn = decoder.finish()
    return streamed


def is_answer(api: str, entry: Json) -> bool:
    """Whether an entry of a history was written by the provider."""
    if api != "openai_responses":
        return bool(entry["role"] == "assistant")
    if "role" in entry:
        return bool(entry["role"] == "assistant")
    return not entry["type"].endswith("call_output")


def parts(api: str, history: Sequence[Json]) -> Iterator[tuple[bool, list[Json]]]:
    """The history in runs: (whether the provider wrote them, the entries)."""
    run: list[Json] = []
    for entry in history:
        if run and is_answer(api, entry) != is_answer(api, run[0]):
            yield is_answer(api, run[0]), run
            run = []
        run.append(entry)
    if run:
        yield is_answer(api, run[0]), run


def results_of(api: str, entries: Iterable[Json]) -> dict[str, tuple[str, bool]]:
    """The recorded tool results: call id -> (text, whether it is an error)."""
    found: dict[str, tuple[str, bool]] = {}
    for entry in entries:
        if api == "openai_chat" and entry["role"] == "tool":
            found[entry["tool_call_id"]] = as_text(entry["content"]), False
        elif api == "openai_responses" and entry.get("type", "").endswith("call_output"):
            found[entry["call_id"]] = as_text(entry["output"]), False
        elif api == "anthropic_messages" and isinstance(entry["content"], list):
            for block in entry["content"]:
                if block["type"] == "tool_result":
                    found[block["tool_use_id"]] = (
                        as_text(block["content"]),
                        bool(block.get("is_error")),
                    )
    return found


def as_text(content: Json) -> str:
    return content if isinstance(content, str) else json.dumps(content)


def said(entry: Json) -> str:
    """The text of a pushed message."""
    content = entry.get("content")
    if isinstance(content, str):
        return content
    return " ".join(
        [part["text"] for part in content or () if part["type"] in ("text", "input_text")]
    )


def called(api: str, entries: Iterable[Json]) -> list[str]:
    """The ids of the calls in a recorded history, in order; some clients give calls ids of their
    own.
    """
    if api == "openai_chat":
        return [call["id"] for entry in entries for call in entry.get("tool_calls") or ()]
    if api == "openai_responses":
        return [
            entry["call_id"]
            for entry in entries
            if entry.get("type") in ("function_call", "custom_tool_call")
        ]
    blocks = [
        block
        for entry in entries
        if isinstance(entry["content"], list)
        for block in entry["content"]
    ]
    return [block["id"] for block in blocks if block["type"] == "tool_use"]


def rebuild(row: dict[str, Json]) -> Transcript:
    """The conversation as lutumpy has it: pushed messages, decoded answers, recorded results."""
    api = row["api"]
    transcript = Transcript()
    answers = iter(row["answers"])
    turn: AssistantTurn | None = None
    ids: list[str] = []
    for answered, entries in parts(api, row["history"]):
        if answered:
            turn, ids = decode(api, next(answers)), called(api, entries)
            continue
        if turn is not None:
            commit(transcript, turn, ids, results_of(api, entries))
            turn = None
        for entry in entries:
            if entry.get("role") in ("system", "developer", "user") and said(entry).strip():
                transcript.append(Message(entry["role"], (TextPart(said(entry)),)))
    assert next(answers, None) is None, "an answer is not in the history"
    if turn is not None:
        commit(transcript, turn, ids, {})
    if isinstance(transcript[-1], AssistantTurn):
        transcript.push_user("Go on.")
    return transcript


def commit(
    transcript: Transcript,
    turn: AssistantTurn,
    ids: Sequence[str],
    results: dict[str, tuple[str, bool]],
) -> None:
    written = transcript.fresh_ids(turn)
    blocks: list[ResultBlock] = []
    for call, recorded in zip(
        [call for call in written.calls if call.answerable], ids, strict=True
    ):
        text, failed = results.pop(recorded)
        blocks.append(ResultBlock(call.id, call.name, text, "error" if failed else "ok", call.kind))
    assert results == {}, "a recorded result answers no call of the decoded turn"
    transcript.append_turn(written, ToolResults(tuple(blocks)) if blocks else None)


# --- what the recorders' clients changed ----------------------------------------------------------


class Difference(NamedTuple):
    where: str
    ours: Json
    theirs: Json


class Absent:
    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()


def differences(ours: Json, theirs: Json, where: str) -> Iterator[Difference]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in {**ours, **theirs}:
            yield from differences(
                ours.get(name, ABSENT), theirs.get(name, ABSENT), f"{where}/{name}"
            )
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for one, other in zip(ours, theirs, strict=True):
            kind = (
                one.get("type") or one.get("role") if isinstance(one, dict) else type(one).__name__
            )
            yield from differences(one, other, f"{where}/{kind}")
    elif ours != theirs:
        yield Difference(where, ours, theirs)


def left_out(ours: Json, theirs: Json) -> bool:
    return theirs is ABSENT


def null(ours: Json, theirs: Json) -> bool:
    return theirs is None


def added_null(ours: Json, theirs: Json) -> bool:
    return ours is ABSENT and theirs is None


def spaced(ours: Json, theirs: Json) -> bool:
    return bool(json.loads(ours or "{}") == json.loads(theirs))


Predicate = Callable[[Json, Json], bool]
# Where, what is different there, and why it is none of ours.
EXPLAINED: list[tuple[str, Predicate, str]] = [
    (
        "openai_chat/assistant/content",
        lambda ours, theirs: not ours and (theirs is ABSENT or not theirs),
        "the client writes content that is null or empty beside calls in another of the ways to "
        "say so",
    ),
    (
        "openai_chat/assistant/content",
        lambda ours, theirs: [{"type": "text", "text": ours}] == theirs,
        "the client writes a text as one part",
    ),
    (
        "openai_chat/assistant/prefix",
        lambda ours, theirs: ours is ABSENT and theirs is False,
        "Mistral's client writes the default out",
    ),
    (
        "openai_chat/assistant/tool_calls/function/index",
        left_out,
        "OpenRouter numbers the calls of whole answers too; the client knows no such field",
    ),
    (
        "openai_chat/assistant/tool_calls/function/custom",
        lambda ours, theirs: ours == {"input": "", "name": ""} and theirs is ABSENT,
        "Snowflake writes an empty custom call beside each function; the client takes one of both",
    ),
    (
        "openai_chat/assistant/tool_calls/function/function/arguments",
        spaced,
        "the client parsed and wrote them anew",
    ),
    ("openai_responses/function_call/arguments", spaced, "the client parsed and wrote them anew"),
    (
        "openai_responses/function_call/id",
        left_out,
        "the client sends no item ids where it needn't",
    ),
    (
        "openai_responses/function_call/status",
        lambda ours, theirs: ours == "completed" and (theirs is ABSENT or theirs is None),
        "the client has no status of calls",
    ),
    (
        "openai_responses/function_call/call_id",
        lambda ours, theirs: re.search(r":call_\d$", theirs) is not None,
        "the host repeats an id: a repeated one is replaced here (rule C6), the client prefixes "
        "every one",
    ),
    (
        "openai_responses/function_call/call_id",
        lambda ours, theirs: ours.startswith("call_") and theirs.startswith("fc_"),
        "the client gives a call its item's id",
    ),
    (
        "openai_responses/reasoning/status",
        left_out,
        "DeepSeek gives reasoning a status, which the client doesn't know",
    ),
    ("openai_responses/reasoning/encrypted_content", added_null, "the client writes the null out"),
    (
        "openai_responses/image_generation_call/(background|output_format|quality|result|revised_prompt|size|status)",
        left_out,
        "the client names the image by its id alone",
    ),
    ("openai_responses/code_interpreter_call/outputs", null, "the client leaves outputs out"),
    (
        "openai_responses/mcp_call/(approval_request_id|status)",
        left_out,
        "the client has no such fields",
    ),
    (
        "openai_responses/mcp_call/output",
        null,
        "the client gives the output in its own words elsewhere",
    ),
    (
        "openai_responses/mcp_list_tools/tools",
        lambda ours, theirs: theirs == [],
        "the client keeps no tool list",
    ),
    (
        "openai_responses/message/content/output_text/annotations",
        lambda ours, theirs: theirs == [],
        "the client keeps no annotations",
    ),
    (
        "openai_responses/web_search_call/action/sources",
        added_null,
        "the client writes the null out",
    ),
    ("openai_responses/message/phase", left_out, "the client doesn't know the field"),
    ("openai_responses/message/id", left_out, "the client sends no item ids where it needn't"),
    (
        "anthropic_messages/assistant/content/tool_use/caller",
        lambda ours, theirs: ours == {"type": "direct"} and theirs is ABSENT,
        "the client doesn't know the field; direct is the default",
    ),
    (
        "anthropic_messages/assistant/content/text/citations",
        left_out,
        "the client keeps no citations",
    ),
    (
        "anthropic_messages/assistant/content/web_fetch_tool_result/content/content/citations",
        added_null,
        "the client writes the null out",
    ),
]


def reason_of(difference: Difference) -> int | None:
    for number, (where, test, _) in enumerate(EXPLAINED):
        if re.fullmatch(where, difference.where) and test(difference.ours, difference.theirs):
            return number
    return None


def is_filler(entry: Json) -> bool:
    """A message without content, which some clients put before calls: no provider wrote it."""
    return bool(
        entry.get("role") == "assistant"
        and entry.get("content") == ""
        and not entry.get("tool_calls")
    )


def compared(row: dict[str, Json]) -> list[Difference]:
    api = row["api"]
    ours = ADAPTERS[api].request(rebuild(row), model=row["model"])[HISTORY[api]]
    runs = [entries for answered, entries in parts(api, ours) if answered]
    recorded = [entries for answered, entries in parts(api, row["history"]) if answered]
    assert len(runs) == len(recorded)
    told = [[entry for entry in entries if not is_filler(entry)] for entries in recorded]
    return [
        difference
        for run, entries in zip(runs, told, strict=True)
        for difference in differences(run, entries, api)
    ]


# --- the tests ------------------------------------------------------------------------------------


def name_of(row: dict[str, Json]) -> str:
    kinds = "".join(["s" if isinstance(answer, str) else "j" for answer in row["answers"]])
    return f"{row['api']}-{kinds}-{row['source'].rpartition('/')[2]}"


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_the_history_is_the_recorded_one(row: dict[str, Json]) -> None:
    assert [difference for difference in compared(row) if reason_of(difference) is None] == []


def test_every_explanation_explains_something() -> None:
    used = {reason_of(difference) for row in ROWS for difference in compared(row)}
    assert [reason for number, (_, _, reason) in enumerate(EXPLAINED) if number not in used] == []


def test_the_conversations_are_varied() -> None:
    for api in ADAPTERS:
        rows = [row for row in ROWS if row["api"] == api]
        assert len(rows) >= 8
        assert any(isinstance(answer, str) for row in rows for answer in row["answers"])
        assert any(not isinstance(answer, str) for row in rows for answer in row["answers"])
        assert any(len(row["answers"]) > 1 for row in rows)
    assert all(row["source"] and row["licence"] for row in ROWS)
    kept = {
        (row["api"], isinstance(answer, str))
        for row in ROWS
        for answer in row["answers"]
        if re.search(r'"(signature|encrypted_content)": "', json.dumps(row["history"]))
    }
    assert kept >= {
        (api, streamed)
        for api in ("openai_responses", "anthropic_messages")
        for streamed in (True, False)
    }
