"""Where the block of Converse is that a problem is in."""

from __future__ import annotations

from lutumpy.doctor.editor import Path
from lutumpy.errors import Problem

__all__ = ["part_path"]


def part_path(problem: Problem) -> Path:
    """The path of the block that a problem is in, or of the part of a result."""
    path = problem.path
    in_result = len(path) > 5 and path[3:5] == ("toolResult", "content")
    return path[:6] if in_result else path[:3]
