"""The calls of an answer while it arrives, and the ids that they have in the end."""

# A call has its final id only in the end. Providers may send the id late, or never; and an id that
# the transcript has already is replaced by a fresh one (rule C6), which depends on the calls
# before. So ids are worked out again when one arrives, for that call and those after it.

from __future__ import annotations

from lutumpy.core.call_ids import TakenIds
from lutumpy.core.transcript import Transcript
from lutumpy.rounds.events import InvalidToolCallDelta, ToolCallDelta

__all__ = ["ArrivingCall", "ArrivingCalls"]


class ArrivingCall:
    """What is known of a call so far.

    Attributes:
        provider_id: The id that the provider sent; empty until it comes.
        name: The tool's name; empty until it comes.
        kind: The kind of the call, as in `CallBlock`.
        pieces: The arguments.
        event: The class of the last piece's event; `None` if it has to be worked out again, since
            the call is new or an id before it changed.
        final_id: The id that was in that event.
    """

    __slots__ = ("event", "final_id", "kind", "name", "pieces", "provider_id")

    def __init__(self) -> None:
        self.provider_id: str = ""
        self.name: str = ""
        self.kind: str = "function"
        self.pieces: list[str] = []
        self.event: type[ToolCallDelta | InvalidToolCallDelta] | None = None
        self.final_id: str = ""


class ArrivingCalls:
    """The calls that have begun.

    Args:
        transcript: What the answer is for; its ids are taken.

    Attributes:
        at: The calls by their indexes in the answer.
    """

    __slots__ = ("_final_ids", "_taken_ids", "_transcript", "at")

    def __init__(self, transcript: Transcript) -> None:
        self.at: dict[int, ArrivingCall] = {}
        self._transcript = transcript
        # The final ids of the first calls, as far as they were needed.
        self._final_ids: list[str] = []
        self._taken_ids = TakenIds()

    def take(self, index: int, provider_id: str) -> ArrivingCall:
        """The call at `index`, with the provider's id for it, if that comes with this event."""
        call = self.at.get(index)
        if call is None:
            call = self.at[index] = ArrivingCall()
        if provider_id and provider_id != call.provider_id:
            call.provider_id = provider_id
            self._forget_final_ids(index)
        return call

    def final_id(self, index: int) -> str:
        """The id that a call has in the end: the provider's, or a fresh one (rule C6)."""
        for earlier in range(len(self._final_ids), index + 1):
            call = self.at.get(earlier)
            provider_id = call.provider_id if call is not None else ""
            final_id = self._transcript.fresh_id(provider_id, self._taken_ids)
            self._final_ids.append(final_id)
            self._taken_ids.add(final_id)
        return self._final_ids[index]

    def with_final_id(self, call_id: str) -> ArrivingCall:
        """The call that has this id in the end.

        Raises:
            KeyError: No call with this id has begun.
        """
        for index, call in self.at.items():
            if self.final_id(index) == call_id:
                return call
        raise KeyError(call_id)

    def _forget_final_ids(self, index: int) -> None:
        """The ids of this call and of those after it don't hold any longer."""
        if index < len(self._final_ids):
            self._taken_ids.counted = 0
        for later in range(index, len(self._final_ids)):
            self._taken_ids.discard(self._final_ids[later])
            call = self.at.get(later)
            if call is not None:
                call.event = None
        del self._final_ids[index:]
