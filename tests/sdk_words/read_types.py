"""What an SDK's own types say: the members of a union, the words of a literal, the fields of an
object, and a small value of a type.
"""

from __future__ import annotations

import collections.abc
import enum
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions
from pydantic import BaseModel

__all__ = ["fields_of", "members_of", "sample_of", "tags_of", "words_of"]

_WRAPPERS = (
    Annotated,
    typing_extensions.Required,
    typing_extensions.NotRequired,
    typing_extensions.ReadOnly,
)
_LISTS = (list, tuple, collections.abc.Iterable, collections.abc.Sequence)
_DEEPEST = 5


def _unwrap(kind: Any) -> Any:
    if isinstance(kind, typing.TypeAliasType if hasattr(typing, "TypeAliasType") else ()):
        return _unwrap(kind.__value__)
    return _unwrap(get_args(kind)[0]) if get_origin(kind) in _WRAPPERS else kind


def members_of(kind: Any) -> Iterator[Any]:
    """The members of a union, of unions in it as well; a type that is no union is its own."""
    kind = _unwrap(kind)
    if get_origin(kind) in (Union, types.UnionType):
        for member in get_args(kind):
            yield from members_of(member)
    elif kind is not type(None):
        yield kind


def words_of(kind: Any) -> list[str]:
    """The texts that a type of literals or an enum allows."""
    found: list[str] = []
    for member in members_of(kind):
        if get_origin(member) is Literal:
            found += [word for word in get_args(member) if isinstance(word, str)]
        elif isinstance(member, type) and issubclass(member, enum.Enum):
            found += [str(each.value) for each in member]
    return found


def fields_of(kind: Any) -> dict[str, Any]:
    """The fields of a model or of a `TypedDict`, with their types, as they are on the wire."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {
            info.alias or name: info.annotation
            for name, info in kind.model_fields.items()
            if not name.startswith("_")
        }
    if typing_extensions.is_typeddict(kind):
        return typing_extensions.get_type_hints(kind, include_extras=True)
    return {}


def _required(kind: Any) -> set[str]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {
            info.alias or name for name, info in kind.model_fields.items() if info.is_required()
        }
    return set(getattr(kind, "__required_keys__", ()))


def tags_of(kind: Any, tag: str = "type") -> dict[str, Any]:
    """The members of a union of objects by the words of their tag.

    A member whose tag may be left out has the first of its words.
    """
    found: dict[str, Any] = {}
    for member in members_of(kind):
        tagged = fields_of(member).get(tag)
        for word in words_of(tagged) if tagged is not None else []:
            found.setdefault(word, member)
    return found


def sample_of(kind: Any, depth: int = 0, *, full: bool = False) -> Any:
    """A small value of a type, as JSON has it.

    Args:
        kind: The type.
        depth: How deep it stands.
        full: With the fields that may be left out, two levels deep.
    """
    kind = next(members_of(kind), None)
    origin = get_origin(kind)
    if origin is Literal:
        return get_args(kind)[0]
    if origin in _LISTS or kind in _LISTS:
        inner = get_args(kind)
        return [sample_of(inner[0], depth + 1, full=full)] if inner and depth < _DEEPEST else []
    fields = fields_of(kind)
    if fields and depth < _DEEPEST:
        required = _required(kind)
        return {
            name: sample_of(inner, depth + 1, full=full)
            for name, inner in fields.items()
            if name in required or name == "type" or (full and depth < 2)
        }
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return next(str(each.value) for each in kind if "UNSPECIFIED" not in str(each.value))
    plain: dict[Any, Any] = {str: "x", int: 1, float: 1.5, bool: True, bytes: "eHg="}
    return plain.get(kind, {})
