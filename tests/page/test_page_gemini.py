"""What a page shows of contents of generateContent, good ones and broken ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lutumpy import Usage
from lutumpy.page import render
from lutumpy.page.readers import read_messages
from lutumpy.page.text import LIMIT
from lutumpy.page.timeline import UNKNOWN, Timeline
from lutumpy.page.usage import usage_of

API = "gemini_generate_content"
FIXTURES = Path(__file__).parents[1] / "fixtures"
USER: Any = {"role": "user", "parts": [{"text": "Weather?"}]}
PNG = "iVBORw0KGgo="


def read(contents: Any, system: Any = None) -> Timeline:
    return read_messages(API, contents, system, LIMIT)


def turn(ids: bool, snake: bool = False) -> list[Any]:
    call, result = (
        ("function_call", "function_response")
        if snake
        else (
            "functionCall",
            "functionResponse",
        )
    )
    more = [{"id": f"c{n}"} if ids else {} for n in range(2)]
    calls = [{call: {**more[n], "name": name, "args": {"n": n}}} for n, name in enumerate("ab")]
    responses = [{"output": "rain"}, {"error": "no such city"}]
    results = [
        {result: {**more[n], "name": name, "response": responses[n]}} for n, name in enumerate("ab")
    ]
    return [{"role": "model", "parts": calls}, {"role": "user", "parts": results}]


def test_results_stand_with_their_calls_with_ids_and_without() -> None:
    for ids in (True, False):
        for snake in (True, False):
            timeline = read([USER, *turn(ids, snake), *turn(ids, snake)])
            assert [step.style for step in timeline.steps] == ["user", "assistant", "assistant"]
            assert [
                (call.name, [(r.place, r.status, r.astray) for r in call.results])
                for call in timeline.calls()
            ] == [
                (name, [(f"contents[{at}].parts[{n}]", status, "")])
                for at in (2, 4)
                for n, (name, status) in enumerate([("a", "ok"), ("b", "error")])
            ]


def test_thoughts_files_and_parts_of_the_provider_are_told_apart() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    parts = [
        {"text": "Hm.", "thought": True, "thoughtSignature": "AAAA"},
        {"text": "Look.", "thoughtSignature": "AAAA"},
        {"text": ""},
        image,
        {"inline_data": {"mime_type": "application/pdf", "data": "AA_-"}},
        {"fileData": {"fileUri": "gs://x", "mimeType": "video/mp4"}},
        {"executableCode": {"code": "1", "language": "PYTHON"}},
        5,
    ]
    (step,) = read([{"role": "model", "parts": parts}]).steps
    labels = [(piece.kind, piece.label) for piece in step.pieces]
    assert labels[:2] == [("reasoning", "Reasoning, signed"), ("text", "")]
    assert labels[2][0] == "image"
    assert [label for _, label in labels[4:]] == [
        "File",
        "Part of the provider",
        "Part of an unknown form",
    ]


def test_a_result_may_show_files_beside_its_response() -> None:
    contents = turn(True)
    shown = [{"inlineData": {"mimeType": "image/png", "data": PNG}}, 5]
    contents[1]["parts"][0]["functionResponse"]["parts"] = shown
    contents[1]["parts"][1]["functionResponse"]["response"] = {"a": 1, "b": 2}
    first, second = read([USER, *contents]).calls()
    kinds = [piece.kind for piece in first.results[0].pieces]
    assert kinds == ["text", "image", "data"]
    assert "Response" in [piece.label for piece in second.results[0].pieces]


def test_a_system_instruction_is_read_as_a_content() -> None:
    system = {"role": "user", "parts": [{"text": "Be brief."}, 5]}
    step = read([USER], system).steps[0]
    assert (step.style, [piece.kind for piece in step.pieces]) == ("system", ["text", "data"])
    assert step.place == "systemInstruction"
    assert read([USER], "Be brief.").steps[0].pieces[0].kind == "text"
    page = render(
        [USER],
        api=API,
        system={"parts": []},
        problems=[],
        tools=[{"functionDeclarations": [{"name": "weather"}, {"name": "clock"}]}],
    )
    assert "weather" in page
    assert "clock" in page


def test_broken_contents_are_shown_as_they_are() -> None:
    odd: list[Any] = [
        {"parts": "x"},
        {"role": 5, "parts": None},
        {"role": "model", "parts": [], "name": "x"},
        {"role": "narrator", "parts": [{"functionCall": {"name": None}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "lost", "response": "x"}}]},
    ]
    timeline = read(odd)
    assert [step.style for step in timeline.steps][:2] == ["user", "other"]
    assert [stray.astray for step in timeline.steps for stray in step.strays] == [UNKNOWN]


def test_tokens_are_counted_under_the_names_of_the_api() -> None:
    counts = {
        "promptTokenCount": 11,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 2,
        "cachedContentTokenCount": 4,
        "toolUsePromptTokenCount": 3,
        "totalTokenCount": 21,
        "promptTokensDetails": [],
    }
    assert usage_of(counts) == Usage(14, 7, 21, 4, 0, 2)
    assert usage_of({"promptTokenCount": "many"}) == Usage(0, 0, 0, 0, 0, 0)
    assert usage_of({"input_tokens": 3}) == Usage(3, 0, 3, 0, 0, 0)
    beside = {
        "prompt_tokens": 32,
        "completion_tokens": 9,
        "total_tokens": 135,
        "completion_tokens_details": {"reasoning_tokens": 94},
    }
    assert usage_of(beside) == Usage(32, 103, 135, 0, 0, 94)


def test_every_recorded_conversation_is_a_page() -> None:
    lines = (FIXTURES / "gemini_requests.jsonl").read_text(encoding="utf-8").splitlines()
    for request in [json.loads(line)["request"] for line in lines]:
        timeline = read(request["contents"])
        assert all(not step.strays for step in timeline.steps)
        names = [
            (part.get("functionCall") or part.get("function_call"))["name"]
            for content in request["contents"]
            for part in content["parts"]
            if "functionCall" in part or "function_call" in part
        ]
        assert [call.name for call in timeline.calls()] == names
