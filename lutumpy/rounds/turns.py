"""Turns: one request to a model, not sent yet, and what comes of it."""

#   a turn --collect()---------> one request; the outcome is read and written at once
#     |    --collect_staged()--> one request; a finished answer is not written yet
#     |    --stream()----------> one request when the stream is entered; events, then the outcome
#     +--- each of them again makes a request of its own
#
# A `ToolTurn` and a `TextTurn` differ in how the answer is read: calls of the first make a round;
# those of the second are answered as issues, since no tool was offered. All else is in `_Turn`,
# once. The twins of each method differ in the client that they need.

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, cast

from typing_extensions import Self, TypeVar

from lutumpy.core.items import AssistantTurn
from lutumpy.core.model import Model, StreamingModel, TurnOptions, check_model
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.rounds.offer import make_offer
from lutumpy.rounds.offered import NO_TOOLS, OfferedTools
from lutumpy.rounds.outcome import Finished, NeedsTools, TurnResult
from lutumpy.rounds.read import read_answer, read_text
from lutumpy.rounds.target import begin_request
from lutumpy.rounds.unfinished import HasCosts, UnfinishedRequest
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.selectors import BaseToolset
from lutumpy.tools.views import HasView, View

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    from lutumpy.core.prefix import OnPrefixChange
    from lutumpy.core.streaming import StreamDecoder
    from lutumpy.rounds.availability import ToolConstraints
    from lutumpy.rounds.reader import Reader
    from lutumpy.rounds.stream import TurnStream, TurnStreamSync
    from lutumpy.rounds.structured import ValueTool

__all__ = [
    "AnyTurn",
    "TextTurn",
    "ToolTurn",
    "make_structured_turn",
    "make_text_turn",
]

TS = TypeVar("TS", bound=BaseToolset)
C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)
W = TypeVar("W", default=None)

MakeResult: TypeAlias = Callable[[AssistantTurn], TurnResult[W]]

# Options are values, so turns without any share these.
_PLAIN = TurnOptions()


if TYPE_CHECKING:
    # Names for checkers alone: typed dictionaries are slow to build.

    class RequestOptions(TypedDict, total=False):
        """What any turn may say about its request.

        Attributes:
            temperature: Sampling temperature; the provider's own, if omitted.
            max_output_tokens: Limit of the answer, in tokens.
            extra: Provider parameters, passed through as they are.
            effort: How much the model should think, in the provider's word, as `low`.
            on_prefix_change: What happens when settings have changed since the turn before, see
                `OnPrefixChange`; the adapter's own, if omitted.
        """

        temperature: float | None
        max_output_tokens: int | None
        extra: Mapping[str, Any] | None
        effort: str | None
        on_prefix_change: OnPrefixChange | None

    class ToolTurnOptions(ToolConstraints[TS], RequestOptions, Generic[TS], total=False):
        """What a turn with tools may say about the tools and about its request."""


_NO_OPTIONS: RequestOptions = {
    "temperature": None,
    "max_output_tokens": None,
    "extra": None,
    "effort": None,
    "on_prefix_change": None,
}


class _Turn(Generic[C, W]):
    """One request, not sent yet.

    Args:
        session: The conversation; it gets the answer, and its cost.
        llm: The model.
        options: Options of the request.
        result: Makes the result of a finished answer.
        offer: The tools of the user.
        value_tool: The tool that takes the value of a structured turn; it is offered beside those.
        offering: What the model is offered in all; `None` for no tools.
    """

    __slots__ = (
        "_llm",
        "_offer",
        "_offering",
        "_options",
        "_result",
        "_session",
        "_value_tool",
    )

    # How the answer is read: a plain function, so that choosing it costs no call of its own.
    _read: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        session: HasCosts,
        llm: Model,
        options: TurnOptions,
        result: MakeResult[W],
        offer: OfferedTools[C],
        value_tool: ValueTool[Any] | None,
        offering: ToolOffering | None,
    ) -> None:
        self._session = session
        self._llm = llm
        self._options = options
        self._result = result
        self._offer = offer
        self._value_tool = value_tool
        self._offering = offering

    def waiting(self) -> Self:
        """The same turn for who waits for every result: no tool is said to be late."""
        offering = self._offering
        if offering is None or not offering.has_late_tools:
            return self
        twin = copy(self)
        twin._offering = offering.waiting()
        return twin

    def __repr__(self) -> str:
        from lutumpy.plain.brief_repr import brief, brief_line, brief_list

        llm: Any = self._llm
        model = getattr(llm, "model", None)
        name = brief(model, 40) if isinstance(model, str) else "a model"
        api = str(getattr(llm, "api", type(llm).__name__))
        if self._offering is not None:
            name += f" with [{brief_list([spec.name for spec in self._offering.specs], 40)}]"
        return brief_line(f"{type(self).__name__} on", api, f"{name}, not sent")

    async def _collect(self, *, staged: bool) -> Any:
        transcript = self._session.transcript
        begun = begin_request(transcript)
        try:
            turn = await self._llm.respond(transcript, self._offering, self._options)
        except BaseException as error:
            # Also a cancellation or an interrupt: the provider may have worked until then.
            self._unfinished().count_failed(error)
            raise
        return self._read(
            self._offer,
            turn,
            self._session,
            begun,
            staged=staged,
            result=self._result,
            value_tool=self._value_tool,
        )

    def _collect_sync(self, *, staged: bool) -> Any:
        transcript = self._session.transcript
        begun = begin_request(transcript)
        try:
            turn = self._llm.respond_sync(transcript, self._offering, self._options)
        except BaseException as error:
            self._unfinished().count_failed(error)
            raise
        return self._read(
            self._offer,
            turn,
            self._session,
            begun,
            staged=staged,
            result=self._result,
            value_tool=self._value_tool,
        )

    @staticmethod
    def _finish(reader: Reader[Any, Any], request_id: str | None) -> tuple[AssistantTurn, Any]:
        """The whole answer and its outcome, from the reader of a stream."""
        raise NotImplementedError

    def _stream(self) -> TurnStream[Any, Any]:
        from lutumpy.rounds.stream import TurnStream

        model = self._streaming_model()
        source = model.open_stream(self._session.transcript, self._offering, self._options)
        return TurnStream(source, self._make_reader, self._finish, self._unfinished())

    def _stream_sync(self) -> TurnStreamSync[Any, Any]:
        from lutumpy.rounds.stream import TurnStreamSync

        model = self._streaming_model()
        source = model.open_stream_sync(self._session.transcript, self._offering, self._options)
        return TurnStreamSync(source, self._make_reader, self._finish, self._unfinished())

    def _unfinished(self) -> UnfinishedRequest:
        return UnfinishedRequest(self._session, self._llm, self._offering)

    def _streaming_model(self) -> StreamingModel:
        if not hasattr(self._llm, "open_stream"):
            raise TypeError(f"{type(self._llm).__name__} can't stream: it has no open_stream()")
        return cast("StreamingModel", self._llm)

    def _make_reader(self, decoder: StreamDecoder) -> Reader[C, W]:
        from lutumpy.rounds.reader import Reader  # not every program streams

        self._session.transcript.refuse_unready()
        return Reader(self._offer, decoder, self._session, self._result, self._value_tool)


class ToolTurn(_Turn[C, W]):
    """A turn with tools, not sent yet. Every `collect` makes a request of its own.

    Make one with `Session.text_turn` or `Session.structured_turn`.
    """

    __slots__ = ()

    _read = staticmethod(read_answer)

    @staticmethod
    def _finish(
        reader: Reader[Any, Any], request_id: str | None
    ) -> tuple[AssistantTurn, NeedsTools[Any] | Finished[Any]]:
        return reader.finish_with_outcome(request_id)

    async def collect(self) -> NeedsTools[C] | Finished[W]:
        """Send the request and wait for the whole answer.

        Returns:
            `Finished` (in the session already) or `NeedsTools` (not in it until its round is
            committed).

        Raises:
            InvalidToolConstraints: the provider can't do what the offer asks; nothing was sent.
            TranscriptError: there is nothing to answer; nothing was sent.
            AdapterError: the request failed; the session is as it was apart from its costs, and
                ephemerals are kept.
            StaleRoundError: the session moved on during the request; the finished answer is in
                `.result`.
        """
        outcome: NeedsTools[C] | Finished[W] = await self._collect(staged=False)
        return outcome

    async def collect_staged(self) -> NeedsTools[C] | Finished[W]:
        """As `collect`, but a finished answer is not in the session until it is committed.

        That is what `Finished.commit(session)` does.
        """
        outcome: NeedsTools[C] | Finished[W] = await self._collect(staged=True)
        return outcome

    def collect_sync(self) -> NeedsTools[C] | Finished[W]:
        """As `collect`, through a sync client."""
        outcome: NeedsTools[C] | Finished[W] = self._collect_sync(staged=False)
        return outcome

    def collect_staged_sync(self) -> NeedsTools[C] | Finished[W]:
        """As `collect_staged`, through a sync client."""
        outcome: NeedsTools[C] | Finished[W] = self._collect_sync(staged=True)
        return outcome

    def read(self, answer: AssistantTurn, *, staged: bool = False) -> NeedsTools[C] | Finished[W]:
        """What this turn comes to with an answer that was received before; nothing is sent.

        For programs that keep an answer before they use it, and go on with it after a restart.

        Args:
            answer: The answer, as `dump_turn` and `load_turn` of `lutumpy.models` keep it.
            staged: As for `collect_staged`.
        """
        outcome: NeedsTools[C] | Finished[W] = self._read(
            self._offer,
            answer,
            self._session,
            staged=staged,
            result=self._result,
            value_tool=self._value_tool,
        )
        return outcome

    def stream(self) -> TurnStream[C, NeedsTools[C] | Finished[W]]:
        """The turn as a stream of events.

        `async with turn.stream() as stream: async for event in stream: ...`. Nothing is sent before
        it is entered. Its `outcome` is what `collect` would have returned; it raises as that does.
        """
        return self._stream()

    def stream_sync(self) -> TurnStreamSync[C, NeedsTools[C] | Finished[W]]:
        """As `stream`, with `with` and `for`, through a sync client."""
        return self._stream_sync()


class TextTurn(_Turn[BaseToolCall, W], Generic[W]):
    """A turn without tools, not sent yet. Every `collect` makes a request of its own.

    A model that calls a tool all the same gets an error result: the calls are answered and
    committed with the turn. Make one with `Session.text_turn` or `Session.structured_turn`.
    """

    __slots__ = ()

    _read = staticmethod(read_text)

    @staticmethod
    def _finish(
        reader: Reader[Any, Any], request_id: str | None
    ) -> tuple[AssistantTurn, TurnResult[Any]]:
        return reader.finish_with_result(request_id)

    async def collect(self) -> TurnResult[W]:
        """Send the request and wait for the whole answer; it is in the session then.

        Raises as `ToolTurn.collect` does.
        """
        outcome: Finished[W] = await self._collect(staged=False)
        return outcome.result

    async def collect_staged(self) -> Finished[W]:
        """As `collect`, but nothing is in the session until `Finished.commit(session)`."""
        outcome: Finished[W] = await self._collect(staged=True)
        return outcome

    def collect_sync(self) -> TurnResult[W]:
        """As `collect`, through a sync client."""
        outcome: Finished[W] = self._collect_sync(staged=False)
        return outcome.result

    def collect_staged_sync(self) -> Finished[W]:
        """As `collect_staged`, through a sync client."""
        outcome: Finished[W] = self._collect_sync(staged=True)
        return outcome

    def stream(self) -> TurnStream[BaseToolCall, TurnResult[W]]:
        """The turn as a stream of events; its `outcome` is what `collect` would have returned."""
        return self._stream()

    def stream_sync(self) -> TurnStreamSync[BaseToolCall, TurnResult[W]]:
        """As `stream`, with `with` and `for`, through a sync client."""
        return self._stream_sync()


AnyTurn: TypeAlias = "TextTurn[Any] | ToolTurn[Any, Any]"


def make_text_turn(
    session: HasCosts,
    llm: Model,
    tools: HasView[View[Any, Any]] | None,
    constraints: ToolConstraints[Any],
    options: RequestOptions,
) -> AnyTurn:
    """The turn that `Session.text_turn` gives; raises as it says there."""
    # Most turns set no option.
    is_plain = options == _NO_OPTIONS
    checked = _PLAIN if is_plain else _check_options(options, None)
    offer = _offer_tools(llm, tools, constraints)
    if offer is None:
        return TextTurn(session, llm, checked, TurnResult, NO_TOOLS, None, None)
    return ToolTurn(session, llm, checked, TurnResult, offer, None, offer)


def make_structured_turn(
    session: HasCosts,
    llm: Model,
    value: Any,
    tools: HasView[View[Any, Any]] | None,
    constraints: ToolConstraints[Any],
    options: RequestOptions,
) -> AnyTurn:
    """The turn that `Session.structured_turn` gives; raises as it says there."""
    from lutumpy.rounds.structured import value_reader  # not every program asks for typed values

    reader = value_reader(value)
    # A model of the user's own may lack both members (`core/model.Model`).
    by_tool = getattr(llm, "structured", "native") == "tool"
    checked = _check_options(options, None if by_tool else reader.spec)
    offer = _offer_tools(llm, tools, constraints)
    value_tool: ValueTool[Any] | None = None
    offering: ToolOffering | None = offer
    if by_tool:
        takes_forced_choice = getattr(llm, "takes_forced_choice", None)
        forced = takes_forced_choice is None or takes_forced_choice(checked.extra)
        value_tool = reader.value_tool(() if offer is None else offer.by_name)
        offering = value_tool.offering(offer, forced=forced)
    if offer is None:
        return TextTurn(session, llm, checked, reader, NO_TOOLS, value_tool, offering)
    return ToolTurn(session, llm, checked, reader, offer, value_tool, offering)


def _check_options(options: RequestOptions, output: OutputSpec | None) -> TurnOptions:
    temperature = options.get("temperature")
    max_output_tokens = options.get("max_output_tokens")
    extra = options.get("extra")
    return TurnOptions(
        temperature,
        max_output_tokens,
        {} if extra is None else extra,
        output,
        options.get("effort"),
        options.get("on_prefix_change"),
    )


def _offer_tools(
    llm: Model, tools: HasView[View[Any, Any]] | None, constraints: ToolConstraints[Any]
) -> OfferedTools[Any] | None:
    check_model(llm)
    if tools is None:
        named = constraints.get("available"), constraints.get("require")
        if named != (None, None) or constraints.get("describe") or constraints.get("provider"):
            raise TypeError("available=, require=, describe= and provider= need tools=")
        return None
    if not hasattr(tools, "__view__"):
        raise TypeError(f"tools= takes a Toolset class, not {tools!r:.100}; nothing was sent")
    offer = make_offer(tools.__view__().toolset, **constraints)
    if offer.finder is not None and getattr(llm, "defers_tools", False):
        return offer.deferring()
    return offer
