"""An answer of the model that is not in the transcript yet."""

# It is what a round, the plans made from it, and a finished answer that nobody has committed yet
# have in common. Its life:
#
#                   +--apply_hooks()--+  (a plan takes the place of its round, or of a plan)
#                   v                 |
#   made --receive()--> open ---------+
#     |                  |
#     |                  +--write()----> committed
#     |                  +--discard()--> discarded
#     |                  +--(garbage)--> dropped: still open, and the transcript knows
#     |
#     +--write()-----------------------> committed   (finished when it was read: one change)
#
# What is hard is rule K3a: an exception may come out of any line, as those of signals do, and then
# the session is as before the step or as after it. Two stores, "the transcript has it" and "this
# object is closed", can be torn apart. So only the transcript says whether an answer is closed:
# `write` and `discard` put a fresh receipt into the very change that they make. Whoever asks looks
# for that receipt; `closed` only remembers what was found.
#
# The other hard thing is that of several threads exactly one closes an answer (rule K4), with a
# global interpreter lock or without. So all that happens to an answer is one list of `steps`, and a
# step is added by `dict.setdefault` with the next number as its key: that is one atomic operation,
# and whoever finds the step of another thread there has lost. A step is
#
#   the token of the round or plan that holds the answer from now on, or
#   an attempt to close it. Once its writer, a generator, runs no more, either the transcript holds
#   its receipt, or an exception has cut it off and the next attempt may follow.
#
# A lock instead would stay locked where an exception comes between taking it and the `try`, and so
# would a flag; a generator can't be running when nobody runs it.

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import replace
from functools import partial
from inspect import GEN_RUNNING, getgeneratorstate
from typing import TYPE_CHECKING, TypeAlias

from lutumpy.core.item_store import FailureKey, failure_key
from lutumpy.core.items import AssistantTurn, ResultBlock, ToolResults
from lutumpy.core.transcript import Transcript
from lutumpy.core.transcript_state import Receipt
from lutumpy.errors import RoundClosedError, StaleRoundError
from lutumpy.rounds.commit import match_results
from lutumpy.rounds.target import Position, Target, transcript_of
from lutumpy.tools.results import ToolResult, result_block

if TYPE_CHECKING:
    from lutumpy.hooks.pipeline import CallOrIssue
    from lutumpy.hooks.results import CallResult

__all__ = ["OpenAnswer"]

_NOTHING_DECIDED: Mapping[str, ToolResult | None] = {}
_BY_ANOTHER_THREAD = "another thread is closing the answer, or handing it over, at this very moment"

Attempt: TypeAlias = tuple[str, Receipt, Transcript]
"""How an answer is closed, with which receipt, and the transcript that knows whether it was."""


class OpenAnswer:
    """An answer of the model until it is committed or discarded.

    Args:
        turn: The decoded answer.
        entries: Its calls and issues, in order.
        transcript: The transcript that it was read against.
        requested: Where that stood when the request was made.
        results: Results that the library itself has for some of the calls.

    Attributes:
        turn: The decoded answer.
        entries: Its calls and issues, in order.
        transcript: The transcript that it was read against.
        requested: Where that stood when the request was made.
        begun: The same without the ephemerals that leave with the request's success: where the
            round begins.
        steps: Everything that happened to it, numbered from 0: tokens of the rounds and plans that
            hold it one after another, and attempts to close it.
        closed: How it was closed, if that is known already; `how_closed` asks.
        has_twin: Whether it was written down, or comes from a dump, so that another object may be
            committed in its place.
    """

    __slots__ = (
        "_received",
        "_results",
        "begun",
        "closed",
        "entries",
        "has_twin",
        "requested",
        "steps",
        "transcript",
        "turn",
    )

    def __init__(
        self,
        turn: AssistantTurn,
        entries: list[CallOrIssue],
        transcript: Transcript,
        requested: Position,
        results: tuple[ToolResult, ...] = (),
    ) -> None:
        self.turn: AssistantTurn = turn
        self.entries: list[CallOrIssue] = entries
        self.transcript: Transcript = transcript
        self.requested: Position = requested
        self.begun: Position = requested
        self._results = results
        # Whether the transcript knows that the request has succeeded.
        self._received = False
        self.steps: dict[int, object | Attempt] = {}
        self.closed: str | None = None
        self.has_twin: bool = False

    @staticmethod
    def reopen(
        turn: AssistantTurn,
        entries: list[CallOrIssue],
        transcript: Transcript,
        begun: Position,
        *,
        received: bool,
    ) -> OpenAnswer:
        """The answer of a plan that was written down.

        Args:
            turn: The decoded answer.
            entries: Its calls and issues, in order.
            transcript: What it was read against, or another copy of that.
            begun: Where the round begins there.
            received: Whether the transcript knows that the request has succeeded.
        """
        answer = OpenAnswer(turn, entries, transcript, begun)
        answer._received = received
        answer.has_twin = True
        return answer

    def how_closed(self) -> str | None:
        """How it was closed, `committed` or `discarded`; `None` while it is open."""
        if self.closed is None and self.steps:
            # Nothing happens after an attempt that has closed it.
            last = self.steps[len(self.steps) - 1]
            if isinstance(last, tuple):
                how, receipt, transcript = last
                if transcript.holds(receipt):
                    self.closed = how
        return self.closed

    @property
    def holder(self) -> object | None:
        """The token of the round or plan that holds it; `None` where none does."""
        for number in reversed(range(len(self.steps))):
            if not isinstance(step := self.steps[number], tuple):
                return step
        return None

    def hand_over(self, holder: object, heir: object) -> None:
        """Let `heir` hold it from now on: the token of a plan or of a dump, nobody else's.

        Raises:
            RoundClosedError: `holder` doesn't hold it any more, or it was closed, as another task
                may do while an async hook is waiting.
        """
        number = len(self.steps)
        if self.steps[number - 1] is not holder:
            number = self._next_number(holder)
        if self.steps.setdefault(number, heir) is not heir:
            raise RoundClosedError(_BY_ANOTHER_THREAD)

    def _next_number(self, holder: object | None) -> int:
        """The number of the next step if the last one was an attempt to close it that was cut off.

        Raises:
            RoundClosedError: something else holds it, or it was closed, or is just being closed.
        """
        number = len(self.steps)
        last = self.steps[number - 1]
        if isinstance(last, tuple):
            how, receipt, transcript = last
            # In this order: it may be written between the two questions.
            if receipt.writer is not None and getgeneratorstate(receipt.writer) == GEN_RUNNING:
                raise RoundClosedError(_BY_ANOTHER_THREAD)
            if transcript.holds(receipt):
                raise RoundClosedError(f"the answer was {how} before")
        if self.holder is not holder:
            raise RoundClosedError("the answer was handed over before")
        return number

    def receive(self) -> None:
        """Tell the transcript that the request has succeeded.

        Its ephemerals have served then, and what it cost is counted.
        """
        if not self._received:
            length = self.transcript.request_succeeded(self.turn, self.requested.length)
            if length != self.requested.length:
                self.begun = Position(length, self.requested.revision)
            self._received = True

    def discard(self, holder: object | None = None) -> None:
        """Drop the answer; the transcript stays as it is.

        Raises:
            RoundClosedError: another thread closed it, or something else than `holder` holds it.
        """
        receipt = Receipt()
        drop = partial(self.transcript.turn_discarded, receipt)
        receipt.writer = self._close("discarded", holder, receipt, self.transcript, drop)
        next(receipt.writer, None)

    def _close(
        self,
        how: str,
        holder: object | None,
        receipt: Receipt,
        transcript: Transcript,
        change: Callable[[], None],
    ) -> Generator[None, None, None]:
        """Claim the answer, then make the change that closes it.

        It is a generator, which yields nothing, since other threads can ask one whether it runs.
        """
        attempt = how, receipt, transcript
        number = len(self.steps)
        if number and self.steps[number - 1] is not holder:
            number = self._next_number(holder)
        if self.steps.setdefault(number, attempt) is not attempt:
            raise RoundClosedError(_BY_ANOTHER_THREAD)
        change()
        self.closed = how
        yield from ()

    def write(
        self,
        target: Target,
        results: Iterable[CallResult],
        *,
        holder: object | None = None,
        decided: Mapping[str, ToolResult | None] | None = None,
        rebase: bool = False,
    ) -> None:
        """Check everything, then write the turn and its results in one change.

        Args:
            target: Where to.
            results: One for each pending call; explicit ones for issues.
            holder: The token of the round or plan that writes it, if one holds it.
            decided: Results of calls that hooks have handled or rejected, by call id; `None` for
                those that a person has to decide.
            rebase: Write at the end of a target that moved on.

        Raises:
            StaleRoundError: the target isn't the transcript of this round, or items were added
                since. The answer stays open.
            CommitError: the results don't answer the calls. The answer stays open.
            RoundClosedError: another thread closed it, or something else than `holder` holds it.
        """
        transcript = transcript_of(target)
        turn = self.turn
        # Nearly always nothing has happened since.
        if transcript is not self.transcript or transcript.revision != self.begun.revision:
            turn = self._turn_for(transcript, rebase)
        if self._results:
            results = [*self._results, *results]
        matched = match_results(self.entries, results, decided or _NOTHING_DECIDED)
        blocks: list[ResultBlock] = []
        failures: list[FailureKey] = []
        for block, result in zip(turn.calls, matched, strict=True):
            if result.status != "ok" and result.status != "promised":
                failures.append(failure_key(block.name, block.arguments))
            # A call that isn't in the native form of the answer can't be answered there.
            if block.position >= 0:
                blocks.append(result_block(result, block.kind, block.id))
        receipt = Receipt()
        append = partial(
            transcript.append_turn,
            turn,
            ToolResults(tuple(blocks)),
            failures,
            request=None if self._received else self.requested.length,
            # The library has a result only for the value of a structured turn. Where that is there,
            # the tool loop is finished (rule S4).
            last=bool(self._results),
            receipt=receipt,
        )
        receipt.writer = self._close("committed", holder, receipt, transcript, append)
        next(receipt.writer, None)

    def _turn_for(self, transcript: Transcript, rebase: bool) -> AssistantTurn:
        """The turn as it is written into a transcript that moved on, or another one; raises
        `StaleRoundError` as `write`.
        """
        same = transcript is self.transcript
        continues = self.transcript.same_prefix(transcript, self.begun.length)
        if not rebase or not continues:
            self._refuse_closed()  # another thread may just have moved it on by this very answer
            raise StaleRoundError(_explain_stale(same, continues))
        if self.has_twin and transcript.has_turn(self.turn, self.begun.length):
            self._refuse_closed()
            raise StaleRoundError(
                "this very answer is in the transcript already, by another plan that was resumed "
                "from its dump; nothing was written and the round is still open: discard it"
            )
        # Another answer may have used the ids since: hosts that count theirs begin again in each
        # answer (rule C6).
        turn = transcript.fresh_ids(self.turn)
        # Signed reasoning is valid only when it is sent back after exactly the same history.
        moved = same or len(transcript) > self.begun.length
        if moved and turn.signed:
            turn = replace(turn, reasoning_dropped=True)
        return _settle_behind(turn, transcript, self.transcript, self.begun.length)

    def _refuse_closed(self) -> None:
        closed = self.how_closed()
        if closed is not None:
            raise RoundClosedError(f"the answer was {closed} before")


def _settle_behind(
    turn: AssistantTurn, target: Transcript, read_against: Transcript, length: int
) -> AssistantTurn:
    """The turn with its record as it follows behind what the target holds by now (rule PB15).

    Args:
        turn: The turn.
        target: Where it is written.
        read_against: What its request was made from.
        length: How many items of that the request held.
    """
    from lutumpy.core.settings_records import records_of
    from lutumpy.core.turn_settings import TurnSettings, in_force_after, step_between

    before, behind = records_of(read_against[:length]), records_of(target)
    if before == behind or (turn.settings is None and not before):
        return turn

    step = step_between(in_force_after(behind), in_force_after([*before, turn.settings]))
    if turn.settings is not None and turn.settings.reminders:
        step = replace(step or TurnSettings(), reminders=turn.settings.reminders)
    return replace(turn, settings=step)


def _explain_stale(same: bool, continues: bool) -> str:
    """Why a target is stale, with advice that works there.

    Args:
        same: Whether it is the transcript that the answer was read against.
        continues: Whether everything before the round is in it unchanged.
    """
    if same:
        return (
            "items were added to the transcript since this round began; nothing was written and "
            "the round is still open: commit it with rebase=True, or discard it"
        )
    if continues:
        return (
            "this is another transcript than the one that the round was read against, with the "
            "same beginning; nothing was written and the round is still open: commit it into its "
            "own, or here with rebase=True, or discard it"
        )
    return (
        "this is another transcript than the one that the round was read against, and what came "
        "before the round is not in it unchanged; nothing was written and the round is still "
        "open: commit it into its own, or discard it"
    )
