"""What a transcript is at one moment, as one immutable value that a change replaces in one step (rule K3a).

What is hard: an exception may come out of any line, a signal's as well (Ctrl-C, a worker's time limit), and a
transcript must then be as before the change or as after it. Two stores can be cut apart, one can't. So:

    lists of the transcript     items | call ids | failures | usages      they only grow
                                  |        |          |         |
    State                       stable    ids     failures   answers      how much of each list counts

A change first writes behind what counts, where nobody looks, and then stores a new `State`: that one store is the
change. What a change leaves behind that was cut off before it, the next one overwrites. A `Draft` is a change that is
being made; nothing of the transcript changes until it is written.

From the first ephemeral message on, items stand in the `tail` of the state itself, since they may still leave:

    items:   stable ... stable | ephemeral, whatever was added after it ...
                               ^ State.stable                     State.tail

A `Receipt` tells the round that wrote an answer whether the write happened, with no store of its own: either the
state holds the receipt, or a later change has marked it before it took its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from lutumpy.core.items import AssistantTurn, Item, Message

__all__ = ["Draft", "FailureKey", "Failures", "Receipt", "State", "ephemerals_among"]

FailureKey: TypeAlias = tuple[str, str]
Failures: TypeAlias = "list[tuple[FailureKey, int]]"
"""Which calls failed, each with how often."""


class Receipt:
    """Goes with the writing of one answer, so that its round can tell whether it is written."""

    # Set by the change after the one that wrote it; until then the state holds the receipt.
    written = False


class State(NamedTuple):
    """A transcript at one moment.

    Attributes:
        stable: How many items are there to stay.
        tail: The items behind them, the first of which is ephemeral.
        sent: How many ephemerals of the tail have been part of a successful request; only those may leave.
        held: A committed turn was signed over them: they stay until its tool loop is finished (rule S4).
        ids: How many call ids are used.
        failures: How many entries of the list of failures count.
        answers: How many answers were read against the transcript, and so how many usages count.
        revision: Counts the additions, so that a round can tell whether anything was added since it began.
        receipt: Of the answer that the last change wrote, if it wrote one.
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


class Draft:
    """A change of a transcript that is being made. `Transcript` writes it, or it is dropped and nothing has happened.

    Attributes:
        settled: Items that join those that are there to stay.
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
        """The request succeeded: the ephemerals that it held leave, or stay while reasoning is signed over them.

        Args:
            turn: The answer.
            sent: The items of the tail that the request held.
        """
        count = ephemerals_among(sent)
        if not count:
            return
        self.sent = count
        if not self.held and not turn.signed:
            self.release()

    def turn_added(self, turn: AssistantTurn, *, last: bool) -> None:
        """A turn was added: its reasoning holds the ephemerals that were sent, or its tool loop is over.

        Args:
            turn: The turn.
            last: The tool loop is over, though the turn has calls.
        """
        if self.sent:
            self.held = self.held or turn.signed
            last = last or (not turn.calls and turn.finish_reason != "paused")
        if last:
            self.release()

    def release(self) -> None:
        """Drop every ephemeral that was sent, and with it the reasoning signed over it."""
        kept: list[Item] = []
        left = self.sent
        first: int | None = None
        for item in self.tail:
            if isinstance(item, Message) and item.ephemeral:
                if left:
                    left -= 1
                    continue
                if first is None:
                    first = len(kept)
            elif isinstance(item, AssistantTurn) and item.signed:
                item = replace(item, reasoning_dropped=True)
            kept.append(item)
        if first is None:
            first = len(kept)
        self.settled += kept[:first]
        self.tail, self.sent, self.held = tuple(kept[first:]), 0, False


def ephemerals_among(items: Iterable[Item]) -> int:
    """How many of these are ephemeral messages."""
    return sum([1 for item in items if isinstance(item, Message) and item.ephemeral])
