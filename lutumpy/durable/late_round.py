"""A round that waits before it can be committed: for late results (`late="wait"`), and for answers
to what servers ask.

A run looks once, and ends where something has to be waited for. The next one, in any process, looks
again.
"""

# What becomes of a call that was promised or asks something; the first row that fits:
#
#   an earlier run gave it up                     the result that says so, whatever came since
#   its late result is in the inbox               that one; the commit of the round takes the entry
#   it asks something                             a person, or its next leg, is waited for
#   its time is over, or no server knows it now   given up, as soon as nothing else is waited for
#   none of these                                 its result is waited for

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

from lutumpy import CallTicket, OpenCall, ToolResult
from lutumpy.durable.conversation import OpenConversation
from lutumpy.durable.late import (
    cancel_polled,
    expired_result,
    is_late,
    keep_edit,
    late_id,
    open_call_of,
    store_now,
)
from lutumpy.durable.polling import PolledCall, Polls
from lutumpy.durable.questions import AskedCall, asked_of, is_asked
from lutumpy.durable.results import Waiting
from lutumpy.durable.types import InboxEntry
from lutumpy.execution import UnresolvedCall, as_execution_result
from lutumpy.hooks import BaseToolCall
from lutumpy.tools import poller_of

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lutumpy.durable.events import EventWriter

__all__ = ["HeldForPerson", "settle_open_calls"]

SECONDS_TO_NEXT_LEG = 5.0
"""Until a call is sent again whose server asked nothing, and only wants to be called once more."""


class HeldForPerson(Exception):
    """Ends a run: something has to be waited for. It never leaves this package.

    Attributes:
        waiting: What the run gives: the outcome that says what is waited for.
        seen: The ids of the entries of the inbox that were looked at.
    """

    def __init__(self, waiting: Waiting, seen: frozenset[str]) -> None:
        self.waiting = waiting
        self.seen = seen
        super().__init__(waiting.digest)


@dataclass(frozen=True, slots=True)
class _StillOpen:
    """What a round waits for.

    Attributes:
        calls: The calls whose results are to come.
        asked: The calls that ask a person something.
        over: The places of the calls that are given up, once nothing else is waited for.
        used: The entries of the inbox that took the place of promises and questions.
        seen: The ids of all late results that were looked at. One that the round has no use for
            stays in the inbox until the commit, and is nothing new to whoever looks again.
    """

    calls: list[OpenCall]
    asked: list[AskedCall]
    over: list[int]
    used: list[InboxEntry]
    seen: list[str]


async def settle_open_calls(
    conversation: OpenConversation,
    tickets: Sequence[CallTicket],
    results: list[ToolResult],
    calls: Mapping[str, BaseToolCall],
    events: EventWriter | None,
    polls: Polls,
    *,
    waits: bool,
) -> list[ToolResult]:
    """The results of a round, late ones in place of promises where the round waits for them.

    Args:
        conversation: The conversation.
        tickets: The calls of the round.
        results: Their results so far.
        calls: The calls by id.
        events: Where events go, if they are stored.
        polls: Asks for the results of calls that nobody delivers.
        waits: Whether the round waits for results that are promised; it always does for answers.

    Raises:
        HeldForPerson: results are still to come, or a person has to answer something.
    """
    promised = [
        open_call_of(ticket, result)
        for ticket, result in zip(tickets, results, strict=True)
        if result.status == "promised" and not is_asked(result)
    ]
    if promised:
        results[:] = map(keep_edit, tickets, results)
    if promised and events is not None:
        await events.promise(promised)
    if not (promised and waits) and not any(map(is_asked, results)):
        return results
    polled = [
        PolledCall(each.promised, poller, calls[each.call_id])
        for each in promised
        for poller in [poller_of(calls[each.call_id].tool)]
        if waits and poller is not None
    ]
    report = await polls.poll(conversation, polled, holds=True)
    still_open = await _take_late_results(
        conversation, tickets, results, calls, report.lost, waits=waits
    )
    still_open.asked.extend(report.asked)
    if still_open.calls or still_open.asked:
        await _wait_for(conversation, still_open, calls, events, report.wait)
    for index in still_open.over:
        results[index] = await _give_up(conversation, tickets[index], results[index])
    for entry in still_open.used:
        conversation.tell_by_result(entry)
    by_id = {result.metadata.id: result for result in results}
    for each in polled:
        await cancel_polled(each.poller, each.call, by_id[each.call.call_id])
    await _tell_taken(conversation, tickets, results, promised if waits else [], still_open.used)
    return results


async def _tell_taken(
    conversation: OpenConversation,
    tickets: Sequence[CallTicket],
    results: Sequence[ToolResult],
    promised: Sequence[OpenCall],
    used: Sequence[InboxEntry],
) -> None:
    """Tell log and telemetry which late results the round takes."""
    reasons = dict.fromkeys([call.call_id for call in promised], "expired")
    reasons |= {str(entry.value["call_id"]): "delivered" for entry in used}
    taken = [
        (result, reasons[result.metadata.id]) for result in results if result.metadata.id in reasons
    ]
    if conversation.before_late is not None:
        await conversation.before_late(taken)
    if conversation.delivery_spans is not None:
        keys = {ticket.call_id: ticket.key for ticket in tickets}
        conversation.delivery_spans.note_taken([result for result, _ in taken], used, keys)


async def _wait_for(
    conversation: OpenConversation,
    still_open: _StillOpen,
    calls: Mapping[str, BaseToolCall],
    events: EventWriter | None,
    poll_after: float | None,
) -> NoReturn:
    """End the run: results or answers have to come."""
    data = cast("Mapping[str, JsonValue]", conversation.recorded("plan"))
    questions = [question for call in still_open.asked for question in call.questions]
    # A call that asks without any question only has to be sent again in a moment (rule LR29).
    if any(not call.questions for call in still_open.asked):
        poll_after = min(SECONDS_TO_NEXT_LEG, poll_after or SECONDS_TO_NEXT_LEG)
    waiting = Waiting(
        data,
        (),
        str(data["digest"]),
        tuple(still_open.calls),
        tuple(questions),
        poll_after,
    )
    seen = frozenset([*still_open.seen, *[entry.id for entry in conversation.answers]])
    if events is not None:
        await events.ask(still_open.asked, calls)
        await events.wait_for_results(waiting, seen)
    raise HeldForPerson(waiting, seen)


async def _take_late_results(
    conversation: OpenConversation,
    tickets: Sequence[CallTicket],
    results: list[ToolResult],
    calls: Mapping[str, BaseToolCall],
    lost: Collection[str],
    *,
    waits: bool,
) -> _StillOpen:
    """Replace promises by the late results that came, in `results`.

    Records stay as they are: a result that came is in the inbox until the commit takes it. So a
    call that was given up stays that, though its result came before the commit.
    """
    inbox = await conversation.store.inbox(conversation.scope)
    came = {entry.id: entry for entry in inbox if is_late(entry)}
    now = store_now(conversation.claim)
    still_open = _StillOpen([], [], [], [], [*came])
    for index, (ticket, result) in enumerate(zip(tickets, results, strict=True)):
        asks = is_asked(result)
        if result.status != "promised" or not (waits or asks):
            continue
        given_up = conversation.recorded(_given_up_record(ticket))
        if given_up is not None:
            value = cast("Mapping[str, Any]", given_up)
            results[index] = ToolResult.load(value, calls[ticket.call_id])
            continue
        entry = came.get(late_id(ticket.call_id))
        if entry is not None:
            value = cast("Mapping[str, Any]", entry.value["result"])
            loaded = ToolResult.load(value, calls[ticket.call_id])
            results[index] = as_execution_result(loaded)
            still_open.used.append(entry)
            continue
        if asks:
            still_open.asked.append(asked_of(result, conversation.answers))
            continue
        open_call = open_call_of(ticket, result)
        is_over = open_call.until is not None and open_call.until <= now
        if is_over or ticket.call_id in lost:
            still_open.over.append(index)
        else:
            still_open.calls.append(open_call)
    return still_open


def _given_up_record(ticket: CallTicket) -> str:
    # The result of the call is recorded already: that it was promised.
    return f"call:{ticket.call_id}:given up"


async def _give_up(
    conversation: OpenConversation, ticket: CallTicket, promised: ToolResult
) -> ToolResult:
    """The result of a call that did not come in time (rule LR12)."""
    result = expired_result(open_call_of(ticket, promised).promised, ticket.effect)
    if ticket.effect == "once":
        unresolved = UnresolvedCall.of(ticket.scope, ticket.metadata, ticket.equal_to)
        value = {**result.dump(), "unresolved": unresolved.dump()}
        await conversation.record(_given_up_record(ticket), value)
        if unresolved not in conversation.unresolved:
            conversation.unresolved += (unresolved,)
    return result
