"""The hook registry that is generated for a toolset: two slots for each of its tools, and two for all of them."""

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
from lutumpy.core.safe_text import safe_repr
from lutumpy.errors import HookError, HookRegistrationError
from lutumpy.hooks.decisions import ToolDecision
from lutumpy.hooks.implementations import Implementation, SlotSpec
from lutumpy.hooks.logs import INFO, logger
from lutumpy.hooks.pipeline import (
    Chain,
    Decision,
    Step,
    chain_of,
    close,
    decide,
    drive_async,
    drive_sync,
    failed,
    refuse_async,
    snapshot,
)
from lutumpy.hooks.registry import Registry
from lutumpy.hooks.review import Answer, as_results, refuse_async_review, reviewing
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
    """What words the description of one tool, sync or async; `None` keeps the text."""

    def __call__(self, definition: ToolDef) -> str | Awaitable[str | None] | None: ...


class OnTool(Protocol[I, O]):
    """Registers one function for one tool and returns it."""

    def __call__(self, hook: ToolHook[I, O], /) -> ToolHook[I, O]: ...


class OnFunction(Protocol[P, O]):
    """Registers one function for one tool that is a function, and returns it.

    The hook is written with the parameters of the tool, in their order, behind the metadata; or it takes the input.
    """

    @overload
    def __call__(  # type: ignore[overload-overlap]  # a hook may be of both forms: one for a parameter `input`
        self, hook: Callable[Concatenate[ToolMetadata, P], Decides[O]], /
    ) -> Callable[Concatenate[ToolMetadata, P], Decides[O]]: ...
    @overload
    def __call__(self, hook: ToolHook[BaseModel, O], /) -> ToolHook[BaseModel, O]: ...


class ToolHooks(Generic[TS]):
    """The hooks of a toolset. May be used by any number of rounds at once; each uses the hooks as they were when it began.

    Nested toolsets keep registries of their own: attributes with the names of the members, typed through `nested()`.
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
        self._chains: tuple[int, dict[str, Chain]] | None = None

    def __getattr__(self, name: str) -> ToolHooks[Any]:
        groups = self.__dict__.get("_groups", {})
        if name in groups:
            found: ToolHooks[Any] = groups[name]
            return found
        raise AttributeError(
            f"{type(self).__name__} of {self.__dict__.get('_toolset')} has no nested registry {name!r}"
        )

    def nested(self, toolset: type[N]) -> ToolHooks[N]:
        """The registry of a nested toolset; raises `HookRegistrationError` when it isn't nested here."""
        for group in self._groups.values():
            if group._toolset is toolset:
                return group
        for group in self._groups.values():
            try:
                return group.nested(toolset)
            except HookRegistrationError:
                continue
        raise HookRegistrationError(f"{toolset.__name__} is not nested in {self._toolset.__name__}")

    # --- registration ----------------------------------------------------------------------------------------------

    def register(self, plugin: Any) -> None:
        """Register an object whose `@hook_impl` methods implement slots; raises `HookRegistrationError`, changing nothing."""
        self._registry.register(plugin)

    def with_hooks(self, *plugins: Any) -> Self:
        """A new registry with these plugins too; this one stays as it is."""
        twin = self._copy()
        twin._registry.register(*plugins)
        return twin

    @overload
    def on(  # type: ignore[overload-overlap]  # a function's selector is a selector too; the first one matches
        self, selector: FunctionSelector[TS, P, O]
    ) -> OnFunction[P, O]: ...
    @overload
    def on(self, selector: Selector[TS, I, O]) -> OnTool[I, O]: ...
    def on(self, selector: Selector[TS, Any, Any]) -> Any:
        """Decorator: register one function for one tool, nested ones included.

        The hook takes (metadata, input); for a tool that is a function also (metadata, ...) with its parameters.

        Raises:
            HookRegistrationError: the selector is no tool of this toolset; or what is registered takes something else,
                is annotated for another tool's input, or is there already. The registry is as it was.
        """
        owner, name = self._owner(selector)
        return lambda hook: owner._register_function(hook_slots(name)[0], hook)

    def describe(
        self, selector: Selector[TS, Any, Any]
    ) -> Callable[[DescriptionHook], DescriptionHook]:
        """Decorator: register the function that words one tool's description; it replaces an earlier one, with a warning."""
        owner, name = self._owner(selector)
        return lambda hook: owner._register_function(hook_slots(name)[1], hook)

    def unregister(self, plugin: Any) -> None:
        """Take out a plugin, or a function that `on` or `describe` registered, wherever it is, nested registries included.

        Raises:
            HookRegistrationError: it isn't registered.
        """
        holders = [h._registry for h in self._all() if h._registry.holds(plugin)]
        for registry in holders or [self._registry]:
            registry.unregister(plugin)

    def extend(self, other: ToolHooks[TS]) -> None:
        """Register every plugin of another registry of the same toolset, nested ones included: all or none."""
        if not isinstance(other, ToolHooks) or other._toolset is not self._toolset:
            raise HookRegistrationError(
                f"{safe_repr(other)} is no registry of {self._toolset.__name__}"
            )
        pairs = list(zip(self._all(), other._all(), strict=True))
        trial = [mine._registry.copy() for mine, _ in pairs]
        for registry, (_, theirs) in zip(trial, pairs, strict=True):
            registry.adopt(theirs._registry.plugins)
        for (mine, _), registry in zip(pairs, trial, strict=True):
            registry.version = mine._registry.version + 1
            mine._registry = registry

    def with_extended(self, other: ToolHooks[TS]) -> Self:
        """A new registry with the plugins of both; this one stays as it is."""
        twin = self._copy()
        twin.extend(other)
        return twin

    def load_plugins(self, name: str) -> None:
        """Register the installed plugins of this name (entry points of the group `lutumpy`): all or none."""
        self._registry.load(name)

    def _register_function(self, slot: str, hook: Any) -> Any:
        self._registry.register_function(slot, hook)
        return hook

    def _owner(self, selector: Selector[TS, Any, Any]) -> tuple[ToolHooks[Any], str]:
        if not isinstance(selector, Selector) or selector.toolset is not self._toolset:
            raise HookRegistrationError(
                f"{safe_repr(selector)} is no tool of {self._toolset.__name__}"
            )
        return self._owner_of(selector.name), selector.name

    def _owner_of(self, name: str) -> ToolHooks[Any]:
        for group in self._groups.values():
            if group._toolset.try_selector(name) is not None:
                return group._owner_of(name)
        return self

    def _all(self) -> list[ToolHooks[Any]]:
        return [self, *[inner for group in self._groups.values() for inner in group._all()]]

    def _copy(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(
            _toolset=self._toolset,
            _registry=self._registry.copy(),
            _groups={name: group._copy() for name, group in self._groups.items()},
            _chains=None,
        )
        return twin

    # --- decisions -------------------------------------------------------------------------------------------------

    async def apply(self, call: C) -> C | HandledTool[Any, Any] | RejectedToolCall:
        """Decide one call alone.

        Returns:
            The call, perhaps edited; a `HandledTool`; or a `RejectedToolCall`.

        Raises:
            HookError: a hook raised or decided something that doesn't fit, or the call is of another toolset.
        """
        chain, kept = self._chain_of(call), snapshot(call.input)
        try:
            end: Any = await drive_async(
                decide(call, chain.steps, "hook", loud=logger().isEnabledFor(INFO))
            )
        except BaseException:
            call.input = kept
            raise
        return end.decided if isinstance(end, Decision) else end

    def apply_sync(self, call: C) -> C | HandledTool[Any, Any] | RejectedToolCall:
        """As `apply`; an async hook is a `HookError` that names it."""
        chain, kept = self._chain_of(call), snapshot(call.input)
        refuse_async(chain.steps, call.metadata)
        try:
            end: Any = drive_sync(
                decide(call, chain.steps, "hook", loud=logger().isEnabledFor(INFO))
            )
        except BaseException:
            call.input = kept
            raise
        return end.decided if isinstance(end, Decision) else end

    def _chain_of(self, call: BaseToolCall) -> Chain:
        if call.selector.toolset is not self._toolset:
            raise HookError(
                f"{call!r} is a call of {call.selector.toolset.__name__}, not of {self._toolset.__name__}"
            )
        return self._chains_now().get(call.metadata.name, _NO_HOOKS)

    def _chains_now(self) -> dict[str, Chain]:
        """The hooks of this moment by tool name; tools without hooks are left out."""
        version = self._version()
        if self._chains is None or self._chains[0] != version:
            made = {s.name: self._steps_of(s.name) for s in self._toolset.selectors()}
            self._chains = (
                version,
                {name: chain_of(steps) for name, steps in made.items() if steps},
            )
        return self._chains[1]

    def _version(self) -> int:
        """Grows with every change, of nested registries too."""
        version = self._registry.version
        for group in self._groups.values():
            version += group._version()
        return version

    def _steps_of(self, name: str) -> list[Step]:
        steps = [_step(i, "call") for i in self._hooks_for_all(_ANY_TOOL.name, name)]
        slot = hook_slots(name)[0]
        return [
            *steps,
            *[_step(i, "input") for i in self._owner_of(name)._registry.implementations(slot)],
        ]

    def _hooks_for_all(self, slot: str, name: str) -> list[Implementation]:
        """The implementations of a slot that every registry has, on the way from this one to the tool's own."""
        hooks = list(self._registry.implementations(slot))
        for group in self._groups.values():
            if group._toolset.try_selector(name) is not None:
                hooks += group._hooks_for_all(slot, name)
        return hooks

    # --- results and descriptions ------------------------------------------------------------------------------------

    async def review(self, results: Iterable[Answer]) -> list[ToolResult]:
        """Run the `any_result_hook`s over results before the commit; a hook may replace content, nothing else.

        Raises:
            HookError: a hook raised, or gave something else; nothing was committed.
        """
        taken = as_results(list(results), self._toolset)
        return await drive_async(reviewing(taken, self._result_hooks(taken)))

    def review_sync(self, results: Iterable[Answer]) -> list[ToolResult]:
        """As `review`; an async hook is a `HookError` that names it."""
        taken = as_results(list(results), self._toolset)
        hooks = self._result_hooks(taken)
        refuse_async_review(hooks)
        return drive_sync(reviewing(taken, hooks))

    def _result_hooks(self, results: Sequence[ToolResult]) -> dict[str, list[Implementation]]:
        names = dict.fromkeys([r.metadata.name for r in results])
        return {name: self._hooks_for_all(_ANY_RESULT.name, name) for name in names}

    async def description_overrides(self) -> dict[Selector[TS, Any, Any], str]:
        """The texts that description hooks give, for `describe=`; nested tools as tools of this toolset (rule H8).

        Raises:
            HookError: a hook raised, or gave something that is neither a text nor `None`.
        """
        return await drive_async(_describing(self._description_hooks()))

    def description_overrides_sync(self) -> dict[Selector[TS, Any, Any], str]:
        """As `description_overrides`; an async hook is a `HookError` that names it."""
        hooks = self._description_hooks()
        for selector, hook in hooks:
            if hook.is_async:
                raise HookError(
                    f"{_describer(hook, selector)} is async; use description_overrides(); {_UNUSED}"
                )
        return drive_sync(_describing(hooks))

    def _description_hooks(self) -> list[tuple[Selector[TS, Any, Any], Implementation]]:
        found = [
            (selector, self._owner_of(selector.name)._registry.last(hook_slots(selector.name)[1]))
            for selector in self._toolset.selectors()
        ]
        return [(selector, hook) for selector, hook in found if hook is not None]

    def __repr__(self) -> str:
        plugins = sum([len(h._registry.plugins) for h in self._all()])
        return f"<ToolHooks of {self._toolset.__name__}: {plugins} plugins>"


def _describing(
    hooks: Sequence[tuple[Selector[TS, Any, Any], Implementation]],
) -> Generator[Any, Any, dict[Selector[TS, Any, Any], str]]:
    texts: dict[Selector[TS, Any, Any], str] = {}
    for selector, hook in hooks:
        where = _describer(hook, selector)
        try:
            text = hook.by_position(selector.definition)
            if inspect.isawaitable(text):
                text = yield text
        except Exception as error:
            raise failed(where, error, _UNUSED) from error
        if text is not None and not isinstance(text, str):
            close(text)
            raise HookError(f"{where} gave {type(text).__name__}, not str; {_UNUSED}")
        if text is not None:
            texts[selector] = text
    return texts


def _describer(hook: Implementation, selector: Selector[Any, Any, Any]) -> str:
    return f"description hook {hook.label} of {selector.name!r}"


def _step(implementation: Implementation, takes: Literal["input", "call"]) -> Step:
    return Step(implementation.by_position, implementation.label, implementation.is_async, takes)
