"""Late results: each open call gets one, all of a delivery or none (rules LR2, LR3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from lutumpy.core.items import Message
from lutumpy.core.promises import LateReason, PromisedCall, late_message
from lutumpy.core.transcript import Transcript
from lutumpy.errors import CommitError, CommitProblem
from lutumpy.plain import json_values
from lutumpy.rounds.commit import content_misfit
from lutumpy.tools.promised import fit_late_result
from lutumpy.tools.results import ToolResult, result_block

if TYPE_CHECKING:
    from lutumpy.tools.selectors import BaseToolset

__all__ = ["deliver", "late_items"]

# What is known of a result                     what becomes of it
# --------------------------------------------  ------------------------------------------------
# its call is open                              written, if it fits
# its call was open, and has its late result    nothing: `duplicate_result`
# its call was open, and wasn't in time         nothing: `not_open`
# there is no such call, or it wasn't open      nothing: `not_open`
# it is one of several for its call             nothing: `duplicate_result`


def deliver(
    transcript: Transcript,
    results: Iterable[ToolResult],
    tools: type[BaseToolset] | None = None,
    drift: Literal["refuse", "reject"] = "refuse",
) -> None:
    """Write late results; see `Session.deliver`."""
    transcript.append_late(late_items(transcript, results, tools, drift))


def late_items(
    transcript: Transcript,
    results: Iterable[ToolResult],
    tools: type[BaseToolset] | None = None,
    drift: Literal["refuse", "reject"] = "refuse",
    reasons: Iterable[LateReason] | None = None,
) -> list[Message]:
    """The late items of results, in the order of the open calls; nothing is written.

    Raises:
        CommitError: see `Session.deliver`.
        TypeError: something is no `ToolResult`.
        ValueError: `drift` is neither of the two.
    """
    if drift not in ("refuse", "reject"):
        raise ValueError(f"drift is 'refuse' or 'reject', not {drift!r}")
    if not hasattr(results, "__iter__"):
        raise TypeError(
            f"deliver takes a list of results, not {type(results).__name__}; nothing was written"
        )
    listed = list(results)
    for result in listed:
        if not isinstance(result, ToolResult):
            raise TypeError(
                f"deliver takes ToolResults, not {type(result).__name__}; make one with "
                "open_call.complete(output) or .fail(error); nothing was written"
            )
    why: list[LateReason] = ["delivered"] * len(listed) if reasons is None else list(reasons)
    by_id: dict[str, list[tuple[ToolResult, LateReason]]] = {}
    for result, reason in zip(listed, why, strict=True):
        by_id.setdefault(result.metadata.id, []).append((result, reason))
    problems: list[CommitProblem] = []
    items: list[Message] = []
    for call in transcript.open_calls:
        found = by_id.pop(call.call_id, None)
        if found is not None:
            item = _make_item(call, found, tools, drift, problems)
            items.append(item)
    for call_id, surplus in by_id.items():
        problems.append(_why_not_open(transcript, call_id, surplus[0][0].metadata.name))
    if problems:
        raise CommitError(problems)
    return items


def _make_item(
    call: PromisedCall,
    found: list[tuple[ToolResult, LateReason]],
    tools: type[BaseToolset] | None,
    drift: str,
    problems: list[CommitProblem],
) -> Message:
    def refuse(kind: Any, what: str) -> None:
        text = f"call {call.call_id!r} of {call.name!r} {what}"
        problems.append(CommitProblem(kind, call.call_id, call.name, text))

    if len(found) > 1:
        refuse("duplicate_result", f"has {len(found)} late results")
    kinds: set[str] = set()
    misfit: str | None = None
    fitted = found[0][0]
    for index, (result, _) in enumerate(found):
        got = result.metadata
        if got.name != call.name and "wrong_tool" not in kinds:
            kinds.add("wrong_tool")
            refuse("wrong_tool", f"has a late result of the tool {got.name!r}")
        if "wrong_arguments" not in kinds and not _same_arguments(call, got.arguments):
            kinds.add("wrong_arguments")
            refuse("wrong_arguments", "has a late result for other arguments")
        checked = result if tools is None else _check_with(call, result, tools, drift, refuse)
        misfit = misfit or _misfit_of(checked)
        if index == 0:
            fitted = checked
    if misfit is not None:
        refuse("wrong_output", f"has a late result that doesn't fit: {misfit}")
        return late_message(call, result_block(call_failed(call), call.kind, call.call_id))
    return late_message(call, result_block(fitted, call.kind, call.call_id), found[0][1])


def call_failed(call: PromisedCall) -> ToolResult:
    """A failure of an open call, without words."""
    return ToolResult(call.metadata, "", "error")


def _same_arguments(call: PromisedCall, arguments: str) -> bool:
    if arguments == call.arguments:
        return True
    if call.kind == "custom":
        return False
    return json_values.equal_arguments(arguments, call.arguments)


def _check_with(
    call: PromisedCall,
    result: ToolResult,
    tools: type[BaseToolset],
    drift: str,
    refuse: Any,
) -> ToolResult:
    """The result as the tool of the toolset writes it (rule LR21)."""
    selector = tools.try_selector(call.name)
    promised = call.promise.tool_digest
    if selector is not None and (promised is None or selector.tool.digest == promised):
        return fit_late_result(result, selector.tool)
    changed = "is gone" if selector is None else "has changed"
    if drift == "refuse":
        refuse("wrong_tool", f"can't be answered: its tool {changed} since it was called")
        return result
    reason = f"The tool {changed} while the call was running, so its result can't be used."
    return ToolResult(call.metadata, reason, "rejected", reason)


def _misfit_of(result: ToolResult) -> str | None:
    if result.status == "promised":
        return "it is promised already"
    return content_misfit(result)


def _why_not_open(transcript: Transcript, call_id: str, name: str) -> CommitProblem:
    """Why a result has no open call; looks through the whole conversation."""
    kind: Any = "not_open"
    why = "is not an open call"
    for item in transcript:
        if not isinstance(item, Message) or item.late is None:
            continue
        if item.late.result.call_id == call_id:
            is_expired = item.late.reason == "expired"
            kind = "not_open" if is_expired else "duplicate_result"
            why = (
                "was given up, since its result did not come in time"
                if is_expired
                else ("has its late result already")
            )
    text = f"late result for {call_id!r} ({name}): {call_id!r} {why}"
    return CommitProblem(kind, call_id, name, text)
