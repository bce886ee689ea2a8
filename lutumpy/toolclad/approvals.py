"""Who may run what: the policy that asks for approvals, and the proof that they were given."""

# A manifest's `human_approval` must not depend on the loop that is written around it. So the policy
# notes what was approved, and the code of such a tool runs only what was noted: this call, with
# these values. A program that forgets the policy, or edits a call after it was approved, gets a
# failed result and no run.
#
#   call of                                   the policy says          the tool runs
#   ----------------------------------------  -----------------------  --------------------------
#   another tool                              goes on                  -
#   a manifest, neither of the two below      goes on                  yes
#   a manifest of a risk that is asked for    goes on if approved      yes
#   a manifest with `human_approval`          goes on if approved      once, if it was approved

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from lutumpy import Reject, RunNormally, ToolDecision, ToolMetadata
from lutumpy.hooks import BaseToolCall
from lutumpy.plain import json_values
from lutumpy.plain.safe_text import safe_repr
from lutumpy.toolclad.tables import RISK_TIERS

if TYPE_CHECKING:
    from lutumpy.toolclad.manifest import Manifest

__all__ = ["ApprovalPolicy", "Approvals", "Approve"]

Answer: TypeAlias = bool | Reject
Approve: TypeAlias = Callable[[BaseToolCall], Answer | Awaitable[Answer]]
"""Says whether a call may run: `True`, and nothing else, approves it. Plain or async."""

_NOT_APPROVED = "it was not approved"
_MOST_NOTED = 10_000


class Approvals:
    """What was approved and has not run yet; safe for several threads."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str, str], int] = {}
        self._lock = threading.Lock()

    def note(self, metadata: ToolMetadata, values: Mapping[str, Any]) -> None:
        """Note that a call with these values was approved."""
        key = _make_key(metadata, values)
        with self._lock:
            self._noted[key] = self._noted.pop(key, 0) + 1
            # Those that never ran: their rounds were discarded, or interrupted.
            while len(self._noted) > _MOST_NOTED:
                del self._noted[next(iter(self._noted))]

    def take(self, metadata: ToolMetadata, values: Mapping[str, Any]) -> bool:
        """Whether a call with these values was approved; each approval counts once."""
        key = _make_key(metadata, values)
        with self._lock:
            count = self._noted.pop(key, 0)
            if count > 1:
                self._noted[key] = count - 1
            return count > 0


def _make_key(metadata: ToolMetadata, values: Mapping[str, Any]) -> tuple[str, str, str]:
    written = json_values.canonical_arguments(json_values.encode_text(dict(values)))
    return metadata.id, metadata.name, written


class ApprovalPolicy:
    """A policy for `round.apply_hooks`; see `CladTools.policy`."""

    __slots__ = ("_approvals", "_approve", "_manifest_of", "_risks")

    def __init__(
        self,
        approve: Approve,
        risks: Collection[str],
        manifest_of: Callable[[BaseToolCall], Manifest | None],
        approvals: Approvals,
    ) -> None:
        if not callable(approve):
            raise TypeError(f"policy takes a function that approves calls, not {approve!r:.100}")
        unknown = [risk for risk in risks if risk not in RISK_TIERS]
        if isinstance(risks, str) or unknown:
            raise ValueError(f"risks are some of {', '.join(RISK_TIERS)}; not {risks!r:.100}")
        self._approve = approve
        self._risks = frozenset(risks)
        self._manifest_of = manifest_of
        self._approvals = approvals

    def __call__(
        self, call: BaseToolCall
    ) -> ToolDecision[Any, Any] | Awaitable[ToolDecision[Any, Any]]:
        manifest = self._manifest_of(call)
        if manifest is None:
            return RunNormally()
        if not manifest.human_approval and manifest.risk_tier not in self._risks:
            return RunNormally()
        # What is approved is what is there now: the person may take time, and the input may be
        # reached from elsewhere.
        values = manifest.clean(call.arguments)
        answer: Any = self._approve(call)
        if inspect.isawaitable(answer):
            return self._decide_later(call, values, answer)
        return self._decide(call, values, answer)

    async def _decide_later(
        self, call: BaseToolCall, values: Mapping[str, Any], answer: Awaitable[Answer]
    ) -> ToolDecision[Any, Any]:
        return self._decide(call, values, await answer)

    def _decide(
        self, call: BaseToolCall, values: Mapping[str, Any], answer: Any
    ) -> ToolDecision[Any, Any]:
        if isinstance(answer, Reject):
            return answer
        if answer is not True:
            return Reject(_NOT_APPROVED)
        self._approvals.note(call.metadata, values)
        return RunNormally()

    def __repr__(self) -> str:
        return f"<ApprovalPolicy by {safe_repr(self._approve)}>"
