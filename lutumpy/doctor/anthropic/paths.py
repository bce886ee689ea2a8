"""Where the block of Messages is that a problem is in."""

from __future__ import annotations

from lutumpy.doctor.editor import Path
from lutumpy.errors import Problem

__all__ = ["block_path"]


def block_path(problem: Problem) -> Path:
    """The path of the block that a problem is in: one of a message, or one inside a result."""
    path = problem.path
    is_inside_result = len(path) > 4 and path[3] == "content" and isinstance(path[4], int)
    return path[:5] if is_inside_result else path[:3]
