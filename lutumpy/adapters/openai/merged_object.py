"""A JSON object that arrives as deltas over a stream, merged into the object that they make up."""

# A text of a million characters may arrive in as many deltas, so none of them may cost a copy of
# what came before. The deltas of a text are kept in a list, each is touched once, and they are
# joined when somebody asks for the whole.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy.plain.json_values import copied

__all__ = ["MergedObject", "join_text"]


def join_text(deltas: Sequence[str]) -> str:
    """The deltas as one text.

    A host may cut a character outside of the BMP in the middle of its surrogate pair; the two
    halves become one character again.
    """
    text = "".join(deltas)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text


class MergedObject:
    """An object that arrives as deltas, which are objects with some of its fields.

    The fields named in `text_fields` grow: their deltas are joined. Of every other field the last
    value counts, but `null` and the empty text never replace something that was there: hosts send
    them in later deltas for "nothing new". Objects and lists are copied: who feeds a stream may
    change its events afterwards.

    Args:
        text_fields: The names of the fields that grow.
        first: The first delta.
    """

    __slots__ = ("_deltas", "_fields", "_text_fields")

    def __init__(self, text_fields: frozenset[str], first: Mapping[str, Any] | None = None) -> None:
        self._text_fields = text_fields
        self._fields: dict[str, Any] = {}
        self._deltas: dict[str, list[str]] = {}
        if first is not None:
            self.add(first)

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    @property
    def has_objects(self) -> bool:
        """Whether a field that doesn't grow is an object."""
        return any(isinstance(value, dict) for value in self._fields.values())

    def add(self, delta: Mapping[str, Any]) -> None:
        """Merge the next delta."""
        for name, value in delta.items():
            self.add_field(name, value)

    def add_field(self, name: str, value: Any) -> None:
        """Merge the next delta of one field."""
        if name in self._text_fields and isinstance(value, str):
            deltas = self._deltas.get(name)
            if deltas is None:
                # A growing field has a place among the others, so that their order stays the one
                # in which they came.
                self._fields.setdefault(name, None)
                deltas = self._deltas[name] = []
            deltas.append(value)
        elif value is None or value == "":
            self._fields.setdefault(name, value)
        else:
            self._fields[name] = copied(value) if type(value) in (dict, list) else value

    def text_deltas(self, name: str) -> Sequence[str]:
        """The deltas of a growing field so far."""
        return self._deltas.get(name, ())

    def growing_list(self, name: str) -> list[str] | None:
        """The list that the deltas of a growing field are appended to; `None` before the first one.

        It stays the same list, so whoever has it may append to it directly.
        """
        return self._deltas.get(name)

    def get(self, name: str) -> Any:
        """The value so far of a field that doesn't grow."""
        return self._fields.get(name)

    def whole(self) -> dict[str, Any]:
        """The object that the deltas so far make up."""
        whole = dict(self._fields)
        for name, deltas in self._deltas.items():
            whole[name] = join_text(deltas)
        return whole
