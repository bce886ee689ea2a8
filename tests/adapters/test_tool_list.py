"""`tools(offer)` of the adapters: the tool list of a request, alone."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from pydantic import BaseModel

from lutumpy import InvalidToolConstraints, Toolset, Transcript, tool, tool_fn, tool_input
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.gemini import Gemini
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.models import ToolOffering, ToolSpec

ADAPTERS: list[Any] = [OpenAIChat, OpenAIResponses, AnthropicMessages]
EVERY_ADAPTER: list[Any] = [*ADAPTERS, Gemini, BedrockConverse]


@tool_input(name="note", output=None)
class Note(BaseModel):
    """Take a note."""

    text: str
    tags: dict[str, str] = {}


@tool_fn(strict=True)
def count(words: list[str], limit: int | None = None) -> int:
    """Count words.

    Args:
        words: The words.
    """
    return len(words)


class Desk(Toolset):
    note = tool(Note)
    count = tool(count)


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("strict", [None, True, False])
def test_it_is_what_the_request_has(adapter: Any, strict: bool | None) -> None:
    transcript = Transcript()
    transcript.push_user("Go.")
    offer = Desk.offer()
    assert (
        adapter.tools(offer, strict=strict)
        == adapter.request(transcript, offer, strict=strict)["tools"]
    )


@pytest.mark.parametrize("adapter", EVERY_ADAPTER)
def test_what_a_caller_does_with_the_list_changes_no_later_one(adapter: Any) -> None:
    transcript = Transcript()
    transcript.push_user("Go.")
    offer = Desk.offer()
    before = json.dumps(adapter.tools(offer))
    listed = adapter.tools(offer)
    for tool_ in own_fields(listed):
        tool_.clear()
        tool_["name"] = "another"
    listed[0]["cache_control"] = {"type": "ephemeral"}
    listed.append({"name": "more"})
    assert json.dumps(adapter.tools(offer)) == before
    assert "another" not in json.dumps(adapter.request(transcript, offer))


@pytest.mark.parametrize("adapter", EVERY_ADAPTER)
def test_a_list_of_the_same_offer_again_is_a_copy_and_nothing_more(adapter: Any) -> None:
    functions = {f"count_{n}": tool(tool_fn(count.__wrapped__, name=f"c{n}")) for n in range(50)}
    Many: Any = type("Many", (Toolset,), functions)
    entered = 0

    def count_calls(frame: Any, event: str, arg: Any) -> None:
        nonlocal entered
        entered += event == "call"

    adapter.tools(Many.offer())
    sys.setprofile(count_calls)
    try:
        again = adapter.tools(Many.offer())
    finally:
        sys.setprofile(None)
    assert len(own_fields(again)) == 50
    # Two functions for each tool at most, and a few around them.
    assert entered <= 2 * 50 + 10


@pytest.mark.parametrize("adapter", EVERY_ADAPTER)
def test_lists_of_one_offer_differ_by_what_is_asked_for(adapter: Any) -> None:
    functions = {"count": tool(tool_fn(count.__wrapped__))}  # it leaves strictness open
    Open: Any = type("Open", (Toolset,), functions)
    offer = Open.offer()
    plain, strict = json.dumps(adapter.tools(offer)), json.dumps(adapter.tools(offer, strict=True))
    assert (plain == strict) is (adapter is Gemini)  # it has a mode of calling in place of that
    assert json.dumps(adapter.tools(offer)) == plain


@pytest.mark.parametrize("adapter", EVERY_ADAPTER)
def test_an_offer_that_is_refused_is_refused_each_time(adapter: Any) -> None:
    offer = ToolOffering((ToolSpec("", "", {"type": "object", "properties": {}}),))
    for _ in range(2):
        with pytest.raises(InvalidToolConstraints):
            adapter.tools(offer)


def own_fields(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The dictionaries with the tools' names."""
    if "functionDeclarations" in listed[0]:
        declared: list[dict[str, Any]] = listed[0]["functionDeclarations"]
        return declared
    return [entry.get("function") or entry.get("toolSpec") or entry for entry in listed]
