"""A streamed answer of the inner model, with the calls taken out of its text as they arrive."""

# The decoder here wraps the inner model's: its deltas of text go through the parser's formatter,
# and come out as text, thinking and calls. Three things to know:
#
# - Formatters hold text back that may become a tag. So one more chunk, `_END`, follows the last one
#   of the inner stream, and flushes what is held back before `finish` is asked for the turn.
# - A character outside of the basic plane may be cut in two halves, which arrive in two pieces; the
#   first half waits for the second.
# - A call without a problem is final at once. What is wrong with another one depends on whether the
#   answer was cut, so its end is announced with the turn only.

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from lutumpy import AdapterError, AssistantTurn
from lutumpy.plain.json_values import hold_half
from lutumpy.streaming import (
    CallDelta,
    CallDone,
    ChunkStream,
    ChunkStreamSync,
    Delta,
    ReasoningDelta,
    StreamDecoder,
    TextDelta,
)
from lutumpy.text_tools.protocol import CallStreamFormatter, ReasoningFormatter
from lutumpy.text_tools.request import TextRequest
from lutumpy.text_tools.turn import API, call_block

__all__ = ["TextStream", "TextStreamSync"]


class _End:
    """Follows the last chunk of the inner stream, so that held-back text can be released."""


_END = _End()


class TextStreamDecoder:
    """A `StreamDecoder` over the one of the inner model.

    Args:
        inner: Decodes the events.
        request: The request that it answers.
    """

    __slots__ = (
        "_call_formatter",
        "_calls_announced",
        "_formatter",
        "_half_character",
        "_inner",
        "_reasoning_formatter",
        "_request",
        "_turn",
    )

    def __init__(self, inner: StreamDecoder, request: TextRequest) -> None:
        self._inner = inner
        self._request = request
        self._formatter = request.formatter()
        # The same object, where it knows the calls, and where it knows the thinking.
        self._call_formatter = (
            self._formatter if isinstance(self._formatter, CallStreamFormatter) else None
        )
        self._reasoning_formatter = (
            self._formatter if isinstance(self._formatter, ReasoningFormatter) else None
        )
        self._calls_announced = 0
        # The first half of a character that was cut in two.
        self._half_character = ""
        self._turn: AssistantTurn | None = None

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next chunk.

        Raises as the inner decoder does; what had arrived by then is taken apart in the error.
        """
        if isinstance(chunk, _End):
            return self._release_held()
        try:
            deltas = self._inner.feed(chunk)
        except AdapterError as error:
            self.take_apart(error)
            raise
        out: list[Delta] = []
        for delta in deltas:
            if type(delta) is TextDelta:
                self._add_text(delta.text, out)
            elif not isinstance(delta, (CallDelta, CallDone)):
                out.append(delta)
            # Native calls come behind those of the text, with the whole answer: until its end,
            # the text may hold more calls.
        return out

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer, the same as from `respond`. Raises as the inner decoder does."""
        if self._turn is not None:
            return self._turn if request_id is None else replace(self._turn, request_id=request_id)
        try:
            inner = self._inner.finish(request_id)
        except AdapterError as error:
            self.take_apart(error)
            raise
        return self._request.read(inner)

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut; `None` if nothing has. Never raises."""
        inner = self._inner.partial()
        return None if inner is None else replace(self._request.read(inner), cut=True)

    def take_apart(self, error: AdapterError) -> None:
        """Take apart the answer in `error`: what had arrived when the inner model failed."""
        partial = error.partial
        if isinstance(partial, AssistantTurn) and partial.api != API:
            error.partial = replace(self._request.read(partial), cut=True)

    def _add_text(self, text: str, out: list[Delta]) -> None:
        text, self._half_character = hold_half(self._half_character + text)
        self._show_text(_join_surrogates(text), out)

    def _show_text(self, text: str, out: list[Delta]) -> None:
        self._add_events(self._formatter.feed(text), out)

    def _add_events(self, shown: str, out: list[Delta]) -> None:
        """Add events: the thinking, then the shown text, then the calls that are complete."""
        thought = (
            "" if self._reasoning_formatter is None else self._reasoning_formatter.take_reasoning()
        )
        if thought:
            out.append(ReasoningDelta(thought))
        if shown:
            out.append(TextDelta(shown))
        self._announce_calls(out)

    def _announce_calls(self, out: list[Delta]) -> None:
        """Add events for the calls that have become complete since the last time."""
        if self._call_formatter is None:
            return
        calls = self._call_formatter.calls
        while self._calls_announced < len(calls):
            call = calls[self._calls_announced]
            block = call_block(call, self._calls_announced)
            out.append(CallDelta(self._calls_announced, "", block.name, block.arguments))
            # What is wrong with other calls depends on whether the answer was cut.
            if block.problem is None and not call.open_ended:
                out.append(CallDone(self._calls_announced, block))
            self._calls_announced += 1

    def _release_held(self) -> Sequence[Delta]:
        """The inner stream has ended: release what was held back, if the answer is whole."""
        try:
            self._turn = self._request.read(self._inner.finish())
        except AdapterError:
            return ()  # it ended too early; `finish` will raise
        out: list[Delta] = []
        if self._half_character:
            self._show_text(self._half_character, out)
        self._add_events(self._formatter.flush(), out)
        return out


def _join_surrogates(text: str) -> str:
    """`text` with characters put together whose halves came in two pieces."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text


class TextStream:
    """A `ChunkStream` over the one of the inner model.

    Args:
        inner: The stream.
        request: The request that it answers.

    Attributes:
        decoder: Decodes its events.
        request_id: The provider's id of the request, where known, once the stream is entered.
    """

    __slots__ = ("_decoder", "_inner", "decoder", "request_id")

    def __init__(self, inner: ChunkStream, request: TextRequest) -> None:
        self._decoder = TextStreamDecoder(inner.decoder, request)
        self.decoder: StreamDecoder = self._decoder
        self.request_id: str | None = None
        self._inner = inner

    async def __aenter__(self) -> AsyncIterator[Any]:
        chunks = await self._inner.__aenter__()
        self.request_id = self._inner.request_id
        return _Chunks(chunks, self._decoder)

    async def __aexit__(self, *exc: object) -> None:
        await self._inner.__aexit__(*exc)


class _Chunks:
    """The chunks of the inner stream, and `_END` behind them."""

    __slots__ = ("_decoder", "_ended", "_inner")

    def __init__(self, inner: AsyncIterator[Any], decoder: TextStreamDecoder) -> None:
        self._inner = inner
        self._decoder = decoder
        self._ended = False

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if self._ended:
            raise StopAsyncIteration
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            self._ended = True
            return _END
        except AdapterError as error:
            self._decoder.take_apart(error)
            raise


class TextStreamSync:
    """As `TextStream`, without an event loop."""

    __slots__ = ("_decoder", "_inner", "decoder", "request_id")

    def __init__(self, inner: ChunkStreamSync, request: TextRequest) -> None:
        self._decoder = TextStreamDecoder(inner.decoder, request)
        self.decoder: StreamDecoder = self._decoder
        self.request_id: str | None = None
        self._inner = inner

    def __enter__(self) -> Iterator[Any]:
        chunks = self._inner.__enter__()
        self.request_id = self._inner.request_id
        return _with_end(chunks, self._decoder)

    def __exit__(self, *exc: object) -> None:
        self._inner.__exit__(*exc)


def _with_end(chunks: Iterator[Any], decoder: TextStreamDecoder) -> Iterator[Any]:
    """The chunks of the inner stream, and `_END` behind them."""
    try:
        yield from chunks
    except AdapterError as error:
        decoder.take_apart(error)
        raise
    yield _END
