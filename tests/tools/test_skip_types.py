"""Values for `Skip` parameters: one of another type is named before anything runs, and nothing else
is refused.
"""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import enum
import io
import numbers
import os
import random
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NewType, Protocol, TypedDict, TypeVar
from unittest.mock import Mock

import pytest
from profiles import examples

from lutumpy import DeclarationError, Skip, ToolMetadata, Toolset, text_tool, tool, tool_fn
from lutumpy.execution import Dispatcher

T = TypeVar("T")


class Library:
    pass


class Archive(Library):
    pass


class HasName(Protocol):
    name: str


class Row(TypedDict):
    name: str


class Shelf(Generic[T]):
    pass


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Hostile:
    @property
    def __class__(self) -> type[Any]:  # type: ignore[override]
        raise RuntimeError("not to be asked")


Number = NewType("Number", int)
Ranks = NewType("Ranks", list[int])


@tool_fn
def find(word: str, *, library: Skip[Library], at_most: Skip[int | None] = 3) -> str:
    """Find."""
    return f"{word} {type(library).__name__} {at_most}"


@tool_fn
async def find_later(word: str, *, library: Skip[Library] = None) -> str:  # type: ignore[assignment]
    """Find."""
    return f"{word} {library}"


@text_tool
def write(text: str, *, library: Skip[Library]) -> str:
    """Write."""
    return text


class Tools(Toolset):
    find = tool(find)
    find_later = tool(find_later)
    write = tool(write)


class Later(Toolset):
    find_later = tool(find_later)


def call(name: str) -> Any:
    return Tools.parse(ToolMetadata("c1", name, '{"word": "w"}'))


def text_call() -> Any:
    return Tools.parse(ToolMetadata("c1", "write", '{"input": "w"}'))


def test_a_value_of_another_type_is_named_with_tool_parameter_and_both_types() -> None:
    with pytest.raises(TypeError, match=r"'find' takes Library as .* 'library', not str; it was"):
        call("find").call_sync(library="x")
    with pytest.raises(TypeError) as caught:
        call("find").call_sync(library=None, at_most="many")
    assert str(caught.value) == (
        "tool 'find' takes Library as its Skip parameter 'library', not None, and "
        "int | None as its Skip parameter 'at_most', not str; it was not run"
    )
    assert call("find").call_sync(library=Archive(), at_most=None) == "w Archive None"


async def test_it_is_the_same_when_awaited_and_for_texts() -> None:
    for wrong in (Library, 3, object()):
        with pytest.raises(TypeError, match=r"'find_later' takes Library .* it was not run"):
            await call("find_later").call(library=wrong)
        with pytest.raises(TypeError, match=r"'find' takes Library as its Skip parameter"):
            await call("find").call(library=wrong)
        with pytest.raises(TypeError, match=r"'write' takes Library as its Skip parameter"):
            await text_call().call(library=wrong)
    assert await call("find_later").call(library=None) == "w None"  # its default
    assert await text_call().call(library=Library()) == "w"


def test_an_unknown_name_is_told_which_there_are() -> None:
    with pytest.raises(TypeError, match="no Skip parameter libary; it has library, at_most"):
        call("find").call_sync(libary=Library())


def test_a_function_in_the_tool_s_place_may_take_other_types() -> None:
    def pretended(word: str, *, library: object, at_most: object = 3) -> str:
        return f"{word} {library}"

    given = call("find")
    assert Tools.find.apply(given, pretended, library="none") == "w none"
    with pytest.raises(TypeError, match="takes Library as its Skip parameter 'library', not str"):
        Tools.find.apply(given, find, library="none")


def test_two_classes_of_one_name_are_told_apart() -> None:
    other = type("Library", (), {"__module__": "elsewhere"})
    with pytest.raises(TypeError, match=r"takes Library .* not elsewhere\.Library"):
        call("find").call_sync(library=other())


# --- what is refused and what isn't ---------------------------------------------------------------

RIGHT: list[tuple[Any, list[Any]]] = [
    (Any, [1, None, Library]),
    (object, [1, None]),
    (Library, [Library(), Archive(), Mock(spec=Library), Hostile()]),
    (Library | None, [Library(), None]),
    (typing.Optional[int], [1, None, True]),  # noqa: UP045
    (Number, [1]),
    (Ranks, [[1]]),
    (float, [1, 1.5]),
    (complex, [1, 1.5, 1j]),
    (bytes, [b"", bytearray(), memoryview(b"")]),
    (HasName, [Library(), 1]),
    (Row, [{"name": "a"}, 3]),
    (T, [1, ""]),
    (list[int], [[], ["x"]]),
    (collections.abc.Sequence[int], [[], (), "x"]),
    (collections.abc.Callable[[int], str], [str, lambda n: "x", Library]),
    (typing.Callable[..., Any], [print]),
    (type[Library], [Archive, int]),
    (typing.TextIO, [io.StringIO(), 3]),
    (typing.IO[str], [io.StringIO()]),
    (Literal["a", "b"], ["a"]),
    (Literal["a", 3, None], ["a", 3, None]),
    (Literal[Colour.RED], [Colour.RED]),
    (Shelf[int], [Shelf()]),
    (os.PathLike[str], [Path("x")]),
    (numbers.Number, [1, decimal.Decimal(1)]),
    (datetime.date, [datetime.datetime.now()]),
    (Annotated[Annotated[int, "a"] | None, "b"], [1, None]),
    (None, [None]),
    (collections.abc.Iterable[int], [[], iter(())]),
    (collections.abc.Hashable, [1]),
]
WRONG: list[tuple[Any, list[Any]]] = [
    (Library, [None, 1, Library, Mock()]),
    (Library | None, [1, "x"]),
    (int | str, [None, 1.5]),
    (Number, ["x"]),
    (Ranks, [3]),
    (float, ["x", 1j]),
    (list[int], [(), {}]),
    (collections.abc.Sequence[int], [3, {}]),
    (collections.abc.Callable[[int], str], [3]),
    (type[Library], [Library()]),
    (Literal["a", "b"], [3]),
    (Shelf[int], [3]),
    (Annotated[int | None, "b"], ["x"]),
    (None, [3]),
]


def tool_with(annotation: Any) -> Any:
    """A call of a tool with a `Skip` parameter of this type, and what runs it."""

    def look(word: str, *, value: Any) -> str:
        """Look."""
        return "ran"

    look.__annotations__["value"] = Skip[annotation]
    made: Any = type("Made", (Toolset,), {"look": tool(tool_fn(look))})
    return made, made.parse(ToolMetadata("c1", "look", '{"word": "w"}'))


def test_only_what_is_certainly_of_another_type_is_refused() -> None:
    cases = [(a, v, True) for a, values in RIGHT for v in values]
    cases += [(a, v, False) for a, values in WRONG for v in values]
    for annotation, value, is_right in cases:
        toolset, given = tool_with(annotation)
        about = (annotation, value)
        dispatch = Dispatcher(toolset, context={"value": value})
        if is_right:
            assert given.call_sync(value=value) == "ran", about
            dispatch.close()
            continue
        with pytest.raises(TypeError, match="as its Skip parameter 'value', not"):
            given.call_sync(value=value)
        with pytest.raises(DeclarationError, match="'look' needs the context value 'value' as"):
            dispatch.close()


def test_no_union_refuses_a_value_of_one_of_its_members() -> None:
    draw = random.Random(3)
    right = [case for case in RIGHT if case[0] is not None]
    for _ in range(examples(300)):
        chosen = draw.sample(right, draw.randint(1, 4))
        union: Any = typing.Union[tuple(annotation for annotation, _ in chosen)]
        if draw.random() < 0.3:
            union = Annotated[union, "more"]
        _, given = tool_with(union)
        for _, values in chosen:
            for value in values:
                assert given.call_sync(value=value) == "ran", (union, value)


def test_the_context_may_have_a_parameter_s_default() -> None:
    for context in ({"library": None}, {}):
        Dispatcher(Later, context=context).close()
