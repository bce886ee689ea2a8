"""What Ollama refuses of a request, by its own types: the place that each problem names."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy.apis import serving

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
BODY: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "tools": [TOOL],
}


def problems(**fields: Any) -> list[tuple[str, str]]:
    found = serving("ollama_chat", "rules").check_request({**BODY, **fields})
    return [(problem.rule, problem.position) for problem in found]


def declared(**function: Any) -> list[Any]:
    return [{"type": "function", "function": {"name": "look", **function}}]


def test_a_request_that_fits_has_no_problem() -> None:
    fields = {"think": "low", "format": {"type": "object"}, "keep_alive": 3, "stream": False}
    assert problems(**fields) == []
    properties = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert problems(tools=declared(parameters=properties)) == []
    assert problems(tools=declared(parameters={})) == []


@pytest.mark.parametrize(
    ("field", "value", "rule", "position"),
    [
        ("model", 7, "model", "model"),
        ("model", "", "model", "model"),
        ("stream", "yes", "parameters", "stream"),
        ("options", [], "parameters", "options"),
        ("think", "hard", "think", "think"),
        ("format", "xml", "format", "format"),
        ("keep_alive", [], "parameters", "keep_alive"),
        ("top_logprobs", 99, "parameters", "top_logprobs"),
        ("tools", 7, "tools", "tools"),
        ("tools", [None], "tools", "tools[0]"),
        ("tools", [{"function": {}}], "tools", "tools[0].function.name"),
        ("tools", [TOOL, TOOL], "tools", "tools[1].function.name"),
        ("tools", declared(parameters=7), "tools", "tools[0].function.parameters"),
        (
            "tools",
            declared(parameters={"properties": []}),
            "tools",
            "tools[0].function.parameters.properties",
        ),
        (
            "tools",
            declared(parameters={"properties": {"a": True}}),
            "tools",
            "tools[0].function.parameters.properties.a",
        ),
    ],
)
def test_a_field_of_another_type_is_named(field: str, value: Any, rule: str, position: str) -> None:
    assert problems(**{field: value}) == [(f"ollama.{rule}", position)]


@pytest.mark.parametrize(
    ("call", "rule", "position"),
    [
        (7, "tool_calls", ""),
        ({}, "tool_calls", ".function"),
        ({"id": 3, "function": {"name": "look", "arguments": {}}}, "call_id", ".id"),
    ],
)
def test_what_is_wrong_with_a_call_is_named(call: Any, rule: str, position: str) -> None:
    turn = {"role": "assistant", "content": "", "tool_calls": [call]}
    found = problems(messages=[*BODY["messages"], turn, *BODY["messages"]])
    assert found[0] == (f"ollama.{rule}", f"messages[1].tool_calls[0]{position}")
