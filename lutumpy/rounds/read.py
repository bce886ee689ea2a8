"""From a decoded answer to an outcome: calls are parsed and validated here, once, and nothing of it raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lutumpy.core.items import AssistantTurn, CallBlock, ToolMetadata
from lutumpy.core.origin import Origin
from lutumpy.core.transcript import Transcript
from lutumpy.errors import StaleRoundError
from lutumpy.rounds.commit import Entry, Mark, OpenAnswer
from lutumpy.rounds.outcome import Finished, NeedsTools, StagedAnswer, TurnResult
from lutumpy.rounds.round import ToolRound
from lutumpy.rounds.target import Target, transcript_of
from lutumpy.tools.arguments import Refused, decode_arguments, repair_or_explain
from lutumpy.tools.calls import BaseToolCall, IssueReason, ToolCall, ToolCallIssue
from lutumpy.tools.selectors import EmptyToolset, near_names

if TYPE_CHECKING:
    from lutumpy.rounds.offer import Offer
    from lutumpy.rounds.structured import AnswerTool

_NAMES_SHOWN = 20


def mark(transcript: Transcript) -> Mark:
    """Where the transcript stands now: to be taken when a request is made."""
    return Mark._make(transcript.position())


def begin_request(transcript: Transcript) -> Mark:
    """Where the transcript stands, for a request that is about to be made.

    Raises:
        DroppedRoundError: a round on this transcript was dropped open; nothing was sent.
    """
    if transcript.dropped:
        transcript.refuse_dropped()
    return Mark(len(transcript), transcript.revision)


def read_answer(
    offer: Offer[Any],
    turn: AssistantTurn,
    target: Target,
    begun: Mark | None = None,
    *,
    staged: bool = False,
    result: Callable[[AssistantTurn], TurnResult[Any]] = TurnResult,
    ready: Mapping[int, Entry] | None = None,
    answer: AnswerTool[Any] | None = None,
) -> NeedsTools[Any] | Finished[Any]:
    """The outcome of an answer. What it changes of the transcript changes in one step, at the end (rule K3a).

    Args:
        offer: What was offered.
        turn: The decoded answer.
        target: Where it belongs.
        begun: Where the transcript stood when the request was made; now, when left out.
        staged: A finished answer is not written.
        result: Makes the result of a finished answer.
        ready: Calls that were decoded while the answer arrived, by index.
        answer: The tool that takes the value of a structured turn; an answer that calls nothing else is finished.

    Raises:
        StaleRoundError: the answer is finished, and items were added since the request; `.result` has it.
    """
    transcript = transcript_of(target)
    if begun is None:
        begun = mark(transcript)
    opened = _open_answer(offer, turn, transcript, begun, ready, answer)
    if not turn.calls:
        return finished(result(turn), opened, staged=staged)
    if answer is not None and all(answer.takes(block) for block in turn.calls):
        return finished(*answer.close(opened), staged=staged)
    outcome: NeedsTools[Any] = NeedsTools(ToolRound(opened))
    opened.receive()
    return outcome


def read_text(
    turn: AssistantTurn,
    target: Target,
    begun: Mark,
    *,
    staged: bool,
    result: Callable[[AssistantTurn], TurnResult[Any]] = TurnResult,
    answer: AnswerTool[Any] | None = None,
) -> Finished[Any]:
    """The outcome of an answer to a request without tools: calls in it are issues, answered with it."""
    from lutumpy.rounds.offer import make_offer

    nothing = make_offer(EmptyToolset, None, None, None, parallel=True)
    opened = _open_answer(nothing, turn, transcript_of(target), begun, None, answer)
    if answer is not None and turn.calls:
        return finished(*answer.close(opened), staged=staged)
    return finished(result(opened.turn), opened, staged=staged)


def _open_answer(
    offer: Offer[Any],
    turn: AssistantTurn,
    transcript: Transcript,
    begun: Mark,
    ready: Mapping[int, Entry] | None,
    answer: AnswerTool[Any] | None,
) -> OpenAnswer:
    """The answer with each of its calls, in its order, as a call or an issue (rule C1); the transcript isn't told yet."""
    if not turn.calls:
        return OpenAnswer(turn, [], transcript, begun)
    turn = transcript.fresh_ids(turn)
    origin = Origin(transcript, begun.length, turn.calls)
    last = len(turn.calls) - 1
    entries: list[Entry] = []
    for index, block in enumerate(turn.calls):
        if answer is not None and answer.takes(block):
            entries.append(answer.early(block))
            continue
        entry = ready.get(index) if ready else None
        if entry is None or entry.metadata != (block.id, block.name, block.arguments):
            cut = block.incomplete or (turn.cut and index == last)
            entry = decode_call(offer, block, transcript, cut=cut, origin=origin)
        elif isinstance(entry, BaseToolCall):
            entry.origin = origin
        entries.append(entry)
    return OpenAnswer(turn, entries, transcript, begun)


def finished(result: TurnResult[Any], answer: OpenAnswer, *, staged: bool) -> Finished[Any]:
    """The outcome of an answer that needs no tool: written at once, unless `staged`."""
    if staged:
        outcome = Finished(result, StagedAnswer(answer))
        answer.receive()
        return outcome
    try:
        answer.write(answer.origin, ())
    except StaleRoundError:
        answer.receive()  # it was answered and paid for, and its ephemerals have served
        raise StaleRoundError(
            "items were added to the transcript during the request; the finished answer was not written, "
            "it is in this error's `result`",
            result,
        ) from None
    return Finished(result)


def decode_call(
    offer: Offer[Any],
    block: CallBlock,
    transcript: Transcript,
    *,
    cut: bool,
    origin: Origin | None = None,
) -> BaseToolCall | ToolCallIssue:
    """One call; the checks stand in the order of rule C2."""
    name = block.name
    metadata = ToolMetadata(block.id, name, block.arguments)
    selector = (
        offer.toolset.__lutumpy_table__.by_name.get(name) if block.kind == "function" else None
    )
    # What was read of a call may end before its name: then that is not the reason.
    if selector is None and (name or block.problem is None):
        return _issue(transcript, metadata, "unknown_tool", _unknown(offer, block))
    if selector is not None and name not in offer.offered:
        return _issue(transcript, metadata, "not_available", _unavailable(offer, name))
    if block.problem is not None or selector is None:
        return _issue(
            transcript, metadata, "truncated" if cut else "malformed_arguments", block.problem or ""
        )
    if cut and (block.as_object or not block.arguments.strip()):
        return _issue(transcript, metadata, "truncated", _truncated(name))
    arguments = block.arguments
    if (
        "NaN" in arguments or "Infinity" in arguments
    ):  # pydantic's parser takes both, and JSON has neither (rule C2b)
        decoded = decode_arguments(selector.tool, arguments)
    else:
        try:
            return ToolCall(metadata, selector.tool.decode(arguments), selector, (), origin)
        except Exception as error:
            decoded = repair_or_explain(selector.tool, arguments, error)
    if isinstance(decoded, Refused):
        if cut and decoded.reason == "malformed_arguments":
            return _issue(transcript, metadata, "truncated", _truncated(name))
        return _issue(transcript, metadata, decoded.reason, decoded.detail)
    return ToolCall(metadata, decoded.input, selector, decoded.repairs, origin)


def _issue(
    transcript: Transcript, metadata: ToolMetadata, reason: IssueReason, detail: str
) -> ToolCallIssue:
    return ToolCallIssue(
        metadata, reason, detail, transcript.failures(metadata.name, metadata.arguments)
    )


def _unknown(offer: Offer[Any], block: CallBlock) -> str:
    if block.kind != "function":
        return f"Calls of the kind {block.kind!r} can't be run here. {_offered(offer)}"
    near = near_names(block.name, [s.name for s in offer.selectors])
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"There is no tool named {_shown(block.name)}.{hint} {_offered(offer)}"


def _unavailable(offer: Offer[Any], name: str) -> str:
    return f"The tool {name} is not available in this turn. {_offered(offer)}"


def _truncated(name: str) -> str:
    return (
        f"The arguments of {name} were cut off before they were complete, so it was not run. "
        "Call it again with complete, shorter arguments."
    )


def _offered(offer: Offer[Any]) -> str:
    names = [s.name for s in offer.selectors]
    if not names:
        return "No tools are available."
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"Available tools: {', '.join(names[:_NAMES_SHOWN])}{more}."


def _shown(name: str) -> str:
    return repr(name if len(name) <= 100 else name[:100] + "…")
