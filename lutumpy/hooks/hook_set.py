"""Application hooks: extension points of the user's own, on the same machinery (rule H7)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, Generic, Literal, cast

from typing_extensions import ParamSpec, Self, TypeVar

from lutumpy.errors import DeclarationError, HookError, HookRegistrationError
from lutumpy.hooks.implementations import Implementation, SlotSpec, is_async
from lutumpy.hooks.pipeline import close
from lutumpy.hooks.registry import Registry

P = ParamSpec("P")
R = TypeVar("R")

SlotKind = Literal["always", "fallback", "singleton"]
_KINDS = ("always", "fallback", "singleton")


class HookSlot(Generic[P, R]):
    """One slot of a `HookSet`; reading it from an instance gives the callable."""

    def __init__(self, kind: SlotKind, default: Callable[..., Any]) -> None:
        self.kind: SlotKind = kind
        self.default: Callable[..., Any] = default
        self.name: str = default.__name__
        self.is_async: bool = is_async(default)
        self.signature: inspect.Signature = inspect.signature(default)
        self.__doc__ = default.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    def __get__(self, instance: HookSet, owner: type[Any]) -> Callable[P, R]:
        if instance is None:  # pyright: ignore[reportUnnecessaryComparison]  # read from the class
            return cast("Callable[P, R]", self)
        run = self._run_async if self.is_async else self._run
        return cast("Callable[P, R]", lambda *args, **kwargs: run(instance, args, kwargs))

    @property
    def spec(self) -> SlotSpec:
        """What a registry is told of the slot."""
        names = [n for n in list(self.signature.parameters)[1:] if n != "last"]
        return SlotSpec(self.name, (*names, "last"), self.is_async, self.kind == "singleton")

    def _plan(
        self, instance: HookSet, args: Any, kwargs: Any
    ) -> tuple[dict[str, Any], tuple[Implementation, ...], bool]:
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
        values, hooks, with_default = self._plan(instance, args, kwargs)
        last = self.default(instance, *args, **kwargs) if with_default else None
        for hook in hooks:
            last = _call(hook, values, last)
            if inspect.isawaitable(last):
                close(last)
                raise HookError(f"{hook.label} gave an awaitable; {self.name} is a plain slot")
        return last

    async def _run_async(self, instance: HookSet, args: Any, kwargs: Any) -> Any:
        values, hooks, with_default = self._plan(instance, args, kwargs)
        last = await self.default(instance, *args, **kwargs) if with_default else None
        for hook in hooks:
            last = _call(hook, values, last)
            if inspect.isawaitable(last):
                last = await last
        return last


def _call(hook: Implementation, values: dict[str, Any], last: Any) -> Any:
    return hook.function(**{name: last if name == "last" else values[name] for name in hook.parameters})


def hook_slot(kind: SlotKind) -> Callable[[Callable[Concatenate[Any, P], R]], HookSlot[P, R]]:
    """Declare a method of a `HookSet` as a slot; its body is the default.

    Args:
        kind: `always`: the default, then each hook with `last=` the result so far. `fallback`: the hooks, the default only
            when there is none. `singleton`: the hook registered last, or the default.

    A slot declared `async def` is awaited and takes sync and async hooks; one declared `def` takes plain hooks only.
    """
    if kind not in _KINDS:
        raise DeclarationError(f"hook_slot takes one of {', '.join(_KINDS)}, not {kind!r}")
    return lambda default: HookSlot(kind, default)


class HookSet:
    """Base of a class of hook slots. Each instance is a registry of its own."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, slot in cls._slots().items():
            if hasattr(HookSet, name):
                raise DeclarationError(f"{cls.__name__}.{name}: the name is taken by a method of hook sets")
            if slot.name != name:
                raise DeclarationError(
                    f"{cls.__name__}.{name} is the slot {slot.name!r} of another name; declare it anew"
                )

    def __init__(self) -> None:
        self._registry = Registry(type(self).__name__, [slot.spec for slot in self._slots().values()])

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
        """Register an object whose `@hook_impl` methods implement slots; raises `HookRegistrationError`, changing nothing."""
        self._registry.register(plugin)

    def unregister(self, plugin: Any) -> None:
        """Take a plugin out; raises `HookRegistrationError` when it isn't there."""
        self._registry.unregister(plugin)

    def with_hooks(self, *plugins: Any) -> Self:
        """A new set with these plugins too; this one stays as it is."""
        twin = self._copy()
        twin._registry.register(*plugins)
        return twin

    def extend(self, other: HookSet) -> None:
        """Register every plugin of another set of the same class: all or none."""
        if type(other) is not type(self):
            raise HookRegistrationError(f"{type(other).__name__} is another set of hooks than {type(self).__name__}")
        self._registry.adopt(other._registry.plugins)

    def with_extended(self, other: HookSet) -> Self:
        """A new set with the plugins of both; this one stays as it is."""
        twin = self._copy()
        twin.extend(other)
        return twin

    def load_plugins(self, name: str) -> None:
        """Register the installed plugins of this name (entry points of the group `lutumpy`): all or none."""
        self._registry.load(name)

    def _copy(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._registry = self._registry.copy()
        return twin
