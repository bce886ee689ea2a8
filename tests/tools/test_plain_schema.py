"""The schema of plain parameters is pydantic's, and their model is made when it is first needed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel

from lutumpy import tool_fn
from lutumpy.tools.plain_schema import plain_schema
from lutumpy.tools.schema import input_schema
from lutumpy.tools.signature import read_signature


class Place(BaseModel):
    """Where to look."""

    street: str = Field(description="Street and number.")
    zip_code: int
    """Postal code."""


class Tree(BaseModel):
    children: list[Tree] = []
    place: Place | None = None


class Names(RootModel[list[str]]):
    pass


def _same_name() -> type[BaseModel]:
    class Place(BaseModel):
        floor: int

    return Place


OtherPlace = _same_name()

leaves = st.sampled_from(
    [
        str,
        int,
        float,
        bool,
        None,
        Any,
        Place,
        Tree,
        Names,
        OtherPlace,
        bytes,
        Literal["a", "b"],
        Literal["a"],
        Literal[1, "a"],
        Literal["a", None],
        Annotated[int, Field(ge=1)],
        list,
        dict,
        tuple[int, str],
        set[str],
    ]
)
hints = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(lambda t: list[t]),  # type: ignore[valid-type]
        inner.map(lambda t: dict[str, t]),  # type: ignore[valid-type]
        inner.map(lambda t: Optional[t]),  # noqa: UP045
        st.tuples(inner, inner).map(lambda ts: Union[ts[0], ts[1]]),
    ),
    max_leaves=4,
)
defaults = st.sampled_from(
    [
        ...,
        ...,
        None,
        0,
        1.5,
        True,
        "text",
        [],
        {},
        float("inf"),
        [1],
        Field(default=3),
        Place(street="x", zip_code=1),
    ]
)
names = st.sampled_from(
    ["query", "limit", "schema", "json", "_private", "model_x", "class_", "input"]
)


def function(
    parameters: dict[str, tuple[Any, Any]], documented: dict[str, str]
) -> Callable[..., None]:
    import inspect

    def declared_by_signature(**arguments: Any) -> None: ...

    declared_by_signature.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=hint,
                default=inspect.Parameter.empty if default is ... else default,
            )
            for name, (hint, default) in parameters.items()
        ],
        return_annotation=None,
    )
    lines = "".join(
        f"    {name}: {text}\n" for name, text in documented.items() if name in parameters
    )
    declared_by_signature.__doc__ = f"Do it.\n\nArgs:\n{lines}" if lines else "Do it."
    return declared_by_signature


def as_sorted_text(schema: Any) -> str:
    """The schema as text.

    The order of unions doesn't count: equal ones of another order are one key to the caches of
    `typing` and pydantic.
    """

    def sort(value: Any) -> Any:
        if isinstance(value, list):
            return [sort(v) for v in value]
        if isinstance(value, dict):
            return {
                k: sorted(map(sort, v), key=json.dumps) if k == "anyOf" else sort(v)
                for k, v in value.items()
            }
        return value

    return json.dumps(sort(schema))


@given(
    st.dictionaries(names, st.tuples(hints, defaults), max_size=4),
    st.dictionaries(names, st.sampled_from(["Where to look.", "Text."]), max_size=3),
)
def test_what_is_written_down_is_what_pydantic_generates(
    parameters: dict[str, tuple[Any, Any]], documented: dict[str, str]
) -> None:
    signature = read_signature(function(parameters, documented), {})
    plain = plain_schema(signature.parameters, signature.docs.params)
    if plain is None:
        return
    generated, wrapped = input_schema(signature.make_model())
    assert not wrapped
    assert as_sorted_text(plain) == as_sorted_text(generated)


@pytest.mark.parametrize(
    "hint",
    [
        str,
        int,
        float,
        bool,
        list[str],
        dict[str, int],
        Optional[str],  # noqa: UP045
        Union[int, str, None],
        Literal["a", "b"],
        Place,
        Tree,
        list[Place],
        Optional[Place],  # noqa: UP045
        list[dict[str, float]],
    ],
    ids=str,
)
def test_ordinary_parameters_need_no_model_for_their_schema(hint: Any) -> None:
    assert plain_schema({"x": (hint, ...)}, {"x": "Text."}) is not None


class Shapeless(BaseModel):
    @classmethod
    def __get_pydantic_json_schema__(cls, *_: Any) -> Any:
        raise RuntimeError("no schema")


class Renamed(BaseModel):
    model_config = {"title": "Other"}


@pytest.mark.parametrize(
    "hint",
    [dict[str, Any], list[Any], Annotated[str, ["unhashable"]], Shapeless, BaseModel],
    ids=str,
)
def test_what_pydantic_says_otherwise_is_left_to_it(hint: Any) -> None:
    assert plain_schema({"x": (hint, ...)}, {}) is None
    assert plain_schema({"x": (list[hint], ...)}, {}) is None


@pytest.mark.parametrize(
    "default",
    [object, 1.5, float("inf"), [1], {}, Place(street="x", zip_code=1)],
    ids=lambda default: getattr(default, "__name__", repr(default)),
)
def test_a_default_is_written_down_or_left_to_pydantic(default: Any) -> None:
    schema = plain_schema({"x": (str, default)}, {})
    written = default in (1.5, {})
    assert (schema is not None) is written
    if schema is not None:
        assert schema["properties"]["x"]["default"] == default


@pytest.mark.parametrize(
    "hint",
    [Any, bytes, Names, tuple[int, str], Annotated[int, Field(ge=1)], print, Literal[1, "a"]],
    ids=str,
)
def test_everything_else_is_left_to_pydantic(hint: Any) -> None:
    assert plain_schema({"x": (hint, ...)}, {}) is None


def test_two_models_of_one_name_are_left_to_pydantic() -> None:
    assert plain_schema({"x": (Place, ...), "y": (OtherPlace, ...)}, {}) is None


def test_the_model_is_made_once_by_whoever_comes_first() -> None:
    @tool_fn
    def look(place: Place, tags: list[str]) -> None:
        """Look."""

    start = threading.Barrier(8)
    found: list[type[BaseModel]] = []

    def ask() -> None:
        start.wait()
        found.append(look.Input)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert found[0].__name__ == "LookInput"
    arguments: Any = found[0].model_validate({"place": {"street": "a", "zip_code": 1}, "tags": []})
    assert arguments.place.zip_code == 1


def test_a_parameter_that_says_what_its_type_says_is_described_all_the_same() -> None:
    @tool_fn
    def look(place: Place, where: Annotated[Place, Field(description="Where to look.")]) -> None:
        """Look.

        Args:
            place: Where to look.
        """

    properties = look.definition.input_schema["properties"]
    assert (
        properties["place"]["description"] == properties["where"]["description"] == "Where to look."
    )
