"""The messages of Converse as a pass finds them: blocks, calls and results with their paths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lutumpy.doctor.editor import Editor, Path
from lutumpy.doctor.mending import message_index
from lutumpy.errors import Problem
from lutumpy.rules.bedrock.limits import SERVER_TOOL

__all__ = ["Talk", "block_path", "expect_block", "part_path"]


class Talk:
    """The messages of a pass, as they were when it was made."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        # What the document holds changes while a pass mends it, but paths stay those of its start.
        self._blocks: dict[int, list[tuple[Path, dict[str, Any]]]] = {}
        self._roles: dict[int, str] = {}
        for index, message in enumerate(editor.document):
            if not isinstance(message, dict):
                continue
            role, content = message.get("role"), message.get("content")
            self._roles[index] = role if isinstance(role, str) else ""
            self._blocks[index] = [
                ((index, "content", number), block)
                for number, block in enumerate(content if isinstance(content, list) else ())
                if isinstance(block, dict)
            ]

    def role(self, index: int) -> str:
        """The role of a message; empty where there is none."""
        return self._roles.get(index, "")

    def blocks(self, index: int) -> list[tuple[Path, dict[str, Any]]]:
        """The blocks of a message."""
        return self._blocks.get(index, [])

    def of(self, index: int, key: str) -> list[tuple[Path, dict[str, Any]]]:
        """What stands under a key of the blocks of a message, with the paths of the blocks."""
        return [
            (path, block[key])
            for path, block in self.blocks(index)
            if isinstance(block.get(key), dict)
        ]

    def calls(self, index: int) -> list[tuple[Path, dict[str, Any]]]:
        """The calls that a program answers."""
        return [found for found in self.of(index, "toolUse") if found[1].get("type") != SERVER_TOOL]

    def every(self, key: str) -> Iterator[tuple[Path, dict[str, Any]]]:
        """What stands under a key of any block."""
        for index in self._blocks:
            yield from self.of(index, key)

    def with_problem(self, problem: Problem) -> int | None:
        """The index of the message that a problem is in, if it is an object."""
        index = message_index(problem)
        return index if index in self._blocks else None


def block_path(problem: Problem) -> Path:
    """The path of the block of a message that a problem is in."""
    return problem.path[:3]


def part_path(problem: Problem) -> Path:
    """The path of the block that a problem is in, or of the part of a result."""
    path = problem.path
    in_result = len(path) > 5 and path[3:5] == ("toolResult", "content")
    return path[:6] if in_result else path[:3]


def expect_block(editor: Editor, path: Path) -> None:
    """The repair fits only if this block is there; calls and results are told by their ids."""
    block = editor.get(path)
    for key in ("toolUse", "toolResult"):
        inner = block.get(key) if isinstance(block, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("toolUseId"), str):
            editor.expect((*path, key, "toolUseId"))
            return
    editor.expect(path)
