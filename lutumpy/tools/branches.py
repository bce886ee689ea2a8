"""The union of a toolset's calls, held against its members as a type checker sees them (rule D9).

`Toolset[A | B]` lets a checker prove with `assert_never` that every tool is handled. The proof is
worth as much as the union: each static member must have a branch, and no two may share one. To a
checker all functions have the input `BaseModel`, so two functions with the same output are one
branch, and the first `matches` would take both. `ToolCall` is invariant, so subclasses of an input
or output are different branches.

Equal at run time and the same to a checker are two things: `List[int]` and `list[int]`, an alias
and its value, `Annotated[int, ...]` and `int` differ at run time only. So both sides are brought
into one form first.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NamedTuple,
    Protocol,
    Union,
    cast,
    get_args,
    get_origin,
)

from pydantic import BaseModel
from typing_extensions import Never, TypeAliasType

from lutumpy.errors import DeclarationError
from lutumpy.tools.calls import BaseToolCall, ToolCall

if TYPE_CHECKING:
    from lutumpy.tools.compiled import CompiledTool
    from lutumpy.tools.selectors import Selector

__all__ = ["check_branches"]

_UNIONS = (Union, types.UnionType)
# What `type X = ...` of Python 3.12 makes is not the class of typing_extensions in every version.
_ALIASES: tuple[Any, ...] = tuple({TypeAliasType, getattr(typing, "TypeAliasType", TypeAliasType)})
_NOTHING = (Never, typing.NoReturn)
_CURE = "or leave the union out: `class {name}(Toolset)`"


class _Members(Protocol):
    selectors: tuple[Selector[Any, Any, Any], ...]
    places: dict[str, str]


class _Branch(NamedTuple):
    """One `ToolCall[input, output]` of a union, or the one that a member has."""

    input: Any
    output: Any

    def __str__(self) -> str:
        return f"ToolCall[{_shown(self.input)}, {_shown(self.output)}]"

    def is_same(self, other: _Branch) -> bool:
        """Whether both are one type."""
        mine: tuple[_Kind, _Kind] = (_seen(self.input), _seen(self.output))
        return mine == (_seen(other.input), _seen(other.output))

    def overlaps(self, other: _Branch) -> bool:
        """Whether a checker may take a call of one for a call of the other."""
        return _overlap(_seen(self.input), _seen(other.input)) and _overlap(
            _seen(self.output), _seen(other.output)
        )


def check_branches(cls: type[Any], base: type[Any], table: _Members) -> None:
    """Raises `DeclarationError` unless the union of a toolset has one branch for each of its members.

    Args:
        cls: The toolset.
        base: `Toolset`, whose parameter the union is.
        table: Its members, nested ones included.
    """
    union = _union_of(cls, base)
    is_open = get_origin(union) is not None and bool(getattr(union, "__parameters__", ()))
    if union is BaseToolCall or isinstance(union, typing.TypeVar) or is_open:
        return  # none is named, or a subclass will choose it
    _refuse_text(cls, union)
    wanted = list(_branches(cls, union))
    members = {table.places[s.name]: _branch_of(s.tool) for s in table.selectors}
    problems = [
        f"no ToolCall for {place}, which is {branch}"
        for place, branch in members.items()
        if not any(branch.is_same(w) for w in wanted)
    ]
    problems += [
        f"no member for {w}"
        for w in wanted
        if not any(w.is_same(branch) for branch in members.values())
    ]
    if problems:
        raise DeclarationError(
            f"the union of {cls.__name__} doesn't match its members: {'; '.join(problems)} (rule D9)"
        )
    _refuse_shared(cls, members)


def _refuse_shared(cls: type[Any], members: Mapping[str, _Branch]) -> None:
    groups: list[tuple[_Branch, list[str]]] = []
    for place, branch in members.items():
        for other, places in groups:
            if branch.overlaps(other):
                places.append(place)
                break
        else:
            groups.append((branch, [place]))
    shared = [
        f"{' and '.join(places)} are both {branch}" for branch, places in groups if len(places) > 1
    ]
    if shared:
        raise DeclarationError(
            f"in the union of {cls.__name__}, {'; '.join(shared)}: a type checker takes a call of one for a call of the "
            "other, so assert_never would prove a forgotten tool handled (rule D9). Give one of them an input class of "
            f"its own (@tool_input), or another output type, {_CURE.format(name=cls.__name__)}"
        )


def _union_of(cls: type[Any], base: type[Any]) -> Any:
    """What `cls` says for the parameter of `base`, itself or through the classes that it inherits from."""
    if "__orig_bases__" not in vars(cls):
        # Inherited where a subclass names no union of its own: its calls have the inherited type.
        bases: Iterable[Any] = cls.__bases__
    else:
        bases = cls.__orig_bases__
    for one in bases:
        origin = get_origin(one) or one
        if origin is base:
            return get_args(one)[0] if get_args(one) else BaseToolCall
        if isinstance(origin, type) and issubclass(origin, base):
            return _chosen(_union_of(origin, base), origin, get_args(one))
    return BaseToolCall


def _chosen(union: Any, base: Any, args: tuple[Any, ...]) -> Any:
    """`union` of a generic base, with the type variables replaced by what a subclass has chosen for them."""
    chosen = dict(zip(getattr(base, "__parameters__", ()), args, strict=False))
    if union in chosen:
        return chosen[union]
    parameters = getattr(union, "__parameters__", ())
    return union[tuple([chosen.get(p, p) for p in parameters])] if parameters and chosen else union


def _refuse_text(cls: type[Any], union: Any) -> None:
    """A text is no union yet, and when the class is built nobody can say what it will mean."""
    for part in (union, *_flat(union)):
        texts = [part, *get_args(part)] if get_origin(part) is ToolCall else [part]
        for text in texts:
            if isinstance(text, (str, ForwardRef)):
                written = text if isinstance(text, str) else text.__forward_arg__
                raise DeclarationError(
                    f"the union of {cls.__name__} is given as a string, {written!r}, which can't be checked against the "
                    "members (rule D9): put the toolset below what the union names, and write the union without quotes, "
                    f"{_CURE.format(name=cls.__name__)}"
                )


def _branches(cls: type[Any], union: Any) -> Iterator[_Branch]:
    for branch in _flat(union):
        args = get_args(branch)
        if get_origin(branch) is not ToolCall or len(args) != 2:
            raise DeclarationError(
                f"Toolset[...] of {cls.__name__} takes ToolCall[Input, Output], not {_shown(branch)}"
            )
        found = _Branch(args[0], args[1])
        for what, kind, instead in (
            ("input", _seen(args[0]), "the input class, BaseModel for a function"),
            ("output", _seen(args[1]), "what the tool returns, `object` if that may be anything"),
        ):
            if kind == _ANY:
                raise DeclarationError(
                    f"{found} in the union of {cls.__name__}: to a type checker `Any` is every {what}, so this branch "
                    f"takes the calls of other tools too (rule D9); write {instead}, {_CURE.format(name=cls.__name__)}"
                )
        yield found


def _flat(union: Any) -> Iterator[Any]:
    """The branches of a union, through aliases; none of `Never`."""
    union = _without_alias(union)
    if union in _NOTHING:
        return
    if get_origin(union) in _UNIONS:
        for branch in get_args(union):
            yield from _flat(branch)
    else:
        yield union


def _without_alias(hint: Any) -> Any:
    """What a `type X = ...` stands for; anything else as it is."""
    while True:
        # The origin first: an alias with its arguments passes for an instance of the alias's class on Python 3.10.
        alias: Any = get_origin(hint)
        if isinstance(alias, _ALIASES):
            hint = alias.__value__[get_args(hint)]
        elif isinstance(hint, _ALIASES):
            hint = cast("Any", hint).__value__
        else:
            return hint


def _branch_of(tool: CompiledTool) -> _Branch:
    # A checker knows a function's input model only as a BaseModel.
    return _Branch(tool.input_type if tool.function is None else BaseModel, tool.output_type)


class _Kind(NamedTuple):
    """A type in the form that is compared: `args` is `None` where they were left out, which means `Any`."""

    origin: Any
    args: tuple[Any, ...] | frozenset[Any] | None = ()


_ANY = _Kind(Any)
_BARE = (list, dict, set, frozenset, tuple, type)


def _seen(hint: Any) -> _Kind:
    """A type as a checker sees it."""
    if hint is None:
        return _Kind(types.NoneType)
    hint = _without_alias(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _seen(args[0])
    if origin in _UNIONS or origin is Literal:
        kinds = frozenset(_members_of(hint))
        return next(iter(kinds)) if len(kinds) == 1 else _Kind(Union, kinds)
    if isinstance(hint, list):  # the parameters of a Callable
        parameters: list[Any] = hint
        return _Kind("parameters", tuple([_seen(p) for p in parameters]))
    if args:
        return _Kind(origin, tuple([_seen(a) for a in args]))
    if origin is not None:  # `typing.List`, and the one type whose parameters are known to be none
        return _Kind(origin, () if hint == tuple[()] else None)
    is_bare = hint in _BARE or bool(getattr(hint, "__parameters__", ()))
    return _Kind(hint, None if is_bare else ())


def _members_of(hint: Any) -> Iterator[_Kind]:
    """The members of a union, literals one by one."""
    if get_origin(hint) is Literal:
        for value in get_args(hint):
            yield _seen(None) if value is None else _Kind(Literal, (type(value), value))
    else:
        for branch in get_args(hint):
            found = _seen(branch)
            if found.origin is Union:
                yield from found.args or ()
            else:
                yield found


def _overlap(one: Any, other: Any) -> bool:
    """Whether a checker may take one type for the other: an `Any` inside is everything to it."""
    if not isinstance(one, _Kind) or not isinstance(other, _Kind):
        return bool(one == other)  # what stands in a literal
    if _ANY in (one, other):
        return True
    if one.origin != other.origin:
        return False
    if one.args is None or other.args is None:
        return True
    if one.origin is Union:
        pairs = [(a, b) for a in one.args for b in other.args if _overlap(a, b)]
        return len({a for a, _ in pairs}) == len(one.args) and len({b for _, b in pairs}) == len(
            other.args
        )
    return len(one.args) == len(other.args) and all(
        _overlap(a, b) for a, b in zip(one.args, other.args, strict=True)
    )


def _shown(kind: Any) -> str:
    if kind is types.NoneType:
        return "None"
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else repr(kind)
