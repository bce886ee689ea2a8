"""One run of hooks over the calls of an answer, and the record of it."""

# It doesn't know rounds: it takes the states of calls, and returns their states after the hooks.
# `rounds/round.py` makes a plan of these.
#
#   made --decide_calls()--> asking hooks, call by call --> the new states: the run is a record now
#                                  |
#                                  +--> an error: nothing has happened to the calls of the round
#
# Hooks see copies of the inputs (`hooks/input_copies.py`), so no edit has to be taken back.
#
# What is hard is the price. Hooks look at every call and change few, and a hook that lets a call
# pass may cost two entered functions at most (its decision, and the generator that goes on;
# `tests/rounds/test_round_cost.py`). So there is one generator for all calls, not one for each, and
# the common answer of a hook, "go on as it is", is recognised right here, without entering
# `decide`.

from __future__ import annotations

import inspect
from collections.abc import Generator, Mapping, Sequence
from types import CoroutineType
from typing import Any, TypeAlias, Union

from lutumpy.errors import HookError
from lutumpy.hooks.approvals import decide_approval
from lutumpy.hooks.calling import hook_failure
from lutumpy.hooks.changes import InputWatch
from lutumpy.hooks.decisions import UNCHANGED, Policy, RunNormally
from lutumpy.hooks.implementations import label
from lutumpy.hooks.input_copies import copy_inputs, replace_changed
from lutumpy.hooks.logs import INFO, logger
from lutumpy.hooks.pipeline import (
    NOT_ASKED,
    UNDECIDED,
    CallOrIssue,
    CallState,
    Chain,
    HookStep,
    Source,
    chain_of,
    decide,
    name_hook_and_call,
    refuse_async,
)
from lutumpy.hooks.tool_hooks import ToolHooks, approval_chain, chains_for
from lutumpy.plain.driving import is_async
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.calls import BaseToolCall

__all__ = ["Decider", "HookRun"]

Decider: TypeAlias = Union[ToolHooks[Any], Policy[Any]]


class HookRun:
    """One run of hooks over pending calls.

    Args:
        hooks: A registry, or a policy: a plain callable that decides every call.
        calls: All calls of the answer, also those that are decided already.
        as_decoded: Whether the inputs are those of a round. Those of a plan have the edits of
            earlier hooks.
        sync: Whether nothing can be awaited, so that async hooks are refused.

    Attributes:
        source: Who decides: `hook` or `policy`.
        chains: The hooks by tool name; tools without hooks are left out.
        policy: The chain that decides calls of every tool, in place of `chains`.
        approvals: The chain that decides requests for approval; `None` where nobody does.
        asked: The ids of the requests for approval that this run was asked about.
        begun: By call id, the inputs that hooks have seen, as they were before; `None` where that
            was as decoded.
        changed_by: By call id, the positions in the chain of the hooks that were seen to change the
            input.

    Raises:
        HookError: `hooks` can't decide about these calls; nothing was decided.
    """

    __slots__ = (
        "_as_decoded",
        "_sync",
        "approvals",
        "asked",
        "begun",
        "chains",
        "changed_by",
        "policy",
        "source",
    )

    def __init__(
        self, hooks: Decider, calls: Sequence[CallOrIssue], *, as_decoded: bool, sync: bool
    ) -> None:
        self.source: Source
        self.chains: Mapping[str, Chain]
        self.policy: Chain | None
        self.approvals: Chain | None = None
        if isinstance(hooks, ToolHooks):
            self.source, self.chains, self.policy = "hook", chains_for(hooks, calls), None
            for call in calls:
                if type(call) is ApprovalRequest:
                    self.approvals = approval_chain(hooks)
                    break
        elif callable(hooks):
            step = HookStep(hooks, label(hooks), is_async(hooks), "call_only")
            self.source, self.chains, self.policy = "policy", {}, chain_of([step])
            self.approvals = self.policy
        else:
            raise HookError(
                f"apply_hooks takes a registry or a callable, not {type(hooks).__name__}; "
                "the round is still open"
            )
        self._as_decoded = as_decoded
        self._sync = sync
        self.asked: list[str] = []
        self.begun: dict[str, Any] = {}
        self.changed_by: dict[str, list[int]] = {}

    def chain_for(self, tool: str) -> Chain | None:
        """The hooks of a tool; `None` where there are none."""
        return self.policy or self.chains.get(tool)

    def decide_calls(self, states: Sequence[CallState]) -> Generator[Any, Any, list[CallState]]:
        """Decide every pending call in order; yields what has to be awaited.

        Args:
            states: Every call of the answer: pending, decided, or an issue. They stay as they are.

        Returns:
            The states after the hooks. A call whose hooks all let it pass is the same object.

        Raises:
            HookError: a hook raised, or decided something that doesn't fit.
        """
        policy, chains, as_decoded = self.policy, self.chains, self._as_decoded
        log = logger().isEnabledFor(INFO)
        if self._sync:
            self._refuse_async_hooks(states)
        decided = list(states)
        hooked = chains if policy is None else None
        copies = copy_inputs(states, hooked, as_decoded=as_decoded)
        for index, call in enumerate(decided):
            if not isinstance(call, BaseToolCall):
                continue
            if type(call) is ApprovalRequest:
                if self.approvals is not None:
                    self.asked.append(call.metadata.id)
                    steps = self.approvals.steps
                    decided[index] = yield from decide_approval(call, steps, self.source, log=log)
                continue
            metadata = call.metadata
            call_id, name, _ = metadata
            # As in `chain_for`, without entering it for each call.
            chain = policy or chains.get(name)
            if chain is None:
                continue
            value = copies[index]
            self.begun[call_id] = None if as_decoded else call.input
            # A single hook isn't watched: what it changed can be found out later (hooks/audit.py).
            watch = InputWatch(value) if len(chain.steps) > 1 else None
            passed_count, first_decision = 0, NOT_ASKED
            # The quick path is `decide` for one case: a hook that takes the input and passes the
            # call on as it is. Both go on to the next hook then, and nothing else happens.
            #
            #   the hook gives                     here                 in `decide`
            #   ---------------------------------  -------------------  -----------------------
            #   RunNormally() or the same input    look, next hook      look, (log,) next hook
            #   anything else                      left to `decide`     judged there
            #   a hook that takes the call         left to `decide`     called there
            #   the tool has a JSON Schema         left to `decide`     its input is checked again
            #   decisions are logged               left to `decide`     logged there
            #
            # `decide` continues where this stopped: with the decision at hand, if there is one.
            quick = () if log or call.selector.tool.is_dynamic else chain.input_functions
            try:
                for function in quick:
                    decision = function(metadata, value)
                    kind: type[Any] = type(decision)
                    if kind is CoroutineType or (
                        kind is not RunNormally and inspect.isawaitable(decision)
                    ):
                        decision = yield decision
                    if type(decision) is not RunNormally or (
                        decision.input is not value and decision.input is not UNCHANGED
                    ):
                        first_decision = decision
                        break
                    if watch is not None:
                        watch.look(value, passed_count)
                    passed_count += 1
            except Exception as error:
                place = name_hook_and_call(chain.steps[passed_count], metadata)
                raise hook_failure(place, error, UNDECIDED) from error
            if passed_count < len(chain.steps):
                decided[index] = yield from decide(
                    call,
                    chain.steps,
                    self.source,
                    value,
                    log=log,
                    start=passed_count,
                    first_decision=first_decision,
                    watch=watch,
                )
            if watch is not None and watch.changed_by:
                self.changed_by[call_id] = watch.changed_by
        replace_changed(states, decided, copies)
        return decided

    def _refuse_async_hooks(self, states: Sequence[CallState]) -> None:
        """Before any hook runs: an async one in the middle would leave a run half done."""
        for call in states:
            if isinstance(call, BaseToolCall):
                is_approval = isinstance(call, ApprovalRequest)
                chain = self.approvals if is_approval else self.chain_for(call.metadata.name)
                if chain is not None:
                    refuse_async(chain.steps, call.metadata)
