"""Follows one JSON text while it arrives, and notes where calls and their members stand in it.

Every character is looked at once, and the depth is a list, not the call stack, so neither length nor nesting of hostile
text matters. Nothing is decoded here: values stay the text that the model wrote.
"""

from __future__ import annotations

import re

from lutumpy.text_tools.tag_search import end_of

__all__ = ["Element", "JsonScanner", "Member"]

_SPACE = re.compile(r"[ \t\r\n]*")
# As many escapes as are worth a step of their own: every one of them takes memory until the match ends.
_STRING_REST = re.compile(r'[^"\\]*(?:\\.[^"\\]*){0,200}', re.DOTALL)
_SCALAR = re.compile(r"[-+.0-9A-Za-z_]+")
_LITERAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_SHOWN = 40


class Member:
    """A member of a call's object: where its key (without quotes) and its value stand. `end` is -1 while it is cut."""

    __slots__ = ("end", "key_end", "key_start", "start")

    def __init__(self, key_start: int, key_end: int, start: int) -> None:
        self.key_start: int = key_start
        self.key_end: int = key_end
        self.start: int = start
        self.end: int = -1


class Element:
    """What stands where a call is expected. `end` is -1 while it is cut."""

    __slots__ = ("end", "is_object", "members", "start")

    def __init__(self, start: int, *, is_object: bool) -> None:
        self.start: int = start
        self.end: int = -1
        self.is_object: bool = is_object
        self.members: list[Member] = []


class JsonScanner:
    """One JSON object or array: a call, an array of calls, or (with `calls=False`) any value.

    Escapes and control characters in strings are not checked, since they don't change where a string ends; whoever decodes
    the text finds them.

    Args:
        offset: Where the JSON begins; all places are counted from the same origin.
        calls: Whether it holds calls.

    Attributes:
        offset: Where the next character stands.
        elements: Calls, or what stands in their place.
        done: The value is complete.
        broken: What was expected where it stopped being JSON; `None` as long as it is.
        string_start: Where the string stands that is open or was read last; -1 before the first.
    """

    __slots__ = (
        "_call_depth",
        "_calls",
        "_escaped",
        "_expected",
        "_in_string",
        "_key_end",
        "_key_start",
        "_key_string",
        "_scalar",
        "_stack",
        "broken",
        "done",
        "elements",
        "offset",
        "string_start",
    )

    def __init__(self, offset: int = 0, *, calls: bool = True) -> None:
        self.offset: int = offset
        self.elements: list[Element] = []
        self.done: bool = False
        self.broken: str | None = None
        self.string_start: int = -1
        self._calls = calls
        # How many brackets are open inside of a call's object: 1, or 2 in an array of calls.
        self._call_depth = 1 if calls else -1
        self._stack: list[str] = []
        self._expected = "value"
        self._in_string = False
        self._escaped = False
        self._key_string = False
        self._key_start = self._key_end = 0
        self._scalar: list[str] | None = None

    @property
    def in_string(self) -> bool:
        """Whether a string is open."""
        return self._in_string

    @property
    def awaits_element(self) -> bool:
        """Whether another element of the array of calls has to follow."""
        return (
            self._call_depth == 2
            and len(self._stack) == 1
            and self._expected in ("value", "value or end")
        )

    def feed(self, text: str, pos: int) -> int:
        """Follow `text` from `pos`; gives where it stopped: at the end, behind the value, or at what is no JSON."""
        shift = self.offset - pos
        end = len(text)
        while pos < end and not self.done and self.broken is None:
            if self._in_string:
                pos = self._string(text, pos, shift)
                continue
            if self._scalar is not None:
                match = _SCALAR.match(text, pos)
                if match is not None:
                    self._scalar.append(match.group())
                    pos = match.end()
                    continue
                self._end_scalar(pos + shift)
                continue
            pos = end_of(_SPACE, text, pos)
            if pos < end and self._token(text, pos, pos + shift):
                pos += 1
        self.offset = pos + shift
        return pos

    def _string(self, text: str, pos: int, shift: int) -> int:
        if self._escaped:
            self._escaped = False
            return pos + 1
        pos = end_of(_STRING_REST, text, pos)
        if pos == len(text):
            return pos
        if text[pos] == "\\":
            # The last character of this piece, or of what one step takes.
            self._escaped = True
            return pos + 1
        pos += 1
        self._in_string = False
        if self._key_string:
            self._key_end = pos - 1 + shift
            self._expected = "colon"
        else:
            self._value_ended(pos + shift)
        return pos

    def _token(self, text: str, pos: int, offset: int) -> bool:
        """Take the character at `pos`, unless something is wrong with it or it begins a scalar."""
        char = text[pos]
        expected = self._expected
        if expected in ("value", "value or end"):
            if char == "]" and expected == "value or end":
                return self._close(offset)
            return self._begin_value(text, pos, offset)
        if expected in ("key", "key or end"):
            if char == '"':
                self._begin_string(offset, key=True)
                return True
            if char == "}" and expected == "key or end":
                return self._close(offset)
            return self._break(
                "a name in double quotes" + (' or "}"' if expected == "key or end" else ""),
                text,
                pos,
            )
        if expected == "colon":
            if char != ":":
                return self._break('":"', text, pos)
            self._expected = "value"
            return True
        closing = "}" if self._stack[-1] == "{" else "]"
        if char == ",":
            self._expected = "key" if closing == "}" else "value"
            return True
        if char == closing:
            return self._close(offset)
        return self._break(f'"," or "{closing}"', text, pos)

    def _begin_value(self, text: str, pos: int, offset: int) -> bool:
        char = text[pos]
        if char not in '{["' and _SCALAR.match(char) is None:
            return self._break("a JSON value", text, pos)
        depth = len(self._stack)
        if depth == 0 and self._calls:
            self._call_depth = 2 if char == "[" else 1
        if depth == self._call_depth - 1:
            self.elements.append(Element(offset, is_object=char == "{"))
        elif depth == self._call_depth and self.elements[-1].is_object:
            self.elements[-1].members.append(Member(self._key_start, self._key_end, offset))
        if char in "{[":
            self._stack.append(char)
            self._expected = "key or end" if char == "{" else "value or end"
            return True
        if char == '"':
            self._begin_string(offset, key=False)
            return True
        self._scalar = []
        return False

    def _begin_string(self, offset: int, *, key: bool) -> None:
        self._in_string = True
        self._key_string = key
        self.string_start = offset
        if key:
            self._key_start = offset + 1

    def _end_scalar(self, offset: int) -> None:
        written = "".join(self._scalar or ())
        self._scalar = None
        if _LITERAL.fullmatch(written) is None:
            self.broken = f"a JSON value, found {written[:_SHOWN]!r}"
        else:
            self._value_ended(offset)

    def _close(self, offset: int) -> bool:
        self._stack.pop()
        self._value_ended(offset + 1)
        return True

    def _value_ended(self, offset: int) -> None:
        depth = len(self._stack)
        if depth == self._call_depth - 1:
            self.elements[-1].end = offset
        elif depth == self._call_depth and self.elements[-1].is_object:
            self.elements[-1].members[-1].end = offset
        if depth == 0:
            self.done = True
        self._expected = "more"

    def _break(self, wanted: str, text: str, pos: int) -> bool:
        self.broken = f"{wanted}, found {text[pos]!r}"
        return False
