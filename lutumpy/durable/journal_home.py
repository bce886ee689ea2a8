"""What the journal of calls writes to: a conversation of the loop, or a worker's part of one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Protocol

from lutumpy.durable.patience import record_patiently
from lutumpy.durable.store import SessionStore
from lutumpy.durable.types import Claim, Counts
from lutumpy.execution import UnresolvedCall
from lutumpy.models import Head, PromisedCall

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["JournalHome", "WorkersConversation"]


class JournalHome(Protocol):
    """What the journal of calls needs of a conversation."""

    claim: Claim
    unresolved: tuple[UnresolvedCall, ...]

    @property
    def open_calls(self) -> tuple[PromisedCall, ...]: ...

    @property
    def store(self) -> SessionStore: ...

    def recorded(self, name: str) -> JsonValue: ...

    async def record(self, name: str, value: Any) -> JsonValue: ...


class WorkersConversation:
    """What a worker holds of a conversation that the loop's process has claimed.

    Args:
        store: Where it is kept.
        token: What a `StoreJournal` gave for workers.

    Raises:
        ValueError: it isn't a token.
    """

    def __init__(self, store: SessionStore, token: Mapping[str, Any]) -> None:
        kinds = {"scope": str, "fence": int, "round": int}
        for name, kind in kinds.items():
            if not isinstance(token, Mapping) or type(token.get(name)) is not kind:
                raise ValueError(f"the token of a journal has no {name}; nothing was written")
        self.store: SessionStore = store
        # Its lease is the loop's to renew; writes look at the fence alone.
        self.claim: Claim = Claim(
            scope=token["scope"],
            fence=token["fence"],
            lease=0.0,
            until=datetime.now(timezone.utc),
            items=(),
            state={},
            head=Head(0, ""),
            round=token["round"],
            counts=Counts(),
        )
        self.unresolved: tuple[UnresolvedCall, ...] = ()

    @property
    def open_calls(self) -> tuple[PromisedCall, ...]:
        """Nothing: the sender of a call knows which are open."""
        return ()

    def recorded(self, name: str) -> JsonValue:
        """Nothing: the recorded value is what `record` returns."""
        return None

    async def record(self, name: str, value: Any) -> JsonValue:
        """Write a record of the open round, and return the recorded value (rules P1, P2)."""
        return await record_patiently(self.store, self.claim, name, value)
