"""Which results are committed: every call has exactly one fitting result (rules K1 to K4).

Everything is checked, and every problem found, before anything is written. Writing itself is the
business of `rounds/open_answer.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast, get_args

from lutumpy.core.items import ResultStatus
from lutumpy.core.parts import content_problem
from lutumpy.errors import CommitError, CommitProblem, ProblemKind
from lutumpy.hooks.results import CallResult, to_tool_result
from lutumpy.plain import json_values
from lutumpy.tools.approvals import ApprovalRequest, approval_misfit
from lutumpy.tools.calls import BaseToolCall, HandledTool, RejectedToolCall, ToolCallIssue
from lutumpy.tools.results import ToolResult

if TYPE_CHECKING:
    from lutumpy.hooks.pipeline import CallOrIssue

__all__ = ["content_misfit", "match_results"]

# What is known of a call                       what is committed for it
# --------------------------------------------  ------------------------------------------------
# a hook handled or rejected it                 that result; another one is an `extra_result`
# a hook holds it for a person                  nothing, whatever is given for it: `held`
# it can be executed, and has one result        that result, if it fits
# it can be executed, and has none              nothing: `missing_result`
# the provider makes it, if approved            as for one that can be executed; only an approval
#                                               and a rejection fit
# its result comes later                        the promise, if its tool may be late
# it is an issue, and has a result              that result, if it fits
# it is an issue, and has none                  the library's own
# it has several results                        nothing: `duplicate_result`
#
# A result for an id that no call of the answer has is an `extra_result`.

_STATUSES: tuple[str, ...] = get_args(ResultStatus)
_AT_ONCE = ("ok", "error", "rejected")


def match_results(
    entries: list[CallOrIssue],
    results: Iterable[CallResult],
    decided: Mapping[str, ToolResult | None],
) -> list[ToolResult]:
    """One result for each call of an answer, in its order.

    Args:
        entries: The calls and issues of the answer.
        results: One for each pending call, in any order; results for issues if the user wants.
        decided: The results of calls that hooks have handled or rejected, by call id; `None` for
            those that are held for a person.

    Raises:
        CommitError: the results don't answer the calls; it has every problem.
        TypeError: something is none of the three forms of a result.
    """
    if not hasattr(results, "__iter__"):
        raise TypeError(
            f"commit takes a list of results, not {type(results).__name__}; "
            "nothing was written, the round is still open"
        )
    listed = list(results)
    if not decided and _are_in_call_order(entries, listed):
        return cast("list[ToolResult]", listed)
    results_by_id = _group_by_call(entries, listed)
    problems: list[CommitProblem] = []
    matched: list[ToolResult] = []
    for entry in entries:
        call_id = entry.metadata.id
        if call_id in decided:
            result = decided[call_id]
            if result is None:
                what = "is held for a person: plan.decide({id: decision}, by=...) comes first"
                problems.append(_problem("held", entry, what))
            else:
                _check_content(entry, [result], problems)
                matched.append(result)
            continue
        found = results_by_id.pop(call_id, None)
        if found is not None:
            _check_results(entry, found, problems)
            matched.append(found[0])
        elif isinstance(entry, ToolCallIssue):
            matched.append(entry.answer())
        elif isinstance(entry, ApprovalRequest):
            what = "has to be approved or rejected: give request.approve() or .reject(reason)"
            problems.append(_problem("missing_result", entry, what))
        else:
            problems.append(_problem("missing_result", entry, "has no result"))
    for call_id, surplus in results_by_id.items():
        if call_id in decided:
            if decided[call_id] is None:
                continue  # reported as held
            why = "was already decided by a hook"
        else:
            why = "is not a call of this round"
        name = surplus[0].metadata.name
        text = f"result for {call_id!r} ({name}): {call_id!r} {why}"
        problems.append(CommitProblem("extra_result", call_id, name, text))
    if problems:
        raise CommitError(problems)
    return matched


def _are_in_call_order(entries: list[CallOrIssue], results: list[CallResult]) -> bool:
    """Whether each result was made by the call at its place, so that nothing has to be looked up.

    This is how most rounds are committed: `[call.complete(...) for call in round.calls]`.
    """
    if len(entries) != len(results):
        return False
    for entry, result in zip(entries, results, strict=True):
        if (
            type(result) is not ToolResult
            or result.metadata is not entry.metadata
            or result.output_error is not None
            or type(entry) is ApprovalRequest
        ):
            return False
        if type(result.content) is not str or result.status not in _AT_ONCE:
            return False
    return True


def _group_by_call(
    entries: list[CallOrIssue], results: list[CallResult]
) -> dict[str, list[ToolResult]]:
    calls = {entry.metadata.id: entry for entry in entries}
    grouped: dict[str, list[ToolResult]] = {}
    for result in results:
        call_id = _call_id_of(result)
        grouped.setdefault(call_id, []).append(_read_result(result, calls.get(call_id)))
    return grouped


def _call_id_of(result: Any) -> str:
    if not isinstance(result, (ToolResult, HandledTool, RejectedToolCall)):
        raise TypeError(
            "commit takes ToolResult, HandledTool and RejectedToolCall, "
            f"not {type(result).__name__}; make one with call.complete(output) or "
            "call.fail(error); nothing was written, the round is still open"
        )
    return result.metadata.id


def _read_result(result: CallResult, entry: CallOrIssue | None) -> ToolResult:
    reason: Any = result.reason if isinstance(result, RejectedToolCall) else ""
    if not isinstance(reason, str):
        # Made by hand; it is reported together with the other problems.
        misfit = f"it says {type(reason).__name__} where text belongs"
        return ToolResult(result.metadata, "", "rejected", output_error=misfit)
    return to_tool_result(result, entry.tool if isinstance(entry, BaseToolCall) else None)


def _check_results(
    entry: CallOrIssue, found: list[ToolResult], problems: list[CommitProblem]
) -> None:
    expected = entry.metadata
    if len(found) > 1:
        problems.append(_problem("duplicate_result", entry, f"has {len(found)} results"))
    kinds: set[str] = set()
    for result in found:
        got = result.metadata
        if got is expected:
            continue
        if got.name != expected.name and "wrong_tool" not in kinds:
            kinds.add("wrong_tool")
            what = f"has a result of the tool {got.name!r}"
            problems.append(_problem("wrong_tool", entry, what))
        if "wrong_arguments" in kinds:
            continue
        # Compared as JSON: a result may have gone through a store that spells them otherwise.
        if not json_values.equal_arguments(got.arguments, expected.arguments):
            kinds.add("wrong_arguments")
            what = "has a result for other arguments"
            problems.append(_problem("wrong_arguments", entry, what))
    _check_content(entry, found, problems)


def _check_content(
    entry: CallOrIssue, found: list[ToolResult], problems: list[CommitProblem]
) -> None:
    """Whatever is written can be sent (rule K3b): an output that fits, and text or parts."""
    for result in found:
        misfit = content_misfit(result)
        if misfit is None and isinstance(entry, ApprovalRequest):
            misfit = approval_misfit(result)
        if misfit is None and result.status == "promised":
            misfit = _why_not_late(entry)
        if misfit is not None:
            what = f"has a result that doesn't fit: {misfit}"
            problems.append(_problem("wrong_output", entry, what))
            return


def content_misfit(result: ToolResult) -> str | None:
    """Why a result can't be written, or `None` if it can."""
    misfit = result.output_error or content_problem(result.content)
    if misfit is None and result.status not in _STATUSES:
        misfit = f"its status is {result.status!r}, not one of {', '.join(_STATUSES)}"
    return misfit


def _why_not_late(entry: Any) -> str | None:
    """Why the result of a call can't come later, or `None` if it can (rule LR1)."""
    from lutumpy.tools.promised import may_be_late  # few results come later

    if may_be_late(entry):
        return None
    return "its result can't come later: declare the tool with late=True"


def _problem(kind: ProblemKind, entry: CallOrIssue, what: str) -> CommitProblem:
    metadata = entry.metadata
    text = f"call {metadata.id!r} of {metadata.name!r} {what}"
    return CommitProblem(kind, metadata.id, metadata.name, text)
