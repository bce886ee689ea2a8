"""The record of a plan: for each call what was asked, what will run, who let it pass, changed or refused it, and why.

Hooks look at every call and change few, so a hook that lets a call pass writes nothing down. What is kept of a run of hooks
is what it had in its hands anyway: the chains of hooks, and the inputs that it began with. Everything else is worked out
when somebody asks: the hooks that let a call pass are those of its tool's chain, and an input was edited if it differs from
what the model's arguments decode to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from lutumpy.core.safe_text import safe_repr
from lutumpy.hooks.pipeline import Chain, Decision, Source, snapshot
from lutumpy.rounds.commit import Entry
from lutumpy.tools.arguments import Decoded, decode_arguments
from lutumpy.tools.calls import BaseToolCall, RejectedToolCall, ToolCallIssue

__all__ = ["HookPass", "Standing", "as_data"]

Standing: TypeAlias = "BaseToolCall | Decision | ToolCallIssue"


class HookPass:
    """One run of hooks over the pending calls of a round or plan. It has no `__init__`, which each run would pay for.

    Attributes:
        source: Who decides: `hook` or `policy`.
        chains: The hooks by tool name.
        alone: The hooks of every tool, in place of `chains`.
        begun: The calls that hooks were given, each with a copy of its input before; `None` where that is as decoded.
        changed_by: By call id, the positions in the chain of hooks that changed the input, as far as they were seen.
    """

    __slots__ = ("alone", "begun", "chains", "changed_by", "source")

    source: Source
    chains: Mapping[str, Chain]
    alone: Chain | None
    begun: list[tuple[BaseToolCall, Any]]
    changed_by: dict[str, list[int]]

    def chain(self, tool: str) -> Chain | None:
        """The hooks of a tool; `None` where there are none."""
        return self.alone or self.chains.get(tool)


class _Asked(NamedTuple):
    """One hook that was asked about a call: its name, whether it is a policy, and what it did."""

    by: str
    source: str
    did: str


def as_data(entry: Entry, standing: Standing, passes: Sequence[HookPass]) -> dict[str, Any]:
    """One call of an answer as JSON values; see `ToolRoundPlan.decisions`."""
    metadata = entry.metadata
    data: dict[str, Any] = {
        "call_id": metadata.id,
        "tool": metadata.name,
        "arguments": metadata.arguments,
    }
    if isinstance(standing, ToolCallIssue) or isinstance(entry, ToolCallIssue):
        issue = standing if isinstance(standing, ToolCallIssue) else entry
        assert isinstance(issue, ToolCallIssue)
        return {**data, "decision": "issue", "reason": issue.reason, "detail": issue.detail}
    final = _input_of(standing)
    asked = _asked(entry, standing, final, passes)
    if isinstance(standing, Decision):
        rejected = isinstance(standing.decided, RejectedToolCall)
        data |= {"decision": "rejected" if rejected else "handled", "input": _json(final)}
        if isinstance(standing.decided, RejectedToolCall):
            data["reason"] = standing.decided.reason
        data |= {"source": standing.source, "by": standing.by}
    else:
        edited = _differs(final, *_decoded(entry))
        data |= {"decision": "edited" if edited else "pending", "input": _json(final)}
        # An edit that no hook made was made by the program.
        named = [hook for hook in asked if hook.did == "edited"] if edited else asked
        if named:
            data |= {
                "source": named[-1].source,
                "by": ", ".join(dict.fromkeys([hook.by for hook in named])),
            }
    if len(asked) > 1:
        data["hooks"] = [{"by": hook.by, "source": hook.source, "did": hook.did} for hook in asked]
    return data


def _input_of(standing: BaseToolCall | Decision) -> Any:
    if isinstance(standing, BaseToolCall):
        return standing.input
    decided = standing.decided
    return decided.call.input if isinstance(decided, RejectedToolCall) else decided.input


def _asked(
    entry: BaseToolCall, standing: Standing, final: Any, passes: Sequence[HookPass]
) -> list[_Asked]:
    """The hooks that were asked about a call, in order."""
    call_id, tool = entry.metadata.id, entry.metadata.name
    looked: list[tuple[HookPass, Chain, Any]] = []
    for one in passes:
        kept = next(
            (before for call, before in one.begun if call.metadata.id == call_id), _NOT_ASKED
        )
        chain = one.chain(tool)
        if kept is not _NOT_ASKED and chain is not None:
            looked.append((one, chain, kept))
    found: list[_Asked] = []
    for index, (one, chain, before) in enumerate(looked):
        last = index == len(looked) - 1
        labels = [step.label for step in chain.steps]
        did = ["passed"] * len(labels)
        changed: Iterable[int] = one.changed_by.get(call_id, ())
        if not changed:
            after = final if last else looked[index + 1][2]
            first, again = (
                _decoded(entry) if before is None else (before, partial(snapshot, before))
            )
            # Seen only now: it was the one hook, or a change deep inside a value, which any of them may have made.
            changed = range(len(labels)) if _differs(after, first, again) else ()
        for position in changed:
            did[position] = "edited"
        if last and isinstance(standing, Decision):
            rejected = isinstance(standing.decided, RejectedToolCall)
            did[standing.position] = "rejected" if rejected else "handled"
            del did[standing.position + 1 :]
        found += [_Asked(label, one.source, what) for label, what in zip(labels, did, strict=False)]
    return found


_NOT_ASKED: Any = object()


def _decoded(entry: BaseToolCall) -> tuple[Any, Callable[[], Any]]:
    """What the model's arguments decode to, and a way to decode them once more."""

    def decode() -> Any:
        decoded = decode_arguments(entry.tool, entry.metadata.arguments)
        return decoded.input if isinstance(decoded, Decoded) else entry.input

    return decode(), decode


def _differs(now: Any, before: Any, before_again: Callable[[], Any]) -> bool:
    """Whether an input is another one than it was before.

    Args:
        now: The input.
        before: What it was.
        before_again: Makes that once more, to learn which of its values can be compared: a default may be made anew each
            time (a time, a random id), and objects of some classes are equal to nothing but themselves.
    """
    if type(now) is not type(before):
        return True
    new, old = _fields(now), _fields(before)
    if new.keys() != old.keys():
        return True
    unequal = [name for name, value in new.items() if not _equal(value, old[name])]
    if not unequal:
        return False
    again = _fields(before_again())
    for name in unequal:
        if _equal(old[name], again.get(name)):
            return True
        shown = safe_repr(old[name])
        if shown == safe_repr(again.get(name)):
            if shown != safe_repr(new[name]):
                return True
        elif (name in now.model_fields_set) != (name in before.model_fields_set):
            return True
    return False


def _fields(value: Any) -> dict[str, Any]:
    return {**value.__dict__, **(value.__pydantic_extra__ or {})}


def _equal(one: Any, other: Any) -> bool:
    if one is other:
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # other people's `__eq__`
        return False


def _json(value: Any) -> Any:
    try:
        return value.model_dump(mode="json")
    except Exception:
        # Only a picture of the input: a user's serializer that fails must not take the audit with it.
        return safe_repr(value)
