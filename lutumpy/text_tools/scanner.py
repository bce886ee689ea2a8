"""A model's text while it arrives: what the user sees, what the model thought, and the calls."""

# What is hard: a model may write about calls as well as write them. A tag counts as a call in the
# text itself, and in a Markdown code block that holds nothing but calls (rule T3); in other code
# blocks, in a code span and in thinking it is text. Of a code block, that is known only at its end.
# So its content is held back from its first call on, and released as calls or as text.
#
# There is one pass over the text, with a state and a few characters that the next piece may make a
# tag. So pieces may be cut anywhere, and give together what the whole text gives.
#
#     state           where                                 goes on to
#     --------------  ------------------------------------  --------------------------------------
#     _text           outside of everything                 _opening_run, _thinking, _in_block
#     _thinking_open  at the start of a text whose          _thinking
#                     thinking the prompt has opened
#     _behind_prompt  at the start of an answer before      _in_block, _before_answer, or _text
#                     which the prompt may have a start tag
#     _before_answer  at the start of an answer that may    _whole_answer, or _text
#                     be calls without a tag
#     _whole_answer   in such an answer, which is read at   _text, if it isn't a call
#                     its end
#     _thinking       in thinking                           _text
#     _opening_run    in ``` or ~~~ in the text             _fence_info, or _text if nothing opens
#     _fence_info     behind it, on the same line           _in_code, _in_block, _info_run, or _text
#     _info_run       in marks on that line                 _text if they close it, or _fence_info
#     _in_code        in a code block                       _closing_run, _in_block
#     _closing_run    in marks in a code block              _text, _closing_line, or _in_code
#     _closing_line   behind a closing fence                _text, or _in_code if the line goes on
#     _in_block       in a call, read by `Block`            _text or _in_code, where it came from
#
# `_Fence` is the open code block, and `_note_line` keeps what has to be known of the current line:
# whether a fence may begin or end here, and whether a code span is open.

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lutumpy.text_tools.open_block import OpenBlock
from lutumpy.text_tools.scan_tags import ScanTags
from lutumpy.text_tools.tag_search import end_of
from lutumpy.text_tools.text_machine import SPACE, TextMachine

__all__ = ["TextScanner"]

_BLANKS = re.compile(r"[ \t\r]*")
_PLAIN_INFO = re.compile(r"[ \t]*[\w+#.-]*[ \t\r]*")
_RUNS: Mapping[str, re.Pattern[str]] = {"`": re.compile("`+"), "~": re.compile("~+")}
_INFO_KEPT = 80  # characters of the info that are looked at; longer ones are text
_BEGINNING_KEPT = 160  # characters that tell whether an answer may be calls without a tag
_MAY_BEGIN = frozenset("{[`")


@dataclass(slots=True)
class _Fence:
    """A Markdown code block that is open.

    Attributes:
        mark: What its fence is made of.
        length: How many of them.
        in_line: It began behind other text.
        info: The text behind the opening fence, up to a limit.
        clean: So far it holds nothing but calls and white space.
        held: What it holds from its first call on: text, and blocks that may be calls.
    """

    mark: str
    length: int
    in_line: bool
    info: str = ""
    clean: bool = True
    held: list[str | OpenBlock] | None = None


class TextScanner(TextMachine):
    """A `StreamFormatter` that also knows the calls and the thinking.

    Args:
        tags: What to look for.
        begins_in: The texts around the thinking that the text begins in, where a template has
            opened it already.
    """

    __slots__ = (
        "_before_run",
        "_behind_mark",
        "_block",
        "_fence",
        "_in_span",
        "_line_blank",
        "_opening",
        "_outside",
        "_run_length",
        "_run_mark",
        "_tags",
        "_think_end",
        "_whole",
    )

    def __init__(self, tags: ScanTags, begins_in: tuple[str, str] | None = None) -> None:
        # An answer that may be calls without a tag, as far as it has arrived.
        self._whole: list[str] = []
        self._outside = self._before_answer if tags.bare else self._text
        if tags.opened is not None:
            self._outside = self._behind_prompt
        super().__init__(self._outside if begins_in is None else self._thinking_open)
        self._tags = tags
        # Whether this line is blank so far, which is where a fence may begin or end; and whether
        # it was before the run of marks that is being read.
        self._line_blank = True
        self._before_run = True
        # Whether a code span is open on this line, and whether the last character is a backtick.
        self._in_span = False
        self._behind_mark = False
        self._run_mark = ""
        self._run_length = 0
        self._fence: _Fence | None = None
        self._block: OpenBlock | None = None
        self._opening, self._think_end = begins_in or ("", "")

    def flush(self) -> str:
        """The text has ended; returns held-back text that isn't part of a call."""
        self._run(self._carry, final=True)
        if self._whole:
            self._read_whole_answer()
        block, fence = self._block, self._fence
        if block is not None:
            block.finish(self._carry)
            self._carry = ""
            self._end_block(block)
        if self._state == self._closing_run and fence is not None:
            self._end_closing_run()
        if fence is not None and fence.held is not None:
            self._release_held(fence, as_calls=True)
        return self._take_shown()

    # --- text outside of code blocks ---------------------------------------------------------

    def _text(self, text: str, pos: int, final: bool) -> int:
        found = self._tags.in_text.search(text, pos)
        if not final:
            beginning = self._tags.in_text.beginning(text, pos)
            # At the same place is what may become a tag that begins with marks of a fence.
            if beginning < len(text) and (found is None or beginning <= found.start()):
                return self._show_and_wait(text, pos, beginning)
        if found is None:
            return self._emit(text, pos, len(text))
        self._emit(text, pos, found.start())
        token = found.group()
        if token[0] in _RUNS and token not in self._tags.blocks:
            self._begin_run(token[0], self._opening_run)
            return found.start()
        if self._in_span and self._behind_mark:
            # Quoted in a sentence: it shows how a call is written, and is not one (rule T3).
            return self._emit(text, found.start(), found.end())
        if token in self._tags.thinking:
            self._think_end = self._tags.thinking[token]
            self._thoughts.begin()
            self._state = self._thinking
            return found.end()
        if token not in self._tags.hidden:
            self._begin_block(token)
        return found.end()

    def _behind_prompt(self, text: str, pos: int, final: bool) -> int:
        """At the start of an answer that may be the rest of a block, which the prompt has begun."""
        syntax = self._tags.opened
        assert syntax is not None
        begins = syntax.begins_named(text[pos : pos + _BEGINNING_KEPT], self._tags.tools)
        if begins is None and not final and len(text) - pos < _BEGINNING_KEPT:
            self._waiting = True
            return pos
        if begins:
            self._outside = self._text
            self._begin_block(syntax.start)
        else:
            self._outside = self._state = self._before_answer if self._tags.bare else self._text
        return pos

    def _before_answer(self, text: str, pos: int, final: bool) -> int:
        """Before an answer that may be calls without a tag (nothing but calls that are offered)."""
        stop = end_of(SPACE, text, pos)
        if stop == len(text) and not final:
            return self._emit(text, pos, stop)
        begin = self._tags.in_text.at(text, stop) if stop < len(text) else None
        if begin is None and stop < len(text) and text[stop] in _MAY_BEGIN:
            if len(text) - stop < _BEGINNING_KEPT and not final:
                self._waiting = True
                return self._emit(text, pos, stop)
            beginning = text[stop : stop + _BEGINNING_KEPT]
            if any(syntax.begins(beginning, self._tags.tools) for syntax in self._tags.bare):
                self._state = self._whole_answer
                return self._emit(text, pos, stop)
        elif begin is None and not final and self._tags.in_text.begins_at(text, stop):
            self._waiting = True
            return self._emit(text, pos, stop)
        if begin is None or begin not in self._tags.thinking:
            self._outside = self._text
        self._state = self._text
        return self._emit(text, pos, stop)

    def _whole_answer(self, text: str, pos: int, final: bool) -> int:
        self._whole.append(text[pos:])
        return len(text)

    def _read_whole_answer(self) -> None:
        """The answer has ended: it is calls, or text like every other."""
        answer = "".join(self._whole)
        self._whole.clear()
        for syntax in self._tags.bare:
            calls = syntax.read(answer, self._tags.tools, whole=False)
            if calls:
                self.calls.extend(calls)
                return
        self._outside = self._state = self._text
        self._run(answer, final=True)

    def _thinking_open(self, text: str, pos: int, final: bool) -> int:
        """Before thinking that the prompt has opened; the model may open it once more."""
        pos = end_of(SPACE, text, pos)
        if pos == len(text):
            return pos
        if text.startswith(self._opening, pos):
            pos += len(self._opening)
        elif not final and self._opening.startswith(text[pos:]):
            self._waiting = True
            return pos
        self._state = self._thinking
        return pos

    def _thinking(self, text: str, pos: int, final: bool) -> int:
        search = self._tags.think_ends[self._think_end]
        found = search.search(text, pos)
        if found is not None:
            self._thoughts.add(text[pos : found.start()])
            self._state = self._outside
            return found.end()
        stop = len(text) if final else search.beginning(text, pos)
        self._thoughts.add(text[pos:stop])
        self._waiting = stop < len(text)
        return stop

    def _begin_run(self, mark: str, state: Callable[[str, int, bool], int]) -> None:
        self._run_mark, self._run_length = mark, 0
        self._before_run = self._line_blank
        self._state = state

    def _take_run(self, text: str, pos: int) -> int:
        stop = end_of(_RUNS[self._run_mark], text, pos)
        self._run_length += stop - pos
        return stop

    def _opening_run(self, text: str, pos: int, final: bool) -> int:
        stop = self._emit(text, pos, self._take_run(text, pos))
        if stop < len(text):
            # Backticks open a code block behind other text too, since models write that. Tildes
            # have other uses, so they open one only where Markdown says so.
            if self._run_length >= 3 and (self._run_mark == "`" or self._before_run):
                self._fence = _Fence(self._run_mark, self._run_length, in_line=not self._before_run)
                self._state = self._fence_info
            else:
                self._state = self._text
        return stop

    # --- code blocks -------------------------------------------------------------------------

    def _open_fence(self) -> _Fence:
        assert self._fence is not None
        return self._fence

    def _fence_info(self, text: str, pos: int, final: bool) -> int:
        """On the line of the opening fence."""
        fence = self._open_fence()
        found = self._tags.in_info.search(text, pos)
        stop = len(text) if found is None else found.start()
        beginning = stop if final else min(stop, self._tags.in_info.beginning(text, pos))
        known = len(fence.info)
        fence.info = (fence.info + text[pos : min(beginning, pos + _INFO_KEPT)])[:_INFO_KEPT]
        match = _PLAIN_INFO.match(fence.info)
        plain_length = 0 if match is None else min(match.end(), _INFO_KEPT - 1)
        plain = plain_length == len(fence.info)
        if fence.in_line and not plain:
            # Three marks in the middle of a sentence.
            return self._leave_fence(self._emit(text, pos, pos + max(0, plain_length - known)))
        self._emit(text, pos, beginning)
        if beginning < stop:
            self._waiting = True
            return beginning
        if found is None:
            return stop
        token = found.group()
        if token == "\n":
            self._state = self._in_code
            return self._emit(text, stop, found.end())
        if token[0] in _RUNS:
            if token[0] == fence.mark:
                self._begin_run(fence.mark, self._info_run)
                return stop
            fence.info += "``"
            return self._emit(text, stop, found.end())
        if plain:
            self._begin_block(token)
            return found.end()
        return self._emit(text, stop, found.end())

    def _info_run(self, text: str, pos: int, final: bool) -> int:
        """A fence that closes on the line where it opened: a code span."""
        fence = self._open_fence()
        stop = self._emit(text, pos, self._take_run(text, pos))
        if stop < len(text):
            if self._run_length >= fence.length:
                return self._leave_fence(stop)
            fence.info += "``"
            self._state = self._fence_info
        return stop

    def _in_code(self, text: str, pos: int, final: bool) -> int:
        fence = self._open_fence()
        if fence.clean:
            return self._read_clean_code(fence, text, pos, final)
        return self._read_other_code(fence, text, pos)

    def _read_clean_code(self, fence: _Fence, text: str, pos: int, final: bool) -> int:
        stop = end_of(SPACE, text, pos)
        self._hold_back(fence, text[pos:stop])
        if stop == len(text):
            return stop
        if text[stop] == fence.mark:
            self._begin_run(fence.mark, self._closing_run)
            return stop
        tag = self._tags.in_fence.at(text, stop)
        if tag is not None:
            if tag not in self._tags.hidden:
                self._begin_block(tag)
            return stop + len(tag)
        if not final and self._tags.in_fence.begins_at(text, stop):
            self._waiting = True
            return stop
        self._treat_as_text(fence)
        return stop

    def _read_other_code(self, fence: _Fence, text: str, pos: int) -> int:
        found = _RUNS[fence.mark].search(text, pos)
        if found is None:
            return self._emit(text, pos, len(text))
        self._emit(text, pos, found.start())
        self._begin_run(fence.mark, self._closing_run)
        return found.start()

    def _closing_run(self, text: str, pos: int, final: bool) -> int:
        stop = self._take_run(text, pos)
        if stop < len(text):
            self._end_closing_run()
        return stop

    def _end_closing_run(self) -> None:
        """The marks that may close the code block are complete, and not shown yet."""
        fence = self._open_fence()
        run = self._run_mark * self._run_length
        if fence.in_line:
            # Marks behind other text open a code span, which as many of them close anywhere.
            closes = self._run_length == fence.length
        else:
            closes = self._run_length >= fence.length
        if closes and (fence.in_line or (fence.clean and fence.held is not None)):
            self._release_held(fence, as_calls=True)
            self._emit(run, 0, len(run))
            self._leave_fence(0)
            return
        if closes and self._before_run:
            self._state = self._closing_line
        else:
            self._treat_as_text(fence)
            self._state = self._in_code
        self._emit(run, 0, len(run))

    def _closing_line(self, text: str, pos: int, final: bool) -> int:
        """Behind a closing fence, which is not one if there is other text on its line."""
        stop = self._emit(text, pos, end_of(_BLANKS, text, pos))
        if stop < len(text):
            if text[stop] == "\n":
                self._leave_fence(stop)
            else:
                self._treat_as_text(self._open_fence())
                self._state = self._in_code
        return stop

    def _leave_fence(self, pos: int) -> int:
        fence = self._open_fence()
        if fence.held is not None:
            self._release_held(fence, as_calls=True)
        self._fence = None
        self._state = self._text
        return pos

    def _hold_back(self, fence: _Fence, piece: str | OpenBlock) -> None:
        if not isinstance(piece, str):
            fence.held = [] if fence.held is None else fence.held
            fence.held.append(piece)
            self._line_blank = False
        elif piece and fence.held is not None:
            fence.held.append(piece)
            self._note_line(piece)
        else:
            self._emit(piece, 0, len(piece))

    def _treat_as_text(self, fence: _Fence) -> None:
        """The code block holds more than calls, so nothing in it is a call (rule T3)."""
        if fence.clean:
            fence.clean = False
            self._release_held(fence, as_calls=False)

    def _release_held(self, fence: _Fence, *, as_calls: bool) -> None:
        for piece in fence.held or ():
            if isinstance(piece, str):
                self._out.append(piece)
            elif as_calls and not piece.is_text:
                self.calls.extend(piece.calls)
                self._count_empty(piece.is_empty)
                self._out.append(piece.returned)
            else:
                self._out += piece.raw
                self._out.append(piece.returned)
        fence.held = None

    # --- blocks of calls ---------------------------------------------------------------------

    def _begin_block(self, tag: str) -> None:
        self._block = self._tags.open_block(tag, quoted=self._fence is not None)
        self._state = self._in_block

    def _in_block(self, text: str, pos: int, final: bool) -> int:
        block = self._block
        assert block is not None
        pos = block.feed(text, pos)
        self._waiting = block.waiting
        if block.closed:
            self._end_block(block)
        return pos

    def _end_block(self, block: OpenBlock) -> None:
        self._block = None
        fence = self._fence
        if fence is not None:
            self._state = self._in_code
            self._hold_back(fence, block)
            if block.is_text:
                self._note_line("".join(block.raw))
                self._treat_as_text(fence)
            return
        self._state = self._text
        self._line_blank = False
        if block.is_text:
            self._out += block.raw
        else:
            self.calls.extend(block.calls)
            self._count_empty(block.is_empty)
        if block.thinking_end:
            self._think_end = block.thinking_end
            self._thoughts.begin()
            self._state = self._thinking
        if block.returned:
            self._emit(block.returned, 0, len(block.returned))

    # --- what is shown -----------------------------------------------------------------------

    def _show_and_wait(self, text: str, pos: int, stop: int) -> int:
        """Show the text up to `stop`, and wait for more if something is left there."""
        self._emit(text, pos, stop)
        self._waiting = stop < len(text)
        return stop

    def _emit(self, text: str, pos: int, stop: int) -> int:
        if stop > pos:
            piece = text[pos:stop]
            self._out.append(piece)
            self._note_line(piece)
        return stop

    def _note_line(self, piece: str) -> None:
        """Keep what has to be known of the current line, behind this piece of shown text."""
        newline = piece.rfind("\n")
        if newline >= 0:
            self._in_span = self._behind_mark = False
            self._line_blank = newline + 1 == len(piece) or piece[newline + 1 :].isspace()
        elif self._line_blank:
            self._line_blank = piece.isspace()
        if "`" in piece:
            pos = newline + 1
            if self._behind_mark and piece[pos : pos + 1] == "`":
                # The previous piece ended in the same run, which is counted already.
                pos = end_of(_RUNS["`"], piece, pos)
            while found := _RUNS["`"].search(piece, pos):
                self._in_span = not self._in_span
                pos = found.end()
        self._behind_mark = piece[-1:] == "`"
