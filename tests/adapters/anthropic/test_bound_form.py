"""What reasoning is bound to: a message without reasoning and without marks of the cache.

The form is tried itself, since a request shows only its digest.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutumpy.adapters.anthropic.bound_form import bound_form

THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}
TEXT = {"type": "text", "text": "Hi"}
MARK = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("content", "left"),
    [
        ([THINKING, TEXT], [TEXT]),
        ([THINKING], None),
        ([{**TEXT, **MARK}, "odd thinking"], [TEXT, "odd thinking"]),
        ("thinking aloud", "thinking aloud"),
        ([TEXT], [TEXT]),
    ],
)
def test_reasoning_and_marks_are_left_out(content: Any, left: Any) -> None:
    message = {"role": "assistant", "content": content}
    form = bound_form(json.dumps(message).encode())
    if left is None:
        assert form == b""
    else:
        assert json.loads(form) == {"role": "assistant", "content": left}
