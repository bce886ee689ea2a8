"""The record of hooks: for each call what was asked, what will run, who decided that, and why."""

# Hooks look at every call and change few, so a hook that lets a call pass writes nothing down. A
# `HookRun` keeps what it had at hand anyway: the chains of hooks, and the inputs that it began
# with. Everything else is worked out here when somebody asks:
#
# - The hooks that let a call pass are those of its tool's chain.
# - An input was edited if it differs from what the model's arguments decode to. To learn which
#   values can be compared at all, the arguments are decoded twice (`_differs`).
# - Which of several hooks edited it is what `InputWatch` saw; a change that it can't see, deep
#   inside a value, is put down to every hook that may have made it.

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from lutumpy.hooks.pipeline import CallOrIssue, CallState, Chain, Decision, copy_input
from lutumpy.hooks.run import HookRun
from lutumpy.plain.safe_text import safe_repr
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.arguments import Decoded, decode_call_again
from lutumpy.tools.calls import BaseToolCall, RejectedToolCall, ToolCallIssue

__all__ = ["describe_call"]

_NOT_BEGUN: Any = object()


class _AskedHook(NamedTuple):
    """One hook that was asked about a call.

    Attributes:
        by: Its name.
        source: Whether it is a `hook` or a `policy`.
        did: `passed`, `edited`, `handled` or `rejected`.
    """

    by: str
    source: str
    did: str


def describe_call(entry: CallOrIssue, state: CallState, runs: Sequence[HookRun]) -> dict[str, Any]:
    """One call of an answer as JSON values; see `ToolRoundPlan.decisions`.

    Args:
        entry: The call as it was read.
        state: Its state now.
        runs: The runs of hooks so far, oldest first.
    """
    metadata = entry.metadata
    data: dict[str, Any] = {
        "call_id": metadata.id,
        "tool": metadata.name,
        "arguments": metadata.arguments,
    }
    if isinstance(state, ToolCallIssue) or isinstance(entry, ToolCallIssue):
        issue = state if isinstance(state, ToolCallIssue) else entry
        assert isinstance(issue, ToolCallIssue)
        return {**data, "decision": "issue", "reason": issue.reason, "detail": issue.detail}
    if isinstance(entry, ApprovalRequest):
        data["server_label"] = entry.server_label
        return data | _describe_approval(metadata.id, state, runs)
    final = _current_input(state)
    asked = _list_asked_hooks(entry, state, final, runs)
    if isinstance(state, Decision):
        data |= {"decision": _decision_word(state), "input": _to_json(final)}
        if isinstance(state.decided, RejectedToolCall):
            data["reason"] = state.decided.reason
        data |= {"source": state.source, "by": state.by}
    else:
        edited = _differs(final, *_decode_again(entry))
        data |= {"decision": "edited" if edited else "pending", "input": _to_json(final)}
        # Where an input was edited and no hook did it, the program did.
        named = [hook for hook in asked if hook.did == "edited"] if edited else asked
        if named:
            names = dict.fromkeys([hook.by for hook in named])
            data |= {"source": named[-1].source, "by": ", ".join(names)}
    if len(asked) > 1:
        data["hooks"] = [{"by": hook.by, "source": hook.source, "did": hook.did} for hook in asked]
    return data


def _describe_approval(
    call_id: str, state: BaseToolCall | Decision, runs: Sequence[HookRun]
) -> dict[str, Any]:
    """What became of a request for approval, and who was asked about it."""
    asked: list[_AskedHook] = []
    of_last_run = 0
    for run in runs:
        if call_id in run.asked and run.approvals is not None:
            of_last_run = len(asked)
            asked += [_AskedHook(step.label, run.source, "passed") for step in run.approvals.steps]
    data: dict[str, Any] = {"decision": "pending"}
    if isinstance(state, Decision):
        word = "rejected" if isinstance(state.decided, RejectedToolCall) else "approved"
        # The last run that was asked has decided; its hooks after that one were not asked.
        del asked[of_last_run + state.position :]
        asked.append(_AskedHook(state.by, state.source, word))
        data = {"decision": word, "source": state.source, "by": state.by}
        if isinstance(state.decided, RejectedToolCall):
            data["reason"] = state.decided.reason
    elif asked:
        names = dict.fromkeys([hook.by for hook in asked])
        data |= {"source": asked[-1].source, "by": ", ".join(names)}
    if len(asked) > 1:
        data["hooks"] = [{"by": hook.by, "source": hook.source, "did": hook.did} for hook in asked]
    return data


def _current_input(state: BaseToolCall | Decision) -> Any:
    if isinstance(state, BaseToolCall):
        return state.input
    decided = state.decided
    return decided.call.input if isinstance(decided, RejectedToolCall) else decided.input


def _decision_word(decision: Decision) -> str:
    return "rejected" if isinstance(decision.decided, RejectedToolCall) else "handled"


def _list_asked_hooks(
    entry: BaseToolCall, state: CallState, final: Any, runs: Sequence[HookRun]
) -> list[_AskedHook]:
    """The hooks that were asked about a call, in order.

    Args:
        entry: The call as it was read.
        state: Its state now.
        final: Its input now.
        runs: The runs of hooks so far.
    """
    call_id, tool = entry.metadata.id, entry.metadata.name
    looks: list[tuple[HookRun, Chain, Any]] = []
    for run in runs:
        inputs = (before for call, before in run.begun if call.metadata.id == call_id)
        before = next(inputs, _NOT_BEGUN)
        chain = run.chain_for(tool)
        if before is not _NOT_BEGUN and chain is not None:
            looks.append((run, chain, before))
    found: list[_AskedHook] = []
    for index, (run, chain, before) in enumerate(looks):
        last = index == len(looks) - 1
        labels = [step.label for step in chain.steps]
        did = ["passed"] * len(labels)
        changed: Iterable[int] = run.changed_by.get(call_id, ())
        if not changed:
            after = final if last else looks[index + 1][2]
            if before is None:
                first, make_again = _decode_again(entry)
            else:
                first, make_again = before, partial(copy_input, before)
            # A difference that shows only now is the work of the one hook there was; or it is deep
            # inside a value, and may be the work of any of them.
            changed = range(len(labels)) if _differs(after, first, make_again) else ()
        for position in changed:
            did[position] = "edited"
        if last and isinstance(state, Decision):
            did[state.position] = _decision_word(state)
            del did[state.position + 1 :]
        found += [
            _AskedHook(label, run.source, what)
            for label, what in zip(labels, did, strict=False)  # later hooks weren't asked
        ]
    return found


def _decode_again(entry: BaseToolCall) -> tuple[Any, Callable[[], Any]]:
    """What the model's arguments decode to, and a way to decode them once more."""

    def decode() -> Any:
        decoded = decode_call_again(entry.tool, entry.metadata)
        return decoded.input if isinstance(decoded, Decoded) else entry.input

    return decode(), decode


def _differs(now: Any, before: Any, make_before: Callable[[], Any]) -> bool:
    """Whether an input is not what it was before.

    Args:
        now: The input.
        before: What it was.
        make_before: Makes `before` once more, to learn which of its values can be compared: a
            default may be made anew each time (a time, a random id), and objects of some classes
            are equal to nothing but themselves.
    """
    if type(now) is not type(before):
        return True
    new, old = _fields_of(now), _fields_of(before)
    if new.keys() != old.keys():
        return True
    unequal = [name for name, value in new.items() if not _are_equal(value, old[name])]
    if not unequal:
        return False
    again = _fields_of(make_before())
    for name in unequal:
        if _are_equal(old[name], again.get(name)):
            return True
        # The field can't be compared by `==`. Its text may tell, where that is the same each time.
        text = safe_repr(old[name])
        if text == safe_repr(again.get(name)):
            if text != safe_repr(new[name]):
                return True
        elif (name in now.model_fields_set) != (name in before.model_fields_set):
            return True
    return False


def _fields_of(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"input": value}
    return {**value.__dict__, **(value.__pydantic_extra__ or {})}


def _are_equal(one: Any, other: Any) -> bool:
    if one is other:
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # somebody else's `__eq__`
        return False


def _to_json(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    try:
        return value.model_dump(mode="json")
    except Exception:
        # Only a picture of the input: a user's serializer that fails must not take the audit along.
        return safe_repr(value)
