"""How the rounds of a loop in memory end: they are written into the session, or discarded."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from lutumpy import (
    Finished,
    RoundClosedError,
    Session,
    ToolResult,
    ToolRound,
    ToolRoundPlan,
)
from lutumpy.loops.counts import LoopCounts
from lutumpy.loops.result import UncommittedRoundError

__all__ = ["InSession", "OpenRound", "last_text"]

logger: logging.Logger = logging.getLogger("lutumpy.loops")

OpenRound: TypeAlias = "ToolRound[Any] | ToolRoundPlan[Any]"
"""What a loop has open: a round, or the plan that hooks made of it."""


class InSession:
    """The ends of rounds whose conversation is the session, and nothing else."""

    def finish(self, outcome: Finished[Any], session: Session) -> Generator[Any, Any, None]:
        """Nothing is left to do: the answer is in the session."""
        yield from ()

    def retry(
        self, outcome: Finished[Any], session: Session, message: str, counts: LoopCounts
    ) -> Generator[Any, Any, LoopCounts]:
        """The answer is in the session; the message comes behind it."""
        session.push_user(message)
        yield from ()
        return counts

    def commit(
        self,
        plan: OpenRound,
        session: Session,
        results: Sequence[ToolResult],
        counts: LoopCounts,
    ) -> Generator[Any, Any, LoopCounts]:
        """Write the round; where it no longer fits, discard it with the results in the error."""
        _commit(plan, session, results)
        yield from ()
        return counts

    def cut_off(
        self,
        plan: OpenRound,
        session: Session,
        known_results: Callable[[], Sequence[ToolResult]] | None,
    ) -> None:
        """Write what is known, while an error propagates that matters more than one from here.

        Where nothing was run, nothing is lost: the round is discarded. One that was written or
        discarded before, or that a plan has taken over, is left alone.
        """
        try:
            if known_results is None:
                plan.discard()
            else:
                _commit(plan, session, known_results())
        except RoundClosedError:
            pass
        except UncommittedRoundError as error:
            logger.error("%s", error)
        except BaseException:  # another interrupt
            with suppress(RoundClosedError):
                plan.discard()
            raise


def _commit(plan: OpenRound, session: Session, results: Sequence[ToolResult]) -> None:
    """Write a round; one that an interrupt kept from being written stays open."""
    try:
        plan.commit(session, results, rebase=True)
    except RoundClosedError:
        raise
    except Exception as error:
        plan.discard()
        raise UncommittedRoundError(plan.turn, results, str(error)) from error


def last_text(session: Session) -> str:
    """What the model wrote in its last turn."""
    turns = session.turns()
    return turns[-1].text if turns else ""
