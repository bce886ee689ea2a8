"""What a transcript is at one moment, as one immutable value that a change replaces in one step
(rule K3a).

What is hard: any line may raise, also by a signal (Ctrl-C, a worker's time limit), and afterwards
the transcript must be as it was before the change or as it is after it. An interrupt can come
between two assignments, but not in the middle of one. So:

    lists of the transcript   items | call ids | failures | usages    they only grow
                                |        |          |         |
    State                     stable    ids     failures   answers    how much of each list counts

A change first writes behind what counts, where nobody looks, and then assigns a new `State`: this
one assignment is the change. If it is interrupted before, what it wrote is overwritten by the next
change. A `Draft` is a change in preparation; the transcript doesn't change until it is written.

From the first ephemeral message on, items are in the `tail` of the state itself, because they may
still leave:

    items:   stable ... stable | ephemeral, whatever was added after it ...
                               ^ State.stable                     State.tail

A `Receipt` tells the round that wrote an answer whether the write happened, without an assignment
of its own: either the state holds the receipt, or a later change marked it before replacing the
state.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from lutumpy.core.items import AssistantTurn, Item, Message

if TYPE_CHECKING:
    from lutumpy.core.promises import PromisedCall

__all__ = ["Draft", "FailureKey", "Failures", "Receipt", "State", "ephemerals_among"]

FailureKey: TypeAlias = tuple[str, str]
Failures: TypeAlias = "list[tuple[FailureKey, int]]"
"""Which calls failed, each with how often."""


class Receipt:
    """Accompanies the writing of one answer, so that its round can tell whether it was written."""

    # Set by the next change; until then the state itself holds the receipt.
    written = False
    # What makes the change, if that may still be running, in another thread.
    writer: Generator[None, None, None] | None = None


class State(NamedTuple):
    """A transcript at one moment.

    Attributes:
        stable: How many items are permanent.
        tail: The items behind them; the first of these is ephemeral.
        sent: How many ephemerals of the tail were part of a successful request; only those may
            leave.
        held: A committed turn is signed over them: they stay until its tool loop ends (rule S4).
        ids: How many call ids are used.
        failures: How many entries of the list of failures count.
        answers: How many answers were read against the transcript, and so how many usages count.
        revision: The number of additions, so that a round can tell whether anything was added since
            it began.
        receipt: The receipt of the answer that the last change wrote, if it wrote one.
        open: The calls whose results are still to come, oldest first.
    """

    stable: int = 0
    tail: tuple[Item, ...] = ()
    sent: int = 0
    held: bool = False
    ids: int = 0
    failures: int = 0
    answers: int = 0
    revision: int = 0
    receipt: Receipt | None = None
    open: tuple[PromisedCall, ...] = ()


class Draft:
    """A change of a transcript in preparation.

    The transcript writes it, or it is dropped and nothing has happened.

    The life of an ephemeral message in it (rule S4):

        added     behind the permanent items, in the tail; so is everything after it
        sent      a request with it succeeded: it leaves now, unless reasoning is signed over it.
                  If it is recorded with the answer, it leaves in any case
        held      a turn signed over it was committed: it stays, so that the reasoning remains valid
        released  the tool loop ended: it leaves, and that reasoning is left out of later requests

    Attributes:
        settled: Items that become permanent.
        tail: The tail afterwards.
        sent: As in `State`.
        held: As in `State`.
    """

    __slots__ = ("held", "sent", "settled", "tail")

    def __init__(self, state: State) -> None:
        self.settled: list[Item] = []
        self.tail: tuple[Item, ...] = state.tail
        self.sent: int = state.sent
        self.held: bool = state.held

    def add(self, items: Sequence[Item]) -> None:
        """Add items at the end."""
        if self.tail or getattr(items[0], "ephemeral", False):
            self.tail += tuple(items)
        else:
            self.settled += items

    def answered(self, turn: AssistantTurn, sent: Iterable[Item]) -> None:
        """The request succeeded: its ephemerals leave, or stay while reasoning is signed over them.

        Args:
            turn: The answer.
            sent: The items of the tail that the request held.
        """
        count = ephemerals_among(sent)
        if not count:
            return
        self.sent = count
        if turn.settings is not None and turn.settings.reminders:
            self._release_reminders()
        if self.sent and not self.held and not turn.signed:
            self.release()

    def turn_added(self, turn: AssistantTurn, *, last: bool) -> None:
        """A turn was added: its reasoning holds the ephemerals that were sent, or its tool loop has
        ended.

        Args:
            turn: The turn.
            last: The tool loop has ended, although the turn has calls.
        """
        if self.sent:
            # A paused answer goes on with the next request, so its loop isn't over.
            self.held = self.held or turn.signed
            last = last or (not turn.calls and turn.finish_reason != "paused")
        if last:
            self.release()

    def _release_reminders(self) -> None:
        """Drop the system messages that were sent: the turn's record has them now, and they stay
        where they were said (rule PB14). No reasoning goes with them: what a model bound to their
        old place, its digest tells (rule PB8).

        They may have been held, for a model that has no such messages. Then the rest is held only
        if a signed turn is behind it.
        """
        kept: list[Item] = []
        to_look_at, left = self.sent, 0
        tail_start: int | None = None
        for item in self.tail:
            if isinstance(item, Message) and item.ephemeral:
                if to_look_at:
                    to_look_at -= 1
                    if item.role in ("system", "developer"):
                        left += 1
                        continue
                if tail_start is None:
                    tail_start = len(kept)
            kept.append(item)
        if tail_start is None:
            tail_start = len(kept)
        self.sent -= left
        self.settled += kept[:tail_start]
        self.tail = tuple(kept[tail_start:])
        if self.held:
            self.held = self.sent > 0 and any(
                isinstance(item, AssistantTurn) and item.signed for item in self.tail
            )

    def release(self) -> None:
        """Drop every ephemeral that was sent, and with it the reasoning signed over it."""
        kept: list[Item] = []
        to_drop = self.sent
        # Where the first ephemeral is that has not been sent: the new tail begins there.
        tail_start: int | None = None
        for item in self.tail:
            if isinstance(item, Message) and item.ephemeral:
                if to_drop:
                    to_drop -= 1
                    continue
                if tail_start is None:
                    tail_start = len(kept)
            elif isinstance(item, AssistantTurn) and item.signed:
                item = replace(item, reasoning_dropped=True)
            kept.append(item)
        if tail_start is None:
            tail_start = len(kept)
        self.settled += kept[:tail_start]
        self.tail, self.sent, self.held = tuple(kept[tail_start:]), 0, False


def ephemerals_among(items: Iterable[Item]) -> int:
    """How many of these are ephemeral messages."""
    return sum([1 for item in items if isinstance(item, Message) and item.ephemeral])
