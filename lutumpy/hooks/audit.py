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
from typing import Any, NamedTuple, TypeAlias

from lutumpy.core.items import ToolMetadata
from lutumpy.hooks.input_copies import copy_input
from lutumpy.hooks.people import AskedHook, LoadedRun, PersonRun
from lutumpy.hooks.pipeline import CallOrIssue, CallState, Decision, Held
from lutumpy.hooks.run import HookRun
from lutumpy.plain.safe_text import safe_repr
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.arguments import Decoded, decode_call_again
from lutumpy.tools.calls import BaseToolCall, RejectedToolCall, ToolCallIssue

__all__ = ["Run", "describe_call", "is_edited"]

Run: TypeAlias = "HookRun | LoadedRun | PersonRun"
"""What brought the states of calls about, step by step."""


def describe_call(entry: CallOrIssue, state: CallState, runs: Sequence[Run]) -> dict[str, Any]:
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
    looks = _list_looks(entry, runs)
    asked = _list_asked_hooks(entry, state, final, runs, looks)
    if isinstance(state, (Decision, Held)):
        data |= {"decision": _decision_word(state), "input": _to_json(final)}
        if isinstance(state, Held):
            data["reason"] = state.reason
        elif isinstance(state.decided, RejectedToolCall):
            data["reason"] = state.decided.reason
        data |= {"source": state.source, "by": state.by}
    else:
        edited = _is_edited(entry, final, runs, looks)
        data |= {"decision": "edited" if edited else "pending", "input": _to_json(final)}
        # Where an input was edited and no hook did it, the program did.
        # Who held it has not let it pass.
        wanted = ("edited",) if edited else ("passed", "edited")
        named = [hook for hook in asked if hook.did in wanted]
        if named:
            names = dict.fromkeys([hook.by for hook in named])
            data |= {"source": named[-1].source, "by": ", ".join(names)}
    return data | _list_several(asked)


def is_edited(
    entry: BaseToolCall, state: BaseToolCall | Held | Decision, runs: Sequence[Run]
) -> bool:
    """Whether the input of a call is not what the model asked for."""
    return _is_edited(entry, _current_input(state), runs, _list_looks(entry, runs))


def _list_several(asked: Sequence[AskedHook]) -> dict[str, Any]:
    """The key `hooks` of a call, where more than one was asked."""
    if len(asked) < 2:
        return {}
    return {"hooks": [{"by": hook.by, "source": hook.source, "did": hook.did} for hook in asked]}


def _describe_approval(
    call_id: str, state: BaseToolCall | Held | Decision, runs: Sequence[Run]
) -> dict[str, Any]:
    """What became of a request for approval, and who was asked about it."""
    asked: list[AskedHook] = []
    # Where those of the last run begin, among whom the one that decided has its place. What a dump
    # tells ends with that one.
    of_last_run: int | None = None
    for run in runs:
        if isinstance(run, LoadedRun):
            asked += run.asked.get(call_id, ())
        elif isinstance(run, PersonRun):
            if (held := run.held.get(call_id)) is not None:
                if of_last_run is not None:
                    _cut_at(asked, of_last_run, held)
                of_last_run = len(asked)
                asked.append(AskedHook(run.by, "person", "passed"))
        elif call_id in run.asked and run.approvals is not None:
            of_last_run = len(asked)
            asked += [AskedHook(step.label, run.source, "passed") for step in run.approvals.steps]
    data: dict[str, Any] = {"decision": "pending"}
    if isinstance(state, (Decision, Held)):
        if of_last_run is not None:
            _cut_at(asked, of_last_run, state)
        data = {"decision": _approval_word(state), "source": state.source, "by": state.by}
        if isinstance(state, Held):
            data["reason"] = state.reason
        elif isinstance(state.decided, RejectedToolCall):
            data["reason"] = state.decided.reason
    elif asked:
        names = dict.fromkeys([hook.by for hook in asked if hook.did != "held"])
        data |= {"source": asked[-1].source, "by": ", ".join(names)}
    return data | _list_several(asked)


def _cut_at(asked: list[AskedHook], of_last_run: int, state: Held | Decision) -> None:
    """Take out the hooks that weren't asked: the last run ended with the one that decided."""
    del asked[of_last_run + state.position :]
    asked.append(AskedHook(state.by, state.source, _approval_word(state)))


def _approval_word(state: Held | Decision) -> str:
    if isinstance(state, Held):
        return "held"
    return "rejected" if isinstance(state.decided, RejectedToolCall) else "approved"


def _is_edited(
    entry: BaseToolCall, final: Any, runs: Sequence[Run], looks: Sequence[_Look]
) -> bool:
    """Whether an input is not what the model asked for."""
    if not (runs and isinstance(runs[0], LoadedRun)):
        return _differs(final, *_decode_again(entry))
    # What the arguments decode to isn't asked again: a default may be made anew each time (P12).
    if entry.metadata.id in runs[0].edited:
        return True
    before = looks[0].before if looks else entry.input
    return _differs(final, before, partial(copy_input, before))


def _current_input(state: BaseToolCall | Held | Decision) -> Any:
    if isinstance(state, Held):
        return state.call.input
    if isinstance(state, BaseToolCall):
        return state.input
    decided = state.decided
    return decided.call.input if isinstance(decided, RejectedToolCall) else decided.input


def _decision_word(state: Held | Decision) -> str:
    if isinstance(state, Held):
        return "held"
    return "rejected" if isinstance(state.decided, RejectedToolCall) else "handled"


class _Look(NamedTuple):
    """One run of hooks, or one person, that saw a call.

    Attributes:
        run: The run.
        before: The input before; `None` where it was as decoded.
    """

    run: HookRun | PersonRun
    before: Any


def _list_looks(entry: BaseToolCall, runs: Sequence[Run]) -> list[_Look]:
    """The runs that saw a call, in order."""
    call_id = entry.metadata.id
    looks: list[_Look] = []
    for run in runs:
        if isinstance(run, PersonRun):
            if call_id in run.held:
                looks.append(_Look(run, run.held[call_id].call.input))
        elif isinstance(run, HookRun) and call_id in run.begun:
            looks.append(_Look(run, run.begun[call_id]))
    return looks


def _list_asked_hooks(
    entry: BaseToolCall,
    state: BaseToolCall | Held | Decision,
    final: Any,
    runs: Sequence[Run],
    looks: Sequence[_Look],
) -> list[AskedHook]:
    """The hooks and persons that were asked about a call, in order.

    Args:
        entry: The call as it was read.
        state: Its state now.
        final: Its input now.
        runs: The runs of hooks so far.
        looks: Those that saw the call.
    """
    call_id = entry.metadata.id
    found: list[AskedHook] = []
    if runs and isinstance(runs[0], LoadedRun):
        found += runs[0].asked.get(call_id, ())
    for index, (run, before) in enumerate(looks):
        following = looks[index + 1] if index + 1 < len(looks) else None
        after = final if following is None else following.before
        if before is None:
            first, make_again = _decode_again(entry)
        else:
            first, make_again = before, partial(copy_input, before)
        end: CallState | None = state if following is None else None
        if following is not None and isinstance(following.run, PersonRun):
            end = following.run.held[call_id]
        changed = partial(_differs, after, first, make_again)
        if isinstance(run, PersonRun):
            found.append(AskedHook(run.by, "person", _word_of_person(end, changed)))
        else:
            found += _list_hooks_of_run(run, entry.metadata, end, changed)
    return found


def _word_of_person(end: CallState | None, changed: Callable[[], bool]) -> str:
    if isinstance(end, Decision):
        return _decision_word(end)
    return "edited" if changed() else "passed"


def _list_hooks_of_run(
    run: HookRun, metadata: ToolMetadata, end: CallState | None, changed: Callable[[], bool]
) -> list[AskedHook]:
    """The hooks of one run that were asked about a call.

    Args:
        run: The run.
        metadata: The call.
        end: How the run ended for the call: a decision, or that it was held.
        changed: Says whether its input is another one since.
    """
    chain = run.chain_for(metadata.name)
    labels = [step.label for step in chain.steps] if chain is not None else []
    did = ["passed"] * len(labels)
    seen: Iterable[int] = run.changed_by.get(metadata.id, ())
    if not seen:
        # A difference that shows only now is the work of the one hook there was; or it is deep
        # inside a value, and may be the work of any of them.
        seen = range(len(labels)) if changed() else ()
    for position in seen:
        did[position] = "edited"
    if isinstance(end, (Decision, Held)):
        did[end.position] = _decision_word(end)
        del did[end.position + 1 :]
    # Later hooks weren't asked.
    return [AskedHook(label, run.source, what) for label, what in zip(labels, did, strict=False)]


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
