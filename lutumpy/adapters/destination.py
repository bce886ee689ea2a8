"""Where a request goes, and what of earlier turns may go there (rules OR2 and OR3).

A turn knows its origin: API, host and model. What its host has beside the API's schema goes back to
that host alone, and what is sealed only to who can open it.
"""

# What goes where is in `rules/moves.py`, since the doctor asks the same.

from __future__ import annotations

import logging
from functools import lru_cache

from lutumpy.core.items import AssistantTurn
from lutumpy.rules.host_facts import UNKNOWN_HOST, HostFacts, facts_of, is_same_service
from lutumpy.rules.moves import is_same_model, is_very_model

__all__ = ["ANYWHERE", "Destination", "destination_of", "tell_left_out"]

_log = logging.getLogger("lutumpy.prefix")


class Destination:
    """Who gets a request.

    Attributes:
        host: The authority of its address; `None` where it isn't known.
        model: The model that is asked; `None` where it isn't known.
        facts: What is known of the host.
        key: Tells it from other destinations, in the name of an encoded form.
    """

    __slots__ = ("facts", "host", "key", "model")

    def __init__(self, host: str | None, model: str | None, facts: HostFacts, key: str) -> None:
        self.host: str | None = host
        self.model: str | None = model
        self.facts: HostFacts = facts
        self.key: str = key

    def is_own(self, turn: AssistantTurn) -> bool:
        """Whether the host has said this turn, so that it takes back all of it that it can read."""
        origin = turn.origin
        host = None if origin is None else origin.host
        if host is None or self.host is None:
            return is_same_model(_model_of(turn), self.model)
        return is_same_service(host, self.host)

    def can_open(self, turn: AssistantTurn) -> bool:
        """Whether what the turn has sealed can be opened here."""
        if not self.is_own(turn):
            return False
        return not self.facts.many_makers or is_same_model(_model_of(turn), self.model)

    def is_of_same_model(self, turn: AssistantTurn) -> bool:
        """Whether the very model that is asked has said this turn, at this host, as far as both are
        known.
        """
        if not self.is_own(turn):
            return False
        return is_very_model(_model_of(turn), self.model)

    def describe(self) -> str:
        """Its host or, where that isn't known, its model."""
        return self.host or self.model or "an unknown host"


def _model_of(turn: AssistantTurn) -> str | None:
    """The model that said a turn."""
    return turn.model if turn.origin is None else turn.origin.model


ANYWHERE = Destination(None, None, UNKNOWN_HOST, "")
"""A destination of which nothing is known: everything goes as it came."""


@lru_cache(maxsize=256)
def destination_of(
    host: str | None, model: str | None, facts: HostFacts | None = None
) -> Destination:
    """A destination, the same object for the same arguments.

    Args:
        host: The authority of its address.
        model: The model that is asked.
        facts: What is known of the host; by its address if omitted.
    """
    if host is None and model is None and facts is None:
        return ANYWHERE
    known = facts_of(host)
    chosen = known if facts is None else facts
    key = f":{host or ''}:{model or ''}"
    return Destination(host, model, chosen, key if chosen is known else f"{key}:{chosen!r}")


def tell_left_out(destination: Destination, turn: int, what: str, why: str) -> tuple[int, str, str]:
    """A receipt for what a request to a destination doesn't hold; it is in the log as well.

    Args:
        destination: Where the request goes.
        turn: The turn that has it, as an index into `turns()` of the transcript.
        what: What it is.
        why: Why it doesn't go.
    """
    _log.info("%s of turn %d doesn't go to %s: %s", what, turn, destination.describe(), why)
    return turn, what, why
