"""What a loop came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lutumpy.core.items import AssistantTurn, Usage
from lutumpy.errors import LutumpyError
from lutumpy.rounds.outcome import TurnResult
from lutumpy.tools.results import ToolResult

StoppedBy = Literal[
    "answer", "round_limit", "refusal", "length", "repeat", "budget", "paused", "unknown"
]
"""Why a loop ended; see `LoopResult.stopped_by`."""


@dataclass(frozen=True, slots=True)
class LoopResult:
    """How a loop ended. Everything that was said and done is in the session.

    Attributes:
        text: What the model wrote in its last turn; perhaps empty where that called tools.
        rounds: How many rounds were committed.
        usage: Tokens of this loop alone: what the session has cost since it began.
        stopped_by: `answer`: the model answered. `refusal`: it refused (`result.refusal`), or the provider filtered the answer.
            `length`: the answer was cut by the output limit. `paused`: the provider paused its turn; another loop goes on with it.
            `unknown`: the provider gave no reason that is known, and the answer has no text or broke off
            (`result.turn.provider_finish_reason` is its own word).
            `round_limit`, `repeat`, `budget`: a limit of the loop, with the last round committed and no answer yet.
        result: The finished answer, or `None` where one of the loop's own limits stopped it.
    """

    text: str
    rounds: int
    usage: Usage
    stopped_by: StoppedBy
    result: TurnResult | None = field(default=None, repr=False)


class UncommittedRoundError(LutumpyError, RuntimeError):
    """Tools ran, and their round could not be committed: meanwhile the session was changed in a way that leaves no place for it.

    The session is as the others left it and can be used; the round is discarded, so what ran is in this error alone. Its
    `__cause__` says what stood in the way.

    Attributes:
        turn: The answer that asked for the calls.
        results: One for each call that was to be run, in call order.
    """

    def __init__(self, turn: AssistantTurn, results: Sequence[ToolResult], reason: str) -> None:
        self.turn: AssistantTurn = turn
        self.results: tuple[ToolResult, ...] = tuple(results)
        self.reason: str = reason
        names = ", ".join([result.metadata.name for result in self.results]) or "no tool"
        super().__init__(
            f"a round that ran {names} could not be committed and was discarded, the session is as it was; "
            f"the results are in this error's `results`. The reason: {reason}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.turn, self.results, self.reason)
