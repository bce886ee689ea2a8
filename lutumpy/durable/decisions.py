"""What a person decided about a call, as JSON values, and as the decision that a plan takes."""

from __future__ import annotations

from typing import Any

from lutumpy import ApprovalRequest, Complete, HookError, Reject, RunNormally
from lutumpy.durable.checks import wrong_form
from lutumpy.hooks import BaseToolCall
from lutumpy.plain.safe_text import safe_repr
from lutumpy.tools import NotPortable, load_input

__all__ = ["read_decision"]


def read_decision(call: BaseToolCall, data: Any) -> RunNormally[Any] | Complete[Any] | Reject:
    """The decision about a held call.

    Args:
        call: The call as it is held.
        data: `{"decision": "run"}`, with an `input` for an edited one; `{"decision": "complete",
            "output": ...}`; `{"decision": "reject", "reason": "..."}`. To run a call that the
            provider makes itself is to approve it.

    Raises:
        HookError: it has another form, or the input is none of the tool; the message says why.
    """
    metadata = call.metadata
    reason = wrong_form(data)
    if reason is not None:
        raise HookError(
            f"the decision about call {metadata.id!r} of {metadata.name!r} {reason}: "
            f"{safe_repr(data)}; nothing was decided"
        )
    if data["decision"] == "reject":
        return Reject(data.get("reason", ""))
    if data["decision"] == "complete":
        return Complete(data["output"])
    if not isinstance(call, ApprovalRequest):
        return RunNormally(_read_input(call, data["input"])) if "input" in data else RunNormally()
    if "input" in data:
        raise HookError(
            f"the provider makes call {metadata.id!r} of {metadata.name!r} itself, with the "
            "arguments that the model wrote: approve it as it is, or reject it; nothing was decided"
        )
    return Complete(True)


def _read_input(call: BaseToolCall, data: Any) -> Any:
    try:
        return load_input(call.tool, data)
    except NotPortable as error:
        metadata = call.metadata
        raise HookError(
            f"the input for call {metadata.id!r} of {metadata.name!r} doesn't fit: {error}; "
            "nothing was decided"
        ) from error
