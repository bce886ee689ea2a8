"""The union of a toolset's calls, held against its members as checkers see them (rule D9)."""

# What is hard here
# -----------------
# `Toolset[A | B]` lets a checker prove with `assert_never` that every tool is handled. The proof is
# worth as much as the union: each member must have a branch, and no two members may share one. To a
# checker all functions have the input `BaseModel`, so two functions with the same output are one
# branch, and the first `matches` would take the calls of both. `ToolCall` is invariant, so a
# subclass of an input or output makes a different branch.
#
# Equal at run time and the same to a checker are two things, so both sides are brought into one
# form first, a `_Kind`:
#
#   differs at run time                                the same to a checker, and as a `_Kind`
#   -------------------------------------------------  --------------------------------------------
#   List[int]                list[int]                 (list, (int,))
#   Optional[int]            int | None                (Union, {int, NoneType})
#   Literal["a", "b"]        Literal["b"] | Literal["a"]   a Union of its values, one by one
#   Annotated[int, ...]      int                       (int)
#   type Number = int        int                       (int), through aliases of aliases
#   type Tree = int | list[Tree]                       (int | (list, Tree)): inside of itself, an
#                                                      alias stands for itself
#
# Two questions are asked of kinds. Which branch is a member's: the one with equal kinds. And which
# members may a checker take for one another: those whose kinds are equal when `Any` inside of them,
# which arguments that were left out mean too, equals everything.

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    Union,
    cast,
    get_args,
    get_origin,
)

from pydantic import BaseModel
from typing_extensions import Never, TypeAliasType

from lutumpy.errors import DeclarationError
from lutumpy.plain.values import dataclass
from lutumpy.tools.calls import BaseToolCall, ToolCall
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.selectors import ToolsetTable

__all__ = ["check_branches"]

_UNIONS = (Union, types.UnionType)
# What `type X = ...` of Python 3.12 makes is not the class of typing_extensions in every version.
_ALIASES: tuple[Any, ...] = tuple({TypeAliasType, getattr(typing, "TypeAliasType", TypeAliasType)})
_NOTHING = (Never, typing.NoReturn)
_INSTEAD = (
    "the input class, BaseModel for a function, str for a text tool",
    "what the tool returns, `object` if that may be anything",
)
_OR_NO_UNION = "or leave the union out: `class {name}(Toolset)`"


@dataclass(frozen=True, slots=True)
class _Branch:
    """One `ToolCall[input, output]` of a union, or the one that a member has."""

    input: Any
    output: Any

    def __str__(self) -> str:
        return f"ToolCall[{_show_type(self.input)}, {_show_type(self.output)}]"

    @property
    def is_dynamic(self) -> bool:
        """Whether it is the branch of the tools that are known at run time."""
        return getattr(self.input, "__name__", "") == "DynamicInput" and self == _dynamic_branch()

    @property
    def kinds(self) -> tuple[_Kind, _Kind]:
        return _kind_of(self.input), _kind_of(self.output)

    def is_same(self, other: _Branch) -> bool:
        """Whether both are one type."""
        if self.input is other.input and self.output is other.output:
            return True
        return self.kinds == other.kinds

    def overlaps(self, other: _Branch) -> bool:
        """Whether a checker may take a call of one for a call of the other."""
        pairs = zip(self.kinds, other.kinds, strict=True)
        return all(_may_be_taken_for(mine, theirs) for mine, theirs in pairs)


def check_branches(cls: type[Any], base: type[Any], table: ToolsetTable) -> None:
    """Raises `DeclarationError` unless a toolset's union has one branch for each of its members.

    Args:
        cls: The toolset.
        base: `Toolset`, whose parameter the union is.
        table: Its members, nested ones included.
    """
    union = _find_union(cls, base)
    is_open = get_origin(union) is not None and bool(getattr(union, "__parameters__", ()))
    if union is BaseToolCall or isinstance(union, typing.TypeVar) or is_open:
        return  # none is named, or a subclass will choose it
    _refuse_quoted_union(cls, union)
    branches = list(_read_branches(cls, union))
    # A place for tools that are known at run time has their branch, also while it is empty; so
    # the tools that fill it need none of their own, and there may be hundreds of them.
    members = {
        table.places[s.name]: _branch_of(s.tool)
        for s in table.selectors
        if not s.tool.is_dynamic or not any(s.name in group for group in table.groups.values())
    }
    for group in table.groups.values():
        members[f"{cls.__name__}.{group.name}"] = _dynamic_branch()
    problems: list[str] = []
    for place, branch in members.items():
        if not any(branch.is_same(other) for other in branches):
            problems.append(f"no ToolCall for {place}, which is {branch}")
    member_branches = list(members.values())
    unused = [b for b in branches if not any(b.is_same(other) for other in member_branches)]
    problems += [f"no member for {branch}" for branch in unused]
    if problems:
        raise DeclarationError(
            f"the union of {cls.__name__} doesn't match its members: {'; '.join(problems)} "
            "(rule D9)"
        )
    _refuse_shared_branches(cls, members)


def _refuse_shared_branches(cls: type[Any], members: Mapping[str, _Branch]) -> None:
    # Each group: members that a checker may take for the first one of it.
    groups: list[tuple[_Branch, list[str]]] = []
    for place, branch in members.items():
        if branch.is_dynamic:
            continue  # all of them are one branch by intent
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
            f"in the union of {cls.__name__}, {'; '.join(shared)}: a type checker takes a call of "
            "one for a call of the other, so assert_never would prove a forgotten tool handled "
            "(rule D9). Give one of them an input class of its own (@tool_input), or another "
            f"output type, {_OR_NO_UNION.format(name=cls.__name__)}"
        )


def _find_union(cls: type[Any], base: type[Any]) -> Any:
    """What `cls`, or a class that it inherits from, says for the parameter of `base`."""
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
            return _substitute_chosen(_find_union(origin, base), origin, get_args(one))
    return BaseToolCall


def _substitute_chosen(union: Any, base: Any, args: tuple[Any, ...]) -> Any:
    """The union of a generic base, with its type variables replaced by a subclass's choices."""
    chosen = dict(zip(getattr(base, "__parameters__", ()), args, strict=False))
    if union in chosen:
        return chosen[union]
    parameters = getattr(union, "__parameters__", ())
    if not parameters or not chosen:
        return union
    return union[tuple([chosen.get(p, p) for p in parameters])]


def _refuse_quoted_union(cls: type[Any], union: Any) -> None:
    """A text is not a union yet; when the class is built nobody knows what it will mean."""
    for part in (union, *_flatten_union(union)):
        texts = [part, *get_args(part)] if get_origin(part) is ToolCall else [part]
        for text in texts:
            if isinstance(text, (str, ForwardRef)):
                written = text if isinstance(text, str) else text.__forward_arg__
                raise DeclarationError(
                    f"the union of {cls.__name__} is given as a string, {written!r}, which can't "
                    "be checked against the members (rule D9): put the toolset below what the "
                    "union names, and write the union without quotes, "
                    f"{_OR_NO_UNION.format(name=cls.__name__)}"
                )


def _read_branches(cls: type[Any], union: Any) -> Iterator[_Branch]:
    for branch in _flatten_union(union):
        args = get_args(branch)
        if get_origin(branch) is not ToolCall or len(args) != 2:
            raise DeclarationError(
                f"Toolset[...] of {cls.__name__} takes ToolCall[Input, Output], not "
                f"{_show_type(branch)}"
            )
        found = _Branch(args[0], args[1])
        for kind, what, instead in zip(found.kinds, ("input", "output"), _INSTEAD, strict=True):
            if kind == _ANY:
                raise DeclarationError(
                    f"{found} in the union of {cls.__name__}: to a type checker `Any` is every "
                    f"{what}, so this branch takes the calls of other tools too (rule D9); write "
                    f"{instead}, {_OR_NO_UNION.format(name=cls.__name__)}"
                )
        yield found


def _flatten_union(union: Any) -> Iterator[Any]:
    """The branches of a union, through aliases; none of `Never`."""
    union = _resolve_alias(union)
    if union in _NOTHING:
        return
    if get_origin(union) in _UNIONS:
        for branch in get_args(union):
            yield from _flatten_union(branch)
    else:
        yield union


def _resolve_alias(hint: Any) -> Any:
    """What a `type X = ...` stands for; anything else as it is."""
    while _is_alias(hint):
        hint = _alias_value(hint)
    return hint


def _is_alias(hint: Any) -> bool:
    return isinstance(hint, _ALIASES) or isinstance(get_origin(hint), _ALIASES)


def _alias_value(alias: Any) -> Any:
    # The origin first: on Python 3.10 an alias with arguments passes for an instance of the alias's
    # class.
    origin: Any = get_origin(alias)
    if isinstance(origin, _ALIASES):
        return cast("Any", origin).__value__[get_args(alias)]
    return alias.__value__


def _branch_of(tool: CompiledTool) -> _Branch:
    # A checker knows a function's input model only as a BaseModel.
    return _Branch(BaseModel if tool.has_parameters else tool.input_type, tool.output_type)


def _dynamic_branch() -> _Branch:
    from lutumpy.tools.dynamic_values import DynamicInput, DynamicOutput

    return _Branch(DynamicInput, DynamicOutput)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type in the form that is compared.

    Attributes:
        origin: The type without its arguments.
        args: Their kinds, a set for a union; `None` where they were left out, which means `Any`.
    """

    origin: Any
    args: tuple[Any, ...] | frozenset[Any] | None = ()


_ANY = _Kind(Any)
_BARE = (list, dict, set, frozenset, tuple, type)


# How deep aliases may be in one another. A generic one may grow each time that it is resolved
# (`type Grow[T] = T | list[Grow[list[T]]]`), so that it never is in itself unchanged.
_MOST_ALIASES = 50


def _kind_of(hint: Any, inside: tuple[Any, ...] = ()) -> _Kind:
    """A type as a checker sees it.

    Args:
        hint: The type.
        inside: The aliases that it was found in, outermost first.
    """
    if hint is None:
        return _Kind(types.NoneType)
    if _is_alias(hint):
        if len(inside) == _MOST_ALIASES:
            return _Kind(get_origin(hint) or hint)
        return _Kind(hint) if hint in inside else _kind_of(_alias_value(hint), (*inside, hint))
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _kind_of(args[0], inside)
    if origin in _UNIONS or origin is Literal:
        kinds = frozenset(_union_members(hint, inside))
        return next(iter(kinds)) if len(kinds) == 1 else _Kind(Union, kinds)
    if isinstance(hint, list):  # the parameters of a Callable
        parameters: list[Any] = hint
        return _Kind("parameters", tuple([_kind_of(p, inside) for p in parameters]))
    if args:
        return _Kind(origin, tuple([_kind_of(a, inside) for a in args]))
    if origin is not None:  # `typing.List`, and the one type whose parameters are known to be none
        return _Kind(origin, () if hint == tuple[()] else None)
    is_bare = hint in _BARE or bool(getattr(hint, "__parameters__", ()))
    return _Kind(hint, None if is_bare else ())


def _union_members(hint: Any, inside: tuple[Any, ...]) -> Iterator[_Kind]:
    """The members of a union, literals one by one; `inside` is that of `_kind_of`."""
    if get_origin(hint) is Literal:
        for value in get_args(hint):
            yield _kind_of(None) if value is None else _Kind(Literal, (type(value), value))
    else:
        for branch in get_args(hint):
            found = _kind_of(branch, inside)
            if found.origin is Union:
                yield from found.args or ()
            else:
                yield found


def _may_be_taken_for(one: Any, other: Any) -> bool:
    """Whether a checker may take one type for the other: to it, an `Any` inside is everything."""
    if not isinstance(one, _Kind) or not isinstance(other, _Kind):
        return bool(one == other)  # what is in a literal
    if _ANY in (one, other):
        return True
    if one.origin != other.origin:
        return False
    if one.args is None or other.args is None:
        return True
    if one.origin is Union:
        # Every member of each union has one in the other that it may be taken for.
        pairs = [(a, b) for a in one.args for b in other.args if _may_be_taken_for(a, b)]
        covers_one = len({a for a, _ in pairs}) == len(one.args)
        covers_other = len({b for _, b in pairs}) == len(other.args)
        return covers_one and covers_other
    if len(one.args) != len(other.args):
        return False
    return all(_may_be_taken_for(a, b) for a, b in zip(one.args, other.args, strict=True))


def _show_type(kind: Any) -> str:
    if kind is types.NoneType:
        return "None"
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else repr(kind)
