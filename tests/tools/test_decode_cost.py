"""What decoding a good call runs, and that the short way lets nothing through (rules C2, C4)."""

import json
from functools import partial
from types import FrameType
from typing import Any

import pytest
from counting import profiled
from pydantic import BaseModel, RootModel, model_validator

from lutumpy import (
    MalformedArgumentsError,
    ToolCall,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)


class Place(BaseModel):
    street: str


def function(number: int) -> Any:
    @tool_fn(name=f"find_{number}")
    def find(query: str, place: Place, tags: list[str], limit: int = 3) -> str:
        """Find."""
        return query

    return find


def toolset(size: int) -> type[Toolset]:
    return type("Many", (Toolset,), {f"find_{n}": tool(function(n)) for n in range(size)})


GOOD = json.dumps({"query": "a", "place": {"street": "b"}, "tags": []})


def functions_run(tools: type[Toolset], metadata: ToolMetadata) -> list[str]:
    """The Python functions that `parse` enters, itself first."""
    entered: list[str] = []

    def profile(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            entered.append(frame.f_code.co_name)

    profiled(partial(tools.parse, metadata), profile)  # no frame of its own, unlike a lambda
    return entered


@pytest.mark.parametrize("size", [1, 100])
def test_a_good_call_costs_one_validation_and_one_object(size: int) -> None:
    tools = toolset(size)
    metadata = ToolMetadata("c1", f"find_{size - 1}", GOOD)
    tools.parse(metadata)  # the first one makes the model
    assert functions_run(tools, metadata) == ["parse", "__init__"]
    call: Any = tools.parse(metadata)
    assert type(call) is ToolCall
    assert (call.metadata, call.repairs, call.origin) == (metadata, (), None)
    assert call.selector is tools.selector(metadata.name)


RUN: list[object] = []


@tool_input(name="one", output=None)
class Before(BaseModel):
    """A validator that would take anything."""

    a: int = 1

    @model_validator(mode="before")
    @classmethod
    def anything(cls, value: Any) -> Any:
        RUN.append(value)
        return value if isinstance(value, dict) else {}


@tool_input(name="one", output=None)
class Around(BaseModel):
    """A validator around the whole model."""

    a: int = 1

    @model_validator(mode="wrap")
    @classmethod
    def anything(cls, value: Any, handler: Any) -> Any:
        RUN.append(value)
        return handler(value if isinstance(value, dict) else {})


@tool_input(name="one", output=None)
class Constructed(BaseModel):
    """A model with an `__init__` of its own."""

    a: int = 1

    def __init__(self, **values: Any) -> None:
        RUN.append(values)
        super().__init__(**values)


@tool_input(name="one", output=None)
class Rooted(RootModel[dict[str, int]]):
    """A root with a validator."""

    @model_validator(mode="before")
    @classmethod
    def anything(cls, value: Any) -> Any:
        RUN.append(value)
        return value if isinstance(value, dict) else {}


@tool_input(name="one", output=None)
class Plain(BaseModel):
    """A model that pydantic validates alone."""

    a: int = 1


@tool_input(name="one", output=None)
class Nested(BaseModel):
    """A model that holds itself: pydantic writes its schema as a definition."""

    inner: "Nested | None" = None


MODELS: tuple[type[BaseModel], ...] = (Before, Around, Constructed, Rooted, Plain, Nested)


def toolset_of(model: type[BaseModel]) -> type[Toolset]:
    return type("One", (Toolset,), {"one": tool(model)})


@pytest.mark.parametrize("text", ["[1]", ' \n"a"', "[]", "3", "true", "\u00a0[]", "[{}]"])
@pytest.mark.parametrize("model", MODELS)
def test_what_is_no_object_reaches_no_validator_C2(model: type[BaseModel], text: str) -> None:
    tools = toolset_of(model)
    RUN.clear()
    with pytest.raises(MalformedArgumentsError):
        tools.parse(ToolMetadata("c1", "one", text))
    assert RUN == []


@pytest.mark.parametrize("text", ["", " \n", "null", " null\t", "{}", " \n{ } ", "\u00a0{}\u00a0"])
@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_an_empty_object_for_every_kind_of_model_C4(
    model: type[BaseModel], text: str
) -> None:
    tools = toolset_of(model)
    expected = model.model_validate({})
    RUN.clear()
    call: Any = tools.parse(ToolMetadata("c1", "one", text))
    assert call.input == expected
    assert all(value == {} for value in RUN)
