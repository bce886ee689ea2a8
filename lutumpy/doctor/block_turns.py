"""The messages of an API of blocks as a pass finds them: its turns, and who answers whom."""

from __future__ import annotations

from collections.abc import Iterator

from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import expect_entry, message_index
from lutumpy.errors import Problem
from lutumpy.rules.block_wire import BlockWire, Placed, Turn, join_turns

__all__ = ["Conversation", "expect_block"]


class Conversation:
    """The turns of a pass.

    They show which messages and blocks there were when it was made. The blocks themselves are
    those of the document, which a pass changes; paths stay those of its start.

    Attributes:
        wire: Where calls and results are.
        turns: The turns.
    """

    def __init__(self, editor: Editor, wire: BlockWire) -> None:
        self.wire = wire
        self.turns: list[Turn] = join_turns(wire, editor.document)
        self._number: dict[int, int] = {}
        for number, turn in enumerate(self.turns):
            for index in range(turn.first, turn.last + 1):
                self._number[index] = number

    def at(self, index: int) -> Turn | None:
        """The turn that a message belongs to."""
        number = self._number.get(index)
        return None if number is None else self.turns[number]

    def with_problem(self, problem: Problem) -> Turn | None:
        """The turn that a problem is in."""
        index = message_index(problem)
        return None if index is None else self.at(index)

    def after(self, turn: Turn) -> Turn | None:
        """The next turn, if it is the user's."""
        number = self._number[turn.first] + 1
        found = self.turns[number] if number < len(self.turns) else None
        return found if found is not None and found.role == self.wire.user else None

    def before(self, turn: Turn) -> Turn | None:
        """The turn before, if it is the model's."""
        number = self._number[turn.first]
        found = self.turns[number - 1] if number else None
        return found if found is not None and found.role == self.wire.model else None

    def calling(self, problem: Problem) -> Turn | None:
        """The model's turn that a problem is about: the one that it is in, or the one before."""
        turn = self.with_problem(problem)
        if turn is None or turn.role == self.wire.model:
            return turn
        return self.before(turn)

    def every(self, *kinds: str) -> Iterator[Placed]:
        """What the blocks of some kinds hold, in all turns."""
        for turn in self.turns:
            yield from turn.of(*kinds)


def expect_block(editor: Editor, wire: BlockWire, path: Path) -> None:
    """The repair fits only if this block is there; calls and results are recognised by ids."""
    block = editor.get(path)
    if wire.is_tagged or not isinstance(block, dict):
        expect_entry(editor, path)
        return
    for lens in (wire.call, wire.result):
        held = wire.inside(path, block, lens.kind)
        if held is not None and isinstance(held[1].get(lens.id_key), str):
            editor.expect((*held[0], lens.id_key))
            return
    editor.expect(path)
