"""The whole exception tree.

Every message says what was wrong, with which call or tool, and what state things are in afterwards.
Nothing that a model writes raises one of these on the way through `Offer.read`: what a model got
wrong is a `ToolCallIssue`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from lutumpy.errors.base import LutumpyError
from lutumpy.errors.data import CallData, PartialAnswer, TokenCounts
from lutumpy.errors.recordings import CassetteError, CassetteMismatch, ProbeStopped
from lutumpy.errors.waiting import (
    EngineError,
    PlanError,
    PlanErrorKind,
    StoreError,
    StoreErrorKind,
    TakenOverError,
)
from lutumpy.plain.values import dataclass

__all__ = [
    "AdapterError",
    "BudgetExceeded",
    "CallData",
    "CassetteError",
    "CassetteMismatch",
    "Certainty",
    "CommitError",
    "CommitProblem",
    "DeclarationError",
    "DroppedRoundError",
    "EmptyToolsetError",
    "EngineError",
    "FetchError",
    "HookError",
    "HookRegistrationError",
    "InvalidArgumentsError",
    "InvalidToolConstraints",
    "LocalServerError",
    "LockError",
    "LutumpyError",
    "MalformedArgumentsError",
    "NotSupportedError",
    "PartialAnswer",
    "PlanError",
    "PlanErrorKind",
    "PrefixChangedError",
    "ProbeStopped",
    "Problem",
    "ProblemKind",
    "RoundClosedError",
    "StaleRoundError",
    "StoreError",
    "StoreErrorKind",
    "TakenOverError",
    "TokenCounts",
    "ToolError",
    "ToolRoundArityError",
    "ToolsetNotLoadedError",
    "TranscriptError",
    "UnknownApiError",
    "UnknownPriceError",
    "UnknownToolError",
]


_CALLS_SHOWN = 10


class DeclarationError(LutumpyError, TypeError):
    """A tool or a toolset was declared wrongly; raised when the decorator or the class statement
    runs.
    """


class InvalidToolConstraints(LutumpyError, ValueError):
    """What was asked of an offer can't hold; raised before anything is sent or spent."""


class EmptyToolsetError(DeclarationError, InvalidToolConstraints):
    """A toolset without any tool was offered; nothing was sent.

    `NoTools` is the toolset that offers nothing.
    """


class UnknownApiError(LutumpyError, ValueError):
    """There is no API of this name, or it lacks what was asked of it. Nothing was done."""


class UnknownToolError(LutumpyError, LookupError):
    """A toolset has no tool of this name.

    Attributes:
        name: The name that was asked for.
        toolset: The name of the toolset.
        near: Names of the toolset that look like it, nearest first.
    """

    def __init__(self, name: str, toolset: str, near: Sequence[str] = ()) -> None:
        self.name = name
        self.toolset = toolset
        self.near: tuple[str, ...] = tuple(near)
        hint = f" Did you mean {', '.join(self.near)}?" if self.near else ""
        super().__init__(f"{toolset} has no tool named {name!r:.200}.{hint}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.toolset, self.near)


class _ArgumentsError(LutumpyError, ValueError):
    """Base of the two errors that `Toolset.parse` raises for a call's arguments."""

    def __init__(self, tool: str, call_id: str, detail: str) -> None:
        self.tool = tool
        self.call_id = call_id
        self.detail = detail
        super().__init__(f"call {call_id!r} of tool {tool!r}: {detail}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tool, self.call_id, self.detail)


class InvalidArgumentsError(_ArgumentsError):
    """The arguments are a JSON object that doesn't fit the input; `detail` lists the fields."""


class MalformedArgumentsError(_ArgumentsError):
    """The arguments are not JSON, or not a JSON object; `detail` says where."""


class ToolRoundArityError(LutumpyError, ValueError):
    """A round has another number of calls than the caller expects; the round stays open.

    Attributes:
        expected: What was asked for, in words.
        found: Names of the calls in the round.
        issues: How many calls of the answer were issues.
    """

    def __init__(self, expected: str, found: Sequence[str], issues: int) -> None:
        self.expected = expected
        self.found: tuple[str, ...] = tuple(found)
        self.issues = issues
        names = f" ({', '.join(self.found)})" if self.found else ""
        aside = f" and {issues} issue{'s' if issues != 1 else ''}" if issues else ""
        super().__init__(
            f"expected {expected}, the round has {len(self.found)}{names}{aside}; it is still open"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.expected, self.found, self.issues)


ProblemKind = Literal[
    "missing_result",
    "duplicate_result",
    "wrong_tool",
    "wrong_arguments",
    "wrong_output",
    "extra_result",
    "held",
    "not_open",
]
"""Which rule of a commit, or of a delivery, was broken."""


@dataclass(frozen=True, slots=True)
class CommitProblem:
    """One reason why a commit was refused.

    Attributes:
        kind: Which rule was broken.
        call_id: The id of the call, or of the result that answers no call.
        tool: The name of the tool.
        message: The same in words.
    """

    kind: ProblemKind
    call_id: str
    tool: str
    message: str


class CommitError(LutumpyError, ValueError):
    """The results don't answer the round.

    Nothing was written, the round is open and can be committed again.

    Attributes:
        problems: Every problem found, in call order, results that answer no call last.
    """

    def __init__(self, problems: Sequence[CommitProblem]) -> None:
        self.problems: tuple[CommitProblem, ...] = tuple(problems)
        lines = "".join(f"\n- {p.message}" for p in self.problems)
        super().__init__(
            f"the round was not committed, it is still open, the transcript is unchanged:{lines}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


class RoundClosedError(LutumpyError, RuntimeError):
    """The round, plan or finished turn was committed, discarded or handed over before."""


class DroppedRoundError(LutumpyError, RuntimeError):
    """A round was dropped without `commit` or `discard`, and a request is made that would not hold
    its answer (C7a).

    Nothing was sent. The model was asked and paid for these calls, and the transcript knows nothing
    of them: usually a `commit` is missing, or an exception left the loop. `discard_open()` of the
    session (or transcript) goes on without them.

    Attributes:
        calls: The calls of the rounds that were dropped.
    """

    def __init__(self, calls: Sequence[CallData]) -> None:
        self.calls: tuple[CallData, ...] = tuple(calls)
        named = [f"{call.name or 'unnamed'} ({call.id!r})" for call in self.calls[:_CALLS_SHOWN]]
        if len(self.calls) > _CALLS_SHOWN:
            named.append(f"{len(self.calls) - _CALLS_SHOWN} more")
        super().__init__(
            "a tool round was dropped without commit or discard, with the calls "
            f"{', '.join(named)}; nothing was sent, and the transcript doesn't hold that answer. "
            "Commit each round, or discard it; discard_open() goes on without the dropped ones"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.calls,)


class StaleRoundError(LutumpyError, RuntimeError):
    """The transcript isn't what it was when the round began.

    Nothing was written; the round is still open.

    Attributes:
        result: The `TurnResult` of a finished turn that could not be written, else `None`.
    """

    def __init__(self, message: str, result: Any = None) -> None:
        self.result = result
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.result)


class PrefixChangedError(LutumpyError, RuntimeError):
    """Settings have changed, and reasoning of the conversation would be lost by that.

    Raised with `on_prefix_change="error"` only. Nothing was sent, and nothing has changed.

    Attributes:
        changed: Where the request would differ from those before, as `tools` or `messages.4`.
        would_drop: The turns whose reasoning would be left out, as indexes into `turns()`.
    """

    def __init__(self, changed: Sequence[str], would_drop: Sequence[int]) -> None:
        self.changed: tuple[str, ...] = tuple(changed)
        self.would_drop: tuple[int, ...] = tuple(would_drop)
        turns = ", ".join(map(str, self.would_drop))
        super().__init__(
            f"the beginning of the request has changed ({', '.join(self.changed) or 'unknown'}), "
            f"so the reasoning of turns {turns} would be left out; nothing was sent. "
            'on_prefix_change="append" sends it without'
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.changed, self.would_drop)


class HookError(LutumpyError, RuntimeError):
    """A hook raised, or decided something that doesn't fit the tool.

    Nothing was decided; the round is still open.
    """


class HookRegistrationError(LutumpyError, TypeError):
    """A hook can't be registered; the registry is as it was."""


Certainty = Literal["refused", "some", "discouraged"]
"""How sure a refusal is.

`refused`: the provider answers an error. `some`: some hosts or models do, or the evidence is thin.
`discouraged`: it works, badly.
"""


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule in a request, with the answer that the provider would give.

    Attributes:
        rule: Id of the rule, such as `chat.results_after_calls`.
        position: Where in the body, as the provider writes it (`messages[2].content`,
            `messages.2.content.0`); empty for the whole.
        message: The provider's own error text.
        certainty: How sure a refusal is.
        status: HTTP status of the answer.
        kind: `error.type` of the answer.
        param: OpenAI's `error.param`.
        code: OpenAI's `error.code`, Anthropic's `error.details.error_code`.
        call_ids: Ids of the calls that the problem is about.
        tools: Names of the tools that the problem is about.
        path: Keys and indices that lead from the list of messages to the place; the last may name
            what is missing. Empty for the whole, and in problems of a request, which is more than
            its messages.
    """

    rule: str
    position: str
    message: str
    certainty: Certainty
    status: int = 400
    kind: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None
    call_ids: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    path: tuple[str | int, ...] = ()


class TranscriptError(LutumpyError, ValueError):
    """An edit would make the transcript invalid, or there is nothing to send.

    The transcript is as it was.

    Attributes:
        problems: For a history that was refused: what its provider would refuse of it; else empty.
    """

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.problems)


class ToolError(LutumpyError):
    """Raised by a user's tool; its message and its content are shown to the model.

        raise ToolError("the quota is used up", content={"limit": 100, "resets": "2026-12-01"})

    Args:
        message: What went wrong, in words for the model.
        content: A JSON value or content parts that the model gets with the message, as the content
            of a result that is an error. What can't be sent is `wrong_output` at commit.

    Attributes:
        content: The same; `None` without one.
    """

    content: Any = None

    def __init__(self, *message: object, content: Any = None) -> None:
        super().__init__(*message)
        if content is not None:
            self.content = content


class AdapterError(LutumpyError):
    """A request to a provider failed, or its answer can't be read.

    Nothing was committed; the session is as it was.

    The original exception is the `__cause__`. Retries are the SDK's: when this is raised they are
    used up.

    Attributes:
        provider: The name of the API, as in `lutumpy.apis`.
        status: The HTTP status, or `None` when there was no answer.
        retryable: Whether the same request may succeed later.
        retry_after: Seconds the provider asks to wait, or `None`.
        request_id: The provider's id of the request, or `None`.
        code: The provider's own error code or type, or `None`.
        partial: What had arrived of the answer when it failed or the connection broke, or `None`.
        sent: Whether the request may have reached the provider; `False` when it is known that none
            of it did.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        request_id: str | None = None,
        code: str | None = None,
        partial: PartialAnswer | None = None,
        response_id: str | None = None,
        sent: bool = True,
    ) -> None:
        self.provider = provider
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.request_id = request_id
        self.code = code
        self.partial = partial
        self.sent = sent
        self._response_id = response_id
        super().__init__(message)

    @property
    def response_id(self) -> str | None:
        """The provider's id of the answer, where it had one.

        Responses that are made in the background, or that broke off, can be retrieved by it.
        """
        if self._response_id is None and self.partial is not None:
            return self.partial.response_id
        return self._response_id

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {k: v for k, v in self.__dict__.items() if k not in ("partial", "_response_id")}
        return _adapter_error, (self.args[0], {**fields, "response_id": self.response_id})


def _adapter_error(message: str, fields: dict[str, Any]) -> AdapterError:
    return AdapterError(message, **fields)


# --- errors of the opt-in parts -------------------------------------------------------------------


class BudgetExceeded(LutumpyError):
    """A budget is used up. The request was not sent; the session is as it was.

    Attributes:
        limit: Which limit: `usd`, `tokens` or `requests`.
    """

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message)
        self.limit: str = limit

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[str, str]]:
        return type(self), (self.args[0], self.limit)


class NotSupportedError(LutumpyError, NotImplementedError):
    """The API, or the host, has no such call. Nothing was sent."""


class UnknownPriceError(LutumpyError, LookupError):
    """Nobody knows what a model costs. Nothing was sent."""


class ToolsetNotLoadedError(LutumpyError):
    """There is no such toolset, or its module can't be imported; the message says which.

    What the import raised is the `__cause__`.
    """


class LockError(LutumpyError):
    """A lock file can't be used; the message says why. Nothing was written."""


class FetchError(LutumpyError):
    """The model could not be fetched.

    Nothing was kept; what the cache held before is still there.
    """


class LocalServerError(LutumpyError):
    """The server could not be started, or isn't running. No process of it is left.

    Attributes:
        log: The last lines that llama.cpp wrote, at most 50.
    """

    def __init__(self, message: str, log: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.log: tuple[str, ...] = tuple(log)
