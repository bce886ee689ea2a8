"""What a page shows, before it is spelled in HTML: steps of a conversation, calls, results, and
notes about them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from lutumpy.models import ResultStatus, Usage
from lutumpy.page.text import Prose, Value

__all__ = [
    "CallView",
    "Change",
    "DecisionView",
    "Noted",
    "Operation",
    "Piece",
    "Place",
    "ProblemView",
    "RepairView",
    "ResultView",
    "Step",
    "ToolView",
]

Place: TypeAlias = "tuple[int | str, ...]"
"""Where something is in what was read: `(3,)`, `(3, "tool_calls", 0)`, `(3, "content", 1)`,
`("system",)`.
"""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message.

    Attributes:
        kind: `text`, `reasoning`, `refusal`, `image`, `file`, or `data` for anything else.
        label: What it is, in words.
        prose: The text of `text`, `reasoning` and `refusal`.
        value: What `data` holds.
        source: The `data:` URI of an image that may be shown.
    """

    kind: Literal["text", "reasoning", "refusal", "image", "file", "data"]
    label: str = ""
    prose: Prose | None = None
    value: Value | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a JSON Patch: `before` is what it takes away, where that is known, and
    `after` what it puts there.
    """

    name: str
    path: str
    before: Value | None
    after: Value | None
    origin: str | None


@dataclass(frozen=True, slots=True)
class ProblemView:
    """A broken rule, as `lutumpy.rules.Problem` has it, with the anchor of what it is about."""

    number: int
    rule: str
    certainty: str
    word: str
    message: str
    position: str
    target: str | None
    details: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RepairView:
    """A proposed edit, with the anchor of what it mends."""

    number: int
    reason: str
    position: str
    target: str | None
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One field of a call's arguments before and after a hook; `None` where it wasn't there."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class DecisionView:
    """What was decided about a call.

    Attributes:
        kind: `pending`, `edited`, `held`, `handled`, `rejected`, `issue`, or another word of the
            caller.
        by: Who decided, in words; empty when nobody did.
        reason: Why; empty when none was given.
        changes: What an edit changed or took away.
        additions: What it added: mostly defaults of the tool.
        input: What the tool was run with, where that isn't what the model asked.
        asked: Every hook that was asked and what it did, in words, where there were several.
    """

    kind: str
    by: str
    reason: str
    changes: tuple[Change, ...]
    additions: tuple[Change, ...]
    input: Value | None
    asked: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Noted:
    """Something that problems and repairs can be about."""

    anchor: str
    place: str
    problems: list[ProblemView] = field(default_factory=list)
    repairs: list[RepairView] = field(default_factory=list)

    @property
    def all_problems(self) -> int:
        """How many problems are shown with it."""
        return len(self.problems)


@dataclass(slots=True, eq=False)
class ResultView(Noted):
    """An answer to a call.

    `astray` says why it stands by itself; empty when it is with its call. `since` says of a
    promise since when its call is open.
    """

    call_id: str = ""
    status: ResultStatus = "ok"
    value: Value | None = None
    pieces: tuple[Piece, ...] = ()
    astray: str = ""
    call: CallView | None = None
    since: str = ""

    @property
    def word(self) -> str:
        """What a badge says of its status."""
        if self.status != "promised":
            return {"ok": "Result", "error": "Error", "rejected": "Rejected"}[self.status]
        if self.call is not None and self.call.elsewhere is not None:
            return "Promised"
        return f"Open since {self.since}" if self.since else "Open"


@dataclass(slots=True, eq=False)
class CallView(Noted):
    """A call with what became of it. `elsewhere` is its result when that is in a later step."""

    call_id: str = ""
    name: str = ""
    kind: str = "function"
    arguments: Value | None = None
    asked: str = ""
    results: list[ResultView] = field(default_factory=list)
    elsewhere: ResultView | None = None
    decision: DecisionView | None = None

    @property
    def all_problems(self) -> int:
        """How many problems are shown with it or its results."""
        return len(self.problems) + sum([result.all_problems for result in self.results])


@dataclass(slots=True, eq=False)
class Step(Noted):
    """A message, or an answer of the model with its calls and their results.

    Attributes:
        number: Counted from 1.
        role: As the message says it.
        style: Which of the page's roles that is: `system`, `developer`, `user`, `assistant`, `tool`
            or `other`.
        title: The role in words.
        pieces: What it says.
        calls: The calls of the answer.
        strays: Results that answer none of them.
        tags: Facts about it, in a few words each.
        usage: Tokens of the answer, where known.
    """

    number: int = 0
    role: str = ""
    style: str = "other"
    title: str = ""
    pieces: list[Piece] = field(default_factory=list)
    calls: list[CallView] = field(default_factory=list)
    strays: list[ResultView] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    usage: Usage | None = None

    @property
    def all_problems(self) -> int:
        """How many problems are shown in it."""
        return len(self.problems) + sum(
            [shown.all_problems for shown in (*self.calls, *self.strays)]
        )


@dataclass(frozen=True, slots=True)
class ToolView:
    """A tool that was offered."""

    name: str
    description: str
    definition: Value


STYLES: Mapping[str, tuple[str, str]] = {
    "system": ("system", "System"),
    "developer": ("developer", "Developer"),
    "user": ("user", "User"),
    "assistant": ("assistant", "Assistant"),
    "model": ("assistant", "Assistant"),
    "tool": ("tool", "Tool result"),
    "function": ("tool", "Tool result"),
}
