"""Commit: every call has exactly one fitting result, or nothing is written (rules K1 to K4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, cast, get_args

from lutumpy.core import json_values
from lutumpy.core.item_store import FailureKey, failure_key
from lutumpy.core.items import AssistantTurn, ResultBlock, ResultStatus, ToolResults
from lutumpy.core.parts import content_problem
from lutumpy.core.transcript import Transcript
from lutumpy.core.transcript_state import Receipt
from lutumpy.errors import CommitError, CommitProblem, ProblemKind, StaleRoundError
from lutumpy.rounds.target import Target, transcript_of
from lutumpy.tools.calls import BaseToolCall, HandledTool, RejectedToolCall, ToolCallIssue
from lutumpy.tools.results import ToolResult, completed, rejected, result_block

_NOTHING: Mapping[str, ToolResult] = {}
_STATUSES: tuple[str, ...] = get_args(ResultStatus)

Entry: TypeAlias = "BaseToolCall | ToolCallIssue"
Answer: TypeAlias = "ToolResult | HandledTool[Any, Any] | RejectedToolCall"


class Mark(NamedTuple):
    """Where a transcript stood: how many items it had, and its revision."""

    length: int
    revision: int


class OpenAnswer:
    """An answer with calls that is not in the transcript yet: what a round, and the plans made from it, share.

    Its states:

        made --receive()--> open --write()--> committed
          |                  +----discard()--> discarded
          +--write()--> committed     (an answer that is finished when it is read: both in one change)

    Whether it was closed, the transcript says, by a receipt that is part of the change: an exception could come between
    two stores, one here and one there (rule K3a). `closed` only remembers the answer.

    Attributes:
        turn: The decoded answer.
        entries: Its calls and issues, in the order of the answer.
        origin: The transcript that it was read against.
        requested: Where that stood when the request was made.
        begun: The same without the ephemerals that leave with the request's success: where the round begins.
        attempt: How it was last tried to close it, with which receipt, and the transcript that says whether that was
            done.
        closed: How it was closed, if that is known already; `how_closed` asks.
        holder: The token of the round or plan that holds it; `None` where none does.
    """

    __slots__ = (
        "_received",
        "attempt",
        "begun",
        "closed",
        "entries",
        "holder",
        "origin",
        "requested",
        "turn",
    )

    def __init__(
        self, turn: AssistantTurn, entries: list[Entry], origin: Transcript, requested: Mark
    ) -> None:
        self.turn: AssistantTurn = turn
        self.entries: list[Entry] = entries
        self.origin: Transcript = origin
        self.requested: Mark = requested
        self.begun: Mark = requested
        # Whether the transcript knows that the request has succeeded.
        self._received = False
        self.attempt: tuple[str, Receipt, Transcript] | None = None
        self.closed: str | None = None
        self.holder: object | None = None

    def how_closed(self) -> str | None:
        """How it was closed, `committed` or `discarded`; `None` while it is open."""
        if self.closed is None and self.attempt is not None:
            how, receipt, transcript = self.attempt
            if transcript.holds(receipt):
                self.closed = how
        return self.closed

    def receive(self) -> None:
        """Tell the transcript that the request has succeeded: its ephemerals have served, and it cost something."""
        if not self._received:
            kept = self.origin.request_succeeded(self.turn, self.requested.length)
            if kept != self.requested.length:
                self.begun = Mark(kept, self.requested.revision)
            self._received = True

    def discard(self) -> None:
        """Drop the answer; the transcript stays as it is."""
        receipt = Receipt()
        self.attempt = "discarded", receipt, self.origin
        self.origin.turn_discarded(receipt)
        self.closed = "discarded"

    def write(
        self,
        target: Target,
        results: Iterable[Answer],
        *,
        decided: Mapping[str, ToolResult] | None = None,
        rebase: bool = False,
    ) -> None:
        """Check everything, then write turn and results.

        Args:
            target: Where to.
            results: One for each pending call; explicit ones for issues.
            decided: Results of calls that hooks have handled or rejected, by call id.
            rebase: Write at the end of a target that moved on.

        Raises:
            StaleRoundError: the target isn't the transcript of this round, or items were added since.
            CommitError: the results don't answer the calls.
        """
        transcript = transcript_of(target)
        turn = self._turn_for(transcript, rebase)
        answers = self._answers(results, decided or _NOTHING)
        receipt = Receipt()
        self.attempt = "committed", receipt, transcript
        self._append(transcript, turn, answers, receipt)
        self.closed = "committed"

    def _turn_for(self, transcript: Transcript, rebase: bool) -> AssistantTurn:
        same = transcript is self.origin
        if same and transcript.revision == self.begun.revision:
            return self.turn
        continues = self.origin.same_prefix(transcript, self.begun.length)
        if not rebase or not continues:
            raise StaleRoundError(_stale(same, continues))
        # Another answer may have used the ids since: hosts that count theirs begin again in each answer (rule C6).
        turn = transcript.fresh_ids(self.turn)
        moved = same or len(transcript) > self.begun.length
        return replace(turn, reasoning_dropped=True) if moved and turn.signed else turn

    def _answers(
        self, results: Iterable[Answer], decided: Mapping[str, ToolResult]
    ) -> list[ToolResult]:
        entries = self.entries
        if not hasattr(results, "__iter__"):
            raise TypeError(
                f"commit takes a list of results, not {type(results).__name__}; "
                "nothing was written, the round is still open"
            )
        taken = list(results)
        if not decided and _in_order(entries, taken):
            return cast("list[ToolResult]", taken)
        given: dict[str, list[ToolResult]] = {}
        calls = {entry.metadata.id: entry for entry in entries}
        for result in taken:
            metadata = _metadata(result)
            given.setdefault(metadata.id, []).append(_as_result(result, calls.get(metadata.id)))
        problems: list[CommitProblem] = []
        answers: list[ToolResult] = []
        for entry in entries:
            call_id = entry.metadata.id
            if call_id in decided:
                _check_content(entry, [decided[call_id]], problems)
                answers.append(decided[call_id])
                continue
            found = given.pop(call_id, None)
            if found is None:
                if isinstance(entry, ToolCallIssue):
                    answers.append(entry.answer())
                else:
                    problems.append(_problem("missing_result", entry, "has no result"))
                continue
            _check(entry, found, problems)
            answers.append(found[0])
        for call_id, surplus in given.items():
            why = (
                "was already decided by a hook"
                if call_id in decided
                else "is no call of this round"
            )
            name = surplus[0].metadata.name
            problems.append(
                CommitProblem(
                    "extra_result",
                    call_id,
                    name,
                    f"result for {call_id!r} ({name}): {call_id!r} {why}",
                )
            )
        if problems:
            raise CommitError(problems)
        return answers

    def _append(
        self,
        transcript: Transcript,
        turn: AssistantTurn,
        answers: list[ToolResult],
        receipt: Receipt,
        *,
        last: bool = False,
    ) -> None:
        blocks: list[ResultBlock] = []
        failures: list[FailureKey] = []
        for block, answer in zip(turn.calls, answers, strict=True):
            if answer.status != "ok":
                failures.append(failure_key(block.name, block.arguments))
            if block.position >= 0:
                blocks.append(result_block(answer, block.kind, block.id))
        transcript.append_turn(
            turn,
            ToolResults(tuple(blocks)),
            failures,
            request=None if self._received else self.requested.length,
            last=last,
            receipt=receipt,
        )


def _stale(same: bool, continues: bool) -> str:
    """Why a target is stale, with advice that works there."""
    if same:
        return (
            "items were added to the transcript since this round began; nothing was written and the round is still "
            "open: commit it with rebase=True, or discard it"
        )
    if continues:
        return (
            "this is another transcript than the one that the round was read against, with the same beginning; nothing "
            "was written and the round is still open: commit it into its own, or here with rebase=True, or discard it"
        )
    return (
        "this is another transcript than the one that the round was read against, and what came before the round "
        "is not in it unchanged; nothing was written and the round is still open: commit it into its own, or discard it"
    )


def _in_order(entries: list[Entry], results: list[Answer]) -> bool:
    """Whether there is exactly one result for each call, each made by that very call, in call order: nothing to look up."""
    if len(entries) != len(results):
        return False
    for entry, result in zip(entries, results, strict=True):
        if (
            type(result) is not ToolResult
            or result.metadata is not entry.metadata
            or result.output_error is not None
        ):
            return False
        if type(result.content) is not str or result.status not in _STATUSES:
            return False
    return True


def _metadata(result: Any) -> Any:
    if not isinstance(result, (ToolResult, HandledTool, RejectedToolCall)):
        raise TypeError(
            f"commit takes ToolResult, HandledTool and RejectedToolCall, not {type(result).__name__}; "
            "make one with call.complete(output) or call.fail(error); nothing was written, the round is still open"
        )
    return result.metadata


def _as_result(result: Answer, entry: Entry | None) -> ToolResult:
    if isinstance(result, ToolResult):
        return result
    if isinstance(result, RejectedToolCall):
        said: Any = result.reason
        if not isinstance(said, str):
            misfit = f"it says {type(said).__name__} where text belongs"
            return ToolResult(result.metadata, "", "rejected", output_error=misfit)
        return rejected(result.metadata, result.reason)
    if isinstance(entry, BaseToolCall):
        return completed(result.metadata, entry.tool, result.output)
    return ToolResult(
        result.metadata,
        "",
        output=result.output,
        output_error="the call can't be run, so it has no output",
    )


def _check(entry: Entry, found: list[ToolResult], problems: list[CommitProblem]) -> None:
    expected = entry.metadata
    if len(found) > 1:
        problems.append(_problem("duplicate_result", entry, f"has {len(found)} results"))
    kinds: set[str] = set()
    for result in found:
        got = result.metadata
        if got is not expected:
            if got.name != expected.name and "wrong_tool" not in kinds:
                kinds.add("wrong_tool")
                problems.append(
                    _problem("wrong_tool", entry, f"has a result of the tool {got.name!r}")
                )
            if (
                not json_values.equal_arguments(got.arguments, expected.arguments)
                and "wrong_arguments" not in kinds
            ):
                kinds.add("wrong_arguments")
                problems.append(
                    _problem("wrong_arguments", entry, "has a result for other arguments")
                )
    _check_content(entry, found, problems)


def _check_content(entry: Entry, found: list[ToolResult], problems: list[CommitProblem]) -> None:
    """What is written can be sent (rule K3b): an output that fits, and content that is text or parts."""
    for result in found:
        misfit = result.output_error or content_problem(result.content)
        if misfit is None and result.status not in _STATUSES:
            misfit = f"its status is {result.status!r}, not one of {', '.join(_STATUSES)}"
        if misfit is not None:
            problems.append(
                _problem("wrong_output", entry, f"has a result that doesn't fit: {misfit}")
            )
            return


def _problem(kind: ProblemKind, entry: Entry, what: str) -> CommitProblem:
    metadata = entry.metadata
    return CommitProblem(
        kind, metadata.id, metadata.name, f"call {metadata.id!r} of {metadata.name!r} {what}"
    )
