"""From signatures to models (rules D2 and D7).

Annotations here are text: `from __future__ import annotations`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NewType, TypeVar

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType, TypedDict

from lutumpy import DeclarationError, Skip, tool_fn
from lutumpy.tools.tool import compiled_tool

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForCheckers

T = TypeVar("T")
UserId = NewType("UserId", int)
Names = TypeAliasType("Names", "list[str]")


class Unit(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Page(BaseModel, Generic[T]):
    items: list[T]


class Options(TypedDict, total=False):
    depth: int


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


class Opaque: ...


def test_every_kind_of_annotation_makes_a_schema_D7() -> None:
    @tool_fn
    def everything(
        number: Annotated[int, Field(ge=1)],
        unit: Unit,
        mode: Literal["a", "b"],
        point: Point,
        options: Options,
        node: Node,
        page: Page[Point],
        user: UserId,
        names: Names,
        maybe: str | None = None,
        limit: int = Field(3, le=9, description="At most."),
    ) -> Page[Node]:
        """Everything."""
        raise NotImplementedError

    schema = everything.definition.input_schema
    assert schema["required"] == [
        "number",
        "unit",
        "mode",
        "point",
        "options",
        "node",
        "page",
        "user",
        "names",
    ]
    assert schema["properties"]["number"] == {"minimum": 1, "type": "integer"}
    assert schema["properties"]["limit"] == {
        "default": 3,
        "description": "At most.",
        "maximum": 9,
        "type": "integer",
    }
    assert schema["properties"]["mode"]["enum"] == ["a", "b"]
    assert schema["properties"]["maybe"]["default"] is None
    decoded = compiled_tool(everything).decode(
        '{"number": 1, "unit": "celsius", "mode": "a", "point": {"x": 1}, "options": {}, '
        '"node": {"value": 1, "children": [{"value": 2}]}, "page": {"items": [{"x": 2}]}, '
        '"user": 7, "names": ["n"]}'
    )
    arguments = compiled_tool(everything).arguments(decoded)
    assert arguments["unit"] is Unit.C
    assert arguments["point"] == Point(1.0)
    assert arguments["page"].items == [Point(2.0)]
    assert arguments["node"].children[0].value == 2


def test_names_of_enclosing_functions_resolve_D7() -> None:
    class Outer(BaseModel):
        a: int

    def between() -> Any:
        class Inner(BaseModel):
            outer: Outer

        @dataclasses.dataclass
        class Plain:
            inner: Inner

        @tool_fn(name="local")
        async def declared(inner: Inner, outer: Outer, plain: Plain) -> list[Plain]:
            """Local."""
            return [plain]

        return declared

    local = between()
    assert set(local.definition.input_schema["properties"]) == {"inner", "outer", "plain"}
    assert "Inner" in local.definition.output_schema["$defs"]


def test_names_in_the_closure_resolve_when_the_outer_function_is_gone_D7() -> None:
    def outer() -> Callable[..., Any]:
        class Made(BaseModel):
            a: int

        def function(made: Made) -> Made:
            """Copy it."""
            return Made(a=made.a)

        return function

    assert "made" in tool_fn(outer()).definition.input_schema["properties"]


def test_a_name_means_what_python_means_by_it_D7() -> None:
    """A name alone is looked up as `eval` would: around the function, in its module, built in."""

    class float:
        """Shadows the built-in one."""

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            return handler(bool)

    @tool_fn
    def find(near: float, unit: Unit, count: int, nothing: None, any_of: str | None) -> str:
        """Find."""
        return ""

    properties = find.definition.input_schema["properties"]
    assert properties["near"]["type"] == "boolean"
    assert properties["unit"] == {"$ref": "#/$defs/Unit"}
    assert (properties["count"]["type"], properties["nothing"]["type"]) == ("integer", "null")
    assert [entry["type"] for entry in properties["any_of"]["anyOf"]] == ["string", "null"]


def test_a_caller_s_names_do_not_shadow_D7() -> None:
    def register(function: Callable[[Unit], str]) -> Any:
        Unit = int  # noqa: F841  # must not be what the annotation means
        return tool_fn(function)

    def f(unit: Unit) -> str:
        """Convert."""
        return ""

    assert "celsius" in str(register(f).definition.input_schema)


def test_skipped_parameters_are_not_shown_D2() -> None:
    @tool_fn
    def search(
        query: str,
        index: Skip[Opaque],
        cache: Skip[Opaque] | None = None,
        *,
        other: Skip[OnlyForCheckers],
    ) -> str:
        """Search.

        Args:
            query: What.
            index: Where.
        """
        return query

    assert set(search.definition.input_schema["properties"]) == {"query"}
    assert compiled_tool(search).skipped == {"index", "cache", "other"}


def test_names_that_pydantic_takes_for_itself_are_allowed_D2() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @tool_fn
        def f(
            copy: int,
            model_config: str,
            schema: Annotated[int, Field(alias="Schema")],
            _x: int = 1,
            register: int = 2,
            __: int = 3,
        ) -> str:
            """F.

            Args:
                copy: How many.
            """
            return f"{copy}{model_config}{schema}{_x}{register}{__}"

    tool = compiled_tool(f)
    assert list(f.definition.input_schema["properties"]) == [
        "copy",
        "model_config",
        "Schema",
        "_x",
        "register",
        "__",
    ]
    assert f.definition.input_schema["properties"]["copy"]["description"] == "How many."
    decoded = tool.decode('{"copy": 1, "model_config": "c", "Schema": 2}')
    assert tool.arguments(decoded) == {
        "copy": 1,
        "model_config": "c",
        "schema": 2,
        "_x": 1,
        "register": 2,
        "__": 3,
    }
    assert tool.invoke(decoded, {}) == "1c2123"


def test_positional_only_parameters_are_passed_by_position_D2() -> None:
    @tool_fn
    def f(a: int, hidden: Skip[Opaque], /, b: int = 2, *, c: int) -> Any:
        """Give all back."""
        return (a, hidden, b, c)

    tool, opaque = compiled_tool(f), Opaque()
    assert tool.invoke(tool.decode('{"a": 1, "c": 3}'), {"hidden": opaque}) == (1, opaque, 2, 3)
    with pytest.raises(TypeError):
        tool.invoke(tool.decode('{"a": 1, "c": 3}'), {})
    with pytest.raises(TypeError, match="a"):
        tool.invoke(tool.decode('{"a": 1, "c": 3}'), {"hidden": opaque, "a": 2})


def test_defaults_stay_optional_and_are_not_shared_D4() -> None:
    marker: Any = object()

    @tool_fn
    def f(tags: list[str] = [], unit: Unit = Unit.C, odd: int = marker) -> str:  # noqa: B006
        """Take defaults."""
        return ""

    tool = compiled_tool(f)
    first = tool.arguments(tool.decode("{}"))
    first["tags"].append("x")
    assert tool.arguments(tool.decode("{}")) == {"tags": [], "unit": Unit.C, "odd": marker}
    schema = f.definition.input_schema
    assert "required" not in schema
    assert schema["properties"]["unit"]["default"] == "celsius"
    assert "default" not in schema["properties"]["odd"]


async def answer() -> int:
    return 1


def plain_awaitable() -> Awaitable[int]:
    return answer()


def plain_coroutine() -> Coroutine[Any, Any, int]:
    return answer()


def nothing() -> None: ...


def test_the_return_annotation_is_the_output_D2() -> None:
    for function, output, is_async in (
        (answer, int, True),
        (plain_awaitable, int, True),
        (plain_coroutine, int, True),
        (nothing, NoneType, False),
    ):
        tool = compiled_tool(tool_fn(function, description="A tool."))
        assert (tool.output_type, tool.is_async) == (output, is_async)
    assert tool_fn(nothing, description="A tool.").definition.output_schema is None


def count_up(to: int) -> Iterable[int]:
    return iter(range(to))


def test_a_tool_may_return_what_is_read_once() -> None:
    tool = compiled_tool(tool_fn(count_up, description="A tool."))
    assert tool.definition.output_schema == {"type": "array", "items": {"type": "integer"}}
    assert tool.encode_output(count_up(3)) == "[0,1,2]"


def test_a_wrapped_function_keeps_its_names_D7() -> None:
    class Local(BaseModel):
        a: int

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return inner

    @tool_fn
    @decorated
    def f(local: Local) -> str:
        """F."""
        return str(local.a)

    assert f.definition.input_schema["required"] == ["local"]
    assert f(Local(a=1)) == "1"


def no_annotation(query) -> str: ...  # type: ignore[no-untyped-def,empty-body]
def no_return(query: str): ...  # type: ignore[no-untyped-def]
def variadic(*rest: str) -> str: ...  # type: ignore[empty-body]
def keywords(**rest: str) -> str: ...  # type: ignore[empty-body]
def no_schema(thing: Opaque) -> str: ...  # type: ignore[empty-body]
def nested_no_schema(thing: list[Opaque]) -> str: ...  # type: ignore[empty-body]
def a_callable(thing: Callable[[int], int]) -> str: ...  # type: ignore[empty-body]
def unknown_name(thing: Unheard) -> str: ...  # type: ignore[name-defined,empty-body]  # noqa: F821
def method(self, thing: int) -> str: ...  # type: ignore[no-untyped-def,empty-body]
def no_output_schema(thing: int) -> Opaque: ...  # type: ignore[empty-body]
def read_once(thing: Iterable[int]) -> str: ...  # type: ignore[empty-body]
def nested_read_once(thing: list[Iterable[int] | None]) -> str: ...  # type: ignore[empty-body]
def generator(thing: int) -> Iterator[int]:
    yield thing


REFUSED = [
    (no_annotation, "'query' has no annotation"),
    (no_return, "no return annotation"),
    (variadic, r"\*rest"),
    (keywords, r"\*\*rest"),
    (no_schema, "'thing' has no JSON Schema"),
    (nested_no_schema, "'thing' has no JSON Schema"),
    (a_callable, "'thing'.*no JSON Schema"),
    (unknown_name, "'thing'.*Unheard"),
    (method, "'self' makes it a method"),
    (no_output_schema, "Opaque"),
    (read_once, r"'thing' .*can be read once; write list\[...\] or Sequence\[...\]"),
    (nested_read_once, "'thing' .*can be read once"),
    (generator, "generator"),
]


@pytest.mark.parametrize(
    ("function", "message"), REFUSED, ids=[function.__name__ for function, _ in REFUSED]
)
def test_bad_signatures_are_refused_and_quoted_D2(
    function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(DeclarationError, match=message) as refused:
        tool_fn(function)
    assert f"`{function.__name__}(" in str(refused.value)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")
def test_type_parameters_and_aliases_resolve_D7() -> None:
    space: dict[str, Any] = {"tool_fn": tool_fn, "BaseModel": BaseModel}
    source = """
from __future__ import annotations
type Pair = tuple[int, int]
def outer():
    class Local(BaseModel):
        a: int
    @tool_fn
    def f[X: int](pair: Pair, x: X, local: Local) -> Pair:
        "Give it back."
        return pair
    return f
"""
    exec(source, space)
    assert set(space["outer"]().definition.input_schema["properties"]) == {"pair", "x", "local"}
