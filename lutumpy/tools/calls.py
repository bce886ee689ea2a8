"""One call of a model, decoded: a call that can be executed, or an issue; and what became of it."""

# What becomes of a call that a model has made:
#
#   CallBlock ──read──> ToolCall ──the user's code──> ToolResult
#                 │        ├──────a hook completes──> HandledTool
#                 │        └──────a hook rejects────> RejectedToolCall
#                 └───> ToolCallIssue ────────────> its answer, or a ToolResult of the user's
#
# To a type checker, `ToolCall[I, O]` is the call of a known tool. Rounds of a toolset without a
# union hold `BaseToolCall`s, which are the same objects: `matches` gives them their types.

from __future__ import annotations

import inspect
from dataclasses import field
from importlib import import_module
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Generic, Literal

from typing_extensions import TypeVar

from lutumpy.core.items import REJECTION_PREFIX, ToolMetadata
from lutumpy.plain.values import dataclass
from lutumpy.tools.arguments import ArgumentRepair
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.edits import edited_input, run_with_some
from lutumpy.tools.results import ToolResult, completed, failed_result, rejected

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from typing_extensions import Self

    from lutumpy.core.call_place import CallPlace
    from lutumpy.tools.questions import CallLeg
    from lutumpy.tools.selectors import Selector

I = TypeVar("I", default=Any)
O = TypeVar("O", default=Any)
R = TypeVar("R")
C_co = TypeVar("C_co", bound="BaseToolCall", default="BaseToolCall", covariant=True)

IssueReason = Literal[
    "unknown_tool", "not_available", "truncated", "malformed_arguments", "invalid_arguments"
]

_PICKLING = "lutumpy.tools.call_pickling"
"""Named as text: it needs calls itself, and is rarely needed."""


class BaseToolCall:
    """A decoded call whose tool the type checker doesn't know yet.

    Narrow it with `AppTools.some_tool.matches(call)`.

    Attributes:
        metadata: Call id, tool name and the arguments as the model wrote them; never changed.
        input: The validated input.
        selector: Which tool of the toolset it calls.
        repairs: What was decoded a second time to make the arguments fit (rule C5); usually empty.
        origin: Its place in the conversation; `None` for a call from `Toolset.parse`.
        key: Its idempotency key, if that was fixed before: a call of a plan or a ticket that was
            loaded. Else the executor makes one (rule P9).
        equal_to: For such a call, the text that is the same for equal calls.
        leg: Which leg of it is to be run, where questions in the middle of it can be held for a
            person.
    """

    __slots__ = ("equal_to", "input", "key", "leg", "metadata", "origin", "repairs", "selector")

    metadata: ToolMetadata
    input: Any
    selector: Selector[Any, Any, Any]
    repairs: tuple[ArgumentRepair, ...]
    origin: CallPlace | None
    key: str | None
    equal_to: str | None
    leg: CallLeg | None

    def __init__(
        self,
        metadata: ToolMetadata,
        input: Any,
        selector: Selector[Any, Any, Any],
        repairs: tuple[ArgumentRepair, ...] = (),
        origin: CallPlace | None = None,
    ) -> None:
        self.metadata = metadata
        self.input = input
        self.selector = selector
        self.repairs = repairs
        self.origin = origin
        self.key = None
        self.equal_to = None
        self.leg = None

    def __repr__(self) -> str:
        from lutumpy.plain.brief_repr import brief, brief_line

        metadata = self.metadata
        return brief_line("ToolCall", metadata.name, metadata.id[:24], brief(self.input))

    def __reduce__(self) -> tuple[Any, ...]:
        reduced: tuple[Any, ...] = import_module(_PICKLING).reduce_call(self)
        return reduced

    @property
    def tool(self) -> CompiledTool:
        """What the tool was compiled to."""
        return self.selector.tool

    @property
    def arguments(self) -> dict[str, Any]:
        """The input as keyword arguments: a new dictionary of validated values."""
        return self.selector.tool.arguments(self.input)

    def complete(self, output: Any) -> ToolResult:
        """The result of running the tool.

        Never raises: an output that doesn't fit is reported by `commit`.
        """
        tool = self.selector.tool
        # Most tools return text, and nothing about a `str` has to be found out.
        if type(output) is str and tool.output_type is str:
            return ToolResult(self.metadata, output, "ok", None, output)
        return completed(self.metadata, tool, output)

    def fail(
        self, error: str | BaseException, *, content: Any = None, reveal: bool = False
    ) -> ToolResult:
        """The result of a tool that failed.

        Args:
            error: A text, which the model is shown, or an exception. Of a `ToolError` the model is
                shown the message and the content, of any other exception the name of its class in
                a neutral sentence (rule K6); of a group, each exception inside by the same rule.
            content: A JSON value or content parts that the model gets behind the text, in place of
                the content of a `ToolError`. What can't be sent is reported by `commit`.
            reveal: Show the class and the message of any exception; never a traceback.

        Raises:
            TypeError: `error` is neither.
        """
        return failed_result(self.metadata, error, content=content, reveal=reveal)

    def reject(self, reason: str) -> ToolResult:
        """The result of a call that was not run, and why."""
        return rejected(self.metadata, reason)

    def later(
        self, note: str = "", *, handle: Any = None, until: datetime | timedelta | None = None
    ) -> ToolResult:
        """The promise of a result that comes later: the call stays open (rule LR1).

        `session.open_calls` has it then, and `session.deliver` takes its result. Only a tool that
        was declared with `late=True`, or that has no function, may promise; `commit` reports any
        other.

        Args:
            note: What the model is told beside the fact, such as "about an hour".
            handle: What the program needs to find the work again: JSON. The model isn't shown it.
            until: When the call is given up, by a store: a time with its zone, or how long from
                now.

        Raises:
            TypeError: `note` isn't text, or `until` neither a time nor a duration.
            ValueError: `until` is a time without its zone.
        """
        from lutumpy.tools.promised import promised_result  # few results come later

        return promised_result(self.metadata, self.selector.tool, note, handle, until)

    def handled(self, output: Any) -> HandledTool[Any, Any]:
        """The call as answered without running the tool, for `commit`."""
        return HandledTool(self.metadata, self.input, output, self.selector)

    def with_input(self, new: Any) -> Self:
        """The same call with another input; what the model asked (`metadata`) stays.

        Where a tool that is known at run time has a check, the input is what that makes of `new`.

        Raises:
            TypeError: `new` isn't an instance of the tool's input type.
            InvalidArgumentsError: The tool is known at run time, and `new` doesn't fit its schema;
                or `new` is a text that doesn't match the tool's pattern.
        """
        tool = self.selector.tool
        if not isinstance(new, tool.input_type):
            wanted = tool.input_type.__name__
            raise TypeError(
                f"with_input takes {wanted}, the input of {self.metadata.name!r}, not "
                f"{type(new).__name__}"
            )
        return self.holding(tool.accept_input(self.metadata, new, self.input))

    def holding(self, new: Any) -> Self:
        """As `with_input`, for an input that was checked already."""
        call = type(self)(self.metadata, new, self.selector, self.repairs, self.origin)
        call.key = self.key
        return call

    def edited(self, /, **changes: Any) -> Self:
        """The same call with other values for some of its arguments, validated again.

        This one stays as it is.

        `FunctionSelector.replace` is the form that a type checker checks.

        Raises:
            TypeError: The tool has no argument of such a name.
            InvalidArgumentsError: A value doesn't fit.
        """
        return self.with_input(edited_input(self.selector.tool, self.metadata, self.input, changes))

    def apply(self, function: Callable[..., R], /, **skipped: Any) -> R:
        """Run a function of yours with those arguments of the call that it names.

        An async one gives its coroutine. `FunctionSelector.apply` is the form that a type checker
        checks.

        Args:
            function: Names some of the arguments, or takes all with `**`.
            skipped: Further arguments, such as parameters of the tool that the model doesn't see.

        Raises:
            TypeError: The function needs something else, or has no parameter for one of `skipped`.
                It was not run.
        """
        result: R = run_with_some(self.selector.tool, self.input, function, skipped)
        return result

    async def call(self, **skipped: Any) -> Any:
        """Run the function of a `tool_fn` tool with the input.

        Args:
            skipped: The parameters marked `Skip`, which the model never sees.

        Raises:
            TypeError: The tool was declared by `tool_input`; or a `Skip` parameter without a
                default is missing, or was given a value of another type. It was not run then.
        """
        result = self.selector.tool.invoke(self.input, skipped)
        # Nearly always a coroutine; `isawaitable` asks for more, and is slower.
        if type(result) is CoroutineType or inspect.isawaitable(result):
            return await result
        return result

    def call_sync(self, **skipped: Any) -> Any:
        """As `call`, for plain functions, in programs without an event loop.

        Raises:
            TypeError: As `call`; or the function is async. It was not started then.
        """
        if self.selector.tool.is_async:
            raise TypeError(
                f"{self.metadata.name!r} is async: write `await call.call()`; it was not started"
            )
        return self.selector.tool.invoke(self.input, skipped)


class ToolCall(BaseToolCall, Generic[I, O]):
    """A call of a tool with input `I` and output `O`."""

    __slots__ = ()

    if TYPE_CHECKING:
        input: I
        selector: Selector[Any, I, O]

        def complete(self, output: O) -> ToolResult: ...
        def handled(self, output: O) -> HandledTool[I, O]: ...
        def with_input(self, new: I) -> Self: ...
        async def call(self, **skipped: Any) -> O: ...
        def call_sync(self, **skipped: Any) -> O: ...


ONLY_CALLS: frozenset[type[Any]] = frozenset({ToolCall})
"""The types of the entries of an answer that holds nothing but calls to execute."""


@dataclass(frozen=True, slots=True)
class HandledTool(Generic[I, O]):
    """A call that was answered without running the tool.

    Attributes:
        metadata: The call.
        input: The input as it was when the decision fell.
        output: The answer.
        selector: Which tool it called; `None` where it was built by hand without one.
    """

    metadata: ToolMetadata
    input: I
    output: O
    selector: Selector[Any, I, O] | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        reduced: tuple[Any, ...] = import_module(_PICKLING).reduce_handled(self)
        return reduced


@dataclass(frozen=True, slots=True)
class RejectedToolCall(Generic[C_co]):
    """A call that will not be run.

    Attributes:
        metadata: The call.
        call: The call as it was when the decision fell.
        reason: Why; the model is told.
        source: Who decided: `hook`, `policy` or `person`.
    """

    metadata: ToolMetadata
    call: C_co
    reason: str
    source: str = "hook"

    @property
    def selector(self) -> Selector[Any, Any, Any]:
        """Which tool it called."""
        return self.call.selector


@dataclass(frozen=True, slots=True)
class ToolCallIssue:
    """A call that can't be executed.

    The library answers it at commit, unless you give a result of your own.

    Attributes:
        metadata: Call id, tool name and arguments as the model wrote them.
        reason: What is wrong (rule C2).
        detail: What the model sees: fields and messages.
        repeat: How often the same tool already failed with the same arguments in this transcript.
    """

    metadata: ToolMetadata
    reason: IssueReason
    detail: str
    repeat: int = 0

    def fail(
        self, error: str | BaseException, *, content: Any = None, reveal: bool = False
    ) -> ToolResult:
        """A result of your own, marked as an error; exceptions are shown as by `ToolCall.fail`."""
        return failed_result(self.metadata, error, content=content, reveal=reveal)

    def reject(self, reason: str) -> ToolResult:
        """A result of your own, marked as a rejection."""
        return rejected(self.metadata, reason)

    def answer(self) -> ToolResult:
        """The library's own result: the detail, and a warning where the same call failed before."""
        text = self.detail
        if self.repeat:
            times = "once" if self.repeat == 1 else f"{self.repeat} times"
            text += (
                f"\nThis very call already failed {times}: change the arguments, or do something "
                "else."
            )
        return ToolResult(self.metadata, REJECTION_PREFIX + text, "rejected", self.reason)
