"""Tools that Ollama refuses: the error names them."""

from __future__ import annotations

import pytest
from dynamic_toolkit import weather_tool

from lutumpy import DynamicTool, InvalidToolConstraints, Toolset, dynamic
from lutumpy.adapters.ollama import OllamaChat


class Tools(Toolset):
    plugins = dynamic()


NOTHING = {"type": "object", "properties": {"value": False}}
"""JSON Schema takes `false` in the place of a schema, and Ollama's reader doesn't."""


def test_a_tool_that_is_refused_is_named() -> None:
    refused = DynamicTool("keep", "Keep a value.", NOTHING)
    offer = Tools.with_dynamic_tools({Tools.plugins: [weather_tool(), refused]}).offer()
    with pytest.raises(InvalidToolConstraints, match=r"Ollama refuses the tool keep: .*bool"):
        OllamaChat.tools(offer)
