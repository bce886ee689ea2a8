"""Promises and open calls as JSON values and back (rule LR16); late items are in `dump_items`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from lutumpy.core.dump_checks import expect
from lutumpy.core.promises import Promise, PromisedCall
from lutumpy.errors import TranscriptError
from lutumpy.plain import json_values

__all__ = [
    "dump_open_call",
    "dump_promise",
    "load_open_calls",
    "load_promise",
]

_KINDS = ("function", "custom")


def dump_promise(promise: Promise) -> dict[str, Any]:
    """A promise as JSON values; what isn't known is left out."""
    dumped: dict[str, Any] = {"note": promise.note}
    if promise.handle is not None:
        # The copy is the dump's own.
        dumped["handle"] = json_values.copied(promise.handle)
    if promise.since is not None:
        dumped["since"] = promise.since.isoformat()
    if promise.until is not None:
        dumped["until"] = promise.until.isoformat()
    if promise.tool_digest is not None:
        dumped["tool_digest"] = promise.tool_digest
    if promise.equal_to is not None:
        dumped["equal_to"] = promise.equal_to
    return dumped


def load_promise(data: Mapping[str, Any]) -> Promise:
    """The promise of a dumped result. Raises `TranscriptError` if it has none, or shouldn't."""
    if data["status"] != "promised":
        raise TranscriptError(f"a promise in a result with the status {data['status']!r}")
    expect(data["content"], str, "content")
    if data.get("kind", "function") not in _KINDS:
        raise TranscriptError(f"a call of the kind {data['kind']!r} is promised")
    return _read_promise(expect(data.get("promise", {}), dict, "promise"))


def _read_promise(fields: Mapping[str, Any]) -> Promise:
    digest, equal_to = [
        None if fields.get(name) is None else expect(fields[name], str, f"promise.{name}")
        for name in ("tool_digest", "equal_to")
    ]
    return Promise(
        expect(fields.get("note", ""), str, "promise.note"),
        json_values.clean(fields.get("handle")),
        _read_time(fields, "since"),
        _read_time(fields, "until"),
        digest,
        equal_to=equal_to,
    )


def _read_time(fields: Mapping[str, Any], name: str) -> datetime | None:
    if fields.get(name) is None:
        return None
    time = datetime.fromisoformat(expect(fields[name], str, f"promise.{name}"))
    if time.tzinfo is None:
        raise TranscriptError(f"promise.{name} has no time zone")
    return time.astimezone(timezone.utc)


def dump_open_call(call: PromisedCall) -> dict[str, Any]:
    """An open call whose round isn't among the items, as JSON values."""
    return {
        "call_id": call.call_id,
        "name": call.name,
        "arguments": call.arguments,
        "kind": call.kind,
        "promise": dump_promise(call.promise),
    }


def load_open_calls(data: Any) -> list[PromisedCall]:
    """The open calls of a dump whose rounds aren't among its items.

    Raises `TranscriptError`, or one of `WRONG`, if they aren't.
    """
    found: list[PromisedCall] = []
    for entry in expect(data, list, "open_calls"):
        fields = expect(entry, dict, "an open call")
        call_id, name, arguments, kind = [
            expect(fields[key], str, key) for key in ("call_id", "name", "arguments", "kind")
        ]
        if not call_id or kind not in _KINDS or call_id in [call.call_id for call in found]:
            raise TranscriptError(f"call {call_id!r} of the kind {kind!r} can't be open")
        promise = _read_promise(expect(fields["promise"], dict, "promise"))
        found.append(PromisedCall(call_id, name, arguments, kind, promise, True))
    return found
