"""`TextTools`: a model that only writes text, as a model that calls tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from lutumpy.core.items import AssistantTurn
from lutumpy.core.model import (
    Model,
    StreamingModel,
    StructuredMode,
    TurnOptions,
    check_model,
    checked_structured,
)
from lutumpy.core.streaming import ChunkStream, ChunkStreamSync
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.text_tools.guided_answer import GuidedAnswers
from lutumpy.text_tools.protocol import ToolCallParser
from lutumpy.text_tools.request import Asking
from lutumpy.text_tools.stream import TextStream, TextStreamSync
from lutumpy.text_tools.tag_parser import TagToolParser

__all__ = ["TextTools"]

_PARSER = ("tags", "format_instruction", "parse", "stream_formatter")


class TextTools:
    """Lets a model without native tool calling call tools, by text that it is told to write.

    Used like any adapter. The tools of a turn go into one system message; calls are read from the text of the answer; their
    results go back as text. What the model writes between `<think>` and `</think>` is the `reasoning` of its answer. Rounds,
    hooks, commit, streaming and sessions are the same, and a conversation may go on with another model at any time.

    Args:
        model: The adapter, or any other model, that is asked for text. No tools are offered to it.
        parser: How calls are written; `TagToolParser()` when left out.
        guided: The request also carries a JSON schema for the answer, made from the offer: endpoints that hold a model to it
            get valid calls from models that are too small to write them by themselves. Endpoints that take strict schemas
            only, as Anthropic's, refuse offers that have no strict form with `InvalidToolConstraints`.

    Attributes:
        model: As given.
        parser: As given.
        guided: As given.
        structured: As of the model: how a structured turn asks for its value.

    Raises:
        ValueError: `model` says neither "native" nor "tool" for `structured`.
        TypeError: `parser` is no parser.
    """

    def __init__(
        self, model: Model, parser: ToolCallParser | None = None, *, guided: bool = False
    ) -> None:
        check_model(model)
        if parser is not None and not all(hasattr(parser, name) for name in _PARSER):
            raise TypeError(
                f"parser= takes an object with {', '.join(_PARSER)}, as TagToolParser.hermes(), not {parser!r}"
            )
        self.model: Model = model
        self.parser: ToolCallParser = TagToolParser() if parser is None else parser
        self.guided: bool = guided
        self.structured: StructuredMode = checked_structured(getattr(model, "structured", "native"))
        self._asking = Asking(self.parser, GuidedAnswers() if guided else None)

    def takes_forced_choice(self, extra: Mapping[str, Any]) -> bool:
        """Whether it can be made to call a tool: by its instruction, so always."""
        return True

    async def respond(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """One request, and its answer taken apart; the transcript is not changed.

        Raises:
            AdapterError: the request failed, or the answer is no answer.
            InvalidToolConstraints: the endpoint can't be asked for guided answers to this offer; nothing was sent.
            TranscriptError: there is nothing to answer; nothing was sent.
        """
        request = self._asking.request(transcript, offering, options)
        return request.read(await self.model.respond(request.transcript, None, request.options))

    def respond_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """The same without an event loop."""
        request = self._asking.request(transcript, offering, options)
        return request.read(self.model.respond_sync(request.transcript, None, request.options))

    def open_stream(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ChunkStream:
        """One streamed request, sent when the stream is entered; the transcript isn't changed. Raises as `respond` does.

        Raises:
            TypeError: the model can't stream.
        """
        request = self._asking.request(transcript, offering, options)
        return TextStream(
            self._streaming().open_stream(request.transcript, None, request.options), request
        )

    def open_stream_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ChunkStreamSync:
        """The same without an event loop."""
        request = self._asking.request(transcript, offering, options)
        return TextStreamSync(
            self._streaming().open_stream_sync(request.transcript, None, request.options), request
        )

    def _streaming(self) -> StreamingModel:
        if not hasattr(self.model, "open_stream"):
            raise TypeError(f"{type(self.model).__name__} can't stream: it has no open_stream()")
        return cast("StreamingModel", self.model)

    def __repr__(self) -> str:
        return f"TextTools({self.model!r}, {self.parser!r}{', guided=True' if self.guided else ''})"
