"""`tools(offer)` of the adapters: the tool list of a request, alone."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from lutumpy import Toolset, Transcript, tool, tool_fn, tool_input
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses

ADAPTERS: list[Any] = [OpenAIChat, OpenAIResponses, AnthropicMessages]


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
