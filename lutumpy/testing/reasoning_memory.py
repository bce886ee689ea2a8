"""Which reasoning of a request the test server knows to be bound to another conversation."""

# What is hard here
# -----------------
# The server sealed each block when it answered, and remembers three things by its seal: who made
# it, what came before it, and which block was the last one shown before it. A block that is sent
# back is
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

from lutumpy.rules.writing import BoundBlock, ReasoningBinding

__all__ = ["Judged", "ReasoningMemory"]


@dataclass(frozen=True, slots=True)
class _Record:
    """What a block was made with.

    Attributes:
        model: The model that made it.
        prefix: The digest of what came before it.
        previous: The seal of the last block that was shown before it.
        id: Its own id, where it has one.
    """

    model: str
    prefix: str
    previous: str | None
    id: str


@dataclass(frozen=True, slots=True)
class Judged:
    """The reasoning of one request, each block in the order of the request.

    Attributes:
        shown: The seals of what the model is shown.
        hidden: Blocks of other models.
        mismatched: Blocks that were made in another conversation, or behind one.
        differing: Those whose own prefix differs: where nothing is enforced, each block is checked
            alone.
    """

    shown: tuple[str, ...] = ()
    hidden: tuple[BoundBlock, ...] = ()
    mismatched: tuple[BoundBlock, ...] = ()
    differing: tuple[BoundBlock, ...] = ()


@dataclass(slots=True)
class ReasoningMemory:
    """What a server remembers of the reasoning that it has sealed.

    Attributes:
        binding: How its API binds reasoning.
    """

    binding: ReasoningBinding
    _records: dict[str, _Record] = field(default_factory=dict[str, _Record])

    def judge(self, body: Mapping[str, Any]) -> Judged:
        """The reasoning of a request to a model that binds it; of another nothing is claimed."""
        model = body.get("model")
        if not isinstance(model, str) or not self._binds(model):
            return Judged()
        kind = self.binding.kind_of(model)
        shown: list[str] = []
        hidden: list[BoundBlock] = []
        mismatched: list[BoundBlock] = []
        differing: list[BoundBlock] = []
        for block in self.binding.find(body, None):
            record = self._records.get(block.seal)
            if record is not None and self.binding.kind_of(record.model) != kind:
                hidden.append(block)
                continue
            if record is not None and record.prefix != block.prefix:
                differing.append(block)
            if record is not None and (mismatched or not _fits(block, record, shown)):
                mismatched.append(block)
            else:
                shown.append(block.seal)
        return Judged(tuple(shown), tuple(hidden), tuple(mismatched), tuple(differing))

    def remember(self, body: Mapping[str, Any], output: Any) -> None:
        """Keep what new reasoning was made with.

        Args:
            body: The request.
            output: The blocks or items of its answer.
        """
        before = [*self.judge(body).shown]
        for block in self.binding.find(body, output):
            if block.is_new and block.seal:
                previous = before[-1] if before else None
                model = str(body.get("model"))
                self._records[block.seal] = _Record(model, block.prefix, previous, block.id)
                before.append(block.seal)

    def id_of(self, block: BoundBlock) -> str:
        """The id that a block was given, which a request may leave out."""
        record = self._records.get(block.seal)
        return block.id or (record.id if record is not None else "")

    def is_enforced(self, model: str | None, *, new_account: bool) -> bool:
        """Whether a model refuses reasoning of another conversation."""
        enforced = self.binding.refuses(model)
        return enforced == "everybody" or (enforced == "new_accounts" and new_account)

    def _binds(self, model: str) -> bool:
        return self.binding.kind_of(model) is not None and self.binding.binds(model)


def _fits(block: BoundBlock, record: _Record, shown: Sequence[str]) -> bool:
    return block.prefix == record.prefix and (not shown or shown[-1] == record.previous)
