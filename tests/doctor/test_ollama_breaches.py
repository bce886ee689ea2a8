"""Broken bodies of Ollama's API: each breach is found, and what can be mended is."""

from __future__ import annotations

import copy
import itertools
import random
from typing import Any

import pytest
from profiles import examples

from lutumpy import InvalidToolConstraints, LutumpyError, RawPart, Transcript, TranscriptError
from lutumpy.adapters.ollama import OllamaChat
from lutumpy.apis import serving
from lutumpy.doctor import apply_repairs, check_messages, propose_repairs
from lutumpy.doctor.ollama.spelling import SPELLING
from lutumpy.doctor.writing import reader_for
from lutumpy.models import ToolOffering, ToolSpec
from lutumpy.rules.ollama.law import read_tool
from lutumpy.rules.ollama.parts import check_part
from lutumpy.rules.ollama.tool_settings import TOOL_SETTINGS

API = "ollama_chat"
VALUES: list[Any] = [
    None, 1, True, "", "x", [], {}, ["x"], [1], [None], {"type": "text", "text": "t"}, [[]],
    [{"type": "text", "text": "t"}], [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}],
    ["data:image/png;base64,aGk="], [{"url": "data:image/png;base64,aGk="}], "data:image/png;base64,aGk=",
    {"name": "look", "arguments": "{}"}, [{"name": "look", "arguments": '{"a": 1}'}], [{"name": "look", "args": None}],
    [{"function": {"name": "look", "arguments": {}}}], [{"function": {"name": 1, "arguments": "x"}}], [{"function": {}}],
    [{"function": None}], [{"id": 3, "function": {"name": "look", "arguments": {}}}], {"function": {"name": "look", "arguments": {}}},
]  # fmt: skip
CALL: dict[str, Any] = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"function": {"name": "look", "arguments": {"a": 1}}}],
}
HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "u", "images": ["aGk="]},
    CALL,
    {"role": "tool", "tool_name": "look", "content": "r"},
    {"role": "assistant", "content": "a", "thinking": "hm"},
    {"role": "user", "content": "more"},
]
KEYS = ("role", "content", "tool_calls", "images", "tool_name", "tool_call_id", "thinking", "odd")


def broken() -> list[Any]:
    found: list[Any] = [
        None,
        "x",
        [],
        [None],
        ["x"],
        [1],
        [{}],
        [{"tool_name": "look", "content": "x"}],
    ]
    for place, key, value in itertools.product(range(len(HISTORY)), KEYS, VALUES):
        history = copy.deepcopy(HISTORY)
        history[place][key] = value
        found.append(history)
        if key == "content":
            odd = copy.deepcopy(history)
            del odd[place]["role"]
            found.append(odd)
        if key in ("tool_calls", "images", "tool_name"):
            odd = copy.deepcopy(history)
            odd[place]["role"] = "sage"
            found.append(odd)
    return found


@pytest.mark.pure
@pytest.mark.slow
def test_whatever_is_broken_is_told_and_mending_raises_nothing() -> None:
    rules = serving(API, "rules")
    mended = 0
    for history in broken():
        for problem in check_messages(API, history) if isinstance(history, list) else ():
            assert problem.message
        if not isinstance(history, list):
            continue
        repairs = propose_repairs(API, history)
        mended += bool(repairs)
        assert all(repair.reason for repair in repairs)
    assert mended > 200
    tools: list[Any] = [
        {
            "type": "function",
            "function": {"name": "look", "description": "d", "parameters": {"type": "object"}},
        },
    ]
    for value in VALUES:
        for body in (
            {"tools": value}, {"tools": [value]}, {"tools": [{"type": value}]},
            {"tools": [{**tools[0], "function": value}]},
            *[{"tools": [{**tools[0], "function": {**tools[0]["function"], name: value}}]} for name in ("name", "description", "parameters")],
            {"format": value}, {"think": value}, {"options": value}, {"stream": value}, {"model": value}, {"odd": value},
        ):  # fmt: skip
            rules.check_request({"model": "m", "messages": HISTORY, **body})


def test_repairs_fit_beside_each_other_where_an_entry_is_added_before_an_equal_one() -> None:
    """A user's message with calls becomes two, the second as the one behind it."""
    written = {"name": "look", "arguments": '{"a": 1}'}
    user = {"role": "user", "content": "u", "images": ["aGk="]}
    for role, more in (("user", ()), ("sage", HISTORY[4:]), ("user", HISTORY[4:])):
        history = [{**user, "role": role, "tool_calls": [written]}, CALL, HISTORY[3], *more]
        repairs = propose_repairs(API, history)
        assert "convert_message" in [repair.kind for repair in repairs]
        mended = apply_repairs(history, repairs)
        assert propose_repairs(API, mended) == []
        with pytest.raises(TranscriptError, match="doesn't fit"):
            apply_repairs(mended, repairs)


def test_repairs_of_whatever_is_broken_fit_the_history_that_they_were_made_for() -> None:
    rng = random.Random(25)
    for _ in range(examples(400)):
        history = copy.deepcopy(HISTORY)
        for _ in range(rng.randint(1, 4)):
            chance, place = rng.random(), rng.randrange(len(history))
            if chance < 0.6:
                history[place][rng.choice(KEYS)] = copy.deepcopy(rng.choice(VALUES))
            elif chance < 0.8:
                history.insert(place, copy.deepcopy(rng.choice(history)))
            elif len(history) > 1:
                history.pop(place)
        mended = apply_repairs(history, propose_repairs(API, history))
        assert propose_repairs(API, mended) == []


def test_parts_for_this_api_are_held_against_its_rules() -> None:
    for value in ({}, {"role": "x"}, {"images": 1}, {"images": []}, {"images": ["-"]}, {"odd": 1}):
        try:
            RawPart(API, value, "text")
        except (TypeError, ValueError, LutumpyError) as error:
            assert str(error)
    for value in ({"images": 1}, {"images": []}, {"images": ["-", "aGk="]}, {}, {"role": "x"}):
        assert check_part(value, "user")
    for text in ("x", {}, {"type": "web"}, {"function": {}}):
        assert read_tool(text) is None or read_tool({"type": "web"}) is None
    assert TOOL_SETTINGS.check_type is not None
    assert "functions only" in str(TOOL_SETTINGS.check_type("web", "look"))


def test_a_format_beside_tools_is_refused_before_it_is_sent_C9() -> None:
    transcript = Transcript()
    transcript.push_user("Hello.")
    offer = ToolOffering((ToolSpec("look", "", {"type": "object"}),))
    with pytest.raises(InvalidToolConstraints, match="format"):
        OllamaChat.request(transcript, offer, format="json")
    body = OllamaChat.request(transcript, None, options=1, temperature=1)
    assert body["options"] == 1


def test_single_parameters_and_tools_are_judged() -> None:
    check = serving(API, "rules").check_request
    look = {"type": "function", "function": {"name": "look", "parameters": {"properties": 1}}}
    odd = {
        "type": "function",
        "function": {"name": "odd", "parameters": {"properties": {"a": True}}},
    }
    for body in (
        [],
        {"model": "m"},
        {"model": "m", "messages": "x"},
        {"messages": HISTORY},
        {"model": "m", "messages": HISTORY, "top_logprobs": 99},
        {"model": "m", "messages": HISTORY, "keep_alive": []},
        {"model": "m", "messages": HISTORY, "tools": [look, look]},
        {"model": "m", "messages": HISTORY, "tools": [odd]},
    ):
        assert check(body), body


def test_a_result_may_have_images() -> None:
    message = {"role": "tool", "tool_name": "look", "content": "seen", "images": ["aGk="]}
    _, pieces = reader_for(SPELLING).read_entry(message, 0)
    assert pieces
