"""A model of several: one that fails is replaced by the next, and asked again later."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from lutumpy import AdapterError, AssistantTurn
from lutumpy.models import StreamingModel, StructuredMode, ToolOffering, Transcript, TurnOptions
from lutumpy.streaming import ChunkStream, ChunkStreamSync, Delta, StreamDecoder

__all__ = ["Fallback"]


class Fallback:
    """Asks the first of several models that is well. One that fails rests for some requests, and is
    asked again afterwards.

    Args:
        models: By a name for each, the best one first.
        rest: For how many of the next requests one that has failed isn't asked.
    """

    def __init__(self, models: Mapping[str, StreamingModel], *, rest: int = 2) -> None:
        self.models = dict(models)
        self.rest = rest
        self._resting = dict.fromkeys(models, 0)

    # What all of them can do.

    @property
    def structured(self) -> StructuredMode:
        modes = [getattr(model, "structured", "native") for model in self.models.values()]
        return "tool" if "tool" in modes else "native"

    @property
    def defers_tools(self) -> bool:
        return all(getattr(model, "defers_tools", False) for model in self.models.values())

    def takes_forced_choice(self, extra: Mapping[str, Any]) -> bool:
        asked = [getattr(m, "takes_forced_choice", None) for m in self.models.values()]
        return all(ask is None or ask(extra) for ask in asked)

    def order(self) -> list[str]:
        """Who is asked, and who if that one fails: those that rest come last."""
        found = sorted(self.models, key=lambda name: self._resting[name] > 0)
        self._resting = {name: max(0, left - 1) for name, left in self._resting.items()}
        return found

    def note(self, name: str, error: AdapterError, others: Sequence[str]) -> None:
        """A model has failed. Raises the error where no other model would do better, or none is
        left: a request that is refused would be refused again.
        """
        if not others or not (error.retryable or error.status in (401, 402, 403, 404)):
            raise error
        self._resting[name] = self.rest
        print(f"{name} fails ({error.status or 'no connection'}), {others[0]} goes on")

    async def respond(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        names = self.order()
        while True:
            name = names.pop(0)
            try:
                return await self.models[name].respond(transcript, offering, options)
            except AdapterError as error:
                self.note(name, error, names)

    def respond_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        names = self.order()
        while True:
            name = names.pop(0)
            try:
                return self.models[name].respond_sync(transcript, offering, options)
            except AdapterError as error:
                self.note(name, error, names)

    def open_stream(self, *request: Any) -> ChunkStream:
        return FallbackStream(self, request)

    def open_stream_sync(self, *request: Any) -> ChunkStreamSync:
        return FallbackStream(self, request)


class FallbackStream:
    """A stream of the first model that opens one. An error later on is raised: nothing is committed
    then, and the turn can be asked for again.
    """

    def __init__(self, models: Fallback, request: tuple[Any, ...]) -> None:
        self._models, self._request = models, request
        self._stream: Any = None
        self._later = LaterDecoder()
        self.decoder: StreamDecoder = self._later
        self.request_id: str | None = None

    def _opened(self, stream: Any) -> None:
        self._stream, self._later.inner = stream, stream.decoder
        self.request_id = stream.request_id

    async def __aenter__(self) -> AsyncIterator[Any]:
        names = self._models.order()
        while True:
            name = names.pop(0)
            stream = self._models.models[name].open_stream(*self._request)
            try:
                chunks = await stream.__aenter__()
            except AdapterError as error:
                self._models.note(name, error, names)
            else:
                self._opened(stream)
                return chunks

    async def __aexit__(self, *exc: object) -> None:
        await self._stream.__aexit__(*exc)

    def __enter__(self) -> Iterator[Any]:
        names = self._models.order()
        while True:
            name = names.pop(0)
            stream = self._models.models[name].open_stream_sync(*self._request)
            try:
                chunks = stream.__enter__()
            except AdapterError as error:
                self._models.note(name, error, names)
            else:
                self._opened(stream)
                return chunks

    def __exit__(self, *exc: object) -> None:
        self._stream.__exit__(*exc)


class LaterDecoder:
    """The decoder of a stream that isn't open yet."""

    inner: StreamDecoder

    def feed(self, chunk: Any) -> Sequence[Delta]:
        return self.inner.feed(chunk)

    def finish(self, request_id: str | None = None) -> AssistantTurn:
        return self.inner.finish(request_id)

    def partial(self) -> AssistantTurn | None:
        return self.inner.partial()
