"""The dispatcher: which code runs each tool of a toolset."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Hashable, Mapping
from types import FrameType
from typing import Any, Concatenate, Generic, Protocol, cast, overload

from typing_extensions import ParamSpec, TypeVar

from lutumpy import CallTicket, DeclarationError, Selector, Toolset
from lutumpy.execution.parameters import (
    MISSING,
    Context,
    Parameter,
    ToolCode,
    code_parameters,
    handler_parameters,
)
from lutumpy.hooks import BaseToolCall
from lutumpy.plain.safe_text import safe_repr
from lutumpy.plain.type_checks import type_name
from lutumpy.tools import IdempotencyKey, extended_selector, extends, tool_key

__all__ = ["Dispatcher", "HandlerDecorator", "Runner"]

TS = TypeVar("TS", bound=Toolset[Any])
I = TypeVar("I")
O = TypeVar("O")
P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])


class HandlerDecorator(Protocol[I, O]):
    """What `dispatch.on(...)` returns: registers a handler and returns it unchanged."""

    @overload
    def __call__(
        self, handler: Callable[Concatenate[I, P], Coroutine[Any, Any, O]], /
    ) -> Callable[Concatenate[I, P], Coroutine[Any, Any, O]]: ...
    @overload
    def __call__(
        self, handler: Callable[Concatenate[I, P], O], /
    ) -> Callable[Concatenate[I, P], O]: ...
    def __call__(self, handler: Any, /) -> Any: ...


class Runner:
    """How one tool is run: its code, with the values that are the same for each call.

    Args:
        code: Takes the input and further values by name.
        values: Those that the context supplies.
        with_metadata: Parameters that take the call's metadata.
        ticketed: Parameters that take the call's ticket.
        takes_call: Whether the code takes the call in place of its input.

    Attributes:
        is_async: Whether it runs in the event loop; otherwise in a worker thread.
        keyed: Parameters that take the idempotency key.
        ticketed: Parameters that take the call's ticket.
    """

    __slots__ = (
        "_code",
        "_takes_call",
        "_values",
        "_with_metadata",
        "is_async",
        "keyed",
        "ticketed",
    )

    def __init__(
        self,
        code: Callable[[Any, Mapping[str, Any]], Any],
        *,
        is_async: bool,
        values: dict[str, Any],
        keyed: tuple[str, ...],
        with_metadata: tuple[str, ...],
        ticketed: tuple[str, ...] = (),
        takes_call: bool = False,
    ) -> None:
        self._code = code
        self._takes_call = takes_call
        self._values = values
        self._with_metadata = with_metadata
        self.is_async: bool = is_async
        self.keyed: tuple[str, ...] = keyed
        self.ticketed: tuple[str, ...] = ticketed

    def run(
        self, call: BaseToolCall, key: IdempotencyKey | None, ticket: CallTicket | None = None
    ) -> Any:
        """Run the tool's code; the value it returns may have to be awaited."""
        values = self._values
        if self.keyed or self._with_metadata or self.ticketed:
            values = {
                **values,
                **dict.fromkeys(self.keyed, key),
                **dict.fromkeys(self._with_metadata, call.metadata),
                **dict.fromkeys(self.ticketed, ticket),
            }
        return self._code(call if self._takes_call else call.input, values)


class _Handler:
    """A handler that was registered for one tool."""

    __slots__ = ("function", "is_async", "parameters")

    def __init__(
        self, function: Callable[..., Any], parameters: list[Parameter], *, is_async: bool
    ) -> None:
        self.function = function
        self.parameters = parameters
        self.is_async = is_async

    def __call__(self, input: Any, values: Mapping[str, Any]) -> Any:
        return self.function(input, **values)


class Dispatcher(Generic[TS]):
    """Runs the tools of one toolset: tools that have code by that, other tools by handlers.

    Code have the functions under `tool_fn` and a `DynamicTool` with `run=`. Toolsets that were made
    of this one at run time are served too; what they have more is run by its own code, or by what
    `otherwise` registered.

    It takes handlers until it is first used, or closed. Then it is checked as a whole, and never
    changes again.

    Args:
        toolset: The toolset.
        context: Values for `Skip` parameters and for further parameters of handlers, by name: a
            mapping, or an object with these attributes. They are read once, when the dispatcher is
            closed.
    """

    __slots__ = ("_context", "_handlers", "_others", "_runners", "toolset")

    def __init__(self, toolset: type[TS], *, context: object = None) -> None:
        if not isinstance(toolset, type) or not hasattr(cast("Any", toolset), "__lutumpy_table__"):
            raise DeclarationError(f"Dispatcher takes a Toolset class, not {safe_repr(toolset)}")
        self.toolset: type[TS] = toolset
        self._context = Context(context)
        # By `tool_key`.
        self._handlers: dict[Hashable, _Handler] = {}
        # Runs every tool that nothing else runs.
        self._others: _Handler | None = None
        self._runners: dict[ToolCode, Runner] | None = None

    def on(self, selector: Selector[TS, I, O]) -> HandlerDecorator[I, O]:
        """Decorator: register what runs one tool; nested tools too, and in place of a `tool_fn`.

        The handler gets the call's input. It may be `async def`, or `def`, which runs in a worker
        thread. Further parameters are passed by name: one annotated `IdempotencyKey` gets the
        call's key, one annotated `ToolMetadata` its metadata, one annotated `CallTicket` its
        ticket, any other the context's value of that name. A handler of a tool that fills a
        `dynamic()` place also runs the tool of its name in each new set.

        Raises:
            DeclarationError: The selector is of another toolset, the tool has a handler already,
                the handler takes no input or is a generator, or the dispatcher is closed. Nothing
                has changed.
        """
        self._check_open()
        self._check_selector(selector)
        self._check_free(selector)

        def register(handler: Any, /) -> Any:
            self._check_open()
            self._check_free(selector)
            self._handlers[tool_key(selector)] = self._make_handler(
                selector.name, handler, _frame_of_registration()
            )
            return handler

        return register

    def otherwise(self, run: F) -> F:
        """Decorator: register what runs every tool without code or a handler of its own.

        Args:
            run: Takes the call, and gives its output: `async (call) -> output`, or a plain
                function, which runs in a worker thread. Further parameters as for `on`.

        Raises:
            DeclarationError: There is one already, it takes no call or is a generator, or the
                dispatcher is closed. Nothing has changed.
        """
        self._check_open()
        if self._others is not None:
            raise DeclarationError(
                f"{self!r} has an otherwise() already: {self._others.function!r}"
            )
        frame = inspect.currentframe()
        self._others = self._make_handler("any tool", run, frame.f_back if frame else None)
        return run

    def with_context(self, context: object) -> Dispatcher[TS]:
        """A new, open dispatcher with the same handlers and another context, as servers need it."""
        twin = Dispatcher(self.toolset, context=context)
        twin._handlers = self._handlers.copy()
        twin._others = self._others
        return twin

    @property
    def closed(self) -> bool:
        """Whether it has been checked, and takes no more handlers."""
        return self._runners is not None

    def close(self) -> None:
        """Check that every tool is covered and has its context values; then nothing changes.

        Calling it again does nothing.

        Raises:
            DeclarationError: Names every tool that nothing runs, and every context value that is
                missing or of another type. The dispatcher stays open.
        """
        if self._runners is not None:
            return
        problems: list[str] = []
        runners: dict[ToolCode, Runner] = {}
        for selector in self.toolset.selectors():
            runner = self._find_runner(selector, problems)
            if runner is not None:
                runners[selector.tool] = runner
        # All problems at once: whoever fixes one by one would start the program again for each.
        if problems:
            lines = "".join([f"\n- {problem}" for problem in problems])
            raise DeclarationError(
                f"the dispatcher for {self.toolset.__name__} can't be used, "
                f"it is still open and nothing was run:{lines}"
            )
        self._runners = runners

    def _find_runner(self, selector: Selector[Any, Any, Any], problems: list[str]) -> Runner | None:
        """What runs a tool; `None` where nothing does, with the reason added to `problems`."""
        tool: ToolCode = selector.tool
        handler = self._handlers.get(tool_key(selector))
        if handler is not None:
            return self._make_runner(tool, handler, handler.parameters, problems)
        if tool.is_runnable:
            return self._make_runner(tool, tool.invoke, code_parameters(tool), problems)
        if self._others is not None:
            others = self._others
            return self._make_runner(tool, others, others.parameters, problems, takes_call=True)
        place = selector.toolset.__lutumpy_table__.places[selector.name]
        problems.append(
            f"nothing runs {selector.name!r}: register a handler with @dispatch.on({place})"
        )
        return None

    def check(self, toolset: type[Toolset[Any]]) -> None:
        """Close it, and see that it serves `toolset`.

        Raises:
            DeclarationError: It is for another toolset, or doesn't cover its own; or it doesn't
                cover what `toolset`, which was made of its own, has more.
        """
        if toolset is self.toolset:
            self.close()
            return
        if not extends(toolset, self.toolset):
            raise DeclarationError(f"{self!r} runs no tools of {toolset.__name__}; nothing was run")
        self.close()
        runners = self._runners or {}
        problems: list[str] = []
        for selector in toolset.selectors():
            if selector.tool not in runners:
                self._find_runner(selector, problems)
        if problems:
            lines = "".join([f"\n- {problem}" for problem in problems])
            raise DeclarationError(
                f"{self!r} doesn't run all that was added to {toolset.__name__}, and nothing was "
                f"run:{lines}"
            )

    def runner(self, call: BaseToolCall) -> Runner:
        """What runs a call; closes the dispatcher.

        Raises:
            DeclarationError: The call is of another toolset, or the dispatcher isn't complete.
        """
        self.close()
        found = (self._runners or {}).get(call.tool)
        if found is not None:
            return found
        toolset = call.selector.toolset
        problems = [f"{call.metadata.name!r} is a tool of {toolset.__name__}"]
        if extends(toolset, self.toolset):
            problems = []
            # Not kept: the tools of such a toolset may be others in each turn.
            found = self._find_runner(call.selector, problems)
        if found is None or problems:
            raise DeclarationError(
                f"{self!r} doesn't run the call {call.metadata.id!r}: {'; '.join(problems)}; "
                "nothing was run"
            )
        return found

    # --- registration ------------------------------------------------------------------------

    def _check_selector(self, selector: Any) -> None:
        if not isinstance(selector, Selector):
            raise DeclarationError(
                f"on() takes a selector of {self.toolset.__name__}, not {selector!r}"
            )
        own = extended_selector(self.toolset, selector)
        if own is None and not extends(selector.toolset, self.toolset):
            raise DeclarationError(
                f"{selector.toolset.__name__}.{selector.name} is a tool of another toolset "
                f"than {self.toolset.__name__}"
            )

    def _check_open(self) -> None:
        if self._runners is not None:
            raise DeclarationError(
                f"{self!r} takes no more handlers; register them before it is used"
            )

    def _check_free(self, selector: Selector[Any, Any, Any]) -> None:
        handler = self._handlers.get(tool_key(selector))
        if handler is not None:
            raise DeclarationError(f"{selector.name!r} has a handler already: {handler.function!r}")

    def _make_handler(self, name: str, handler: Any, frame: FrameType | None) -> _Handler:
        if not callable(handler):
            raise DeclarationError(f"the handler of {name!r} must be a function, not {handler!r}")
        try:
            parameters, is_async = handler_parameters(handler, frame)
        except TypeError as error:
            raise DeclarationError(f"{safe_repr(handler)} can't run {name!r}: {error}") from None
        return _Handler(handler, parameters, is_async=is_async)

    # --- the check ---------------------------------------------------------------------------

    def _make_runner(
        self,
        tool: ToolCode,
        code: Callable[[Any, Mapping[str, Any]], Any],
        parameters: list[Parameter],
        problems: list[str],
        *,
        takes_call: bool = False,
    ) -> Runner:
        values: dict[str, Any] = {}
        for parameter in parameters:
            if parameter.source == "context":
                self._read_context(tool.definition.name, parameter, values, problems)
        keyed = tuple([p.name for p in parameters if p.source == "key"])
        with_metadata = tuple([p.name for p in parameters if p.source == "metadata"])
        ticketed = tuple([p.name for p in parameters if p.source == "ticket"])
        is_async = code.is_async if isinstance(code, _Handler) else tool.is_async
        return Runner(
            code,
            is_async=is_async,
            values=values,
            keyed=keyed,
            with_metadata=with_metadata,
            ticketed=ticketed,
            takes_call=takes_call,
        )

    def _read_context(
        self, tool: str, parameter: Parameter, values: dict[str, Any], problems: list[str]
    ) -> None:
        """Add the context's value for a parameter to `values`, or what is wrong to `problems`."""
        name, wanted = parameter.name, type_name(parameter.annotation)
        try:
            value = self._context.get(name)
        except Exception as error:
            problems.append(
                f"{tool!r} needs the context value {name!r}, and reading it raised {error!r}"
            )
            return
        if value is MISSING:
            if parameter.required:
                problems.append(
                    f"{tool!r} needs the context value {name!r} ({wanted}), which is missing"
                )
        elif parameter.takes(value):
            values[name] = value
        else:
            problems.append(
                f"{tool!r} needs the context value {name!r} as {wanted}, "
                f"and it is {type(value).__name__}"
            )

    def __repr__(self) -> str:
        return f"<Dispatcher for {self.toolset.__name__}, {'closed' if self.closed else 'open'}>"


def _frame_of_registration() -> FrameType | None:
    # Two frames up: the decorator, and the code that applies it, whose local names annotations
    # may use.
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame.f_back if frame else None
    return frame
