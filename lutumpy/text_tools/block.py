"""One block of calls, from its start tag to its end, while it arrives."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lutumpy.text_tools.json_scanner import JsonScanner
from lutumpy.text_tools.protocol import ParsedCall
from lutumpy.text_tools.syntax import CallSyntax
from lutumpy.text_tools.tag_search import TagSearch, end_of
from lutumpy.text_tools.written_calls import (
    broken_detail,
    cut_calls,
    cut_detail,
    element_call,
    spoiled,
)

__all__ = ["Block", "BlockTags"]

_SPACE = re.compile(r"\s*")
_FENCE = re.compile(r"[`~]+")
_INFO = re.compile(r"[\w+#. \t-]*")
_NAME = re.compile(r"[\w.:-]*")
_ID = re.compile(r"[\w-]*")


class BlockTags:
    """What is looked for in the blocks of one syntax.

    Args:
        syntax: How its calls are written.
        starts: The start tags of all syntaxes of the parser.
    """

    __slots__ = ("after_name", "ends", "ends_or_starts", "form", "syntax")

    def __init__(self, syntax: CallSyntax, starts: Sequence[str]) -> None:
        self.syntax: CallSyntax = syntax
        self.ends: TagSearch = TagSearch(syntax.ends)
        self.ends_or_starts: TagSearch = TagSearch([*syntax.ends, *starts])
        self.after_name: TagSearch = TagSearch(
            [tag for tag in (syntax.name_end, syntax.call_id) if tag]
        )
        self.form: str = syntax.spelled("tool_name", "{...}")


class _Value:
    """A JSON value in the block, with the bare name before it where there is one."""

    __slots__ = ("name", "scanner", "start")

    def __init__(self, name: str | None, start: int) -> None:
        self.name = name
        self.start = start
        self.scanner = JsonScanner(start, calls=name is None)


class Block:
    """Fed with the text behind a start tag until it is `closed`.

    Args:
        tags: What to look for.
        quoted: It stands in a code block: what doesn't begin like a call is text there.

    Attributes:
        raw: The pieces of the block as they were written, start tag included.
        calls: Its calls, when it is closed.
        is_text: It turned out to be none.
        is_empty: It is closed, and holds no call: its JSON is an empty array.
        returned: What was taken from the text behind it and belongs there.
        waiting: More of the text is needed to go on, or its end.
        closed: It has ended.
    """

    __slots__ = (
        "_bare_name",
        "_body_end",
        "_fence_run",
        "_in_fence",
        "_length",
        "_loose",
        "_name_pieces",
        "_quoted",
        "_separated",
        "_state",
        "_tags",
        "_trouble",
        "_values",
        "calls",
        "closed",
        "is_empty",
        "is_text",
        "raw",
        "returned",
        "waiting",
    )

    def __init__(self, tags: BlockTags, *, quoted: bool) -> None:
        self.raw: list[str] = [tags.syntax.start]
        self.calls: list[ParsedCall] = []
        self.is_text: bool = False
        self.is_empty: bool = False
        self.returned: str = ""
        self.waiting: bool = False
        self.closed: bool = False
        self._tags = tags
        self._quoted = quoted
        self._length = len(tags.syntax.start)
        self._state: Callable[[str, int], int] = self._begin
        self._fence_run = 0
        self._in_fence = False
        self._name_pieces: list[str] = []
        self._bare_name: str | None = None
        self._values: list[_Value] = []
        self._loose: list[str] = []
        self._separated = False
        self._body_end = -1
        # What is wrong with the block as a whole; what is wrong inside of its JSON is the scanner's to say.
        self._trouble: str | None = None

    def feed(self, text: str, pos: int) -> int:
        """Take what belongs to the block; gives where it stopped: at the end, behind the block, or where it waits."""
        self.waiting = False
        while pos < len(text) and not self.closed and not self.waiting:
            pos = self._state(text, pos)
        return pos

    def finish(self, rest: str) -> None:
        """The text ended in the block, with `rest` not taken yet."""
        state = self._state
        if state == self._self_ended:
            self._loose.append(rest)
        else:
            self._take(rest, 0, len(rest))
        if state == self._broken:
            if self._values or self._bare_name is not None:
                self._close_broken()
            else:
                self._close_as_text()
        elif state in (self._after, self._dropped, self._self_ended):
            self._close_whole()
        else:
            self._close_cut()

    # --- before the JSON ----------------------------------------------------------------------------------------------

    def _begin(self, text: str, pos: int) -> int:
        pos = self._space(text, pos)
        if pos == len(text):
            return pos
        syntax = self._tags.syntax
        char = text[pos]
        if char in "`~" and not self._quoted and not self._in_fence:
            self._state = self._fence_begins
        elif char in "{[" and syntax.json_calls:
            self._begin_value(None)
        elif syntax.name_end is not None and not self._in_fence and end_of(_NAME, text, pos) > pos:
            self._state = self._name
        else:
            self._no_json()
        return pos

    def _fence_begins(self, text: str, pos: int) -> int:
        match = _FENCE.match(text, pos)
        if match is not None:
            self._fence_run += len(match.group())
            return self._take(text, pos, match.end())
        if self._fence_run < 3:
            self._no_json()
        else:
            self._in_fence = True
            self._state = self._info
        return pos

    def _info(self, text: str, pos: int) -> int:
        stop = end_of(_INFO, text, pos)
        self._take(text, pos, stop)
        if stop == len(text):
            return stop
        if text[stop] in "\n\r{[":
            self._state = self._begin
        else:
            self._no_json()
        return stop

    def _name(self, text: str, pos: int) -> int:
        stop = end_of(_NAME, text, pos)
        self._name_pieces.append(text[pos:stop])
        self._take(text, pos, stop)
        if stop < len(text):
            self._state = self._name_ended
        return stop

    def _name_ended(self, text: str, pos: int) -> int:
        pos = self._space(text, pos)
        if pos == len(text):
            return pos
        found = self._tags.after_name.at(text, pos)
        syntax = self._tags.syntax
        if found is not None:
            self._bare_name = "".join(self._name_pieces)
            self._state = self._arguments if found == syntax.name_end else self._id
            return self._take(text, pos, pos + len(found))
        if self._tags.after_name.begins_at(text, pos):
            self.waiting = True
        elif text[pos] == "{" and syntax.json_calls:  # Mistral's template without `[ARGS]`
            self._bare_name = "".join(self._name_pieces)
            self._state = self._arguments
        else:
            self._no_json()
        return pos

    def _id(self, text: str, pos: int) -> int:
        stop = end_of(_ID, text, pos)
        self._take(text, pos, stop)
        if stop < len(text):
            self._state = self._name_ended
        return stop

    def _arguments(self, text: str, pos: int) -> int:
        pos = self._space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] == "{":
            self._begin_value(self._bare_name)
        else:
            self._trouble = f"The arguments of {self._bare_name} are not a JSON object."
            self._break()
        return pos

    # --- the JSON -----------------------------------------------------------------------------------------------------

    def _begin_value(self, name: str | None) -> None:
        self._values.append(_Value(name, self._length))
        self._state = self._json

    def _json(self, text: str, pos: int) -> int:
        scanner = self._values[-1].scanner
        stop = scanner.feed(text, pos)
        self._take(text, pos, stop)
        if scanner.done:
            self._body_end = self._length
            self._state = self._self_ended if self._tags.syntax.self_ending else self._after
        elif scanner.broken is not None:
            self._break()
        return stop

    # --- behind the JSON ----------------------------------------------------------------------------------------------

    def _after(self, text: str, pos: int) -> int:
        pos = self._space(text, pos)
        if pos == len(text):
            return pos
        char = text[pos]
        if self._in_fence and char in "`~":
            return self._take(text, pos, end_of(_FENCE, text, pos))
        found = self._tags.ends_or_starts.at(text, pos)
        if found is not None:
            if found in self._tags.syntax.ends:
                pos = self._take(text, pos, pos + len(found))
            self._close_whole()
        elif self._tags.ends_or_starts.begins_at(text, pos) or (
            char == "[" and pos + 1 == len(text)
        ):
            self.waiting = True
        elif self._begins_call(text, pos):
            self._begin_value(None)
        elif char in ",;":
            pos = self._take(text, pos, pos + 1)
        elif not self._quoted and char != "{":
            self._state = self._dropped
        else:
            self._trouble = (
                f"Behind the JSON of the tool call stands {char!r}, which is no part of it. "
                f"Write it again as {self._tags.form}."
            )
            self._break()
        return pos

    def _begins_call(self, text: str, pos: int) -> bool:
        """Whether what stands behind a complete call is another one, or an array of them."""
        return self._tags.syntax.json_calls and (text[pos] == "{" or text.startswith("[{", pos))

    def _dropped(self, text: str, pos: int) -> int:
        """In what the model wrote behind its call and before the end tag. It is neither shown nor a mistake."""
        search = self._tags.ends_or_starts
        found = search.search(text, pos)
        if found is None:
            stop = self._take(text, pos, search.beginning(text, pos))
            self.waiting = stop < len(text)
            return stop
        pos = self._take(text, pos, found.start())
        if found.group() in self._tags.syntax.ends:
            pos = self._take(text, pos, found.end())
        self._close_whole()
        return pos

    def _self_ended(self, text: str, pos: int) -> int:
        stop = end_of(_SPACE, text, pos)
        if stop > pos:
            self._loose.append(text[pos:stop])
            return stop
        syntax = self._tags.syntax
        if self._separated:
            if text[pos] == "{":
                self._keep_loose()
                self._separated = False
                self._begin_value(None)
                return pos
        elif self._tags.ends.at(text, pos) is not None:
            found = self._tags.ends.at(text, pos) or ""
            self._keep_loose()
            pos = self._take(text, pos, pos + len(found))
            self._close_whole()
            return pos
        elif self._tags.ends.begins_at(text, pos):
            self.waiting = True
            return pos
        elif syntax.separator is not None and text.startswith(syntax.separator, pos):
            self._separated = True
            self._loose.append(syntax.separator)
            return pos + len(syntax.separator)
        self._close_whole()
        return pos

    def _broken(self, text: str, pos: int) -> int:
        ends = self._tags.ends
        found = ends.search(text, pos)
        if found is not None:
            self._take(text, pos, found.start())
            self._body_end = self._length
            pos = self._take(text, found.start(), found.end())
            self._close_broken()
            return pos
        beginning = ends.beginning(text, pos)
        self._take(text, pos, beginning)
        self.waiting = beginning < len(text)
        return beginning

    # --- how it ends --------------------------------------------------------------------------------------------------

    def _break(self) -> None:
        # The end tag that comes next ends the block, whatever quotes stand around it: where strings begin is not known
        # any more. A start tag does not: what looks like another call may be what the model quotes.
        self._body_end = -1
        self._state = self._broken

    def _no_json(self) -> None:
        self._trouble = (
            f"What stands in the tool call is no JSON. Write it again as {self._tags.form}."
        )
        if self._quoted:
            self._close_as_text()
        else:
            self._break()

    def _close_as_text(self) -> None:
        self.is_text = self.closed = True

    def _close_whole(self) -> None:
        self.closed = True
        self.returned = "".join(self._loose)
        raw = "".join(self.raw)
        for value in self._values:
            self._add_whole(raw, value)
        self.is_empty = not self.calls

    def _close_cut(self) -> None:
        self.closed = True
        raw = "".join(self.raw)
        if not self._values:
            name = self._bare_name or ""
            self.calls.append(ParsedCall(name, "", "truncated", cut_detail(name)))
            return
        *whole, last = self._values
        for value in whole:
            self._add_whole(raw, value)
        if last.name is not None:
            self.calls.append(
                ParsedCall(last.name, raw[last.start :], "truncated", cut_detail(last.name))
            )
        else:
            self.calls += cut_calls(raw, last.scanner, self._tags.syntax.ends, self._tags.form)

    def _close_broken(self) -> None:
        self.closed = True
        raw = "".join(self.raw)
        end = self._body_end if self._body_end >= 0 else len(raw)
        form = self._tags.form
        if not self._values:
            body = raw[len(self._tags.syntax.start) : end].strip()
            self.calls.append(ParsedCall(self._bare_name or "", body, "malformed", self._trouble))
            return
        *whole, last = self._values
        for value in whole:
            self._add_whole(raw, value)
        if self._trouble is not None:
            written = raw[last.start : end].rstrip()
            named = (
                [last.name] if last.name is not None else [c.name for c in self._whole(raw, last)]
            )
            self.calls += [
                ParsedCall(name, written, "malformed", self._trouble) for name in named or [""]
            ]
            return
        detail = broken_detail(raw, last.start, last.scanner, form)
        if last.name is not None:
            self.calls.append(
                ParsedCall(last.name, raw[last.start : end].rstrip(), "malformed", detail)
            )
        else:
            self.calls += spoiled(raw, last.scanner, end, detail, form)

    def _add_whole(self, raw: str, value: _Value) -> None:
        self.calls += self._whole(raw, value)

    def _whole(self, raw: str, value: _Value) -> list[ParsedCall]:
        scanner = value.scanner
        if value.name is not None:
            return [ParsedCall(value.name, raw[value.start : scanner.offset])]
        return [element_call(raw, element, self._tags.form) for element in scanner.elements]

    def _keep_loose(self) -> None:
        for piece in self._loose:
            self._take(piece, 0, len(piece))
        self._loose.clear()

    def _space(self, text: str, pos: int) -> int:
        return self._take(text, pos, end_of(_SPACE, text, pos))

    def _take(self, text: str, pos: int, stop: int) -> int:
        if stop > pos:
            self.raw.append(text[pos:stop])
            self._length += stop - pos
        return stop
