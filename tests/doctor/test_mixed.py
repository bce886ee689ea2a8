"""Histories that mix APIs, as a switch of the provider leaves them, are converted and accepted."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from composed import APIS, PNG, ROWS, History, composed
from profiles import examples
from test_mutations import Client
from test_repairs import USER, Json, mended, output, tool

from lutumpy import Transcript
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.doctor import apply_repairs, check_messages, propose_repairs
from lutumpy.doctor.writing import FAILED, as_text
from lutumpy.models import Api
from lutumpy.testing import serve

DIRECTIONS = [(other, api) for api in APIS for other in APIS if api != other]
MORE: Json = {"role": "user", "content": "And now?"}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with serve(None) as server:
        made = Client(server)
        yield made
        made.connection.close()


def walk(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
    for inner in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from walk(inner)


def calls_of(history: History) -> dict[str, tuple[str, Any]]:
    """Name and arguments of each call, by id, whichever API spelled it."""
    found: dict[str, tuple[str, Any]] = {}
    for node in walk(history):
        if isinstance(node.get("function"), dict):
            found[node["id"]] = node["function"]["name"], json.loads(node["function"]["arguments"])
        elif isinstance(node.get("custom"), dict):
            found[node["id"]] = node["custom"]["name"], {"input": node["custom"]["input"]}
        elif node.get("type") == "function_call":
            found[node["call_id"]] = node["name"], json.loads(node["arguments"])
        elif node.get("type") == "custom_tool_call":
            found[node["call_id"]] = node["name"], {"input": node["input"]}
        elif node.get("type") == "shell_call":
            found[node["call_id"]] = "shell", {"action": node["action"]}
        elif node.get("type") == "apply_patch_call":
            found[node["call_id"]] = "apply_patch", {"operation": node["operation"]}
        elif node.get("type") == "tool_use":
            found[node["id"]] = node["name"], node["input"]
        elif isinstance(node.get("toolUse"), dict):
            use = node["toolUse"]
            found[use["toolUseId"]] = use["name"], use["input"]
        elif isinstance(node.get("functionCall"), dict):
            call = node["functionCall"]
            found[call["id"]] = call["name"], call["args"]
    return found


def results_of(history: History) -> dict[str, tuple[str, bool]]:
    """The text of each result, by id, and whether it shows something too.

    Words that mark an error are left out of the text.
    """
    found: dict[str, tuple[str, bool]] = {}
    for node in walk(history):
        node = node.get("toolResult", node)
        call_id = node.get("tool_call_id", node.get("tool_use_id", node.get("toolUseId")))
        content = node.get("content", "")
        if str(node.get("type")).endswith("_call_output"):
            call_id, content = node["call_id"], node.get("output", "")
            if node["type"] not in ("function_call_output", "custom_tool_call_output"):
                content = "" if node.get("output") == [] else f"status {node['status']}"
        if isinstance(node.get("functionResponse"), dict):
            call_id, content = node["functionResponse"]["id"], _content_of(node["functionResponse"])
        if call_id is not None:
            if "input" in node:
                continue  # the call, which has its id in the same place
            parts = [{"text": content}] if isinstance(content, str) else content
            parts = [{"text": as_text(p["json"])} if "json" in p else p for p in parts]
            words = " ".join(part["text"] for part in parts if "text" in part)
            words = (
                words.removeprefix(FAILED.rstrip())
                .replace('{"status":"completed"}', "status completed")
                .strip()
            )
            found[call_id] = words.partition("[image")[0].strip().replace("[]", ""), len(parts) > 1
    return found


def _content_of(result: Json) -> Any:
    """What a result of generateContent says and shows, as other APIs have it."""
    response = result["response"]
    words = response.get("output", response.get("error", json.dumps(response).replace(" ", "")))
    shown = [{"type": "image"} for _ in result.get("parts", ())]
    return [{"text": "" if words == "{}" else words}, *shown] if shown else words.replace("{}", "")


def identified(history: History) -> History:
    """The same with an id for each call, by which the tests tell them apart."""
    for index, content in enumerate(history):
        calls = 0
        for part in content.get("parts", ()):
            for key, first in (("functionCall", index), ("functionResponse", index - 1)):
                if key in part:
                    part[key].setdefault("id", f"call_9{first}_{calls}")
                    calls += 1
    return history


def numbered(history: History, mark: str) -> History:
    """The same with ids of its own."""
    found: History = json.loads(
        re.sub(r'"(call|toolu|tooluse|rs|fc|msg)_(\d)', rf'"\1_{mark}_\2', json.dumps(history))
    )
    return found


@pytest.mark.pure
@pytest.mark.parametrize(("other", "api"), DIRECTIONS)
def test_a_history_that_goes_on_with_another_api_keeps_every_call_with_its_result(
    other: Api, api: Api, client: Client
) -> None:
    rng = random.Random(f"{other} {api}")
    for _ in range(examples(20)):
        before = numbered(identified(composed(other, rng, rounds=2)), "a")
        history = [
            *before,
            *numbered(identified(composed(api, rng, rounds=2)), "m"),
            *numbered(identified(composed(other, rng, rounds=1)), "b"),
        ]
        repairs = propose_repairs(api, history)
        after = apply_repairs(history, repairs)
        assert not [p for p in check_messages(api, after) if p.certainty == "refused"]
        assert propose_repairs(api, after) == []
        assert client.send(api, after) == (200, "")
        assert {repair.kind for repair in repairs} & {
            "close_call",
            "drop_result",
            "drop_call",
        } == set()
        assert same(calls_of(after)) == same(calls_of(history))
        assert {k: w for k, (w, _) in results_of(after).items()} == {
            k: w for k, (w, _) in results_of(history).items()
        }


def same(calls: Mapping[str, tuple[str, Any]]) -> dict[str, tuple[str, Any]]:
    """Free text and an object that holds it are the same arguments."""
    return {key: (name, json.dumps(value, sort_keys=True)) for key, (name, value) in calls.items()}


# ------------------------------------------------------------------ one by one

IMAGE_URL: Json = {
    "type": "image_url",
    "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"},
}
INPUT_IMAGE: Json = {
    "type": "input_image",
    "image_url": f"data:image/png;base64,{PNG}",
    "detail": "low",
}
IMAGE: Json = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": PNG},
}
CHAT_PDF: Json = {
    "type": "file",
    "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
}
INPUT_PDF: Json = {
    "type": "input_file",
    "filename": "a.pdf",
    "file_data": "data:application/pdf;base64,JVBERi0=",
}
PDF: Json = {
    "type": "document",
    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
    "title": "a.pdf",
}
THINKING: Json = {"type": "thinking", "thinking": "Hm.", "signature": "S"}


def said(role: str, *parts: Any) -> Json:
    return {"role": role, "content": list(parts)}


def function(call_id: str, arguments: str = '{"city":"Oslo"}') -> Json:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": "weather", "arguments": arguments},
    }


def calling(*ids: str, content: Any = None) -> Json:
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [function(call_id) for call_id in ids],
    }


def call(call_id: str) -> Json:
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": "weather",
        "arguments": '{"city":"Oslo"}',
    }


def use(call_id: str) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "weather", "input": {"city": "Oslo"}}


def result(call_id: str, content: Any = "rain", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


TEXT: Json = {"type": "text", "text": "I look."}
OLD: Json = {
    "role": "assistant",
    "content": None,
    "function_call": {"name": "weather", "arguments": '{"city":"Oslo"}'},
}
Case = tuple[Api, list[Any], list[Any]]
CASES: dict[str, Case] = {
    # Messages into Chat Completions
    "uses and results of one message each": (
        "openai_chat",
        [
            USER,
            said("assistant", THINKING, TEXT, use("a"), use("b")),
            said("user", result("a"), result("b"), TEXT),
        ],
        [USER, calling("a", "b", content=[TEXT]), tool("a"), tool("b"), said("user", TEXT)],
    ),
    "a marked error": (
        "openai_chat",
        [USER, said("assistant", use("a")), said("user", result("a", "no city", is_error=True))],
        [USER, calling("a"), tool("a", "The tool failed: no city")],
    ),
    "a marked error that says nothing": (
        "openai_chat",
        [USER, said("assistant", use("a")), said("user", result("a", "", is_error=True))],
        [USER, calling("a"), tool("a", "The tool failed and said nothing.")],
    ),
    "blocks in a message of the role tool": (
        "openai_chat",
        [USER, calling("a"), {"role": "tool", "content": [result("a")]}],
        [USER, calling("a"), tool("a")],
    ),
    "another name for the id": (
        "openai_chat",
        [USER, calling("a"), {"role": "tool", "tool_use_id": "a", "content": "rain"}],
        [USER, calling("a"), tool("a")],
    ),
    "blocks under tool_calls": (
        "openai_chat",
        [
            USER,
            {"role": "assistant", "content": None, "tool_calls": [use("a"), call("b")]},
            tool("a"),
            tool("b"),
        ],
        [USER, calling("a", "b"), tool("a"), tool("b")],
    ),
    "a flat call of a framework": (
        "openai_chat",
        [
            USER,
            {
                "role": "assistant",
                "tool_calls": [
                    {"type": "tool_call", "id": "a", "name": "weather", "args": {"city": "Oslo"}}
                ],
            },
            tool("a"),
        ],
        [USER, calling("a"), tool("a")],
    ),
    "the same call both ways": (
        "openai_chat",
        [USER, {**calling("a"), "content": [use("a")]}, tool("a")],
        [USER, calling("a"), tool("a")],
    ),
    "a bare block": ("openai_chat", [USER, use("a"), result("a")], [USER, calling("a"), tool("a")]),
    "an image beside a call": (
        "openai_chat",
        [USER, said("assistant", IMAGE, use("a"), "Hm.", None), said("user", result("a"))],
        [
            USER,
            calling("a", content="Hm."),
            tool("a"),
            said(
                "user", {"type": "image_url", "image_url": {"url": IMAGE_URL["image_url"]["url"]}}
            ),
        ],
    ),
    "parts that lack what they show": (
        "openai_chat",
        [
            USER,
            said(
                "assistant",
                {"type": "image", "source": 5},
                {"type": "document", "source": {}},
                use("a"),
            ),
            said("user", result("a")),
        ],
        [
            USER,
            calling(
                "a",
                content=[
                    {"type": "text", "text": '{"type":"image","source":5}'},
                    {"type": "text", "text": '{"type":"document","source":{}}'},
                ],
            ),
            tool("a"),
        ],
    ),
    # Responses into Chat Completions
    "a search that the provider answered": (
        "openai_chat",
        [USER, {"type": "tool_search_call", "call_id": None, "execution": "server"}, MORE],
        [
            USER,
            said(
                "assistant",
                {
                    "type": "text",
                    "text": '{"type":"tool_search_call","call_id":null,"execution":"server"}',
                },
            ),
            MORE,
        ],
    ),
    "parallel items are one message": (
        "openai_chat",
        [
            USER,
            {"type": "reasoning", "id": "rs_1", "summary": []},
            call("a"),
            call("b"),
            output("a"),
            output("b"),
        ],
        [USER, calling("a", "b"), tool("a"), tool("b")],
    ),
    "items of a provider's own tool": (
        "openai_chat",
        [USER, {"type": "web_search_call", "id": "ws_1", "status": "completed"}, MORE],
        [
            USER,
            said(
                "assistant",
                {
                    "type": "text",
                    "text": '{"type":"web_search_call","id":"ws_1","status":"completed"}',
                },
            ),
            MORE,
        ],
    ),
    "references and reasoning": (
        "openai_chat",
        [
            USER,
            {"type": "item_reference", "id": "msg_1"},
            {"type": "reasoning", "id": "rs_1", "summary": []},
        ],
        [USER],
    ),
    # Chat Completions into Responses
    "a text beside calls": (
        "openai_responses",
        [USER, calling("a", "b", content="I look."), tool("a"), tool("b")],
        [
            USER,
            {"role": "assistant", "content": "I look."},
            call("a"),
            call("b"),
            output("a"),
            output("b"),
        ],
    ),
    "a free text": (
        "openai_responses",
        [
            USER,
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": "a", "type": "custom", "custom": {"name": "w", "input": "ls"}}
                ],
            },
            tool("a"),
        ],
        [
            USER,
            {"type": "custom_tool_call", "call_id": "a", "name": "w", "input": "ls"},
            {"type": "custom_tool_call_output", "call_id": "a", "output": "rain"},
        ],
    ),
    "old functions": (
        "openai_responses",
        [USER, OLD, {"role": "function", "name": "weather", "content": "rain"}],
        [USER, call("call_weather_1"), output("call_weather_1")],
    ),
    "another name for an item's id": (
        "openai_responses",
        [USER, call("a"), {"type": "function_call_output", "tool_call_id": "a", "output": "rain"}],
        [USER, call("a"), output("a")],
    ),
    "a refusal beside calls": (
        "openai_responses",
        [USER, calling("a") | {"refusal": "No."}, tool("a"), MORE],
        [
            USER,
            said("assistant", {"type": "refusal", "refusal": "No."}),
            call("a"),
            output("a"),
            MORE,
        ],
    ),
    "parts of both beside calls": (
        "openai_responses",
        [
            USER,
            calling(
                "a",
                content=[
                    {"type": "output_text", "text": "x"},
                    {"type": "image_url", "image_url": {}},
                    {"type": "file", "file": {}},
                ],
            ),
            tool("a"),
            MORE,
        ],
        [
            USER,
            said(
                "assistant",
                {"type": "output_text", "text": "x"},
                {"type": "output_text", "text": '{"type":"image_url","image_url":{}}'},
                {"type": "output_text", "text": '{"type":"file","file":{}}'},
            ),
            call("a"),
            output("a"),
            MORE,
        ],
    ),
    # Messages into Responses
    "blocks as items": (
        "openai_responses",
        [
            USER,
            said("assistant", THINKING, TEXT, use("a")),
            said("user", result("a", [TEXT, IMAGE]), PDF),
        ],
        [
            USER,
            {"role": "assistant", "content": "I look."},
            call("a"),
            output(
                "a",
                [
                    {"type": "input_text", "text": "I look."},
                    {k: v for k, v in INPUT_IMAGE.items() if k != "detail"},
                ],
            ),
            said("user", INPUT_PDF),
        ],
    ),
    # Chat Completions into Messages
    "calls as blocks": (
        "anthropic_messages",
        [
            USER,
            calling("a", "b", content="I look."),
            tool("a", [TEXT, IMAGE_URL]),
            tool("b", ""),
            said("user", CHAT_PDF),
        ],
        [
            USER,
            said("assistant", TEXT, use("a"), use("b")),
            said("user", result("a", [TEXT, IMAGE]), {"type": "tool_result", "tool_use_id": "b"}),
            said("user", PDF),
        ],
    ),
    "the same block both ways": (
        "anthropic_messages",
        [USER, said("assistant", use("a")) | {"tool_calls": [function("a"), None]}, tool("a")],
        [USER, said("assistant", use("a")), said("user", result("a"))],
    ),
    "items in a message": (
        "anthropic_messages",
        [
            USER,
            said("assistant", call("a")),
            said("user", output("a"), {"type": "input_text", "text": "I look."}),
        ],
        [USER, said("assistant", use("a")), said("user", result("a"), TEXT)],
    ),
    "calls without ids": (
        "anthropic_messages",
        [
            USER,
            {
                "role": "assistant",
                "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Oslo"}}}],
            },
            {"role": "tool", "tool_name": "weather", "content": "rain"},
        ],
        [
            USER,
            said("assistant", use("call_1_0")),
            said("user", result("call_1_0")),
        ],
    ),
    "a message that shows its role": (
        "anthropic_messages",
        [USER, {"tool_calls": [function("a")]}, {"tool_call_id": "a", "content": "rain"}],
        [USER, said("assistant", use("a")), said("user", result("a"))],
    ),
    "old functions as blocks": (
        "anthropic_messages",
        [USER, OLD, {"role": "function", "name": "weather", "content": "rain"}],
        [USER, said("assistant", use("call_weather_1")), said("user", result("call_weather_1"))],
    ),
    # Responses into Messages
    "items as blocks": (
        "anthropic_messages",
        [USER, call("a"), call("b"), output("a", [INPUT_IMAGE]), output("b"), MORE],
        [
            USER,
            said("assistant", use("a"), use("b")),
            said("user", result("a", [IMAGE]), result("b")),
            MORE,
        ],
    ),
    "a failed patch": (
        "anthropic_messages",
        [
            USER,
            {
                "type": "apply_patch_call",
                "call_id": "a",
                "operation": {"path": "x"},
                "status": "completed",
            },
            {
                "type": "apply_patch_call_output",
                "call_id": "a",
                "status": "failed",
                "output": "no such file",
            },
        ],
        [
            USER,
            said(
                "assistant",
                {
                    "type": "tool_use",
                    "id": "a",
                    "name": "apply_patch",
                    "input": {"operation": {"path": "x"}},
                },
            ),
            said("user", result("a", "no such file", is_error=True)),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_another_api_spelled_is_written_in_this_ones_words(name: str, client: Client) -> None:
    api, history, wanted = CASES[name]
    before = copy.deepcopy(history)
    _, after = mended(api, history)
    assert after == wanted
    assert history == before
    assert client.send(api, [*after, USER]) == (200, "")


@pytest.mark.parametrize(
    ("api", "history"),
    [
        ("openai_chat", [USER, said("assistant", use("a")), said("user", result("a"))]),
        ("openai_chat", [USER, call("a"), output("a")]),
        ("openai_responses", [USER, calling("a", content="I look."), tool("a")]),
    ],
)
def test_a_compatible_host_reads_no_other_apis_calls_either(api: Api, history: History) -> None:
    kinds, after = mended(api, history, compatible=True)
    assert set(kinds) <= {"convert_message", "set_role"}
    assert results_of(after) == {"a": ("rain", False)}


SHOWN: dict[str, tuple[Api, list[Any], list[Any]]] = {
    "chat": (
        "openai_chat",
        [USER, said("assistant", TEXT, IMAGE), MORE],
        [
            USER,
            said(
                "assistant",
                TEXT,
                {
                    "type": "text",
                    "text": "[image_url of the assistant's message: see the user message behind]",
                },
            ),
            said(
                "user",
                {"type": "text", "text": "[image_url of the assistant's message]"},
                {**IMAGE_URL, "image_url": {"url": IMAGE_URL["image_url"]["url"]}},
            ),
            MORE,
        ],
    ),
    "responses": (
        "openai_responses",
        [
            USER,
            said("assistant", {"type": "output_text", "text": "See"}, IMAGE_URL),
            call("a"),
            output("a"),
        ],
        [
            USER,
            said(
                "assistant",
                {"type": "output_text", "text": "See"},
                {
                    "type": "output_text",
                    "text": "[input_image of the assistant's message: see the user message behind]",
                },
            ),
            call("a"),
            output("a"),
            said(
                "user",
                {"type": "input_text", "text": "[input_image of the assistant's message]"},
                INPUT_IMAGE,
            ),
        ],
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_model_shows_nothing_so_what_it_was_to_show_is_the_users(
    name: str, client: Client
) -> None:
    api, history, wanted = SHOWN[name]
    _, after = mended(api, history)
    assert after == wanted
    assert client.send(api, after) == (200, "")


def document(source: Json) -> Json:
    return {"type": "document", "title": "A", "context": "about it", "source": source}


@pytest.mark.parametrize(
    ("api", "part", "wanted"),
    [
        ("openai_chat", INPUT_PDF, CHAT_PDF),
        ("openai_chat", PDF, CHAT_PDF),
        (
            "openai_chat",
            {"type": "input_file", "file_id": "file-1"},
            {"type": "file", "file": {"file_id": "file-1"}},
        ),
        (
            "openai_chat",
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "x"},
            },
            {"type": "text", "text": "x"},
        ),
        (
            "openai_chat",
            document({"type": "content", "content": [TEXT, TEXT]}),
            {"type": "text", "text": "A:\nabout it\nI look.\nI look."},
        ),
        (
            "openai_responses",
            document({"type": "content", "content": "a"}),
            {"type": "input_text", "text": "A:\nabout it\na"},
        ),
        (
            "openai_chat",
            document({"type": "text", "media_type": "text/plain", "data": "a"}),
            {"type": "text", "text": "A:\nabout it\na"},
        ),
        (
            "openai_chat",
            {"type": "document", "source": {"type": "content", "content": [IMAGE]}},
            {
                "type": "text",
                "text": as_text(
                    {"type": "document", "source": {"type": "content", "content": [IMAGE]}}
                ),
            },
        ),
        (
            "anthropic_messages",
            {"document": {"format": "txt", "name": "A", "source": {"text": "a"}}},
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "a"},
                "title": "A",
            },
        ),
        (
            "openai_chat",
            {"type": "input_file", "file_url": "https://x/a.pdf"},
            {"type": "text", "text": "[file left out: https://x/a.pdf]"},
        ),
        (
            "openai_chat",
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
            {"type": "text", "text": "[image left out: file_1]"},
        ),
        (
            "openai_chat",
            {"type": "search_result", "source": "x", "title": "y", "content": []},
            {
                "type": "text",
                "text": '{"type":"search_result","source":"x","title":"y","content":[]}',
            },
        ),
        (
            "openai_responses",
            {"type": "document", "source": {"type": "url", "url": "https://x/a.pdf"}},
            {"type": "input_file", "file_url": "https://x/a.pdf"},
        ),
        (
            "openai_responses",
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "input_file", "file_id": "file-1"},
        ),
        (
            "openai_responses",
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
            {"type": "input_text", "text": "[image left out: file_1]"},
        ),
        (
            "openai_responses",
            {"type": "document", "source": {"type": "file", "file_id": "f"}},
            {"type": "input_text", "text": "[file left out: f]"},
        ),
        (
            "anthropic_messages",
            {"type": "input_image", "image_url": "https://x/1.png"},
            {"type": "image", "source": {"type": "url", "url": "https://x/1.png"}},
        ),
        (
            "anthropic_messages",
            {"type": "input_image", "file_id": "file-1"},
            {"type": "text", "text": "[image left out: file-1]"},
        ),
        (
            "anthropic_messages",
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            {"type": "text", "text": "[audio left out]"},
        ),
        ("anthropic_messages", INPUT_PDF, PDF),
        (
            "anthropic_messages",
            {"type": "refusal", "refusal": "No."},
            {"type": "text", "text": "No."},
        ),
    ],
)
def test_a_part_of_another_api_shows_the_same_here(
    api: Api, part: Json, wanted: Json, client: Client
) -> None:
    kinds, (after,) = mended(api, [said("user", part)])
    assert after["content"] == [wanted]
    assert kinds == ["set_content"]
    assert client.send(api, [after]) == (200, "")


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses"])
def test_reasoning_of_another_api_goes_from_a_message_that_says_more(api: Api) -> None:
    kinds, after = mended(api, [USER, said("assistant", THINKING, TEXT), MORE])
    assert kinds[0] == "drop_reasoning"
    assert [part["text"] for part in after[1]["content"]] == ["I look."]


@pytest.mark.parametrize("junk", [True, 1, "call", {"id": "a"}, [0], [{}]])
def test_what_no_api_can_read_as_a_call_is_not_taken_for_another_apis(junk: Any) -> None:
    for api in APIS:
        for repair in propose_repairs(api, [{"tool_calls": junk}, USER]):
            assert repair.kind in ROWS[repair.rule].mending.repairs
            assert "another API" not in repair.reason
            assert "the API that wrote it" not in repair.reason


# ------------------------------------------------------------- what is said

EVERY: tuple[Api, ...] = (*APIS, "ollama_chat")
SHOWING: dict[Api, Json] = {
    "openai_chat": said("user", {"type": "text", "text": "Look."}, IMAGE_URL),
    "openai_responses": said("user", {"type": "input_text", "text": "Look."}, INPUT_IMAGE),
    "anthropic_messages": said("user", {"type": "text", "text": "Look."}, IMAGE),
    "gemini_generate_content": {
        "role": "user",
        "parts": [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": PNG}}],
    },
    "bedrock_converse": said(
        "user", {"text": "Look."}, {"image": {"format": "png", "source": {"bytes": PNG}}}
    ),
    "ollama_chat": {"role": "user", "content": "Look.", "images": [PNG]},
}
"""A user's message with a text and an image, as each API has it."""


def marked(history: History) -> tuple[History, list[str]]:
    """The same with other texts, each there once, and those that aren't reasoning."""
    marks: list[str] = []

    def mark(value: Any, key: str = "", reasons: bool = False) -> Any:
        if isinstance(value, dict):
            thinks = "thought" in value or value.get("type") in ("thinking", "reasoning")
            reasons = reasons or thinks or "reasoningText" in value
            return {name: mark(inner, name, reasons) for name, inner in value.items()}
        if isinstance(value, list):
            return [mark(inner, key, reasons) for inner in value]
        if key in ("text", "content", "output", "error") and isinstance(value, str) and value:
            if reasons:
                return "reasoning"
            marks.append(f"<{len(marks)}>")
            return marks[-1]
        return value

    return mark(history), marks


@pytest.mark.pure
@pytest.mark.parametrize("other", EVERY)
@pytest.mark.parametrize("api", EVERY)
def test_all_that_was_said_and_shown_in_another_apis_words_is_kept(other: Api, api: Api) -> None:
    """What is read of the mended history: keys that an API overlooks say nothing to it."""
    rng = random.Random(f"{other} {api}")
    for _ in range(examples(20)):
        history, marks = marked([*composed(other, rng, rounds=2), SHOWING[other]])
        repairs = propose_repairs(api, history)
        after = apply_repairs(history, repairs)
        assert not [p for p in check_messages(api, after) if p.certainty == "refused"]
        assert propose_repairs(api, after) == []
        kinds = {repair.kind for repair in repairs}
        assert not kinds & {"close_call", "drop_call", "drop_result", "drop_empty"}
        read = json.dumps(OpenAIChat.messages(Transcript.from_messages(api, after)))
        assert [mark for mark in marks if mark not in read] == []
        assert read.count(PNG) == json.dumps(history).count(PNG)


@pytest.mark.parametrize("api", [api for api in EVERY if api != "gemini_generate_content"])
@pytest.mark.parametrize(
    "entry",
    [
        {"role": "user", "parts": ["Go", {"text": "on."}]},
        {"role": "user", "parts": "Go on."},
        {"role": "model", "parts": {"text": "Go on."}},
        {"parts": [{"type": "text", "text": "Go on."}]},
        {"role": "user", "content": "Go on.", "parts": [{"type": "text", "text": "Go on."}]},
        {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": "Go on."}]},
    ],
    ids=str,
)
def test_contents_under_the_key_of_gemini_are_read_once(api: Api, entry: Json) -> None:
    history = [USER, entry, MORE]
    after = apply_repairs(history, propose_repairs(api, history))
    read = AnthropicMessages.messages(Transcript.from_messages(api, after))
    texts = [node.get("text", node.get("content")) for node in walk(read)]
    words = " ".join([text for text in texts if isinstance(text, str)])
    assert words.split() == ["x", "Go", "on.", "And", "now?"]
    assert propose_repairs(api, after) == []


def test_a_call_with_free_text_is_read_beside_one_that_ollama_knows() -> None:
    custom = {"id": "b", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    asked = {**calling("a"), "tool_calls": [function("a"), custom]}
    kinds, after = mended("ollama_chat", [USER, asked, tool("a"), tool("b")])
    assert kinds[0] == "convert_message"
    assert [call["function"] for call in after[1]["tool_calls"]] == [
        {"name": "weather", "arguments": {"city": "Oslo"}},
        {"name": "shell", "arguments": {"input": "ls"}},
    ]
    assert after[2:] == [tool("a"), tool("b")]


FREE_TEXT: Json = {"id": "a", "type": "custom", "custom": {"name": "shell", "input": "ls"}}


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("kinds", ["cf", "fc", "cfc", "fcf", "ccf"])
def test_an_id_of_calls_of_both_kinds_keeps_the_result_of_each(kinds: str, apart: bool) -> None:
    """Hosts use ids again: only the call before it shows of which kind a result is."""
    history: History = [USER]
    for number, kind in enumerate(kinds):
        call = FREE_TEXT if kind == "c" else function("a")
        history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        history.append({**tool("a"), "content": f"result {number}"})
        if apart:
            history += [{"role": "assistant", "content": "Rain."}, MORE]
    made, after = mended("openai_responses", history)
    assert not {"close_call", "drop_result", "drop_call"} & set(made)
    types = {"c": "custom_tool_call", "f": "function_call"}
    calls = [item for item in after if "name" in item]
    assert [call["type"] for call in calls] == [types[kind] for kind in kinds]
    for number, call in enumerate(calls):
        answer = {"type": f"{call['type']}_output", "call_id": call["call_id"]}
        assert {**answer, "output": f"result {number}"} in after


@pytest.mark.parametrize("api", [api for api in EVERY if api != "ollama_chat"])
def test_the_images_of_a_result_of_ollama_are_kept(api: Api) -> None:
    """Ollama's results have the role of those of Chat Completions."""
    history = [USER, calling("a"), {**tool("a"), "images": [PNG]}, MORE]
    after = apply_repairs(history, propose_repairs(api, history))
    written = json.dumps(after)
    assert written.count(PNG) == 1
    assert "rain" in written
    assert '"images"' not in written
    assert not [p for p in check_messages(api, after) if p.certainty == "refused"]


@pytest.mark.parametrize("entry", [{"parts": [{"text": "Go."}]}, {"images": [PNG]}], ids=str)
def test_chat_reads_nothing_beside_a_content(entry: Json) -> None:
    history = [{"role": "user", "content": "", **entry}]
    (problem,) = check_messages("openai_chat", history)
    assert (problem.rule, problem.certainty) == ("chat.content", "discouraged")
    kinds, after = mended("openai_chat", history)
    assert kinds == ["convert_message"]
    assert check_messages("openai_chat", after) == []
    # Some hosts of Chat Completions say images like this, and take them back.
    shown = {"images": [{"type": "image_url", "image_url": {"url": "https://x/1.png"}}]}
    assert check_messages("openai_chat", [{"role": "user", "content": "x", **shown}]) == []


def test_a_file_of_plain_text_is_said_where_no_files_are_shown() -> None:
    table = {"inlineData": {"mimeType": "text/csv", "data": "YSxi"}}
    _, after = mended("ollama_chat", [{"role": "user", "parts": [{"text": "Sum it up."}, table]}])
    assert after == [{"role": "user", "content": "Sum it up.\na,b"}]
