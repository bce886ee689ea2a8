"""What the table of APIs needs to know of Chat Completions: the shape of its requests, and its checks."""

from __future__ import annotations

from typing import Any

from lutumpy.errors import Problem
from lutumpy.rules.openai.chat.messages import WHERE, check_messages, check_request
from lutumpy.rules.shape import HistoryContext, RequestShape

__all__ = ["PREFIX", "SHAPE", "check_history", "check_request"]

PREFIX = "chat"
SHAPE = RequestShape(
    messages_key="messages",
    system_key=None,
    paths=("/chat/completions",),
    host="api.openai.com",
    position=WHERE,
    turn_form="object",
    calls_key="tool_calls",
)


def check_history(messages: Any, context: HistoryContext) -> list[Problem]:
    """Every rule that a list of messages breaks."""
    return check_messages(
        messages, tools=context.tools, model=context.model, compatible=context.compatible
    )
