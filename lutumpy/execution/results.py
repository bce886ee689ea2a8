"""The result of a call, and the text of it that the model reads."""

# The texts here decide what a model does next, so each says two things: whether the tool may have
# taken effect, and whether calling it again does harm. Of a tool with the effect `once` that began
# and gave no usable answer, neither is known: its outcome is `maybe_executed`, whatever went wrong.

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal, get_args

from lutumpy import ToolResult
from lutumpy.hooks import BaseToolCall
from lutumpy.models import Part, Promise, TextPart
from lutumpy.plain.values import dataclass
from lutumpy.tools import (
    RESULT_READERS,
    Asked,
    HasMetadata,
    failed_result,
    is_for_the_model,
    poller_of,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lutumpy import Later

__all__ = ["ExecutionResult", "Outcome", "as_execution_result"]

Outcome = Literal[
    "ok",
    "failed",
    "timed_out",
    "maybe_executed",
    "rejected",
    "interrupted",
    "not_started",
    "promised",
    "asked",
]
"""What became of a call.

- `ok`: it returned its output.
- `failed`: it raised `ToolError`, or something else where running it again does no harm.
- `timed_out`: it didn't finish in time, and either never began or may safely run again.
- `maybe_executed`: a tool with the effect `once` began and gave no usable answer, so what it did
  is not known.
- `rejected`: it was not run, on purpose: a duplicate, or equal to a call that is `maybe_executed`.
- `interrupted`: the run was cancelled while it was running, and running it again does no harm.
- `not_started`: the run was cancelled before it began.
- `promised`: it has begun, and its result comes later (`Later`).
- `asked`: it waits for a person's answer to a question, and goes on then (`Waiting.questions`).
"""

UNKNOWN = (
    "The outcome is unknown: it may have taken effect. "
    "Do not simply repeat this call; find out first whether it did, or ask the user."
)

# Only tools that may safely run again are tried again.
RAN_BEFORE = "An earlier attempt timed out and may have run; calling it again does no harm."


@dataclass(frozen=True, slots=True)
class ExecutionResult(ToolResult):
    """A `ToolResult` from the executor; `commit` takes it as it is.

    Attributes:
        outcome: What became of the call.
        attempts: How often the tool was started; 0 when it was not.
        latency: Seconds from the first start to the end, waiting between attempts included.
        error: The original exception, for programs and logs; the model doesn't see it.
    """

    outcome: Outcome = "ok"
    attempts: int = 0
    latency: float = field(default=0.0, compare=False)
    error: BaseException | None = field(default=None, compare=False, repr=False)

    def dump(self) -> dict[str, JsonValue]:
        """The result as JSON values. Of the exception only the name of its class travels."""
        data: dict[str, JsonValue] = {
            **ToolResult.dump(self),
            "outcome": self.outcome,
            "attempts": self.attempts,
            # It isn't a number where the event loop was gone before the call had ended.
            "latency": round(self.latency, 6) if math.isfinite(self.latency) else 0.0,
        }
        if self.error is not None:
            data["error"] = type(self.error).__name__
        return data

    @staticmethod
    def load(data: Mapping[str, Any], call: HasMetadata) -> ExecutionResult:
        """As `ToolResult.load`, for the dump of a result of the executor.

        Raises:
            ValueError: it isn't a dump of one; the message says what is wrong.
        """
        result = ToolResult.load(data, call)
        if not isinstance(result, ExecutionResult):
            raise ValueError(
                f"the dump of a result of call {call.metadata.id!r} has no outcome: it was not "
                "made by the executor; nothing was loaded"
            )
        return result


def _read_execution_result(result: ToolResult, data: Mapping[str, Any]) -> ExecutionResult:
    outcome, attempts, latency = data["outcome"], data["attempts"], data["latency"]
    if outcome not in get_args(Outcome):
        raise ValueError(f"its outcome is {outcome!r}")
    if type(attempts) is not int or attempts < 0 or not _is_duration(latency):
        raise ValueError(f"it has {attempts!r} attempts, and the latency {latency!r}")
    return ExecutionResult(
        result.metadata,
        result.content,
        result.status,
        result.rejection_reason,
        result.output,
        result.output_error,
        result.promise,
        outcome,
        attempts,
        float(latency),
    )


def _is_duration(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf


RESULT_READERS["outcome"] = _read_execution_result


def returned(
    call: BaseToolCall, output: object, attempts: int, latency: float
) -> tuple[ExecutionResult, str | None]:
    """The result of a tool that returned; and why its output can't be used, where it can't."""
    completed = call.complete(output)
    if completed.output_error is None:
        result = ExecutionResult(
            completed.metadata,
            completed.content,
            completed.status,
            output=completed.output,
            attempts=attempts,
            latency=latency,
        )
        return result, None
    error = TypeError(f"the tool's output doesn't fit: {completed.output_error}")
    if runs_once(call):
        text = (
            "The tool ran to its end, but its answer can't be used: it has not the declared type. "
            "What it did stands, so do not repeat this call."
        )
        failed = unusable(call, "maybe_executed", text, attempts, latency, error)
        return failed, completed.output_error
    text = "The tool ran, but its answer can't be used: it has not the declared type."
    failed = unusable(call, "failed", text, attempts, latency, error)
    return failed, completed.output_error


def raised(
    call: BaseToolCall,
    error: BaseException,
    attempts: int,
    latency: float,
    *,
    began: bool = True,
    ran_before: bool = False,
) -> tuple[ExecutionResult, str | None]:
    """The result of a tool that raised; and why the content of a `ToolError` can't be used, where
    it can't.

    The model sees what the exception says only if it is a `ToolError` (rule K6).

    Args:
        call: The call.
        error: What it raised, or what kept it from being started.
        attempts: How often it was tried.
        latency: Seconds in all.
        began: Whether its code was reached in the last attempt.
        ran_before: Whether it was reached in an earlier one, which timed out.
    """
    outcome: Outcome = "failed"
    if is_for_the_model(error):
        failure = failed_result(call.metadata, error)
    elif not began:
        failure = failed_result(
            call.metadata, error, sentence="The tool could not be started ({names})."
        )
    elif runs_once(call):
        outcome = "maybe_executed"
        sentence = f"The tool failed with {{names}} before it gave an answer. {UNKNOWN}"
        failure = failed_result(call.metadata, error, sentence=sentence)
    else:
        failure = failed_result(call.metadata, error)
    content = failure.content
    if failure.output_error is not None:
        # A commit would refuse it, and with it the results of all other calls.
        content = f"{content}\nWhat it said besides can't be shown."
    if ran_before and not began:
        content = _add_text(content, RAN_BEFORE)
    result = ExecutionResult(
        call.metadata,
        content,
        "error",
        output=failure.output,
        outcome=outcome,
        attempts=attempts,
        latency=latency,
        error=error,
    )
    return result, failure.output_error


def _add_text(content: str | tuple[Part, ...], text: str) -> str | tuple[Part, ...]:
    return f"{content}\n{text}" if isinstance(content, str) else (*content, TextPart(text))


def timed_out(
    call: BaseToolCall,
    attempts: int,
    latency: float,
    error: BaseException | None,
    *,
    began: bool = True,
) -> ExecutionResult:
    """The result of a tool that didn't finish in time.

    Args:
        call: The call.
        attempts: How often it was tried.
        latency: Seconds in all.
        error: What it raised when it was stopped, if anything.
        began: Whether its code was reached in any attempt.
    """
    timeout = _format_seconds(call.selector.definition.options.timeout)
    text = f"The tool did not finish within {timeout}"
    if attempts > 1:
        text += f", in {attempts} attempts"
    if not began:
        text += ": it could not be started, and did not run."
        return unusable(call, "timed_out", text, attempts, latency, error)
    if runs_once(call):
        return unusable(call, "maybe_executed", f"{text}. {UNKNOWN}", attempts, latency, error)
    text += ". It may have run; calling it again does no harm."
    return unusable(call, "timed_out", text, attempts, latency, error)


def interrupted(
    call: BaseToolCall, attempts: int, latency: float, error: BaseException | None
) -> ExecutionResult:
    """The result of a tool that was running when its run was cancelled.

    With no attempt, its journal was being asked what had become of it before.
    """
    text = "The tool was interrupted while it was running."
    if not attempts:
        text = "The run was interrupted before it was known whether the tool had run already."
    if runs_once(call):
        return unusable(call, "maybe_executed", f"{text} {UNKNOWN}", attempts, latency, error)
    text += " It may have run; calling it again does no harm."
    return unusable(call, "interrupted", text, attempts, latency, error)


def not_started(call: BaseToolCall) -> ExecutionResult:
    """The result of a call that a cancelled run didn't reach."""
    text = "The tool was not started: the run was interrupted before."
    return unusable(call, "not_started", text, 0, 0.0, None)


def promised(
    call: BaseToolCall, later: Later, attempts: int, latency: float
) -> tuple[ExecutionResult, str | None]:
    """The result of a tool that raised `Later`; and why what it said can't be used, where it can't.

    Such a tool may have begun its work, as one that raised anything else.
    """
    try:
        open_result = call.later(later.note, handle=later.handle, until=later.until)
    except (TypeError, ValueError) as error:
        return raised(call, error, attempts, latency)
    if open_result.output_error is not None:
        misfit = TypeError(open_result.output_error)
        return raised(call, misfit, attempts, latency)[0], open_result.output_error
    result = ExecutionResult(
        open_result.metadata,
        open_result.content,
        "promised",
        promise=open_result.promise,
        outcome="promised",
        attempts=attempts,
        latency=latency,
    )
    return result, None


def asked_result(
    call: BaseToolCall, error: Asked, attempts: int, latency: float
) -> ExecutionResult:
    """What is recorded of a call whose tool asks something: and what its next leg needs."""
    now = datetime.now(timezone.utc)
    number = 1 if call.leg is None else call.leg.number
    questions = [
        {"key": key, "server": error.server, "since": now.isoformat(), **question}
        for key, question in error.questions.items()
    ]
    metadata = call.metadata
    handle = {
        "call_id": metadata.id,
        "tool": metadata.name,
        "leg": number,
        "questions": questions,
        "resume": dict(error.resume),
    }
    return ExecutionResult(
        metadata,
        "",
        "promised",
        promise=Promise(handle=handle, since=now, tool_digest=call.tool.digest),
        outcome="asked",
        attempts=attempts,
        latency=latency,
    )


def rejected(call: BaseToolCall, reason: str) -> ExecutionResult:
    """The result of a call that the executor doesn't run."""
    result = call.reject(reason)
    return ExecutionResult(
        result.metadata, result.content, result.status, result.rejection_reason, outcome="rejected"
    )


def may_promise(call: BaseToolCall) -> bool:
    """Whether its tool may raise `Later`."""
    return call.selector.definition.options.late or poller_of(call.tool) is not None


def runs_once(call: BaseToolCall) -> bool:
    """Whether running its tool again would do something new each time."""
    return call.selector.definition.options.effect == "once"


def unusable(
    call: BaseToolCall,
    outcome: Outcome,
    text: str,
    attempts: int,
    latency: float,
    error: BaseException | None,
) -> ExecutionResult:
    """An error result with this text."""
    return ExecutionResult(
        call.metadata,
        text,
        "error",
        outcome=outcome,
        attempts=attempts,
        latency=latency,
        error=error,
    )


def _format_seconds(timeout: float) -> str:
    return f"{timeout:g} second{'' if timeout == 1 else 's'}"


def as_execution_result(known: ToolResult) -> ExecutionResult:
    """A recorded result, whichever class its record has."""
    if isinstance(known, ExecutionResult):
        return known
    outcomes: Mapping[str, Any] = {
        "ok": "ok",
        "error": "failed",
        "rejected": "rejected",
        "promised": "promised",
    }
    return ExecutionResult(
        known.metadata,
        known.content,
        known.status,
        known.rejection_reason,
        known.output,
        known.output_error,
        known.promise,
        outcomes[known.status],
    )
