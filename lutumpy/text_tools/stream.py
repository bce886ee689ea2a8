"""A streamed answer of the inner model, with the calls taken out of its text as they arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from lutumpy.core.items import AssistantTurn
from lutumpy.core.streaming import (
    CallDelta,
    CallDone,
    ChunkStream,
    ChunkStreamSync,
    Delta,
    ReasoningDelta,
    StreamDecoder,
    TextDelta,
)
from lutumpy.errors import AdapterError
from lutumpy.text_tools.protocol import CallStreamFormatter, ReasoningFormatter
from lutumpy.text_tools.request import TextRequest
from lutumpy.text_tools.turn import API, call_block

__all__ = ["TextStream", "TextStreamSync"]

_HIGH_SURROGATES = ("\ud800", "\udbff")


class _End:
    """Stands behind the last event of the inner stream, so that what was held back can be told."""


_END = _End()


class TextStreamDecoder:
    """A `StreamDecoder` over the one of the inner model.

    Args:
        inner: Decodes the events.
        request: What was asked.
    """

    __slots__ = (
        "_caller",
        "_formatter",
        "_half",
        "_inner",
        "_request",
        "_thinker",
        "_told",
        "_turn",
    )

    def __init__(self, inner: StreamDecoder, request: TextRequest) -> None:
        self._inner = inner
        self._request = request
        self._formatter = request.formatter()
        # The same, where it knows the calls, and the thinking.
        self._caller = self._formatter if isinstance(self._formatter, CallStreamFormatter) else None
        self._thinker = self._formatter if isinstance(self._formatter, ReasoningFormatter) else None
        self._told = 0
        # The first half of a character that was cut in two.
        self._half = ""
        self._turn: AssistantTurn | None = None

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take the next event; raises as the inner decoder does, with what had arrived taken apart."""
        if isinstance(chunk, _End):
            return self._end()
        try:
            deltas = self._inner.feed(chunk)
        except AdapterError as error:
            self.take_apart(error)
            raise
        out: list[Delta] = []
        for delta in deltas:
            if type(delta) is TextDelta:
                self._text(delta.text, out)
            elif not isinstance(delta, (CallDelta, CallDone)):
                out.append(delta)
            # Native calls come behind those of the text, with the whole answer: until then there may be more of these.
        return out

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        """The whole answer: what `respond` gives for the same one. Raises as the inner decoder does."""
        if self._turn is not None:
            return self._turn if request_id is None else replace(self._turn, request_id=request_id)
        try:
            inner = self._inner.finish(request_id)
        except AdapterError as error:
            self.take_apart(error)
            raise
        return self._request.read(inner)

    def partial(self) -> AssistantTurn | None:
        """What has arrived so far, marked as cut; `None` when nothing has. Never raises."""
        inner = self._inner.partial()
        return None if inner is None else replace(self._request.read(inner), cut=True)

    def take_apart(self, error: AdapterError) -> None:
        """What had arrived when the inner model failed, in `error`, becomes what this decoder makes of it."""
        partial = error.partial
        if isinstance(partial, AssistantTurn) and partial.api != API:
            error.partial = replace(self._request.read(partial), cut=True)

    def _text(self, text: str, out: list[Delta]) -> None:
        text = self._half + text
        self._half = ""
        if text and _HIGH_SURROGATES[0] <= text[-1] <= _HIGH_SURROGATES[1]:
            text, self._half = text[:-1], text[-1]
        self._show(_joined(text), out)

    def _show(self, text: str, out: list[Delta]) -> None:
        self._tell(self._formatter.feed(text), out)

    def _tell(self, shown: str, out: list[Delta]) -> None:
        """What is shown now, with what was thought before it and the calls that are complete."""
        thought = "" if self._thinker is None else self._thinker.take_reasoning()
        if thought:
            out.append(ReasoningDelta(thought))
        if shown:
            out.append(TextDelta(shown))
        self._tell_calls(out)

    def _tell_calls(self, out: list[Delta]) -> None:
        """Tell the calls that are complete since the last time, in their order, as far as that is certain."""
        if self._caller is None:
            return
        calls = self._caller.calls
        while self._told < len(calls):
            block = call_block(calls[self._told], self._told)
            out.append(CallDelta(self._told, "", block.name, block.arguments))
            # What is wrong with the others depends on whether the answer was cut.
            if block.problem is None:
                out.append(CallDone(self._told, block))
            self._told += 1

    def _end(self) -> Sequence[Delta]:
        """The inner stream has ended: tell what was held back, if the answer is whole."""
        try:
            self._turn = self._request.read(self._inner.finish())
        except AdapterError:
            return ()  # it ended too early, which `finish` says
        out: list[Delta] = []
        if self._half:
            self._show(self._half, out)
        self._tell(self._formatter.flush(), out)
        return out


def _joined(text: str) -> str:
    """`text` with the halves of a character that came in two pieces put together."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text


class TextStream:
    """A `ChunkStream` over the one of the inner model.

    Args:
        inner: The stream.
        request: What was asked.

    Attributes:
        decoder: Decodes its events.
        request_id: The provider's id of the request, once it is entered and where that is known.
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
    """The events of the inner stream, and one behind them."""

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
    """The same without an event loop."""

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
    try:
        yield from chunks
    except AdapterError as error:
        decoder.take_apart(error)
        raise
    yield _END
