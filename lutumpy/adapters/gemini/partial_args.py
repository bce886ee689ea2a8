"""Arguments of a call that arrive value by value, each with its path (`streamFunctionCallArguments`
on Vertex AI).

Source: `PartialArg` of the discovery document (https://cloud.google.com/vertex-ai), and recorded
streams: texts come in pieces, the last of which is often empty.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any

from lutumpy.rules.gemini.fields import field

__all__ = ["PartialArguments"]

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_MOST = 10_000
"""The largest index of an array that is believed."""

_ABSENT: Any = object()


class PartialArguments:
    """Arguments as far as they have arrived.

    Attributes:
        value: The object.
    """

    __slots__ = ("_open", "_pieces", "value")

    def __init__(self, begun: Any = None) -> None:
        self.value: dict[str, Any] = dict(begun) if isinstance(begun, dict) else {}
        # Texts that may go on, by their paths, in pieces: joined once, at the end.
        self._pieces: dict[tuple[str | int, ...], list[str]] = {}
        self._open: set[tuple[str | int, ...]] = set()

    def add(self, piece: Any) -> None:
        """Take a `PartialArg`; one that says nothing, or whose path leads nowhere, is ignored."""
        path = _path_of(field(piece, "jsonPath"))
        if path is None or not isinstance(piece, Mapping):
            return
        value = _value_of(piece)
        if isinstance(value, str):
            if path in self._open:
                self._pieces[path].append(value)
            else:
                self._pieces[path] = [value]
                self._put(path, "")
            if field(piece, "willContinue") is True:
                self._open.add(path)
            else:
                self._open.discard(path)
        elif value is not _ABSENT:
            self._pieces.pop(path, None)
            self._open.discard(path)
            self._put(path, value)

    def finish(self) -> dict[str, Any]:
        """The arguments, when nothing more comes."""
        for path, pieces in self._pieces.items():
            self._put(path, "".join(pieces))
        self._pieces.clear()
        self._open.clear()
        return self.value

    def _put(self, path: tuple[str | int, ...], value: Any) -> None:
        place: Any = self.value
        for step, following in itertools.pairwise(path):
            inner: Any = [] if isinstance(following, int) else {}
            found = _get(place, step)
            if not isinstance(found, type(inner)):
                if not _set(place, step, inner):
                    return
                found = inner
            place = found
        _set(place, path[-1], value)


def _path_of(path: Any) -> tuple[str | int, ...] | None:
    if not isinstance(path, str) or not path.startswith("$"):
        return None
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return None
        name, index, *quoted = found.groups()
        if index is not None:
            steps.append(int(index) if len(index) < 6 else _MOST + 1)
        elif name is not None:
            steps.append(name)
        else:
            steps.append(re.sub(r"\\(.)", r"\1", next(text for text in quoted if text is not None)))
        at = found.end()
    if not steps or isinstance(steps[0], int):
        return None
    return tuple(steps)


def _value_of(piece: Mapping[str, Any]) -> Any:
    for name in ("stringValue", "numberValue", "boolValue"):
        value = field(piece, name)
        if value is not None:
            return _number(value) if name == "numberValue" else value
    has_null = "nullValue" in piece or "null_value" in piece
    if has_null:
        return None
    # The first piece of a text may be there in name alone.
    return "" if field(piece, "willContinue") is True else _ABSENT


def _number(value: Any) -> Any:
    """Whole numbers are written without a fraction, as in an answer that comes in one piece."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _get(place: Any, step: str | int) -> Any:
    if isinstance(place, dict):
        return place.get(step)
    if isinstance(place, list) and isinstance(step, int) and step < len(place):
        return place[step]
    return None


def _set(place: Any, step: str | int, value: Any) -> bool:
    if isinstance(place, dict):
        place[step] = value
        return True
    if isinstance(place, list) and isinstance(step, int) and step <= _MOST:
        place += [None] * (step + 1 - len(place))
        place[step] = value
        return True
    return False
