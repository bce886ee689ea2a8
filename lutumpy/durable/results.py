"""How a run of a durable loop ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from lutumpy.durable.types import Taken
from lutumpy.loops import LoopResult

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["Answered", "RunResult", "Waiting"]


@dataclass(frozen=True, slots=True)
class Answered:
    """The model answered, or a limit was reached. The conversation is in the store.

    Attributes:
        result: How it ended. Its `rounds` are those since the user's last message, in whichever
            process; its `usage` is what this run alone cost.
    """

    result: LoopResult


@dataclass(frozen=True, slots=True)
class Waiting:
    """A person has to decide calls before the conversation goes on. This process may end.

    Attributes:
        plan: The plan, as `ToolRoundPlan.dump` gives it, to be shown.
        held: The ids of the calls that nobody has decided yet.
        digest: The digest of the plan, which decisions have to name.
    """

    plan: Mapping[str, JsonValue] = field(repr=False)
    held: tuple[str, ...]
    digest: str


RunResult: TypeAlias = "Answered | Waiting | Taken"
"""What `DurableLoop.run` gives."""
