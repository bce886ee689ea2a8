"""One call's way through its hooks: written once, driven with and without an event loop.

pluggy can't thread a value from one plugin to the next, and its calls are synchronous. So the
registry gives the order, and the hooks are called here. `decide` is a generator: it yields what may
have to be awaited, and a driver awaits that, or refuses it (`hooks/calling.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

from lutumpy.core.items import ToolMetadata
from lutumpy.errors import HookError, InvalidArgumentsError
from lutumpy.hooks.calling import NEEDS_LOOP, close_coroutine, hook_failure
from lutumpy.hooks.changes import InputWatch
from lutumpy.hooks.decisions import UNCHANGED, Changes, Complete, Hold, Reject, RunNormally
from lutumpy.hooks.input_copies import copy_input
from lutumpy.hooks.logs import log_decision
from lutumpy.plain.safe_text import safe_str
from lutumpy.tools.calls import BaseToolCall, HandledTool, RejectedToolCall, ToolCallIssue
from lutumpy.tools.edits import edited_input
from lutumpy.tools.results import ToolResult, completed

# The calls of an answer, and what hooks do with each:
#
#   state of a call     the object           what a run of hooks does with it
#   ------------------  -------------------  ------------------------------------------------
#   pending             `BaseToolCall`       asks its hooks; it stays pending, perhaps with
#                                            another input, or becomes decided
#   held                `Held`               nothing: a person decides it (`hooks/people.py`)
#   decided             `Decision`           nothing: a hook handled or rejected it before
#   issue               `ToolCallIssue`      nothing: it can't be executed whatever they decide

Source = Literal["hook", "policy", "person"]
CallOrIssue: TypeAlias = "BaseToolCall | ToolCallIssue"

UNDECIDED = "nothing was decided, the round is still open"


class HookStep(NamedTuple):
    """One hook in the chain of a tool.

    Attributes:
        function: Takes (metadata, input), (metadata, call) or (call), as `takes` says.
        label: How errors and logs name it.
        is_async: Whether it is declared async; without an event loop it is refused before it runs.
        takes: Its arguments: the input, the call, or the call without the metadata; `person` for
            what a person has decided already, in place of a hook.
    """

    function: Callable[..., Any]
    label: str
    is_async: bool
    takes: Literal["input", "call", "call_only", "person"] = "input"


class Decision(NamedTuple):
    """The end of a call that a hook handled or rejected.

    Attributes:
        decided: What takes the call's place.
        result: Its result.
        source: Who decided: `hook`, `policy` or `person`.
        by: The name of the hook, or of the person.
        position: Its place among the hooks of the call, from 0.
    """

    decided: HandledTool[Any, Any] | RejectedToolCall
    result: ToolResult
    source: Source
    by: str
    position: int = 0


class Held(NamedTuple):
    """A call that a hook wants a person to decide.

    Attributes:
        call: The call as it was when the hook held it. Nobody else has its input.
        reason: The reason that the person sees.
        source: Who holds it: `hook` or `policy`.
        by: The name of the hook.
        position: Its place among the hooks of the call, from 0.
    """

    call: BaseToolCall
    reason: str
    source: Source
    by: str
    position: int = 0


CallState: TypeAlias = "BaseToolCall | Held | Decision | ToolCallIssue"


class Chain(NamedTuple):
    """The hooks of one tool, in order.

    Attributes:
        steps: All of them.
        input_functions: The functions of the first steps, up to the first that takes a call. They
            can be called without preparing anything (see `hooks/run.py`).
    """

    steps: tuple[HookStep, ...]
    input_functions: tuple[Callable[..., Any], ...]


def chain_of(steps: Iterable[HookStep]) -> Chain:
    """The chain of these hooks."""
    steps = tuple(steps)
    functions: list[Callable[..., Any]] = []
    for step in steps:
        if step.takes != "input":
            break
        functions.append(step.function)
    return Chain(steps, tuple(functions))


NOT_ASKED: Any = object()


def decide(
    call: BaseToolCall,
    steps: tuple[HookStep, ...],
    source: Source,
    value: Any,
    *,
    log: bool,
    start: int = 0,
    first_decision: Any = NOT_ASKED,
    watch: InputWatch | None = None,
) -> Generator[Any, Any, BaseToolCall | Held | Decision]:
    """Run one call through its hooks; yields awaitables and is sent their values.

    Args:
        call: The call.
        steps: Its hooks.
        source: Who decides, for rejections.
        value: The input for the hooks, which they may change: the call keeps its own.
        log: Whether decisions are logged.
        start: How many hooks have let the call pass already.
        first_decision: What the hook at `start` decided, if it was asked already. It is the
            decision itself: what had to be awaited was.
        watch: Looks at what each hook passes on.

    Returns:
        The decision that handled, rejected or held the call; a call with another input; or the
        call itself, where nobody passed on another one. Its hooks may have changed `value` then.

    Raises:
        HookError: a hook raised, or decided something that doesn't fit the tool (rules H3, H4).
    """
    metadata, tool = call.metadata, call.selector.tool
    edited = False
    held = call.input  # as the last edit left it: no hook is shown it, or can change it in place
    for position, step in enumerate(steps[start:] if start else steps, start):
        try:
            was_asked = first_decision is not NOT_ASKED
            if was_asked:
                decision, first_decision = first_decision, NOT_ASKED
            elif step.takes == "input":
                decision = step.function(metadata, value)
            else:
                # The hook gets a call of its own: what it assigns to that won't be executed.
                own_call = call.holding(value)
                arguments = (metadata, own_call) if step.takes == "call" else (own_call,)
                decision = step.function(*arguments)
            kind: type[Any] = type(decision)
            if not was_asked and kind is not RunNormally and inspect.isawaitable(decision):
                decision = yield decision
                kind = type(decision)
        except Exception as error:
            raise hook_failure(name_hook_and_call(step, metadata), error, UNDECIDED) from error
        if kind is RunNormally:
            new_value = decision.input
            if new_value is not value and new_value is not UNCHANGED:
                if type(new_value) is Changes:
                    new_value = _apply_changes(step, call, value, new_value)
                value = _accept_edit(step, call, new_value, held)
                held = copy_input(value) if tool.is_dynamic else value
                edited = True
            elif tool.is_dynamic and step.takes != "person":
                # It may have been changed in place (rule Y8).
                accepted = _accept_edit(step, call, value, held)
                if accepted is not value:
                    value, held = accepted, copy_input(accepted)
                    edited = True
            if watch is not None:
                watch.look(value, position)
            if log:
                log_decision(step.label, metadata, "run_normally", value)
        elif kind is Complete:
            output = decision.output
            result = completed(metadata, tool, output)
            if result.output_error is not None:
                found = f"Complete({_type_name(output)}): {result.output_error}"
                raise _misfit(step, metadata, found)
            if log:
                log_decision(step.label, metadata, "complete")
            handled = HandledTool(metadata, copy_input(value), output, call.selector)
            return Decision(handled, result, source, step.label, position)
        elif kind is Reject:
            reason = decision.reason
            if not isinstance(reason, str):
                raise _misfit(step, metadata, f"a Reject whose reason is {_type_name(reason)}")
            if log:
                log_decision(step.label, metadata, "reject", reason=reason)
            rejected = call.holding(copy_input(value))
            refusal = RejectedToolCall(metadata, rejected, reason, source)
            return Decision(refusal, rejected.reject(reason), source, step.label, position)
        elif kind is Hold:
            reason = decision.reason
            if not isinstance(reason, str):
                raise _misfit(step, metadata, f"a Hold whose reason is {_type_name(reason)}")
            if tool.is_dynamic:
                # What a person lets pass is run, and the hook may have changed it in place (Y8).
                value = _accept_edit(step, call, value, held, "Hold()")
            if log:
                log_decision(step.label, metadata, "hold", reason=reason)
            return Held(call.holding(copy_input(value)), reason, source, step.label, position)
        else:
            close_coroutine(decision)
            found = f"{_type_name(decision)}, not RunNormally, Complete, Reject or Hold"
            raise _misfit(step, metadata, found)
    return call.holding(value) if edited else call


def _accept_edit(
    step: HookStep, call: BaseToolCall, value: Any, held: Any, decision: str = ""
) -> Any:
    """The input for what a hook passed on (rules H3, Y8); `HookError` if the tool doesn't take it.

    Args:
        step: The hook.
        call: The call.
        value: What it passed on.
        held: The input before.
        decision: How it passed it on, for errors; without it, with `RunNormally`.
    """
    try:
        return call.selector.tool.accept_input(call.metadata, value, held)
    except InvalidArgumentsError as error:
        found = decision or f"RunNormally({_type_name(value)})"
        raise _misfit(step, call.metadata, f"{found}; {error.detail}") from error


def _apply_changes(step: HookStep, call: BaseToolCall, value: Any, changes: Changes) -> Any:
    try:
        return edited_input(call.selector.tool, call.metadata, value, changes.values)
    except Exception as error:
        names = ", ".join(changes.values)
        why = error.detail if isinstance(error, InvalidArgumentsError) else safe_str(error)
        raise _misfit(step, call.metadata, f"RunNormally.edited({names}): {why}") from error


def refuse_async(steps: Iterable[HookStep], metadata: ToolMetadata) -> None:
    """Raise `HookError` for the first hook that is declared async."""
    for step in steps:
        if step.is_async:
            place = name_hook_and_call(step, metadata)
            raise HookError(f"{place} is async; {NEEDS_LOOP}; {UNDECIDED}")


def name_hook_and_call(step: HookStep, metadata: ToolMetadata) -> str:
    """Which hook or person, on which call, for errors."""
    who = step.label if step.takes == "person" else f"hook {step.label}"
    return f"{who} on call {metadata.id!r} of {metadata.name!r}"


def _misfit(step: HookStep, metadata: ToolMetadata, what: str) -> HookError:
    return HookError(f"{name_hook_and_call(step, metadata)} gave {what}; {UNDECIDED}")


def _type_name(value: Any) -> str:
    return type(value).__name__
