"""What people decide about the calls that hooks hold for them, and what is known of earlier
decisions.

A decision of a person is applied as a hook's is, by the same rules (H3).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

from lutumpy.errors import HookError
from lutumpy.hooks.approvals import decide_approval
from lutumpy.hooks.calling import drive_sync
from lutumpy.hooks.decisions import Complete, Reject, RunNormally
from lutumpy.hooks.logs import INFO, logger
from lutumpy.hooks.pipeline import CallState, Decision, Held, HookStep, decide
from lutumpy.plain.safe_text import safe_repr
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.calls import BaseToolCall

__all__ = ["AskedHook", "LoadedRun", "PersonRun", "decide_held"]


class AskedHook(NamedTuple):
    """One hook or person that was asked about a call.

    Attributes:
        by: Its name.
        source: Whether it is a `hook`, a `policy` or a `person`.
        did: `passed`, `edited`, `held`, `handled`, `rejected`, or `approved` for a request for
            approval.
    """

    by: str
    source: str
    did: str


class LoadedRun(NamedTuple):
    """What a dump of a plan says of the hooks that were asked before it was written.

    Attributes:
        asked: By call id, those that were asked, in order.
        edited: The ids of the calls whose input is not what the model asked for.
    """

    asked: Mapping[str, Sequence[AskedHook]]
    edited: frozenset[str]


class PersonRun(NamedTuple):
    """One round of decisions by a person.

    Attributes:
        by: Who decided.
        held: The calls as they were held, by id.
    """

    by: str
    held: Mapping[str, Held]


def decide_held(
    states: Sequence[CallState], decisions: Mapping[str, Any], by: str
) -> tuple[list[CallState], PersonRun]:
    """The states of calls after a person's decisions, and the record of them.

    Args:
        states: Every call of the answer.
        decisions: By call id.
        by: Who decided.

    Raises:
        HookError: an id is unknown, its call isn't held, or a decision doesn't fit; nothing was
            decided.
    """
    if not isinstance(decisions, Mapping) or not isinstance(by, str) or not by:
        raise HookError(
            "decide takes decisions by call id, and the name of who decided; nothing was decided, "
            "the plan is still open"
        )
    held = {state.call.metadata.id: state for state in states if isinstance(state, Held)}
    known = {_call_id_of(state): state for state in states}
    for call_id, decision in decisions.items():
        if call_id not in held:
            what = "isn't held" if call_id in known else "is not a call of this plan"
            raise HookError(
                f"{call_id!r} {what}; held are {', '.join(map(repr, held)) or 'none'}; "
                "nothing was decided, the plan is still open"
            )
        if not isinstance(decision, (RunNormally, Complete, Reject)):
            raise HookError(
                f"{by} gave {safe_repr(decision)} for call {call_id!r}, not RunNormally, Complete "
                "or Reject; nothing was decided, the plan is still open"
            )
    decided: list[CallState] = []
    for state in states:
        if isinstance(state, Held) and state.call.metadata.id in decisions:
            decided.append(_decide_one(state.call, decisions[state.call.metadata.id], by))
        else:
            decided.append(state)
    return decided, PersonRun(by, {call_id: held[call_id] for call_id in decisions})


def _call_id_of(state: CallState) -> str:
    if isinstance(state, Held):
        return state.call.metadata.id
    return (state.decided if isinstance(state, Decision) else state).metadata.id


def _decide_one(call: BaseToolCall, decision: Any, by: str) -> CallState:
    log = logger().isEnabledFor(INFO)
    step = HookStep(lambda *_: decision, by, False, "person")
    steps: Generator[Any, Any, Any]
    if isinstance(call, ApprovalRequest):
        steps = decide_approval(call, (step,), "person", log=log)
    else:
        value = call.input  # nobody is shown it: the decision is there already
        steps = decide(call, (step,), "person", value, log=log, first_decision=decision)
    state: CallState = drive_sync(steps)
    return state
