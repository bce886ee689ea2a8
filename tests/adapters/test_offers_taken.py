"""An offer sends no tool that the rules surely refuse: it is rendered so that it is taken, or
refused at once (C9, D5).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from lutumpy import InvalidToolConstraints, Toolset, Transcript, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.models import ToolOffering, ToolSpec
from lutumpy.rules.anthropic import messages as anthropic
from lutumpy.rules.openai.chat import messages as chat
from lutumpy.rules.openai.responses import items as responses
from lutumpy.rules.schema_walk import with_items

APIS: dict[Any, Any] = {OpenAIChat: chat, OpenAIResponses: responses, AnthropicMessages: anthropic}
OPENAI = (OpenAIChat, OpenAIResponses)


class Point(NamedTuple):
    x: float
    name: str


@tool_fn
def pair(at: tuple[float, float], deep: list[dict[str, tuple[int, str]]] | None = None) -> None:
    """Go there."""


@tool_fn
def named(at: Point, more: tuple[int, ...] = (), none: tuple[()] = ()) -> None:
    """Go to a point."""


@tool_fn
def loose(at: list, path: tuple) -> None:  # type: ignore[type-arg]
    """Go along."""


class Tools(Toolset):
    pair = tool(pair)
    named = tool(named)
    loose = tool(loose)


def asked() -> Transcript:
    transcript = Transcript()
    transcript.push_user("go")
    return transcript


@pytest.mark.parametrize("adapter", APIS)
@pytest.mark.parametrize("strict", [None, True])
def test_c9_tuples_and_named_tuples_are_offered_as_every_api_takes_them(
    adapter: Any, strict: Any
) -> None:
    body = {"model": "m", **adapter.request(asked(), Tools.offer(), strict=strict)}
    assert [p for p in APIS[adapter].check_request(body) if p.certainty == "refused"] == []


def test_an_arrays_items_are_what_its_places_hold() -> None:
    number, text = {"type": "number"}, {"type": "string"}
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "array", "prefixItems": [number, number]},
            "b": {
                "anyOf": [{"type": ["array", "null"], "prefixItems": [number, text, number]}, text]
            },
            "c": {"type": "array", "items": {"type": "array"}},
        },
    }
    made = with_items(schema)["properties"]
    assert made["a"]["items"] == number
    assert made["b"]["anyOf"][0]["items"] == {"anyOf": [number, text]}
    assert made["c"]["items"] == {"type": "array", "items": {}}
    assert "items" not in schema["properties"]["a"]  # type: ignore[index]
    fine = {"type": "object", "properties": {"a": {"type": "array", "items": text}}}
    assert with_items(fine) is fine


BAD_SCHEMAS: list[dict[str, Any]] = [
    {"type": "array", "items": {}},
    {"anyOf": [{"type": "object"}]},
    {"type": "object", "properties": {}, "oneOf": [{"type": "object"}]},
    {"properties": {}},
]


@pytest.mark.parametrize("adapter", APIS)
@pytest.mark.parametrize("schema", BAD_SCHEMAS)
def test_c9_a_schema_that_is_surely_refused_is_refused_before_anything_is_sent(
    adapter: Any, schema: Any
) -> None:
    offer = ToolOffering((ToolSpec("odd", "Odd.", schema, False),))
    for ask in (lambda: adapter.request(asked(), offer), lambda: adapter.tools(offer)):
        with pytest.raises(InvalidToolConstraints, match="refuses the tool") as refused:
            ask()
        assert "schema" in str(refused.value)


@pytest.mark.parametrize("adapter", OPENAI)
@pytest.mark.parametrize(
    ("keyword", "value"),
    [("enum", [{}]), ("not", {"required": ["x"]}), ("const", {"x": 1}), ("oneOf", [{}])],
)
def test_c9_what_openai_takes_at_no_root_is_refused_by_name(
    adapter: Any, keyword: str, value: Any
) -> None:
    schema = {"type": "object", "properties": {}, keyword: value}
    offering = ToolOffering((ToolSpec("it", "", schema),))
    with pytest.raises(InvalidToolConstraints, match=f"not have .*'{keyword}'.* at the top level"):
        adapter.request(asked(), offering)


@pytest.mark.parametrize("adapter", OPENAI)
def test_c9_what_a_fine_tuned_model_refuses_of_strict_tools_is_said_early(adapter: Any) -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"type": "integer", "minimum": 1}},
        "required": ["x"],
    }
    offer = ToolOffering((ToolSpec("f", "F.", schema, True),))
    assert adapter.request(asked(), offer, model="gpt-4o")
    with pytest.raises(InvalidToolConstraints, match="'minimum' is not permitted"):
        adapter.request(asked(), offer, model="ft:gpt-4o:org")


def test_c9_a_schema_too_complex_for_anthropics_strict_is_offered_plainly_or_refused() -> None:
    properties = {f"p{n}": {"type": "string"} for n in range(24)}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    left_open = AnthropicMessages.request(
        asked(), ToolOffering((ToolSpec("f", "F.", schema),)), strict=True
    )
    assert "strict" not in left_open["tools"][0]
    with pytest.raises(InvalidToolConstraints, match="too complex"):
        AnthropicMessages.request(asked(), ToolOffering((ToolSpec("f", "F.", schema, True),)))
