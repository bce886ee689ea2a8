"""What every store checks of its arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy import Session
from lutumpy.errors import StoreError, TranscriptError
from lutumpy.models import Message, dump_item, load_item

__all__ = ["check_decision", "dump_message", "held_in"]


def held_in(plan: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids of the calls that a plan holds for a person."""
    return tuple([call["call_id"] for call in plan["calls"] if call["standing"] == "held"])


def check_decision(call_id: str, decision: Any, held: Sequence[str]) -> None:
    """Raise `StoreError` for a decision of another form, or about a call that isn't held."""
    if call_id not in held:
        raise StoreError("decision", f"the call {call_id!r} isn't held; nothing was taken")
    word = decision.get("decision") if isinstance(decision, Mapping) else None
    is_whole = word == "run" or (word == "complete" and "output" in decision)
    if word == "reject":
        is_whole = isinstance(decision.get("reason", ""), str)
    if not is_whole:
        raise StoreError(
            "decision",
            f"the decision about {call_id!r} is not run, complete with an output, or reject with "
            "a reason; nothing was taken",
        )
    try:
        json.dumps(decision, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(
            "decision", f"the decision about {call_id!r} is not JSON: {error}; nothing was taken"
        ) from error


def dump_message(item: Mapping[str, Any] | Message | str) -> Mapping[str, Any]:
    """A user's message as JSON values.

    Raises:
        TranscriptError: it is none, or has no content; nothing was taken.
    """
    session = Session()
    if isinstance(item, str):
        session.push_user(item)
    else:
        message = load_item(item) if isinstance(item, Mapping) else item
        if not isinstance(message, Message) or message.role != "user" or message.ephemeral:
            raise TranscriptError("only messages of the user can be pushed; nothing was taken")
        session.transcript.append(message)
    return dump_item(session.transcript[0])
