"""Whether a value may be of an annotated type, as far as `isinstance` can tell."""

# A value is refused only where it certainly isn't of the type. What `isinstance` can't tell passes:
# protocols, typed dictionaries, type variables, annotations that are text, elements of containers.
# So does what type checkers take without an instance: an `int` for a `float`, and a file for
# `typing.TextIO`, which no file is an instance of.

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

__all__ = ["checked_classes", "is_instance", "type_name", "union_members"]

_PROMOTED: dict[type, tuple[type, ...]] = {
    float: (float, int),
    complex: (complex, float, int),
    bytes: (bytes, bytearray, memoryview),
}


def checked_classes(annotation: Any) -> tuple[type, ...] | None:
    """The classes of which a value of the annotated type is an instance; `None` where that isn't
    known.
    """
    classes: list[type] = []
    for entry in union_members(annotation):
        if get_origin(entry) is Literal:
            classes += [type(value) for value in get_args(entry)]
            continue
        kind = get_origin(entry) or entry
        if not isinstance(kind, type) or not _can_be_asked(kind):
            return None
        classes += _PROMOTED.get(kind, (kind,))
    return tuple(classes)


def _can_be_asked(kind: type) -> bool:
    is_file = kind in (typing.IO, typing.TextIO, typing.BinaryIO)
    is_protocol = getattr(kind, "_is_protocol", False)
    return not (is_file or is_protocol or kind is Any or typing.is_typeddict(kind))


def is_instance(value: Any, classes: tuple[type, ...] | None) -> bool:
    """Whether a value may be of a type with these `checked_classes`."""
    if classes is None:
        return True
    try:
        return isinstance(value, classes)
    except Exception:  # a class, or a value, that can't be asked
        return True


def type_name(annotation: Any) -> str:
    """How messages name a type."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if annotation in (None, types.NoneType):
        return "None"
    if get_origin(annotation) in (typing.Union, types.UnionType):
        return " | ".join([type_name(entry) for entry in get_args(annotation)])
    plain = isinstance(annotation, (type, typing.NewType)) and not get_args(annotation)
    return str(annotation.__name__ if plain else annotation)


def union_members(annotation: Any) -> Iterator[Any]:
    """The types of a union without their `Annotated`; or the one type."""
    annotation = _strip_annotated(annotation)
    if get_origin(annotation) in (typing.Union, types.UnionType):
        for entry in get_args(annotation):
            yield from union_members(entry)
    else:
        yield annotation


def _strip_annotated(annotation: Any) -> Any:
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif annotation is None:
            return types.NoneType
        else:
            return annotation
