"""Results that come later, in a store: left by anybody, once, and taken with the round that writes
them (rules LR8 to LR13).
"""

# A delivery is a row of the inbox with the call's id in its own, so that the second one for a call
# changes nothing, whoever brings it and whenever. It is taken in the transaction that writes it:
#
#   the call of a row                        what becomes of it
#   ---------------------------------------  ------------------------------------------------------
#   is open in the conversation              a late item, in the commit that takes the row
#   is promised in the open round (`wait`)   its result in that round, whose commit takes the row
#   is of the open round, and may promise    kept until that round is committed
#   was given up (`until`), and unresolved   resolved: a notice tells the model what came of it
#   none of these                            taken with the next commit, and logged

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol

from lutumpy import CallTicket, OpenCall, PlanError, ToolResult, Toolset
from lutumpy.durable.store import SessionStore
from lutumpy.durable.types import Claim, InboxEntry
from lutumpy.errors import CommitError, CommitProblem
from lutumpy.execution import ExecutionResult, UnresolvedCall, call_of_ticket
from lutumpy.hooks import ToolHooks
from lutumpy.loops import take_content
from lutumpy.models import Promise, PromisedCall, late_items
from lutumpy.tools import Poller, fit_late_result, poller_of, written_text

if TYPE_CHECKING:
    from lutumpy import Session
    from lutumpy.models import Message

__all__ = [
    "UNKNOWN",
    "LateReader",
    "LateStore",
    "cancel_polled",
    "expired_result",
    "is_late",
    "keep_edit",
    "late_id",
    "late_value",
    "open_call_of",
    "poller_by_name",
    "result_of_delivery",
    "store_now",
    "untold_promise",
    "withdrawn_result",
]

logger: logging.Logger = logging.getLogger("lutumpy.durable")

_NOT_IN_TIME = "The result did not come in time, so the call was given up."
UNKNOWN = (
    "outcome is unknown: it may have taken effect. Do not simply repeat this call; find out first "
    "whether it did, or ask the user."
)
"""What the model is told of a call that nobody may simply run again."""

_MAYBE_NOT_STARTED = "it may not have been started"


class LateStore(Protocol):
    """What a store needs for tools whose results come later; the stores of this library have it."""

    async def deliver(self, scope: str, call_id: str, value: Mapping[str, Any]) -> bool:
        """Leave the late result of a call: one row, unique by the conversation and the call.

        The conversation is `open` then, unless it is stuck.

        Args:
            scope: The conversation's id.
            call_id: The id of the call.
            value: JSON values, with the `result` as `ToolResult.dump` gives it.

        Returns:
            `False` where a row for this call was there: that one stands.

        Raises:
            StoreError: `unknown_scope`.
        """
        ...

    async def resolve_late(self, scope: str, call_id: str, result: Mapping[str, Any]) -> None:
        """Say what became of a call whose outcome was not known: its result came after all.

        As `resolve` for a call that happened: the model is told with the user's next message, what
        the call gave or that it failed, and equal calls are refused until then. With a store
        that lacks this, such a call stays unresolved until a person says what became of it.

        Args:
            scope: The conversation's id.
            call_id: The id of the call.
            result: JSON values, as `ToolResult.dump` gives them; `ok`, or an error.

        Raises:
            StoreError: `decision`: no such call is unresolved.
        """
        ...


def late_id(call_id: str) -> str:
    """The id of the row that delivers the result of a call."""
    return f"late:{call_id}"


def is_late(entry: InboxEntry) -> bool:
    """Whether an entry is a late result that nobody has taken."""
    return entry.kind == "late" and not entry.taken


def late_value(
    call_id: str, tool: str, result: ToolResult, *, digest: str | None, by: str | None = None
) -> dict[str, Any]:
    """What a row holds."""
    value: dict[str, Any] = {"call_id": call_id, "tool": tool, "result": result.dump()}
    if digest is not None:
        value["tool_digest"] = digest
    if by is not None:
        value["by"] = by
    return value


def result_of_delivery(ticket: CallTicket, output: Any, tools: type[Toolset[Any]]) -> ToolResult:
    """The result that somebody delivers, checked as it arrives (rules LR2, LR21).

    Args:
        ticket: The call.
        output: The tool's output; an exception for one that failed; or a `ToolResult`.
        tools: The toolset.

    Raises:
        PlanError: `schema`: the tool is another one than that which was called.
        CommitError: `wrong_output`: the output doesn't fit.
    """
    try:
        call = call_of_ticket(ticket, tools)
    except (LookupError, ValueError) as error:
        raise PlanError("schema", f"{error}; nothing was delivered", [ticket.tool]) from error
    if isinstance(output, ToolResult):
        result = fit_late_result(output, call.selector.tool)
    else:
        result = call.fail(output) if isinstance(output, BaseException) else call.complete(output)
    misfit = result.output_error
    if result.status == "promised":
        misfit = "it is promised, and not a result"
    if misfit is not None or result.metadata.id != ticket.call_id:
        kind: Literal["wrong_output", "not_open"] = "wrong_output" if misfit else "not_open"
        what = misfit or f"it is of the call {result.metadata.id!r}"
        text = f"the late result of call {ticket.call_id!r} of {ticket.tool!r} doesn't fit: {what}"
        raise CommitError([CommitProblem(kind, ticket.call_id, ticket.tool, text)])
    return result


def open_call_of(ticket: CallTicket, result: ToolResult | None) -> OpenCall:
    """The open call of a round that isn't committed."""
    kind = "custom" if ticket.is_text else "function"
    promise = Promise() if result is None or result.promise is None else result.promise
    return OpenCall.of(PromisedCall(ticket.call_id, ticket.tool, ticket.arguments, kind, promise))


def keep_edit(ticket: CallTicket, result: ToolResult) -> ToolResult:
    """A result that is promised, with the text that tells equal calls where this one was edited.

    Once its round is committed, nothing else has that text.
    """
    promise = result.promise
    if promise is None or ticket.equal_to == written_text(ticket.metadata):
        return result
    return replace(result, promise=replace(promise, equal_to=ticket.equal_to))


def untold_promise(ticket: CallTicket) -> ExecutionResult:
    """The result of a late call that has a marker alone: it is open (rule LR8)."""
    promise = Promise(_MAYBE_NOT_STARTED, tool_digest=ticket.tool_digest)
    return ExecutionResult(
        ticket.metadata, "", "promised", promise=promise, outcome="promised", attempts=1
    )


def store_now(claim: Claim) -> datetime:
    """The moment when the conversation was claimed, by the clock of its store."""
    return claim.until - timedelta(seconds=claim.lease)


def expired_result(call: PromisedCall, effect: str) -> ExecutionResult:
    """The result of a call that was given up (rule LR12)."""
    once = effect == "once"
    text = f"{_NOT_IN_TIME} Its {UNKNOWN}" if once else _NOT_IN_TIME
    outcome: Literal["maybe_executed", "timed_out"] = "maybe_executed" if once else "timed_out"
    return ExecutionResult(call.metadata, text, "error", outcome=outcome)


async def withdrawn_result(
    store: SessionStore, scope: str, call_id: str, reason: str
) -> ToolResult:
    """The late result of a call that is given up (rule LR15).

    Raises:
        StoreError: the store has no such conversation.
    """
    session = await store.session(scope)
    names = [call.tool for call in session.open_calls if call.call_id == call_id]
    # A call of the open round isn't in the conversation yet.
    name = names[0] if names else ""
    call = PromisedCall(call_id, name, "{}", "function", Promise())
    return OpenCall.of(call).reject(reason)


def poller_by_name(toolset: Any, name: str) -> Poller | None:
    """What polls the calls of a tool; `None` where nothing does, or the tool is gone."""
    selector = toolset.try_selector(name)
    return None if selector is None else poller_of(selector.tool)


async def cancel_polled(poller: Poller | None, call: PromisedCall, result: ToolResult) -> None:
    """Tell a server that nobody waits for a call that was withdrawn (rule LR34)."""
    if poller is not None and result.status == "rejected":
        await poller.cancel(call.promise.handle)


class LateReader:
    """Makes late items of rows, for a loop.

    Args:
        tools: The toolset.
        drift: What becomes of a call whose tool is another one now.
        review: The hooks on results, which see the late result.
    """

    def __init__(
        self, tools: Any, drift: Literal["refuse", "reject"], review: ToolHooks[Any] | None
    ) -> None:
        self._toolset: type[Toolset[Any]] = tools.__view__().toolset
        self._drift: Literal["refuse", "reject"] = drift
        self._review = review

    def effect_of(self, name: str) -> str:
        """The effect of a tool; `once` where it isn't known any more."""
        selector = self._toolset.try_selector(name)
        return "once" if selector is None else selector.definition.options.effect

    def unresolved(self, scope: str, call: PromisedCall) -> UnresolvedCall:
        """An open call as an unresolved one: nobody knows whether it took effect."""
        equal_to = call.promise.equal_to or written_text(call.metadata)
        return UnresolvedCall.of(scope, call.metadata, equal_to)

    async def outcome(self, call: UnresolvedCall, entry: InboxEntry) -> ToolResult | None:
        """What became of a call that was given up, as its late result says and hooks let the model
        see it.

        `None` where the result doesn't say that: a call that was withdrawn, or whose outcome isn't
        known, may have taken effect all the same.
        """
        result = ToolResult.load(_mapping(entry.value["result"]), call)
        if result.status == "rejected" or getattr(result, "outcome", "") == "maybe_executed":
            return None
        return await self._reviewed(result)

    async def items(
        self, session: Session, entries: Sequence[InboxEntry], expired: Iterable[PromisedCall]
    ) -> tuple[list[Message], list[tuple[ToolResult, str]]]:
        """The late items of rows, and of calls that were given up; and each result with why.

        Raises:
            PlanError: `schema`: a tool is another one now, and `drift` refuses that.
        """
        by_id = {call.call_id: call for call in session.transcript.open_calls}
        results: list[ToolResult] = []
        reasons: list[Literal["delivered", "expired"]] = []
        for entry in entries:
            call = by_id[str(entry.value["call_id"])]
            result = await self._reviewed(ToolResult.load(_mapping(entry.value["result"]), call))
            await cancel_polled(poller_by_name(self._toolset, call.name), call, result)
            results.append(result)
            reasons.append("delivered")
        for call in expired:
            results.append(expired_result(call, self.effect_of(call.name)))
            reasons.append("expired")
        try:
            items = late_items(session.transcript, results, self._toolset, self._drift, reasons)
        except CommitError as error:
            tools = [problem.tool for problem in error.problems]
            raise PlanError("schema", f"{error}; nothing was written", tools) from error
        explained: list[tuple[ToolResult, str]] = [*zip(results, reasons, strict=True)]
        return items, explained

    async def _reviewed(self, result: ToolResult) -> ToolResult:
        if self._review is None or result.status == "rejected":
            return result
        if self._toolset.try_selector(result.metadata.name) is None:
            return result
        (after,) = await self._review.review([result])
        return take_content(result, after)


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("a late result of the inbox isn't one")
    return value
