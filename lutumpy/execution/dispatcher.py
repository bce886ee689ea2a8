"""The dispatcher: which code runs each tool of a toolset."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from types import FrameType
from typing import Any, Concatenate, Generic, Protocol, cast, overload

from typing_extensions import ParamSpec, TypeVar

from lutumpy.core.safe_text import safe_repr
from lutumpy.errors import DeclarationError
from lutumpy.execution.identity import IdempotencyKey
from lutumpy.execution.parameters import (
    MISSING,
    Context,
    Parameter,
    fits,
    handler_parameters,
    skip_parameters,
    type_name,
)
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.selectors import Selector
from lutumpy.toolset import Toolset

__all__ = ["Dispatcher", "OnTool", "Runner"]

TS = TypeVar("TS", bound=Toolset[Any])
I = TypeVar("I")
O = TypeVar("O")
P = ParamSpec("P")


class OnTool(Protocol[I, O]):
    """Registers one handler for one tool and returns it unchanged."""

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

    Attributes:
        is_async: Whether it runs in the event loop; otherwise in a worker thread.
        keyed: Parameters that take the idempotency key.
    """

    __slots__ = ("_code", "_told", "_values", "is_async", "keyed")

    def __init__(
        self, code: Callable[[Any, Mapping[str, Any]], Any], *, is_async: bool, values: dict[str, Any],
        keyed: tuple[str, ...], told: tuple[str, ...],
    ) -> None:  # fmt: skip
        self._code = code
        self._values = values
        self._told = told
        self.is_async: bool = is_async
        self.keyed: tuple[str, ...] = keyed

    def run(self, call: BaseToolCall, key: IdempotencyKey | None) -> Any:
        """Run the tool's code; what it returns may have to be awaited."""
        values = self._values
        if self.keyed or self._told:
            values = {
                **values,
                **dict.fromkeys(self.keyed, key),
                **dict.fromkeys(self._told, call.metadata),
            }
        return self._code(call.input, values)


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
    """Runs the tools of one toolset: functions under `tool_fn` run themselves, other tools by handlers.

    It is open for handlers until it is first used, or closed; then it is checked as a whole, and never changes again.

    Args:
        toolset: The toolset.
        context: Values for `Skip` parameters and for further parameters of handlers, by name: a mapping, or an object with these
            attributes. They are read once, when the dispatcher is closed.
    """

    __slots__ = ("_context", "_handlers", "_runners", "toolset")

    def __init__(self, toolset: type[TS], *, context: object = None) -> None:
        if not isinstance(toolset, type) or not hasattr(cast("Any", toolset), "__lutumpy_table__"):
            raise DeclarationError(f"Dispatcher takes a Toolset class, not {safe_repr(toolset)}")
        self.toolset: type[TS] = toolset
        self._context = Context(context)
        self._handlers: dict[CompiledTool, _Handler] = {}
        self._runners: dict[CompiledTool, Runner] | None = None

    def on(self, selector: Selector[TS, I, O]) -> OnTool[I, O]:
        """Decorator: register what runs one tool, nested ones included; in place of the function of a `tool_fn`.

        The handler gets the call's input. It may be `async def`, or `def`, which runs in a worker thread. Further parameters are
        given by name: one annotated `IdempotencyKey` gets the call's key, one annotated `ToolMetadata` its metadata, any other
        the context's value of that name.

        Raises:
            DeclarationError: The selector is of another toolset, the tool has a handler already, the handler takes no input, or
                the dispatcher is closed. It is as it was.
        """
        self._check_open()
        tool = self._tool(selector)
        self._check_free(tool)

        def register(handler: Any, /) -> Any:
            self._check_open()
            self._check_free(tool)
            self._handlers[tool] = self._handler(tool.definition.name, handler, _caller())
            return handler

        return register

    def with_context(self, context: object) -> Dispatcher[TS]:
        """A new, open dispatcher with the same handlers and another context, as each request of a server may need."""
        twin = Dispatcher(self.toolset, context=context)
        twin._handlers = self._handlers.copy()
        return twin

    @property
    def closed(self) -> bool:
        """Whether it was checked, and takes no more handlers."""
        return self._runners is not None

    def close(self) -> None:
        """Check that every tool is covered and has its context values; from then on nothing changes. May be called again.

        Raises:
            DeclarationError: Names every tool that nothing runs, and every context value that is missing or of another type. The
                dispatcher stays open.
        """
        if self._runners is not None:
            return
        problems: list[str] = []
        runners: dict[CompiledTool, Runner] = {}
        for selector in self.toolset.selectors():
            tool = selector.tool
            handler = self._handlers.get(tool)
            if handler is not None:
                runners[tool] = self._runner(
                    tool, handler, handler.is_async, handler.parameters, problems
                )
            elif tool.function is not None:
                runners[tool] = self._runner(
                    tool, tool.invoke, tool.is_async, skip_parameters(tool), problems
                )
            else:
                place = self.toolset.__lutumpy_table__.places[selector.name]
                problems.append(
                    f"nothing runs {selector.name!r}: register a handler with @dispatch.on({place})"
                )
        if problems:
            lines = "".join([f"\n- {problem}" for problem in problems])
            raise DeclarationError(
                f"the dispatcher for {self.toolset.__name__} can't be used, it is still open and nothing was run:{lines}"
            )
        self._runners = runners

    def check(self, toolset: type[Toolset[Any]]) -> None:
        """Close it, and see that it serves `toolset`.

        Raises:
            DeclarationError: It is for another toolset, or doesn't cover its own.
        """
        if toolset is not self.toolset:
            raise DeclarationError(f"{self!r} runs no tools of {toolset.__name__}; nothing was run")
        self.close()

    def runner(self, call: BaseToolCall) -> Runner:
        """What runs a call; closes the dispatcher.

        Raises:
            DeclarationError: The call is of another toolset, or the dispatcher isn't complete.
        """
        self.close()
        found = (self._runners or {}).get(call.tool)
        if found is None:
            raise DeclarationError(
                f"{self!r} doesn't run the call {call.metadata.id!r}: {call.metadata.name!r} is a tool of "
                f"{call.selector.toolset.__name__}; nothing was run"
            )
        return found

    # --- registration ----------------------------------------------------------------------------------------------

    def _tool(self, selector: Any) -> CompiledTool:
        if not isinstance(selector, Selector):
            raise DeclarationError(
                f"on() takes a selector of {self.toolset.__name__}, not {selector!r}"
            )
        if selector.toolset is not self.toolset:
            raise DeclarationError(
                f"{selector.toolset.__name__}.{selector.name} is a tool of another toolset than {self.toolset.__name__}"
            )
        tool: CompiledTool = selector.tool
        return tool

    def _check_open(self) -> None:
        if self._runners is not None:
            raise DeclarationError(
                f"{self!r} takes no more handlers; register them before it is used"
            )

    def _check_free(self, tool: CompiledTool) -> None:
        if tool in self._handlers:
            raise DeclarationError(
                f"{tool.definition.name!r} has a handler already: {self._handlers[tool].function!r}"
            )

    def _handler(self, name: str, handler: Any, frame: FrameType | None) -> _Handler:
        if not callable(handler):
            raise DeclarationError(f"the handler of {name!r} must be a function, not {handler!r}")
        try:
            parameters, is_async = handler_parameters(handler, frame)
        except TypeError as error:
            raise DeclarationError(f"{safe_repr(handler)} can't run {name!r}: {error}") from None
        return _Handler(handler, parameters, is_async=is_async)

    # --- the check -------------------------------------------------------------------------------------------------

    def _runner(
        self,
        tool: CompiledTool,
        code: Callable[[Any, Mapping[str, Any]], Any],
        is_async: bool,
        parameters: list[Parameter],
        problems: list[str],
    ) -> Runner:
        values: dict[str, Any] = {}
        for parameter in parameters:
            if parameter.source == "context":
                self._take(tool.definition.name, parameter, values, problems)
        keyed = tuple([p.name for p in parameters if p.source == "key"])
        told = tuple([p.name for p in parameters if p.source == "metadata"])
        return Runner(code, is_async=is_async, values=values, keyed=keyed, told=told)

    def _take(
        self, tool: str, parameter: Parameter, values: dict[str, Any], problems: list[str]
    ) -> None:
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
        elif fits(value, parameter.annotation):
            values[name] = value
        else:
            problems.append(
                f"{tool!r} needs the context value {name!r} as {wanted}, and it is {type(value).__name__}"
            )

    def __repr__(self) -> str:
        return f"<Dispatcher for {self.toolset.__name__}, {'closed' if self.closed else 'open'}>"


def _caller() -> FrameType | None:
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame.f_back if frame else None
    return frame
