"""`TextTools`: a model that only writes text, as a model that calls tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from lutumpy import AssistantTurn, Model, Transcript
from lutumpy.models import (
    StreamingModel,
    StructuredMode,
    ToolOffering,
    TurnOptions,
    check_model,
    checked_structured,
)
from lutumpy.streaming import ChunkStream, ChunkStreamSync
from lutumpy.text_tools.guided_answer import GuidedAnswers
from lutumpy.text_tools.protocol import ToolCallParser
from lutumpy.text_tools.request import RequestMaker
from lutumpy.text_tools.stream import TextStream, TextStreamSync
from lutumpy.text_tools.tag_parser import TagToolParser

__all__ = ["TextTools"]

_PARSER_MEMBERS = ("tags", "format_instruction", "parse", "stream_formatter")


class TextTools:
    """Lets a model without native tool calling call tools, by text in an agreed form.

    Used like any adapter. The tools of a turn go into one system message; calls are read from the
    text of the answer; their results go back as text. What the model writes between `<think>` and
    `</think>` is the `reasoning` of its answer. Rounds, hooks, commit, streaming and sessions are
    the same, and a conversation may continue with another model at any time.

    Args:
        model: The adapter, or any other model, that is asked for text. No tools are offered to it.
        parser: How calls are written; `TagToolParser()` by default. "auto" picks the format that
            the model was trained on by `template`, or else by `model.model`, its name, and logs it.
        template: The model's chat template, for "auto": `fetch_template` asks a llama.cpp server
            for it, `read_template` takes it from the files of a tokenizer.
        guided: The request also carries a JSON schema for the answer, made from the offer:
            endpoints that hold a model to it get valid calls from models that are too small to
            write them by themselves. Endpoints that only take strict schemas, as Anthropic's,
            refuse offers that have no strict form with `InvalidToolConstraints`.

    Attributes:
        model: The inner model.
        parser: The parser.
        guided: Whether answers are guided.
        structured: That of the model: how a structured turn asks for its value.

    Raises:
        ValueError: `model.structured` is neither "native" nor "tool", or neither the template nor
            the name of the model tells a format; or there is a template without "auto".
        TypeError: `parser` is not a parser.
    """

    def __init__(
        self,
        model: Model,
        parser: ToolCallParser | Literal["auto"] | None = None,
        *,
        guided: bool = False,
        template: str = "",
    ) -> None:
        check_model(model)
        if isinstance(parser, str) and parser == "auto":
            parser = _pick_parser(model, template)
        elif template:
            raise ValueError('template= is what parser="auto" goes by, so it needs parser="auto"')
        if parser is not None and not all(hasattr(parser, name) for name in _PARSER_MEMBERS):
            raise TypeError(
                f"parser= takes an object with {', '.join(_PARSER_MEMBERS)}, "
                f"as TagToolParser.hermes(), not {parser!r}"
            )
        self.model: Model = model
        self.parser: ToolCallParser = TagToolParser() if parser is None else parser
        self.guided: bool = guided
        self.structured: StructuredMode = checked_structured(getattr(model, "structured", "native"))
        self._requests = RequestMaker(self.parser, GuidedAnswers() if guided else None)

    def takes_forced_choice(self, extra: Mapping[str, Any]) -> bool:
        """Whether it can be made to call a tool: always, since its instruction asks for it."""
        return True

    async def respond(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """Make one request, and take its answer apart; the transcript is not changed.

        Raises:
            AdapterError: the request failed, or the reply can't be read.
            InvalidToolConstraints: the endpoint can't be asked for guided answers to this offer;
                nothing was sent.
            TranscriptError: there is nothing to answer; nothing was sent.
        """
        request = self._requests.make(transcript, offering, options)
        return request.read(await self.model.respond(request.transcript, None, request.options))

    def respond_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        """The same without an event loop."""
        request = self._requests.make(transcript, offering, options)
        return request.read(self.model.respond_sync(request.transcript, None, request.options))

    def open_stream(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ChunkStream:
        """One streamed request, sent when the stream is entered; the transcript isn't changed.

        Entering and reading it raise as `respond` does.

        Raises:
            TypeError: the model can't stream.
        """
        request = self._requests.make(transcript, offering, options)
        model = self._check_streams()
        return TextStream(model.open_stream(request.transcript, None, request.options), request)

    def open_stream_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> ChunkStreamSync:
        """The same without an event loop."""
        request = self._requests.make(transcript, offering, options)
        stream = self._check_streams().open_stream_sync(request.transcript, None, request.options)
        return TextStreamSync(stream, request)

    def _check_streams(self) -> StreamingModel:
        if not hasattr(self.model, "open_stream"):
            raise TypeError(f"{type(self.model).__name__} can't stream: it has no open_stream()")
        return cast("StreamingModel", self.model)

    def __repr__(self) -> str:
        guided = ", guided=True" if self.guided else ""
        return f"TextTools({self.model!r}, {self.parser!r}{guided})"


def _pick_parser(model: Model, template: str) -> TagToolParser:
    """The parser for the format that the template, or the name of the model, tells."""
    # Imported here: the table makes the syntaxes of every family, and nobody logs in most programs.
    import logging

    from lutumpy.text_tools.formats import recognize_format

    name = str(getattr(model, "model", ""))
    by_template = recognize_format(template=template)
    found = recognize_format(name) if by_template is None else by_template
    if found is None:
        raise ValueError(
            f'parser="auto" knows no format of tool calls for the model {name!r}; '
            "give its template=, or a parser, as TagToolParser.named(...)"
        )
    logging.getLogger("lutumpy.text_tools").info(
        "calls of the model %s are read as %s, by its %s",
        name,
        found.name,
        "name" if by_template is None else "template",
    )
    return TagToolParser.named(found.name)
