"""What is around an event on its way into a store."""

# `SessionStore.add_events` takes events as JSON values, and some of their keys are for the store:
#
#   task, in_round  which task and round of it they belong to: `StoredEvent.task` and `.round`;
#                   without them, those of the open round
#   delta           it is dropped when its turn is recorded; this one stays in the event
#   once            names, unique in their round: an event none of whose names is new isn't written.
#                   The names are markers of the round, as those of `begin`, in the same transaction
#   status          the conversation's status is set to this, in the same transaction (rule W2)
#   unless          ids of entries of the inbox: where one of them is there that nobody has taken,
#                   the event isn't written, and its status isn't set. So a run never says that it
#                   waits for what has come in the meantime

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lutumpy.durable.types import Claim, Status

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["Envelope", "Place", "marker_of", "open_envelope"]

_FOR_THE_STORE = frozenset({"task", "in_round", "once", "status", "unless"})


class Place(NamedTuple):
    """Where in a conversation something happens.

    Attributes:
        task: Which message of the user is answered, from 1.
        round: The number of the round in that task, from 1.
    """

    task: int
    round: int

    @staticmethod
    def of(claim: Claim) -> Place:
        """The place of the open round."""
        return Place(max(1, claim.task), claim.task_round + 1)

    def address(self, event: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """The event, for this place. Where it names its round, it names this one."""
        named: dict[str, JsonValue] = {"round": self.round} if "round" in event else {}
        return {**event, **named, "task": self.task, "in_round": self.round}


class Envelope(NamedTuple):
    """An event on its way into a store.

    Attributes:
        event: What is kept as the event.
        place: Where it belongs; `None` for the open round.
        once: The markers of the round that come with it.
        status: The status that comes with it.
        unless: The entries of the inbox that keep it out.
    """

    event: Mapping[str, JsonValue]
    place: Place | None
    once: tuple[str, ...]
    status: Status | None
    unless: tuple[str, ...] = ()


def marker_of(name: str) -> str:
    """The name of the record that says that an event with this name was written."""
    return f"event:{name}"


def open_envelope(event: Mapping[str, JsonValue]) -> Envelope:
    """What a store has to do for an event."""
    fields: Mapping[str, Any] = event
    place = Place(fields["task"], fields["in_round"]) if "in_round" in fields else None
    once = tuple([marker_of(str(name)) for name in fields.get("once") or ()])
    kept = {key: value for key, value in event.items() if key not in _FOR_THE_STORE}
    unless = tuple(map(str, fields.get("unless") or ()))
    return Envelope(kept, place, once, cast("Any", fields.get("status")), unless)
