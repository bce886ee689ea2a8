"""A text model's thinking, split off the text that it is written into."""

# Models write `<think>...</think>` into their text, mostly at its beginning. With some templates
# they write only the end tag, since the prompt opens the thinking. It becomes the `reasoning` of
# the answer, and is not part of its text.
#
# A parser that knows its calls finds thinking anywhere (`TextScanner`), since it can tell a tag
# from the same letters in a call's string or in a code block. Where the text is a JSON value, or a
# parser knows nothing of thinking, the same letters may be data. There, only what comes before
# everything else is split off: `LeadingThinking`.
#
#     _opened --> _thinking <--> _before --> _rest
#        |                          ^
#        +--------------------------+   the text begins like a value, or opens the thinking itself
#
# `_opened` is the first state where the prompt has opened the thinking, `_before` otherwise. In
# `_before` another section of thinking may begin; in `_rest` everything is text.

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lutumpy.text_tools.protocol import ParsedCall, ParsedText, ReasoningFormatter, StreamFormatter
from lutumpy.text_tools.tag_search import TagSearch, end_of
from lutumpy.text_tools.text_machine import SPACE, TextMachine

__all__ = ["MISTRAL_THINK", "THINK", "LeadingThinking", "join_reasoning"]

THINK = (("<think>", "</think>"),)
"""The texts around thinking, unless a parser says otherwise."""

MISTRAL_THINK = (("[THINK]", "[/THINK]"), *THINK)
"""Those of Mistral's models, and the usual ones."""

_VALUE_BEGINS = "{[`"


class LeadingThinking:
    """Splits off what a model thinks before it writes anything else.

    Args:
        pairs: Pairs of texts around thinking.
        starts_thinking: The text begins inside of the first pair, unless it begins like a JSON
            value or a code block: an endpoint that holds a model to a schema leaves it no room to
            think.
    """

    __slots__ = ("_starts_in", "_tags")

    def __init__(
        self, pairs: Sequence[tuple[str, str]] = THINK, *, starts_thinking: bool = False
    ) -> None:
        self._tags = dict(pairs)
        self._starts_in = pairs[0] if starts_thinking else None

    def parser(self, parse: Callable[[str], ParsedText]) -> Callable[[str], ParsedText]:
        """`parse`, given the text without its leading thinking."""

        def parse_rest(text: str) -> ParsedText:
            splitter = _Splitter(self._tags, self._starts_in)
            rest = splitter.feed(text) + splitter.flush()
            parsed = parse(rest)
            reasoning = join_reasoning(splitter.take_reasoning(), parsed.reasoning)
            return replace(parsed, reasoning=reasoning) if reasoning else parsed

        return parse_rest

    def formatter(
        self, make: Callable[[], StreamFormatter] | None
    ) -> Callable[[], StreamFormatter]:
        """`make`, whose formatters get the text without its leading thinking.

        Without `make`, all of the rest is shown.
        """
        return lambda: _Formatter(
            _Splitter(self._tags, self._starts_in), None if make is None else make()
        )


def join_reasoning(first: str, second: str) -> str:
    """Two pieces of thinking as one text."""
    return f"{first}\n\n{second}" if first and second else first or second


class _Splitter(TextMachine):
    """A `StreamFormatter` for leading thinking: shows the text without it."""

    __slots__ = ("_end", "_pairs", "_starts", "_starts_in")

    def __init__(self, pairs: dict[str, str], starts_in: tuple[str, str] | None) -> None:
        super().__init__(self._before if starts_in is None else self._opened)
        self._pairs = pairs
        self._starts = TagSearch(pairs)
        self._starts_in = starts_in
        self._end = TagSearch([starts_in[1]] if starts_in is not None else ())

    def flush(self) -> str:
        """The text has ended."""
        self._run(self._carry, final=True)
        return self._take_shown()

    def _opened(self, text: str, pos: int, final: bool) -> int:
        """At the beginning of a text whose thinking the prompt has opened."""
        stop = end_of(SPACE, text, pos)
        if stop == len(text):
            return stop
        if self._starts.at(text, stop) is not None:
            self._state = self._before  # the model opens it once more
        elif not final and self._starts.begins_at(text, stop):
            self._waiting = True
        elif text[stop] in _VALUE_BEGINS:
            self._state = self._before
        else:
            self._thoughts.begin()
            self._state = self._thinking
        return stop

    def _before(self, text: str, pos: int, final: bool) -> int:
        stop = end_of(SPACE, text, pos)
        self._out.append(text[pos:stop])
        if stop == len(text):
            return stop
        tag = self._starts.at(text, stop)
        if tag is not None:
            self._end = TagSearch([self._pairs[tag]])
            self._thoughts.begin()
            self._state = self._thinking
            return stop + len(tag)
        if not final and self._starts.begins_at(text, stop):
            self._waiting = True
            return stop
        self._state = self._rest
        return stop

    def _thinking(self, text: str, pos: int, final: bool) -> int:
        found = self._end.search(text, pos)
        if found is not None:
            self._thoughts.add(text[pos : found.start()])
            self._state = self._before
            return found.end()
        stop = len(text) if final else self._end.beginning(text, pos)
        self._thoughts.add(text[pos:stop])
        self._waiting = stop < len(text)
        return stop

    def _rest(self, text: str, pos: int, final: bool) -> int:
        self._out.append(text[pos:])
        return len(text)


class _Formatter:
    """A formatter behind a splitter."""

    __slots__ = ("_inner", "_splitter")

    def __init__(self, splitter: _Splitter, inner: StreamFormatter | None) -> None:
        self._splitter = splitter
        self._inner = inner

    @property
    def calls(self) -> Sequence[ParsedCall]:
        """The calls that are complete so far; none where the inner formatter doesn't know them."""
        return getattr(self._inner, "calls", ())

    def feed(self, chunk: str) -> str:
        """As for every stream formatter."""
        rest = self._splitter.feed(chunk)
        return rest if self._inner is None or not rest else self._inner.feed(rest)

    def flush(self) -> str:
        """As for every stream formatter."""
        rest = self._splitter.flush()
        if self._inner is None:
            return rest
        return (self._inner.feed(rest) if rest else "") + self._inner.flush()

    def take_reasoning(self) -> str:
        """As for every formatter that knows the thinking."""
        own = self._splitter.take_reasoning()
        if isinstance(self._inner, ReasoningFormatter):
            return own + self._inner.take_reasoning()
        return own
