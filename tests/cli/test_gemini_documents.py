"""Bodies of generateContent on the command line: paths with models, tools in one entry."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli_toolkit import Run
from every_api import ADAPTERS, CHECKS, tools_of

from lutumpy.apis import serving
from lutumpy.cli.conversion import convert_tools
from lutumpy.cli.documents import Place, open_document
from lutumpy.cli.findings import problems_of

API = "gemini_generate_content"
HERE = Place("x.json")
URL = "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-flash:generateContent"
BODY: Any = {
    "contents": [
        {"role": "user", "parts": [{"text": "Hi."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "a", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {}}}]},
    ],
    "system_instruction": {"parts": [{"text": "Be brief."}]},
    "tools": {"function_declarations": [{"name": "a"}, {"name": "b"}]},
}


def test_a_body_is_a_whole_request_and_its_address_names_the_model() -> None:
    bare = open_document(BODY, HERE)
    assert (bare.api, bare.kind, bare.is_request, bare.model) == (API, "request", True, None)
    assert bare.system == BODY["system_instruction"]
    assert [tool["function_declarations"][0]["name"] for tool in bare.tools or ()] == ["a", "b"]
    sent = open_document({"url": URL, "body": BODY}, HERE)
    assert (sent.api, sent.model) == (API, "gemini-3-flash")
    assert [p.rule for p in problems_of(sent) if p.certainty == "refused"] == ["gemini.signature"]
    assert not [p for p in problems_of(bare) if p.certainty == "refused"]


def test_an_exchange_may_say_the_model_beside_the_request() -> None:
    answer = {"candidates": [], "usageMetadata": {}}
    exchange = {"request": BODY, "response": answer, "model": "gemini-2.5-flash", "status": 200}
    document = open_document(exchange, HERE)
    assert (document.api, document.model) == (API, "gemini-2.5-flash")
    assert [p for p in problems_of(document) if p.rule == "gemini.signature"] == []
    assert open_document(exchange["request"]["contents"], HERE).api == API


def test_tools_are_converted_one_by_one_and_written_as_one_entry() -> None:
    document = open_document(BODY, HERE)
    fields, left_out = convert_tools(document.tools or [], API, "openai_chat")
    assert [tool["function"]["name"] for tool in fields["tools"]] == ["a", "b"]
    own = [*fields["tools"], {"type": "code_interpreter"}]
    back, left_out = convert_tools(own, "openai_chat", API)
    (entry,) = back["tools"]
    assert [tool["name"] for tool in entry["functionDeclarations"]] == ["a", "b"]
    assert left_out == ["code_interpreter"]
    assert convert_tools([], API, "openai_chat") == ({}, [])
    same, _ = convert_tools(document.tools or [], API, API)
    assert len(same["tools"]) == 1


@pytest.mark.parametrize("command", ["check", "repair", "show"])
def test_every_command_reads_such_a_file(command: str, run: Run, tmp_path: Any) -> None:
    path = tmp_path / "body.json"
    path.write_text(json.dumps(BODY))
    ended = run(command, str(path))
    assert ended.code == 0, ended.err


def test_a_body_is_converted_both_ways(run: Run, tmp_path: Any) -> None:
    path = tmp_path / "body.json"
    path.write_text(json.dumps(BODY))
    ended = run("convert", str(path), "--to", "openai_chat")
    assert ended.code == 0, ended.err
    chat = json.loads(ended.out)
    assert [message["role"] for message in chat["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    path.write_text(ended.out)
    ended = run("convert", str(path), "--to", API)
    assert ended.code == 0, ended.err
    back = json.loads(ended.out)
    assert [content["role"] for content in back["contents"]] == ["user", "model", "user"]
    assert len(back["tools"][0]["functionDeclarations"]) == 2


EMPTY = {"type": "object", "properties": {}}
GEMINIS_OWN = {
    "type": "OBJECT",
    "properties": {
        "city": {"type": "STRING", "nullable": True, "enum": ["Oslo"]},
        "days": {"type": "ARRAY", "max_items": "3", "items": {"type": "INTEGER"}},
        "how": {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}], "nullable": True},
        "type": {"type": "TYPE_UNSPECIFIED", "description": "OBJECT"},
        "nullable": {"type": "BOOLEAN"},
    },
    "required": ["city"],
    "propertyOrdering": ["city", "days"],
}


@pytest.mark.parametrize("to", [api for api in ADAPTERS if api != API])
def test_a_schema_of_geminis_own_dialect_is_json_schema_elsewhere(
    to: Any, run: Run, tmp_path: Any
) -> None:
    """With `OBJECT` and `nullable` every other API refused the request."""
    path = tmp_path / "body.json"
    declared = [
        {"name": "weather", "description": "W.", "parameters": GEMINIS_OWN},
        {"name": "kept", "description": "K.", "parametersJsonSchema": EMPTY},
    ]
    contents = [{"role": "user", "parts": [{"text": "Hi."}]}]
    path.write_text(
        json.dumps({"contents": contents, "tools": [{"functionDeclarations": declared}]})
    )
    ended = run("convert", str(path), "--to", to)
    assert ended.code == 0, ended.err
    body = json.loads(ended.out)
    weather, kept = map(serving(to, "rules").read_tool, tools_of(to, body))
    assert weather.schema == {
        "type": "object",
        "properties": {
            "city": {"type": ["string", "null"], "enum": ["Oslo", None]},
            "days": {"type": "array", "maxItems": 3, "items": {"type": "integer"}},
            "how": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]},
            "type": {"description": "OBJECT"},
            "nullable": {"type": "boolean"},
        },
        "required": ["city"],
    }
    assert kept.schema == EMPTY
    problems = CHECKS[to]({"model": "m", "max_tokens": 1, **body})
    assert [problem for problem in problems if "schema" in problem.rule] == []


def test_a_schema_of_the_dialect_that_is_nested_beyond_the_stack_is_rewritten() -> None:
    schema: Any = {"type": "STRING"}
    for _ in range(3000):
        schema = {"type": "ARRAY", "items": schema}
    tool = {"functionDeclarations": [{"name": "deep", "parameters": schema}]}
    fields, _ = convert_tools([tool], API, "ollama_chat")
    node = fields["tools"][0]["function"]["parameters"]
    while "items" in node:
        assert node["type"] == "array"
        node = node["items"]
    assert node == {"type": "string"}
