"""What a store does for workers and for whoever operates it, beside what loops need of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol

from lutumpy.durable.store import SessionStore
from lutumpy.durable.types import (
    Claim,
    HeldPlan,
    PastRound,
    Prunable,
    Pruned,
    ScopeInfo,
    Status,
    StoredEvent,
)
from lutumpy.execution import UnresolvedCall

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["OperatorStore"]


class OperatorStore(SessionStore, Protocol):
    """What the stores of this library do for whoever operates them, beside `SessionStore`.

    A `DurableLoop` needs none of it, so a store of your own needn't have it. Where it has `fail`
    and `count_try`, attempts are counted. A `prefix` of ids has 100 characters at most.
    """

    # --- the log of runs ---------------------------------------------------------------------

    async def last_event(self, scope: str) -> int:
        """The number of the last event of a conversation; 0 where there is none."""
        ...

    def events(
        self, scope: str, *, after: int = 0, until: Literal["end"] | None = None
    ) -> AsyncIterator[StoredEvent]:
        """The events behind number `after`, and those that come.

        Many followers of one conversation cost about what one costs.

        Args:
            scope: The conversation's id.
            after: The number of the last event that the follower has seen.
            until: `end`: stop where a run has ended (`LoopEnded`, `RunWaits`, `RunFailed` or
                `RunStopped`, rule W1), nobody goes on, and no message waits. Else it never ends by
                itself, and neither does it behind a run that was killed, until another one has gone
                on with it.
        """
        ...

    # --- lists -------------------------------------------------------------------------------

    async def scopes(
        self,
        *,
        status: Status | None = None,
        limit: int = 100,
        after: str | None = None,
        prefix: str | None = None,
    ) -> list[ScopeInfo]:
        """The conversations by their ids, from the one behind `after` on.

        Args:
            status: Those with this status.
            limit: The most to list.
            after: The last id of the page before.
            prefix: Those whose ids begin with it.
        """
        ...

    async def held(
        self,
        *,
        limit: int = 100,
        scope: str | None = None,
        prefix: str | None = None,
        after: HeldPlan | None = None,
    ) -> list[HeldPlan]:
        """The plans that wait for a person, oldest first.

        Args:
            limit: The most to list.
            scope: Those of one conversation.
            prefix: Those of conversations whose ids begin with it.
            after: The last plan of the page before.
        """
        ...

    async def unresolved(
        self, scope: str | None = None, *, limit: int = 100, prefix: str | None = None
    ) -> list[UnresolvedCall]:
        """The calls whose outcome is not known and that nobody has decided, oldest first.

        Args:
            scope: Those of one conversation, all of them; by default those of all conversations.
            limit: The most to list of all conversations.
            prefix: Of all conversations, those whose ids begin with it.
        """
        ...

    async def history(self, scope: str, *, after: int = -1, limit: int = 1000) -> list[PastRound]:
        """The rounds that were committed and not pruned, oldest first.

        Args:
            scope: The conversation's id.
            after: The `number` of the last one of the page before.
            limit: The most to list.
        """
        ...

    # --- workers -----------------------------------------------------------------------------

    async def next(self, *, prefix: str | None = None, reserve: float = 5.0) -> str | None:
        """The conversation that has waited longest for a process to go on with it.

        It is `open`, nobody's lease on it is running, and its last failure is some time ago: a
        second after the first, twice as long after each, five minutes at most.

        Args:
            prefix: Of those whose ids begin with it.
            reserve: For so many seconds no other `next` gives it. Claim it meanwhile.

        Returns:
            Its id; `None` where there is none.
        """
        ...

    def watch(self, *, prefix: str | None = None, poll: float = 1.0) -> AsyncIterator[str]:
        """What `next` gives, again and again; it never ends by itself.

        A `PostgresStore` with a URL is woken by what comes in. Others look every `poll` seconds, as
        that does behind pgbouncer in transaction mode.

        Args:
            prefix: Of conversations whose ids begin with it.
            poll: Seconds between two looks, at most.
        """
        ...

    async def fail(self, claim: Claim, error: str, *, stuck: bool = False) -> None:
        """Give a conversation up whose run has failed; its attempt stays counted.

        Nothing happens where somebody else has taken it over.

        Args:
            claim: The claim.
            error: What went wrong; the first 2,000 characters are kept.
            stuck: Set the status `stuck`: `next` doesn't give it any more.
        """
        ...

    async def count_try(self, claim: Claim, name: str) -> int:
        """Count that a call is begun again in the open round; gives how often it was.

        Args:
            claim: The claim.
            name: The name of the call's record.
        """
        ...

    # --- what operators do -------------------------------------------------------------------

    async def break_lease(self, scope: str, *, by: str, stop: bool = False) -> bool:
        """End the lease of a conversation whose process doesn't answer, or stop its run.

        That process can write nothing any more: its next write is a `TakenOverError`.

        Args:
            scope: The conversation's id.
            by: Who says so; it is in `ScopeInfo.last_error`.
            stop: Whether nobody is to go on with it. In the same transaction its log ends with
                `RunStopped`, and it is `done` where it was `open`: no worker gets it before
                something is said, decided, answered or delivered. What waits in its inbox by then
                waits for the next run.

        Returns:
            Whether there was a lease.
        """
        ...

    async def retry(self, scope: str, *, by: str) -> bool:
        """Let a conversation that is `stuck` be tried again; its attempts begin at nought.

        Returns:
            Whether it was stuck.
        """
        ...

    async def fork(self, scope: str, *, at: tuple[int, int], to: str) -> None:
        """Make a new conversation of an old one, as that stood behind an earlier round.

        Effects are not repeated: a call that is equal to a `once` or `idempotent` one which the old
        conversation made later is refused in the new one, as those of unknown outcome are, until
        `resolve` says that it did not happen. What the old one does after the fork isn't known to
        the new one.

        Args:
            scope: The old conversation's id.
            at: Task and round, as `history` has them: `(2, 0)` is where the user has just said
                something for the second time.
            to: The new conversation's id.

        Raises:
            StoreError: `round`: there is no such round, or it was pruned. `exists`: `to` is taken.
        """
        ...

    async def prune(
        self,
        *,
        before: datetime,
        what: Collection[Prunable] = ("records", "events"),
        prefix: str | None = None,
    ) -> Pruned:
        """Remove what is older than a moment, some conversations at a time.

        Nothing of an open round is removed, and no item of a conversation that stays. Of messages
        that were taken the idempotency keys go as well.

        Args:
            before: The moment, with a time zone.
            what: `records`: past rounds, and what was taken of the inbox. `events`: events of past
                rounds. `conversations`: those that are done, were not written to since, and have
                no call of unknown outcome.
            prefix: Of conversations whose ids begin with it.

        Raises:
            ValueError: the moment has no time zone, or something else is named.
        """
        ...

    async def resolve(
        self,
        scope: str,
        call_id: str,
        decision: Literal["happened", "did_not_happen"],
        *,
        by: str,
        output: JsonValue = None,
    ) -> None:
        """Say what became of a call whose outcome was not known (rule P8).

        A call that did not happen is forgotten. One that happened is told to the model: in its own
        result, where the round is still open and there is an output; else as a message before the
        next turn. An equal call of an answer that was made before that is refused; one of a later
        answer is a new call.

        Args:
            scope: The conversation's id.
            call_id: The call.
            decision: What became of it.
            by: Who says so.
            output: What the call gave, as JSON values, where that is known.

        Raises:
            StoreError: `decision`: no such call is unresolved, or the output isn't JSON.
            ValueError: the decision is another word, or a call that didn't happen has an output.
        """
        ...
