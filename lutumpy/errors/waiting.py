"""What can go wrong with rounds that outlive their process: plans, and stores of conversations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from lutumpy.errors.base import LutumpyError

__all__ = [
    "EngineError",
    "PlanError",
    "PlanErrorKind",
    "StoreError",
    "StoreErrorKind",
    "TakenOverError",
]

PlanErrorKind = Literal[
    "not_portable",
    "format",
    "version",
    "unsigned",
    "tampered",
    "scope",
    "position",
    "schema",
    "input",
    "committed",
]
"""Why a plan can't be written down, or a dump of one can't be taken up; see `PlanError.kind`."""


class PlanError(LutumpyError, ValueError):
    """A plan can't be written down, or the dump of one can't be taken up; or a ticket isn't signed.

    Of a plan that can't be written down nothing changed: it is still open. Of a dump that was
    refused nothing was loaded, run or written.

    Attributes:
        kind: `not_portable`: an input doesn't survive JSON. `format`: it isn't a dump of a plan.
            `version`: another release wrote it. `unsigned`: it has no signature, or that of a key
            that is not known here. `tampered`: it was changed after it was written. `scope`: it
            belongs to another conversation. `position`: what came before the round is not in the
            session. `schema`: tools that it calls are others now. `input`: an input is none of its
            tool any more. `committed`: its calls are in the transcript already.
        tools: The names of the tools that are others now, for `schema`; else empty.
    """

    def __init__(self, kind: PlanErrorKind, message: str, tools: Sequence[str] = ()) -> None:
        self.kind: PlanErrorKind = kind
        self.tools: tuple[str, ...] = tuple(tools)
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, self.args[0], self.tools)


class TakenOverError(LutumpyError, RuntimeError):
    """Another process has taken the conversation over; this one can write nothing any more.

    Nothing was lost: what was recorded until then is the other's now. What this process did since
    is not used; a tool with the effect `once` that it was running is `maybe_executed`.
    """


class EngineError(LutumpyError, RuntimeError):
    """The engine that should run calls can't be reached, or isn't set up for it.

    Nothing was lost: the round stays open in the store, and the next run asks the engine again for
    the calls that it was given.
    """


StoreErrorKind = Literal[
    "unknown_scope",
    "exists",
    "version",
    "plan",
    "decision",
    "answer",
    "head",
    "damaged",
    "codec",
    "round",
]
"""What was wrong with a request to a store; see `StoreError.kind`."""


class StoreError(LutumpyError, ValueError):
    """A store of conversations can't do what it was asked. It is as it was.

    Attributes:
        kind: `unknown_scope`: it has no such conversation. `exists`: it has one already.
            `version`: another release made its tables. `plan`: no such plan is waiting. `decision`:
            a decision doesn't fit the plan. `answer`: a call asks no such question, or the answer
            doesn't fit its form. `head`: the conversation isn't where the writer thought
            it was. `damaged`: a column holds something else than was written there. `codec`: what
            is there can't be decoded. `round`: the conversation has no such round, or it was
            pruned.
    """

    def __init__(self, kind: StoreErrorKind, message: str) -> None:
        self.kind: StoreErrorKind = kind
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, self.args[0])
