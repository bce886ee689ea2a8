"""The hook registry of a toolset: two slots for each of its tools, and two for all of them."""

#   slot                       implemented by                       run by
#   -------------------------  -----------------------------------  -------------------------------
#   any_tool_hook              (metadata, call) -> decision         apply, a round's apply_hooks
#   <tool>_hook                (metadata, input) -> decision        the same, after the general ones
#   any_result_hook            (metadata, result) -> result, None   review
#   <tool>_description_hook    (definition) -> text, None           description_overrides
#
# A nested toolset has a registry of its own, a "group" of the outer one. A call of a nested tool
# meets the general hooks of every registry on the way, outermost first, and then the tool's own
# hooks, which only the innermost registry keeps. The chains of hooks are worked out once for each
# change of any of these registries.

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    Union,
    overload,
)

from typing_extensions import ParamSpec, Self, TypeVar

from lutumpy.core.items import ToolMetadata
from lutumpy.errors import HookError, HookRegistrationError
from lutumpy.hooks.approvals import decide_approval
from lutumpy.hooks.calling import close_coroutine, drive_sync, hook_failure
from lutumpy.hooks.decisions import ToolDecision
from lutumpy.hooks.implementations import Implementation, SlotSpec
from lutumpy.hooks.logs import INFO, logger
from lutumpy.hooks.pipeline import (
    CallOrIssue,
    Chain,
    Decision,
    HookStep,
    chain_of,
    copy_input,
    decide,
    refuse_async,
)
from lutumpy.hooks.registry import Registry
from lutumpy.hooks.results import CallResult
from lutumpy.hooks.review import read_results, refuse_async_review, review_results
from lutumpy.plain.driving import drive_async
from lutumpy.plain.safe_text import safe_repr
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.calls import BaseToolCall, HandledTool, RejectedToolCall
from lutumpy.tools.members import hook_slots
from lutumpy.tools.results import ToolResult
from lutumpy.tools.selectors import BaseToolset, FunctionSelector, Selector
from lutumpy.tools.tool import Nested, Tool

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lutumpy.tools.definition import ToolDef

TS = TypeVar("TS", bound=BaseToolset)
N = TypeVar("N", bound=BaseToolset)
C = TypeVar("C", bound=BaseToolCall)
I = TypeVar("I")
O = TypeVar("O")
O_co = TypeVar("O_co", covariant=True)
P = ParamSpec("P")

Decides: TypeAlias = Union[ToolDecision[Any, O], Awaitable[ToolDecision[Any, O]]]

_ANY_TOOL = SlotSpec("any_tool_hook", ("metadata", "call"))
_ANY_RESULT = SlotSpec("any_result_hook", ("metadata", "result"))
_NO_HOOKS = chain_of(())
_UNUSED = "no description was used"


class ToolHook(Protocol[I, O_co]):
    """What decides a call of one tool: a function, sync or async."""

    def __call__(
        self, metadata: ToolMetadata, input: I
    ) -> ToolDecision[I, O_co] | Awaitable[ToolDecision[I, O_co]]: ...


class DescriptionHook(Protocol):
    """A function, sync or async, that words the description of one tool; `None` keeps the text."""

    def __call__(self, definition: ToolDef) -> str | Awaitable[str | None] | None: ...


class OnTool(Protocol[I, O]):
    """Registers one function for one tool and returns it."""

    def __call__(self, hook: ToolHook[I, O], /) -> ToolHook[I, O]: ...


class OnFunction(Protocol[P, O]):
    """Registers one function for one tool that is a function, and returns it.

    The hook has the parameters of the tool, in their order, after the metadata; or it takes the
    input.
    """

    @overload
    # The overloads overlap: a hook for a parameter named `input` may be of both forms.
    def __call__(  # type: ignore[overload-overlap]
        self, hook: Callable[Concatenate[ToolMetadata, P], Decides[O]], /
    ) -> Callable[Concatenate[ToolMetadata, P], Decides[O]]: ...
    @overload
    def __call__(self, hook: ToolHook[BaseModel, O], /) -> ToolHook[BaseModel, O]: ...


class ToolHooks(Generic[TS]):
    """The hooks of a toolset.

    Any number of rounds may use it at once; each uses the hooks that were registered when it began.
    Nested toolsets keep registries of their own: attributes with the names of the members, typed
    through `nested()`.
    """

    def __init__(self, toolset: type[TS]) -> None:
        table = toolset.__lutumpy_table__
        slots = [_ANY_TOOL, _ANY_RESULT]
        groups: dict[str, ToolHooks[Any]] = {}
        for name, member in table.members.items():
            if isinstance(member, Tool):
                call, description = hook_slots(member.source.definition.name)
                slots.append(SlotSpec(call, ("metadata", "input"), tool=member.source))
                slots.append(SlotSpec(description, ("definition",), singleton=True))
            elif isinstance(member, Nested):
                groups[name] = ToolHooks(member.toolset)
        self._toolset = toolset
        self._registry = Registry(f"{toolset.__name__}.hooks()", slots)
        self._groups = groups
        # The chains by tool name, and the version of the registries that they belong to.
        self._chains: tuple[int, dict[str, Chain]] | None = None

    def __getattr__(self, name: str) -> ToolHooks[Any]:
        groups = self.__dict__.get("_groups", {})
        if name in groups:
            found: ToolHooks[Any] = groups[name]
            return found
        toolset = self.__dict__.get("_toolset")
        raise AttributeError(f"{type(self).__name__} of {toolset} has no nested registry {name!r}")

    def nested(self, toolset: type[N]) -> ToolHooks[N]:
        """The registry of a nested toolset.

        Raises:
            HookRegistrationError: the toolset isn't nested in this one.
        """
        for group in self._groups.values():
            if group._toolset is toolset:
                return group
        for group in self._groups.values():
            try:
                return group.nested(toolset)
            except HookRegistrationError:
                continue
        raise HookRegistrationError(f"{toolset.__name__} is not nested in {self._toolset.__name__}")

    # --- registration ---------------------------------------------------------------------------

    def register(self, plugin: Any) -> None:
        """Register an object whose `@hook_impl` methods implement slots.

        Raises:
            HookRegistrationError: something is wrong with it. The registry is as it was.
        """
        self._registry.register(plugin)

    def with_hooks(self, *plugins: Any) -> Self:
        """A new registry with these plugins too; this one stays as it is."""
        twin = self._copy()
        twin._registry.register(*plugins)
        return twin

    @overload
    # The overloads overlap: a function's selector is a selector too. The first one matches.
    def on(  # type: ignore[overload-overlap]
        self, selector: FunctionSelector[TS, P, O]
    ) -> OnFunction[P, O]: ...
    @overload
    def on(self, selector: Selector[TS, I, O]) -> OnTool[I, O]: ...
    def on(self, selector: Selector[TS, Any, Any]) -> Any:
        """Decorator: register one function for one tool, nested ones included.

        The hook takes (metadata, input). For a tool that is a function it may also take
        (metadata, ...) with the parameters of that function.

        Raises:
            HookRegistrationError: the selector is not a tool of this toolset; or the hook takes
                something else, is annotated for another tool's input, or is there already. The
                registry is as it was.
        """
        owner, name = self._find_owner(selector)
        return lambda hook: owner._register_function(hook_slots(name)[0], hook)

    def describe(
        self, selector: Selector[TS, Any, Any]
    ) -> Callable[[DescriptionHook], DescriptionHook]:
        """Decorator: register the function that words one tool's description.

        It replaces an earlier one, with a warning. Raises as `on` does.
        """
        owner, name = self._find_owner(selector)
        return lambda hook: owner._register_function(hook_slots(name)[1], hook)

    def unregister(self, plugin: Any) -> None:
        """Take out a plugin, or a function that `on` or `describe` registered.

        It is looked for in nested registries too.

        Raises:
            HookRegistrationError: it isn't registered.
        """
        holders = [h._registry for h in self._with_nested() if h._registry.holds(plugin)]
        for registry in holders or [self._registry]:
            registry.unregister(plugin)

    def extend(self, other: ToolHooks[TS]) -> None:
        """Register every plugin of another registry of the same toolset: all or none.

        Nested registries are extended too.

        Raises:
            HookRegistrationError: the other one is of another toolset, or has a plugin that is here
                already. The registry is as it was.
        """
        if not isinstance(other, ToolHooks) or other._toolset is not self._toolset:
            raise HookRegistrationError(
                f"{safe_repr(other)} is not a registry of {self._toolset.__name__}"
            )
        pairs = list(zip(self._with_nested(), other._with_nested(), strict=True))
        # First everything on copies, where it may fail; then the copies take their places.
        extended = [mine._registry.copy() for mine, _ in pairs]
        for registry, (_, theirs) in zip(extended, pairs, strict=True):
            registry.adopt(theirs._registry.plugins)
        for (mine, _), registry in zip(pairs, extended, strict=True):
            registry.version = mine._registry.version + 1
            mine._registry = registry

    def with_extended(self, other: ToolHooks[TS]) -> Self:
        """A new registry with the plugins of both; this one stays as it is."""
        twin = self._copy()
        twin.extend(other)
        return twin

    def load_plugins(self, name: str) -> None:
        """Register the installed plugins of this name: all or none.

        They are entry points of the group `lutumpy`. Raises `HookRegistrationError` as `register`
        does, and where a plugin isn't installed or can't be loaded.
        """
        self._registry.load(name)

    def _register_function(self, slot: str, hook: Any) -> Any:
        self._registry.register_function(slot, hook)
        return hook

    def _find_owner(self, selector: Selector[TS, Any, Any]) -> tuple[ToolHooks[Any], str]:
        if not isinstance(selector, Selector) or selector.toolset is not self._toolset:
            raise HookRegistrationError(
                f"{safe_repr(selector)} is not a tool of {self._toolset.__name__}"
            )
        return self._find_owner_of(selector.name), selector.name

    def _find_owner_of(self, name: str) -> ToolHooks[Any]:
        """The innermost registry whose toolset declares the tool itself."""
        for group in self._groups.values():
            if group._toolset.try_selector(name) is not None:
                return group._find_owner_of(name)
        return self

    def _with_nested(self) -> list[ToolHooks[Any]]:
        nested = [inner for group in self._groups.values() for inner in group._with_nested()]
        return [self, *nested]

    def _copy(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(
            _toolset=self._toolset,
            _registry=self._registry.copy(),
            _groups={name: group._copy() for name, group in self._groups.items()},
            _chains=None,
        )
        return twin

    # --- decisions ------------------------------------------------------------------------------

    async def apply(self, call: C) -> C | HandledTool[Any, Any] | RejectedToolCall:
        """Decide one call alone.

        Returns:
            The call, perhaps edited; a `HandledTool`; or a `RejectedToolCall`.

        Raises:
            HookError: a hook raised or decided something that doesn't fit, or the call is of
                another toolset. Its input is as it was.
        """
        chain, input_before = self._chain_of(call), copy_input(call.input)
        log = logger().isEnabledFor(INFO)
        try:
            end: Any = await drive_async(_decide(call, chain, log=log))
        except BaseException:
            call.input = input_before
            raise
        return end.decided if isinstance(end, Decision) else end

    def apply_sync(self, call: C) -> C | HandledTool[Any, Any] | RejectedToolCall:
        """As `apply`; an async hook is a `HookError` that names it."""
        chain, input_before = self._chain_of(call), copy_input(call.input)
        log = logger().isEnabledFor(INFO)
        refuse_async(chain.steps, call.metadata)
        try:
            end: Any = drive_sync(_decide(call, chain, log=log))
        except BaseException:
            call.input = input_before
            raise
        return end.decided if isinstance(end, Decision) else end

    def _chain_of(self, call: BaseToolCall) -> Chain:
        if isinstance(call, ApprovalRequest):
            return approval_chain(self)
        if call.selector.toolset is not self._toolset:
            theirs, ours = call.selector.toolset.__name__, self._toolset.__name__
            raise HookError(f"{call!r} is a call of {theirs}, not of {ours}")
        return self._current_chains().get(call.metadata.name, _NO_HOOKS)

    def _current_chains(self) -> dict[str, Chain]:
        """The hooks registered now by tool name; tools without hooks are left out."""
        version = self._current_version()
        if self._chains is None or self._chains[0] != version:
            steps_by_name = {s.name: self._list_steps(s.name) for s in self._toolset.selectors()}
            self._chains = (
                version,
                {name: chain_of(steps) for name, steps in steps_by_name.items() if steps},
            )
        return self._chains[1]

    def _current_version(self) -> int:
        """A number that grows with every change, of nested registries too."""
        version = self._registry.version
        for group in self._groups.values():
            version += group._current_version()
        return version

    def _list_steps(self, name: str) -> list[HookStep]:
        general = self._list_general_hooks(_ANY_TOOL.name, name)
        own = self._find_owner_of(name)._registry.implementations(hook_slots(name)[0])
        return [
            *[_make_step(hook, "call") for hook in general],
            *[_make_step(hook, "input") for hook in own],
        ]

    def _list_general_hooks(self, slot: str, name: str) -> list[Implementation]:
        """The implementations of a general slot, from this registry inwards to the tool's own."""
        hooks = list(self._registry.implementations(slot))
        for group in self._groups.values():
            if group._toolset.try_selector(name) is not None:
                hooks += group._list_general_hooks(slot, name)
        return hooks

    # --- results and descriptions ---------------------------------------------------------------

    async def review(self, results: Iterable[CallResult]) -> list[ToolResult]:
        """Run the `any_result_hook`s over results before the commit.

        A hook may replace the content of a result, and nothing else.

        Raises:
            HookError: a hook raised, or gave something else; nothing was committed.
        """
        unreviewed = read_results(list(results), self._toolset)
        return await drive_async(review_results(unreviewed, self._find_result_hooks(unreviewed)))

    def review_sync(self, results: Iterable[CallResult]) -> list[ToolResult]:
        """As `review`; an async hook is a `HookError` that names it."""
        unreviewed = read_results(list(results), self._toolset)
        hooks = self._find_result_hooks(unreviewed)
        refuse_async_review(hooks)
        return drive_sync(review_results(unreviewed, hooks))

    def _find_result_hooks(self, results: Sequence[ToolResult]) -> dict[str, list[Implementation]]:
        names = dict.fromkeys([r.metadata.name for r in results])
        return {name: self._list_general_hooks(_ANY_RESULT.name, name) for name in names}

    async def description_overrides(self) -> dict[Selector[TS, Any, Any], str]:
        """The texts that description hooks give, for `describe=` (rule H8).

        Nested tools are in it as tools of this toolset.

        Raises:
            HookError: a hook raised, or gave something that is neither a text nor `None`.
        """
        return await drive_async(_collect_descriptions(self._find_description_hooks()))

    def description_overrides_sync(self) -> dict[Selector[TS, Any, Any], str]:
        """As `description_overrides`; an async hook is a `HookError` that names it."""
        hooks = self._find_description_hooks()
        for selector, hook in hooks:
            if hook.is_async:
                place = _name_description_hook(hook, selector)
                raise HookError(f"{place} is async; use description_overrides(); {_UNUSED}")
        return drive_sync(_collect_descriptions(hooks))

    def _find_description_hooks(self) -> list[tuple[Selector[TS, Any, Any], Implementation]]:
        found: list[tuple[Selector[TS, Any, Any], Implementation]] = []
        for selector in self._toolset.selectors():
            slot = hook_slots(selector.name)[1]
            hook = self._find_owner_of(selector.name)._registry.last(slot)
            if hook is not None:
                found.append((selector, hook))
        return found

    def __repr__(self) -> str:
        plugins = sum([len(h._registry.plugins) for h in self._with_nested()])
        return f"<ToolHooks of {self._toolset.__name__}: {plugins} plugins>"


def _decide(call: BaseToolCall, chain: Chain, *, log: bool) -> Generator[Any, Any, Any]:
    if isinstance(call, ApprovalRequest):
        return decide_approval(call, chain.steps, "hook", log=log)
    return decide(call, chain.steps, "hook", log=log)


def approval_chain(hooks: ToolHooks[Any]) -> Chain:
    """The hooks registered now that are asked about requests for approval.

    They are those for calls of every tool, of the outer registry alone: a request belongs to no
    nested toolset.
    """
    return chain_of(
        [_make_step(hook, "call") for hook in hooks._registry.implementations(_ANY_TOOL.name)]
    )


def chains_for(hooks: ToolHooks[Any], calls: Iterable[CallOrIssue]) -> dict[str, Chain]:
    """The hooks registered now by tool name, for the calls of an answer.

    It is a function and not a method: a public name of `ToolHooks` can't be the name of a member of
    a toolset any longer (rule D8).

    Raises:
        HookError: the registry is of another toolset than the calls.
    """
    toolset = hooks._toolset
    for call in calls:
        if not isinstance(call, BaseToolCall) or call.selector.toolset is toolset:
            continue
        if not isinstance(call, ApprovalRequest):
            raise HookError(
                f"{hooks!r} is not a registry of {call.selector.toolset.__name__}; "
                "the round is still open"
            )
    return hooks._current_chains()


def _collect_descriptions(
    hooks: Sequence[tuple[Selector[TS, Any, Any], Implementation]],
) -> Generator[Any, Any, dict[Selector[TS, Any, Any], str]]:
    texts: dict[Selector[TS, Any, Any], str] = {}
    for selector, hook in hooks:
        place = _name_description_hook(hook, selector)
        try:
            text = hook.by_position(selector.definition)
            if inspect.isawaitable(text):
                text = yield text
        except Exception as error:
            raise hook_failure(place, error, _UNUSED) from error
        if text is None:
            continue
        if not isinstance(text, str):
            close_coroutine(text)
            raise HookError(f"{place} gave {type(text).__name__}, not str; {_UNUSED}")
        texts[selector] = text
    return texts


def _name_description_hook(hook: Implementation, selector: Selector[Any, Any, Any]) -> str:
    return f"description hook {hook.label} of {selector.name!r}"


def _make_step(hook: Implementation, takes: Literal["input", "call"]) -> HookStep:
    return HookStep(hook.by_position, hook.label, hook.is_async, takes)
