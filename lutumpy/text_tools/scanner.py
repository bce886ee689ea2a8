"""A model's text while it arrives: what the user is shown, what the model thought, and the calls.

One pass over the text, with a state and a few characters that a next piece may make a tag; so pieces may be cut anywhere,
and what is whole gives the same. A call is held back from the user until it is known to be one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lutumpy.text_tools.block import Block, BlockTags
from lutumpy.text_tools.syntax import CallSyntax
from lutumpy.text_tools.tag_search import TagSearch, check_distinct, end_of
from lutumpy.text_tools.text_machine import SPACE, TextMachine

__all__ = ["ScanTags", "TextScanner"]

_BLANKS = re.compile(r"[ \t\r]*")
_PLAIN_INFO = re.compile(r"[ \t]*[\w+#.-]*[ \t\r]*")
_RUNS: Mapping[str, re.Pattern[str]] = {"`": re.compile("`+"), "~": re.compile("~+")}
_INFO_KEPT = 80


class ScanTags:
    """What a parser looks for in a text.

    Args:
        syntaxes: How calls are written.
        thinking: Pairs of texts around thinking, in which nothing is a call.

    Raises:
        ValueError: tags can't be told apart.
    """

    __slots__ = ("blocks", "in_fence", "in_info", "in_text", "think_ends", "thinking")

    def __init__(self, syntaxes: Sequence[CallSyntax], thinking: Sequence[tuple[str, str]]) -> None:
        starts = [syntax.start for syntax in syntaxes]
        check_distinct(
            [*starts, *[begin for begin, _ in thinking]], [end for s in syntaxes for end in s.ends]
        )
        self.blocks: dict[str, BlockTags] = {s.start: BlockTags(s, starts) for s in syntaxes}
        self.thinking: dict[str, str] = dict(thinking)
        self.think_ends: dict[str, TagSearch] = {end: TagSearch([end]) for _, end in thinking}
        self.in_text: TagSearch = TagSearch([*starts, *self.thinking], r"`{3,}|~{3,}|`+\Z|~+\Z")
        self.in_info: TagSearch = TagSearch(starts, "\n|`+|~+")
        self.in_fence: TagSearch = TagSearch(starts)


@dataclass(slots=True)
class _Fence:
    """A Markdown code block that is open.

    Attributes:
        mark: What its fence is made of.
        length: How many of them.
        in_line: It began behind other text.
        info: What stands behind the opening fence, as far as it is of interest.
        clean: Nothing but calls and white space stands in it so far.
        held: What it holds since its first call: text, or a block that may be a call.
    """

    mark: str
    length: int
    in_line: bool
    info: str = ""
    clean: bool = True
    held: list[str | Block] | None = None


class TextScanner(TextMachine):
    """A `StreamFormatter` that knows the calls and the thinking too.

    Args:
        tags: What to look for.
        begins_in: The texts around the thinking that the text begins in, where a template has opened it already.
    """

    __slots__ = (
        "_before_run",
        "_behind_mark",
        "_block",
        "_fence",
        "_in_span",
        "_line_blank",
        "_opening",
        "_run_length",
        "_run_mark",
        "_tags",
        "_think_end",
    )

    def __init__(self, tags: ScanTags, begins_in: tuple[str, str] | None = None) -> None:
        super().__init__(self._text if begins_in is None else self._opened)
        self._tags = tags
        # Whether nothing but white space stands on this line so far: a fence may begin or end here.
        self._line_blank = True
        self._before_run = True
        # Whether a code span is open on this line, and whether what was written last is a backtick.
        self._in_span = False
        self._behind_mark = False
        self._run_mark = ""
        self._run_length = 0
        self._fence: _Fence | None = None
        self._block: Block | None = None
        self._opening, self._think_end = begins_in or ("", "")

    def flush(self) -> str:
        """The text has ended: gives what was held back and is no part of a call."""
        self._run(self._carry, final=True)
        block, fence = self._block, self._fence
        if block is not None:
            block.finish(self._carry)
            self._carry = ""
            self._block_closed(block)
        if self._state == self._fence_run and fence is not None:
            self._end_fence_run()
        if fence is not None and fence.held is not None:
            self._release(fence, as_calls=True)
        return self._shown()

    # --- text outside of code blocks ----------------------------------------------------------------------------------

    def _text(self, text: str, pos: int, final: bool) -> int:
        found = self._tags.in_text.search(text, pos)
        if not final:
            beginning = self._tags.in_text.beginning(text, pos)
            if beginning < (len(text) if found is None else found.start()):
                return self._wait(text, pos, beginning)
        if found is None:
            return self._emit(text, pos, len(text))
        self._emit(text, pos, found.start())
        token = found.group()
        if token[0] in _RUNS:
            self._begin_run(token[0], self._opening_run)
            return found.start()
        if self._in_span and self._behind_mark:
            # Quoted in the middle of a sentence: how a call or thinking is written, and none (rule T3).
            return self._emit(text, found.start(), found.end())
        if token in self._tags.thinking:
            self._think_end = self._tags.thinking[token]
            self._thoughts.begin()
            self._state = self._thinking
            return found.end()
        self._begin_block(token)
        return found.end()

    def _opened(self, text: str, pos: int, final: bool) -> int:
        """At the beginning of a text whose thinking the prompt has opened; the model may open it once more."""
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
            self._state = self._text
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
            # Tildes are used for much else, so they open a code block only where Markdown says so.
            if self._run_length >= 3 and (self._run_mark == "`" or self._before_run):
                self._fence = _Fence(self._run_mark, self._run_length, in_line=not self._before_run)
                self._state = self._info
            else:
                self._state = self._text
        return stop

    # --- code blocks --------------------------------------------------------------------------------------------------

    def _open_fence(self) -> _Fence:
        assert self._fence is not None
        return self._fence

    def _info(self, text: str, pos: int, final: bool) -> int:
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
            self._state = self._info
        return stop

    def _in_code(self, text: str, pos: int, final: bool) -> int:
        fence = self._open_fence()
        return (
            self._clean_code(fence, text, pos, final)
            if fence.clean
            else self._other_code(fence, text, pos)
        )

    def _clean_code(self, fence: _Fence, text: str, pos: int, final: bool) -> int:
        stop = end_of(SPACE, text, pos)
        self._hold(fence, text[pos:stop])
        if stop == len(text):
            return stop
        if text[stop] == fence.mark:
            self._begin_run(fence.mark, self._fence_run)
            return stop
        tag = self._tags.in_fence.at(text, stop)
        if tag is not None:
            self._begin_block(tag)
            return stop + len(tag)
        if not final and self._tags.in_fence.begins_at(text, stop):
            self._waiting = True
            return stop
        self._spoil(fence)
        return stop

    def _other_code(self, fence: _Fence, text: str, pos: int) -> int:
        found = _RUNS[fence.mark].search(text, pos)
        if found is None:
            return self._emit(text, pos, len(text))
        self._emit(text, pos, found.start())
        self._begin_run(fence.mark, self._fence_run)
        return found.start()

    def _fence_run(self, text: str, pos: int, final: bool) -> int:
        stop = self._take_run(text, pos)
        if stop < len(text):
            self._end_fence_run()
        return stop

    def _end_fence_run(self) -> None:
        """What may be the closing fence is there, and not written yet."""
        fence = self._open_fence()
        run = self._run_mark * self._run_length
        # Marks behind other text open a code span, which the same number of them closes anywhere.
        closes = (
            self._run_length == fence.length if fence.in_line else self._run_length >= fence.length
        )
        if closes and (fence.in_line or (fence.clean and fence.held is not None)):
            self._release(fence, as_calls=True)
            self._emit(run, 0, len(run))
            self._leave_fence(0)
            return
        if closes and self._before_run:
            self._state = self._closing
        else:
            self._spoil(fence)
            self._state = self._in_code
        self._emit(run, 0, len(run))

    def _closing(self, text: str, pos: int, final: bool) -> int:
        """Behind a closing fence: it is none if anything else stands on its line."""
        stop = self._emit(text, pos, end_of(_BLANKS, text, pos))
        if stop < len(text):
            if text[stop] == "\n":
                self._leave_fence(stop)
            else:
                self._spoil(self._open_fence())
                self._state = self._in_code
        return stop

    def _leave_fence(self, pos: int) -> int:
        fence = self._open_fence()
        if fence.held is not None:
            self._release(fence, as_calls=True)
        self._fence = None
        self._state = self._text
        return pos

    def _hold(self, fence: _Fence, piece: str | Block) -> None:
        if isinstance(piece, Block):
            fence.held = [] if fence.held is None else fence.held
            fence.held.append(piece)
            self._line_blank = False
        elif piece and fence.held is not None:
            fence.held.append(piece)
            self._note_line(piece)
        else:
            self._emit(piece, 0, len(piece))

    def _spoil(self, fence: _Fence) -> None:
        """The code block holds more than calls, so it holds none (rule T3)."""
        if fence.clean:
            fence.clean = False
            self._release(fence, as_calls=False)

    def _release(self, fence: _Fence, *, as_calls: bool) -> None:
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

    # --- blocks of calls ----------------------------------------------------------------------------------------------

    def _begin_block(self, tag: str) -> None:
        self._block = Block(self._tags.blocks[tag], quoted=self._fence is not None)
        self._state = self._in_block

    def _in_block(self, text: str, pos: int, final: bool) -> int:
        block = self._block
        assert block is not None
        pos = block.feed(text, pos)
        self._waiting = block.waiting
        if block.closed:
            self._block_closed(block)
        return pos

    def _block_closed(self, block: Block) -> None:
        self._block = None
        fence = self._fence
        if fence is not None:
            self._state = self._in_code
            self._hold(fence, block)
            if block.is_text:
                self._note_line("".join(block.raw))
                self._spoil(fence)
            return
        self._state = self._text
        self._line_blank = False
        if block.is_text:
            self._out += block.raw
        else:
            self.calls.extend(block.calls)
            self._count_empty(block.is_empty)
        if block.returned:
            self._emit(block.returned, 0, len(block.returned))

    # --- what is shown ------------------------------------------------------------------------------------------------

    def _wait(self, text: str, pos: int, stop: int) -> int:
        """Show what can be shown, and wait for more where a tag may begin."""
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
        newline = piece.rfind("\n")
        if newline >= 0:
            self._in_span = self._behind_mark = False
            self._line_blank = newline + 1 == len(piece) or piece[newline + 1 :].isspace()
        elif self._line_blank:
            self._line_blank = piece.isspace()
        if "`" in piece:
            pos = newline + 1
            if (
                self._behind_mark and piece[pos : pos + 1] == "`"
            ):  # the piece before ended in the same run
                pos = end_of(_RUNS["`"], piece, pos)
            while found := _RUNS["`"].search(piece, pos):
                self._in_span = not self._in_span
                pos = found.end()
        self._behind_mark = piece[-1:] == "`"
