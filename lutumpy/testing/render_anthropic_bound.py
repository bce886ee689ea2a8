"""Which reasoning of a request the test server knows to be bound to another conversation."""

# What is hard here
# -----------------
# The server signed each block when it answered, and remembers three things by its signature: who
# made it, what stood before it, and which block was the last one shown before it. A block that is
# sent back is
#
#   | seen as    | when                                                   | then                  |
#   |------------|--------------------------------------------------------|-----------------------|
#   | unknown    | this server hasn't made it                             | nothing is claimed    |
#   | hidden     | another model has                                      | told, where asked for |
#   | good       | its prefix is the same, and the one before it is too,  | shown                 |
#   |            | or none is left before it                              |                       |
#   | mismatched | anything else, and all known ones behind it            | refused, dropped, or  |
#   |            |                                                        | shown and told        |

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lutumpy.rules.anthropic.models import (
    BINDING_CONTROLS,
    binds_reasoning,
    refuses_changed_prefix,
    version,
)
from lutumpy.rules.anthropic.prefix import BoundBlock, find_bound

__all__ = ["BINDING_CONTROLS", "BoundThinking", "Judged", "is_enforced"]


@dataclass(frozen=True, slots=True)
class _Record:
    """What a block was made with.

    Attributes:
        model: The model that made it.
        prefix: The digest of what stood before it.
        previous: The seal of the last block that was shown before it.
    """

    model: str
    prefix: str
    previous: str | None


@dataclass(frozen=True, slots=True)
class Judged:
    """The reasoning of one request.

    Attributes:
        shown: The seals of what the model is shown, in order.
        hidden: Where blocks of other models are.
        mismatched: Where blocks are that were made in another conversation, or behind one.
        differing: Where those are whose own prefix differs: where nothing is enforced, each block
            is checked alone.
    """

    shown: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    mismatched: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()


@dataclass(slots=True)
class BoundThinking:
    """What a server remembers of the reasoning that it has signed."""

    _records: dict[str, _Record] = field(default_factory=dict[str, _Record])

    def judge(self, body: Mapping[str, Any]) -> Judged:
        """The reasoning of a request to a model that binds it; of another nothing is claimed."""
        model = body.get("model")
        if not isinstance(model, str) or version(model) is None or not binds_reasoning(model):
            return Judged()
        shown: list[str] = []
        hidden: list[str] = []
        mismatched: list[str] = []
        differing: list[str] = []
        for block in find_bound(body):
            record = self._records.get(block.seal)
            if record is not None and version(record.model) != version(model):
                hidden.append(block.path)
                continue
            if record is not None and record.prefix != block.prefix:
                differing.append(block.path)
            if record is not None and (mismatched or not _fits(block, record, shown)):
                mismatched.append(block.path)
            else:
                shown.append(block.seal)
        return Judged(tuple(shown), tuple(hidden), tuple(mismatched), tuple(differing))

    def remember(self, body: Mapping[str, Any], content: Any, shown: Sequence[str]) -> None:
        """Keep what new reasoning was made with.

        Args:
            body: The request.
            content: The blocks of its answer.
            shown: The seals of the reasoning that the model was shown.
        """
        before = [*shown]
        for block in find_bound(body, content):
            if block.path.startswith("content.") and block.seal:
                previous = before[-1] if before else None
                self._records[block.seal] = _Record(str(body.get("model")), block.prefix, previous)
                before.append(block.seal)


def _fits(block: BoundBlock, record: _Record, shown: Sequence[str]) -> bool:
    return block.prefix == record.prefix and (not shown or shown[-1] == record.previous)


def is_enforced(model: str | None, *, new_account: bool) -> bool:
    """Whether a model refuses reasoning of another conversation."""
    enforced = refuses_changed_prefix(model)
    return enforced == "everybody" or (enforced == "new_accounts" and new_account)
