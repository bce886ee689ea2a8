"""What tools gave can be left out of a cassette, in each way that an API writes it."""

from __future__ import annotations

from typing import Any

from lutumpy.testing.cassettes.outputs import LEFT_OUT, without_outputs

X = LEFT_OUT
CASES: list[tuple[Any, Any]] = [
    ({"role": "tool", "content": "a", "id": "1"}, {"role": "tool", "content": X, "id": "1"}),
    ({"role": "tool", "id": "1"}, {"role": "tool", "id": "1"}),
    ({"type": "tool_result", "content": [{"text": "a"}]}, {"type": "tool_result", "content": X}),
    (
        {"type": "function_call_output", "output": "a"},
        {"type": "function_call_output", "output": X},
    ),
    (
        {"type": "computer_call_output", "output": {"type": "picture", "image_url": "a"}},
        {"type": "computer_call_output", "output": {"type": "picture", "image_url": X}},
    ),
    (
        {"toolResult": {"toolUseId": "1", "content": [{"json": {"a": 1}}]}},
        {"toolResult": {"toolUseId": "1", "content": [{"text": X}]}},
    ),
    (
        {"functionResponse": {"name": "f", "response": {"a": 1}, "parts": [{}]}},
        {"functionResponse": {"name": "f", "response": {"output": X}}},
    ),
    ({"toolResult": "a text"}, {"toolResult": "a text"}),
    ({"type": "text_output", "text": "a"}, {"type": "text_output", "text": "a"}),
    ([{"role": "user", "content": "a"}, 1, None], [{"role": "user", "content": "a"}, 1, None]),
]


def test_outputs_are_left_out_and_all_else_is_as_it_was() -> None:
    for value, expected in CASES:
        assert without_outputs({"messages": [value]}) == {"messages": [expected]}
        assert without_outputs(expected) == expected
