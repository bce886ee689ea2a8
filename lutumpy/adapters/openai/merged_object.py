"""What arrives in pieces over a stream, kept as pieces: each is touched once, and joined when the whole is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["MergedObject", "join"]


def join(pieces: Sequence[str]) -> str:
    """The pieces as one text; a character that was cut in the middle of its surrogate pair is whole again."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text


class MergedObject:
    """An object that arrives in pieces: texts of the fields in `joined` are put together, of the others the last counts.

    `null`, and an empty text, never take the place of something that was there.
    """

    __slots__ = ("_fields", "_joined", "_pieces")

    def __init__(self, joined: frozenset[str], fields: Mapping[str, Any] | None = None) -> None:
        self._joined = joined
        self._fields: dict[str, Any] = {}
        self._pieces: dict[str, list[str]] = {}
        if fields is not None:
            self.add(fields)

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def add(self, piece: Mapping[str, Any]) -> None:
        """Take the next piece."""
        for name, value in piece.items():
            self.put(name, value)

    def put(self, name: str, value: Any) -> None:
        """Take the next piece of one field."""
        if name in self._joined and isinstance(value, str):
            pieces = self._pieces.get(name)
            if pieces is None:
                # Named among the fields too, so that they keep the order in which they came.
                self._fields.setdefault(name, None)
                pieces = self._pieces[name] = []
            pieces.append(value)
        elif value is None or value == "":
            self._fields.setdefault(name, value)
        else:
            self._fields[name] = value

    def pieces(self, name: str) -> Sequence[str]:
        """The pieces of a joined field so far."""
        return self._pieces.get(name, ())

    def gathering(self, name: str) -> list[str] | None:
        """The list that the pieces of a joined field go to, once there is one; it stays the same."""
        return self._pieces.get(name)

    def get(self, name: str) -> Any:
        """The last value of a field that isn't joined."""
        return self._fields.get(name)

    def whole(self) -> dict[str, Any]:
        """The object as one."""
        return {
            n: join(self._pieces[n]) if n in self._pieces else v for n, v in self._fields.items()
        }
