"""Messages of Anthropic on the page. Broken ones are read like good ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.models import ResultStatus
from lutumpy.page.model import Place
from lutumpy.page.pieces import argument_text, content_pieces, extra_piece, result_content, unwrap
from lutumpy.page.timeline import Timeline

__all__ = ["read_message"]

# What is shown by itself; other keys of a message are shown as they are.
_ANTHROPIC = frozenset(("role", "content"))


def read_message(timeline: Timeline, index: int, message: Mapping[str, Any]) -> None:
    limit = timeline.limit
    calls: list[tuple[int, Mapping[str, Any]]] = []
    answered = False

    def leave(number: int, part: Any) -> bool:
        nonlocal answered
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "tool_use":
            calls.append((number, part))
        elif kind == "tool_result":
            answered = True
            status: ResultStatus | None = "error" if part.get("is_error") is True else None
            timeline.add_result(
                part.get("tool_use_id"),
                result_content(unwrap(part.get("content")), limit),
                (index, "content", number),
                status,
            )
        return kind in ("tool_use", "tool_result")

    pieces = content_pieces(message.get("content"), limit, leave) + extra_piece(
        message, _ANTHROPIC, limit
    )
    if pieces or calls or not answered:
        step = timeline.add_step(message.get("role"), pieces, (index,))
        for number, call in calls:
            place: Place = (index, "content", number)
            timeline.add_call(
                step, call.get("id"), call.get("name"), argument_text(call.get("input")), place
            )
