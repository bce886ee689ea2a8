"""Follows one JSON text while it arrives, and notes the places of calls and their members."""

# Why a decoder won't do. The standard one takes a whole text, and three things have to be known
# before the text is whole: where the JSON ends (text behind it is the user's), that it is broken
# (from there on the next end tag ends the block, whatever quotes are around it), and which calls
# of an array are complete. Counting brackets and decoding at the end would tell the first of these
# only: in `{a: "}` the count never comes back to zero, and everything up to the end of the answer
# would belong to the call. A decoder also recurses and rebuilds values, and arguments stay the
# very text that the model wrote.
#
# Every character is looked at once, and the depth is a list, not the call stack, so neither length
# nor nesting of hostile text matters.
#
# What `_expected` may be, and what follows:
#
#     expected         at               may come                then
#     ---------------  ---------------  ----------------------  --------------------------------
#     value            start, after :   { [ " or a scalar       key or end, value or end, ...
#                      and , in arrays
#     value or end     behind [         the same, or ]          the same, or the value has ended
#     key or end       behind {         " or }                  in a string, or it has ended
#     key              behind , in {}   "                       in a string
#     colon            behind a key     :                       value
#     more             behind a value   , or the closing one    key or value, or it has ended
#
# Beside these, two conditions last over many characters: `_in_string` (with `_escaped` where a
# piece of text ends in a backslash) and `_scalar`, the pieces of a number, `true`, `false`, `null`.

from __future__ import annotations

import re
from typing import Literal

from lutumpy.text_tools.tag_search import end_of

__all__ = ["Element", "JsonScanner", "Member"]

Expected = Literal["value", "value or end", "key", "key or end", "colon", "more"]

_SPACE = re.compile(r"[ \t\r\n]*")
# As many escapes as are worth a step of their own: each takes memory until the match ends.
_STRING_REST = re.compile(r'[^"\\]*(?:\\.[^"\\]*){0,200}', re.DOTALL)
_SCALAR = re.compile(r"[-+.0-9A-Za-z_]+")
_LITERAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_MOST_SHOWN = 40


class Member:
    """The places of the key (without quotes) and the value of a call's member.

    `end` is -1 while the value is not complete.
    """

    __slots__ = ("end", "key_end", "key_start", "start")

    def __init__(self, key_start: int, key_end: int, start: int) -> None:
        self.key_start: int = key_start
        self.key_end: int = key_end
        self.start: int = start
        self.end: int = -1


class Element:
    """A value in the place of a call. `end` is -1 while it is not complete."""

    __slots__ = ("end", "is_object", "members", "start")

    def __init__(self, start: int, *, is_object: bool) -> None:
        self.start: int = start
        self.end: int = -1
        self.is_object: bool = is_object
        self.members: list[Member] = []


class JsonScanner:
    """One JSON object or array: a call, an array of calls, or (with `calls=False`) any value.

    Escapes and control characters in strings are not checked, since they don't change where a
    string ends; whoever decodes the text finds them.

    Args:
        offset: Where the JSON begins; all places are counted from the same origin.
        calls: Whether it holds calls.

    Attributes:
        offset: The place of the next character.
        elements: Calls, or other values in their place.
        done: The value is complete.
        broken: What was expected where it stopped being JSON; `None` as long as it is JSON.
        string_start: The place of the open or the last string; -1 before the first.
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
        self._expected: Expected = "value"
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
        in_array = self._call_depth == 2 and len(self._stack) == 1
        return in_array and self._expected in ("value", "value or end")

    def feed(self, text: str, pos: int) -> int:
        """Follow `text` from `pos` on.

        Returns:
            Where it stopped: at the end, behind the value, or at what is not JSON.
        """
        shift = self.offset - pos
        end = len(text)
        while pos < end and not self.done and self.broken is None:
            if self._in_string:
                pos = self._follow_string(text, pos, shift)
                continue
            if self._scalar is not None:
                match = _SCALAR.match(text, pos)
                if match is None:
                    self._end_scalar(pos + shift)
                else:
                    self._scalar.append(match.group())
                    pos = match.end()
                continue
            pos = end_of(_SPACE, text, pos)
            if pos < end and self._take_token(text, pos, pos + shift):
                pos += 1
        self.offset = pos + shift
        return pos

    def _follow_string(self, text: str, pos: int, shift: int) -> int:
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
            self._end_value(pos + shift)
        return pos

    def _take_token(self, text: str, pos: int, offset: int) -> bool:
        """Take the character at `pos`; says whether it was taken.

        It is not taken where it is wrong, or begins a scalar.
        """
        char = text[pos]
        expected = self._expected
        if expected in ("value", "value or end"):
            if char == "]" and expected == "value or end":
                return self._close_bracket(offset)
            return self._begin_value(text, pos, offset)
        if expected in ("key", "key or end"):
            if char == '"':
                self._begin_string(offset, key=True)
                return True
            if char == "}" and expected == "key or end":
                return self._close_bracket(offset)
            or_end = ' or "}"' if expected == "key or end" else ""
            return self._break(f"a name in double quotes{or_end}", text, pos)
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
            return self._close_bracket(offset)
        return self._break(f'"," or "{closing}"', text, pos)

    def _begin_value(self, text: str, pos: int, offset: int) -> bool:
        """As `_take_token`, where a value begins."""
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
            self.broken = f"a JSON value, found {written[:_MOST_SHOWN]!r}"
        else:
            self._end_value(offset)

    def _close_bracket(self, offset: int) -> bool:
        self._stack.pop()
        self._end_value(offset + 1)
        return True

    def _end_value(self, offset: int) -> None:
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
