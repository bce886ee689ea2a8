"""Calls of a recorded plan whose tools are others now: what came of those that were begun (P7)."""

# With `drift="reject"` the result of such a call says that it was not run. That is true only of one
# that nobody has begun: where a result is recorded, the call has run, and where there is a marker
# alone, nobody knows. Nor does anybody of a call that is open: what comes is for another tool.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from lutumpy import ToolResult, ToolRoundPlan
from lutumpy.durable.conversation import OpenConversation
from lutumpy.durable.engines import lost
from lutumpy.durable.journal import StoreJournal
from lutumpy.durable.questions import leg_of, ticket_of_leg
from lutumpy.hooks import ToolHooks
from lutumpy.loops import take_content, withhold
from lutumpy.tools import CallLeg, HasView, View, ticket_in_plan

__all__ = ["outcomes_of_changed"]

_CHANGED = (
    "The tool changed while this call was open, so it can't go on, and its result isn't used."
)


async def outcomes_of_changed(
    plan: ToolRoundPlan[Any],
    data: Mapping[str, Any],
    conversation: OpenConversation,
    tools: HasView[View[Any, Any]],
    review: ToolHooks[Any] | None,
) -> list[ToolResult]:
    """The results of the calls that became issues when the plan was taken up, and had begun before.

    Args:
        plan: The plan as it was taken up.
        data: The dump that it comes from.
        conversation: The conversation; it knows of each call what is recorded.
        tools: The toolset.
        review: The hooks on results.

    Raises:
        HookError: a hook on results failed.
    """
    issues = {issue.metadata.id for issue in plan.issues}
    journal = StoreJournal(conversation)
    results: list[ToolResult] = []
    for call in data["calls"]:
        if call["call_id"] not in issues or call["standing"] not in ("pending", "held"):
            continue
        ticket = ticket_in_plan(data, call)
        leg = leg_of(conversation, ticket.call_id)
        if leg.number > 1:
            ticket = ticket_of_leg(ticket, leg)
        if journal.was_begun(ticket):
            await journal.begin(ticket)  # nobody has a result: it is recorded as unknown
        result = journal.result_of(ticket)
        if result is not None and result.status == "promised":
            leg, result = CallLeg(leg.number + 1, None), None
        if result is None and leg.number > 1:
            # It has begun, and neither an answer nor a late result fits another tool.
            ticket = ticket_of_leg(ticket, leg)
            result = await journal.keep(ticket, lost(ticket, _CHANGED))
        if result is not None:
            results.append(result)
    if review is None:
        return results
    known = {each.name for each in tools.__view__().toolset.definitions()}
    return [
        await _review(result, conversation, review)
        if result.metadata.name in known
        else withhold(result)  # the hooks for it may be gone with it
        for result in results
    ]


async def _review(
    result: ToolResult, conversation: OpenConversation, hooks: ToolHooks[Any]
) -> ToolResult:
    """The result as the hooks leave it, or have left it in another run."""
    reviewed = cast("Mapping[str, Any]", conversation.recorded("review") or {})
    content = reviewed.get(result.metadata.id)
    if content is not None:
        return take_content(result, ToolResult.load(content, result))
    (after,) = await hooks.review([result])
    return take_content(result, after)
