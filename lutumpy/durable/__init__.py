"""Conversations that outlive the process: a store, and a loop that goes on where it was stopped.

Opt-in. What is promised: a round is committed once; a tool with the effect `once` is begun at most
once; an idempotent one is run at least once, with one key. Nobody promises effects exactly once.
"""

from __future__ import annotations

from lutumpy.durable.events import Restarted
from lutumpy.durable.journal import StoreJournal
from lutumpy.durable.local import LocalRunner
from lutumpy.durable.loop import DurableLoop
from lutumpy.durable.memory import MemoryStore
from lutumpy.durable.results import Answered, RunResult, Waiting
from lutumpy.durable.runner import CallRunner
from lutumpy.durable.store import SessionStore
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
from lutumpy.errors import StoreError

__all__ = [
    "Answered",
    "CallRunner",
    "Claim",
    "Counts",
    "DurableLoop",
    "HeldPlan",
    "InboxEntry",
    "LocalRunner",
    "MemoryStore",
    "Restarted",
    "RunResult",
    "ScopeInfo",
    "SessionStore",
    "Status",
    "StoreError",
    "StoreJournal",
    "StoredEvent",
    "Taken",
    "Waiting",
]
