"""Where in a conversation a call is, by content: the same after a crash, whatever ids the
provider gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from lutumpy.core.items import ToolMetadata
from lutumpy.core.transcript import Transcript
from lutumpy.plain import json_values

__all__ = ["CallPlace"]


_Key: TypeAlias = "tuple[str, str]"
"""What makes two calls equal: the tool, and one text for its arguments."""


class _Call(Protocol):
    """What this module reads of the calls of an answer."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> str: ...


class CallPlace:
    """The place of an answer's calls: the content committed before the answer, and the calls of the
    answer.

    An idempotency key is made of it, so it must be equal when the same step is repeated after a
    crash: with a loaded transcript, and with other call ids. A copy is the object itself; pickled,
    it keeps the digest of the content instead of the transcript.

    Args:
        transcript: What the answer was read against.
        length: How many items the transcript had when the request was made.
        calls: The calls of the answer, in order, each with an id of its own.
    """

    __slots__ = (
        "_calls",
        "_committed",
        "_counted",
        "_digest",
        "_transcript",
    )

    def __init__(self, transcript: Transcript, length: int, calls: Sequence[_Call]) -> None:
        self._transcript: Transcript | None = transcript
        # Ephemerals leave at some time, so they must not matter.
        self._committed = transcript.committed(length)
        self._calls = calls
        self._digest: bytes | None = None
        # How many calls were counted so far, the occurrence of each by its id, and how often each
        # occurred. It is replaced as a whole: several threads may ask, and an exception may come.
        self._counted: tuple[int, dict[str, tuple[_Key, int]], dict[_Key, int]] = 0, {}, {}

    @property
    def committed(self) -> int:
        """How many items were committed before the answer."""
        return self._committed

    def digest(self) -> bytes:
        """A digest of everything committed before the answer: equal for equal content."""
        if self._digest is None:
            assert self._transcript is not None
            self._digest = self._transcript.digests().at(self._committed)
        return self._digest

    def occurrence(self, metadata: ToolMetadata) -> int:
        """How many calls of the answer come before this one with the same tool and equal
        arguments.
        """
        count, occurrences, seen = self._counted
        # Each call is counted once. Calls of a stream are appended later, so this may go on.
        if added := self._calls[count:]:
            occurrences, seen = dict(occurrences), dict(seen)
            for call in added:
                key = call.name, json_values.canonical_arguments(call.arguments)
                occurrences[call.id] = key, seen.get(key, 0)
                seen[key] = seen.get(key, 0) + 1
            self._counted = count + len(added), occurrences, seen
        known = occurrences.get(metadata.id)
        wanted = metadata.name, json_values.canonical_arguments(metadata.arguments)
        return known[1] if known is not None and known[0] == wanted else seen.get(wanted, 0)

    def __copy__(self) -> CallPlace:
        return self

    def __deepcopy__(self, memo: Any) -> CallPlace:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return CallPlace.at, (
            self.digest(),
            tuple([ToolMetadata(c.id, c.name, c.arguments) for c in self._calls]),
        )

    @staticmethod
    def at(digest: bytes, calls: Sequence[_Call]) -> CallPlace:
        """The place of calls behind content that has this digest.

        Args:
            digest: As `digest` gives it.
            calls: The calls of the answer, in order.
        """
        origin = CallPlace(Transcript(), 0, calls)
        origin._digest = digest
        return origin
