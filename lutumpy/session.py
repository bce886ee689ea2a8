"""A session: a transcript, what it cost, and the turns made with a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, cast, overload

from typing_extensions import TypeVar

from lutumpy.core.costs import Ledger
from lutumpy.core.items import AssistantTurn, Part
from lutumpy.core.model import Model, StreamingModel, TurnOptions, check_model
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.rounds.availability import ToolAvailability, ToolRequirement
from lutumpy.rounds.offer import Offer, make_offer
from lutumpy.rounds.outcome import Finished, NeedsTools, TurnResult
from lutumpy.rounds.read import begin_request, read_answer, read_text
from lutumpy.rounds.target import own_transcript
from lutumpy.rounds.unfinished import CountedRequest
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.selectors import ByTool, Selector
from lutumpy.tools.views import HasView, View
from lutumpy.toolset import NoTools, Toolset

if TYPE_CHECKING:
    from lutumpy.core.streaming import StreamDecoder
    from lutumpy.rounds.reader import Reader
    from lutumpy.rounds.stream import TurnStream, TurnStreamSync
    from lutumpy.rounds.structured import AnswerTool

TS = TypeVar("TS", bound=Toolset[Any])
C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)
V = TypeVar("V")
W = TypeVar("W", default=None)

_PLAIN = TurnOptions()

MakeResult: TypeAlias = Callable[[AssistantTurn], TurnResult[W]]
Content: TypeAlias = "str | Sequence[str | Part]"


class Session(Ledger):
    """A conversation with a model: `transcript`, and what it cost so far: `usage`, and `unsettled`
    where that isn't known.

    Not safe for use by several threads or tasks at once: use `fork()` for branches.
    """

    __slots__ = ()

    def __init__(self, transcript: Transcript | None = None) -> None:
        super().__init__(own_transcript(transcript))

    def push_system(self, content: Content) -> None:
        """Add a system message."""
        self.transcript.push_system(content)

    def push_developer(self, content: Content) -> None:
        """Add a developer message; where an API has no such role it is sent as a system message."""
        self.transcript.push_developer(content)

    def push_user(self, content: Content) -> None:
        """Add a user message: a text, or parts (texts, images, files)."""
        self.transcript.push_user(content)

    def push_assistant(self, content: Content) -> None:
        """Add an assistant message that no model wrote here: an example, or the beginning of an
        answer.
        """
        self.transcript.push_assistant(content)

    def push_ephemeral_system(self, content: Content) -> None:
        """Add a system message for the next request only; it is kept when that request fails."""
        self.transcript.push_ephemeral_system(content)

    def push_ephemeral_developer(self, content: Content) -> None:
        """Add a developer message for the next request only; it is kept when that request fails."""
        self.transcript.push_ephemeral_developer(content)

    def push_ephemeral_user(self, content: Content) -> None:
        """Add a user message for the next request only; it is kept when that request fails."""
        self.transcript.push_ephemeral_user(content)

    def push_ephemeral_assistant(self, content: Content) -> None:
        """Add an assistant message for the next request only; it is kept when that request fails."""
        self.transcript.push_ephemeral_assistant(content)

    def turns(self) -> list[AssistantTurn]:
        """The committed assistant turns, in order."""
        return self.transcript.turns()

    def discard_open(self) -> None:
        """Go on without the rounds that were dropped open, so that requests are made again (rule
        C7a).

        A round that something still holds stays open. Nothing happens where no round was dropped.
        """
        self.transcript.discard_open()

    def fork(self) -> Session:
        """An independent copy: the same history, the same costs so far."""
        twin = Session(self.transcript.fork())
        twin._count(self.usage, self.unsettled)
        return twin

    def dump(self) -> dict[str, Any]:
        """The session as JSON values: transcript, ephemerals that are still pending, costs.

        Open rounds are not part of it.
        """
        from lutumpy.core import dump as dumps
        from lutumpy.histories import known_refusals

        return dumps.dump_session(
            self.transcript, self.usage, self.unsettled, known_refusals(self.transcript)
        )

    @staticmethod
    def load(data: Mapping[str, Any] | str | bytes) -> Session:
        """The session of a dump, or of its JSON text; it sends the same bytes as the dumped one.

        Raises:
            TranscriptError: the data is invalid, or of a version that this release doesn't know;
                nothing was loaded.
        """
        from lutumpy.core import dump as dumps
        from lutumpy.histories import check_loaded

        transcript, usage, unsettled, refused = dumps.load_session(data)
        check_loaded(transcript, refused)
        session = Session(transcript)
        session._count(usage, unsettled)
        return session

    @overload
    def text_turn(
        self,
        llm: Model,
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> TextTurn[None]: ...
    @overload
    def text_turn(
        self,
        llm: Model,
        *,
        tools: HasView[View[TS, C]],
        available: ToolAvailability[TS] | None = None,
        require: ToolRequirement[TS] | None = None,
        describe: ByTool[Selector[TS, Any, Any], str] | None = None,
        parallel: bool = True,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> ToolTurn[C, None]: ...
    def text_turn(
        self,
        llm: Model,
        *,
        tools: HasView[View[Any, Any]] | None = None,
        available: ToolAvailability[Any] | None = None,
        require: ToolRequirement[Any] | None = None,
        describe: ByTool[Selector[Any, Any, Any], str] | None = None,
        parallel: bool = True,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> TextTurn[None] | ToolTurn[Any, None]:
        """One turn of the model, not sent yet: `await turn.collect()`, `turn.collect_sync()`, or
        the staged forms.

        Args:
            llm: An adapter with its model.
            tools: The toolset; without one, `collect()` gives the `TurnResult` directly.
            available: Which tools the model may call.
            require: Whether it must call one.
            describe: Other descriptions for this turn.
            parallel: `False` asks for at most one call.
            temperature: Sampling temperature.
            max_output_tokens: Limit of the answer, in tokens.
            extra: Provider parameters, passed through as they are.

        Raises:
            InvalidToolConstraints: the constraints can't hold; nothing was sent.
        """
        plain = temperature is None and max_output_tokens is None and extra is None
        options = (
            _PLAIN
            if plain
            else TurnOptions(temperature, max_output_tokens, {} if extra is None else extra)
        )
        return _turn(self, llm, options, TurnResult, tools, available, require, describe, parallel)

    @overload
    def structured_turn(
        self,
        llm: Model,
        value: type[V],
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> TextTurn[V]: ...
    @overload
    def structured_turn(
        self,
        llm: Model,
        value: type[V],
        *,
        tools: HasView[View[TS, C]],
        available: ToolAvailability[TS] | None = None,
        require: ToolRequirement[TS] | None = None,
        describe: ByTool[Selector[TS, Any, Any], str] | None = None,
        parallel: bool = True,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> ToolTurn[C, V]: ...
    @overload
    def structured_turn(
        self,
        llm: Model,
        value: Any,
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> TextTurn[Any]: ...
    @overload
    def structured_turn(
        self,
        llm: Model,
        value: Any,
        *,
        tools: HasView[View[TS, C]],
        available: ToolAvailability[TS] | None = None,
        require: ToolRequirement[TS] | None = None,
        describe: ByTool[Selector[TS, Any, Any], str] | None = None,
        parallel: bool = True,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> ToolTurn[C, Any]: ...
    def structured_turn(
        self,
        llm: Model,
        value: Any,
        *,
        tools: HasView[View[Any, Any]] | None = None,
        available: ToolAvailability[Any] | None = None,
        require: ToolRequirement[Any] | None = None,
        describe: ByTool[Selector[Any, Any, Any], str] | None = None,
        parallel: bool = True,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> TextTurn[Any] | ToolTurn[Any, Any]:
        """As `text_turn`, with a typed value: by the provider's own JSON schema output, or by a
        tool that takes it where the adapter was made with `structured="tool"`.

        `TurnResult.value` has it; where the model refused, was cut off, or wrote something else, it
        is `None`, and `.refusal` or `.value_error` says why. What the model wrote never raises.
        JSON inside one Markdown code fence, with nothing but white space around it, is read too.

        Args:
            llm: An adapter with its model.
            value: The type of the value: a pydantic model, dataclass, `TypedDict`, union,
                `Literal`, list, or anything else that pydantic has a JSON Schema for. What is no
                JSON object is asked for as `{"value": ...}`. A checker knows the type of the value
                where this is a class, and has `Any` for unions and other special forms.
            tools: As for `text_turn`, as are the others.
            available: Which tools the model may call.
            require: Whether it must call one.
            describe: Other descriptions for this turn.
            parallel: `False` asks for at most one call.
            temperature: Sampling temperature.
            max_output_tokens: Limit of the answer, in tokens.
            extra: Provider parameters, passed through as they are.

        Raises:
            DeclarationError: the type has no JSON Schema.
            InvalidToolConstraints: the constraints can't hold; nothing was sent.
        """
        from lutumpy.rounds.structured import (
            value_reader,  # not every program asks for typed values
        )

        reader = value_reader(value)
        extra = {} if extra is None else extra
        by_tool = getattr(llm, "structured", "native") == "tool"
        options = TurnOptions(
            temperature, max_output_tokens, extra, None if by_tool else reader.spec
        )
        turn = _turn(self, llm, options, reader, tools, available, require, describe, parallel)
        if by_tool:
            takes_forced_choice = getattr(llm, "takes_forced_choice", None)
            forced = takes_forced_choice is None or takes_forced_choice(extra)
            turn._answer_by(
                reader.answer_tool(
                    () if tools is None else tools.__view__().toolset.__lutumpy_table__.by_name
                ),
                forced=forced,
            )
        return turn

    def __repr__(self) -> str:
        return f"<Session of {len(self.transcript)} items, {self.usage.total_tokens} tokens>"


def _turn(
    session: Session,
    llm: Model,
    options: TurnOptions,
    result: MakeResult[Any],
    tools: HasView[View[Any, Any]] | None,
    available: ToolAvailability[Any] | None,
    require: ToolRequirement[Any] | None,
    describe: ByTool[Selector[Any, Any, Any], str] | None,
    parallel: bool,
) -> TextTurn[Any] | ToolTurn[Any, Any]:
    check_model(llm)
    if tools is None:
        if available is not None or require is not None or describe:
            raise TypeError("available=, require= and describe= need tools=")
        return TextTurn(session, llm, options, result)
    if not hasattr(tools, "__view__"):
        raise TypeError(f"tools= takes a Toolset class, not {tools!r:.100}; nothing was sent")
    offer = make_offer(tools.__view__().toolset, available, require, describe, parallel)
    return ToolTurn(session, llm, offer, options, result)


class ToolTurn(CountedRequest, Generic[C, W]):
    """A turn with tools, not sent yet. Every `collect` makes a request of its own."""

    __slots__ = ("_answer", "_offer", "_options", "_result")

    def __init__(
        self,
        session: Session,
        llm: Model,
        offer: Offer[C],
        options: TurnOptions,
        result: MakeResult[W],
    ) -> None:
        self._session = session
        self._llm = llm
        self._offer = offer
        self._offering = offer
        self._options = options
        self._result = result
        self._answer: AnswerTool[Any] | None = None

    def _answer_by(self, answer: AnswerTool[Any], *, forced: bool) -> None:
        """Take the value from a tool that is offered beside the others; `forced`: the model can be
        made to call one.
        """
        self._answer = answer
        self._offering = answer.offering(self._offer, forced=forced)

    async def collect(self) -> NeedsTools[C] | Finished[W]:
        """Send the request and wait for the whole answer.

        Returns:
            `Finished` (in the session already) or `NeedsTools` (not in it until its round is
            committed).

        Raises:
            InvalidToolConstraints: the provider can't do what the offer asks; nothing was sent.
            TranscriptError: there is nothing to answer; nothing was sent.
            AdapterError: the request failed; the session is as it was but for its costs, ephemerals
                are kept.
            StaleRoundError: the session moved on during the request; the finished answer is in
                `.result`.
        """
        return await self._collect(staged=False)

    async def collect_staged(self) -> NeedsTools[C] | Finished[W]:
        """As `collect`, but a finished answer is not in the session until
        `Finished.commit(session)`.
        """
        return await self._collect(staged=True)

    def collect_sync(self) -> NeedsTools[C] | Finished[W]:
        """As `collect`, through a sync client."""
        return self._collect_sync(staged=False)

    def collect_staged_sync(self) -> NeedsTools[C] | Finished[W]:
        """As `collect_staged`, through a sync client."""
        return self._collect_sync(staged=True)

    def stream(self) -> TurnStream[C, NeedsTools[C] | Finished[W]]:
        """The turn as a stream of events: `async with turn.stream() as stream: async for event in
        stream: ...`.

        Nothing is sent before it is entered. Its `outcome` is what `collect` would have returned;
        raises as that does.
        """
        source = _streaming(self._llm).open_stream(
            self._session.transcript, self._offering, self._options
        )
        from lutumpy.rounds.stream import TO_OUTCOME, TurnStream

        return TurnStream(source, self._reader, TO_OUTCOME, self._unfinished())

    def stream_sync(self) -> TurnStreamSync[C, NeedsTools[C] | Finished[W]]:
        """As `stream`, with `with` and `for`, through a sync client."""
        source = _streaming(self._llm).open_stream_sync(
            self._session.transcript, self._offering, self._options
        )
        from lutumpy.rounds.stream import TO_OUTCOME, TurnStreamSync

        return TurnStreamSync(source, self._reader, TO_OUTCOME, self._unfinished())

    def _reader(self, decoder: StreamDecoder) -> Reader[C, W]:
        from lutumpy.rounds.reader import Reader

        self._session.transcript.refuse_dropped()
        return Reader(self._offer, decoder, self._session, self._result, self._answer)

    async def _collect(self, *, staged: bool) -> NeedsTools[C] | Finished[W]:
        transcript = self._session.transcript
        begun = begin_request(transcript)
        try:
            turn = await self._llm.respond(transcript, self._offering, self._options)
        except BaseException as error:
            self._unfinished().failed(error)
            raise
        return read_answer(
            self._offer,
            turn,
            self._session,
            begun,
            staged=staged,
            result=self._result,
            answer=self._answer,
        )

    def _collect_sync(self, *, staged: bool) -> NeedsTools[C] | Finished[W]:
        transcript = self._session.transcript
        begun = begin_request(transcript)
        try:
            turn = self._llm.respond_sync(transcript, self._offering, self._options)
        except BaseException as error:
            self._unfinished().failed(error)
            raise
        return read_answer(
            self._offer,
            turn,
            self._session,
            begun,
            staged=staged,
            result=self._result,
            answer=self._answer,
        )


class TextTurn(CountedRequest, Generic[W]):
    """A turn without tools, not sent yet.

    A model that calls a tool all the same is told that there is none: the calls are answered and
    committed with the turn.
    """

    __slots__ = ("_answer", "_options", "_result")

    def __init__(
        self, session: Session, llm: Model, options: TurnOptions, result: MakeResult[W]
    ) -> None:
        self._session = session
        self._llm = llm
        self._options = options
        self._result = result
        self._answer: AnswerTool[Any] | None = None
        self._offering: ToolOffering | None = None

    def _answer_by(self, answer: AnswerTool[Any], *, forced: bool) -> None:
        """Take the value from a tool, the only one offered; `forced`: the model can be made to call
        it.
        """
        self._answer = answer
        self._offering = answer.offering(None, forced=forced)

    async def collect(self) -> TurnResult[W]:
        """Send the request and wait for the whole answer; it is in the session then.

        Raises as `ToolTurn.collect` does.
        """
        return (await self._collect(staged=False)).result

    async def collect_staged(self) -> Finished[W]:
        """As `collect`, but nothing is in the session until `Finished.commit(session)`."""
        return await self._collect(staged=True)

    def collect_sync(self) -> TurnResult[W]:
        """As `collect`, through a sync client."""
        return self._collect_sync(staged=False).result

    def collect_staged_sync(self) -> Finished[W]:
        """As `collect_staged`, through a sync client."""
        return self._collect_sync(staged=True)

    def stream(self) -> TurnStream[BaseToolCall, TurnResult[W]]:
        """The turn as a stream of events; its `outcome` is what `collect` would have returned."""
        source = _streaming(self._llm).open_stream(
            self._session.transcript, self._offering, self._options
        )
        from lutumpy.rounds.stream import TO_RESULT, TurnStream

        return TurnStream(source, self._reader, TO_RESULT, self._unfinished())

    def stream_sync(self) -> TurnStreamSync[BaseToolCall, TurnResult[W]]:
        """As `stream`, with `with` and `for`, through a sync client."""
        source = _streaming(self._llm).open_stream_sync(
            self._session.transcript, self._offering, self._options
        )
        from lutumpy.rounds.stream import TO_RESULT, TurnStreamSync

        return TurnStreamSync(source, self._reader, TO_RESULT, self._unfinished())

    def _reader(self, decoder: StreamDecoder) -> Reader[Any, W]:
        from lutumpy.rounds.reader import Reader

        self._session.transcript.refuse_dropped()
        return Reader(NoTools.offer(), decoder, self._session, self._result, self._answer)

    async def _collect(self, *, staged: bool) -> Finished[W]:
        transcript = self._session.transcript
        begun = begin_request(transcript)
        try:
            turn = await self._llm.respond(transcript, self._offering, self._options)
        except BaseException as error:
            self._unfinished().failed(error)
            raise
        return read_text(
            turn, self._session, begun, staged=staged, result=self._result, answer=self._answer
        )

    def _collect_sync(self, *, staged: bool) -> Finished[W]:
        transcript = self._session.transcript
        begun = begin_request(transcript)
        try:
            turn = self._llm.respond_sync(transcript, self._offering, self._options)
        except BaseException as error:
            self._unfinished().failed(error)
            raise
        return read_text(
            turn, self._session, begun, staged=staged, result=self._result, answer=self._answer
        )


def _streaming(llm: Model) -> StreamingModel:
    if not hasattr(llm, "open_stream"):
        raise TypeError(f"{type(llm).__name__} can't stream: it has no open_stream()")
    return cast("StreamingModel", llm)
