"""What the table of APIs needs to know of Messages: the shape of its requests, and its checks."""

from __future__ import annotations

from typing import Any

from lutumpy.errors import Problem
from lutumpy.rules.anthropic.messages import WHERE, check_messages, check_request
from lutumpy.rules.shape import HistoryContext, RequestShape

__all__ = ["PREFIX", "SHAPE", "check_history", "check_request"]

PREFIX = "anthropic"
SHAPE = RequestShape(
    messages_key="messages",
    system_key="system",
    paths=("/messages",),
    host="api.anthropic.com",
    position=WHERE,
    turn_form="list",
)


def check_history(messages: Any, context: HistoryContext) -> list[Problem]:
    """Every rule that a list of messages, and a system text beside it, breaks."""
    return check_messages(
        messages,
        context.system,
        tools=context.tools,
        model=context.model,
        thinking=context.thinking,
        server_held_prefix=context.server_held_prefix,
        compatible=context.compatible,
    )
