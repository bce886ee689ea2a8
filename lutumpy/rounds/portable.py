"""A plan as data: written down, and taken up again in another process (rules P9, P12 to P15)."""

# What is hard: a plan that was loaded must be the plan that was written, and nothing else. So
#
# - inputs are dumped in full and loaded as they are; the arguments are never decoded again, since
#   a default may be made anew each time. `dump_input` tries the way back before it gives anything;
# - the idempotency key of each call is fixed when the plan is written, and travels with it;
# - a dump is checked as a whole, in the order of P13, before anything is made of it;
# - whatever a hostile dump holds, it is a `PlanError`: what has another shape raises one of `WRONG`
#   somewhere in here, and `load_plan` says so.
#
# What a dump says of a call goes by its standing:
#
#   standing   loaded as          has
#   ---------  -----------------  ---------------------------------------------------------------
#   pending    the call           input, edited, key, effect; (of an approval) server_label
#   held       `Held`             the same, and reason, source, by
#   handled    `Decision`         input, effect, result, source, by
#   rejected   `Decision`         the same, and reason
#   issue      `ToolCallIssue`    reason, detail, repeat

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lutumpy.core.call_place import CallPlace
from lutumpy.core.dump_items import dump_turn
from lutumpy.errors import PlanError
from lutumpy.hooks.audit import Run, describe_call, is_edited
from lutumpy.hooks.pipeline import CallOrIssue, CallState, Decision, Held
from lutumpy.rounds.open_answer import OpenAnswer
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.call_identity import call_arguments, idempotency_key, written_arguments
from lutumpy.tools.calls import (
    BaseToolCall,
    RejectedToolCall,
    ToolCallIssue,
)
from lutumpy.tools.portable_input import NotPortable, dump_input
from lutumpy.tools.selectors import Selector
from lutumpy.tools.signing import Signer, seal
from lutumpy.tools.ticket_making import make_ticket
from lutumpy.tools.tickets import CallTicket

__all__ = ["FORMAT", "VERSION", "dump_plan", "make_tickets"]

FORMAT = "lutumpy.plan"
VERSION = 1

# --- writing ---------------------------------------------------------------------------------


def dump_plan(
    answer: OpenAnswer,
    states: Sequence[CallState],
    runs: Sequence[Run],
    scope: str,
    signer: Signer | None,
) -> dict[str, Any]:
    """A round or plan as JSON values; see `ToolRoundPlan.dump`.

    Raises:
        PlanError: `not_portable`.
        TypeError: `scope` is not text, or `signer` no signer.
    """
    _check_scope(scope)
    if signer is not None and not isinstance(signer, Signer):
        raise TypeError(f"sign= takes a Signer, not {type(signer).__name__}")
    origin = _origin_of(answer)
    selectors = _selectors_of(answer.entries)
    toolset = selectors[0].toolset.__name__ if selectors else ""
    tools = {selector.name: selector.tool.digest for selector in selectors}
    pairs = zip(answer.entries, states, strict=True)
    try:
        plan: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "scope": scope,
            "at": {"items": origin.committed, "digest": origin.digest().hex()},
            "toolset": {"name": toolset, "tools": tools},
            "turn": dump_turn(answer.turn),
            "calls": [_dump_call(entry, state, runs, scope) for entry, state in pairs],
        }
        seal(plan, signer)
    except (RecursionError, TypeError, ValueError) as error:
        if isinstance(error, PlanError):
            raise
        raise PlanError(
            "not_portable", f"the plan can't be written as JSON: {error}; it is still open"
        ) from error
    return plan


def _selectors_of(entries: Sequence[CallOrIssue]) -> list[Selector[Any, Any, Any]]:
    """The selectors of the tools that are called, each once."""
    calls = [e for e in entries if isinstance(e, BaseToolCall) and type(e) is not ApprovalRequest]
    return list({call.selector.name: call.selector for call in calls}.values())


def _origin_of(answer: OpenAnswer) -> CallPlace:
    for entry in answer.entries:
        if isinstance(entry, BaseToolCall) and entry.origin is not None:
            return entry.origin
    # Only issues, which have none.
    return CallPlace(answer.transcript, answer.begun.length, answer.turn.calls)


def _dump_call(
    entry: CallOrIssue, state: CallState, runs: Sequence[Run], scope: str
) -> dict[str, Any]:
    metadata = entry.metadata
    data: dict[str, Any] = {
        "call_id": metadata.id,
        "tool": metadata.name,
        "arguments": metadata.arguments,
    }
    if metadata.is_text:
        data["is_text"] = True
    issue = state if isinstance(state, ToolCallIssue) else entry
    if isinstance(issue, ToolCallIssue):
        described = {"reason": issue.reason, "detail": issue.detail, "repeat": issue.repeat}
        return {**data, "standing": "issue", **described}
    assert not isinstance(state, ToolCallIssue)
    data["standing"] = _standing_of(state)
    call = _call_of(state, issue)
    if isinstance(issue, ApprovalRequest):
        data["server_label"] = issue.server_label
    else:
        data |= _dump_input(call)
        data["edited"] = is_edited(issue, state, runs)
        data["effect"] = call.tool.definition.options.effect
        if not isinstance(state, Decision):
            data |= _identity_of(call, scope)
    if isinstance(state, Decision):
        data["result"] = state.result.dump()
    described = describe_call(entry, state, runs)
    return data | {name: described[name] for name in _DESCRIBED if name in described}


_DESCRIBED = ("reason", "source", "by", "hooks")


def _standing_of(state: BaseToolCall | Held | Decision) -> str:
    if isinstance(state, Held):
        return "held"
    if isinstance(state, Decision):
        return "rejected" if isinstance(state.decided, RejectedToolCall) else "handled"
    return "pending"


def _call_of(state: BaseToolCall | Held | Decision, entry: BaseToolCall) -> BaseToolCall:
    """The call as it will run, or as it was when the decision fell."""
    if isinstance(state, Held):
        return state.call
    if isinstance(state, Decision):
        decided = state.decided
        if isinstance(decided, RejectedToolCall):
            return decided.call
        return entry if isinstance(entry, ApprovalRequest) else entry.holding(decided.input)
    return state


def _dump_input(call: BaseToolCall) -> dict[str, Any]:
    try:
        return {"input": dump_input(call)}
    except NotPortable as error:
        metadata = call.metadata
        raise PlanError(
            "not_portable",
            f"the input of call {metadata.id!r} of {metadata.name!r} doesn't survive JSON: "
            f"{error}; the plan is still open",
        ) from error


def _identity_of(call: BaseToolCall, scope: str) -> dict[str, Any]:
    """The key of a call, and the text of equal calls where that isn't what the model wrote."""
    equal_to = call_arguments(call)
    data: dict[str, Any] = {"key": str(idempotency_key(call, scope, equal_to, 0))}
    if equal_to != written_arguments(call):
        data["equal_to"] = equal_to
    return data


def make_tickets(pending: Sequence[BaseToolCall], scope: str) -> tuple[CallTicket, ...]:
    """One ticket for each pending call, in order; raises `PlanError` as `dump_plan` does."""
    _check_scope(scope)
    tickets: list[CallTicket] = []
    for call in pending:
        equal_to = call_arguments(call)
        key = idempotency_key(call, scope, equal_to, 0)
        try:
            tickets.append(make_ticket(call, scope=scope, key=key, equal_to=equal_to))
        except NotPortable:
            _dump_input(call)  # raises the same with words for plans
            raise
    return tuple(tickets)


def _check_scope(scope: Any) -> None:
    if not isinstance(scope, str):
        raise TypeError(f"scope= is text, the conversation's id, not {type(scope).__name__}")
