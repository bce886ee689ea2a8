"""What a loop is asked to do: its options, checked as a whole before anything is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Literal, TypeAlias, Union

from typing_extensions import TypedDict, TypeVar

from lutumpy import (
    ApprovalRequest,
    HookError,
    Model,
    Selector,
    Session,
    ToolAvailability,
    ToolDecision,
    ToolRequirement,
    Toolset,
)
from lutumpy.execution import Around, Dispatcher, ToolExecutor, nest_around
from lutumpy.hooks import BaseToolCall, ToolHooks
from lutumpy.loops.watching import LoopBudget, LoopTelemetry
from lutumpy.models import OnPrefixChange
from lutumpy.plain.driving import is_async
from lutumpy.plain.safe_text import safe_repr
from lutumpy.plain.values import dataclass
from lutumpy.tools import ByTool, ProviderSettings, extends

__all__ = [
    "UNSENT",
    "AskApproval",
    "LoopOptions",
    "LoopSettings",
    "Policy",
    "SyncApprove",
    "SyncPolicy",
    "has_async_hooks",
    "refuse_async_hooks",
]

TS = TypeVar("TS", bound=Toolset[Any])
C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)

SyncPolicy: TypeAlias = Callable[[C], ToolDecision[Any, Any]]
Policy: TypeAlias = Callable[[C], Union[ToolDecision[Any, Any], Awaitable[ToolDecision[Any, Any]]]]
"""A plain function that decides every call; it may be async."""
SyncApprove: TypeAlias = Callable[[ApprovalRequest], bool]
AskApproval: TypeAlias = Callable[[ApprovalRequest], Union[bool, Awaitable[bool]]]
"""Says whether a call that the provider makes itself is approved; it may be async."""

UNSENT = "nothing was sent"


# The options of two functions are written once. `run_tools` names those parameters itself whose
# types are its own (async hooks and callbacks), and those that every loop sets; a type checker
# expands the others from here, with the toolset's type in them.
class LoopOptions(TypedDict, Generic[TS], total=False):
    """The options that `run_tools` and `run_tools_sync` share. Each may be left out.

    Attributes:
        executor: How calls are run; by default a new `ToolExecutor()` for this loop alone. An
            executor that lives longer keeps later loops from repeating calls whose outcome is
            unknown.
        scope: What tells this conversation from all others, in place of the executor's scope:
            for an executor that serves several conversations.
        max_repeats: The loop stops with `repeat` when the same call was invalid, rejected or
            failed in this many of its rounds; 3 by default, `None` for never. The same call means
            the same tool and arguments that are equal as JSON values.
        token_budget: The loop stops with `budget`, in place of another request, once the session
            has cost this many tokens since the loop began. `usage.total_tokens` counts, including
            what is known of requests that failed or were abandoned. The round that is open by
            then is still run and committed, so a loop may exceed its budget by one answer.
            `None`, the default, is no limit; hosts that count no tokens never reach one.
        available: Which tools the model may call; or a function that is given the session before
            each request and says it, such as `ToolFinder.available`.
        require: Whether it must call one. This holds for the first request only, since a model
            that must call a tool can never answer.
        describe: Other descriptions, for all requests; they win over those of hooks.
        parallel: `False` asks for at most one call in each answer; `True` by default.
        provider: Settings of tools for single APIs, by the tool and the API's name, for all
            requests.
        prefix_stable: `True` sends the same tools whatever `available` says; see `Toolset.offer`.
        temperature: Sampling temperature.
        max_output_tokens: Limit of each answer, in tokens.
        extra: Provider parameters, passed through with every request.
        effort: How much the model should think, in the provider's word, as `low`.
        on_prefix_change: What happens when settings change between requests, see `OnPrefixChange`.
        value_retries: With `output`: how often the model is told why its answer has no value, and
            asked again; 0 by default. What a retry says stays in the session, as a message of the
            user. A refused answer isn't asked for again.
        telemetry: Makes spans and events of the loop, its requests and its calls:
            `lutumpy.otel.Telemetry`. It names the loop by the class of the toolset.
        budget: What may be spent, by this loop and whatever else shares it: a
            `lutumpy.budget.Budget`. The loop stops with `budget`, in place of another request, once
            it is used up. Tools whose limit is used up are not offered any more, and not run.
    """

    executor: ToolExecutor | None
    scope: str | None
    max_repeats: int | None
    token_budget: int | None
    available: ToolAvailability[TS] | Callable[[Session], ToolAvailability[TS]] | None
    require: ToolRequirement[TS] | None
    describe: ByTool[Selector[TS, Any, Any], str] | None
    parallel: bool
    provider: ByTool[Selector[TS, Any, Any], ProviderSettings] | None
    prefix_stable: bool
    temperature: float | None
    max_output_tokens: int | None
    extra: Mapping[str, Any] | None
    effort: str | None
    on_prefix_change: OnPrefixChange | None
    value_retries: int
    telemetry: LoopTelemetry | None
    budget: LoopBudget | None


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """Everything that a loop is asked to do, with defaults; `LoopOptions` says what each means.

    Raises:
        ValueError: a limit is not a positive number. `TypeError` where another value is not of
            its type. Nothing was sent in either case.
        DeclarationError: `dispatch` doesn't cover the toolset, or is for another one; without it,
            a tool of the toolset has no code of its own.
        HookError: `hooks` belongs to another toolset, or can't decide calls.
    """

    # A field for each key of `LoopOptions`, so that an unknown option is a TypeError. `output` is
    # not one of them, since it gives the result its type, and `decide_held`, since a loop in a
    # store waits for people in another way, as it does for late results (`late`).
    tools: Any
    dispatch: Dispatcher[Any] | None
    hooks: ToolHooks[Any] | Policy[Any] | None
    approve: AskApproval | None
    max_rounds: int
    executor: ToolExecutor | None = None
    scope: str | None = None
    max_repeats: int | None = 3
    token_budget: int | None = None
    available: ToolAvailability[Any] | Callable[[Session], ToolAvailability[Any]] | None = None
    require: ToolRequirement[Any] | None = None
    describe: ByTool[Selector[Any, Any, Any], str] | None = None
    parallel: bool = True
    provider: ByTool[Selector[Any, Any, Any], ProviderSettings] | None = None
    prefix_stable: bool = False
    temperature: float | None = None
    max_output_tokens: int | None = None
    extra: Mapping[str, Any] | None = None
    effort: str | None = None
    on_prefix_change: OnPrefixChange | None = None
    value_retries: int = 0
    telemetry: LoopTelemetry | None = None
    budget: LoopBudget | None = None
    output: Any = None
    decide_held: Policy[Any] | None = None
    late: Literal["wait", "go_on"] = "go_on"

    def __post_init__(self) -> None:
        _check_positive("max_rounds", self.max_rounds)
        if self.max_repeats is not None:
            _check_positive("max_repeats", self.max_repeats)
        if self.token_budget is not None:
            _check_positive("token_budget", self.token_budget)
        if not hasattr(self.tools, "__view__"):
            raise TypeError(f"tools= takes a Toolset class, not {self.tools!r:.100}; {UNSENT}")
        toolset = self.tools.__view__().toolset
        if self.dispatch is None:
            object.__setattr__(self, "dispatch", Dispatcher(toolset))
        if not isinstance(self.dispatch, Dispatcher):
            raise TypeError(
                f"dispatch= takes a Dispatcher({toolset.__name__}), "
                f"not {safe_repr(self.dispatch)}; {UNSENT}"
            )
        self.dispatch.check(toolset)
        _check_hooks(self.hooks, toolset)
        if self.approve is not None and not callable(self.approve):
            kind = type(self.approve).__name__
            raise TypeError(f"approve= takes a callable, not {kind}; {UNSENT}")
        if self.decide_held is not None and not callable(self.decide_held):
            kind = type(self.decide_held).__name__
            raise TypeError(f"decide_held= takes a callable, not {kind}; {UNSENT}")
        if self.executor is not None and not isinstance(self.executor, ToolExecutor):
            kind = type(self.executor).__name__
            raise TypeError(f"executor= takes a ToolExecutor, not {kind}; {UNSENT}")
        if self.scope is not None and not isinstance(self.scope, str):
            raise TypeError(f"scope= takes text, not {type(self.scope).__name__}; {UNSENT}")
        _check_output(self.output, self.value_retries)
        if self.late not in ("wait", "go_on"):
            raise ValueError(f"late= is 'wait' or 'go_on', not {self.late!r}; {UNSENT}")
        if self.telemetry is not None and not callable(getattr(self.telemetry, "tool_call", None)):
            kind = type(self.telemetry).__name__
            raise TypeError(f"telemetry= takes a Telemetry, not {kind}; {UNSENT}")
        if self.budget is not None and not callable(getattr(self.budget, "available", None)):
            kind = type(self.budget).__name__
            raise TypeError(f"budget= takes a Budget, not {kind}; {UNSENT}")

    @property
    def around(self) -> Around | None:
        """What is around each attempt of each call."""
        outer = None if self.telemetry is None else self.telemetry.tool_call
        return nest_around(outer, None if self.budget is None else self.budget.tool_call)

    def watched(self, llm: Model) -> Model:
        """The model, with what watches and pays its requests."""
        if self.telemetry is not None:
            llm = self.telemetry.model(llm)
        return llm if self.budget is None else self.budget.model(llm)

    @property
    def name(self) -> str:
        """What traces call the loop: the name of the toolset's class."""
        name: str = self.tools.__view__().toolset.__name__
        return name

    @property
    def dispatcher(self) -> Dispatcher[Any]:
        """What runs the calls: `dispatch`, or one built for the toolset."""
        assert self.dispatch is not None
        return self.dispatch


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={safe_repr(value)} is not a whole number from 1; {UNSENT}")


def _check_output(output: Any, retries: Any) -> None:
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise ValueError(f"value_retries={safe_repr(retries)} is not a whole number; {UNSENT}")
    if output is None and retries:
        raise ValueError(f"value_retries= needs output=; {UNSENT}")


def _check_hooks(hooks: Any, toolset: type[Toolset[Any]]) -> None:
    if isinstance(hooks, ToolHooks):
        if not extends(toolset, hooks._toolset):
            raise HookError(f"{hooks!r} is not a registry of {toolset.__name__}; {UNSENT}")
    elif hooks is not None and not callable(hooks):
        raise HookError(
            f"hooks= takes a registry or a callable, not {type(hooks).__name__}; {UNSENT}"
        )


def refuse_async_hooks(hooks: Any) -> None:
    """Raise `HookError` when a hook or the policy is async, which `run_tools_sync` can't await."""
    found = _find_async_hook(hooks, reviews=True)
    if found is not None:
        raise HookError(f"{found} is async; use run_tools(); {UNSENT}")


def has_async_hooks(hooks: Any) -> bool:
    """Whether hooks, or the policy, may wait while they decide calls."""
    return _find_async_hook(hooks, reviews=False) is not None


def _find_async_hook(hooks: Any, *, reviews: bool) -> str | None:
    """How an error names the first async hook, or the policy if it is async."""
    if not isinstance(hooks, ToolHooks):
        is_async_policy = hooks is not None and is_async(hooks)
        return f"the policy {safe_repr(hooks)}" if is_async_policy else None
    chains = hooks._tree.chains()
    for name in [selector.name for selector in hooks._toolset.selectors()]:
        steps = chains[name].steps if name in chains else ()
        found = [step.label for step in steps if step.is_async]
        if reviews:
            result_hooks = hooks._tree.list_result_hooks(name)
            found += [hook.label for hook in result_hooks if hook.is_async]
        if found:
            return f"hook {found[0]} of {name!r}"
    return None
