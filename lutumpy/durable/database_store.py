"""A store in a database: the methods, each one operation in one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar
from typing_extensions import Self

from lutumpy import Session
from lutumpy.durable import event_rows, listing, operations, operators, outside, past
from lutumpy.durable.checks import (
    check_before,
    check_lease,
    check_new_scope,
    check_resolution,
    check_what,
    dump_message,
)
from lutumpy.durable.codecs import Codec
from lutumpy.durable.columns import read, write
from lutumpy.durable.following import Tails
from lutumpy.durable.lost_costs import count_lost
from lutumpy.durable.questions import AskedCall
from lutumpy.durable.tables import Operation
from lutumpy.durable.types import (
    Claim,
    Counts,
    HeldPlan,
    InboxEntry,
    PastRound,
    Prunable,
    Pruned,
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

_PAGE = 100
"""How many conversations one transaction prunes at most."""


class DatabaseStore:
    """What the stores in databases have in common. A subclass runs operations."""

    _codec: Codec | None = None

    async def _run(self, operation: Operation[T]) -> T:
        """Run an operation in one transaction.

        It is done or undone as a whole, also where the caller is cancelled meanwhile; then it is
        waited for, so that nobody is left in doubt.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End its threads and connections."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """As `close`."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def create(self, scope: str, session: Session, *, exist_ok: bool = True) -> None:
        """See `SessionStore.create`."""
        await self._run(operations.create(scope, session, exist_ok=exist_ok))

    async def session(self, scope: str) -> Session:
        """See `SessionStore.session`."""
        items, state, costs = await self._run(operations.load(scope))
        session = Session.build(items, state)
        count_lost(session, costs)
        return session

    async def scopes(
        self,
        *,
        status: Status | None = None,
        limit: int = 100,
        after: str | None = None,
        prefix: str | None = None,
    ) -> list[ScopeInfo]:
        """See `OperatorStore.scopes`."""
        return await self._run(listing.scopes(status, limit, after, prefix))

    async def delete(self, scope: str) -> None:
        """See `SessionStore.delete`."""
        await self._run(operations.delete(scope))

    async def claim(self, scope: str, *, lease: float = 30.0) -> Claim | Taken:
        """See `SessionStore.claim`."""
        check_lease(lease)
        return await self._run(operations.claim(scope, lease))

    async def renew(self, claim: Claim) -> None:
        """See `SessionStore.renew`."""
        await self._run(operations.renew(claim))

    async def release(self, claim: Claim, *, status: Status | None = None) -> None:
        """See `SessionStore.release`."""
        await self._run(operations.release(claim, status))

    async def record(self, claim: Claim, name: str, value: JsonValue) -> JsonValue:
        """See `SessionStore.record`."""
        text = write(value)
        recorded = await self._run(operations.record(claim, name, text))
        # As mostly, the record is new, and a long plan need not be read again.
        found: JsonValue = value if recorded is text else read(recorded)
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
                write(state),
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
        message = write(dump_message(item))
        await self._run(outside.push(scope, message, idempotency_key))

    async def deliver(self, scope: str, call_id: str, value: Mapping[str, Any]) -> bool:
        """See `LateStore.deliver`."""
        return await self._run(outside.deliver(scope, call_id, write(value)))

    async def asked(self, scope: str) -> tuple[AskedCall, ...]:
        """See `QuestionStore.asked`."""
        return await self._run(outside.asked(scope))

    async def answer(
        self, scope: str, call_id: str, leg: int, answers: Mapping[str, JsonValue], *, by: str
    ) -> bool:
        """See `QuestionStore.answer`."""
        return await self._run(outside.answer(scope, call_id, leg, answers, by))

    async def inbox(self, scope: str) -> tuple[InboxEntry, ...]:
        """See `SessionStore.inbox`."""
        return await self._run(outside.inbox(scope))

    async def decide(
        self, scope: str, plan_digest: str, decisions: Mapping[str, JsonValue], *, by: str
    ) -> bool:
        """See `SessionStore.decide`."""
        return await self._run(outside.decide(scope, plan_digest, decisions, by))

    async def held(
        self,
        *,
        limit: int = 100,
        scope: str | None = None,
        prefix: str | None = None,
        after: HeldPlan | None = None,
    ) -> list[HeldPlan]:
        """See `OperatorStore.held`."""
        return await self._run(listing.held(limit, scope, prefix, after))

    async def unresolved(
        self, scope: str | None = None, *, limit: int = 100, prefix: str | None = None
    ) -> list[UnresolvedCall]:
        """See `OperatorStore.unresolved`."""
        if scope is not None:
            return await self._run(outside.unresolved(scope))
        return await self._run(listing.unresolved_everywhere(limit, prefix))

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

    async def resolve_late(self, scope: str, call_id: str, result: Mapping[str, Any]) -> None:
        """See `LateStore.resolve_late`."""
        await self._run(outside.resolve_late(scope, call_id, result))

    async def add_events(
        self, claim: Claim, events: Sequence[Mapping[str, JsonValue]], *, drop_deltas: bool = False
    ) -> None:
        """See `SessionStore.add_events`."""
        await self._run(event_rows.add_events(claim, events, drop_deltas=drop_deltas))

    async def last_event(self, scope: str) -> int:
        """See `OperatorStore.last_event`."""
        return await self._run(event_rows.last_event(scope))

    async def events(
        self, scope: str, *, after: int = 0, until: Literal["end"] | None = None
    ) -> AsyncIterator[StoredEvent]:
        """See `OperatorStore.events`."""
        tail = self._tails().find(scope, self._read_events)
        while True:
            found = await tail.read_after(after)
            for event in found:
                yield event
                after = event.seq
            if not found and until and await self._run(event_rows.is_at_end(scope, after)):
                return

    def _tails(self) -> Tails:
        """The ends of logs that are followed, by this event loop."""
        variable: RunVar[Tails] = self.__dict__.setdefault("_followed", RunVar("lutumpy.tails"))
        found = variable.get(None)
        if found is None:
            found = Tails()
            variable.set(found)
        return found

    async def _read_events(self, scope: str, after: int) -> list[StoredEvent]:
        return await self._run(event_rows.events_after(scope, after))

    # --- workers -----------------------------------------------------------------------------

    async def next(self, *, prefix: str | None = None, reserve: float = 5.0) -> str | None:
        """See `OperatorStore.next`."""
        return await self._run(operators.next_scope(prefix, reserve))

    async def watch(self, *, prefix: str | None = None, poll: float = 1.0) -> AsyncIterator[str]:
        """See `OperatorStore.watch`."""
        wait, close = await self._listen()
        try:
            while True:
                scope = await self.next(prefix=prefix)
                if scope is None:
                    await wait(poll)
                else:
                    yield scope
        finally:
            close()

    async def _listen(self) -> tuple[Callable[[float], Awaitable[None]], Callable[[], None]]:
        """How to wait until something may have come, for so many seconds at most; and the end."""
        return anyio.sleep, lambda: None

    async def fail(self, claim: Claim, error: str, *, stuck: bool = False) -> None:
        """See `OperatorStore.fail`."""
        await self._run(operators.fail(claim, error, stuck=stuck))

    async def count_try(self, claim: Claim, name: str) -> int:
        """See `OperatorStore.count_try`."""
        return await self._run(operations.count_try(claim, name))

    # --- operators ---------------------------------------------------------------------------

    async def break_lease(self, scope: str, *, by: str, stop: bool = False) -> bool:
        """See `OperatorStore.break_lease`."""
        return await self._run(operators.break_lease(scope, by, stop=stop))

    async def retry(self, scope: str, *, by: str) -> bool:
        """See `OperatorStore.retry`."""
        return await self._run(operators.retry(scope, by))

    async def history(self, scope: str, *, after: int = -1, limit: int = 1000) -> list[PastRound]:
        """See `OperatorStore.history`."""
        return await self._run(past.history(scope, after, limit))

    async def fork(self, scope: str, *, at: tuple[int, int], to: str) -> None:
        """See `OperatorStore.fork`."""
        check_new_scope(scope, to)
        await self._run(past.fork(scope, at, to))

    async def prune(
        self,
        *,
        before: datetime,
        what: Collection[Prunable] = ("records", "events"),
        prefix: str | None = None,
    ) -> Pruned:
        """See `OperatorStore.prune`."""
        check_what(what)
        moment = check_before(before)
        total = Pruned()
        async for page in self._pages(prefix):
            done = await self._run(operators.prune_page(page[0], page[-1], moment, what))
            total += done
        return total

    async def recode(self, *, prefix: str | None = None) -> int:
        """Read all content and write it again, with the codec that the store has now.

        So a key is retired: give the store a codec that still reads it and writes with another one,
        recode, and take the old key away. Each conversation is one transaction; programs go on
        meanwhile, if their codecs know both keys.

        Args:
            prefix: Of those conversations whose ids begin with it.

        Returns:
            How many rows were written.
        """
        written = 0
        async for page in self._pages(prefix):
            for key in page:
                written += await self._run(operators.recode_page(key))
        return written

    async def _pages(self, prefix: str | None) -> AsyncIterator[list[str]]:
        """The keys of all conversations, some at a time."""
        page = await self._run(operators.scopes_behind("", _PAGE, prefix))
        while page:
            yield page
            page = await self._run(operators.scopes_behind(page[-1], _PAGE, prefix))
