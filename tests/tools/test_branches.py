"""The union of a toolset is compared with its members as a type checker sees them (rule D9)."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping

# What users may write, the old spellings too.
from typing import Annotated, Any, Dict, Generic, List, Literal, Optional, Union  # noqa: UP035

import pytest
from pydantic import BaseModel, JsonValue, RootModel
from typing_extensions import Never, TypeAliasType, TypeVar

from lutumpy import (
    DeclarationError,
    ToolCall,
    ToolInput,
    Toolset,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.hooks import BaseToolCall

T = TypeVar("T")
C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)


class Page(BaseModel):
    text: str


@tool_input
class Read(ToolInput[Page]):
    """Read."""

    path: str


class Base(BaseModel):
    path: str


@tool_input(name="find", output=Page)
class Find(Base):
    """Find."""


@tool_input(name="search", output=Page)
class Search(Find):
    """Search."""


def returning(name: str, output: Any) -> Any:
    """A tool that is a function with this output."""

    def function() -> Any: ...

    function.__annotations__["return"] = output
    function.__name__ = name
    return tool_fn(description="A tool.")(function)


upper, lower = returning("upper", str), returning("lower", str)


def build(union: Any, **members: Any) -> type[Toolset[Any]]:
    """The toolset of this union; what is no nested toolset goes through `tool()`."""

    def fill(body: dict[str, Any]) -> None:
        for name, member in members.items():
            is_toolset = isinstance(member, type) and issubclass(member, Toolset)
            body[name] = nested(member) if is_toolset else tool(member)

    return types.new_class("Made", (Toolset[union],), exec_body=fill)


def test_two_functions_with_the_same_output_are_one_branch_and_are_refused_D9() -> None:
    with pytest.raises(DeclarationError) as caught:

        class Text(Toolset[ToolCall[BaseModel, str]]):
            upper = tool(upper)
            lower = tool(lower)

    for part in (
        r"Text.upper and Text.lower are both ToolCall[BaseModel, str]",
        "assert_never would prove a forgotten tool handled",
        "@tool_input",
        "another output type",
        "class Text(Toolset)",
        "D9",
    ):
        assert part in str(caught.value)


def test_a_nested_function_on_the_branch_of_an_outer_one_is_refused_D9() -> None:
    class Inner(Toolset):
        lower = tool(lower)

    with pytest.raises(DeclarationError, match=r"Outer\.upper and Outer\.inner\.lower are both"):

        class Outer(Toolset[ToolCall[BaseModel, str]]):
            upper = tool(upper)
            inner = nested(Inner)


def test_a_tool_that_a_subclass_adds_on_an_inherited_branch_is_refused_D9() -> None:
    class One(Toolset[ToolCall[BaseModel, str]]):
        upper = tool(upper)

    with pytest.raises(DeclarationError, match=r"Two\.upper and Two\.lower are both"):

        class Two(One):
            lower = tool(lower)


def test_without_a_union_nothing_is_promised_and_nothing_refused() -> None:
    class Text(Toolset):
        upper = tool(upper)
        lower = tool(lower)

    class Same(Toolset[BaseToolCall]):
        upper = tool(upper)
        lower = tool(lower)

    assert len(Text.selectors()) == len(Same.selectors()) == 2


def test_subclasses_and_other_outputs_are_branches_of_their_own_D9() -> None:
    """`ToolCall` is invariant."""
    toolset = build(
        Union[
            ToolCall[Find, Page],
            ToolCall[Search, Page],
            ToolCall[BaseModel, str],
            ToolCall[BaseModel, int],
            ToolCall[BaseModel, float],
            ToolCall[BaseModel, bool],
            ToolCall[BaseModel, None],
            ToolCall[BaseModel, object],
        ],
        find=Find,
        search=Search,
        upper=upper,
        integer=returning("integer", int),
        number=returning("number", float),
        flag=returning("flag", bool),
        nothing=returning("nothing", None),
        anything=returning("anything", object),
    )
    assert len(toolset.selectors()) == 8


Texts = TypeAliasType("Texts", list[str])
Numbers = TypeAliasType("Numbers", Union[int, str])
Of = TypeAliasType("Of", list[T], type_params=(T,))  # type: ignore[misc]


class Box(BaseModel, Generic[T]):
    value: T


SAME: list[tuple[Any, Any]] = [
    (list[str], List[str]),  # noqa: UP006
    (dict[str, int], Dict[str, int]),  # noqa: UP006
    (int | None, Optional[int]),  # noqa: UP045
    (int | str, Union[str, int]),
    (str, Annotated[str, "note"]),
    (list[str], list[Annotated[str, "note"]]),
    (list[str], Texts),
    (int | str | None, Union[Numbers, None]),
    (list[str], Of[str]),
    (Literal["a", "b"], Literal["b", "a"]),
    (Literal["a", "b"], Union[Literal["a"], Literal["b"]]),
    (Literal["a"] | None, Literal["a", None]),
    (dict[str, int], dict[str, Any]),
    (list[str], list),
    (list, List),  # noqa: UP006
    (str | Any, str | int),
    (dict[str, list[Any]], dict[str, list[int]]),
    (tuple[()], tuple[()]),
    (Box[int], Box[int]),
]


@pytest.mark.parametrize(("one", "other"), SAME, ids=repr)
def test_outputs_that_a_checker_takes_for_one_are_one_branch_however_they_are_spelled_D9(
    one: Any, other: Any
) -> None:
    with pytest.raises(DeclarationError, match=r"Made\.first and Made\.second are both"):
        build(
            Union[ToolCall[BaseModel, one], ToolCall[BaseModel, other]],
            first=returning("first", one),
            second=returning("second", other),
        )


DIFFERENT: list[tuple[Any, Any]] = [
    (list[str], list[int]),
    (list[str], set[str]),
    (Literal["a"], Literal["b"]),
    (Literal[1], Literal[True]),
    (int | None, int),
    (int | str, int | str | None),
    (tuple[()], tuple[int]),
    (tuple[int], tuple[int, int]),
    (tuple[int], tuple[int, ...]),
    (dict[str, int], Mapping[str, int]),
    (Box[int], Box[str]),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=repr)
def test_outputs_that_a_checker_tells_apart_are_two_branches_D9(one: Any, other: Any) -> None:
    toolset = build(
        Union[ToolCall[BaseModel, one], ToolCall[BaseModel, other]],
        first=returning("first", one),
        second=returning("second", other),
    )
    assert len(toolset.selectors()) == 2


@pytest.mark.parametrize(
    ("branch", "what"),
    [
        (ToolCall[Any, Page], "`Any` is every input"),
        (ToolCall[Read, Any], "`Any` is every output"),
        (ToolCall[Any, Any], "`Any` is every input"),
        (ToolCall[Annotated[Any, "note"], Page], "`Any` is every input"),
    ],
    ids=repr,
)
def test_any_in_a_branch_is_refused_since_it_takes_the_calls_of_others_D9(
    branch: Any, what: str
) -> None:
    with pytest.raises(DeclarationError, match=what) as caught:
        build(branch, read=Read)
    assert "class Made(Toolset)" in str(caught.value)


def test_any_in_a_branch_is_refused_for_functions_too_D9() -> None:
    with pytest.raises(DeclarationError, match=r"BaseModel for a function"):
        build(ToolCall[Any, str], upper=upper)
    with pytest.raises(DeclarationError, match=r"`object` if that may be anything"):
        build(ToolCall[BaseModel, Any], anything=returning("anything", Any))
    with pytest.raises(
        DeclarationError,
        match=r"no ToolCall for Made.anything, which is ToolCall\[BaseModel, .*Any\]",
    ):
        build(ToolCall[BaseModel, str], anything=returning("anything", Any))


@pytest.mark.parametrize(
    "union",
    [
        "ReadCall",
        Union["ReadCall", ToolCall[BaseModel, str]],  # type: ignore[name-defined]  # noqa: F821
        ToolCall["Read", Page],
        ToolCall[Read, "Page"],
    ],
    ids=repr,
)
def test_a_union_given_as_a_string_is_refused_since_it_cannot_be_checked_D9(union: Any) -> None:
    with pytest.raises(DeclarationError, match=r"given as a string, '\w+'.*without quotes"):
        build(union, read=Read, upper=upper)


def test_a_union_behind_an_alias_or_a_generic_base_is_checked_too_D9() -> None:
    alias = TypeAliasType("alias", Union[ToolCall[Read, Page], ToolCall[BaseModel, str]])
    assert len(build(alias, read=Read, upper=upper).selectors()) == 2
    with pytest.raises(DeclarationError, match="are both"):
        build(alias, read=Read, upper=upper, lower=lower)

    class Basis(Toolset[C]):
        read = tool(Read)

    class Half(Toolset[Union[C, ToolCall[Read, Page]]]):
        read = tool(Read)

    class Fits(Basis[Union[ToolCall[Read, Page], ToolCall[BaseModel, str]]]):
        upper = tool(upper)

    class Untyped(Basis):  # type: ignore[type-arg]
        upper = tool(upper)
        lower = tool(lower)

    assert len(Fits.selectors()) == 2
    with pytest.raises(DeclarationError, match=r"no ToolCall for Wrong\.upper"):

        class Wrong(Basis[ToolCall[Read, Page]]):
            upper = tool(upper)

    with pytest.raises(DeclarationError, match=r"Shared\.upper and Shared\.lower are both"):

        class Shared(Half[ToolCall[BaseModel, str]]):
            upper = tool(upper)
            lower = tool(lower)


def test_a_union_beside_other_bases_is_found_D9() -> None:
    class Mixin:
        """Of no interest."""

    class Other:
        """Neither."""

    class Mixed(Mixin, Toolset[ToolCall[Read, Page]]):
        read = tool(Read)

    class Again(Mixed, Mixin):
        """Inherits it."""

    with pytest.raises(DeclarationError, match=r"no ToolCall for More\.upper"):

        class More(Other, Mixed):
            upper = tool(upper)

    assert len(Again.selectors()) == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement is new in Python 3.12")
def test_a_union_behind_a_type_statement_is_checked_too_D9() -> None:
    names: dict[str, Any] = {"ToolCall": ToolCall, "Read": Read, "Page": Page}
    exec("type Calls = ToolCall[Read, Page]", names)
    assert len(build(names["Calls"], read=Read).selectors()) == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement is new in Python 3.12")
@pytest.mark.parametrize(
    "statement",
    [
        "type Json = str | list[Json] | dict[str, Json]",
        "type Json = str | list[Other]\ntype Other = int | dict[str, Json]",
        "type Tree[T] = T | list[Tree[T]]\nJson = Tree[int]",
    ],
)
def test_an_alias_that_names_itself_is_a_branch_like_any_other_D9(statement: str) -> None:
    names: dict[str, Any] = {}
    exec(statement, names)
    alias = names["Json"]
    one, other = returning("one", alias), returning("other", list[alias])
    made = build(
        Union[ToolCall[BaseModel, alias], ToolCall[BaseModel, list[alias]]], one=one, other=other
    )
    assert len(made.selectors()) == 2
    with pytest.raises(DeclarationError, match=r"Made\.one and Made\.again are both"):
        build(ToolCall[BaseModel, alias], one=one, again=returning("again", alias))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement is new in Python 3.12")
def test_an_alias_that_grows_each_time_it_is_resolved_comes_to_an_end_D9() -> None:
    names: dict[str, Any] = {}
    exec("type Grow[T] = T | list[Grow[list[T]]]", names)
    with pytest.raises(DeclarationError, match=r"no member for ToolCall\[BaseModel, Grow\[int\]\]"):
        build(ToolCall[BaseModel, names["Grow"][int]], upper=upper)


def test_a_json_value_of_pydantic_is_a_branch_like_any_other_D9() -> None:
    one, other = returning("one", JsonValue), returning("other", list[JsonValue])
    union = Union[ToolCall[BaseModel, JsonValue], ToolCall[BaseModel, list[JsonValue]]]
    assert len(build(union, one=one, other=other).selectors()) == 2


def test_the_union_that_does_not_match_names_the_branch_of_each_member() -> None:
    with pytest.raises(
        DeclarationError, match=r"no ToolCall for Made\.upper, which is ToolCall\[BaseModel, str\]"
    ):
        build(ToolCall[Read, Page], read=Read, upper=upper)
    with pytest.raises(DeclarationError, match=r"no member for ToolCall\[Read, Page\]"):
        build(ToolCall[Read, Page])
    with pytest.raises(
        DeclarationError, match=r"no member for ToolCall\[BaseModel, .*Callable\[\[int\], str\]\]"
    ):
        build(
            Union[ToolCall[BaseModel, str], ToolCall[BaseModel, Callable[[int], str]]], upper=upper
        )
    with pytest.raises(DeclarationError, match="no ToolCall for"):
        build(Never, read=Read)
    with pytest.raises(
        DeclarationError, match=r"no ToolCall for Made\.turn, which is ToolCall\[Turn, None\]"
    ):
        build(ToolCall[BaseModel, None], turn=Turn)
    with pytest.raises(DeclarationError, match=r"takes ToolCall\[Input, Output\], not .*ToolCall"):
        build(ToolCall, read=Read)


@tool_input(output=None, description="Turn.")
class Turn(RootModel[Union[Read, Find]]): ...
