"""`dataclass(frozen=True, slots=True)` for the values that every program loads, built in a tenth of
the time.

To a type checker it is the standard library's, and such a class can do the same: `fields`,
`replace`, `asdict`, comparison, hash, `repr`, `match`, copying and pickling. Not supported, because
no value here needs it: `InitVar`, and fields that aren't in `__init__`.
"""

# Why the standard library's isn't used: it compiles six functions for each class, which was most of
# the time of importing this library (18 of 51 milliseconds), and its `__init__` sets each field
# through `object.__setattr__`, which looks the field up by its name. Here nothing is compiled while
# a class is built, since importing builds forty of them and a program uses a third:
#
#   what                    when
#   ----------------------  ----------------------------------------------------------------------
#   slots, `__eq__`, ...    with the class; these are closures over the fields' names
#   `__init__`              when it is first looked up (`_LateInit`), as the first value does. It
#                           calls the setters of the slots.
#   `__dataclass_fields__`  when it is first looked up (`_LateDescription`), as `fields` and
#                           `replace` do. The standard library writes it, for a class that is
#                           thrown away.
#
# `tests/plain/test_values.py` compares the two.

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["dataclass"]

T = TypeVar("T")
Field = dataclasses.Field[Any]
Fields = Mapping[str, Field]

# Where a class keeps its fields until the standard library is asked to describe them.
_OWN = "__value_fields__"


def _dataclass(*, frozen: bool, slots: bool, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    if not (frozen and slots):
        raise TypeError("only frozen values with slots: use the standard library's dataclass")
    return lambda cls: _value(cls, kw_only)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


def _value(cls: type[T], kw_only: bool) -> type[T]:
    body = dict(vars(cls))
    inherited = _inherited_fields(cls)
    own = _own_fields(cls, body)
    fields = {**inherited, **own}
    for name in own:
        body.pop(name, None)  # a default would be in the way of the slot
    for name in ("__dict__", "__weakref__"):
        body.pop(name, None)
    built: Any = None  # the class, which the methods know

    def this() -> Any:
        return built

    methods = [
        _repr(fields),
        *_comparing(fields),
        *_freezing(this, fields),
        *_pickling(fields),
    ]
    for method in methods:
        if body.get(method.__name__) is None:
            method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
            method.__module__ = cls.__module__
            body[method.__name__] = method
    body.setdefault("__match_args__", () if kw_only else tuple(fields))
    body["__slots__"] = tuple([name for name in own if name not in inherited])
    body[_OWN] = fields
    body["__dataclass_fields__"] = _LateDescription(kw_only)
    body["__dataclass_params__"] = _LateDescription(kw_only)
    body.setdefault("__init__", _LateInit(kw_only))
    if sys.version_info >= (3, 13):
        body.setdefault("__replace__", _replace)
    make: Any = type(cls)
    built = make(cls.__name__, cls.__bases__, body)
    return built  # type: ignore[no-any-return]


def _inherited_fields(cls: type) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for base in cls.__mro__[:0:-1]:
        fields.update(vars(base).get(_OWN) or vars(base).get("__dataclass_fields__") or {})
    return fields


def _own_fields(cls: type, body: Mapping[str, Any]) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for name, annotation in get_annotations(cls).items():
        if "ClassVar" in str(annotation).partition("[")[0]:
            continue
        field = default = body.get(name, dataclasses.MISSING)
        if not isinstance(default, dataclasses.Field):
            field = dataclasses.field(default=default)
        field.name, field.type = name, annotation
        fields[name] = field
    return fields


class _LateInit:
    """An `__init__` that is compiled when it is first looked up."""

    __slots__ = ("_cls", "_kw_only")

    def __init__(self, kw_only: bool) -> None:
        self._kw_only = kw_only

    def __set_name__(self, cls: Any, name: str) -> None:
        self._cls = cls

    def __get__(self, value: Any, owner: type) -> Any:
        # Several threads may do this at once: each compiles the same, and the last one stays.
        init = self._cls.__init__ = _init(self._cls, vars(self._cls)[_OWN], self._kw_only)
        return init.__get__(value, owner)


class _LateDescription:
    """What the standard library knows of a dataclass, written when it is first looked up."""

    __slots__ = ("_cls", "_kw_only", "_name")

    def __init__(self, kw_only: bool) -> None:
        self._kw_only = kw_only

    def __set_name__(self, cls: Any, name: str) -> None:
        self._cls = cls
        self._name = name

    def __get__(self, value: Any, owner: type) -> Any:
        cls = self._cls
        fields: Fields = vars(cls)[_OWN]
        annotations = {name: field.type for name, field in fields.items()}
        body = {**fields, "__annotations__": annotations, "__doc__": cls.__doc__}
        described: Any = dataclasses.dataclass(
            init=False, repr=False, eq=False, slots=True, kw_only=self._kw_only
        )(type(cls.__name__, (), {**body, "__module__": cls.__module__}))
        described.__dataclass_params__.frozen = True  # read when a dataclass inherits from this one
        for name in ("__dataclass_fields__", "__dataclass_params__"):
            setattr(cls, name, getattr(described, name))
        return getattr(described, self._name)


def _replace(self: Any, /, **changes: Any) -> Any:
    return dataclasses.replace(self, **changes)


_replace.__name__ = "__replace__"


def _init(cls: Any, fields: Fields, kw_only: bool) -> Callable[..., Any]:
    names: dict[str, Any] = {"_MISSING": dataclasses.MISSING}
    parameters: list[str] = ["self", "*"] if kw_only and fields else ["self"]
    body: list[str] = []
    for name, field in fields.items():
        value = name
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
    exec(f"def __init__({', '.join(parameters)}):\n{''.join(body) or ' pass'}", names)
    init: Callable[..., Any] = names["__init__"]
    init.__annotations__ = {**{name: field.type for name, field in fields.items()}, "return": None}
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    return init


def _repr(fields: Fields) -> Callable[..., Any]:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        from lutumpy.plain.brief_repr import (
            brief_value,  # programs that show no value don't load it
        )

        return brief_value(self, fields)

    return __repr__


def _comparing(fields: Fields) -> Sequence[Callable[..., Any]]:
    compared = _getter([name for name, field in fields.items() if field.compare])
    hashed = _getter(
        [
            name
            for name, field in fields.items()
            if (field.compare if field.hash is None else field.hash)
        ]
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


def _freezing(this: Callable[[], Any], fields: Fields) -> Sequence[Callable[..., Any]]:
    def __setattr__(self: Any, name: str, value: Any) -> None:
        cls = this()
        if type(self) is cls or name in fields:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        cls = this()
        if type(self) is cls or name in fields:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


def _pickling(fields: Fields) -> Sequence[Callable[..., Any]]:
    names = tuple(fields)

    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: Sequence[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return __getstate__, __setstate__
