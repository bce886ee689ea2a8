"""Help for testing programs that call tools: scripted answers, recorded traffic, and a server that
speaks every API of the table.

Names load when they are first used: a script needs neither the server's HTTP stack nor an SDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lutumpy.testing.cassettes.cassette import Cassette
    from lutumpy.testing.expectations import (
        Expectation,
        SessionCall,
        called,
        calls,
        expect,
        never_called,
    )
    from lutumpy.testing.message_export import inspect_messages
    from lutumpy.testing.past import ForkedConversation, PastConversation
    from lutumpy.testing.past_calls import CallDifference, PastRound
    from lutumpy.testing.probe import Probe, ProbeCheck
    from lutumpy.testing.replies import Call, Failure, Reply
    from lutumpy.testing.script import render, render_stream
    from lutumpy.testing.scripted import ScriptedModel
    from lutumpy.testing.snapshots import transcript_snapshot
    from lutumpy.testing.trials import pass_all_k, pass_at_k, trials_of
    from lutumpy.testing.wire import HostUrls, WireRequest, WireServer, serve

__all__ = [
    "Call",
    "CallDifference",
    "Cassette",
    "Expectation",
    "Failure",
    "ForkedConversation",
    "HostUrls",
    "PastConversation",
    "PastRound",
    "Probe",
    "ProbeCheck",
    "Reply",
    "ScriptedModel",
    "SessionCall",
    "WireRequest",
    "WireServer",
    "called",
    "calls",
    "expect",
    "inspect_messages",
    "never_called",
    "pass_all_k",
    "pass_at_k",
    "render",
    "render_stream",
    "serve",
    "transcript_snapshot",
    "trials_of",
]

_HOMES = {
    "Call": "replies",
    "Cassette": "cassettes.cassette",
    "Expectation": "expectations",
    "SessionCall": "expectations",
    "called": "expectations",
    "calls": "expectations",
    "expect": "expectations",
    "never_called": "expectations",
    "transcript_snapshot": "snapshots",
    "CallDifference": "past_calls",
    "PastRound": "past_calls",
    "Probe": "probe",
    "ProbeCheck": "probe",
    "inspect_messages": "message_export",
    "pass_all_k": "trials",
    "pass_at_k": "trials",
    "trials_of": "trials",
    "ForkedConversation": "past",
    "PastConversation": "past",
    "Failure": "replies",
    "Reply": "replies",
    "render": "script",
    "render_stream": "script",
    "ScriptedModel": "scripted",
    "HostUrls": "wire",
    "WireRequest": "wire",
    "WireServer": "wire",
    "serve": "wire",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
