"""What a person decided about a call, as JSON values, and as the decision that a plan takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy import ApprovalRequest, Complete, HookError, Reject, RunNormally
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
    word = data.get("decision") if isinstance(data, Mapping) else None
    if word == "reject":
        reason = data.get("reason", "")
        if isinstance(reason, str):
            return Reject(reason)
    elif word == "complete" and "output" in data:
        return Complete(data["output"])
    elif word == "run":
        if isinstance(call, ApprovalRequest):
            return Complete(True)
        return RunNormally(_read_input(call, data["input"])) if "input" in data else RunNormally()
    metadata = call.metadata
    raise HookError(
        f"the decision about call {metadata.id!r} of {metadata.name!r} is {safe_repr(data)}, not "
        "run, complete with an output, or reject with a reason; nothing was decided"
    )


def _read_input(call: BaseToolCall, data: Any) -> Any:
    try:
        return load_input(call.tool, data)
    except NotPortable as error:
        metadata = call.metadata
        raise HookError(
            f"the input for call {metadata.id!r} of {metadata.name!r} doesn't fit: {error}; "
            "nothing was decided"
        ) from error
