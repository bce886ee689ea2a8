"""The messages of Messages as the API reads them: neighbours of one role are one turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import message_index
from lutumpy.errors import Problem

__all__ = ["Conversation", "Turn", "block_path"]


@dataclass(slots=True)
class Turn:
    """Neighbouring messages of one role.

    Attributes:
        role: Their role.
        first: The index of the first of them.
        last: The index of the last.
        blocks: The blocks in them, each with its path. A content that is a text is one block whose
            path ends with `content`.
    """

    role: str
    first: int
    last: int
    blocks: list[tuple[Path, dict[str, Any]]] = field(default_factory=list)

    def of(self, *kinds: str) -> list[tuple[Path, dict[str, Any]]]:
        """The blocks of some types."""
        return [(path, block) for path, block in self.blocks if block.get("type") in kinds]


class Conversation:
    """The turns of a pass. It shows the messages as they were when it was made."""

    def __init__(self, editor: Editor) -> None:
        self.turns: list[Turn] = []
        self._number: dict[int, int] = {}
        for index, message in enumerate(editor.document):
            if not isinstance(message, dict):
                continue
            # A role that isn't a text joins nothing with its neighbours; another rule mends it.
            role = message.get("role")
            role = role if isinstance(role, str) else ""
            if not self.turns or self.turns[-1].role != role:
                self.turns.append(Turn(role, index, index))
            turn = self.turns[-1]
            turn.last = index
            self._number[index] = len(self.turns) - 1
            turn.blocks += _blocks_of(index, message.get("content"))

    def at(self, index: int) -> Turn | None:
        """The turn that a message belongs to."""
        number = self._number.get(index)
        return self.turns[number] if number is not None else None

    def with_problem(self, problem: Problem) -> Turn | None:
        """The turn that a problem is in."""
        index = message_index(problem)
        return self.at(index) if index is not None else None

    def after(self, turn: Turn) -> Turn | None:
        """The next turn, if it is the user's."""
        number = self._number[turn.first] + 1
        found = self.turns[number] if number < len(self.turns) else None
        return found if found is not None and found.role == "user" else None


def _blocks_of(index: int, content: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    if isinstance(content, str) and content:
        yield (index, "content"), {"type": "text", "text": content}
    for number, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, dict):
            yield (index, "content", number), block


def block_path(problem: Problem) -> Path:
    """The path of the block that a problem is in: one of a message, or one inside a result."""
    path = problem.path
    is_inside_result = len(path) > 4 and path[3] == "content" and isinstance(path[4], int)
    return path[:5] if is_inside_result else path[:3]
