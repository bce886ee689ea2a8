"""Durable loops: everything here is accepted by mypy --strict and pyright. Nothing of it is run."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal

from accept_hooks import AppTools
from pydantic import JsonValue
from typing_extensions import assert_never, assert_type

from lutumpy import Session
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.durable import (
    Answered,
    Claim,
    Codec,
    Counts,
    DurableLoop,
    HeldPlan,
    InboxEntry,
    MemoryStore,
    OperatorStore,
    PastRound,
    PostgresStore,
    Pruned,
    ScopeInfo,
    SessionStore,
    SqliteStore,
    Status,
    StoredEvent,
    Stuck,
    Taken,
    Waiting,
)
from lutumpy.execution import Dispatcher, UnresolvedCall
from lutumpy.models import Head, Message


class StoreOfAUser:
    """What a loop needs and nothing more: written before there were operators."""

    async def create(self, scope: str, session: Session, *, exist_ok: bool = True) -> None: ...
    async def claim(self, scope: str, *, lease: float = 30.0) -> Claim | Taken:
        raise NotImplementedError

    async def renew(self, claim: Claim) -> None: ...
    async def release(self, claim: Claim, *, status: Status | None = None) -> None: ...
    async def record(self, claim: Claim, name: str, value: JsonValue) -> JsonValue:
        raise NotImplementedError

    async def begin(self, claim: Claim, name: str) -> bool:
        raise NotImplementedError

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
        raise NotImplementedError

    async def push(
        self, scope: str, item: Mapping[str, Any] | Message | str, *, idempotency_key: str
    ) -> None: ...
    async def decide(
        self, scope: str, plan_digest: str, decisions: Mapping[str, JsonValue], *, by: str
    ) -> bool:
        raise NotImplementedError

    async def inbox(self, scope: str) -> Sequence[InboxEntry]:
        raise NotImplementedError

    async def held(self, *, limit: int = 100, scope: str | None = None) -> list[HeldPlan]:
        raise NotImplementedError

    async def unresolved(self, scope: str) -> list[UnresolvedCall]:
        raise NotImplementedError

    async def resolve(
        self,
        scope: str,
        call_id: str,
        decision: Literal["happened", "did_not_happen"],
        *,
        by: str,
    ) -> None: ...
    async def session(self, scope: str) -> Session:
        raise NotImplementedError

    async def scopes(
        self, *, status: Status | None = None, limit: int = 100, after: str | None = None
    ) -> list[ScopeInfo]:
        raise NotImplementedError

    async def delete(self, scope: str) -> None: ...
    async def add_events(
        self, claim: Claim, events: Sequence[Mapping[str, JsonValue]], *, drop_deltas: bool = False
    ) -> None: ...
    def events(self, scope: str, *, after: int = 0) -> AsyncIterator[StoredEvent]:
        raise NotImplementedError


class Plain:
    def encode(self, content: bytes) -> bytes:
        return content

    def decode(self, data: bytes) -> bytes:
        return data


codec: Codec = Plain()
of_a_user: SessionStore = StoreOfAUser()
stores: list[OperatorStore] = [
    MemoryStore(),
    SqliteStore("agent.db", codec=codec),
    PostgresStore("postgresql://localhost/agents", codec=codec),
]
for_loops: list[SessionStore] = [*stores, of_a_user]


async def run(dispatch: Dispatcher[AppTools], llm: OpenAIChat) -> str:
    loop = DurableLoop(of_a_user, llm, tools=AppTools, dispatch=dispatch, max_attempts=None)
    outcome = await loop.run("conversation 17")
    if isinstance(outcome, Answered):
        return outcome.result.text
    if isinstance(outcome, Waiting):
        return outcome.digest
    if isinstance(outcome, Taken):
        return str(outcome.until)
    if isinstance(outcome, Stuck):
        return f"{outcome.attempts} {outcome.error}"
    assert_never(outcome)


async def operate(store: OperatorStore) -> None:
    assert_type(await store.next(), str | None)
    async for scope in store.watch(prefix="tenant/"):
        assert_type(scope, str)
    assert_type(await store.unresolved(), list[UnresolvedCall])
    assert_type(await store.history("a"), list[PastRound])
    (info,) = await store.scopes(status="stuck", prefix="tenant/")
    assert_type(info.last_error, str | None)
    await store.fork("a", at=(2, 1), to="b")
    assert_type(await store.break_lease("a", by="ann", stop=True), bool)
    assert_type(await store.retry("a", by="ann"), bool)
    assert_type(await store.prune(before=info.updated, what=["events"]), Pruned)
