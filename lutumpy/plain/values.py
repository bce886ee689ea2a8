"""`dataclass(frozen=True, slots=True)` for the values that every program loads, made in a fifth of
the time.

To a type checker it is the standard library's, and such a class can do the same: `fields`,
`replace`, `asdict`, comparison, hash, `repr`, `match`, copying and pickling. Not supported, because
no value here needs it: `InitVar`, and fields that are keyword-only or not in `__init__`.
"""

# Why the standard library's isn't used: it compiles six functions for each class, which was most of
# the time of importing this library (18 of 51 milliseconds), and its `__init__` sets each field
# through `object.__setattr__`, which looks the field up by its name. Here only `__init__` is
# compiled, and it calls the setters of the slots. `tests/plain/test_values.py` compares the two.

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["dataclass"]

T = TypeVar("T")


def _dataclass(*, frozen: bool, slots: bool) -> Callable[[type[T]], type[T]]:
    if not (frozen and slots):
        raise TypeError("only frozen values with slots: use the standard library's dataclass")
    return _value


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


def _value(cls: type[T]) -> type[T]:
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    made.__dataclass_params__.frozen = True  # read when a dataclass inherits from this one
    written = {name for name, value in vars(cls).items() if value is not None}
    fields = dataclasses.fields(made)
    methods = [
        _init(made, fields),
        _repr(fields),
        *_comparing(fields),
        *_freezing(made, fields),
        *_pickling(fields),
    ]
    for method in methods:
        if method.__name__ not in written:
            method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
            method.__module__ = cls.__module__
            setattr(made, method.__name__, method)
    value: type[T] = made
    return value


def _init(cls: Any, fields: Sequence[dataclasses.Field[Any]]) -> Callable[..., Any]:
    names: dict[str, Any] = {"_MISSING": dataclasses.MISSING}
    parameters: list[str] = []
    body: list[str] = []
    for field in fields:
        name = value = field.name
        # A slot of a base class is set by that class's own setter.
        names[f"_set_{name}"] = getattr(cls, name).__set__
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _MISSING else {name}"
            parameters.append(f"{name}=_MISSING")
        elif field.default is not dataclasses.MISSING:
            names[f"_default_{name}"] = field.default
            parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        body.append(f" _set_{name}(self, {value})\n")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()\n")
    exec(f"def __init__({', '.join(['self', *parameters])}):\n{''.join(body) or ' pass'}", names)
    made: Callable[..., Any] = names["__init__"]
    made.__annotations__ = {**{field.name: field.type for field in fields}, "return": None}
    return made


def _repr(fields: Sequence[dataclasses.Field[Any]]) -> Callable[..., Any]:
    shown = [field.name for field in fields if field.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:
        values = [f"{name}={getattr(self, name)!r}" for name in shown]
        return f"{type(self).__qualname__}({', '.join(values)})"

    return __repr__


def _comparing(fields: Sequence[dataclasses.Field[Any]]) -> Sequence[Callable[..., Any]]:
    compared = _getter([field.name for field in fields if field.compare])
    hashed = _getter(
        [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
    )

    def __eq__(self: Any, other: object) -> bool:
        return compared(self) == compared(other) if type(other) is type(self) else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(hashed(self))

    return __eq__, __hash__


def _getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple([getattr(value, name) for name in names])


def _freezing(cls: Any, fields: Sequence[dataclasses.Field[Any]]) -> Sequence[Callable[..., Any]]:
    names = frozenset([field.name for field in fields])

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


def _pickling(fields: Sequence[dataclasses.Field[Any]]) -> Sequence[Callable[..., Any]]:
    names = [field.name for field in fields]

    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: Sequence[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return __getstate__, __setstate__
