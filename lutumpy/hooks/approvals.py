"""What hooks decide about a call that the provider makes itself, if it is approved."""

# The hooks for calls of every tool and plain policies are asked; a tool's own hooks are not, for
# the call is of no tool of the toolset, whatever its name. There are four answers:
#
#   RunNormally()                nothing is decided: the next hook, and in the end a person or code
#   Complete(True)               it is approved
#   Reject(reason)               it is rejected; `Complete(False)` is the same without a reason
#   Hold(reason)                 no further hook is asked: a person decides
#
# Anything else is a `HookError`, so that nothing is approved by mistake (rule H4).

from __future__ import annotations

import inspect
from collections.abc import Generator
from typing import Any

from lutumpy.errors import HookError
from lutumpy.hooks.calling import close_coroutine, hook_failure
from lutumpy.hooks.decisions import UNCHANGED, Complete, Hold, Reject, RunNormally
from lutumpy.hooks.logs import log_decision
from lutumpy.hooks.pipeline import (
    UNDECIDED,
    Decision,
    Held,
    HookStep,
    Source,
    name_hook_and_call,
)
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.calls import HandledTool, RejectedToolCall
from lutumpy.tools.results import ToolResult

__all__ = ["decide_approval"]


def decide_approval(
    request: ApprovalRequest, steps: tuple[HookStep, ...], source: Source, *, log: bool
) -> Generator[Any, Any, ApprovalRequest | Held | Decision]:
    """Run one request through the hooks; yields awaitables and is sent their values.

    Args:
        request: The request.
        steps: The hooks for calls of every tool, or the policy.
        source: Who decides.
        log: Whether decisions are logged.

    Returns:
        The decision; the request, if no hook made one.

    Raises:
        HookError: a hook raised, or decided something that doesn't fit (rules H3, H4).
    """
    metadata = request.metadata
    for position, step in enumerate(steps):
        # Each hook gets a request of its own: what it does to that, no other hook sees.
        own = request.as_read()
        try:
            decision = (
                step.function(own) if step.takes == "call_only" else step.function(metadata, own)
            )
            if inspect.isawaitable(decision):
                decision = yield decision
        except Exception as error:
            raise hook_failure(name_hook_and_call(step, metadata), error, UNDECIDED) from error
        _check_arguments(decision, own, step, request)
        if isinstance(decision, RunNormally):
            if log:
                log_decision(step.label, metadata, "run_normally")
            continue
        if isinstance(decision, Hold) and isinstance(decision.reason, str):
            if log:
                log_decision(step.label, metadata, "hold", reason=decision.reason)
            return Held(request.as_read(), decision.reason, source, step.label, position)
        result = _read_decision(decision, step, request)
        snapshot = request.as_read()
        decided: HandledTool[Any, Any] | RejectedToolCall
        if result.status == "ok":
            decided = HandledTool(metadata, snapshot.input, True, request.selector)
        else:
            decided = RejectedToolCall(metadata, snapshot, result.rejection_reason or "", source)
        if log:
            word = "complete" if result.status == "ok" else "reject"
            log_decision(step.label, metadata, word, reason=result.rejection_reason)
        return Decision(decided, result, source, step.label, position)
    return request


def _check_arguments(
    decision: Any, own: ApprovalRequest, step: HookStep, request: ApprovalRequest
) -> None:
    """Raise `HookError` for a decision that is meant for other arguments than the model's.

    Args:
        decision: The decision.
        own: The request that the hook was given. It may have changed the input inside.
        step: The hook.
        request: The request.
    """
    meant: Any = UNCHANGED
    if isinstance(decision, RunNormally):
        meant = decision.input
    elif isinstance(decision, Complete) and decision.output is True:
        meant = own.input
    if meant is not UNCHANGED and meant != request.as_read().input:
        raise _misfit(step, request, "other arguments; the provider makes the call itself")


def _read_decision(decision: Any, step: HookStep, request: ApprovalRequest) -> ToolResult:
    """The answer that a decision gives to a request."""
    if isinstance(decision, Complete) and isinstance(decision.output, bool):
        return request.complete(decision.output)
    if isinstance(decision, Reject) and isinstance(decision.reason, str):
        return request.reject(decision.reason)
    close_coroutine(decision)
    found = type(decision).__name__
    if isinstance(decision, Complete):
        found = f"Complete({type(decision.output).__name__})"
    elif isinstance(decision, Reject):
        found = f"a Reject whose reason is {type(decision.reason).__name__}"
    raise _misfit(step, request, f"{found}, not RunNormally(), Complete(True) or Reject(reason)")


def _misfit(step: HookStep, request: ApprovalRequest, what: str) -> HookError:
    return HookError(f"{name_hook_and_call(step, request.metadata)} gave {what}; {UNDECIDED}")
