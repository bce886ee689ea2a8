"""The hook registry of a toolset: two slots for each of its tools, and two for all of them."""

# What a registry keeps, and which hooks a call meets, is the business of `hooks/hook_tree.py`. Here
# is what a user sees of it: typed registration, and decisions.

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
from lutumpy.hooks.hook_tree import HookTree
from lutumpy.hooks.implementations import Implementation
from lutumpy.hooks.input_copies import changed_call, copy_input
from lutumpy.hooks.logs import INFO, logger
from lutumpy.hooks.pipeline import (
    CallOrIssue,
    Chain,
    Decision,
    Held,
    decide,
    refuse_async,
)
from lutumpy.hooks.results import CallResult
from lutumpy.hooks.review import read_results, refuse_async_review, review_results
from lutumpy.plain.driving import drive_async
from lutumpy.plain.safe_text import safe_repr
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.calls import BaseToolCall, HandledTool, RejectedToolCall
from lutumpy.tools.dynamic_group import DynamicGroup
from lutumpy.tools.results import ToolResult
from lutumpy.tools.selectors import (
    BaseToolset,
    FunctionSelector,
    Selector,
    extends,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lutumpy.tools.definition import ToolDef
    from lutumpy.tools.dynamic_values import DynamicInput, DynamicOutput

TS = TypeVar("TS", bound=BaseToolset)
N = TypeVar("N", bound=BaseToolset)
C = TypeVar("C", bound=BaseToolCall)
I = TypeVar("I")
O = TypeVar("O")
O_co = TypeVar("O_co", covariant=True)
P = ParamSpec("P")

Decides: TypeAlias = Union[ToolDecision[Any, O], Awaitable[ToolDecision[Any, O]]]

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


class OnParts(Protocol[O]):
    """Registers one function that names some parameters of a tool, and returns it.

    To a checker it may take anything: Python has no type for "some of these parameters". Names and
    types are checked when it is registered.
    """

    def __call__(self, hook: Callable[..., Decides[O]], /) -> Callable[..., Decides[O]]: ...


class ToolHooks(Generic[TS]):
    """The hooks of a toolset.

    Any number of rounds may use it at once; each uses the hooks that were registered when it began.
    Nested toolsets keep registries of their own: attributes with the names of the members, typed
    through `nested()`.
    """

    def __init__(self, toolset: type[TS]) -> None:
        self._set_tree(toolset, HookTree.of_toolset(toolset))

    def _set_tree(self, toolset: type[TS], tree: HookTree) -> None:
        self._toolset = toolset
        self._tree = tree
        self._groups: dict[str, ToolHooks[Any]] = {
            name: _registry_of(group.toolset, group) for name, group in tree.groups.items()
        }

    def __getattr__(self, name: str) -> ToolHooks[Any]:
        groups = self.__dict__.get("_groups", {})
        if name in groups:
            found: ToolHooks[Any] = groups[name]
            return found
        toolset = self.__dict__.get("_toolset")
        title = getattr(toolset, "__name__", toolset)
        has = f"; it has {', '.join(groups)}" if groups else ""
        raise AttributeError(
            f"{type(self).__name__} of {title} has no nested registry {name!r}{has}"
        )

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
        title = getattr(toolset, "__name__", None) or safe_repr(toolset)
        nested = [tree.toolset.__name__ for tree in self._tree.with_nested()[1:]]
        known = f"; {', '.join(nested)} {'is' if len(nested) == 1 else 'are'}" if nested else ""
        raise HookRegistrationError(f"{title} is not nested in {self._toolset.__name__}{known}")

    # --- registration ---------------------------------------------------------------------------

    def register(self, plugin: Any) -> None:
        """Register an object whose `@hook_impl` methods implement slots.

        Raises:
            HookRegistrationError: something is wrong with it. The registry is as it was.
        """
        self._tree.registry.register(plugin, places=self._tree.slot_places)

    def with_hooks(self, *plugins: Any) -> Self:
        """A new registry with these plugins too; this one stays as it is."""
        twin = self._copy()
        twin._tree.registry.register(*plugins, places=twin._tree.slot_places)
        return twin

    @overload
    def with_on(
        self, selector: FunctionSelector[TS, P, O], hook: Callable[..., Decides[O]]
    ) -> Self: ...
    @overload
    def with_on(self, selector: Selector[TS, I, O], hook: ToolHook[I, O]) -> Self: ...
    @overload
    def with_on(
        self, selector: DynamicGroup[TS], hook: ToolHook[DynamicInput, DynamicOutput]
    ) -> Self: ...
    def with_on(self, selector: Selector[TS, Any, Any] | DynamicGroup[TS], hook: Any) -> Self:
        """A new registry with this function for one tool too; this one stays as it is.

        So that policies are put together in a chain: `hooks.with_on(Bank.pay, limit)`. The function
        of a tool that is a function may name just the parameters that it wants, as with
        `on(..., partial=True)`.

        Raises:
            HookRegistrationError: as `on` does.
        """
        twin = self._copy()
        twin.on(selector)(hook)
        return twin

    @overload
    def on(self, selector: FunctionSelector[TS, P, O], *, partial: Literal[True]) -> OnParts[O]: ...
    @overload
    # The overloads overlap: a function's selector is a selector too. The first one matches.
    def on(  # type: ignore[overload-overlap]
        self, selector: FunctionSelector[TS, P, O]
    ) -> OnFunction[P, O]: ...
    @overload
    def on(self, selector: Selector[TS, I, O]) -> OnTool[I, O]: ...
    @overload
    def on(self, selector: DynamicGroup[TS]) -> OnTool[DynamicInput, DynamicOutput]: ...
    def on(
        self, selector: Selector[TS, Any, Any] | DynamicGroup[TS], *, partial: bool = False
    ) -> Any:
        """Decorator: register one function for one tool, nested ones included.

        The hook takes (metadata, input). For a tool that is a function it may also take
        (metadata, ...) with the parameters of that function. Given a `dynamic()` place, it decides
        the calls of every tool that fills the place, now or later.

        Args:
            selector: The tool, or the place.
            partial: For type checkers alone: the hook names just the parameters of the function
                that it wants. They know its output then; its names and types are checked here.

        Raises:
            HookRegistrationError: the selector is not a tool of this toolset; or the hook takes
                something else, is annotated for another tool's input, or is there already. The
                registry is as it was.
        """
        if isinstance(selector, DynamicGroup):
            tree, place = self._tree.find_place(selector), selector.place
            return _returning_hook(lambda hook: tree.register_for_place(place, hook))
        owner = self._tree.find_owner(selector)
        return _returning_hook(lambda hook: owner.register_for_tool(selector, hook, "call"))

    def describe(
        self, selector: Selector[TS, Any, Any]
    ) -> Callable[[DescriptionHook], DescriptionHook]:
        """Decorator: register the function that words one tool's description.

        It replaces an earlier one, with a warning. Raises as `on` does.
        """
        owner = self._tree.find_owner(selector)
        return _returning_hook(lambda hook: owner.register_for_tool(selector, hook, "description"))

    def unregister(self, plugin: Any) -> None:
        """Take out a plugin, or a function that `on` or `describe` registered.

        It is looked for in nested registries too.

        Raises:
            HookRegistrationError: it isn't registered.
        """
        registries = [tree.registry for tree in self._tree.with_nested()]
        holders = [registry for registry in registries if registry.holds(plugin)]
        for registry in holders or [self._tree.registry]:
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
        self._tree.extend(other._tree)

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
        self._tree.registry.load(name, self._tree.slot_places)

    def __copy__(self) -> Self:
        # By default both would have one registry, and what is registered here would hold there.
        return self._copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._copy()

    def _copy(self) -> Self:
        twin = object.__new__(type(self))
        twin._set_tree(self._toolset, self._tree.copy())
        return twin

    # --- decisions ------------------------------------------------------------------------------

    async def apply(self, call: C) -> C | HandledTool[Any, Any] | RejectedToolCall:
        """Decide one call alone.

        Returns:
            The call, where the hooks let it pass as it is; a call with the input that they made; a
            `HandledTool`; or a `RejectedToolCall`. The call that was given stays as it was.

        Raises:
            HookError: a hook raised, held the call for a person, or decided something that doesn't
                fit; or the call is of another toolset.
        """
        return await drive_async(_decide_alone(call, self._tree.chain_of(call)))

    def apply_sync(self, call: C) -> C | HandledTool[Any, Any] | RejectedToolCall:
        """As `apply`; an async hook is a `HookError` that names it."""
        chain = self._tree.chain_of(call)
        refuse_async(chain.steps, call.metadata)
        return drive_sync(_decide_alone(call, chain))

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
        return {name: self._tree.list_result_hooks(name) for name in names}

    async def description_overrides(self) -> dict[Selector[TS, Any, Any], str]:
        """The texts that description hooks give, for `describe=` (rule H8).

        Nested tools are in it as tools of this toolset.

        Raises:
            HookError: a hook raised, or gave something that is neither a text nor `None`.
        """
        return await drive_async(_collect_descriptions(self._tree.list_description_hooks()))

    def description_overrides_sync(self) -> dict[Selector[TS, Any, Any], str]:
        """As `description_overrides`; an async hook is a `HookError` that names it."""
        hooks = self._tree.list_description_hooks()
        for selector, hook in hooks:
            if hook.is_async:
                place = _name_description_hook(hook, selector)
                raise HookError(f"{place} is async; use description_overrides(); {_UNUSED}")
        return drive_sync(_collect_descriptions(hooks))

    def __repr__(self) -> str:
        plugins = sum([len(tree.registry.plugins) for tree in self._tree.with_nested()])
        return f"<ToolHooks of {self._toolset.__name__}: {plugins} plugins>"


def _decide_alone(
    call: C, chain: Chain
) -> Generator[Any, Any, C | HandledTool[Any, Any] | RejectedToolCall]:
    """Run one call of no round through its hooks; yields awaitables and is sent their values."""
    log = logger().isEnabledFor(INFO)
    end: Any
    if isinstance(call, ApprovalRequest):
        end = yield from decide_approval(call, chain.steps, "hook", log=log)
    else:
        value = copy_input(call.input)  # the caller may have edited it
        end = yield from decide(call, chain.steps, "hook", value, log=log)
        if end is call:
            end = changed_call(call, value)
    if isinstance(end, Held):
        metadata = end.call.metadata
        raise HookError(
            f"hook {end.by} holds call {metadata.id!r} of {metadata.name!r} for a person; one call "
            "alone can't be held: decide the calls of a round by round.apply_hooks(hooks)"
        )
    return end.decided if isinstance(end, Decision) else end


def approval_chain(hooks: ToolHooks[Any]) -> Chain:
    """The hooks registered now that are asked about requests for approval."""
    return hooks._tree.approval_chain()


def chains_for(hooks: ToolHooks[Any], calls: Sequence[CallOrIssue]) -> dict[str, Chain]:
    """The hooks registered now by tool name, for the calls of an answer.

    It is a function and not a method: a public name of `ToolHooks` can't be the name of a member of
    a toolset any longer (rule D8).

    Raises:
        HookError: the registry is of another toolset than the calls.
    """
    toolset = hooks._toolset
    is_own = True
    for call in calls:
        if not isinstance(call, BaseToolCall) or call.selector.toolset is toolset:
            continue
        if isinstance(call, ApprovalRequest):
            continue
        if not extends(call.selector.toolset, toolset):
            raise HookError(
                f"{hooks!r} is not a registry of {call.selector.toolset.__name__}; "
                "the round is still open"
            )
        is_own = False
    return hooks._tree.chains() if is_own else hooks._tree.chains_of_extension(calls)


def _registry_of(toolset: type[TS], tree: HookTree) -> ToolHooks[TS]:
    """The registry of a nested toolset, over its part of the tree."""
    hooks: ToolHooks[TS] = object.__new__(ToolHooks)
    hooks._set_tree(toolset, tree)
    return hooks


def _returning_hook(register: Callable[[Any], None]) -> Callable[[Any], Any]:
    """A decorator that registers a function and returns it."""

    def decorate(hook: Any) -> Any:
        register(hook)
        return hook

    return decorate


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
