"""The decorators (rules D1 to D3)."""

import copy
import inspect
import pickle
import warnings
from types import NoneType
from typing import Any, Generic, TypeVar

import pytest
from pydantic import BaseModel

from lutumpy import (
    DeclarationError,
    ToolFn,
    ToolInput,
    ToolOptions,
    tool_fn,
    tool_input,
)
from lutumpy.tools.declare import AsyncToolFn
from lutumpy.tools.tool import compiled_tool

T = TypeVar("T")


class Result(BaseModel):
    text: str


@tool_fn
def add(a: int, b: int = 1) -> int:
    """Add.

    Two numbers.

    Args:
        a: The first.
    """
    return a + b


@tool_fn(name="fetch-it", description="  Fetch.\n  Now.", timeout=3, effect="read")
async def fetch(url: str) -> Result:
    """Not this."""
    return Result(text=url)


async def test_a_declared_function_is_still_the_function() -> None:
    assert add(1, b=2) == 3
    assert await fetch("x") == Result(text="x")
    assert (add.__name__, add.__module__, add.__qualname__) == ("add", __name__, "add")
    assert add.__doc__ is not None
    assert add.__doc__.startswith("Add.")
    assert list(inspect.signature(add).parameters) == ["a", "b"]
    assert isinstance(add, ToolFn)
    assert isinstance(fetch, AsyncToolFn)
    with pytest.raises(TypeError):
        add()  # type: ignore[call-arg]


def test_what_a_declared_function_tells() -> None:
    assert (add.name, add.definition.description) == ("add", "Add.\n\nTwo numbers.")
    assert (fetch.name, fetch.definition.description) == ("fetch-it", "Fetch.\nNow.")
    assert fetch.options == ToolOptions(timeout=3, effect="read")
    assert fetch.options.idempotent is False
    assert fetch.output_type is Result
    assert fetch.Input.__name__ == "FetchInput"
    assert fetch.Input.__module__ == __name__
    with pytest.raises(ValueError, match="extra"):
        fetch.Input(url="x", other=1)


def test_a_declared_function_is_copied_and_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(add)) is add
    assert copy.deepcopy(add) is add


def test_a_static_method_is_unwrapped() -> None:
    class Group:
        @tool_fn
        @staticmethod
        def double(a: int) -> int:
            """Double."""
            return 2 * a

    assert Group.double(2) == 4
    assert Group().double(2) == 4
    assert Group.double.name == "double"


@pytest.mark.parametrize(
    "thing",
    [3, "text", Result, classmethod(lambda cls: None), add, None.__class__],
    ids=lambda thing: type(thing).__name__,
)
def test_only_functions_are_declared_by_tool_fn_D2(thing: Any) -> None:
    with pytest.raises(DeclarationError):
        tool_fn(thing)


@pytest.mark.parametrize("name", ["", "a b", "ä", "a\n", "x" * 65, "a.b", 3])
def test_bad_names_are_refused_D1(name: Any) -> None:
    with pytest.raises(DeclarationError, match="not a tool name"):

        @tool_fn(name=name)
        def f() -> str:
            """F."""
            return ""

    with pytest.raises(DeclarationError, match="not a tool name"):

        @tool_input(name=name, output=str)
        class C(BaseModel):
            """C."""


@pytest.mark.parametrize(
    ("class_name", "name"),
    [
        ("ReadFile", "read_file"),
        ("GetUserArgs", "get_user"),
        ("SearchInput", "search"),
        ("HTTPGetArgs", "http_get"),
        ("ParseJSON", "parse_json"),
        ("Args", "args"),
        ("OAuth2Login", "o_auth2_login"),
        ("snake_args", "snake"),
    ],
)
def test_the_default_name_is_the_class_name_in_snake_case(class_name: str, name: str) -> None:
    cls: type[BaseModel] = tool_input(output=None)(
        type(class_name, (BaseModel,), {"__doc__": "A tool."})
    )
    assert compiled_tool(cls).definition.name == name


def test_the_class_is_given_back_as_it_was() -> None:
    class Plain(BaseModel):
        """Plain."""

        a: int
        """The a."""

    before = (Plain.model_json_schema(), dict(Plain.model_fields), Plain(a=1).model_dump())
    declared = tool_input(output=Result)(Plain)
    assert declared is Plain
    assert (Plain.model_json_schema(), dict(Plain.model_fields), Plain(a=1).model_dump()) == before
    assert compiled_tool(Plain).decode('{"a": 1}') == Plain(a=1)
    assert compiled_tool(Plain).arguments(Plain(a=1)) == {"a": 1}


class Middle(ToolInput[T], Generic[T]):
    """In between."""


class Lists(Middle[list[T]], Generic[T]):
    """In between."""


def test_the_output_comes_from_the_base_D2() -> None:
    @tool_input
    class Direct(ToolInput[Result]):
        """Direct."""

    @tool_input
    class Nothing(ToolInput[None]):
        """Nothing."""

    @tool_input
    class Through(Lists[str]):
        """Through."""

    @tool_input(output=Result)
    class Agreed(ToolInput[Result]):
        """Agreed."""

    assert compiled_tool(Direct).output_type is Result
    assert compiled_tool(Nothing).output_type is NoneType
    assert compiled_tool(Nothing).definition.output_schema is None
    assert compiled_tool(Through).output_type == list[str]
    assert Agreed.__tool__().source is compiled_tool(Agreed)


def test_no_output_and_nothing_are_not_the_same_D2() -> None:
    class A(BaseModel):
        """A."""

    class B(ToolInput):  # type: ignore[type-arg]
        """B."""

    class C(ToolInput[Result]):
        """C."""

    for cls in (A, B):
        with pytest.raises(DeclarationError, match="output="):
            tool_input(cls)
    with pytest.raises(DeclarationError, match="contradicts"):
        tool_input(output=None)(C)
    assert compiled_tool(tool_input(output=None)(A)).output_type is NoneType


def test_a_declaration_is_not_inherited() -> None:
    @tool_input
    class First(ToolInput[None]):
        """First."""

    class Second(First):
        """Second."""

    with pytest.raises(DeclarationError, match=r"Second is not declared.*First"):
        Second.__tool__()
    with pytest.raises(DeclarationError, match="already declared"):
        tool_input(First)
    assert compiled_tool(tool_input(Second)).definition.name == "second"
    assert compiled_tool(First).definition.name == "first"


@pytest.mark.parametrize("thing", [3, len, Result, int], ids=repr)
def test_what_was_not_declared_is_no_tool(thing: Any) -> None:
    with pytest.raises(DeclarationError):
        compiled_tool(thing)
    with pytest.raises(DeclarationError):
        tool_input(output=None)(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": "3"},
        {"timeout": True},
        {"max_retries": -1},
        {"max_retries": 1.5},
        {"effect": "write"},
        {"idempotent": 1},
        {"strict": "yes"},
        {"description": 3},
    ],
    ids=str,
)
def test_bad_options_are_refused_D2(options: Any) -> None:
    with pytest.raises(DeclarationError, match=next(iter(options))):

        @tool_fn(**options)
        def f() -> str:
            """F."""
            return ""


def test_idempotent_is_short_for_an_effect() -> None:
    assert ToolOptions(idempotent=True).effect == "idempotent"
    assert ToolOptions(effect="idempotent").idempotent is True
    assert ToolOptions(idempotent=True, effect="read") == ToolOptions(15.0, 3, True, "read", None)
    assert ToolOptions(effect="read").idempotent is False
    assert ToolOptions().effect == "once"


def test_definitions_are_values() -> None:
    other = copy.deepcopy(add.definition)
    assert other == add.definition
    assert hash(other) == hash(add.definition)
    assert other != fetch.definition


def test_docstring_problems_warn_where_the_tool_stands_D3() -> None:
    # A declaration has several lines.
    with pytest.warns(UserWarning, match="'limt'") as caught:  # noqa: PT031

        @tool_fn
        def f(limit: int) -> str:
            """F.

            Args:
                limt: How many.
            """
            return ""

        @tool_input(output=None)
        class C(BaseModel):
            """C.

            Args:
                limt: How many.
            """

            limit: int

    assert [warning.filename for warning in caught] == [__file__, __file__]


def test_a_good_declaration_warns_of_nothing_D3() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @tool_fn
        def f(a: int, unset: int = object()) -> str:  # type: ignore[assignment]
            """F.

            Args:
                a: First.
            """
            return ""


def test_a_name_that_can_not_be_resolved_is_said_now_D7() -> None:
    class Incomplete(BaseModel):
        later: "Unheard"  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(DeclarationError, match="Unheard"):
        tool_input(output=None)(Incomplete)
