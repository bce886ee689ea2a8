"""What the tests of the command line share: how a command ended, and histories to give to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent.parent / "fixtures"
Messages = list[dict[str, Any]]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """The JSON lines of standard output."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ended]
Write = Callable[..., str]


def calls(*ids: str) -> dict[str, Any]:
    """An answer of Chat Completions with calls."""
    function = {"name": "look", "arguments": '{"where": "here"}'}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": id, "type": "function", "function": function} for id in ids],
    }


def result(id: str, content: str = "seen") -> dict[str, Any]:
    """A result of Chat Completions."""
    return {"role": "tool", "tool_call_id": id, "content": content}


def user(content: str = "Look.") -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": content}


WHOLE: Messages = [user(), calls("c1", "c2"), result("c1"), result("c2"), user("And?")]
BROKEN: Messages = [user(), calls("c1", "c2"), result("c1"), user("And?")]

SYSTEM: Messages = [{"role": "system", "content": "Be kind."}]
AMBIGUOUS: Messages = [user()]
