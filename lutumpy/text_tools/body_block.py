"""One block of calls that is read when its end tag has come, for every `BodySyntax`."""

#     state       where                                    goes on to
#     ----------  ---------------------------------------  ------------------------
#     _outside    behind the start tag, not in a quote     _inside, or it closes
#     _inside     in a quoted text                         _behind_quote, or _outside
#     _behind_quote  behind what may end it                _outside, or _inside if it goes on

from __future__ import annotations

from lutumpy.text_tools.body_syntax import BodySyntax
from lutumpy.text_tools.open_block import OpenBlock
from lutumpy.text_tools.protocol import ParsedCall
from lutumpy.text_tools.schema_values import KnownTools
from lutumpy.text_tools.tag_search import TagSearch, end_of
from lutumpy.text_tools.text_machine import SPACE

__all__ = ["BodyBlock", "BodyTags"]


class BodyTags:
    """What is looked for in the blocks of one syntax.

    Args:
        syntax: How its calls are written.
        tools: The tools of the offer.
    """

    __slots__ = ("behind_quotes", "closers", "outside", "quotes", "syntax", "tools")

    def __init__(self, syntax: BodySyntax, tools: KnownTools) -> None:
        self.syntax: BodySyntax = syntax
        self.tools: KnownTools = tools
        self.quotes: dict[str, str] = dict(syntax.quotes(tools))
        self.behind_quotes: TagSearch = TagSearch(syntax.behind_quotes())
        self.outside: TagSearch = TagSearch([*syntax.ends, *self.quotes])
        also = r"\\(?:[\s\S]|\Z)" if syntax.escapes else ""
        self.closers: dict[str, TagSearch] = {
            closer: TagSearch([closer], also) for closer in self.quotes.values()
        }


class BodyBlock(OpenBlock):
    """Calls of every other format, which are read when the block has ended.

    Args:
        tags: What to look for.
        quoted: The block is in a code block, where what can't be read is text.
    """

    __slots__ = ("_closer", "_tags")

    def __init__(self, tags: BodyTags, *, quoted: bool) -> None:
        super().__init__(tags.syntax.start, self._outside, quoted=quoted)
        self._tags = tags
        self._closer = ""

    def finish(self, rest: str) -> None:
        """The text has ended in the block, with `rest` not taken yet."""
        # The beginning of an end tag that was cut is nothing to the calls.
        is_beginning = self._state == self._outside and any(
            end.startswith(rest) for end in self._tags.syntax.ends
        )
        self._close("" if rest and is_beginning else rest, whole=False)
        if rest and is_beginning:
            self.raw.append(rest)

    def _outside(self, text: str, pos: int) -> int:
        search = self._tags.outside
        found = search.search(text, pos)
        if found is None:
            return self._take_and_wait(text, pos, search.beginning(text, pos))
        token = found.group()
        if token not in self._tags.quotes:
            self._close(text[pos : found.start()], whole=True)
            self.raw.append(token)
            return found.end()
        self._closer = self._tags.quotes[token]
        self._state = self._inside
        return self._take(text, pos, found.end())

    def _inside(self, text: str, pos: int) -> int:
        search = self._tags.closers[self._closer]
        found = search.search(text, pos)
        if found is None:
            return self._take_and_wait(text, pos, search.beginning(text, pos))
        if found.group() == "\\":  # what it escapes hasn't arrived
            return self._take_and_wait(text, pos, found.start())
        if found.group()[0] != "\\" or self._closer[0] == "\\":
            needs_more = bool(self._tags.syntax.behind_quotes())
            self._state = self._behind_quote if needs_more else self._outside
        return self._take(text, pos, found.end())

    def _behind_quote(self, text: str, pos: int) -> int:
        pos = self._take(text, pos, end_of(SPACE, text, pos))
        if pos == len(text):
            return pos
        search = self._tags.behind_quotes
        if search.at(text, pos) is not None:
            self._state = self._outside
        elif search.begins_at(text, pos):
            self.waiting = True
        else:
            self._state = self._inside
        return pos

    def _close(self, rest: str, *, whole: bool) -> None:
        self.closed = True
        self.raw.append(rest)
        body = "".join(self.raw)[len(self._tags.syntax.start) :]
        calls = self._tags.syntax.read(body, self._tags.tools, whole=whole)
        if calls is None or (self._quoted and any(call.problem == "malformed" for call in calls)):
            self.is_text = True
        else:
            self.calls = calls
            self.is_empty: bool = not calls

    def _end_as_text(self) -> None:
        """The block has ended, and is a text of the answer."""
        self.closed = True
        self.is_text: bool = True

    def _end_with(self, calls: list[ParsedCall]) -> None:
        """The block has ended, with these calls."""
        self.closed: bool = True
        self.calls: list[ParsedCall] = calls

    def _take_and_wait(self, text: str, pos: int, stop: int) -> int:
        self.waiting: bool = stop < len(text)
        return self._take(text, pos, stop)
