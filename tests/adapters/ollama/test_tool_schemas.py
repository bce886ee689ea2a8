"""Schemas of tools, as Ollama's server keeps them: what it reads is all that its model is shown."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Union

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from pydantic import BaseModel, Field

from lutumpy import DynamicTool, Toolset, dynamic, tool, tool_fn
from lutumpy.adapters.ollama import OllamaChat
from lutumpy.apis import serving
from lutumpy.rules.ollama.tools import check_tools
from lutumpy.rules.shape import DeclaredTool
from lutumpy.rules.writing import written_out


class Place(BaseModel):
    """A place."""

    city: str
    country: str | None = None


class Walk(BaseModel):
    kind: Literal["walk"]
    steps: int


class Ride(BaseModel):
    kind: Literal["ride"]
    to: Place


class Folder(BaseModel):
    name: str
    inner: list[Folder] = []


@tool_fn
def travel(
    start: Place,
    stops: list[Place],
    way: Annotated[Union[Walk, Ride], Field(discriminator="kind")],
    end: Place | None = None,
) -> str:
    """Travel.

    Args:
        start: Where it begins.
        stops: Where it goes on.
        way: How.
        end: Where it ends.
    """
    return ""


@tool_fn
def keep(folder: Folder) -> str:
    """Keep a folder."""
    return ""


class Tools(Toolset):
    travel = tool(travel)
    keep = tool(keep)


class Plugins(Toolset):
    plugins = dynamic()


def shown_to_the_model(parameters: dict[str, Any]) -> dict[str, Any]:
    """What is left when the server has read parameters into its types and written them again."""
    kept = {
        key: parameters[key] for key in ("type", "required", "items", "$defs") if key in parameters
    }
    properties = parameters.get("properties", {})
    return {**kept, "properties": {name: _property(each) for name, each in properties.items()}}


def _property(schema: dict[str, Any]) -> dict[str, Any]:
    kept = {
        key: schema[key]
        for key in ("type", "description", "enum", "items", "required")
        if key in schema
    }
    if "anyOf" in schema:
        kept["anyOf"] = [_property(each) for each in schema["anyOf"]]
    if "properties" in schema:
        kept["properties"] = {key: _property(each) for key, each in schema["properties"].items()}
    return kept


def parameters_of(*schemas: dict[str, Any]) -> list[dict[str, Any]]:
    """The parameters that the adapter writes for tools with these schemas."""
    tools = [DynamicTool(f"tool_{k}", "A tool.", schema) for k, schema in enumerate(schemas)]
    offer = Plugins.with_dynamic_tools({Plugins.plugins: tools}).offer()
    return [each["function"]["parameters"] for each in OllamaChat.tools(offer)]


def test_the_fields_of_nested_models_are_shown() -> None:
    (parameters, _) = [each["function"]["parameters"] for each in OllamaChat.tools(Tools.offer())]
    shown = shown_to_the_model(parameters)["properties"]
    place = {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "country": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["city"],
    }
    assert shown["start"] == {**place, "description": "Where it begins."}
    assert shown["stops"]["items"]["properties"].keys() == {"city", "country"}
    assert shown["end"]["anyOf"][0]["properties"] == place["properties"]
    walk, ride = shown["way"]["anyOf"]
    assert walk["properties"]["kind"] == {"enum": ["walk"], "type": "string"}
    assert ride["properties"]["to"]["required"] == ["city"]
    assert "$ref" not in json.dumps(parameters)
    assert "$defs" not in parameters


def test_a_model_that_holds_itself_is_written_out_once_and_keeps_its_definition() -> None:
    (_, parameters) = [each["function"]["parameters"] for each in OllamaChat.tools(Tools.offer())]
    folder = shown_to_the_model(parameters)["properties"]["folder"]
    assert folder["properties"].keys() == {"name", "inner"}
    again = folder["properties"]["inner"]["items"]
    assert again == {"type": "object", "$ref": "#/$defs/Folder"}
    assert parameters["$defs"]["Folder"]["properties"].keys() == {"name", "inner"}


def test_what_is_kept_already_is_the_schema_of_the_tool() -> None:
    @tool_fn
    def find(city: str, tags: list[str], limit: int = 3) -> str:
        """Find."""
        return ""

    class Plain(Toolset, tools=[find]): ...

    offer = Plain.offer()
    (listed,) = OllamaChat.tools(offer)
    assert listed["function"]["parameters"] is offer.specs[0].schema
    (again,) = OllamaChat.tools(offer)
    assert again == listed
    assert again is not listed
    assert again["function"] is not listed["function"]


def test_true_in_the_place_of_a_schema_is_an_empty_one() -> None:
    schema = {
        "type": "object",
        "properties": {"any": True, "list": {"type": "array", "items": True}},
    }
    (parameters,) = parameters_of(schema)
    assert parameters["properties"] == {"any": {}, "list": {"type": "array", "items": True}}


def test_a_reference_that_restricts_more_than_what_it_names_stays() -> None:
    schema = {
        "type": "object",
        "properties": {
            "few": {"$ref": "#/$defs/count", "maximum": 3},
            "noted": {"$ref": "#/$defs/count", "description": "Noted."},
            "least": {"$ref": "#/$defs/count", "minimum": 3},
        },
        "$defs": {"count": {"type": "integer", "minimum": 1, "description": "A count."}},
    }
    (parameters,) = parameters_of(schema)
    assert parameters["properties"] == {
        "few": {"type": "integer", "minimum": 1, "description": "A count.", "maximum": 3},
        "noted": {"type": "integer", "minimum": 1, "description": "Noted."},
        "least": {"type": "integer", "$ref": "#/$defs/count", "minimum": 3},
    }
    assert parameters["$defs"] == schema["$defs"]


def test_a_reference_stays_beside_what_would_open_the_definition() -> None:
    closed = {"type": "object", "additionalProperties": False}
    opened = {"$ref": "#/$defs/closed", "properties": {"x": {"type": "string"}}}
    schema = {"type": "object", "properties": {"a": opened}, "$defs": {"closed": closed}}
    assert not jsonschema.Draft202012Validator(schema).is_valid({"a": {"x": "y"}})
    written = written_out(schema)
    assert written["properties"]["a"] == {"type": "object", **opened}
    assert not jsonschema.Draft202012Validator(written).is_valid({"a": {"x": "y"}})


def test_definitions_that_hold_each_other_often_stay_small() -> None:
    definitions: dict[str, Any] = {"d0": {"type": "string"}}
    for k in range(1, 13):
        both = {"$ref": f"#/$defs/d{k - 1}"}
        definitions[f"d{k}"] = {"type": "object", "properties": {"a": both, "b": both}}
    schema = {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/d12"}},
        "$defs": definitions,
    }
    (parameters,) = parameters_of(schema)
    assert len(json.dumps(parameters)) < 200_000
    assert parameters["$defs"]["d0"] == {"type": "string"}


def test_a_schema_of_many_levels_is_written() -> None:
    schema: dict[str, Any] = {"const": 1}
    for _ in range(400):
        schema = {"type": "array", "items": schema}
    shown = written_out({"type": "object", "properties": {"deep": schema}})
    assert shown["properties"]["deep"]["type"] == "array"


NAMES = st.sampled_from(["A", "B", "C"])
LEAVES = st.one_of(
    st.sampled_from([True, {}, {"type": "string"}, {"type": "integer"}, {"enum": [1, "x"]}]),
    st.sampled_from([1, "x", None]).map(lambda value: {"const": value}),
    NAMES.map(lambda name: {"$ref": f"#/$defs/{name}"}),
    NAMES.map(lambda name: {"$ref": f"#/$defs/{name}", "description": "Said here."}),
    NAMES.map(lambda name: {"$ref": f"#/$defs/{name}", "type": "object"}),
)


def _holders(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=2)
    properties = st.dictionaries(st.sampled_from("xy"), inner, max_size=2)
    return st.one_of(
        properties.map(lambda held: {"type": "object", "properties": held}),
        properties.map(lambda held: {"properties": held, "additionalProperties": False}),
        properties.map(lambda held: {"$ref": "#/$defs/A", "properties": held}),
        inner.map(lambda held: {"allOf": [held], "additionalProperties": False}),
        inner.map(lambda held: {"allOf": [held], "properties": {"x": {"type": "string"}}}),
        inner.map(lambda held: {"type": "array", "items": held}),
        some.map(lambda held: {"anyOf": held}),
        some.map(lambda held: {"allOf": held}),
        inner.map(lambda held: {"type": "object", "additionalProperties": held}),
    )


SCHEMAS = st.recursive(LEAVES, _holders, max_leaves=6)
VALUES = st.recursive(
    st.sampled_from([1, "x", None, 2.5]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("xyz"), inner, max_size=2)
    ),
    max_leaves=6,
)


@settings(max_examples=examples(300))
@given(
    st.dictionaries(st.sampled_from("xy"), SCHEMAS, min_size=1, max_size=2),
    st.fixed_dictionaries(dict.fromkeys("ABC", SCHEMAS)),
    st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=3),
)
def test_what_is_written_takes_what_the_schema_takes(
    properties: dict[str, Any], definitions: dict[str, Any], value: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": properties, "$defs": definitions}
    shown = written_out(schema)
    try:
        expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    except RecursionError:  # a definition that is nothing but a reference to itself
        return
    assert jsonschema.Draft202012Validator(shown).is_valid(value) == expected


def test_the_fields_of_what_a_reference_at_the_root_names_are_shown() -> None:
    place = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    typed = {"$ref": "#/$defs/place", "type": "object"}
    for root in ({"$ref": "#/$defs/place"}, typed, {"$ref": "#/$defs/again"}):
        definitions = {"place": place, "again": {"$ref": "#/$defs/place"}}
        (parameters,) = parameters_of({**root, "$defs": definitions})
        assert shown_to_the_model(parameters) == place


def test_only_definitions_that_are_still_named_stay() -> None:
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/tree"}, "leaf": {"$ref": "#/$defs/leaf"}},
        "$defs": {
            "tree": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            "node": {"type": "object", "properties": {"of": {"$ref": "#/$defs/tree"}}},
            "leaf": {"type": "string"},
        },
    }
    written = written_out(schema)
    assert written["$defs"].keys() == {"tree", "node"}
    assert written["properties"]["leaf"] == {"type": "string"}


@pytest.mark.parametrize(
    "holder",
    [
        {"items": [{"$ref": "#/$defs/kept"}]},
        {"items": [{}], "additionalItems": {"$ref": "#/$defs/kept"}},
        {"dependencies": {"x": {"$ref": "#/$defs/kept"}}},
        {"unevaluatedItems": {"$ref": "#/$defs/kept"}},
        {"unevaluatedProperties": {"$ref": "#/$defs/kept"}},
        {"items": {"$ref": "#/%24defs/kept"}},
        {"items": {"$ref": "#named"}},
        {"items": {"$dynamicRef": "#named"}},
        {"items": {"$ref": "https://example.org/kept"}},
    ],
    ids=str,
)
def test_definitions_stay_wherever_they_are_named(holder: dict[str, Any]) -> None:
    kept = {
        "$id": "https://example.org/kept",
        "$anchor": "named",
        "properties": {"n": {"$ref": "#/$defs/inner"}},
        "$defs": {"inner": {"type": "integer"}},
    }
    schema = {
        "type": "object",
        "properties": {"first": {"const": 1}, "held": holder},
        "$defs": {"kept": kept},
    }
    assert written_out(schema)["$defs"] == {"kept": kept}


def test_a_reference_to_the_whole_schema_is_written_out_once() -> None:
    properties = {"next": {"$ref": "#"}, "value": {"const": 1}}
    written = written_out({"type": "object", "properties": properties, "$defs": {"x": {}}})
    assert written == {
        "type": "object",
        "properties": {
            "next": {
                "type": "object",
                "properties": {"next": {"type": "object", "$ref": "#"}, "value": {"enum": [1]}},
            },
            "value": {"enum": [1]},
        },
    }


def test_tools_of_another_api_are_written_out_as_well() -> None:
    parameters = {
        "type": "object",
        "properties": {"place": {"$ref": "#/$defs/place"}},
        "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}}}},
    }
    declared = DeclaredTool("look", None, parameters)
    function = serving("ollama_chat", "rules").write_tool(declared)["function"]
    place = function["parameters"]["properties"]["place"]
    assert place["properties"] == {"city": {"type": "string"}}


@pytest.mark.parametrize("value", [False, "a text", 3, None])
def test_what_is_no_schema_is_refused_before_anything_is_sent(value: Any) -> None:
    schema = {"type": "object", "properties": {"value": value}}
    function = {"name": "keep", "parameters": schema}
    (problem,) = check_tools([{"type": "function", "function": function}])
    assert problem.rule == "ollama.tools"
