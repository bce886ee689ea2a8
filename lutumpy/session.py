"""A session: a transcript, what it cost, and the turns made with a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from typing_extensions import Unpack

from lutumpy.core.head import Head
from lutumpy.core.items import AssistantTurn, Part
from lutumpy.core.model import Model
from lutumpy.core.prefix import OnPrefixChange
from lutumpy.core.transcript import Transcript
from lutumpy.costs import Ledger
from lutumpy.rounds.availability import ToolAvailability, ToolRequirement
from lutumpy.rounds.turns import (
    AnyTurn,
    TextTurn,
    ToolTurn,
    make_structured_turn,
    make_text_turn,
)
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.definition import ProviderSettings
from lutumpy.tools.selectors import BaseToolset, ByTool, Selector
from lutumpy.tools.views import HasView, View

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lutumpy.rounds.output_schema import OutputSchema
    from lutumpy.rounds.turns import RequestOptions, ToolTurnOptions
    from lutumpy.tools.promised import OpenCall
    from lutumpy.tools.results import ToolResult

__all__ = ["Session"]

TS = TypeVar("TS", bound=BaseToolset)
C = TypeVar("C", bound=BaseToolCall)
V = TypeVar("V")

Content: TypeAlias = "str | Sequence[str | Part]"


class Session(Ledger):
    """A conversation with a model.

    `transcript` holds it. `usage` is what it cost so far, and `unsettled` the requests whose cost
    isn't known. Not safe for use by several threads or tasks at once: use `fork()` for branches.
    """

    __slots__ = ()

    def __init__(self, transcript: Transcript | None = None) -> None:
        super().__init__(_check_transcript(transcript))

    # The transcript's own methods, where users look for them first. They are written out, since a
    # checker and an editor see nothing of methods that are generated.

    def push_system(self, content: Content) -> None:
        """Add a system message."""
        self.transcript.push_system(content)

    def push_developer(self, content: Content) -> None:
        """Add a developer message; it is sent as a system message where an API has no such role."""
        self.transcript.push_developer(content)

    def push_user(self, content: Content) -> None:
        """Add a user message: a text, or parts (texts, images, files)."""
        self.transcript.push_user(content)

    def push_assistant(self, content: Content) -> None:
        """Add an assistant message that no model wrote here: an example, or a beginning."""
        self.transcript.push_assistant(content)

    def push_ephemeral_system(self, content: Content) -> None:
        """Add a system message for the next request only; it is kept when that request fails."""
        self.transcript.push_ephemeral_system(content)

    def push_ephemeral_developer(self, content: Content) -> None:
        """Add a developer message for the next request only; it is kept when that one fails."""
        self.transcript.push_ephemeral_developer(content)

    def push_ephemeral_user(self, content: Content) -> None:
        """Add a user message for the next request only; it is kept when that request fails."""
        self.transcript.push_ephemeral_user(content)

    def push_ephemeral_assistant(self, content: Content) -> None:
        """Add an assistant message for the next request only; it is kept when that one fails."""
        self.transcript.push_ephemeral_assistant(content)

    def turns(self) -> list[AssistantTurn]:
        """The committed assistant turns, in order."""
        return self.transcript.turns()

    def discard_open(self) -> None:
        """Go on without the rounds that were dropped open, so that requests work again (rule C7a).

        A round that something still holds stays open. If no round was dropped, nothing happens.
        """
        self.transcript.discard_open()

    @property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The calls whose results are still to come (`call.later`), oldest first."""
        promised = self.transcript.open_calls
        if not promised:
            return ()
        from lutumpy.tools.promised import OpenCall  # few calls are answered later

        return tuple([OpenCall.of(call) for call in promised])

    def deliver(
        self,
        results: Iterable[ToolResult],
        *,
        tools: HasView[View[Any, Any]] | None = None,
        drift: Literal["refuse", "reject"] = "refuse",
    ) -> None:
        """Write late results, each as an item of its own at the end: all of them or none.

        Nothing that was committed is edited. Several are written in the order of their calls.

        Args:
            results: One for each of some open calls, as `open_call.complete`, `fail` and `reject`
                make them; those of a `ToolCall` do as well.
            tools: The toolset. With it, outputs are checked against the declared types, and the
                tools must be those that were called; an open call of this process knows its type.
            drift: With `tools`, what becomes of a call whose tool is another one now: `refuse`
                refuses the delivery; `reject` tells the model so in place of the result.

        Raises:
            CommitError: the results don't answer open calls; it has every problem: `not_open`,
                `duplicate_result`, `wrong_tool`, `wrong_arguments`, `wrong_output`. Nothing was
                written.
            TranscriptError: the provider of the last turn accepts no text before the next turn
                (rule R6). Nothing was written.
        """
        from lutumpy.rounds.deliver import deliver

        toolset = None if tools is None else tools.__view__().toolset
        deliver(self.transcript, results, toolset, drift)

    def fork(self) -> Session:
        """An independent copy: the same history, the same costs so far."""
        twin = Session(self.transcript.fork())
        twin._set_costs(self.usage, self.unsettled)
        return twin

    def __copy__(self) -> Session:
        # A shallow copy would have the same transcript, and hear of nothing that is counted here.
        return self.fork()

    def dump(self) -> dict[str, Any]:
        """The session as JSON values: transcript, pending ephemerals, costs; no open rounds."""
        # Not every program keeps its sessions, so dumps are imported by those that do.
        from lutumpy import dumps
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
        from lutumpy import dumps
        from lutumpy.histories import accept_loaded, check_loaded

        loaded = dumps.load_session(data)
        # What a provider has refused before the dump was written isn't held against it now.
        if loaded.intact and loaded.refused is not None:
            accept_loaded(loaded.transcript, loaded.refused)
        else:
            check_loaded(loaded.transcript, loaded.refused)
        session = Session(loaded.transcript)
        session._set_costs(loaded.usage, loaded.unsettled)
        return session

    # For stores, which append what is new and never write an item twice.

    @property
    def head(self) -> Head:
        """Its position; equal heads mean equal committed content. It costs the same however
        long the conversation is.
        """
        return self.transcript.head

    @property
    def answered(self) -> bool:
        """Whether nothing is left to ask: it ends in a finished answer that wasn't paused."""
        return self.transcript.answered

    def items_since(self, head: Head) -> list[dict[str, JsonValue]]:
        """The items that were committed since a head, as JSON values.

        Raises:
            TranscriptError: the session doesn't begin with what the head says.
        """
        from lutumpy import standing

        return standing.items_since(self.transcript, head)

    def state(self) -> dict[str, JsonValue]:
        """What a dump holds beside the items: costs, ephemeral messages, failures of calls, and a
        request for a client of one's own whose answer is still to be read.

        Its size doesn't grow with the conversation; only requests of unknown cost add up. Of
        failures it has the latest 32.
        """
        from lutumpy import standing

        return standing.dump_state(self.transcript, self.usage, self.unsettled)

    @staticmethod
    def build(items: Iterable[Mapping[str, Any]], state: Mapping[str, Any]) -> Session:
        """The session of all its items, as `items_since` gave them in order, and its `state`.

        Raises:
            TranscriptError: they aren't those of one session; nothing was loaded.
        """
        from lutumpy import standing

        transcript, usage, unsettled = standing.build_session(items, state)
        session = Session(transcript)
        session._set_costs(usage, unsettled)
        return session

    # Of each turn there are two: without tools, and with them. The overloads take their options
    # from typed dicts, which checkers and editors spell out; the methods name them all, for readers
    # of the reference and of `help()`.

    @overload
    def text_turn(self, llm: Model, **options: Unpack[RequestOptions]) -> TextTurn[None]: ...
    @overload
    def text_turn(
        self,
        llm: Model,
        *,
        tools: HasView[View[TS, C]],
        **options: Unpack[ToolTurnOptions[TS]],
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
        provider: ByTool[Selector[Any, Any, Any], ProviderSettings] | None = None,
        prefix_stable: bool = False,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
        effort: str | None = None,
        on_prefix_change: OnPrefixChange | None = None,
    ) -> AnyTurn:
        """One turn of the model, not sent yet.

        Send it with `await turn.collect()`, `turn.collect_sync()`, their staged forms, or
        `turn.stream()`.

        Args:
            llm: An adapter with its model.
            tools: The toolset; without one, `collect()` gives the `TurnResult` directly.
            available: Which tools the model may call.
            require: Whether it must call one.
            describe: Other descriptions for this turn.
            parallel: `False` asks for at most one call.
            provider: Settings of tools for single APIs in this turn, by the tool and the API's
                name, such as `defer_loading`.
            prefix_stable: `True` sends the same tools whatever `available` says; see
                `Toolset.offer`.
            temperature: Sampling temperature.
            max_output_tokens: Limit of the answer, in tokens.
            extra: Provider parameters, passed through as they are.
            effort: How much the model should think, in the provider's word, as `low`.
            on_prefix_change: What happens when tools, format or effort have changed since the turn
                before: `append`, `drop` or `error`, see `OnPrefixChange`; the adapter's own, if
                omitted.

        Raises:
            InvalidToolConstraints: the constraints can't hold; nothing was sent.
        """
        return make_text_turn(
            self,
            llm,
            tools,
            {
                "available": available,
                "require": require,
                "describe": describe,
                "parallel": parallel,
                "provider": provider,
                "prefix_stable": prefix_stable,
            },
            {
                "temperature": temperature,
                "max_output_tokens": max_output_tokens,
                "extra": extra,
                "effort": effort,
                "on_prefix_change": on_prefix_change,
            },
        )

    @overload
    def structured_turn(
        self, llm: Model, value: OutputSchema, **options: Unpack[RequestOptions]
    ) -> TextTurn[JsonValue]: ...
    @overload
    def structured_turn(
        self,
        llm: Model,
        value: OutputSchema,
        *,
        tools: HasView[View[TS, C]],
        **options: Unpack[ToolTurnOptions[TS]],
    ) -> ToolTurn[C, JsonValue]: ...
    @overload
    def structured_turn(
        self, llm: Model, value: type[V], **options: Unpack[RequestOptions]
    ) -> TextTurn[V]: ...
    @overload
    def structured_turn(
        self,
        llm: Model,
        value: type[V],
        *,
        tools: HasView[View[TS, C]],
        **options: Unpack[ToolTurnOptions[TS]],
    ) -> ToolTurn[C, V]: ...
    @overload
    def structured_turn(
        self, llm: Model, value: Any, **options: Unpack[RequestOptions]
    ) -> TextTurn[Any]: ...
    @overload
    def structured_turn(
        self,
        llm: Model,
        value: Any,
        *,
        tools: HasView[View[TS, C]],
        **options: Unpack[ToolTurnOptions[TS]],
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
        provider: ByTool[Selector[Any, Any, Any], ProviderSettings] | None = None,
        prefix_stable: bool = False,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
        effort: str | None = None,
        on_prefix_change: OnPrefixChange | None = None,
    ) -> AnyTurn:
        """As `text_turn`, with a typed value.

        The value is asked for by the provider's own JSON schema output; or, if the adapter was made
        with `structured="tool"`, by a tool that takes it. `TurnResult.value` has it. Where the
        model refused, was cut off, or wrote something else, that is `None`, and `.refusal` or
        `.value_error` says why: whatever the model wrote, nothing is raised. JSON inside one
        Markdown code fence, with nothing but white space around it, is read too.

        Args:
            llm: An adapter with its model.
            value: The type of the value: a pydantic model, dataclass, `TypedDict`, union,
                `Literal`, list, or anything else that pydantic has a JSON Schema for. If it isn't a
                JSON object, it is asked for as `{"value": ...}`. A checker knows the type of the
                value if this is a class, and has `Any` for unions and other special forms. Or an
                `OutputSchema`: then the value is JSON that fits the schema.
            tools: As for `text_turn`, as are the others.
            available: Which tools the model may call.
            require: Whether it must call one.
            describe: Other descriptions for this turn.
            parallel: `False` asks for at most one call.
            provider: Settings of tools for single APIs in this turn, by the tool and the API's
                name, such as `defer_loading`.
            prefix_stable: `True` sends the same tools whatever `available` says; see
                `Toolset.offer`.
            temperature: Sampling temperature.
            max_output_tokens: Limit of the answer, in tokens.
            extra: Provider parameters, passed through as they are.
            effort: How much the model should think, in the provider's word, as `low`.
            on_prefix_change: What happens when tools, format or effort have changed since the turn
                before: `append`, `drop` or `error`, see `OnPrefixChange`; the adapter's own, if
                omitted.

        Raises:
            DeclarationError: the type has no JSON Schema.
            InvalidToolConstraints: the constraints can't hold; nothing was sent.
        """
        return make_structured_turn(
            self,
            llm,
            value,
            tools,
            {
                "available": available,
                "require": require,
                "describe": describe,
                "parallel": parallel,
                "provider": provider,
                "prefix_stable": prefix_stable,
            },
            {
                "temperature": temperature,
                "max_output_tokens": max_output_tokens,
                "extra": extra,
                "effort": effort,
                "on_prefix_change": on_prefix_change,
            },
        )

    def __repr__(self) -> str:
        return f"<Session of {len(self.transcript)} items, {self.usage.total_tokens} tokens>"

    def _repr_html_(self) -> str | None:
        from lutumpy.plain.notebooks import html_of

        return html_of(self)


def _check_transcript(transcript: Transcript | None) -> Transcript:
    """The transcript of a new session: the given one, or an empty one."""
    if transcript is None:
        return Transcript()
    if isinstance(transcript, Transcript):
        return transcript
    if hasattr(transcript, "transcript"):
        hint = "session.fork() is a copy of one"
    else:
        hint = "say something by session.push_user"
    raise TypeError(
        f"Session takes a Transcript or nothing, not {type(transcript).__name__}: {hint}; "
        "a provider's messages are read by Transcript.from_messages"
    )
