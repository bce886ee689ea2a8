"""Application hooks: extension points of the user's own, on the same machinery (rule H7)."""

# What a call of a slot runs depends on its kind, and on what is registered:
#
#   kind         no hook        hooks a, b
#   -----------  -------------  --------------------------------------------------------------
#   always       the default    the default, then a, then b, each given the result so far
#   fallback     the default    a, then b, each given the result so far; not the default
#   singleton    the default    the one that was registered last; not the default
#
# A set may hold other sets. What is hard about that is copying: the copy of a set has copies of the
# sets that it holds, one that is held twice is one in the copy too, and two may hold each other. So
# `_copy` and `_pair_up` remember what they have seen.

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, Concatenate, Generic, Literal, Protocol, TypeVar, cast, overload

from typing_extensions import ParamSpec, Self

from lutumpy.errors import DeclarationError, HookError, HookRegistrationError
from lutumpy.hooks.calling import close_coroutine
from lutumpy.hooks.implementations import Implementation, SlotSpec
from lutumpy.hooks.registry import Registry
from lutumpy.plain.driving import is_async
from lutumpy.plain.signatures import signature_of

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")

SlotKind = Literal["always", "fallback", "singleton"]
_KINDS = ("always", "fallback", "singleton")


class HookSlot(Generic[P, R_co]):
    """One slot of a `HookSet`.

    Reading it from an instance gives the callable; from the class, the slot itself, for `on`.
    """

    def __init__(self, kind: SlotKind, default: Callable[..., Any]) -> None:
        self.kind: SlotKind = kind
        self.default: Callable[..., Any] = default
        self.name: str = default.__name__
        self.is_async: bool = is_async(default)
        self.signature: inspect.Signature = signature_of(default)
        if "last" in self.signature.parameters:
            raise DeclarationError(
                f"the slot {self.name}{self.signature} declares 'last' for itself: its hooks are "
                "given the result so far by that name (rule H7); name the parameter differently"
            )
        self.__doc__ = default.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, instance: HookSet, owner: type[Any]) -> Callable[P, R_co]: ...
    def __get__(self, instance: HookSet | None, owner: type[Any]) -> Self | Callable[P, R_co]:
        if instance is None:
            return self
        run = self._run_async if self.is_async else self._run
        return cast("Callable[P, R_co]", lambda *args, **kwargs: run(instance, args, kwargs))

    @property
    def spec(self) -> SlotSpec:
        """The slot as a registry knows it."""
        names = tuple(self.signature.parameters)[1:]
        if self.kind == "singleton":
            return SlotSpec(self.name, names, self.is_async, singleton=True)
        return SlotSpec(self.name, (*names, "last"), self.is_async)

    def _choose_hooks(
        self, instance: HookSet, args: Any, kwargs: Any
    ) -> tuple[dict[str, Any], tuple[Implementation, ...], bool]:
        """The arguments by name, the hooks to run, and whether the default runs before them."""
        bound = self.signature.bind(instance, *args, **kwargs)
        bound.apply_defaults()
        values = dict(list(bound.arguments.items())[1:])
        registry = instance._registry
        if self.kind == "singleton":
            last = registry.last(self.name)
            hooks: tuple[Implementation, ...] = () if last is None else (last,)
        else:
            hooks = registry.implementations(self.name)
        return values, hooks, self.kind == "always" or not hooks

    def _run(self, instance: HookSet, args: Any, kwargs: Any) -> Any:
        values, hooks, with_default = self._choose_hooks(instance, args, kwargs)
        last = self.default(instance, *args, **kwargs) if with_default else None
        for hook in hooks:
            last = _call_hook(hook, values, last)
            if inspect.isawaitable(last):
                close_coroutine(last)
                raise HookError(f"{hook.label} gave an awaitable; {self.name} is a plain slot")
        return last

    async def _run_async(self, instance: HookSet, args: Any, kwargs: Any) -> Any:
        values, hooks, with_default = self._choose_hooks(instance, args, kwargs)
        last = await self.default(instance, *args, **kwargs) if with_default else None
        for hook in hooks:
            last = _call_hook(hook, values, last)
            if inspect.isawaitable(last):
                last = await last
        return last


def _call_hook(hook: Implementation, values: dict[str, Any], last: Any) -> Any:
    available = {**values, "last": last}
    return hook.function(**{name: available[name] for name in hook.parameters})


def hook_slot(kind: SlotKind) -> Callable[[Callable[Concatenate[Any, P], R]], HookSlot[P, R]]:
    """Declare a method of a `HookSet` as a slot; its body is the default.

    Args:
        kind: `always`: the default, then each hook with `last=` the result so far. `fallback`: the
            hooks, and the default only if there is none. `singleton`: the hook registered last, or
            the default.

    A slot declared `async def` is awaited and takes sync and async hooks; one declared `def` takes
    plain hooks only.
    """
    if kind not in _KINDS:
        raise DeclarationError(f"hook_slot takes one of {', '.join(_KINDS)}, not {kind!r}")
    return lambda default: HookSlot(kind, default)


class OnSlot(Protocol[T]):
    """Registers one function for one slot and returns it."""

    def __call__(self, hook: Callable[Q, T], /) -> Callable[Q, T]: ...


class OnAsyncSlot(Protocol[T]):
    """Registers one function, async or plain, for one async slot and returns it."""

    @overload
    def __call__(
        self, hook: Callable[Q, Coroutine[Any, Any, T]], /
    ) -> Callable[Q, Coroutine[Any, Any, T]]: ...
    @overload
    def __call__(self, hook: Callable[Q, T | Awaitable[T]], /) -> Callable[Q, T | Awaitable[T]]: ...


class HookSet:
    """Base of a class of hook slots. Each instance is a registry of its own.

    A set may hold others, as attributes of the instance or of the class. Each instance has inner
    sets of its own, and whatever copies or extends a set does the same with the inner ones.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, slot in cls._slots().items():
            if hasattr(HookSet, name):
                raise DeclarationError(
                    f"{cls.__name__}.{name}: the name is taken by a method of hook sets"
                )
            if slot.name != name:
                raise DeclarationError(
                    f"{cls.__name__}.{name} is the slot {slot.name!r} under another name; "
                    "declare it anew"
                )

    def __init__(self) -> None:
        self._registry = Registry(
            type(self).__name__, [slot.spec for slot in self._slots().values()]
        )
        for base in reversed(type(self).__mro__):
            for name, member in vars(base).items():
                if isinstance(member, HookSet):
                    self.__dict__[name] = member._copy()

    @classmethod
    def _slots(cls) -> dict[str, HookSlot[..., Any]]:
        found: dict[str, HookSlot[..., Any]] = {}
        for base in reversed(cls.__mro__):
            for name, member in vars(base).items():
                if isinstance(member, HookSlot):
                    found[name] = member
                else:
                    found.pop(name, None)
        return found

    def register(self, plugin: Any) -> None:
        """Register an object whose `@hook_impl` methods implement slots.

        Raises:
            HookRegistrationError: something is wrong with it. The set is as it was.
        """
        self._registry.register(plugin, places=self._slot_places())

    def unregister(self, plugin: Any) -> None:
        """Take a plugin out; raises `HookRegistrationError` if it isn't there."""
        self._registry.unregister(plugin)

    def with_hooks(self, *plugins: Any) -> Self:
        """A new set with these plugins too; this one, and the sets in it, stay as they are."""
        twin = self._copy()
        twin._registry.register(*plugins, places=twin._slot_places())
        return twin

    @overload
    def on(self, slot: HookSlot[P, Coroutine[Any, Any, T]]) -> OnAsyncSlot[T]: ...
    @overload
    def on(self, slot: HookSlot[P, R]) -> OnSlot[R]: ...
    def on(self, slot: Any) -> Any:
        """Decorator: register one function for one slot, `hooks.on(AppHooks.validate_prompt)`.

        The function names those of the slot's parameters that it needs, and `last`. It may be
        marked with `@hook_impl`, for `tryfirst` and `trylast`.

        Raises:
            HookRegistrationError: the slot is not one of this set; or the function takes something
                else, or is there already. The set is as it was.
        """
        if not isinstance(slot, HookSlot) or self._slots().get(slot.name) is not slot:
            shown = slot.name if isinstance(slot, HookSlot) else repr(slot)
            title = type(self).__name__
            raise HookRegistrationError(f"{shown} is not a slot of {title}: give {title}.<slot>")

        def register(hook: Any) -> Any:
            self._registry.register_function(slot.name, hook)
            return hook

        return register

    def extend(self, other: HookSet) -> None:
        """Register every plugin of another set of the same class: all or none.

        The sets that both hold are extended in the same way. Plugins that are here already stay
        where they are. A set that only the other one holds is copied to this one.

        Raises:
            HookRegistrationError: the other one is of another class, or one of the sets that both
                hold is. Nothing has changed.
        """
        pairs = list(self._pair_up(other, type(self).__name__, set()))
        # First everything on copies, where it may fail; then the copies take their places.
        merged = [mine._registry.copy() for mine, _ in pairs]
        for registry, (_, theirs) in zip(merged, pairs, strict=True):
            missing = [p for p in theirs._registry.plugins if not registry.has(p)]
            registry.adopt(theirs._registry, missing)
        for registry, (mine, theirs) in zip(merged, pairs, strict=True):
            mine._registry = registry
            held = mine._held_sets()
            for name, held_by_other in theirs._held_sets().items():
                if name not in held:
                    mine.__dict__[name] = held_by_other._copy()

    def with_extended(self, other: HookSet) -> Self:
        """A new set with the plugins of both; this one stays as it is."""
        twin = self._copy()
        twin.extend(other)
        return twin

    def load_plugins(self, name: str) -> None:
        """Register the installed plugins of this name: all or none.

        They are entry points of the group `lutumpy`. Raises `HookRegistrationError` as `register`
        does, and if a plugin isn't installed or can't be loaded.
        """
        self._registry.load(name, self._slot_places())

    def _held_sets(self) -> dict[str, HookSet]:
        """The sets that are attributes of this one."""
        return {name: member for name, member in vars(self).items() if isinstance(member, HookSet)}

    def _slot_places(self) -> dict[str, list[str]]:
        """Where the slots of this set, and of those that it holds, are: `AppHooks.audit`."""
        places: dict[str, list[str]] = {}
        seen: set[int] = set()
        waiting: list[tuple[HookSet, str]] = [(self, type(self).__name__)]
        while waiting:
            held, place = waiting.pop(0)
            if id(held) in seen:
                continue
            seen.add(id(held))
            for slot in held._slots():
                places.setdefault(slot, []).append(place)
            waiting += [(inner, f"{place}.{name}") for name, inner in held._held_sets().items()]
        return places

    def _pair_up(self, other: Any, place: str, seen: set[int]) -> Iterator[tuple[HookSet, HookSet]]:
        """This set and the other one, and each set that both hold, once."""
        if type(other) is not type(self):
            raise HookRegistrationError(
                f"{type(other).__name__} is another set of hooks than {place}"
            )
        if id(self) in seen:
            return
        seen.add(id(self))
        yield self, other
        theirs = other._held_sets()
        for name, mine in self._held_sets().items():
            if name in theirs:
                yield from mine._pair_up(theirs[name], f"{place}.{name}", seen)

    def __copy__(self) -> Self:
        # By default both would have one registry, and what is registered here would hold there.
        return self._copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._copy()

    def _copy(self, twins: dict[int, HookSet] | None = None) -> Self:
        # A set that is held twice is one in the copy too, and two may hold each other.
        twins = {} if twins is None else twins
        twin = object.__new__(type(self))
        twins[id(self)] = twin
        twin.__dict__.update(self.__dict__)
        for name, held in self._held_sets().items():
            twin.__dict__[name] = twins[id(held)] if id(held) in twins else held._copy(twins)
        twin._registry = self._registry.copy()
        return twin
