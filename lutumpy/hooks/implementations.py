"""The hooks of a plugin: its marked functions, each checked against the slot that it is for."""

# A hook is read once, when it is registered:
#
#   an attribute of the plugin             what is done
#   -------------------------------------  ------------------------------------------------------
#   a property                             nothing: reading one may do anything
#   can't be read, or has no mark          nothing
#   is marked, and has no slot's name      a problem, with the registry that has such a slot, or
#                                          the nearest names
#   is marked, and doesn't fit its slot    a problem for each thing that is wrong
#   is marked, and fits                    an `Implementation`: how to call it is known from now on

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from lutumpy.hooks.parameters import (
    describe_forms,
    is_by_parameters,
    mixed_names,
    with_parameters,
    wrong_annotations,
    wrong_parameters,
)
from lutumpy.plain.driving import is_async
from lutumpy.plain.safe_text import safe_repr, safe_str
from lutumpy.plain.signatures import signature_of
from lutumpy.plain.values import dataclass
from lutumpy.tools.selectors import near_names

if TYPE_CHECKING:
    from lutumpy.tools.compiled import CompiledTool

F = TypeVar("F", bound=Callable[..., Any])

_METHODS = (types.MethodType, types.BuiltinMethodType)

PROJECT = "lutumpy"
_MARK = f"{PROJECT}_impl"

SlotPlaces = Mapping[str, Sequence[str]]
"""The slots of a registry and of those that it belongs together with: by the name of the slot, how
a program writes the registries that have it.
"""


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
        tool: The tool whose calls the slot decides. Its hooks take (metadata, input), or the
            parameters of its function.
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
            self.by_position = _call_by_position(function, slot.parameters, signature)
        self.is_async: bool = is_async(function)
        self.label: str = label(function)
        self.rank: int = rank


class Plugin:
    """What one registration brought.

    It is not changed once it is registered, so copies of a registry share it.

    Attributes:
        registered: The user's object, or the function that was registered alone.
        alone: The slot of a function that was registered alone, else `None`.
        source: The entry point that it was loaded from, if any.
        hooks: Its implementations by slot.
        stand_in: What pluggy is given in its place. pluggy compares plugins by `==`, so it would
            take two equal ones, as dataclasses often are, for one; and it accepts routines only,
            where any callable will do here.
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
        # pluggy finds the hooks of a plugin by its attributes.
        for slot, hook in hooks.items():
            setattr(self.stand_in, slot, _make_routine(hook))

    def is_for(self, registered: Any) -> bool:
        """Whether this came from registering `registered`."""
        if self.registered is registered:
            return True
        # A method is a new object each time it is read, and equal to the one before. What else is
        # equal is another hook: two policies of one class may have the same fields.
        methods = isinstance(registered, _METHODS) and isinstance(self.registered, _METHODS)
        return self.alone is not None and methods and bool(self.registered == registered)

    def is_same(self, other: Plugin) -> bool:
        """Whether both say the same, so that only one of them may be registered."""
        if self.source is not None and self.source == other.source:
            return True  # a class in an entry point is instantiated anew each time
        return self.alone == other.alone and self.is_for(other.registered)


class _StandIn:
    """An empty object; the routines are set on it."""


def _make_routine(hook: Implementation) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return hook.function(*args, **kwargs)

    call.__qualname__ = hook.label
    return hook_impl(tryfirst=hook.rank < 0, trylast=hook.rank > 0)(call)


def read_plugin(
    plugin: Any, slots: Mapping[str, SlotSpec], title: str, places: SlotPlaces
) -> tuple[Plugin, list[str]]:
    """A plugin's marked methods, and everything that is wrong with them.

    Args:
        plugin: The plugin.
        slots: The slots of the registry.
        title: How errors name it.
        places: Where slots are that the registry itself doesn't have.
    """
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
            continue  # an attribute that can't be read was not marked
        if not isinstance(mark, dict):
            continue
        marked += 1
        where = f"{label(plugin)}.{name}"
        slot = slots.get(name)
        if slot is None:
            hint = _suggest_slot(name, slots, places)
            problems.append(f"{where}: {title} has no hook slot {name!r}{hint}")
        else:
            hook = _read_implementation(where, function, mark, slot, problems)
            if hook is not None:
                hooks[name] = hook
    if not marked and isinstance(getattr(plugin, _MARK, None), dict):
        problems.append(f"{label(plugin)} is a function: register it for one slot, with on()")
    elif not marked:
        problems.append(f"{label(plugin)} has no hook: mark its methods with @hook_impl")
    elif problems and isinstance(plugin, type):
        problems.append(f"{label(plugin)} is a class: register an instance of it")
    return Plugin(plugin, hooks), problems


def read_function(function: Any, slot: SlotSpec) -> tuple[Plugin, list[str]]:
    """A function as the implementation of a slot, and all that is wrong; it needs no mark."""
    if not callable(function):
        return Plugin(function, {}, slot.name), [f"{safe_repr(function)} is not callable"]
    mark = getattr(function, _MARK, None)
    problems: list[str] = []
    if not isinstance(mark, dict):
        mark = {}
    hook = _read_implementation(label(function), function, mark, slot, problems)
    return Plugin(function, {} if hook is None else {slot.name: hook}, slot.name), problems


def _read_implementation(
    where: str, function: Any, mark: Mapping[str, Any], slot: SlotSpec, problems: list[str]
) -> Implementation | None:
    """The implementation, or `None` with everything that is wrong with it added to `problems`."""
    found: list[str] = []
    # pluggy's wrappers run around the others. Here a hook decides, or passes the call on: nothing
    # runs around anything, so that the order of rule H1 says all there is to say.
    if mark.get("hookwrapper") or mark.get("wrapper"):
        found.append(f"{where}: wrappers are not taken; return a decision instead")
    if mark.get("tryfirst") and mark.get("trylast"):
        found.append(f"{where}: tryfirst and trylast exclude each other")
    try:
        signature = signature_of(function)
    except (TypeError, ValueError) as error:
        problems += [*found, f"{where}: its parameters can't be read: {safe_str(error)}"]
        return None
    tool = slot.tool
    by_parameters = tool is not None and is_by_parameters(function, signature, tool)
    if tool is not None and by_parameters:
        wrong = list(wrong_parameters(function, signature, tool))
    else:
        wrong = list(_find_wrong_names(signature, slot))
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
    rank = bool(mark.get("trylast")) - bool(mark.get("tryfirst"))
    return Implementation(function, slot, signature, rank)


def _find_wrong_names(signature: inspect.Signature, slot: SlotSpec) -> Iterator[str]:
    allowed = f"({', '.join(slot.parameters)})" if slot.tool is None else describe_forms(slot.tool)
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            yield f"name the parameters that it needs, of {allowed}, in place of {parameter}"
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            yield f"{parameter.name!r} must be usable by name"
        elif parameter.name in slot.parameters:
            continue
        elif parameter.name == "last" and slot.singleton:
            yield "a singleton runs one hook, so there is no 'last': nothing came before it"
        elif parameter.default is parameter.empty:
            yield f"{slot.name} has no parameter {parameter.name!r}; it has {allowed}"
    if slot.tool is not None:
        yield from mixed_names(signature, slot.tool)


def _call_by_position(
    function: Callable[..., Any], names: tuple[str, ...], signature: inspect.Signature
) -> Callable[..., Any]:
    """`function` as one that takes all parameters of its slot by position."""
    own = list(signature.parameters.values())
    first = [p.name for p in own[: len(names)] if p.kind is p.POSITIONAL_OR_KEYWORD]
    if tuple(first) == names:
        return function  # it takes them all, in this order
    wanted = [(name, index) for index, name in enumerate(names) if name in signature.parameters]
    return lambda *values: function(**{name: values[index] for name, index in wanted})


def label(thing: Any) -> str:
    """How errors name a plugin or function."""
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None)
    return name if isinstance(name, str) else type(thing).__qualname__


def _suggest_slot(name: str, slots: Mapping[str, SlotSpec], places: SlotPlaces) -> str:
    if name in places:
        return f"; {' and '.join(places[name])} has it: register the hook there"
    near = _near_slots(name, [*slots, *(slot for slot in places if slot not in slots)])
    if near:
        named = [
            slot if slot in slots else f"{slot} of {' or '.join(places[slot])}" for slot in near
        ]
        return f"; did you mean {' or '.join(named)}?"
    return f"; it has {', '.join(filter(str.isidentifier, slots))}"


def _near_slots(name: str, slots: Sequence[str]) -> list[str]:
    """The slots whose names are most like `name`, nearest first.

    The endings, which most slots share, are left out: they would make all names alike.
    """
    slots_by_stem: dict[str, list[str]] = {}
    for slot in filter(str.isidentifier, slots):
        slots_by_stem.setdefault(_stem(slot), []).append(slot)
    near = near_names(_stem(name), slots_by_stem)
    # Of the slots of one tool, the one with the ending that is nearest.
    return [max(slots_by_stem[stem], key=lambda slot: _likeness(name, slot)) for stem in near]


def _stem(slot: str) -> str:
    return slot.removesuffix("_hook").removesuffix("_description")


def _likeness(name: str, slot: str) -> float:
    import difflib

    return difflib.SequenceMatcher(None, name, slot).ratio()
