"""A store in a database: the methods, each one operation in one transaction."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import anyio

from lutumpy import Session
from lutumpy.durable import operations, outside
from lutumpy.durable.checks import check_resolution, dump_message
from lutumpy.durable.tables import Operation, read
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
from lutumpy.models import Head, Message

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["DatabaseStore"]

T = TypeVar("T")

SECONDS_BETWEEN_LOOKS = 0.1
"""How often a follower looks for new events."""


class DatabaseStore:
    """What the stores in databases have in common. A subclass runs operations."""

    async def _run(self, operation: Operation[T]) -> T:
        """Run an operation in one transaction.

        It is done or undone as a whole, also where the caller is cancelled meanwhile; then it is
        waited for, so that nobody is left in doubt.
        """
        raise NotImplementedError

    async def create(self, scope: str, session: Session, *, exist_ok: bool = True) -> None:
        """See `SessionStore.create`."""
        await self._run(operations.create(scope, session, exist_ok=exist_ok))

    async def session(self, scope: str) -> Session:
        """See `SessionStore.session`."""
        items, state = await self._run(operations.load(scope))
        return Session.build(items, state)

    async def scopes(
        self, *, status: Status | None = None, limit: int = 100, after: str | None = None
    ) -> list[ScopeInfo]:
        """See `SessionStore.scopes`."""
        return await self._run(operations.scopes(status, limit, after))

    async def delete(self, scope: str) -> None:
        """See `SessionStore.delete`."""
        await self._run(operations.delete(scope))

    async def claim(self, scope: str, *, lease: float = 30.0) -> Claim | Taken:
        """See `SessionStore.claim`."""
        return await self._run(operations.claim(scope, lease))

    async def renew(self, claim: Claim) -> None:
        """See `SessionStore.renew`."""
        await self._run(operations.renew(claim))

    async def release(self, claim: Claim, *, status: Status | None = None) -> None:
        """See `SessionStore.release`."""
        await self._run(operations.release(claim, status))

    async def record(self, claim: Claim, name: str, value: JsonValue) -> JsonValue:
        """See `SessionStore.record`."""
        text = _to_json(value)
        recorded = await self._run(operations.record(claim, name, text))
        found: JsonValue = read(recorded)
        return found

    async def begin(self, claim: Claim, name: str) -> bool:
        """See `SessionStore.begin`."""
        return await self._run(operations.begin(claim, name))

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
        """See `SessionStore.commit`."""
        return await self._run(
            operations.commit(
                claim,
                before,
                items,
                after,
                _to_json(state),
                counts,
                status,
                taken,
                unless_messages=unless_messages,
            )
        )

    async def push(
        self, scope: str, item: Mapping[str, Any] | Message | str, *, idempotency_key: str
    ) -> None:
        """See `SessionStore.push`."""
        message = _to_json(dump_message(item))
        await self._run(outside.push(scope, message, idempotency_key))

    async def inbox(self, scope: str) -> tuple[InboxEntry, ...]:
        """See `SessionStore.inbox`."""
        return await self._run(outside.inbox(scope))

    async def decide(
        self, scope: str, plan_digest: str, decisions: Mapping[str, JsonValue], *, by: str
    ) -> bool:
        """See `SessionStore.decide`."""
        return await self._run(outside.decide(scope, plan_digest, decisions, by))

    async def held(self, *, limit: int = 100, scope: str | None = None) -> list[HeldPlan]:
        """See `SessionStore.held`."""
        return await self._run(outside.held(limit, scope))

    async def unresolved(self, scope: str) -> list[UnresolvedCall]:
        """See `SessionStore.unresolved`."""
        return await self._run(outside.unresolved(scope))

    async def resolve(
        self,
        scope: str,
        call_id: str,
        decision: Literal["happened", "did_not_happen"],
        *,
        by: str,
        output: JsonValue = None,
    ) -> None:
        """See `OperatorStore.resolve`."""
        check_resolution(decision, output)
        await self._run(outside.resolve(scope, call_id, decision, by, output))

    async def add_events(
        self, claim: Claim, events: Sequence[Mapping[str, JsonValue]], *, drop_deltas: bool = False
    ) -> None:
        """See `SessionStore.add_events`."""
        await self._run(operations.add_events(claim, events, drop_deltas=drop_deltas))

    async def events(self, scope: str, *, after: int = 0) -> AsyncIterator[StoredEvent]:
        """See `SessionStore.events`."""
        while True:
            found = await self._run(operations.events_after(scope, after))
            for event in found:
                yield event
                after = event.seq
            if not found:
                await anyio.sleep(SECONDS_BETWEEN_LOOKS)


def _to_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
