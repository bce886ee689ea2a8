"""Tools whose names one API refuses, though a toolset takes them: the names under which that API is
told of them (rule R2).
"""

# What is hard here
# -----------------
# A replaced name has to be the same in the list of tools and in the history, in every process and
# whatever else is offered: providers cache the beginning of a request by its bytes. And it has to
# be found again when the model calls it, by whoever reads the answer, which doesn't say what was
# offered. So a replacement depends on the name alone: it has a part that can be read, and a digest
# by which it is known again. A `Renamer` can't do this: what it gives depends on what it met.
#
# Two tools never get one name: a name that looks like a replacement is replaced, too, so what is
# sent as it is and what is replaced never meet.

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = [
    "REPLACED_PREFIX",
    "TOOL_NAME",
    "UNNAMED",
    "ToolNames",
    "names_by_digest",
    "replaced_digest",
]

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What a toolset takes as a name, as a whole (rule D1)."""

REPLACED_PREFIX = "tool_"
"""How every replacement begins."""

UNNAMED = "unknown_tool"
"""The name, in a history, of a call that came without one: APIs refuse an empty one."""

_DIGITS = 16
_REPLACEMENT = rf"(?s:{REPLACED_PREFIX}(?:.*_)?([0-9a-f]{{{_DIGITS}}}))"
_UNREADABLE = r"[^a-zA-Z0-9_-]"


class ToolNames:
    """The names of tools that one API takes.

    Args:
        pattern: What a whole name has to match; names of letters, digits, `_` and `-` that begin
            with a letter have to be among them.
        most: The most characters of a name; at least 32.
    """

    __slots__ = ("_most", "_pattern")

    def __init__(self, pattern: re.Pattern[str], most: int) -> None:
        self._pattern = pattern
        self._most = most

    def __call__(self, name: str) -> str:
        """The name under which the API is told of a tool: its own, or another one in its place."""
        is_taken = len(name) <= self._most and self._pattern.fullmatch(name) is not None
        if is_taken and replaced_digest(name) is None:
            return name
        from lutumpy.plain.clean_names import with_digest  # rare, and slow to import

        readable = REPLACED_PREFIX + re.sub(_UNREADABLE, "_", name)
        return with_digest(name, readable, self._most, _DIGITS)

    def of_offered(self, name: str) -> str:
        """The same for a tool that is offered. What no toolset takes as a name stays as it is, for
        the API's rules to refuse.
        """
        return self(name) if TOOL_NAME.fullmatch(name) is not None else name


def replaced_digest(name: str) -> str | None:
    """The digest in a name that stands for another one; `None` in any other name."""
    if not name.startswith(REPLACED_PREFIX):
        return None
    found = re.fullmatch(_REPLACEMENT, name)
    return None if found is None else found[1]


def names_by_digest(names: Iterable[str]) -> dict[str, str]:
    """The names by their digests, to find again those that were replaced."""
    from lutumpy.plain.clean_names import digest_of  # rare, and slow to import

    return {digest_of(name, _DIGITS): name for name in names}
