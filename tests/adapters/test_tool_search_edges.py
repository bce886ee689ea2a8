"""Searches for tools at their edges: what is declared, brought back, and refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutumpy import AssistantTurn, FoundTool, InvalidToolConstraints, TextPart
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.anthropic.offer import check_callers, check_deferred
from lutumpy.adapters.openai.responses.tool_search import (
    declared_offer,
    found_definitions,
    loaded_names,
    search_tool,
)
from lutumpy.adapters.writing import SEARCH_CALL
from lutumpy.models import CallBlock, ResultBlock, ToolOffering, ToolSpec
from lutumpy.rounds.searches import name_search, name_searches

CLAUDE = "anthropic_messages"
SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
    "additionalProperties": False,
}
OPEN = {"type": "object", "properties": {"x": {"type": "object"}}}
FIND, ASK, LOOK = [ToolSpec(name, f"Do {name}.", SCHEMA) for name in ("find", "ask", "look")]


def searching(*specs: ToolSpec, **more: Any) -> ToolOffering:
    return ToolOffering(specs, finder="find", deferred=(LOOK,), **more)


# --- what Responses is declared -------------------------------------------------------------------


def test_the_tool_that_finds_others_is_a_search_and_no_function() -> None:
    offer = searching(ASK, FIND)
    assert search_tool(offer) == {
        "type": "tool_search",
        "execution": "client",
        "description": "Do find.",
        "parameters": SCHEMA,
    }
    assert declared_offer(offer, set()).specs == (ASK,)


def test_a_search_that_is_forced_or_has_nothing_to_find_is_a_function() -> None:
    forced = searching(ASK, FIND, mode="specific", forced="find")
    assert search_tool(forced) is None
    assert declared_offer(forced, set()).specs == (ASK, FIND)
    assert search_tool(ToolOffering((ASK, FIND), finder="find")) is None


def test_there_is_no_search_where_the_tool_that_finds_is_not_offered() -> None:
    assert search_tool(searching(ASK)) is None
    assert declared_offer(searching(ASK), set()).specs == (ASK,)


def test_what_a_search_brought_is_not_declared_again() -> None:
    offer = searching(ASK, FIND, LOOK)
    assert declared_offer(offer, set()).specs == (ASK, LOOK)
    # A name among the outputs takes away no tool that is always there.
    assert declared_offer(offer, {"look", "ask"}).specs == (ASK,)


# --- what the result of a search brings -----------------------------------------------------------


def definitions(*parts: Any, **more: Any) -> Any:
    return found_definitions(ResultBlock("c1", "find", parts, kind=SEARCH_CALL, **more))


def test_a_result_that_is_not_tools_alone_brings_no_definitions() -> None:
    found = FoundTool("look", "Look.", SCHEMA)
    assert found_definitions(ResultBlock("c1", "find", "look")) is None
    assert definitions(found, TextPart("and more")) is None
    assert definitions(found, status="error") is None
    assert definitions() is None


def test_a_definition_is_strict_where_that_was_asked_and_is_possible() -> None:
    strict, left_open, loose = definitions(
        FoundTool("strict", "", SCHEMA, strict=True),
        FoundTool("left_open", "Open.", OPEN, strict=True),
        FoundTool("loose", "", SCHEMA),
    )
    assert strict == {
        "type": "function",
        "name": "strict",
        "parameters": SCHEMA,
        "strict": True,
        "defer_loading": True,
    }
    assert (left_open["strict"], left_open["parameters"]) == (False, OPEN)
    assert left_open["description"] == "Open."
    assert loose["strict"] is False


def test_a_tool_that_openai_would_refuse_is_left_out() -> None:
    refused = FoundTool("no name of a tool", "", SCHEMA)
    (kept,) = definitions(refused, FoundTool("look", "", SCHEMA))
    assert kept["name"] == "look"
    assert definitions(refused) is None


def test_only_well_formed_outputs_of_searches_load_tools() -> None:
    output = {"type": "tool_search_output"}
    items = [
        {"type": "message", "content": "hello"},
        {"type": "message", "content": "tool_search_output"},
        {**output, "tools": None},
        {**output, "tools": ["look", {"name": 3}, {"name": "ask"}]},
        {**output, "tools": [{"name": "look"}]},
    ]
    assert loaded_names([json.dumps(item).encode() for item in items]) == {"ask", "look"}


# --- the names of searches ------------------------------------------------------------------------


def test_a_search_is_named_like_the_tool_that_runs_it_and_no_other_call_is() -> None:
    search, plain = CallBlock("c1", "", "{}", kind=SEARCH_CALL), CallBlock("c2", "ask", "{}")
    assert name_search(search, "find").name == "find"
    assert name_search(search, None) is search
    assert name_search(plain, "find") is plain
    turn = AssistantTurn("openai_responses", (search, plain), b"[]", (search, plain))
    named = name_searches(turn, "find")
    assert [call.name for call in named.calls] == ["find", "ask"]
    assert all(block is call for block, call in zip(named.blocks, named.calls, strict=True))
    without = AssistantTurn("openai_responses", (plain,), b"[]", (plain,))
    assert name_searches(without, "find") is without


# --- Messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [False, True])
def test_a_deferred_tool_is_deferred_once_whatever_it_says_of_itself(own: bool) -> None:
    spec = ToolSpec("look", "", SCHEMA, None, {CLAUDE: {"defer_loading": own}})
    offer = ToolOffering((ASK, FIND), finder="find", deferred=(spec,))
    body = AnthropicMessages.tools(offer)
    assert [one.get("defer_loading") for one in body] == [True, None, None]
    assert [one["name"] for one in body] == ["look", "ask", "find"]


def test_an_offer_of_deferred_tools_alone_wants_another_beside_it_C9() -> None:
    told = {CLAUDE: {"defer_loading": True}}
    offer = ToolOffering((ToolSpec("a", "", SCHEMA, None, told),))
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    for beside in (None, "x", [], [{"name": "b", "defer_loading": True}]):
        with pytest.raises(InvalidToolConstraints, match=r"deferred \(a\).*nothing was sent"):
            check_deferred(offer, beside)
    check_deferred(offer, [search])
    check_deferred(offer, (search,))
    check_deferred(ToolOffering((*offer.specs, ASK)), None)


def test_a_choice_does_not_go_with_a_tool_that_only_code_calls_C9() -> None:
    told = {CLAUDE: {"allowed_callers": ["code_execution_20260120"]}}
    choice = {"type": "tool", "name": "run"}
    with pytest.raises(InvalidToolConstraints, match="run"):
        check_callers(ToolOffering((ToolSpec("run", "", SCHEMA, None, told),)), choice, None)
    check_callers(ToolOffering((ASK,)), {"type": "tool", "name": "ask"}, None)
