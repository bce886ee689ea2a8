"""Conversations that outlive the process: a store, and a loop that goes on where it was stopped.

Opt-in. What is promised: a round is committed once; a tool with the effect `once` is begun at most
once; an idempotent one is run at least once, with one key. Nobody promises effects exactly once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lutumpy.doors import find_name, homes_of
from lutumpy.durable import log
from lutumpy.durable.codecs import Codec
from lutumpy.durable.journal import StoreJournal
from lutumpy.durable.late import LateStore
from lutumpy.durable.local import LocalRunner
from lutumpy.durable.log import DurableEvent, Restarted, UnknownEvent
from lutumpy.durable.loop import DurableLoop
from lutumpy.durable.memory import MemoryStore
from lutumpy.durable.operator_store import OperatorStore
from lutumpy.durable.questions import AskedCall, QuestionStore
from lutumpy.durable.results import Answered, RunResult, Stuck, Waiting
from lutumpy.durable.runner import CallRunner, RoundJournal
from lutumpy.durable.store import SessionStore
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
from lutumpy.errors import EngineError, StoreError
from lutumpy.tools import Question

if TYPE_CHECKING:
    from lutumpy.durable.dbos import DbosRunner, serve_dbos
    from lutumpy.durable.postgres import PostgresStore
    from lutumpy.durable.sqlite import SqliteStore
    from lutumpy.durable.temporal import TemporalRunner, temporal_activity, temporal_workflows

__all__ = [
    "Answered",
    "AskedCall",
    "CallRunner",
    "Claim",
    "Codec",
    "Counts",
    "DbosRunner",
    "DurableEvent",
    "DurableLoop",
    "EngineError",
    "HeldPlan",
    "InboxEntry",
    "LateStore",
    "LocalRunner",
    "MemoryStore",
    "OperatorStore",
    "PastRound",
    "PostgresStore",
    "Prunable",
    "Pruned",
    "Question",
    "QuestionStore",
    "Restarted",
    "RoundJournal",
    "RunResult",
    "ScopeInfo",
    "SessionStore",
    "SqliteStore",
    "Status",
    "StoreError",
    "StoreJournal",
    "StoredEvent",
    "Stuck",
    "Taken",
    "TemporalRunner",
    "UnknownEvent",
    "Waiting",
    "log",
    "serve_dbos",
    "temporal_activity",
    "temporal_workflows",
]

# A program has one database, and imports what that needs.
_HOMES = homes_of(
    {
        "lutumpy.durable.dbos": ["DbosRunner", "serve_dbos"],
        "lutumpy.durable.postgres": ["PostgresStore"],
        "lutumpy.durable.sqlite": ["SqliteStore"],
        "lutumpy.durable.temporal": ["TemporalRunner", "temporal_activity", "temporal_workflows"],
    }
)

if not TYPE_CHECKING:  # a checker would take every name for one of this module's

    def __getattr__(name: str) -> Any:
        return find_name(__name__, _HOMES, name, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
