"""From the providers' positions to paths, and to positions after messages have moved."""

from __future__ import annotations

from typing import Any

import pytest

from lutumpy.rules.paths import moved_position, path_of

CHAT: list[Any] = [
    {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f"}}]},
    {"content": [{"text": "x"}]},
]
ANTHROPIC: list[Any] = [
    {"role": "user", "content": [{"type": "tool_use", "id": "a", "input": {"tool_use": 1}}]}
]


@pytest.mark.parametrize(
    ("position", "messages", "path"),
    [
        ("messages[0].tool_calls[0].function.name", CHAT, (0, "tool_calls", 0, "function", "name")),
        ("messages[1].content[0].text", CHAT, (1, "content", 0, "text")),
        ("messages[0].tool_calls[0].type", CHAT, (0, "tool_calls", 0, "type")),  # what is missing
        ("messages[7]", CHAT, (7,)),
        ("messages[7].role", CHAT, (7,)),
        ("messages[1].content[0].text.deeper.still", CHAT, (1, "content", 0, "text")),
        ("messages.0.content.0.tool_use.id", ANTHROPIC, (0, "content", 0, "id")),
        (
            "messages.0.content.0.tool_use.input.tool_use",
            ANTHROPIC,
            (0, "content", 0, "input", "tool_use"),
        ),
        ("messages.0.content.0", ANTHROPIC, (0, "content", 0)),
        ("system.0.text", ANTHROPIC, ("system", 0, "text")),
        ("messages", CHAT, ()),
        ("", CHAT, ()),
        ("messages[0]", None, ()),
    ],
)
def test_a_position_leads_to_what_it_names(
    position: str, messages: Any, path: tuple[Any, ...]
) -> None:
    assert path_of(position, messages) == path


@pytest.mark.parametrize(
    ("position", "path", "new", "moved"),
    [
        (
            "messages[2].tool_calls[1].id",
            (2, "tool_calls", 1, "id"),
            (5, "tool_calls", 0, "id"),
            "messages[5].tool_calls[0].id",
        ),
        (
            "messages.2.content.1.tool_use.id",
            (2, "content", 1, "id"),
            (3, "content", 4, "id"),
            "messages.3.content.4.tool_use.id",
        ),
        ("input[4]", (4,), (0,), "input[0]"),
        # What stands in another place now is told by its message alone.
        ("messages[2].content[1]", (2, "content", 1), (3,), "messages[3]"),
        ("messages.2.content.1.text", (2, "content", 1, "text"), (7, "content"), "messages.7"),
        ("system.0.text", ("system", 0, "text"), ("system", 3, "text"), "system.3.text"),
        # A number that is none of the path's stays.
        ("messages[2].x[9]", (2, "x", 1), (3, "x", 1), "messages[3].x[9]"),
        ("", (), (1,), ""),
    ],
)
def test_a_position_follows_what_was_moved(
    position: str, path: tuple[Any, ...], new: tuple[Any, ...], moved: str
) -> None:
    assert moved_position(position, path, new) == moved
