"""What repairs write: texts for the model, and ids and names that every API takes.

Nothing here is random: the same history gets the same ids and names each time.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from lutumpy.core.tool_names import UNNAMED
from lutumpy.plain import json_values
from lutumpy.plain.json_values import INVALID_JSON, refuse_constant

INTERRUPTED = (
    "The call was interrupted: no result of it was recorded, "
    "and it is not known whether the tool ran."
)
"""The result of a call that nobody answered."""

NO_TEXT = "The tool failed and said nothing."
"""The text of an error without one."""

_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_ID_DIGITS = 24


class Fresh:
    """Makes ids or names that are not in use, from the ones that they replace.

    Args:
        taken: Those in use.
        limit: How many characters one may have.
    """

    def __init__(self, taken: Iterable[str], limit: int) -> None:
        self._taken = set(taken)
        self._limit = limit
        self._numbers: dict[str, int] = {}

    def id(self, old: Any, prefix: str = "call_") -> str:
        """A new id for one that the API refuses: its text if it is a number, else a digest of it.

        Where there was no id, a counted one.
        """
        if isinstance(old, (int, float)) and not isinstance(old, bool):
            old = str(old)
            if self._fits(old):
                return self._take(old)
        if not isinstance(old, str) or not old:
            return self._counted(f"{prefix}recovered")
        # A digest, and not a beginning: ids that are too long often differ at their ends.
        digest = hashlib.sha256(old.encode("utf-8", "surrogatepass")).hexdigest()
        return self._unused(f"{prefix}{digest[:_ID_DIGITS]}")

    def another(self, old: str) -> str:
        """A new id for one that is used twice."""
        return self._counted(_NOT_IN_A_NAME.sub("_", old))

    def name(self, old: Any) -> str:
        """A tool's name that every API takes: what is refused becomes `_`."""
        if not isinstance(old, str) or not old:
            return UNNAMED
        return self._unused(_NOT_IN_A_NAME.sub("_", old)[: self._limit])

    def _fits(self, candidate: str) -> bool:
        usable = not _NOT_IN_A_NAME.search(candidate) and len(candidate) <= self._limit
        return usable and candidate not in self._taken

    def _unused(self, candidate: str) -> str:
        return self._take(candidate) if candidate not in self._taken else self._counted(candidate)

    def _counted(self, base: str) -> str:
        number = self._numbers.get(base, 1)
        while True:
            number += 1
            ending = f"_{number}"
            candidate = base[: self._limit - len(ending)] + ending
            if candidate not in self._taken:
                self._numbers[base] = number
                return self._take(candidate)

    def _take(self, candidate: str) -> str:
        self._taken.add(candidate)
        return candidate


def as_text(value: Any) -> str:
    """The JSON text of something that should have been a text."""
    return json_values.encode_text(value)


def as_object(value: Any) -> dict[str, Any]:
    """Arguments for an API that takes objects; what can't be read is kept under `INVALID_JSON`."""
    # Models write nothing, white space or `null` when a tool takes no arguments.
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    read = value
    if isinstance(value, str):
        try:
            read = json.loads(value, parse_constant=refuse_constant)
        except (ValueError, RecursionError):
            return {INVALID_JSON: value}
    if isinstance(read, dict):
        return read
    if read is None:
        return {}
    return {INVALID_JSON: value if isinstance(value, str) else as_text(value)}


def as_arguments(value: Any) -> str:
    """Arguments for an API that takes texts: the text of a JSON object, whatever there was."""
    return as_text(as_object(value))


def text_arguments(value: Any) -> str:
    """Arguments for an API that takes texts; a text stays as it is, JSON or not."""
    return value if isinstance(value, str) else as_arguments(value)


def shorten_to_fit(text: str, limit: int, wrap: Callable[[str], str]) -> str:
    """A beginning of a text, as long as it may be when it is wrapped, or a quarter shorter.

    Args:
        text: The text.
        limit: How many characters the wrapped text may have.
        wrap: Puts a beginning into its form; escapes can make that much longer.
    """
    length = limit
    while True:
        # How long a wrapped text is can't be foreseen: escapes make up to six characters of one.
        length = length * 3 // 4
        wrapped = wrap(text[:length])
        if len(wrapped) <= limit:
            return wrapped
