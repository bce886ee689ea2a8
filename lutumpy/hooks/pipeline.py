"""One call's way through its hooks: written once, driven with and without an event loop.

pluggy can't thread a value from one plugin to the next, and its calls are synchronous. So the order comes from the registry
and the calls are made here. The generator yields what may be awaited; the drivers below await it, or refuse it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable
from copy import deepcopy
from typing import Any, Literal, NamedTuple, TypeVar

from lutumpy.core.items import ToolMetadata
from lutumpy.core.safe_text import safe_repr, safe_str
from lutumpy.errors import HookError, InvalidArgumentsError
from lutumpy.hooks.changes import InputWatch
from lutumpy.hooks.decisions import UNCHANGED, Changes, Complete, Reject, RunNormally
from lutumpy.hooks.logs import log_decision
from lutumpy.tools.calls import BaseToolCall, HandledTool, RejectedToolCall
from lutumpy.tools.edits import edited_input
from lutumpy.tools.results import ToolResult, completed

T = TypeVar("T")

Source = Literal["hook", "policy"]


class Step(NamedTuple):
    """One hook in a call's pipeline.

    Attributes:
        function: Takes (metadata, input), (metadata, call) or (call), as `takes` says.
        label: How errors and logs name it.
        is_async: Whether it is declared so; the sync drivers refuse it before it runs.
        takes: What it is given.
    """

    function: Callable[..., Any]
    label: str
    is_async: bool
    takes: Literal["input", "call", "alone"] = "input"


class Decision(NamedTuple):
    """The end of a call that a hook handled or rejected.

    Attributes:
        decided: What takes the call's place.
        result: Its result.
        source: Who decided: `hook` or `policy`.
        by: The name of the hook.
        position: Its place among the hooks of the call, from 0.
    """

    decided: HandledTool[Any, Any] | RejectedToolCall
    result: ToolResult
    source: Source
    by: str
    position: int = 0


class Chain(NamedTuple):
    """The hooks of one tool, in order.

    Attributes:
        steps: All of them.
        quick: The functions of the first ones, as far as these take the input.
    """

    steps: tuple[Step, ...]
    quick: tuple[Callable[..., Any], ...]


def chain_of(steps: Iterable[Step]) -> Chain:
    """The chain of these hooks."""
    steps = tuple(steps)
    quick: list[Callable[..., Any]] = []
    for step in steps:
        if step.takes != "input":
            break
        quick.append(step.function)
    return Chain(steps, tuple(quick))


NOT_MET: Any = object()


def decide(
    call: BaseToolCall,
    steps: tuple[Step, ...],
    source: Source,
    *,
    loud: bool,
    start: int = 0,
    met: Any = NOT_MET,
    watch: InputWatch | None = None,
) -> Generator[Any, Any, BaseToolCall | Decision]:
    """Run one call through its hooks; yields awaitables, gets their values, returns the decision, or the call, edits applied.

    Args:
        call: The call.
        steps: Its hooks.
        source: Who decides, for rejections.
        loud: Whether decisions are logged.
        start: How many hooks have let it pass already.
        met: What the next hook decided, if it was asked already.
        watch: Is shown what each hook passes on.

    Raises:
        HookError: a hook raised, or decided something that doesn't fit the tool (rules H3, H4).
    """
    metadata, tool = call.metadata, call.selector.tool
    value = call.input
    edited = False
    for position, step in enumerate(steps[start:] if start else steps, start):
        try:
            if met is not NOT_MET:
                decision, met = met, NOT_MET
            elif step.takes == "input":
                decision = step.function(metadata, value)
            else:
                # A call of the hook's own: what it assigns to that is not what will be executed.
                shown = call.with_input(value)
                decision = (
                    step.function(metadata, shown) if step.takes == "call" else step.function(shown)
                )
            kind: type[Any] = type(decision)
            if kind is not RunNormally and inspect.isawaitable(decision):
                decision = yield decision
                kind = type(decision)
        except Exception as error:
            raise failed(where(step, metadata), error, UNDECIDED) from error
        if kind is RunNormally:
            given = decision.input
            if given is not value and given is not UNCHANGED:
                if type(given) is Changes:
                    given = _edited(step, call, value, given)
                if not isinstance(given, tool.input_type):
                    raise _misfit(
                        step,
                        metadata,
                        f"RunNormally({_kind(given)}); the tool takes {tool.input_type.__name__}",
                    )
                value = given
                edited = True
            if watch is not None:
                watch.look(value, position)
            if loud:
                log_decision(step, metadata, "run_normally", value)
        elif kind is Complete:
            output = decision.output
            result = completed(metadata, tool, output)
            if result.output_error is not None:
                raise _misfit(step, metadata, f"Complete({_kind(output)}): {result.output_error}")
            if loud:
                log_decision(step, metadata, "complete")
            handled = HandledTool(metadata, snapshot(value), output, call.selector)
            return Decision(handled, result, source, step.label, position)
        elif kind is Reject:
            reason = decision.reason
            if not isinstance(reason, str):
                raise _misfit(step, metadata, f"a Reject whose reason is {_kind(reason)}")
            if loud:
                log_decision(step, metadata, "reject", reason=reason)
            rejected = call.with_input(snapshot(value))
            refusal = RejectedToolCall(metadata, rejected, reason, source)
            return Decision(refusal, rejected.reject(reason), source, step.label, position)
        else:
            close(decision)
            raise _misfit(step, metadata, f"{_kind(decision)}, not RunNormally, Complete or Reject")
    return call.with_input(value) if edited else call


def _edited(step: Step, call: BaseToolCall, value: Any, changes: Changes) -> Any:
    try:
        return edited_input(call.selector.tool, call.metadata, value, changes.values)
    except Exception as error:
        names = ", ".join(changes.values)
        why = error.detail if isinstance(error, InvalidArgumentsError) else safe_str(error)
        raise _misfit(step, call.metadata, f"RunNormally.edited({names}): {why}") from error


def refuse_async(steps: Iterable[Step], metadata: ToolMetadata) -> None:
    """Raises `HookError` for the first hook that is declared async."""
    for step in steps:
        if step.is_async:
            raise HookError(f"{where(step, metadata)} is async; {_NEEDS_LOOP}; {UNDECIDED}")


class GaveAwaitable(Exception):
    """Thrown into a generator that yielded, where nothing can be awaited."""


def drive_sync(work: Generator[Any, Any, T]) -> T:
    """Run a generator to its end; what it yields is refused, at the place where that was made."""
    try:
        awaitable = next(work)
        while True:
            close(awaitable)
            awaitable = work.throw(GaveAwaitable())
    except StopIteration as done:
        value: T = done.value
        return value


async def drive_async(work: Generator[Any, Any, T]) -> T:
    """Run a generator to its end, awaiting what it yields."""
    try:
        awaitable = next(work)
        while True:
            try:
                sent = await awaitable
            except BaseException as error:
                awaitable = work.throw(error)
            else:
                awaitable = work.send(sent)
    except StopIteration as done:
        value: T = done.value
        return value


def close(value: Any) -> None:
    """Close a coroutine that is not going to be awaited; anything else is left alone."""
    if inspect.iscoroutine(value):
        value.close()


def failed(place: str, error: Exception, state: str) -> HookError:
    """The error for a hook that raised, or gave an awaitable where none can be awaited."""
    what = (
        f"gave an awaitable; {_NEEDS_LOOP}"
        if isinstance(error, GaveAwaitable)
        else f"raised {safe_repr(error)}"
    )
    return HookError(f"{place} {what}; {state}")


def snapshot(value: Any) -> Any:
    """A copy of an input that nobody else holds, so that what a decision shows never changes afterwards."""
    try:
        return value.model_copy(deep=True)
    except Exception:
        # Something inside can't be copied (a lock, a connection); the fields beside it still can.
        return value.model_copy(
            update={name: _copied(field) for name, field in value.__dict__.items()}
        )


def _copied(value: Any) -> Any:
    try:
        return deepcopy(value)
    except Exception:
        return value


UNDECIDED = "nothing was decided, the round is still open"
_NEEDS_LOOP = "use the async form of this call"


def where(step: Step, metadata: ToolMetadata) -> str:
    """Which hook, on which call, for errors."""
    return f"hook {step.label} on call {metadata.id!r} of {metadata.name!r}"


def _misfit(step: Step, metadata: ToolMetadata, what: str) -> HookError:
    return HookError(f"{where(step, metadata)} gave {what}; {UNDECIDED}")


def _kind(value: Any) -> str:
    return type(value).__name__
