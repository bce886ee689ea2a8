"""Answers of streams in every form in which recorders keep them: each is read and shown."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from cli_toolkit import BROKEN, FIXTURES, Run, Write, user
from profiles import examples

from lutumpy.apis import api_names, serving
from lutumpy.cli.answers import answer_values, api_of_answer, read_answer

FILES = {
    "anthropic_messages": "anthropic_messages_sse",
    "bedrock_converse": "bedrock_converse",
    "gemini_generate_content": "gemini_generate_content_sse",
    "ollama_chat": "ollama_chat_ndjson",
    "openai_chat": "openai_chat_sse",
    "openai_responses": "openai_responses_sse",
}
REQUESTS: dict[str, Any] = {
    "anthropic_messages": {"model": "claude-x", "max_tokens": 9, "messages": [user()]},
    "bedrock_converse": {"messages": [{"role": "user", "content": [{"text": "Look."}]}]},
    "gemini_generate_content": {"contents": [{"role": "user", "parts": [{"text": "Look."}]}]},
    "ollama_chat": {"model": "qwen3", "messages": [user()], "options": {}},
    "openai_chat": {"model": "gpt-x", "messages": [user()]},
    "openai_responses": {"model": "gpt-x", "input": [user()]},
}


def recorded_events(api: str) -> list[list[Any]]:
    """The events of each recorded stream."""
    streams = []
    for line in (FIXTURES / f"{FILES[api]}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        answer = entry["response"]
        if isinstance(answer, dict) or entry.get("status", 200) >= 400:
            continue
        if isinstance(answer, list):
            streams.append([{event["event"]: event["payload"]} for event in answer])
            continue
        data = re.findall(r"^data: *(.+?)\r?$", answer, re.M) or answer.splitlines()
        streams.append([json.loads(text) for text in data if text != "[DONE]"])
    return streams


STREAMS = {api: recorded_events(api) for api in FILES}


def turn_of(api: str, events: list[Any]) -> Any:
    decoder = serving(api, "adapter").stream_decoder()
    for event in events:
        for _ in decoder.feed(event):
            pass
    return decoder.finish()


def name_of(event: Any) -> str:
    return event.get("type") or next(iter(event))


def in_envelope(event: Any, api: str, key: str, as_text: bool) -> Any:
    inner = event[name_of(event)] if api == "bedrock_converse" else event
    return {"event": name_of(event), key: json.dumps(inner) if as_text else inner}


def written(events: list[Any], api: str, draw: random.Random) -> tuple[Any, str]:
    """The events as some recorder writes them, and how that was."""
    dense = draw.choice([None, (",", ":")])
    ascii_only = draw.random() < 0.5
    values = events
    how = []
    # Without the names of Converse's events an envelope of text can't be told from other text.
    if draw.random() < 0.3:
        key, as_text = draw.choice(["data", "payload"]), api != "bedrock_converse"
        as_text = as_text and draw.random() < 0.5
        values = [in_envelope(event, api, key, as_text) for event in events]
        how.append(f"in envelopes ({key}, {'text' if as_text else 'object'})")
    if draw.random() < 0.15:
        return values, ", ".join([*how, "a list"])
    indent = 2 if draw.random() < 0.2 else None
    texts = [
        json.dumps(v, indent=indent, separators=dense, ensure_ascii=ascii_only) for v in values
    ]
    end = draw.choice(["\n", "\r\n", "\r"])
    if draw.random() < 0.15:
        text = "[" + f"\n{draw.choice(['', ' '])},\n".join(texts) + "]"
        how.append("a JSON array")
    elif draw.random() < 0.3:
        blank = draw.choice(["", "\n", "\n\n"])
        text = "\n".join(text + blank for text in texts)
        if draw.random() < 0.4:
            text += "\n[DONE]\n"
        how.append("JSON lines")
    else:
        space = draw.choice(["", " ", "  "])
        gap = draw.choice(["", "\n"])
        lines = []
        for event, text in zip(events, texts, strict=True):
            if draw.random() < 0.2:
                lines.append(": keep-alive\n" + gap)
            name = f"event: {name_of(event)}\n" if gap and draw.random() < 0.7 else ""
            data = "\n".join(f"data:{space}{line}" for line in text.split("\n"))
            lines.append(f"{name}{data}\n{gap}")
        text = "".join(lines)
        if draw.random() < 0.5:
            text += f"data:{space}[DONE]\n{gap}"
        how.append("an event stream")
    if draw.random() < 0.3:
        text = "\ufeff" + text
        how.append("with a byte order mark")
    if draw.random() < 0.3:
        text = "\n\n" + text + "\n\n"
    return text.replace("\n", end), ", ".join([*how, repr(end), f"indent {indent}"])


@pytest.mark.pure
@pytest.mark.slow
def test_a_streamed_answer_is_read_in_every_form_in_which_it_may_be_kept() -> None:
    draw = random.Random(25)
    assert set(FILES) == set(api_names())
    turns = {api: [turn_of(api, events) for events in STREAMS[api]] for api in FILES}
    for _ in range(examples(400)):
        for api, streams in STREAMS.items():
            number = draw.randrange(len(streams))
            answer, how = written(streams[number], api, draw)
            about = f"{api}, stream {number}, {how}"
            assert list(answer_values(answer)) == streams[number], about
            assert api_of_answer(answer) == api, about
            assert read_answer(api, answer) == turns[api][number], about


def test_a_whole_answer_kept_as_text_is_read_as_well() -> None:
    for api, name in FILES.items():
        seen = 0
        for line in (
            (FIXTURES / f"{name.removesuffix('_sse').removesuffix('_ndjson')}.jsonl")
            .read_text()
            .splitlines()
        ):
            entry = json.loads(line)
            whole = entry["response"]
            if not isinstance(whole, dict) or entry.get("status", 200) >= 400:
                continue
            turn = read_answer(api, whole)
            for text in (
                json.dumps(whole),
                json.dumps(whole, indent=2),
                f"\ufeff{json.dumps(whole)}\r\n",
            ):
                assert api_of_answer(text) == api, line[:200]
                assert read_answer(api, text) == turn, line[:200]
            seen += turn is not None
        assert seen > 5, api


def test_separators_of_lines_that_json_may_hold_end_no_event() -> None:
    event = {"choices": [{"delta": {"content": "a\u2028b\x85c"}, "finish_reason": "stop"}]}
    text = f"data: {json.dumps(event, ensure_ascii=False)}\n\ndata: [DONE]\n\n"
    turn = read_answer("openai_chat", text)
    assert turn is not None
    assert turn.text == "a\u2028b\x85c"


def test_an_answer_that_broke_off_hides_neither_its_request_nor_its_end() -> None:
    event = {"choices": [{"delta": {"content": "Seen."}, "finish_reason": "stop"}]}
    cut = {"choices": [{"delta": {"content": "Seen."}}]}
    assert read_answer("openai_chat", json.dumps(event) + '\n{"usage": {"to') is not None
    assert read_answer("openai_chat", json.dumps(cut) + '\n{"choices": [{"de') is None
    for other in ("", "not found", "[DONE]", "[", "null", '"text"', "7", "data:\n\n", "data: x"):
        assert read_answer("openai_chat", other) is None, other
        assert api_of_answer(other) is None, other
    for nothing in (None, 7, [], {}, [None], [7], {"event": "ping"}):
        assert read_answer("openai_chat", nothing) is None


def shown_text(records: list[dict[str, Any]]) -> list[str]:
    """The text of each document's answer."""
    texts = [""]
    for record in records:
        if record["type"] == "step" and str(record["position"]).startswith("answer"):
            texts[-1] += json.dumps([record["pieces"], record["calls"]])
        if record["type"] == "document":
            texts.append("")
    return texts[:-1]


@pytest.mark.parametrize("api", FILES)
def test_an_exchange_with_json_lines_is_shown_with_its_answer(
    run: Run, write: Write, api: str
) -> None:
    for events in STREAMS[api][:3]:
        as_stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        as_lines = "\n".join(map(json.dumps, events)) + "\n"
        exchanges = [
            {"request": REQUESTS[api], "status": 200, "response": answer}
            for answer in (as_stream, as_lines, events)
        ]
        texts = shown_text(run("show", write("a.jsonl", *exchanges), "--json").records)
        assert len(texts) == 3
        assert texts[0]
        assert len(set(texts)) == 1


@pytest.mark.pure
@pytest.mark.parametrize("api", FILES)
def test_a_request_and_the_lines_of_its_answer_are_one_exchange(
    run: Run, write: Write, api: str
) -> None:
    request = REQUESTS[api]
    first, second = STREAMS[api][0], STREAMS[api][1]
    exchanges = [{"request": request, "response": events} for events in (first, second)]
    expected = shown_text(run("show", write("e.jsonl", *exchanges), "--json").records)
    assert all(expected)

    def lines(events: list[Any], data: str = "", end: str = "\n") -> str:
        return "".join(f"{data}{json.dumps(event)}{end}" for event in events)

    head = json.dumps(request) + "\n"
    pretty = json.dumps(request, indent=2) + "\n"
    named = "".join(
        f": hello\nevent: {name_of(event)}\ndata: {json.dumps(event)}\n\n" for event in first
    )
    data = lines(first, "data: ", "\n\n") + "data: [DONE]\n\n"
    forms = {
        "lines.jsonl": head + lines(first) + head + lines(second),
        "done.ndjson": f"{head}{lines(first)}[DONE]\n\n{head}{lines(second)}[DONE]\n",
        "data.log": head + data + head + lines(second, "data:"),
        "return.jsonl": (head + data + head + lines(second)).replace("\n", "\r\n"),
        "mark.jsonl": f"\ufeff{head}\n\ufeff{lines(first)}\ufeff{head}\ufeff"
        + lines(second, "data:"),
        "named.jsonl": head + named + head + lines(second),
        "pretty.json": pretty + lines(first) + pretty + lines(second),
        "pretty.log": pretty + named + pretty + lines(second, "data: "),
        "array.json": json.dumps([request, *first, request, *second], indent=1),
    }
    for name, known in (
        ("recorder.jsonl", {"request": request, "status": 200}),
        ("body.jsonl", {"body": request}),
    ):
        forms[name] = "".join(f"{json.dumps(known)}\n{lines(events)}" for events in (first, second))
    for name, text in forms.items():
        Path(name).write_text(text, newline="")
        ended = run("show", name, "--json")
        assert (ended.code, shown_text(ended.records)) == (0, expected), name
        ended = run("check", name, "--json")
        *_, summary = ended.records
        assert (summary["documents"], summary["unreadable"]) == (2, 0), name


def test_the_answer_behind_a_bare_list_and_a_whole_answer_are_shown(run: Run, write: Write) -> None:
    whole = {"choices": [{"message": {"role": "assistant", "content": "Seen."}, "index": 0}]}
    whole["choices"][0]["finish_reason"] = "stop"
    for before in ([user()], {"messages": [user()]}, REQUESTS["openai_chat"]):
        file = write("a.jsonl", before, whole, before, before, whole)
        records = run("show", file, "--json", "--api", "openai_chat").records
        texts = shown_text(records)
        assert ["Seen." in text for text in texts] == [True, False, True]
        assert [r["number"] for r in records if r["type"] == "document"] == [1, 2, 3]


def test_an_answer_without_its_request_is_one_fault(run: Run, write: Write) -> None:
    for api in FILES:
        events = STREAMS[api][0]
        ended = run("check", write("a.jsonl", *events, REQUESTS[api], *events), "--json")
        faults = [record for record in ended.records if record["type"] == "unreadable"]
        assert [fault["line"] for fault in faults] == [1], api
        assert faults[0]["cause"].endswith("is an answer without its request"), api
        assert ended.records[-1]["documents"] == 1


def test_lines_that_are_no_stream_are_faults_still(run: Run, write: Write) -> None:
    text = f"event: fire\nid: 7\n{json.dumps(REQUESTS['openai_chat'])}\nretry: soon\ndata: x\n: y\n"
    ended = run("check", write("a.jsonl", text=text), "--json")
    faults = [record for record in ended.records if record["type"] == "unreadable"]
    assert [(fault["line"], fault["column"]) for fault in faults] == [(1, 1), (2, 1), (5, 7)]


def test_repairs_keep_what_stands_behind_a_request(run: Run, write: Write) -> None:
    broken = {"model": "gpt-x", "messages": [user(), user("")]}
    events = STREAMS["openai_chat"][0]
    good = REQUESTS["openai_chat"]
    file = write("a.jsonl", good, *events, {**broken, "messages": [*BROKEN]}, *events)
    ended = run("repair", file, "--out", "b.jsonl")
    assert ended.code in (0, 1)
    lines = [json.loads(line) for line in Path("b.jsonl").read_text().splitlines()]
    assert lines[: len(events) + 1] == [good, *events]
    (mended,) = lines[len(events) + 1 :]
    assert mended["response"] == events
    assert len(mended["request"]["messages"]) > len(BROKEN)
