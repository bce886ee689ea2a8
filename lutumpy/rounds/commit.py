"""Commit: every call has exactly one fitting result, or nothing is written (rules K1 to K4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, cast, get_args

from lutumpy.core import json_values
from lutumpy.core.items import AssistantTurn, ResultBlock, ResultStatus, ToolResults
from lutumpy.core.parts import content_problem
from lutumpy.core.transcript import FailureKey, Transcript, failure_key
from lutumpy.errors import CommitError, CommitProblem, ProblemKind, StaleRoundError
from lutumpy.rounds.target import Target, transcript_of
from lutumpy.tools.calls import BaseToolCall, ToolCallIssue
from lutumpy.tools.results import HandledTool, RejectedToolCall, ToolResult, completed, rejected, result_block

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

    Attributes:
        turn: The decoded answer.
        entries: Its calls and issues, in the order of the answer.
        origin: The transcript that it was read against.
        begun: Where that stood when the request was made.
    """

    __slots__ = ("begun", "entries", "origin", "turn")

    def __init__(self, turn: AssistantTurn, entries: list[Entry], origin: Transcript, begun: Mark) -> None:
        self.turn: AssistantTurn = turn
        self.entries: list[Entry] = entries
        self.origin: Transcript = origin
        self.begun: Mark = begun

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
        self._append(transcript, turn, answers)

    def _turn_for(self, transcript: Transcript, rebase: bool) -> AssistantTurn:
        same = transcript is self.origin
        if same and transcript.revision == self.begun.revision:
            return self.turn
        if not rebase:
            what = "items were added to the transcript since this round began" if same else "this is another transcript"
            raise StaleRoundError(
                f"{what}; nothing was written and the round is still open: commit it with rebase=True, or discard it"
            )
        if not self.origin.same_prefix(transcript, self.begun.length):
            raise StaleRoundError(
                "what came before this round is not in the target unchanged; nothing was written, the round is still open"
            )
        moved = same or len(transcript) > self.begun.length
        return replace(self.turn, reasoning_dropped=True) if moved and self.turn.signed else self.turn

    def _answers(self, results: Iterable[Answer], decided: Mapping[str, ToolResult]) -> list[ToolResult]:
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
            why = "was already decided by a hook" if call_id in decided else "is no call of this round"
            name = surplus[0].metadata.name
            problems.append(
                CommitProblem("extra_result", call_id, name, f"result for {call_id!r} ({name}): {call_id!r} {why}")
            )
        if problems:
            raise CommitError(problems)
        return answers

    def _append(self, transcript: Transcript, turn: AssistantTurn, answers: list[ToolResult]) -> None:
        blocks: list[ResultBlock] = []
        failures: list[FailureKey] = []
        for block, answer in zip(turn.calls, answers, strict=True):
            if answer.status != "ok":
                failures.append(failure_key(block.name, block.arguments))
            if block.position >= 0:
                blocks.append(result_block(answer, block.kind))
        transcript.append_turn(turn, ToolResults(tuple(blocks)), failures)


def _in_order(entries: list[Entry], results: list[Answer]) -> bool:
    """Whether there is exactly one result for each call, each made by that very call, in call order: nothing to look up."""
    if len(entries) != len(results):
        return False
    for entry, result in zip(entries, results, strict=True):
        if type(result) is not ToolResult or result.metadata is not entry.metadata or result.output_error is not None:
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
        return rejected(result.metadata, result.reason)
    if isinstance(entry, BaseToolCall):
        return completed(result.metadata, entry.tool, result.output)
    return ToolResult(
        result.metadata, "", output=result.output, output_error="the call can't be run, so it has no output"
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
                problems.append(_problem("wrong_tool", entry, f"has a result of the tool {got.name!r}"))
            if not json_values.equal_arguments(got.arguments, expected.arguments) and "wrong_arguments" not in kinds:
                kinds.add("wrong_arguments")
                problems.append(_problem("wrong_arguments", entry, "has a result for other arguments"))
    _check_content(entry, found, problems)


def _check_content(entry: Entry, found: list[ToolResult], problems: list[CommitProblem]) -> None:
    """What is written can be sent (rule K3b): an output that fits, and content that is text or parts."""
    for result in found:
        misfit = result.output_error or content_problem(result.content)
        if misfit is None and result.status not in _STATUSES:
            misfit = f"its status is {result.status!r}, not one of {', '.join(_STATUSES)}"
        if misfit is not None:
            problems.append(_problem("wrong_output", entry, f"has a result that doesn't fit: {misfit}"))
            return


def _problem(kind: ProblemKind, entry: Entry, what: str) -> CommitProblem:
    metadata = entry.metadata
    return CommitProblem(kind, metadata.id, metadata.name, f"call {metadata.id!r} of {metadata.name!r} {what}")
