"""Values are what the standard library's frozen dataclasses with slots are, in all that a program
can ask of them.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterator
from dataclasses import field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import pytest

import lutumpy
from lutumpy import AssistantTurn, RunNormally, TextPart, ToolDef, ToolResult, TurnResult, Usage
from lutumpy.models import CallBlock
from lutumpy.plain import values

T = TypeVar("T")


def fields_of(ours: type[Any]) -> dict[str, Any]:
    """The body of a class, for both ways of making a dataclass."""
    return {
        "__module__": ours.__module__,
        "__qualname__": ours.__qualname__,
        "__doc__": ours.__doc__,
        "__annotations__": {"a": "int", "b": "list[Any]", "c": "str", "d": "Any", "e": "int"},
        "b": field(default_factory=lambda: [1], compare=False),
        "c": field(default="c", hash=False),
        "d": field(default=None, repr=False),
        "e": 5,
    }


class Body:
    """A value."""


ours: Any = values.dataclass(frozen=True, slots=True)(type("Body", (), fields_of(Body)))
theirs: Any = dataclasses.dataclass(frozen=True, slots=True)(type("Body", (), fields_of(Body)))

MADE = [
    ((1,), {}),
    ((1, [2]), {"e": 6}),
    ((1,), {"c": "x", "d": float("nan")}),
    ((2,), {"d": [0], "b": []}),
    ((), {"a": 3}),
]


@pytest.mark.parametrize(("given", "named"), MADE)
def test_a_value_reads_like_the_standard_one(given: tuple[Any, ...], named: dict[str, Any]) -> None:
    made, standard = ours(*given, **named), theirs(*given, **named)
    assert repr(made) == repr(standard)
    assert repr(dataclasses.asdict(made)) == repr(dataclasses.asdict(standard))
    assert [getattr(made, name) for name in "abce"] == [getattr(standard, name) for name in "abce"]
    assert dataclasses.replace(made, a=9).a == 9
    assert not hasattr(made, "__dict__")


def test_values_compare_and_hash_by_the_same_fields_as_the_standard_ones() -> None:
    for kind in (ours, theirs):
        assert kind(1) == kind(1, [9])
        assert kind(1) != kind(2)
        assert kind(1) != kind(1, c="x")
        assert hash(kind(1)) == hash(kind(1, [9], "x"))
        assert hash(kind(1, d=2)) != hash(kind(1))
        with pytest.raises(TypeError, match="unhashable"):
            hash(kind(1, d=[]))
    nan = float("nan")
    assert ours(1, d=nan) == ours(
        1, d=nan
    )  # as tuples compare, and the standard ones up to Python 3.12
    assert ours(1) != theirs(1)
    assert (ours(1) == 1) is False


def test_the_class_says_of_itself_what_the_standard_one_says() -> None:
    described = [
        [(f.name, f.type, f.compare, f.repr, f.hash) for f in dataclasses.fields(kind)]
        for kind in (ours, theirs)
    ]
    assert described[0] == described[1]
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__slots__ == theirs.__slots__
    assert ours.__doc__ == theirs.__doc__
    parameters = [list(inspect.signature(kind).parameters.values()) for kind in (ours, theirs)]
    assert [(p.name, p.kind, p.annotation) for p in parameters[0]] == [
        (p.name, p.kind, p.annotation) for p in parameters[1]
    ]
    assert [p.default for p in parameters[0] if p.name in "ce"] == ["c", 5]
    assert ours.__init__.__qualname__ == "Body.__init__"
    assert dataclasses.is_dataclass(ours)


@pytest.mark.parametrize("kind", [ours, theirs], ids=["ours", "standard"])
def test_nothing_of_a_value_can_be_changed(kind: Any) -> None:
    value = kind(1)
    for change, given in ((setattr, (value, "a", 2)), (delattr, (value, "a"))):
        with pytest.raises(dataclasses.FrozenInstanceError, match="field 'a'"):
            change(*given)
    with pytest.raises((AttributeError, TypeError)):
        value.z = 2
    assert value == kind(1)


@pytest.mark.parametrize("given", [{"b": 1}, {"a": 1, "z": 2}])
def test_wrong_arguments_are_a_type_error(given: dict[str, Any]) -> None:
    for kind in (ours, theirs):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            kind(**given)


def test_a_value_that_holds_itself_has_a_repr() -> None:
    held: list[Any] = []
    value = ours(1, held)
    held.append(value)
    assert repr(value) == "Body(a=1, b=[...], c='c', e=5)"


VALUES = [
    TextPart("a"),
    Usage(1, 2),
    CallBlock("c1", "find", "{}", position=0),
    AssistantTurn("openai_chat", (), b"{}", calls=(CallBlock("c1", "find", "{}"),)),
    lutumpy.Reject("no"),
    lutumpy.ToolAvailability.default(),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_copied_and_pickled(value: Any) -> None:
    for made in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert made == value
        assert type(made) is type(value)


def test_a_value_matches_by_its_fields() -> None:
    match Usage(3, 4):
        case Usage(3, output):
            assert output == 4
    match RunNormally("x"):
        case RunNormally(input=found):
            assert found == "x"


def test_what_a_class_writes_itself_is_kept() -> None:
    @values.dataclass(frozen=True, slots=True)
    class Own:
        """Its own words."""

        a: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    assert repr(Own(1)) == "own"
    assert Own(1) == 3
    assert hash(Own(1)) == hash(Own(1))


def test_a_value_checks_itself_when_it_says_so() -> None:
    with pytest.raises(ValueError, match="either data or url"):
        lutumpy.ImagePart()
    with pytest.raises(ValueError, match="either data or url"):
        dataclasses.replace(lutumpy.ImagePart(url="http://a"), url=None)


def test_a_value_without_fields_and_a_generic_one_are_values_too() -> None:
    @values.dataclass(frozen=True, slots=True)
    class Nothing:
        """Nothing."""

    @values.dataclass(frozen=True, slots=True)
    class Box(Generic[T]):
        """A box."""

        held: T

    assert Nothing() == Nothing()
    assert repr(Nothing()).endswith("Nothing()")
    assert len({Nothing(), Nothing()}) == 1
    assert Box[int](1) == Box(1)
    assert Box(1) != Box(2)
    assert {Box(1): "a"}[Box(1)] == "a"


def test_a_frozen_dataclass_of_a_program_may_inherit_from_a_value() -> None:
    @dataclasses.dataclass(frozen=True)
    class Named(TextPart):
        name: str = ""

    assert Named("a", "b") == Named("a", "b")
    assert repr(Named("a", "b")).endswith("Named(text='a', name='b')")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Named("a").text = "b"  # type: ignore[misc]


def test_a_plain_subclass_may_have_attributes_of_its_own() -> None:
    class Marked(TextPart):
        pass

    marked = Marked("a")
    marked.note = 1  # type: ignore[attr-defined]
    for change, given in ((setattr, (marked, "text", "b")), (delattr, (marked, "text"))):
        with pytest.raises(dataclasses.FrozenInstanceError, match="field 'text'"):
            change(*given)
    with pytest.raises(AttributeError):
        del marked.other  # type: ignore[attr-defined]
    del marked.note  # type: ignore[attr-defined]
    assert not hasattr(marked, "note")
    assert repr(marked).endswith("Marked(text='a')")


def test_what_is_no_frozen_value_with_slots_is_refused() -> None:
    with pytest.raises(TypeError, match="standard library's"):
        values.dataclass(frozen=True, slots=False)


@pytest.mark.parametrize("kind", [ToolResult, ToolDef, TurnResult, Usage, TextPart])
def test_the_public_values_are_made_this_way(kind: Any) -> None:
    assert kind.__setattr__.__module__ == kind.__module__
    assert kind.__init__.__annotations__["return"] is None
    assert dataclasses.is_dataclass(kind)


def modules() -> Iterator[Any]:
    """Every module of the package whose extra is installed."""
    for found in pkgutil.walk_packages(lutumpy.__path__, "lutumpy."):
        if not found.name.endswith("__main__"):
            with contextlib.suppress(ModuleNotFoundError):
                yield importlib.import_module(found.name)


def test_no_field_has_a_default_that_some_release_of_python_refuses() -> None:
    """Early releases of 3.11, as that of Debian 12, can't hash a mapping proxy, and refuse it as a
    default: its module can't even be imported there.
    """
    refused = {
        f"{value.__module__}.{value.__qualname__}.{one.name}"
        for module in modules()
        for value in vars(module).values()
        if inspect.isclass(value) and dataclasses.is_dataclass(value)
        for one in dataclasses.fields(value)
        if isinstance(one.default, MappingProxyType) or type(one.default).__hash__ is None
    }
    assert refused == set()
