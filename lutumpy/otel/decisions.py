"""Events of a round: what hooks decided, what the model got wrong, what was committed."""

from __future__ import annotations

from typing import Any

from opentelemetry.trace import get_current_span

from lutumpy import ToolCallIssue, ToolRound, ToolRoundPlan
from lutumpy.otel import names
from lutumpy.otel.recorder import Recorder

__all__ = ["note_commit", "note_decisions"]


def note_decisions(recorder: Recorder, opened: ToolRound[Any] | ToolRoundPlan[Any]) -> None:
    """An event for each issue and each decision of a round or plan, on the current span."""
    for issue in opened.issues:
        _note_issue(recorder, issue)
    if not isinstance(opened, ToolRoundPlan):
        return
    span = get_current_span()
    if not span.is_recording():
        return
    for each in opened.decisions():
        # A call that no hook was asked about was decided by nobody.
        if each["decision"] == "issue" or (each["decision"] == "pending" and "by" not in each):
            continue
        attributes = {
            names.TOOL_NAME: each["tool"],
            names.TOOL_CALL_ID: each["call_id"],
            names.DECISION: each["decision"],
            names.DECISION_HOOK: each.get("by"),
            names.DECISION_SOURCE: each.get("source"),
        }
        if "reason" in each:
            attributes |= recorder.content.text(names.DECISION_REASON, each["reason"])
        known = {name: value for name, value in attributes.items() if value is not None}
        span.add_event(names.DECISION_EVENT, known)


def _note_issue(recorder: Recorder, issue: ToolCallIssue) -> None:
    # The name that the model wrote may be anything, so only a reason is counted by.
    attributes: dict[str, Any] = {
        names.TOOL_CALL_ID: issue.metadata.id,
        names.ISSUE_REASON: issue.reason,
        names.ISSUE_REPEAT: issue.repeat,
    }
    measured: dict[str, Any] = {names.ISSUE_REASON: issue.reason}
    if issue.reason != "unknown_tool":
        attributes[names.TOOL_NAME] = measured[names.TOOL_NAME] = issue.metadata.name
    attributes |= recorder.content.text(names.ISSUE_DETAIL, issue.detail)
    get_current_span().add_event(names.ISSUE_EVENT, attributes)
    recorder.instruments.record_issue(measured)


def note_commit(round: int, items: int) -> None:
    """An event for a commit, on the current span.

    Args:
        round: The number of the round, from 1.
        items: How many items the conversation has now.
    """
    get_current_span().add_event(
        names.COMMIT_EVENT, {names.COMMIT_ROUND: round, names.COMMIT_ITEMS: items}
    )
