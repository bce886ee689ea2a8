"""What operators and workers do with a store in memory; see `OperatorStore`."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import anyio

from lutumpy.durable.checks import check_before, check_new_scope, check_what, first_status
from lutumpy.durable.log import RunStopped
from lutumpy.durable.memory_state import (
    Conversation,
    Past,
    UnresolvedHere,
    copy_of,
    lease_of,
    now,
    open_plan,
    undecided_in,
)
from lutumpy.durable.operators import pause_after, reason_of_break
from lutumpy.durable.refusals import exists, no_past_round, unknown
from lutumpy.durable.shown import dump_event
from lutumpy.durable.types import (
    Claim,
    HeldPlan,
    PastRound,
    Prunable,
    Pruned,
    ScopeInfo,
    Status,
)
from lutumpy.execution import UnresolvedCall

__all__ = ["MemoryOperators"]


class MemoryOperators:
    """The conversations, and what `OperatorStore` has beside `SessionStore`."""

    def __init__(self) -> None:
        self._conversations: dict[str, Conversation] = {}
        # Larger than the fences of all deleted conversations: a claim on one of them can write
        # nothing to a conversation that replaces it.
        self._fence = 0
        self._lock = threading.Lock()

    def _find(self, scope: str) -> Conversation:
        found = self._conversations.get(scope)
        if found is None:
            raise unknown(scope)
        return found

    def _named(self, prefix: str | None) -> list[tuple[str, Conversation]]:
        """The conversations whose ids begin with a prefix, by id."""
        listed = sorted(self._conversations.items())
        return [(scope, each) for scope, each in listed if scope.startswith(prefix or "")]

    # --- lists -------------------------------------------------------------------------------

    async def scopes(
        self,
        *,
        status: Status | None = None,
        limit: int = 100,
        after: str | None = None,
        prefix: str | None = None,
    ) -> list[ScopeInfo]:
        """See `OperatorStore.scopes`."""
        with self._lock:
            return [
                _info(scope, each)
                for scope, each in self._named(prefix)
                if (status is None or each.status == status) and (after is None or scope > after)
            ][:limit]

    async def held(
        self,
        *,
        limit: int = 100,
        scope: str | None = None,
        prefix: str | None = None,
        after: HeldPlan | None = None,
    ) -> list[HeldPlan]:
        """See `OperatorStore.held`."""
        waiting: list[HeldPlan] = []
        with self._lock:
            for name, each in self._named(prefix):
                plan = open_plan(each)
                if plan is None or scope not in (None, name):
                    continue
                held = undecided_in(each, plan)
                if held and each.waiting_since is not None:
                    digest = str(plan["digest"])
                    waiting.append(HeldPlan(name, digest, held, copy_of(plan), each.waiting_since))
        waiting.sort(key=_place)
        return [plan for plan in waiting if after is None or _place(plan) > _place(after)][:limit]

    async def unresolved(
        self, scope: str | None = None, *, limit: int = 100, prefix: str | None = None
    ) -> list[UnresolvedCall]:
        """See `OperatorStore.unresolved`."""
        with self._lock:
            if scope is not None:
                return [call for _, call in _unresolved_in(scope, self._find(scope))]
            found = [
                pair for name, each in self._named(prefix) for pair in _unresolved_in(name, each)
            ]
        found.sort(key=lambda pair: pair[0])
        return [call for _, call in found][:limit]

    async def history(self, scope: str, *, after: int = -1, limit: int = 1000) -> list[PastRound]:
        """See `OperatorStore.history`."""
        with self._lock:
            rows = [past.row for past in self._find(scope).past]
        return [row for row in rows if row.number > after][:limit]

    # --- workers -----------------------------------------------------------------------------

    async def next(self, *, prefix: str | None = None, reserve: float = 5.0) -> str | None:
        """See `OperatorStore.next`."""
        with self._lock:
            ready = [
                (each.ready_at, scope)
                for scope, each in self._named(prefix)
                if each.status == "open" and each.ready_at <= now() and lease_of(each) is None
            ]
            if not ready:
                return None
            _, scope = min(ready)
            self._conversations[scope].ready_at = now() + timedelta(seconds=reserve)
            return scope

    async def watch(self, *, prefix: str | None = None, poll: float = 1.0) -> AsyncIterator[str]:
        """See `OperatorStore.watch`."""
        while True:
            scope = await self.next(prefix=prefix)
            if scope is None:
                await anyio.sleep(poll)
            else:
                yield scope

    async def fail(self, claim: Claim, error: str, *, stuck: bool = False) -> None:
        """See `OperatorStore.fail`."""
        with self._lock:
            found = self._conversations.get(claim.scope)
            if found is not None and found.fence == claim.fence:
                found.lease_until, found.last_error = None, error[:2000]
                found.set_status("stuck" if stuck else None)
                found.ready_at = now() + timedelta(seconds=pause_after(claim.attempts))

    async def count_try(self, claim: Claim, name: str) -> int:
        """See `OperatorStore.count_try`."""
        with self._lock:
            found = self._check(claim)
            found.tries[f"tries:{name}"] = found.tries.get(f"tries:{name}", 0) + 1
            return found.tries[f"tries:{name}"]

    def _check(self, claim: Claim) -> Conversation:
        """The conversation, if the claim is still the last one (rule P4)."""
        raise NotImplementedError

    # --- operators ---------------------------------------------------------------------------

    async def break_lease(self, scope: str, *, by: str, stop: bool = False) -> bool:
        """See `OperatorStore.break_lease`."""
        with self._lock:
            found = self._find(scope)
            if found.lease_until is None:
                return False
            found.fence += 1
            found.lease_until, found.last_error = None, reason_of_break(by, stop=stop)
            if stop and found.status != "waiting":  # that a run waits is the end of its log
                found.add_event(dump_event(RunStopped(by)), None)
            found.set_status("done" if stop and found.status == "open" else None)
            return True

    async def retry(self, scope: str, *, by: str) -> bool:
        """See `OperatorStore.retry`."""
        with self._lock:
            found = self._find(scope)
            if found.status != "stuck":
                return False
            found.set_status("open")
            found.attempts, found.last_error = 0, f"it is tried again since {by} said so"
            return True

    async def fork(self, scope: str, *, at: tuple[int, int], to: str) -> None:
        """See `OperatorStore.fork`."""
        check_new_scope(scope, to)
        with self._lock:
            old = self._find(scope)
            places = [past for past in old.past if (past.row.task, past.row.round) == at]
            if not places:
                raise no_past_round(scope, at)
            if to in self._conversations:
                raise exists(to)
            self._conversations[to] = _make_fork(old, places[-1], to, self._fence)

    async def prune(
        self,
        *,
        before: datetime,
        what: Collection[Prunable] = ("records", "events"),
        prefix: str | None = None,
    ) -> Pruned:
        """See `OperatorStore.prune`."""
        check_what(what)
        end = datetime.fromtimestamp(check_before(before), timezone.utc)
        total = Pruned()
        with self._lock:
            for scope, each in self._named(prefix):
                if "conversations" in what and _is_over(each, end):
                    self._fence = max(self._fence, each.fence + 1)
                    del self._conversations[scope]
                    total += Pruned(conversations=1)
                    continue
                if "records" in what:
                    total += Pruned(records=_prune_records(each, end))
                if "events" in what:
                    total += Pruned(events=_prune_events(each, end))
        return total


def _info(scope: str, each: Conversation) -> ScopeInfo:
    return ScopeInfo(
        scope,
        each.status,
        len(each.items),
        each.round,
        lease_of(each),
        each.updated,
        each.created,
        each.since,
        max(0.0, (now() - each.since).total_seconds()),
        each.waiting_since,
        each.attempts,
        each.last_error,
        each.task,
    )


def _place(plan: HeldPlan) -> tuple[datetime, str]:
    return plan.since, plan.scope


def _unresolved_in(scope: str, each: Conversation) -> list[tuple[datetime, UnresolvedCall]]:
    known = [one for one in each.unresolved.values() if not one.happened]
    return [(one.at, replace(one.call, scope=scope)) for one in known]


def _make_fork(old: Conversation, past: Past, to: str, fence: int) -> Conversation:
    """A conversation as another one was; what that did later is of unknown outcome in it."""
    row = past.row
    forked = Conversation(
        [*old.items[: row.items]], past.state, past.head, past.counts, now(), row.number + 1, fence
    )
    forked.task, forked.task_round = row.task, row.round
    forked.status = first_status(row.task)
    forked.past = [each for each in old.past if each.row.number <= row.number]
    later = [
        (each.row.number, call)
        for each in old.past
        if each.row.number > row.number
        for call in each.row.effects
    ]
    unknown = [(one.round, one.call) for one in old.unresolved.values()]
    for number, call in (*unknown, *later, *[(old.round, call) for call in old.effects()]):
        call = replace(call, scope=to)
        key = -abs(number) - 1, call.metadata.id
        forked.unresolved.setdefault(key, UnresolvedHere(call, key[0]))
    return forked


def _is_over(each: Conversation, end: datetime) -> bool:
    waits = any(not entry.taken and entry.kind != "decision" for entry in each.inbox)
    is_old = each.status == "done" and each.updated < end and lease_of(each) is None
    return is_old and not each.unresolved and not waits


def _prune_records(each: Conversation, end: datetime) -> int:
    kept = [past for past in each.past if past.row.at >= end]
    inbox = [
        entry for entry in each.inbox if not entry.taken or each.times.get(entry.id, end) >= end
    ]
    removed = len(each.past) - len(kept) + len(each.inbox) - len(inbox)
    each.past, each.inbox = kept, inbox
    return removed


def _prune_events(each: Conversation, end: datetime) -> int:
    kept = [
        event
        for event in each.events
        if event.seq >= each.first_of_round or each.times.get(event.seq, end) >= end
    ]
    removed = len(each.events) - len(kept)
    each.events = kept
    return removed
