"""Entries that were read from a history, as they are sent again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutumpy.adapters.anthropic.original import entries_without_reasoning, takes_system_breakpoint


@pytest.mark.parametrize(
    ("block", "takes"),
    [
        ({"type": "text", "text": "a"}, True),
        ({"type": "text", "text": " "}, False),
        ({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, False),
        ({"type": "image"}, False),
        ("a", False),
    ],
)
def test_a_breakpoint_goes_on_a_text_that_has_none(block: Any, takes: bool) -> None:
    assert takes_system_breakpoint(block) is takes


def test_messages_lose_their_thinking_and_those_that_were_nothing_else_are_left_out() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    text = {"type": "text", "text": "a"}
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": [thinking, text]},
        {"role": "assistant", "content": [thinking]},
        {"role": "assistant", "content": "a text"},
        {"role": "assistant", "content": []},
    ]
    sent = [
        json.loads(entry)
        for entry in entries_without_reasoning([json.dumps(m).encode() for m in messages])
    ]
    assert sent == [{"role": "assistant", "content": [text]}, messages[2], messages[3]]
