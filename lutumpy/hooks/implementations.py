"""What a plugin brings along: its marked functions, each checked against the slot that it is for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from lutumpy.core.driving import is_async
from lutumpy.core.safe_text import safe_repr, safe_str
from lutumpy.core.values import dataclass
from lutumpy.hooks.parameters import (
    forms,
    is_by_parameters,
    mixed_names,
    with_parameters,
    wrong_annotations,
    wrong_parameters,
)
from lutumpy.tools.selectors import near_names

if TYPE_CHECKING:
    from lutumpy.tools.compiled import CompiledTool

F = TypeVar("F", bound=Callable[..., Any])

PROJECT = "lutumpy"
_MARK = f"{PROJECT}_impl"


@overload
def hook_impl(fn: F, /) -> F: ...
@overload
def hook_impl(*, tryfirst: bool = False, trylast: bool = False) -> Callable[[F], F]: ...
def hook_impl(fn: Any = None, /, *, tryfirst: bool = False, trylast: bool = False) -> Any:
    """Mark a method as the implementation of the hook slot with its name. It registers nothing.

    Args:
        fn: The method.
        tryfirst: Runs before the ordinary ones.
        trylast: Runs after them.
    """
    import pluggy  # half as slow to import as pydantic, and not every program has hooks

    return pluggy.HookimplMarker(PROJECT)(fn, tryfirst=tryfirst, trylast=trylast)


@dataclass(frozen=True, slots=True)
class SlotSpec:
    """One hook slot.

    Attributes:
        name: What implementations are called.
        parameters: Those that implementations may name, in order.
        allows_async: Whether implementations may be `async def`.
        singleton: Whether only the one registered last counts.
        tool: The tool whose calls the slot decides; its hooks take (metadata, input), or its function's parameters.
    """

    name: str
    parameters: tuple[str, ...]
    allows_async: bool = True
    singleton: bool = False
    tool: CompiledTool | None = None


class Implementation:
    """One implementation of a slot.

    Attributes:
        function: The callable, bound.
        parameters: The slot's parameters that it names.
        by_position: Takes all of the slot's parameters by position, in the slot's order.
        is_async: Whether calling it gives an awaitable, as far as it is declared so.
        label: How errors and logs name it.
        rank: -1 for `tryfirst`, 1 for `trylast`, else 0.
    """

    __slots__ = ("by_position", "function", "is_async", "label", "parameters", "rank")

    def __init__(
        self, function: Callable[..., Any], slot: SlotSpec, signature: inspect.Signature, rank: int
    ) -> None:
        self.function: Callable[..., Any] = function
        self.parameters: tuple[str, ...] = tuple(
            [name for name in signature.parameters if name in slot.parameters]
        )
        self.by_position: Callable[..., Any]
        if slot.tool is not None and is_by_parameters(function, signature, slot.tool):
            self.by_position = with_parameters(function, signature, slot.tool)
        else:
            self.by_position = _by_position(function, slot.parameters, signature)
        self.is_async: bool = is_async(function)
        self.label: str = label(function)
        self.rank: int = rank


class Plugin:
    """What one registration brought. Not changed once registered, so that copies of a registry share it.

    Attributes:
        registered: The user's object, or the function that was registered alone.
        alone: The slot of a function that was registered alone, else `None`.
        source: The entry point that it was loaded from, if any.
        hooks: Its implementations by slot.
        stand_in: What pluggy is given. pluggy compares plugins by `==`, so two plugins that are equal, as dataclasses
            often are, would be one to it; and it takes routines only, where any callable will do.
    """

    __slots__ = ("alone", "hooks", "registered", "source", "stand_in")

    def __init__(
        self, registered: Any, hooks: Mapping[str, Implementation], alone: str | None = None
    ) -> None:
        self.registered: Any = registered
        self.hooks: Mapping[str, Implementation] = hooks
        self.alone: str | None = alone
        self.source: str | None = None
        self.stand_in: Any = _StandIn()
        for slot, hook in hooks.items():
            setattr(self.stand_in, slot, _routine(hook))

    def is_for(self, registered: Any) -> bool:
        """Whether this came from registering `registered`. Methods are new objects each time they are read."""
        return self.registered is registered or (
            self.alone is not None and bool(self.registered == registered)
        )

    def is_same(self, other: Plugin) -> bool:
        """Whether both say the same, so that only one of them may be registered."""
        if self.source is not None and self.source == other.source:
            return True  # a class in an entry point gives another instance each time
        return self.alone == other.alone and self.is_for(other.registered)


class _StandIn:
    pass


def _routine(hook: Implementation) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return hook.function(*args, **kwargs)

    call.__qualname__ = hook.label
    return hook_impl(tryfirst=hook.rank < 0, trylast=hook.rank > 0)(call)


def read_plugin(plugin: Any, slots: Mapping[str, SlotSpec], title: str) -> tuple[Plugin, list[str]]:
    """A plugin's marked methods, and everything that is wrong with them."""
    hooks: dict[str, Implementation] = {}
    problems: list[str] = []
    marked = 0
    for name in dir(plugin):
        static = inspect.getattr_static(plugin, name, None)
        if isinstance(static, (property, functools.cached_property)):
            continue  # reading one may do anything
        try:
            function = getattr(plugin, name)
            # A mark on a classmethod doesn't show on what it gives.
            mark = getattr(function, _MARK, None) or getattr(static, _MARK, None)
        except Exception:
            continue  # what can't be read was not marked
        if not isinstance(mark, dict):
            continue
        marked += 1
        where = f"{label(plugin)}.{name}"
        slot = slots.get(name)
        if slot is None:
            problems.append(f"{where}: {title} has no hook slot {name!r}{_hint(name, slots)}")
        elif (hook := _read(where, function, mark, slot, problems)) is not None:
            hooks[name] = hook
    if not marked and isinstance(getattr(plugin, _MARK, None), dict):
        problems.append(f"{label(plugin)} is a function: register it for one slot, with on()")
    elif not marked:
        problems.append(f"{label(plugin)} has no hook: mark its methods with @hook_impl")
    elif problems and isinstance(plugin, type):
        problems.append(f"{label(plugin)} is a class: register an instance of it")
    return Plugin(plugin, hooks), problems


def read_function(function: Any, slot: SlotSpec) -> tuple[Plugin, list[str]]:
    """A function as the implementation of a slot, and everything that is wrong with it. It needs no mark."""
    if not callable(function):
        return Plugin(function, {}, slot.name), [f"{safe_repr(function)} is not callable"]
    mark = getattr(function, _MARK, None)
    problems: list[str] = []
    hook = _read(label(function), function, mark if isinstance(mark, dict) else {}, slot, problems)
    return Plugin(function, {} if hook is None else {slot.name: hook}, slot.name), problems


def _read(
    where: str, function: Any, mark: Mapping[str, Any], slot: SlotSpec, problems: list[str]
) -> Implementation | None:
    found: list[str] = []
    if mark.get("hookwrapper") or mark.get("wrapper"):
        found.append(f"{where}: wrappers are not taken; return a decision instead")
    if mark.get("tryfirst") and mark.get("trylast"):
        found.append(f"{where}: tryfirst and trylast exclude each other")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        problems += [*found, f"{where}: its parameters can't be read: {safe_str(error)}"]
        return None
    tool = slot.tool
    by_parameters = tool is not None and is_by_parameters(function, signature, tool)
    if tool is not None and by_parameters:
        wrong = list(wrong_parameters(function, signature, tool))
    else:
        wrong = list(_wrong_names(signature, slot))
    if tool is not None:
        wrong += wrong_annotations(function, signature, tool, of_input=not by_parameters)
    found += [f"{where}{signature}: {problem}" for problem in wrong]
    if not slot.allows_async and is_async(function):
        found.append(
            f"{where}{signature} is async; {slot.name} is a plain slot and takes plain hooks"
        )
    problems += found
    if found:
        return None
    return Implementation(
        function, slot, signature, bool(mark.get("trylast")) - bool(mark.get("tryfirst"))
    )


def _wrong_names(signature: inspect.Signature, slot: SlotSpec) -> Iterator[str]:
    allowed = f"({', '.join(slot.parameters)})" if slot.tool is None else forms(slot.tool)
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            yield f"name the parameters that it needs, of {allowed}, in place of {parameter}"
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            yield f"{parameter.name!r} must be usable by name"
        elif parameter.name in slot.parameters:
            continue
        elif parameter.name == "last" and slot.singleton:
            yield "a singleton runs one hook, so nothing came before it: there is no 'last' to name"
        elif parameter.default is parameter.empty:
            yield f"{slot.name} has no parameter {parameter.name!r}; it has {allowed}"
    if slot.tool is not None:
        yield from mixed_names(signature, slot.tool)


def _by_position(
    function: Callable[..., Any], names: tuple[str, ...], signature: inspect.Signature
) -> Callable[..., Any]:
    own = list(signature.parameters.values())
    first = [p.name for p in own[: len(names)] if p.kind is p.POSITIONAL_OR_KEYWORD]
    if tuple(first) == names:
        return function
    wanted = [(name, index) for index, name in enumerate(names) if name in signature.parameters]
    return lambda *values: function(**{name: values[index] for name, index in wanted})


def label(thing: Any) -> str:
    """How errors name a plugin or function."""
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None)
    return name if isinstance(name, str) else type(thing).__qualname__


def _hint(name: str, slots: Mapping[str, SlotSpec]) -> str:
    near = near_names(name, slots)
    return f"; did you mean {' or '.join(near)}?" if near else f"; it has {', '.join(slots)}"
