"""From a decoded answer to an outcome; nothing raises because of what the model wrote."""

# An answer is read in three steps, and only the last one changes the transcript, in one step (K3a):
#
# 1. each call becomes a call that can be executed, or an issue (`rounds/decode.py`);
# 2. the outcome is made: a round, or a result;
# 3. the transcript changes: the request has succeeded, or, for a finished answer, all is written.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lutumpy.core.call_place import CallPlace
from lutumpy.core.items import AssistantTurn
from lutumpy.core.tool_names import REPLACED_PREFIX
from lutumpy.core.transcript import Transcript
from lutumpy.errors import StaleRoundError
from lutumpy.rounds.call_names import name_calls
from lutumpy.rounds.decode import decode_call
from lutumpy.rounds.offered import OfferedTools
from lutumpy.rounds.open_answer import OpenAnswer
from lutumpy.rounds.outcome import Finished, NeedsTools, TurnResult
from lutumpy.rounds.round import ToolRound
from lutumpy.rounds.searches import name_searches
from lutumpy.rounds.target import Position, Target, position_of, transcript_of
from lutumpy.tools.calls import BaseToolCall

if TYPE_CHECKING:
    from lutumpy.hooks.pipeline import CallOrIssue
    from lutumpy.rounds.structured import ValueTool

__all__ = ["read_answer", "read_text"]


def read_answer(
    offer: OfferedTools[Any],
    turn: AssistantTurn,
    target: Target,
    begun: Position | None = None,
    *,
    staged: bool = False,
    result: Callable[[AssistantTurn], TurnResult[Any]] = TurnResult,
    ready: Mapping[int, CallOrIssue] | None = None,
    value_tool: ValueTool[Any] | None = None,
) -> NeedsTools[Any] | Finished[Any]:
    """The outcome of an answer.

    Args:
        offer: What was offered.
        turn: The decoded answer.
        target: Where it belongs.
        begun: Where the transcript stood when the request was made; now, if omitted.
        staged: A finished answer is not written.
        result: Makes the result of a finished answer.
        ready: Calls that were decoded while the answer arrived, by index.
        value_tool: The tool that takes the value of a structured turn; an answer that calls nothing
            else is finished.

    Raises:
        StaleRoundError: the answer is finished, and items were added since the request; `.result`
            has it.
    """
    transcript = transcript_of(target)
    if turn.origin is None:
        turn = transcript.take_note(offer, turn)
    if begun is None:
        begun = position_of(transcript)  # whoever reads by hand has done so at once
    answer = _read_calls(offer, turn, transcript, begun, ready, value_tool)
    calls = answer.turn.calls
    if not calls:
        return _finish(result(turn), answer, staged=staged)
    if value_tool is not None and all(value_tool.is_called_by(block) for block in calls):
        return _finish(*value_tool.take_value(answer), staged=staged)
    # The round first: if an exception cuts this off before it is returned, the answer has a holder
    # whose end is noticed and reported to the transcript (rule C7a).
    outcome: NeedsTools[Any] = NeedsTools(ToolRound(answer))
    answer.receive()
    return outcome


def read_text(
    offer: OfferedTools[Any],
    turn: AssistantTurn,
    target: Target,
    begun: Position,
    *,
    staged: bool = False,
    result: Callable[[AssistantTurn], TurnResult[Any]] = TurnResult,
    value_tool: ValueTool[Any] | None = None,
) -> Finished[Any]:
    """As `read_answer`, for a request without tools: calls are issues, and answered with it."""
    transcript = transcript_of(target)
    if turn.origin is None:
        turn = transcript.take_note(offer, turn)
    answer = _read_calls(offer, turn, transcript, begun, None, value_tool)
    if value_tool is not None and turn.calls:
        return _finish(*value_tool.take_value(answer), staged=staged)
    return _finish(result(answer.turn), answer, staged=staged)


def _read_calls(
    offer: OfferedTools[Any],
    turn: AssistantTurn,
    transcript: Transcript,
    begun: Position,
    ready: Mapping[int, CallOrIssue] | None,
    value_tool: ValueTool[Any] | None,
) -> OpenAnswer:
    """The answer with each of its calls, in its order, as a call or an issue (rule C1).

    The transcript isn't changed yet.
    """
    if not turn.calls:
        return OpenAnswer(turn, [], transcript, begun)
    if offer.finder is not None:
        turn = name_searches(turn, offer.finder)
    for call in turn.calls:
        if call.name.startswith(REPLACED_PREFIX):
            turn = name_calls(offer, turn)
            break
    turn = transcript.fresh_ids(turn)
    origin = CallPlace(transcript, begun.length, turn.calls)
    last = len(turn.calls) - 1
    entries: list[CallOrIssue] = []
    for index, block in enumerate(turn.calls):
        if value_tool is not None and value_tool.is_called_by(block):
            entries.append(value_tool.refuse_early(block))
            continue
        entry = ready.get(index) if ready else None
        # What was decoded while the answer arrived holds if the whole answer says the same.
        if entry is None or entry.metadata != (block.id, block.name, block.arguments):
            cut = block.incomplete or (turn.cut and index == last)
            entry = decode_call(offer, block, transcript, cut=cut, origin=origin)
        elif isinstance(entry, BaseToolCall):
            entry.origin = origin
        entries.append(entry)
    return OpenAnswer(turn, entries, transcript, begun)


def _finish(result: TurnResult[Any], answer: OpenAnswer, *, staged: bool) -> Finished[Any]:
    """The outcome of an answer that needs no tool: written at once, unless `staged`."""
    if staged:
        outcome = Finished(result, answer)
        answer.receive()
        return outcome
    try:
        answer.write(answer.transcript, ())
    except StaleRoundError:
        # It was answered and paid for, and its ephemerals have served.
        answer.receive()
        raise StaleRoundError(
            "items were added to the transcript during the request; the finished answer was not "
            "written, it is in this error's `result`",
            result,
        ) from None
    return Finished(result)
