"""What OpenAI's strict mode has limits for is refused before anything is sent (rule C9)."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.errors import InvalidToolConstraints
from lutumpy.models import ToolOffering, ToolSpec


@pytest.mark.parametrize("adapter", [OpenAIChat, OpenAIResponses])
def test_a_strict_tool_nested_too_deeply_is_refused_and_one_that_leaves_it_open_is_sent_as_it_is(
    adapter: Any,
) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    for _ in range(12):
        schema = {
            "type": "object",
            "properties": {"a": schema},
            "required": ["a"],
            "additionalProperties": False,
        }
    with pytest.raises(
        InvalidToolConstraints, match=r"OpenAI refuses 't' as a strict tool: .*nesting"
    ):
        adapter.tools(ToolOffering((ToolSpec("t", "d", schema, True),)))
    (tool,) = adapter.tools(ToolOffering((ToolSpec("t", "d", schema),)), strict=True)
    assert not tool.get("function", tool).get("strict")
