"""A history on its way to a host: whose it is, and what of it may go there (rules OR2 and OR3).

The adapters ask this for each turn, the doctor for a history whose origin it is told.
"""

# What a history has                | goes to
# ----------------------------------+-------------------------------------------------------------
# what the API's schema knows       | every host of the API
# a field of its host's own         | that host; where either host isn't known, the same model
# what is sealed                    | the same, and at a host of many makers' models the same model

from __future__ import annotations

import re

from lutumpy.plain.values import dataclass
from lutumpy.rules.host_facts import UNKNOWN_HOST, HostFacts, is_same_service

__all__ = ["Move", "is_same_model", "is_very_model", "move_to"]

# What a name ends with that says which release of a model answers: a date, or the newest.
_RELEASE = re.compile(r"-(?:\d{8}|\d{4}-\d\d-\d\d|latest|0)\Z")


def is_same_model(one: str | None, other: str | None) -> bool:
    """Whether two names may be those of one model; yes where one isn't known."""
    if one is None or other is None:
        return True
    first, second = _RELEASE.sub("", one), _RELEASE.sub("", other)
    return first.startswith(second) or second.startswith(first)


def is_very_model(one: str | None, other: str | None) -> bool:
    """Whether two names are those of one model, up to its release; yes where one isn't known."""
    if one is None or other is None:
        return True
    return _RELEASE.sub("", one) == _RELEASE.sub("", other)


@dataclass(frozen=True, slots=True)
class Move:
    """A history on its way to a host.

    Attributes:
        facts: What is known of the host.
        is_named: Whether the host was named; else nothing is claimed of what it refuses.
        is_vendor: Whether it is the vendor's own host, whose refusals are sure.
        is_own: Whether it has said the history itself, as far as that is known.
        can_open: Whether it can open what the history has sealed, as far as that is known.
        is_same_model: Whether the very model that is asked has said it, as far as that is known;
            some APIs seal for the model.
    """

    facts: HostFacts = UNKNOWN_HOST
    is_named: bool = False
    is_vendor: bool = True
    is_own: bool = True
    can_open: bool = True
    is_same_model: bool = True


def move_to(
    facts: HostFacts,
    host: str | None,
    model: str | None,
    *,
    by_host: str | None,
    by_model: str | None,
    is_named: bool,
    is_vendor: bool,
) -> Move:
    """The move of a history.

    Args:
        facts: What is known of the host that gets it.
        host: The authority of its address; `None` where it isn't known.
        model: The model that is asked.
        by_host: The authority of the host that said the history.
        by_model: The model that did.
        is_named: Whether the host, or its facts, were named.
        is_vendor: Whether the host is the vendor's own.
    """
    same_model = is_same_model(by_model, model)
    known = host is not None and by_host is not None
    is_own = is_same_service(by_host or "", host or "") if known else same_model
    can_open = is_own and (same_model or not facts.many_makers)
    very = is_very_model(by_model, model)
    return Move(facts, is_named, is_vendor, is_own, can_open, very)
