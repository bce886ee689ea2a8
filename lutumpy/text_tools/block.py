"""One block of calls, from its start tag to its end, while it arrives."""

# A block is read by a state machine whose states are methods: each takes what it knows of the text
# and gives the position behind it, and the next state is set in `_state`. Pieces of text may be cut
# anywhere; where a state can't tell a tag from its beginning, it sets `waiting` and is asked again
# with more text.
#
#     before the JSON
#       _begin            behind the start tag: JSON, a fence, or a bare name may come
#       _fence_marks      in the run of ``` or ~~~ that opens a Markdown fence around the JSON
#       _fence_info       behind it, on the same line, as in ```json
#       _name             in a bare name, as in `name[ARGS]{...}`
#       _behind_name      behind it: `name_end`, the tag of an id, or the arguments
#       _call_id          in the model's own id of the call, which isn't used
#       _before_arguments behind `name_end`: the object of arguments has to come
#     the JSON
#       _in_json          in a call, an array of calls, or the arguments of a bare name
#     behind the JSON
#       _behind_json      an end tag, another call, or the closing fence may come
#       _dropped_text     in a sentence of the model's between the last call and the end tag
#       _behind_self_ending   for syntaxes whose calls end with their JSON: what belongs to the
#                         block and what to the user's text is not known before the next character
#       _first_words      in words behind such a call, which are text unless a mark of JSON follows
#     after a mistake
#       _until_end_tag    what is here can't be read, or may be the rest of JSON that a bracket
#                         too many has closed (`trailing_text`); only an end tag ends it
#
#     _begin --> _fence_marks --> _fence_info --> _begin
#       |  \--> _name <--> _behind_name <--> _call_id
#       |                    |--> _before_arguments
#       v                    v        |
#     _in_json <-----------------------
#       |  ^-----------------------------------\  another call
#       |--> _behind_json --> _dropped_text    |
#       |--> _behind_self_ending --------------/
#              \--> _first_words
#     anywhere: a mistake --> _until_end_tag
#
# A block is closed in one of four ways: whole (`_close_whole`), cut by the end of the text
# (`_close_cut`), broken (`_close_broken`: an issue takes the place of what can't be read), or as
# text (`_close_as_text`: in a code block, what doesn't begin like a call is none).

from __future__ import annotations

import re

from lutumpy.text_tools.block_calls import BlockValue, read_broken, read_cut, read_whole
from lutumpy.text_tools.block_tags import BlockTags
from lutumpy.text_tools.open_block import OpenBlock
from lutumpy.text_tools.protocol import ParsedCall
from lutumpy.text_tools.tag_search import end_of
from lutumpy.text_tools.text_machine import SPACE
from lutumpy.text_tools.trailing_text import JSON_MARK, begins_rest, begins_value, ends_key
from lutumpy.text_tools.written_calls import cut_detail

__all__ = ["Block"]

_FENCE = re.compile(r"[`~]+")
_INFO = re.compile(r"[\w+#. \t-]*")
_NAME = re.compile(r"[\w.:-]*")
_ID = re.compile(r"[\w-]*")
_WORDS = re.compile(r"[\w \t-]*")


class Block(OpenBlock):
    """JSON calls, fed with the text behind a start tag until it is `closed`.

    Args:
        tags: What to look for.
        quoted: The block is in a code block, where text that doesn't begin like a call is text.
    """

    __slots__ = (
        "_bare_name",
        "_body_end",
        "_fence_length",
        "_in_fence",
        "_length",
        "_name_pieces",
        "_problem",
        "_separated",
        "_tags",
        "_undecided",
        "_values",
    )

    def __init__(self, tags: BlockTags, *, quoted: bool) -> None:
        super().__init__(tags.syntax.start, self._begin, quoted=quoted)
        self._tags = tags
        self._length = len(tags.syntax.start)
        self._fence_length = 0
        self._in_fence = False
        self._name_pieces: list[str] = []
        self._bare_name: str | None = None
        self._values: list[BlockValue] = []
        # Behind a self-ending call: text that belongs to the block only if another call follows.
        self._undecided: list[str] = []
        # Whether a separator comes after the last call, so that another call has to follow.
        self._separated = False
        # Where the body of a broken block ends, before the end tag; -1 as long as that is unknown.
        self._body_end = -1
        # What is wrong with a block without JSON. What is wrong with JSON, the scanner knows.
        self._problem: str | None = None

    def finish(self, rest: str) -> None:
        """The text has ended in the block, with `rest` not taken yet."""
        state = self._state
        if state in (self._behind_self_ending, self._first_words):
            if self._separated and self._tags.separator_is_json:
                self._take_undecided()
                self._close_broken()
            else:
                self._undecided.append(rest)
                self._close_whole()
            return
        self._take(rest, 0, len(rest))
        if state == self._until_end_tag:
            if self._values or self._bare_name is not None:
                self._close_broken()
            else:
                self._close_as_text()
        elif state == self._behind_json:
            # The beginning of a tag that was cut is nothing to the call.
            if self._separated or (rest and not self._tags.ends_or_starts.begins_at(rest, 0)):
                self._close_broken()
            else:
                self._close_whole()
        elif state == self._dropped_text:
            self._close_behind_text()
        else:
            self._close_cut()

    # --- before the JSON ---------------------------------------------------------------------

    def _begin(self, text: str, pos: int) -> int:
        pos = self._take_space(text, pos)
        if pos == len(text):
            return pos
        syntax = self._tags.syntax
        char = text[pos]
        if char in "`~" and not self._quoted and not self._in_fence:
            self._state = self._fence_marks
        elif self._bare_name is not None and char == "{":
            self._begin_value(self._bare_name)
        elif char in "{[" and syntax.json_calls and self._bare_name is None:
            self._begin_value(None)
        elif syntax.name_end is not None and not self._in_fence and end_of(_NAME, text, pos) > pos:
            self._state = self._name
        else:
            self._refuse_as_not_json()
        return pos

    def _fence_marks(self, text: str, pos: int) -> int:
        match = _FENCE.match(text, pos)
        if match is not None:
            self._fence_length += len(match.group())
            return self._take(text, pos, match.end())
        if self._fence_length < 3:
            self._refuse_as_not_json()
        else:
            self._in_fence = True
            self._state = self._fence_info
        return pos

    def _fence_info(self, text: str, pos: int) -> int:
        stop = end_of(_INFO, text, pos)
        self._take(text, pos, stop)
        if stop == len(text):
            return stop
        if text[stop] in "\n\r{[":
            self._state = self._begin
        else:
            self._refuse_as_not_json()
        return stop

    def _name(self, text: str, pos: int) -> int:
        stop = end_of(_NAME, text, pos)
        self._name_pieces.append(text[pos:stop])
        self._take(text, pos, stop)
        if stop < len(text):
            self._state = self._behind_name
            if "".join(self._name_pieces) == self._tags.syntax.text_name:
                self.closed = True  # it heads the answer's text
        return stop

    def _behind_name(self, text: str, pos: int) -> int:
        pos = self._take_space(text, pos)
        if pos == len(text):
            return pos
        found = self._tags.after_name.at(text, pos)
        syntax = self._tags.syntax
        if found is not None:
            self._bare_name = syntax.clean_name("".join(self._name_pieces))
            ends_name = found == syntax.name_end
            self._state = self._before_arguments if ends_name else self._call_id
            return self._take(text, pos, pos + len(found))
        if self._tags.after_name.begins_at(text, pos):
            self.waiting = True
        elif syntax.begins_arguments(text[pos]):
            self._bare_name = syntax.clean_name("".join(self._name_pieces))
            self._state = self._before_arguments
        else:
            self._refuse_as_not_json()
        return pos

    def _call_id(self, text: str, pos: int) -> int:
        stop = end_of(_ID, text, pos)
        self._take(text, pos, stop)
        if stop < len(text):
            self._state = self._behind_name
        return stop

    def _before_arguments(self, text: str, pos: int) -> int:
        pos = self._take_space(text, pos)
        if pos == len(text):
            return pos
        if text[pos] == "{":
            self._begin_value(self._bare_name)
        elif self._tags.syntax.fenced and text[pos] in "`~" and not self._in_fence:
            self._state = self._fence_marks
        else:
            self._problem = f"The arguments of {self._bare_name} are not a JSON object."
            self._break()
        return pos

    # --- the JSON ----------------------------------------------------------------------------

    def _begin_value(self, name: str | None) -> None:
        self._values.append(BlockValue(name, self._length))
        self._state = self._in_json

    def _in_json(self, text: str, pos: int) -> int:
        scanner = self._values[-1].scanner
        stop = scanner.feed(text, pos)
        self._take(text, pos, stop)
        if scanner.done:
            self._body_end = self._length
            self_ending = self._tags.syntax.self_ending
            self._state = self._behind_self_ending if self_ending else self._behind_json
        elif scanner.broken is not None:
            self._break()
        return stop

    # --- behind the JSON ---------------------------------------------------------------------

    def _behind_json(self, text: str, pos: int) -> int:
        pos = self._take_space(text, pos)
        if pos == len(text):
            return pos
        char = text[pos]
        if self._in_fence and char in "`~":
            return self._take(text, pos, end_of(_FENCE, text, pos))
        search = self._tags.ends_or_starts
        found = search.at(text, pos)
        if found is not None:
            is_end = found in self._tags.syntax.ends
            if is_end and self._separated:
                self._break()
                return pos
            self._close_whole()
            return self._take(text, pos, pos + len(found)) if is_end else pos
        if search.begins_at(text, pos) or (char == "[" and pos + 1 == len(text)):
            self.waiting = True
        elif self._begins_call(text, pos):
            self._separated = False
            self._begin_value(None)
        elif self._quoted or self._separated:
            self._break()
        elif char in ",;":
            self._separated = True
            pos = self._take(text, pos, pos + 1)
        elif begins_rest(text, pos):
            self._break()
        else:
            self._state = self._dropped_text
        return pos

    def _begins_call(self, text: str, pos: int) -> bool:
        """Whether another call, or an array of calls, begins behind a complete one.

        Behind the arguments of a bare name, an object may be more of them.
        """
        if not self._tags.syntax.json_calls or self._values[-1].name is not None:
            return False
        return text[pos] == "{" or text.startswith("[{", pos)

    def _dropped_text(self, text: str, pos: int) -> int:
        """In what the model wrote between its call and the end tag.

        It is neither shown nor treated as a mistake, unless it may be the rest of the call.
        """
        search = self._tags.ends_or_starts
        found = search.search(text, pos)
        stop = search.beginning(text, pos) if found is None else found.start()
        if JSON_MARK.search(text[pos:stop]) is not None:
            self._break()
            return pos
        self._take(text, pos, stop)
        if found is None:
            self.waiting = stop < len(text)
            return stop
        self._close_behind_text()
        is_end = found.group() in self._tags.syntax.ends
        return self._take(text, stop, found.end()) if is_end else stop

    def _behind_self_ending(self, text: str, pos: int) -> int:
        stop = end_of(SPACE, text, pos)
        if stop > pos:
            self._undecided.append(text[pos:stop])
            return stop
        if self._separated:
            return self._behind_separator(text, pos)
        syntax = self._tags.syntax
        char = text[pos]
        if self._in_fence and char in "`~":
            return self._take_fence_end(text, pos)
        search = self._tags.ends_or_starts
        found = search.at(text, pos)
        if found is not None:
            if found in syntax.ends:
                self._take_undecided()
                pos = self._take(text, pos, pos + len(found))
            self._close_whole()
        elif search.begins_at(text, pos) or (char == "[" and pos + 1 == len(text)):
            self.waiting = True
        elif syntax.separator is not None and text.startswith(syntax.separator, pos):
            self._separated = True
            self._undecided.append(syntax.separator)
            pos += len(syntax.separator)
        elif begins_rest(text, pos):
            self._take_undecided()
            self._break()
        else:
            self._state = self._first_words
        return pos

    def _first_words(self, text: str, pos: int) -> int:
        """In the first words behind a self-ending call.

        They are what is left of a key in `{}path": "x"}`, where a bracket took a quote's place.
        """
        search = self._tags.ends_or_starts
        found = search.search(text, pos)
        tag_start = search.beginning(text, pos) if found is None else found.start()
        stop = min(end_of(_WORDS, text, pos), tag_start)
        if stop > pos:
            self._undecided.append(text[pos:stop])
        if stop == len(text):
            return stop
        if stop == tag_start and found is None:
            self.waiting = True
            return stop
        attached = not self._undecided or not self._undecided[0].isspace()
        if stop < tag_start and ends_key(text[stop], attached=attached):
            self._take_undecided()
            self._break()
        else:
            self._close_whole()
        return stop

    def _behind_separator(self, text: str, pos: int) -> int:
        """Behind the separator of self-ending calls, which is text unless another call follows."""
        if text[pos] == "{":
            self._take_undecided()
            self._separated = False
            self._begin_value(None)
        elif begins_rest(text, pos) or self._tags.separator_is_json:
            self._take_undecided()
            self._break()
        else:
            self._close_whole()
        return pos

    def _take_fence_end(self, text: str, pos: int) -> int:
        """Take the fence that closes the one between the start tag and a self-ending call."""
        self._take_undecided()
        stop = min(end_of(_FENCE, text, pos), pos + self._fence_length)
        self._fence_length -= stop - pos
        self._in_fence = self._fence_length > 0
        return self._take(text, pos, stop)

    # --- after a mistake ---------------------------------------------------------------------

    def _until_end_tag(self, text: str, pos: int) -> int:
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
        self.waiting: bool = beginning < len(text)
        return beginning

    def _break(self) -> None:
        # The next end tag ends the block, whatever quotes are around it: where strings begin is
        # not known any more. A start tag doesn't end it: what looks like another call may be what
        # the model quotes.
        self._body_end = -1
        self._state = self._until_end_tag

    def _refuse_as_not_json(self) -> None:
        self._problem = (
            f"What stands in the tool call is no JSON. Write it again as {self._tags.form.spelled}."
        )
        if self._quoted:
            self._close_as_text()
        else:
            self._break()

    # --- how it ends -------------------------------------------------------------------------

    def _close_as_text(self) -> None:
        self.is_text = self.closed = True

    def _close_whole(self) -> None:
        self.closed = True
        self.returned: str = "".join(self._undecided)
        self.calls = read_whole("".join(self.raw), self._values, self._tags.form)
        self.is_empty: bool = not self.calls

    def _close_behind_text(self) -> None:
        """Close it behind text that holds no `JSON_MARK`."""
        raw = "".join(self.raw)
        if begins_value(raw[self._values[-1].scanner.offset :]):
            self._body_end = self._length
            self._close_broken()
        else:
            self._close_whole()

    def _close_cut(self) -> None:
        self.closed = True
        if self._values:
            raw, ends = "".join(self.raw), self._tags.syntax.ends
            self.calls = read_cut(raw, self._values, ends, self._tags.form)
        else:
            name = self._bare_name or ""
            self.calls = [ParsedCall(name, "", "truncated", cut_detail(name))]

    def _close_broken(self) -> None:
        self.closed: bool = True
        raw = "".join(self.raw)
        end = self._body_end if self._body_end >= 0 else len(raw)
        if self._values:
            self.calls = read_broken(raw, self._values, end, self._tags.form)
        else:
            body = raw[len(self._tags.syntax.start) : end].strip()
            self.calls: list[ParsedCall] = [
                ParsedCall(self._bare_name or "", body, "malformed", self._problem)
            ]

    # --- taking text -------------------------------------------------------------------------

    def _take_undecided(self) -> None:
        for piece in self._undecided:
            self._take(piece, 0, len(piece))
        self._undecided.clear()

    def _take_space(self, text: str, pos: int) -> int:
        return self._take(text, pos, end_of(SPACE, text, pos))

    def _take(self, text: str, pos: int, stop: int) -> int:
        self._length += max(0, stop - pos)
        return super()._take(text, pos, stop)
