"""Settings of specs that were made by hand: nobody has checked them before the adapter."""

from __future__ import annotations

import re

import pytest

from lutumpy import InvalidToolConstraints
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.models import ToolOffering, ToolSpec

SCHEMA = {"type": "object", "properties": {}}
BASH = {"type": "bash_20250124"}


def test_what_the_adapter_writes_can_not_be_set() -> None:
    claude = ToolSpec("look", "", SCHEMA, None, {"anthropic_messages": {"name": "x"}})
    said = re.escape("provider= of the tool 'look', anthropic_messages: 'name' can't be set")
    with pytest.raises(InvalidToolConstraints, match=said):
        AnthropicMessages.tools(ToolOffering((claude,)))
    chat = ToolSpec("look", "", SCHEMA, None, {"openai_chat": {"function": {}}})
    said = re.escape("provider= of the tool 'look', openai_chat: 'function' can't be set")
    with pytest.raises(InvalidToolConstraints, match=said):
        OpenAIChat.tools(ToolOffering((chat,)))


def test_a_type_takes_the_place_of_all_but_the_name() -> None:
    bash = ToolSpec("bash", "Told to nobody.", SCHEMA, None, {"anthropic_messages": BASH})
    assert AnthropicMessages.tools(ToolOffering((bash,))) == [{**BASH, "name": "bash"}]
    (function,) = OpenAIChat.tools(ToolOffering((bash,)))
    assert function["function"]["description"] == "Told to nobody."
