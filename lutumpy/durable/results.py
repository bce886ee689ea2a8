"""How a run of a durable loop ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Generic, TypeAlias, Union

from typing_extensions import TypeVar

from lutumpy.durable.types import Taken
from lutumpy.loops import LoopResult
from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lutumpy import OpenCall
    from lutumpy.tools import Question

__all__ = ["Answered", "RunResult", "Stuck", "Waiting"]


V_co = TypeVar("V_co", default=None, covariant=True)
V = TypeVar("V", default=None)


@dataclass(frozen=True, slots=True)
class Answered(Generic[V_co]):
    """The model answered, or a limit was reached. The conversation is in the store.

    Attributes:
        result: How it ended. Its `rounds` are those since the user's last message, in whichever
            process; its `usage` is what this run alone cost.
    """

    result: LoopResult[V_co]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A person has to decide calls or answer questions, or results have to come, before the
    conversation goes on. This process may end.

    Attributes:
        plan: The plan of the open round, as `ToolRoundPlan.dump` gives it, to be shown.
        held: The ids of the calls that nobody has decided yet.
        digest: The digest of the plan, which decisions have to name.
        open: The calls of the round whose results are still to come.
        questions: What servers want to know from a person, for `loop.answer`; what was answered
            isn't among it.
        poll_after: Seconds after which to call `run` again, where nobody else tells that there is
            something to do; `None` where somebody will.
    """

    plan: Mapping[str, JsonValue] = field(repr=False)
    held: tuple[str, ...]
    digest: str
    open: tuple[OpenCall, ...] = ()
    questions: tuple[Question, ...] = ()
    poll_after: float | None = None


@dataclass(frozen=True, slots=True)
class Stuck:
    """The open round was taken up too often without coming to an end; nothing was tried now.

    `store.retry(scope, by=...)` lets it be tried again.

    Attributes:
        attempts: How often it was.
        error: What went wrong the last time.
    """

    attempts: int
    error: str


RunResult: TypeAlias = Union[Answered[V], Waiting, Taken, Stuck]
"""What `DurableLoop.run` gives."""
