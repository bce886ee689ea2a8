"""What the table of APIs needs to know of Responses: the shape of its requests, and its checks."""

from __future__ import annotations

from typing import Any

from lutumpy.errors import Problem
from lutumpy.rules.openai.responses.items import WHERE, check_messages, check_request
from lutumpy.rules.shape import HistoryContext, RequestShape

__all__ = ["PREFIX", "SHAPE", "check_history", "check_request"]

PREFIX = "responses"
SHAPE = RequestShape(
    messages_key="input",
    system_key="instructions",
    paths=("/responses",),
    host="api.openai.com",
    position=WHERE,
    turn_form="list",
    call_id_key="call_id",
)


def check_history(messages: Any, context: HistoryContext) -> list[Problem]:
    """Every rule that a list of input items breaks."""
    return check_messages(
        messages,
        tools=context.tools,
        server_held_prefix=context.server_held_prefix,
        compatible=context.compatible,
    )
