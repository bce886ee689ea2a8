"""What tools gave in a conversation, for equal calls of another one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from lutumpy import Session, ToolResult
from lutumpy.core.items import REJECTION_PREFIX
from lutumpy.models import AssistantTurn, ResultBlock, ToolResults
from lutumpy.plain import json_values

__all__ = ["PastResults", "is_refused", "text_of_result"]


class _Round(Protocol):
    @property
    def turn(self) -> AssistantTurn: ...

    @property
    def results(self) -> ToolResults | None: ...


class PastResults:
    """The results of calls that were run, by tool and arguments, in the order of the record.

    Args:
        rounds: The rounds of a conversation.
        late: What calls have given later, by their ids.
    """

    def __init__(self, rounds: Iterable[_Round], late: Mapping[str, ResultBlock]) -> None:
        self._late = late
        # What came later for calls that were given a promise here, by their ids.
        self._to_come: dict[str, ResultBlock] = {}
        self._results: dict[tuple[str, str], list[ResultBlock]] = defaultdict(list)
        for past in rounds:
            blocks = [call for call in past.turn.calls if call.answerable]
            results = () if past.results is None else past.results.results
            for block, result in zip(blocks, results, strict=False):
                if not is_refused(result):
                    self._results[_key(block.name, block.arguments)].append(result)

    def take(self, calls: Sequence[Any]) -> tuple[list[ToolResult], list[Any]]:
        """The results of some calls of one round, and the calls that have none.

        What a tool with an effect gave is given once, since it was done once.
        """
        found: list[ToolResult] = []
        unknown: list[Any] = []
        for call in calls:
            waiting = self._results.get(_key(call.metadata.name, call.metadata.arguments))
            if not waiting:
                unknown.append(call)
                continue
            reads = call.selector.definition.options.effect == "read"
            block = waiting[0] if reads and len(waiting) == 1 else waiting.pop(0)
            if block.status == "promised" and block.call_id in self._late:
                self._to_come[call.metadata.id] = self._late[block.call_id]
            found.append(
                ToolResult(call.metadata, block.content, block.status, promise=block.promise)
            )
        return found, unknown

    def deliver_late(self, session: Session) -> bool:
        """Deliver what came later for the open calls of a session; gives whether anything did."""
        known = [call for call in session.open_calls if call.metadata.id in self._to_come]
        came = [(call, self._to_come.pop(call.metadata.id)) for call in known]
        if came:
            session.deliver([ToolResult(c.metadata, late.content, late.status) for c, late in came])
        return bool(came)


def _key(name: str, arguments: str) -> tuple[str, str]:
    return name, json_values.canonical_arguments(arguments)


def is_refused(result: ResultBlock) -> bool:
    """Whether a call was not run. A history that was read doesn't always say so but by its text."""
    return result.status == "rejected" or result.text.startswith(REJECTION_PREFIX)


def text_of_result(result: ToolResult) -> str:
    """What a model is told by a result, as text."""
    content = result.content
    return ResultBlock("", "", content, result.status).text
