"""A round that waits for the results that its calls have promised (`late="wait"`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from lutumpy import CallTicket, OpenCall, ToolResult
from lutumpy.durable.conversation import OpenConversation
from lutumpy.durable.late import expired_result, is_late, late_id, open_call_of, store_now
from lutumpy.durable.types import InboxEntry
from lutumpy.execution import UnresolvedCall, as_execution_result
from lutumpy.hooks import BaseToolCall

__all__ = ["take_late_results"]


async def take_late_results(
    conversation: OpenConversation,
    tickets: Sequence[CallTicket],
    results: list[ToolResult],
    calls: Mapping[str, BaseToolCall],
) -> tuple[list[OpenCall], list[InboxEntry]]:
    """Put the late results that came in place of promises, and what is given up.

    Records stay as they are: a result that came is in the inbox until the commit takes it.

    Args:
        conversation: The conversation.
        tickets: The calls of the round.
        results: Their results, which are changed.
        calls: The calls by id.

    Returns:
        The calls that are still open, and the entries that were used.
    """
    inbox = await conversation.store.inbox(conversation.scope)
    came = {entry.id: entry for entry in inbox if is_late(entry)}
    now = store_now(conversation.claim)
    open_calls: list[OpenCall] = []
    used: list[InboxEntry] = []
    for index, (ticket, result) in enumerate(zip(tickets, results, strict=True)):
        if result.status != "promised":
            continue
        entry = came.get(late_id(ticket.call_id))
        if entry is not None:
            value = cast("Mapping[str, Any]", entry.value["result"])
            loaded = ToolResult.load(value, calls[ticket.call_id])
            results[index] = as_execution_result(loaded)
            used.append(entry)
            continue
        open_call = open_call_of(ticket, result)
        if open_call.until is not None and open_call.until <= now:
            results[index] = await _give_up(conversation, open_call, ticket)
        else:
            open_calls.append(open_call)
    return open_calls, used


async def _give_up(
    conversation: OpenConversation, call: OpenCall, ticket: CallTicket
) -> ToolResult:
    """The result of a call that did not come in time (rule LR12)."""
    result = expired_result(call.promised, ticket.effect)
    if ticket.effect == "once":
        unresolved = UnresolvedCall.of(ticket.scope, ticket.metadata, ticket.equal_to)
        value = {**result.dump(), "unresolved": unresolved.dump()}
        # The result of the call is recorded already: that it was promised.
        await conversation.record(f"call:{ticket.call_id}:given up", value)
        if unresolved not in conversation.unresolved:
            conversation.unresolved += (unresolved,)
    return result
