"""Equal late `once` calls of a round, sent to workers that don't know of each other (rule LR13)."""

# Such a worker reads nothing of the store but what `record` returns: the value that was there
# first. That is enough, with two records for each call that begins, in the order of their places:
#
#   equal:<digest>:1         the id of the call that has the first place
#   equal:<digest>:1:ended   true: it has ended, and promised nothing
#                            false: an equal call asked before that
#
# A call that finds a place taken writes false behind it. Where false stands, the call of that place
# runs or is open, so the one that asked is rejected. Where true stands it takes the next place.

from __future__ import annotations

from hashlib import sha256

from lutumpy import CallTicket
from lutumpy.durable.journal_home import WorkersConversation

__all__ = ["EqualCalls"]


class EqualCalls:
    """The places of late `once` calls, in a worker.

    Args:
        conversation: What the worker holds of the conversation.
    """

    def __init__(self, conversation: WorkersConversation) -> None:
        self._conversation = conversation
        self._places: dict[str, str] = {}  # the names of their records, by call id

    async def take_place(self, ticket: CallTicket) -> str | None:
        """Take a place for a call, unless an equal one is running or open: then gives its id.

        A call that is sent again has its place already.
        """
        text = f"{ticket.tool}\n{ticket.equal_to}"
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        number = 1
        while True:
            place = f"equal:{digest}:{number}"
            holder = await self._conversation.record(place, ticket.call_id)
            if holder == ticket.call_id:
                self._places[ticket.call_id] = place
                return None
            if await self._conversation.record(f"{place}:ended", False) is not True:
                return str(holder)
            number += 1

    async def leave_place(self, ticket: CallTicket) -> None:
        """Note that a call has ended, and that it isn't open."""
        place = self._places.pop(ticket.call_id, None)
        if place is not None:
            await self._conversation.record(f"{place}:ended", True)
