"""Any JSON in any field: what a host sends and what a program kept is decoded, read, checked,
mended and shown with the documented errors alone.

One or two fields of a recorded value are replaced, or set where there were none, by values of
another type: lists and objects (which no table can look up), numbers, half characters, NaN.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from every_api import ADAPTERS
from profiles import examples
from test_dump_mutations import REPLIES as MADE

sys.path.insert(0, str(Path(__file__).parent / "doctor"))

from composed import FIXTURES, composed, recorded

from lutumpy import AdapterError, Session, Transcript, TranscriptError, Usage
from lutumpy.apis import serving
from lutumpy.cli.documents import DocumentError, Place, open_document
from lutumpy.doctor import apply_repairs, check_messages, propose_repairs
from lutumpy.models import ResultBlock, ToolResults
from lutumpy.page.readers import read_messages, read_transcript
from lutumpy.page.usage import usage_of

Rows = list[dict[str, Any]]

ODD: list[Any] = [
    [], ["a"], [{}], {}, {"a": [1]}, 5, -1, 1.5, True, False, None, "", "x", "\ud800",
    float("nan"), float("inf"), 10**400,
]  # fmt: skip
FIELDS = (
    "status call_id id type role name phase finish_reason stop_reason index tool_use_id "
    "tool_call_id code message refusal content output input arguments text signature summary "
    "annotations caller namespace execution approval_request_id finishReason stopReason "
    "functionCall functionResponse toolUse toolResult usage model container error "
    "incomplete_details reason object thoughtSignature args response parts source delta item "
    "tool_calls function choices candidates contentBlockIndex content_block background"
).split()
MORE_ITEMS: Rows = [
    {"type": "shell_call", "call_id": "s", "caller": {"type": "direct"}, "action": {}},
    {"type": "shell_call_output", "call_id": "s", "output": []},
    {"type": "apply_patch_call", "call_id": "p", "operation": {"type": "delete_file"}},
    {"type": "tool_search_call", "call_id": "t", "execution": "client", "arguments": {}},
    {"type": "mcp_approval_request", "id": "mcpr_1", "name": "a", "arguments": "{}"},
    {"type": "foo_call", "call_id": "f", "caller": {"type": "direct"}},
    {"type": "code_interpreter_call", "id": "ci_1", "outputs": []},
]


def _rows(name: str) -> Rows:
    file = FIXTURES / name
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def recorded_replies(api: str) -> list[Any]:
    answered = [row for row in _rows(f"{api}.jsonl") if row["status"] == 200]
    found = [row["response"] for row in answered if not row.get("stream")]
    if api == "openai_responses":
        found += [{"id": "r", "status": "completed", "output": MORE_ITEMS}] * len(found)
    return [*found, *MADE[api]]


def recorded_streams(api: str) -> list[list[Any]]:
    found = [
        [json.loads(line[6:]) for line in row["response"].splitlines() if line[:7] == "data: {"]
        for row in _rows(f"{api}_sse.jsonl")
    ]
    found += [
        [json.loads(line) for line in row["response"].splitlines()]
        for row in _rows(f"{api}_ndjson.jsonl")
    ]
    for row in _rows(f"{api}.jsonl"):
        if row.get("stream") and row["status"] == 200 and api == "bedrock_converse":
            events = row["response"]
            events = events["events"] if isinstance(events, dict) else events
            found.append([{event["event"]: event["payload"]} for event in events])
    return [events for events in found if 0 < len(events) < 150]


def _objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        yield path
    inner = value.items() if isinstance(value, dict) else ()
    for key, one in enumerate(value) if isinstance(value, list) else inner:
        yield from _objects(one, (*path, key))


def _changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copied = value.copy()
    copied[path[0]] = _changed(value[path[0]], path[1:], new)
    return copied


def spoilt(rng: random.Random, value: Any) -> Any:
    """The same with one or two odd fields."""
    for _ in range(rng.choice([1, 1, 2])):
        paths = list(_objects(value))
        if not paths:
            break
        path = rng.choice(paths)
        there: Any = value
        for key in path:
            there = there[key]
        name = rng.choice(list(there) if there and rng.random() < 0.6 else FIELDS)
        value = _changed(value, path, {**there, name: rng.choice(ODD)})
    return value


def answer(api: str, reply: Any) -> None:
    """Decode a reply, answer its calls, and send it to every API."""
    turn = ADAPTERS[api].response(reply)
    session = Session()
    session.push_user("go")
    results = [ResultBlock(call.id, call.name, "x") for call in turn.calls if call.answerable]
    session.transcript.append_turn(turn, ToolResults(tuple(results)) if results else None)
    session.push_user("more")
    for adapter in ADAPTERS.values():
        adapter.messages(session.transcript)
    read_transcript(session.transcript, 300)
    Session.load(session.dump())


def stream(api: str, events: list[Any]) -> None:
    decoder = ADAPTERS[api].stream_decoder()
    for event in events:
        decoder.feed(event)
    decoder.partial()
    decoder.finish()


@pytest.mark.parametrize("api", ADAPTERS)
def test_odd_replies_and_streams_raise_adapter_errors_alone_C8(api: Any) -> None:
    rng = random.Random(f"reply {api}")
    replies, streams = recorded_replies(api), recorded_streams(api)
    for _ in range(examples(200)):
        reply, events = spoilt(rng, rng.choice(replies)), list(rng.choice(streams))
        at = rng.randrange(len(events))
        events[at] = spoilt(rng, events[at])
        for attempt, value in ((answer, reply), (stream, events)):
            try:
                attempt(api, value)
            except (AdapterError, TranscriptError):
                continue
        usage_of(reply.get("usage"))


@pytest.mark.parametrize("api", ADAPTERS)
def test_odd_histories_are_read_checked_mended_and_shown(api: Any) -> None:
    rng = random.Random(f"history {api}")
    known = [history for history in recorded(api) if isinstance(history, list)]
    if api == "openai_responses":
        known += [[{"role": "user", "content": "x"}, *MORE_ITEMS]] * (len(known) // 4)
    rules = serving(api, "rules")
    for _ in range(examples(100)):
        history = spoilt(rng, rng.choice(known) if rng.random() < 0.6 else composed(api, rng))
        check_messages(api, history, system=rng.choice(ODD), tools=rng.choice([None, [], ODD]))
        rules.check_request({"model": "m", rules.SHAPE.messages_key: history})
        apply_repairs(history, propose_repairs(api, history, thorough=rng.random() < 0.5))
        propose_repairs(rng.choice([*ADAPTERS]), history, thorough=True)
        read_messages(api, history, rng.choice(ODD), 300)
        body = {"model": "m", rules.SHAPE.messages_key: history}
        for value in (history, body, {"request": body, "response": spoilt(rng, body)}):
            try:
                open_document(value, Place("-"))
            except DocumentError:
                continue
        try:
            Transcript.from_messages(api, history)
        except TranscriptError:
            continue


@pytest.mark.parametrize("api", ADAPTERS)
def test_odd_parts_for_one_api_are_refused_and_raise_nothing(api: Any) -> None:
    rng = random.Random(f"part {api}")
    rules = serving(api, "rules")
    key = "parts" if api == "gemini_generate_content" else "content"
    parts: list[Any] = [
        {"type": "image", "source": {"type": "url", "url": "https://a.example/a.png"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
        {"type": "input_image", "image_url": "https://a.example/a.png"},
    ]
    for history in recorded(api):
        for message in history if isinstance(history, list) else ():
            content = message.get(key)
            parts += [part for part in content or () if isinstance(part, dict)]
    for _ in range(examples(300)):
        part = spoilt(rng, rng.choice(parts))
        for place in ("message", "result"):
            rules.check_part(part, place)


@pytest.mark.parametrize("odd", [[], ["completed"], {}, {"a": 1}], ids=json.dumps)
def test_a_status_or_an_id_that_no_table_can_look_up_is_none(odd: Any) -> None:
    call = {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"}
    adapter: Any = ADAPTERS["openai_responses"]
    turn = adapter.response({"id": "r", "status": odd, "output": [call]})
    assert [block.name for block in turn.calls] == ["look"]
    with pytest.raises(AdapterError):
        adapter.response({"id": "r", "status": odd})
    program = {"type": "program", "id": "p", "call_id": odd, "caller": {"type": "direct"}}
    answer("openai_responses", {"id": "r", "status": "completed", "output": [program, call]})


@pytest.mark.parametrize("api", ADAPTERS)
@pytest.mark.parametrize("odd", [5, ["x"], {"a": 1}, None, True], ids=json.dumps)
def test_a_result_whose_text_is_no_text_is_written_for_every_api(api: Any, odd: Any) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    for part in ({"text": odd}, {"type": "text", "text": odd}):
        history = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": [part]},
        ]
        mended = apply_repairs(history, propose_repairs(api, history, thorough=True))
        assert "look" in json.dumps(mended)


def _with_counts(value: Any, count: int) -> Any:
    """The same, and everywhere as many tokens."""
    if isinstance(value, list):
        return [_with_counts(one, count) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: count
        if type(one) is int and any(word in key.lower() for word in ("token", "eval_count"))
        else _with_counts(one, count)
        for key, one in value.items()
    }


@pytest.mark.parametrize("count", [10**12, 2**63, 10**400, -1], ids=["1e12", "2e63", "1e400", "-1"])
@pytest.mark.parametrize("api", sorted(ADAPTERS))
def test_more_tokens_than_can_be_are_no_count_R4(api: str, count: int) -> None:
    """A dump with such a number is not loaded."""
    turns = [ADAPTERS[api].response(_with_counts(reply, count)) for reply in recorded_replies(api)]
    for events in recorded_streams(api):
        decoder = ADAPTERS[api].stream_decoder()
        for event in _with_counts(events, count):
            decoder.feed(event)
        turns.append(decoder.partial())
    assert {turn.usage for turn in turns} == {Usage()}
