"""Schemas of inputs and outputs (rules D3, D4 and D6)."""

import dataclasses
from typing import Annotated, Any, Literal

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, RootModel

from lutumpy import DeclarationError, ToolInput, tool_fn, tool_input
from lutumpy.tools.tool import compiled_tool


class Move(BaseModel):
    action: Literal["move"]
    to: str


class Stop(BaseModel):
    action: Literal["stop"]


def input_schema(cls: type[BaseModel]) -> dict[str, Any]:
    return compiled_tool(cls).definition.input_schema


def test_titles_are_left_out_but_not_properties_of_that_name_D4() -> None:
    class Inner(BaseModel):
        model_config = ConfigDict(title="Inner title")
        title: str

    @tool_input(output=None)
    class Titled(BaseModel):
        """A tool."""

        model_config = ConfigDict(title="Own title")
        title: str = Field(title="Field title")
        inner: Inner
        description: int = 3

    schema = input_schema(Titled)
    assert list(schema["properties"]) == ["title", "inner", "description"]
    assert schema["properties"]["title"] == {"type": "string"}
    assert list(schema["$defs"]["Inner"]["properties"]) == ["title"]
    assert "title" not in schema["$defs"]["Inner"]
    assert "title" not in schema
    assert Titled.model_json_schema()["title"] == "Own title"


@tool_input(output=None)
class Tree(BaseModel):
    """A tree."""

    value: int
    """What it holds."""
    children: "list[Tree]" = []


def test_a_recursive_model_has_an_object_at_the_root_D4() -> None:
    schema = input_schema(Tree)
    assert list(schema)[:2] == ["type", "properties"]
    assert schema["properties"]["value"]["description"] == "What it holds."
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert schema["$defs"]["Tree"]["description"] == "A tree."
    assert "description" not in schema


def test_a_tool_without_parameters_has_properties_all_the_same_D4() -> None:
    @tool_fn
    def now() -> str:
        """Now."""
        return ""

    assert now.definition.input_schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_a_union_is_wrapped_D6() -> None:
    @tool_input(output=None)
    class Robot(RootModel[Annotated[Move | Stop, Field(discriminator="action")]]):
        """Drive."""

    schema = input_schema(Robot)
    assert schema["type"] == "object"
    assert schema["required"] == ["input"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["input"]["oneOf"] == [
        {"$ref": "#/$defs/Move"},
        {"$ref": "#/$defs/Stop"},
    ]
    assert set(schema["$defs"]) == {"Move", "Stop"}
    assert compiled_tool(Robot).wrapped


def test_a_root_model_over_one_object_is_that_object_D6() -> None:
    @tool_input(output=None)
    class Only(RootModel[Move]):
        """Only one."""

    assert not compiled_tool(Only).wrapped
    assert set(input_schema(Only)["properties"]) == {"action", "to"}
    assert compiled_tool(Only).arguments(Only(Move(action="move", to="x"))) == {
        "action": "move",
        "to": "x",
    }


def test_a_root_model_over_something_else_is_wrapped_D6() -> None:
    @tool_input(output=None)
    class Numbers(RootModel[list[int]]):
        """Numbers."""

    tool = compiled_tool(Numbers)
    assert tool.definition.input_schema["properties"]["input"] == {
        "items": {"type": "integer"},
        "type": "array",
    }
    assert tool.arguments(tool.decode('{"input": [1]}')) == {"root": [1]}


class Described(BaseModel):
    """Inside.

    Attributes:
        from_entry: From the entry.
    """

    from_entry: int
    below: int
    """From below."""


@dataclasses.dataclass
class DescribedData:
    below: int
    """From below."""


class Parent(BaseModel):
    inherited: int
    """Inherited."""


class Rich(Parent):
    """Rich.

    Args:
        both: From the entry.
        entry: From the entry.
        aliased: By name.
        Named: By alias.
    """

    field: Annotated[int, Field(description="From the field.")]
    """From below."""
    both: int
    """From below."""
    entry: int
    aliased: int = Field(alias="Aliased")
    named: int = Field(validation_alias=AliasChoices(AliasPath("Named"), "other"))
    model: Described = Field(description="The model.")
    data: DescribedData
    silent: int


def test_descriptions_have_an_order_D3() -> None:
    schema = input_schema(tool_input(output=None)(Rich))
    texts = {name: entry.get("description") for name, entry in schema["properties"].items()}
    assert texts == {
        "inherited": "Inherited.",
        "field": "From the field.",
        "both": "From below.",
        "entry": "From the entry.",
        "Aliased": "By name.",
        "Named": "By alias.",
        "model": "The model.",
        "data": None,
        "silent": None,
    }
    inner = schema["$defs"]["Described"]
    assert inner["description"] == "Inside."
    assert inner["properties"]["from_entry"]["description"] == "From the entry."
    assert inner["properties"]["below"]["description"] == "From below."
    assert schema["$defs"]["DescribedData"]["properties"]["below"]["description"] == "From below."
    assert "description" not in Rich.model_json_schema()["properties"]["both"]


def test_the_output_is_described_as_it_is_serialized() -> None:
    class Output(BaseModel):
        model_config = ConfigDict(serialize_by_alias=True)
        hits: int = Field(serialization_alias="Hits")

    @tool_fn
    def f() -> Output | None:
        """F."""
        return None

    schema = f.definition.output_schema
    assert schema is not None
    assert list(schema["$defs"]["Output"]["properties"]) == ["Hits"]
    assert compiled_tool(f).encode_output(Output(hits=1)) == '{"Hits":1}'


def test_a_field_without_a_schema_is_named_D2() -> None:
    class Opaque: ...

    with pytest.raises(DeclarationError, match=r"'thing' of Bad"):

        @tool_input(output=None)
        class Bad(BaseModel):
            model_config = ConfigDict(arbitrary_types_allowed=True)
            name: str
            thing: Opaque

    with pytest.raises(DeclarationError, match="Opaque"):

        @tool_input(output=Opaque)
        class BadOutput(BaseModel):
            name: str


def test_strict_schemas_are_refused_at_declaration_D5() -> None:
    with pytest.raises(DeclarationError, match="/properties/extra"):

        @tool_fn(strict=True)
        def f(extra: dict[str, int]) -> str:
            """F."""
            return ""

    @tool_input(strict=True)
    class Fine(ToolInput[None]):
        """Fine."""

        name: str = ""

    assert compiled_tool(Fine).definition.options.strict is True
    assert input_schema(Fine)["properties"]["name"]["default"] == ""
