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
# `write` and `discard` put a fresh receipt into the very change that they make, and `attempt` is
# set before it. Whoever asks looks for that receipt; `closed` only remembers what was found. In the
# same way a plan takes the place of its round by one store, of `holder`.

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lutumpy.core.item_store import FailureKey, failure_key
from lutumpy.core.items import AssistantTurn, ResultBlock, ToolResults
from lutumpy.core.transcript import Transcript
from lutumpy.core.transcript_state import Receipt
from lutumpy.errors import StaleRoundError
from lutumpy.rounds.commit import match_results
from lutumpy.rounds.target import Position, Target, transcript_of
from lutumpy.tools.results import ToolResult, result_block

if TYPE_CHECKING:
    from lutumpy.hooks.pipeline import CallOrIssue
    from lutumpy.hooks.results import CallResult

__all__ = ["OpenAnswer"]

_NOTHING_DECIDED: Mapping[str, ToolResult | None] = {}


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
        attempt: How it was last tried to close it, with which receipt, and the transcript that
            says whether that was done.
        closed: How it was closed, if that is known already; `how_closed` asks.
        has_twin: Whether it was written down, or comes from a dump, so that another object may be
            committed in its place.
        holder: The token of the round or plan that holds it; `None` where none does.
    """

    __slots__ = (
        "_received",
        "_results",
        "attempt",
        "begun",
        "closed",
        "entries",
        "has_twin",
        "holder",
        "requested",
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
        self.attempt: tuple[str, Receipt, Transcript] | None = None
        self.closed: str | None = None
        self.has_twin: bool = False
        self.holder: object | None = None

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
        if self.closed is None and self.attempt is not None:
            how, receipt, transcript = self.attempt
            if transcript.holds(receipt):
                self.closed = how
        return self.closed

    def receive(self) -> None:
        """Tell the transcript that the request has succeeded.

        Its ephemerals have served then, and what it cost is counted.
        """
        if not self._received:
            length = self.transcript.request_succeeded(self.turn, self.requested.length)
            if length != self.requested.length:
                self.begun = Position(length, self.requested.revision)
            self._received = True

    def discard(self) -> None:
        """Drop the answer; the transcript stays as it is."""
        receipt = Receipt()
        self.attempt = "discarded", receipt, self.transcript
        self.transcript.turn_discarded(receipt)
        self.closed = "discarded"

    def write(
        self,
        target: Target,
        results: Iterable[CallResult],
        *,
        decided: Mapping[str, ToolResult | None] | None = None,
        rebase: bool = False,
    ) -> None:
        """Check everything, then write the turn and its results in one change.

        Args:
            target: Where to.
            results: One for each pending call; explicit ones for issues.
            decided: Results of calls that hooks have handled or rejected, by call id; `None` for
                those that a person has to decide.
            rebase: Write at the end of a target that moved on.

        Raises:
            StaleRoundError: the target isn't the transcript of this round, or items were added
                since. The answer stays open.
            CommitError: the results don't answer the calls. The answer stays open.
        """
        transcript = transcript_of(target)
        turn = self._turn_for(transcript, rebase)
        if self._results:
            results = [*self._results, *results]
        matched = match_results(self.entries, results, decided or _NOTHING_DECIDED)
        receipt = Receipt()
        self.attempt = "committed", receipt, transcript
        self._append(transcript, turn, matched, receipt)
        self.closed = "committed"

    def _turn_for(self, transcript: Transcript, rebase: bool) -> AssistantTurn:
        """The turn as it is written into `transcript`; raises `StaleRoundError` as `write`."""
        same = transcript is self.transcript
        if same and transcript.revision == self.begun.revision:
            return self.turn
        continues = self.transcript.same_prefix(transcript, self.begun.length)
        if not rebase or not continues:
            raise StaleRoundError(_explain_stale(same, continues))
        if self.has_twin and transcript.has_turn(self.turn, self.begun.length):
            raise StaleRoundError(
                "this very answer is in the transcript already, by another plan that was resumed "
                "from its dump; nothing was written and the round is still open: discard it"
            )
        # Another answer may have used the ids since: hosts that count theirs begin again in each
        # answer (rule C6).
        turn = transcript.fresh_ids(self.turn)
        # Signed reasoning is valid only when it is sent back after exactly the same history.
        moved = same or len(transcript) > self.begun.length
        return replace(turn, reasoning_dropped=True) if moved and turn.signed else turn

    def _append(
        self,
        transcript: Transcript,
        turn: AssistantTurn,
        results: list[ToolResult],
        receipt: Receipt,
    ) -> None:
        blocks: list[ResultBlock] = []
        failures: list[FailureKey] = []
        for block, result in zip(turn.calls, results, strict=True):
            if result.status != "ok":
                failures.append(failure_key(block.name, block.arguments))
            # A call that isn't in the native form of the answer can't be answered there.
            if block.position >= 0:
                blocks.append(result_block(result, block.kind, block.id))
        transcript.append_turn(
            turn,
            ToolResults(tuple(blocks)),
            failures,
            request=None if self._received else self.requested.length,
            # The library has a result only for the value of a structured turn. Where that is there,
            # the tool loop is finished (rule S4).
            last=bool(self._results),
            receipt=receipt,
        )


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
