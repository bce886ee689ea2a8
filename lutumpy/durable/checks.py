"""What every store checks of its arguments, and sees in them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from lutumpy import Session, ToolResult
from lutumpy.durable.types import InboxEntry, Status
from lutumpy.errors import StoreError, TranscriptError
from lutumpy.execution import UnresolvedCall
from lutumpy.models import Message, dump_item, load_item
from lutumpy.plain.safe_text import safe_repr

__all__ = [
    "GOES_ON",
    "LONGEST_LEASE",
    "check_before",
    "check_decision",
    "check_lease",
    "check_new_scope",
    "check_resolution",
    "check_what",
    "dump_message",
    "first_status",
    "has_come",
    "has_request",
    "held_in",
    "make_late_notice",
    "make_notice",
    "notice_id",
    "wrong_form",
]


LONGEST_LEASE = 3600.0
"""Seconds that a lease lasts at most, unless it is renewed."""

GOES_ON: Mapping[Status | None, Collection[str]] = {
    "done": ("message", "late"),
    "waiting": ("decision", "answer", "late"),
}
"""The kinds of entries of the inbox with which a conversation of such a status goes on."""

# What each decision may say beside its word.
_SAID_BESIDE: Mapping[Any, str] = {"run": "input", "complete": "output", "reject": "reason"}


def has_request(session: Session) -> bool:
    """Whether there is something that a model hasn't answered.

    Where there is nothing, a worker would have nothing to send: a new conversation gets its message
    from outside, a moment later.
    """
    for item in reversed(session.transcript.committed_items(0)):
        if not isinstance(item, Message):
            return not session.answered
        if item.role not in ("system", "developer"):
            return item.role == "user"
    return False


def first_status(task: int) -> Status:
    """The status of a new conversation, by the number of its task: 0 where there is none."""
    return "open" if task else "done"


def has_come(
    status: Status | None, looked_at: Collection[str], inbox: Sequence[InboxEntry]
) -> bool:
    """Whether the inbox holds something that lets a conversation of such a status go on, and that
    its run hasn't looked at. The conversation is `open` then instead.

    Whoever sent it found the conversation open or claimed, and so left its status as it was. And
    the run may be killed right after it has written its status: then nothing else tells a worker
    that there is something to do.

    Args:
        status: The status that a run gives the conversation.
        looked_at: The ids of the entries of the inbox that the run has looked at.
        inbox: What waits now.
    """
    came = {entry.kind for entry in inbox if entry.id not in looked_at}
    return not came.isdisjoint(GOES_ON.get(status, ()))


def held_in(plan: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids of the calls that a plan holds for a person."""
    return tuple([call["call_id"] for call in plan["calls"] if call["standing"] == "held"])


def decision_id(plan_digest: str, call_id: str) -> str:
    """The id of the entry of the inbox that decides a call: there is one."""
    return f"decision:{plan_digest}:{call_id}"


def check_decision(call_id: str, decision: Any, held: Sequence[str]) -> None:
    """Raise `StoreError` for a decision of another form, or about a call that isn't held."""
    if call_id not in held:
        raise StoreError("decision", f"the call {call_id!r} isn't held; nothing was taken")
    reason = wrong_form(decision)
    if reason is not None:
        raise StoreError("decision", f"the decision about {call_id!r} {reason}; nothing was taken")
    try:
        json.dumps(decision, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(
            "decision", f"the decision about {call_id!r} is not JSON: {error}; nothing was taken"
        ) from error


def wrong_form(decision: Any) -> str | None:
    """What is wrong with the form of a decision about a held call; `None` for nothing.

    What it doesn't know it refuses: a misspelled `input` would run the call without the edit.
    """
    word = decision.get("decision") if isinstance(decision, Mapping) else None
    beside = _SAID_BESIDE.get(word) if isinstance(word, str) else None
    is_whole = beside is not None and (word != "complete" or "output" in decision)
    if not is_whole or (word == "reject" and not isinstance(decision.get("reason", ""), str)):
        return "is not run, complete with an output, or reject with a reason"
    unknown = [name for name in decision if name not in ("decision", beside)]
    if unknown:
        return f"is {word}, which has {beside!r} beside it, and not {safe_repr(unknown[0])}"
    return None


def check_resolution(decision: Any, output: Any) -> None:
    """Raise `ValueError` for a word that doesn't say what became of a call, or an output beside one
    that says the call did nothing.
    """
    if decision not in ("happened", "did_not_happen"):
        raise ValueError(
            f"a call is resolved as 'happened' or 'did_not_happen', not {decision!r}; "
            "nothing was resolved"
        )
    if output is not None and decision != "happened":
        raise ValueError("a call that did not happen has no output; nothing was resolved")


def check_lease(lease: float) -> None:
    """Raise `ValueError` for a lease of no time, or a longer one than `LONGEST_LEASE`."""
    if not 0 < lease <= LONGEST_LEASE:
        raise ValueError(
            f"a lease lasts more than 0 seconds, and {LONGEST_LEASE:.0f} seconds at most, not "
            f"{lease}"
        )


def check_before(before: Any) -> float:
    """A moment as seconds since 1970; `ValueError` where it doesn't say in which time zone."""
    if not isinstance(before, datetime) or before.tzinfo is None:
        raise ValueError(
            f"before= is a datetime with a time zone, not {before!r}; nothing was pruned"
        )
    return before.timestamp()


def check_what(what: Collection[str]) -> None:
    """Raise `ValueError` for the name of something that `prune` doesn't know."""
    for each in what:
        if each not in ("records", "events", "conversations"):
            raise ValueError(
                f"records, events and conversations are pruned, not {each!r}; nothing was pruned"
            )


def check_new_scope(scope: str, to: str) -> None:
    """Raise `ValueError` where a conversation would be forked to itself."""
    if scope == to:
        raise ValueError("a conversation is forked to another one; nothing was made")


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


def notice_id(round: int, call_id: str) -> str:
    """The id of the notice about a call of a round."""
    return f"resolved:{round}:{call_id}"


_HAPPENED = "did happen: it took effect."
_OUTPUT = "Its output:"


def make_notice(call: UnresolvedCall, round: int, output: Any, by: str) -> Mapping[str, Any]:
    """What the inbox keeps of a call that did happen, and what the model reads of it.

    Args:
        call: The call.
        round: The round in which it was made.
        output: What it gave, as JSON values; `None` where nobody knows.
        by: Who said so.

    Raises:
        StoreError: `decision`: the output isn't JSON; nothing was resolved.
    """
    text = _became(call, _HAPPENED)
    if output is not None:
        try:
            text += f" {_OUTPUT} {json.dumps(output, ensure_ascii=False, allow_nan=False)}"
        except (ValueError, TypeError, RecursionError) as error:
            raise StoreError(
                "decision",
                f"the output of {call.metadata.id!r} is not JSON: {error}; nothing was resolved",
            ) from error
    return _notice(call, round, dump_message(text), output, by)


def make_late_notice(
    call: UnresolvedCall, round: int, result: Mapping[str, Any]
) -> Mapping[str, Any]:
    """As `make_notice`, of a call whose result came when it had been given up.

    Args:
        call: The call.
        round: The round in which it was given up.
        result: The result, as `ToolResult.dump` gives it.
    """
    loaded = ToolResult.load(result, call)
    became, gave = ("failed.", "It said:") if loaded.status == "error" else (_HAPPENED, _OUTPUT)
    text, content = _became(call, became), loaded.content
    session = Session()
    if not content:
        session.push_user(text)
    elif isinstance(content, str):
        session.push_user(f"{text} {gave} {content}")
    else:
        session.push_user([f"{text} {gave}", *content])
    return _notice(call, round, dump_item(session.transcript[0]), None, "delivery")


def _became(call: UnresolvedCall, what: str) -> str:
    return (
        f"The call {call.metadata.id} of {call.metadata.name}, whose outcome was not known, {what}"
    )


def _notice(
    call: UnresolvedCall, round: int, message: Mapping[str, Any], output: Any, by: str
) -> Mapping[str, Any]:
    return {
        "message": message,
        "call_id": call.metadata.id,
        "round": round,
        "output": output,
        "by": by,
    }
