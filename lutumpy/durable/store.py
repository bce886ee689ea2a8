"""What a store of conversations has to do: the protocol that every store keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from lutumpy import Session
from lutumpy.durable.types import (
    Claim,
    Counts,
    HeldPlan,
    InboxEntry,
    ScopeInfo,
    Status,
    StoredEvent,
    Taken,
)
from lutumpy.execution import UnresolvedCall
from lutumpy.models import Head

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lutumpy.models import Message

__all__ = ["SessionStore"]


class SessionStore(Protocol):
    """Conversations, and the records of their open rounds.

    Every write names the fence of its claim, and is refused to any other (rule P4): it raises
    `TakenOverError`, and nothing was written. A scope that the store doesn't have is a `StoreError`
    of the kind `unknown_scope`.
    """

    async def create(self, scope: str, session: Session, *, exist_ok: bool = True) -> None:
        """Take a conversation in. One that is there already stays as it is.

        It is `open` where it ends with something to answer, such as a user's message; else it is
        `done`, and no worker is given it before somebody has left a message for it (`push`).

        Raises:
            StoreError: `exists`, where `exist_ok` is false.
        """
        ...

    async def claim(self, scope: str, *, lease: float = 30.0) -> Claim | Taken:
        """Take the conversation over, unless somebody's lease is running.

        The store's clock says whether it is. A lease that ends further off than it is long, by a
        clock that ran ahead, is not believed.

        Raises:
            ValueError: the lease is longer than an hour.
        """
        ...

    async def renew(self, claim: Claim) -> None:
        """Prolong the lease, by the seconds of the claim."""
        ...

    async def release(self, claim: Claim, *, status: Status | None = None) -> None:
        """Give the conversation up; with a status, set that.

        The status is `open` where the inbox holds something to go on with that isn't in the inbox
        of the claim: for `done` a message or a late result, for `waiting` a decision, an answer or
        a late result. Nothing happens where somebody else has taken it over.
        """
        ...

    async def record(self, claim: Claim, name: str, value: JsonValue) -> JsonValue:
        """Write a record of the open round, once (rule P2).

        Returns:
            The recorded value, which is another one's if that was there first.
        """
        ...

    async def begin(self, claim: Claim, name: str) -> bool:
        """Insert the marker of a call; `False` where one was there, or a record of that name."""
        ...

    async def commit(
        self,
        claim: Claim,
        before: Head,
        items: Sequence[Mapping[str, Any]],
        after: Head,
        state: Mapping[str, Any],
        counts: Counts,
        *,
        status: Status = "open",
        taken: Sequence[str] = (),
        unless_messages: bool = False,
    ) -> tuple[InboxEntry, ...]:
        """Write a round, all of it or nothing (rule P3).

        The head must be `before`. The items are appended, the head is `after` then, the number of
        the round grows by one, its records are kept as history, and the entries of the inbox that
        are `taken` are marked so. The claim then holds for the next round: its `round`, `head`,
        `records` are those of before, so the caller makes a new `Claim` with `replace`.

        With `unless_messages`, nothing is written where messages wait that nobody has taken. So a
        round and the messages behind it take one transaction to look and to write.

        In place of `done` the status is `open` where the inbox holds a message or a late result
        that isn't taken: whoever sent that found the conversation open, and left it so.

        Returns:
            The messages for which nothing was written; empty where the round was.

        Raises:
            StoreError: `head`: the conversation isn't at `before`.
        """
        ...

    async def push(
        self, scope: str, item: Mapping[str, Any] | Message | str, *, idempotency_key: str
    ) -> None:
        """Leave a user's message for the conversation: a text, a message, or a dumped one.

        The same key again changes nothing.
        """
        ...

    async def decide(
        self, scope: str, plan_digest: str, decisions: Mapping[str, JsonValue], *, by: str
    ) -> bool:
        """Decide calls that are held, by call id (rule P16).

        A decision is `{"decision": "run"}`, with an `input` for an edited one;
        `{"decision": "complete", "output": ...}`; `{"decision": "reject", "reason": "..."}`.

        Returns:
            `True` if all of them were taken; a second one for a call is ignored.

        Raises:
            StoreError: `plan`: no plan with this digest is waiting. `decision`: a call isn't held,
                or a decision has another form. Nothing was taken.
        """
        ...

    async def inbox(self, scope: str) -> Sequence[InboxEntry]:
        """What waits, oldest first, and the decisions of the open plan; nothing is claimed."""
        ...

    async def held(self, *, limit: int = 100, scope: str | None = None) -> list[HeldPlan]:
        """The plans that wait for a person, oldest first; those of one conversation, if named."""
        ...

    async def unresolved(self, scope: str) -> list[UnresolvedCall]:
        """The calls whose outcome is not known and that nobody has decided, oldest first."""
        ...

    async def resolve(
        self,
        scope: str,
        call_id: str,
        decision: Literal["happened", "did_not_happen"],
        *,
        by: str,
    ) -> None:
        """Say what became of a call whose outcome was not known (rule P8).

        Raises:
            StoreError: `decision`: no such call is unresolved.
        """
        ...

    async def session(self, scope: str) -> Session:
        """The conversation as it is committed, to be read; nothing is claimed.

        Its costs include those that failed runs have recorded in the open round (`cost:...`).
        """
        ...

    async def scopes(
        self, *, status: Status | None = None, limit: int = 100, after: str | None = None
    ) -> list[ScopeInfo]:
        """The conversations by their ids, from the one behind `after` on."""
        ...

    async def delete(self, scope: str) -> None:
        """Remove a conversation and all its records."""
        ...

    async def add_events(
        self, claim: Claim, events: Sequence[Mapping[str, JsonValue]], *, drop_deltas: bool = False
    ) -> None:
        """Store events of the open round, in order (rule P20).

        Args:
            claim: The claim.
            events: The events: JSON values, with keys for the store: `"delta": true` for one that
                is dropped when its turn is recorded; `once`, names that are markers of the round,
                as those of `begin`: an event none of whose names is new isn't written; `status`,
                which the conversation gets in the same transaction; `task` and `in_round`, which
                `StoredEvent` has as `task` and `round`; `unless`, ids of entries of the inbox: the
                event isn't written, and its status isn't set, where one of them is there that
                nobody has taken.
            drop_deltas: Drop the deltas of this round that are stored, in the same transaction.
        """
        ...

    def events(self, scope: str, *, after: int = 0) -> AsyncIterator[StoredEvent]:
        """The events behind number `after`, and those that come; it never ends by itself."""
        ...
