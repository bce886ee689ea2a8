"""Arguments of a call that arrive value by value, each with its path (`streamFunctionCallArguments`
on Vertex AI).

Source: `PartialArg` of the discovery document (https://cloud.google.com/vertex-ai), the paths of
RFC 9535 that it refers to, and recorded streams: texts come in pieces, the last of which is often
empty.
"""

# What is hard here
# -----------------
# A call runs only with the arguments that were sent, all of them. So each piece has one place and
# each place one value; what doesn't fit is a problem of the call, never left out:
#
#   piece                                        the place is
#                                                new        begun       finished
#   -------------------------------------------  ---------  ----------  ---------
#   a text that goes on                          begun      begun       a problem
#   a text that doesn't                          finished   finished    a problem
#   another value                                finished   a problem   a problem
#   no value, but one is to follow               announced  a problem   a problem
#
# An announced place takes what a new one takes. At the end no place may be begun or announced, and
# no array may have a gap. Elements may come in any order: they are kept by their indexes, so an
# index costs nothing, however large it is.

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from lutumpy.plain.json_values import clean_text, decode, encode_text
from lutumpy.plain.preview import shorten
from lutumpy.rules.gemini.fields import field, listed_in, spellings
from lutumpy.rules.nesting import MAX_NESTING

__all__ = ["PIECES_AFTER_END", "PartialArguments"]

PIECES_AFTER_END = (
    "More of the arguments arrived after they had ended, so the call was not run. Call the tool "
    "again with all of its arguments."
)
"""What the model is told of a call that pieces follow though it was complete."""

_Step: TypeAlias = "str | int"

# A name after a dot is taken though RFC 9535 wants it quoted (`$.content-type`), as long as it
# can't be anything else.
_STEP = re.compile(
    r"""[ \t\r\n]* (?:
        \. (?P<name> [^\x00-\x20.\[\]*'"\\]+ )
      | \[ [ \t\r\n]* (?:
            (?P<index> 0 | [1-9][0-9]{0,15} )
          | '(?P<single> (?: [^'\\\x00-\x1f] | \\. )* )'
          | "(?P<double> (?: [^"\\\x00-\x1f] | \\. )* )"
        ) [ \t\r\n]* \]
    )""",
    re.VERBOSE,
)
_ESCAPE_OR_QUOTE = re.compile(r'\\.|"')

_KINDS = {
    spelling: kind
    for kind in ("stringValue", "numberValue", "boolValue", "nullValue")
    for spelling in spellings([kind])
}
_TYPES: dict[str, tuple[type, ...]] = {
    "stringValue": (str,),
    "numberValue": (int, float),
    "boolValue": (bool,),
}
_PATH_SHOWN = 100

_ABSENT: Any = object()


class _PieceError(ValueError):
    """Why a piece has no place; the text goes on after "piece 3 ("$.a") ..."."""


class _Text:
    """A text that goes on, or with no pieces a value that was announced."""

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: list[str] = []


class _Branch:
    """An object or an array that is being filled: its members by their names or indexes."""

    __slots__ = ("is_array", "members")

    def __init__(self, is_array: bool) -> None:
        self.is_array = is_array
        self.members: dict[_Step, Any] = {}

    def branch_at(self, step: _Step, is_array: bool) -> _Branch | None:
        """The branch that is at a step; `None` where there is none."""
        found = self.members.get(step, _ABSENT)
        if found is _ABSENT:
            return None
        if isinstance(found, _Branch) and found.is_array == is_array:
            return found
        raise _PieceError(f"leads into something that is not an {_word(is_array)}")

    def put(self, step: _Step, value: Any, goes_on: bool) -> None:
        """Put what a piece says at its place."""
        found = self.members.get(step, _ABSENT)
        if found is _ABSENT:
            found = self.members[step] = _Text()
        elif not isinstance(found, _Text):
            raise _PieceError("is for a value that is complete")
        elif value is _ABSENT:
            raise _PieceError("holds no value")
        if isinstance(value, str):
            found.pieces.append(value)
            if not goes_on:
                self.members[step] = "".join(found.pieces)
        elif found.pieces:
            raise _PieceError("goes on a text with something else")
        elif value is _ABSENT:
            if not goes_on:
                raise _PieceError("holds no value")
        elif goes_on:
            raise _PieceError("says that a value goes on which is not a text")
        else:
            self.members[step] = value

    def value(self) -> Any:
        """The object or array, when nothing more comes; what is in it is complete."""
        if any(isinstance(member, _Text) for member in self.members.values()):
            raise _PieceError("a text has no end")
        if not self.is_array:
            return self.members
        indexes = range(len(self.members))
        if any(index not in self.members for index in indexes):
            raise _PieceError("an array has gaps")
        return [self.members[index] for index in indexes]


class PartialArguments:
    """Arguments as far as they have arrived.

    Attributes:
        problem: Why they aren't the arguments that were sent, in words for the model; `None` while
            nothing is wrong.
    """

    __slots__ = ("_branches", "_count", "_root", "_taken", "problem")

    def __init__(self) -> None:
        self.problem: str | None = None
        self._root = _Branch(is_array=False)
        # Each with where it is; what holds it comes before it.
        self._branches: list[tuple[_Branch, _Step, _Branch]] = []
        self._taken: list[Any] = []
        self._count = 0

    def take(self, call: Mapping[str, Any]) -> None:
        """Take what one part says of the call's arguments: whole members, and pieces."""
        members, pieces = field(call, "args"), field(call, "partialArgs")
        if members is not None:
            self._taken.append({"args": members})
            self._try_to_add(self._add_members, members)
        listed = listed_in(call, "partialArgs")
        if pieces is not None and not isinstance(pieces, (Mapping, list, tuple)):
            listed = [pieces]
        for piece in listed:
            self._count += 1
            self._taken.append(piece)
            self._try_to_add(self._add_piece, piece)

    def finish(self) -> dict[str, Any]:
        """The arguments, when nothing more comes; an empty object where there is a `problem`."""
        if self.problem is None:
            try:
                for holder, step, branch in reversed(self._branches):
                    holder.members[step] = branch.value()
                arguments: dict[str, Any] = self._root.value()
                return arguments
            except _PieceError as error:
                self.problem = _explain(f"they are not complete: {error}")
        return {}

    def as_sent(self) -> str:
        """Everything that arrived, as a JSON array."""
        return encode_text(self._taken)

    def _try_to_add(self, add: Any, value: Any) -> None:
        if self.problem is not None:
            return
        try:
            add(value)
        except _PieceError as error:
            place = field(value, "jsonPath")
            shown = (
                f" ({shorten(clean_text(place), _PATH_SHOWN)})" if isinstance(place, str) else ""
            )
            which = f"piece {self._count}{shown}" if self._count else "what came with them"
            self.problem = _explain(f"{which} {error}")

    def _add_members(self, members: Any) -> None:
        if not isinstance(members, Mapping):
            raise _PieceError("is not an object")
        for name, value in members.items():
            if name in self._root.members:
                raise _PieceError("holds a value for a place that has one")
            self._root.members[name] = value

    def _add_piece(self, piece: Any) -> None:
        if not isinstance(piece, Mapping):
            raise _PieceError("is not an object")
        path, value = _read_path(field(piece, "jsonPath")), _read_value(piece)
        branch = self._root
        for step, following in itertools.pairwise(path):
            is_array = isinstance(following, int)
            inner = branch.branch_at(step, is_array)
            if inner is None:
                inner = branch.members[step] = _Branch(is_array)
                self._branches.append((branch, step, inner))
            branch = inner
        branch.put(path[-1], value, goes_on=field(piece, "willContinue") is True)


def _explain(what: str) -> str:
    return (
        f"The arguments arrived in pieces that don't fit together: {what}. The call was not run. "
        "Call the tool again with all of its arguments."
    )


def _word(is_array: bool) -> str:
    return "array" if is_array else "object"


def _read_path(path: Any) -> list[_Step]:
    """The steps from the arguments to one value.

    Raises:
        _PieceError: it is not such a path, or too deep.
    """
    if not isinstance(path, str):
        raise _PieceError("has no path")
    steps: list[_Step] = []
    at = 1
    while at < len(path) and path[0] == "$":
        found = _STEP.match(path, at)
        if found is None:
            break
        name, index, single, double = found.groups()
        if index is not None:
            steps.append(int(index))
        elif name is not None:
            steps.append(_whole_text(name))
        else:
            steps.append(_unescape(single, double))
        at = found.end()
    if at != len(path) or not steps or isinstance(steps[0], int):
        raise _PieceError("has a path that does not lead to one value of an object")
    if len(steps) > MAX_NESTING:
        raise _PieceError(f"is nested more than {MAX_NESTING} levels deep")
    return steps


def _unescape(single: str | None, double: str | None) -> str:
    """A name that was in quotes, which are escaped as in JSON."""
    quoted = double or ""
    if single is not None:
        quoted = _ESCAPE_OR_QUOTE.sub(_as_in_double_quotes, single)
    try:
        return _whole_text(str(decode(f'"{quoted}"')))
    except ValueError:
        raise _PieceError("has a path with an unknown escape") from None


def _as_in_double_quotes(found: re.Match[str]) -> str:
    return {"\\'": "'", '"': '\\"'}.get(found[0], found[0])


def _whole_text(name: str) -> str:
    if clean_text(name) != name:
        raise _PieceError("has a path with half a character")
    return name


def _read_value(piece: Mapping[str, Any]) -> Any:
    """The value that a piece holds; `_ABSENT` where it holds none.

    Raises:
        _PieceError: it holds several, or one that doesn't fit its kind.
    """
    found = [(key, value) for key, value in piece.items() if str(key).lower().endswith("value")]
    filled = [(key, value) for key, value in found if value is not None]
    if not filled:
        # A null is written as the name of its kind, or as itself.
        is_null = len(found) == 1 and _KINDS.get(found[0][0]) == "nullValue"
        return None if is_null else _ABSENT
    if len(filled) > 1:
        raise _PieceError("holds several values")
    [(key, value)] = filled
    kind = _KINDS.get(key)
    if kind == "nullValue" and value in ("NULL_VALUE", "null_value", 0) and value is not False:
        return None
    if kind is None or type(value) not in _TYPES.get(kind, ()):
        raise _PieceError("holds a value of an unknown kind")
    return _whole_number(value) if isinstance(value, float) else value


def _whole_number(value: float) -> Any:
    """Whole numbers are written without a fraction, as in an answer that comes in one piece."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
