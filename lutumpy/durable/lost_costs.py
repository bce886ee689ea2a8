"""What requests cost whose answers the store doesn't have."""

# A request may fail, be cancelled, or be answered by something that was not recorded: a hook raised
# meanwhile. Nothing of it is committed, yet it was paid. So a run that gives a conversation up
# writes what it has paid as a record of the open round. Whoever goes on with the conversation
# begins with it, limits count it, and the next commit makes it part of the session's state.
#
# A process that is killed writes nothing, so of those requests nobody knows (rule P10).

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lutumpy import Session, Usage
from lutumpy.models import Unsettled

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["COST", "count_lost", "dump_lost"]

COST = "cost:"
"""What the names of these records begin with; the fence of the claim and a number follow."""


def dump_lost(usage: Usage, unsettled: Sequence[Unsettled]) -> dict[str, JsonValue] | None:
    """Costs as a record; `None` where there are none.

    Args:
        usage: The tokens that are known.
        unsettled: The requests whose cost isn't wholly known.
    """
    lost = Session()  # it has nothing but these costs: its state is how they are written
    if usage.all_input_tokens + usage.output_tokens > 0:
        lost.add_usage(usage)
    for request in unsettled:
        lost.add_unsettled(request)
    return lost.state() if lost.usage != Usage() or lost.unsettled else None


def count_lost(session: Session, records: Mapping[str, JsonValue]) -> None:
    """Count to a session what the records of its open round have of costs.

    Raises:
        TranscriptError: such a record is damaged.
    """
    for name, value in records.items():
        if name.startswith(COST) and isinstance(value, Mapping):
            lost = Session.build([], value)
            session.add_usage(lost.usage)
            for request in lost.unsettled:
                session.add_unsettled(request)
