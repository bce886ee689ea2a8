"""What marks the calls of a structured turn that bring its value, in a transcript.

An endpoint without JSON schema output is offered a tool that takes the value (see
`rounds/structured.py`). A transcript holds the call of it and the result below; an answer is there
by then, although results come last.
"""

from __future__ import annotations

import re

from lutumpy.core.items import AssistantTurn, CallBlock, ToolResults

__all__ = ["VALUE_RECEIVED", "received_value", "value_tool_name"]

VALUE_RECEIVED = "Answer received."
"""The result of the call whose arguments are the value."""

_VALUE_TOOL = re.compile(r"answer(_[1-9][0-9]*)?\Z")


def value_tool_name(number: int) -> str:
    """The name that the tool is offered by, when `number - 1` others are taken: from 1."""
    return "answer" if number == 1 else f"answer_{number}"


def received_value(turn: AssistantTurn, results: ToolResults) -> CallBlock | None:
    """The call of an answer that brought its value, or `None`."""
    received = {
        result.call_id
        for result in results.results
        if result.content == VALUE_RECEIVED and _VALUE_TOOL.match(result.name)
    }
    return next((call for call in turn.calls if call.id in received), None)
