"""Strict rendering (rule D5)."""

import copy
import enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, create_model

from lutumpy import DeclarationError
from lutumpy.rules.anthropic.tools import check_tools
from lutumpy.rules.strict import (
    ANTHROPIC_STRICT,
    OPENAI_STRICT,
    Dialect,
    strict_counts,
    strict_schema,
)

BOTH = pytest.mark.parametrize("dialect", [OPENAI_STRICT, ANTHROPIC_STRICT], ids=lambda d: d.name)


class Unit(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


class Point(BaseModel):
    """A point."""

    x: float
    y: float = 0.0


class Move(BaseModel):
    to: Point
    action: Literal["move"]


class Stop(BaseModel):
    action: Literal["stop"]


class Node(BaseModel):
    value: int
    children: "list[Node]" = []


class Family(BaseModel):
    name: str
    parent: "Family" = Field(default=None, description="The one above.")


def schema_of(**fields: Any) -> dict[str, Any]:
    schema: dict[str, Any] = create_model("Input", **fields).model_json_schema()
    return schema


def every_object(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for entry in schema for found in every_object(entry)]
    if not isinstance(schema, dict):
        return []
    own = (
        [schema]
        if schema.get("type") == "object" and isinstance(schema.get("properties"), dict)
        else []
    )
    return own + [found for entry in schema.values() for found in every_object(entry)]


@BOTH
def test_every_object_is_closed_and_the_argument_is_not_changed_D5(dialect: Dialect) -> None:
    schema = schema_of(a=(Point, ...), b=(list[Move], []))
    before = copy.deepcopy(schema)
    strict = strict_schema(schema, dialect)
    assert schema == before
    assert strict == strict_schema(schema, dialect)
    assert len(every_object(strict)) >= 3
    assert all(found["additionalProperties"] is False for found in every_object(strict))


def test_openai_wants_everything_required_and_optional_ones_nullable_D5() -> None:
    strict = strict_schema(
        schema_of(
            n=(int, 3),
            unit=(Unit, Unit.C),
            kind=(Literal["a"], "a"),
            either=(int | str, 1),
            maybe=(int | None, None),
            point=(Point, Point(x=1)),
            needed=(str, ...),
        ),
        OPENAI_STRICT,
    )
    properties = strict["properties"]
    assert strict["required"] == list(properties)
    assert properties["n"]["type"] == ["integer", "null"]
    assert properties["n"]["description"] == "Default: 3."
    assert "default" not in properties["n"]
    assert properties["unit"]["enum"] == ["celsius", "fahrenheit", None]
    assert {"type": "null"} in properties["kind"]["anyOf"]
    assert properties["either"]["anyOf"][-1] == {"type": "null"}
    assert properties["maybe"]["anyOf"].count({"type": "null"}) == 1
    assert properties["point"]["anyOf"][0]["type"] == "object"
    assert properties["needed"]["type"] == "string"


def test_anthropic_keeps_optional_properties_and_their_defaults_D5() -> None:
    strict = strict_schema(
        schema_of(n=(Annotated[int, Field(ge=1)], 3), s=(str, ...)), ANTHROPIC_STRICT
    )
    assert strict["required"] == ["s"]
    assert strict["properties"]["n"]["default"] == 3
    assert strict["properties"]["n"]["description"] == "At least 1."
    assert "minimum" not in strict["properties"]["n"]


def test_unsupported_keywords_move_into_the_description_D5() -> None:
    field = Field(default=3, ge=1, le=9, description="How many")
    assert strict_schema(schema_of(n=(int, field)), ANTHROPIC_STRICT)["properties"]["n"][
        "description"
    ] == ("How many. At least 1. At most 9.")
    text = Field(min_length=2, max_length=1, pattern="^a+$", examples=["a"])
    for dialect, expected in (
        (OPENAI_STRICT, 'Examples: "a". At least 2 characters. At most 1 character.'),
        (
            ANTHROPIC_STRICT,
            'Examples: "a". At least 2 characters. At most 1 character. Matches the regular '
            "expression ^a+$",
        ),
    ):
        assert (
            strict_schema(schema_of(s=(str, text)), dialect)["properties"]["s"]["description"]
            == expected
        )
    tags = strict_schema(
        schema_of(t=(set[str], Field(min_length=1, max_length=3))), ANTHROPIC_STRICT
    )["properties"]["t"]
    assert tags["minItems"] == 1
    assert tags["description"] == "At most 3 items. No item twice."


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Count.", "Count. At least 1."),
        ("Count!", "Count! At least 1."),
        ("Count?", "Count? At least 1."),
        ("Count: ", "Count: At least 1."),
        ("Count; ", "Count; At least 1."),
        ("Count", "Count. At least 1."),
        ("", "At least 1."),
    ],
)
def test_notes_stand_behind_what_the_description_says_D5(said: str, told: str) -> None:
    field = {"type": "integer", "minimum": 1, "description": said}
    schema = {"type": "object", "properties": {"n": field}, "required": ["n"]}
    assert strict_schema(schema, ANTHROPIC_STRICT)["properties"]["n"]["description"] == told


def test_a_keyword_that_nobody_knows_is_told_as_it_stands_D5() -> None:
    field = {"type": "string", "x-unit": {"of": "é"}, "default": "ü"}
    schema = {"type": "object", "properties": {"s": field}, "required": ["s"]}
    text = strict_schema(schema, OPENAI_STRICT)["properties"]["s"]["description"]
    assert text == 'Default: "ü". x-unit: {"of": "é"}.'


def test_patterns_with_lookaround_are_text_D5() -> None:
    schema = {
        "type": "object",
        "properties": {"s": {"type": "string", "pattern": "^(?!x)"}},
        "required": ["s"],
    }
    assert "pattern" not in strict_schema(schema, OPENAI_STRICT)["properties"]["s"]


@BOTH
def test_annotations_beside_a_reference_are_inlined_D5(dialect: Dialect) -> None:
    strict = strict_schema(
        schema_of(a=(Point, Field(description="Where.")), b=(list[Point], ...), c=(Unit, ...)),
        dialect,
    )
    assert strict["properties"]["a"]["description"] == "Where."
    assert set(strict["properties"]["a"]["properties"]) == {"x", "y"}
    assert strict["properties"]["b"]["items"] == {"$ref": "#/$defs/Point"}
    assert strict["properties"]["c"] == {"$ref": "#/$defs/Unit"}


@BOTH
def test_definitions_that_nothing_uses_are_left_out_D5(dialect: Dialect) -> None:
    assert "$defs" not in strict_schema(schema_of(a=(Point, Field(description="Where."))), dialect)


@BOTH
def test_a_single_all_of_is_merged_D5(dialect: Dialect) -> None:
    schema = {
        "type": "object",
        "properties": {"p": {"allOf": [{"$ref": "#/$defs/P"}], "description": "Here."}},
        "required": ["p"],
        "$defs": {"P": {"type": "string", "description": "There."}},
    }
    assert strict_schema(schema, dialect)["properties"]["p"] == {
        "type": "string",
        "description": "Here.",
    }


def test_one_of_becomes_any_of_with_the_discriminator_first_D5() -> None:
    union = Annotated[Move | Stop, Field(discriminator="action")]
    strict = strict_schema(schema_of(u=(union, ...)), OPENAI_STRICT)
    assert strict["properties"]["u"]["anyOf"] == [
        {"$ref": "#/$defs/Move"},
        {"$ref": "#/$defs/Stop"},
    ]
    assert list(strict["$defs"]["Move"]["properties"]) == ["action", "to"]


@BOTH
def test_what_tells_the_branches_apart_is_required_though_it_has_a_default_D5(
    dialect: Dialect,
) -> None:
    class Go(BaseModel):
        far: int = 1
        action: Literal["go"] = "go"

    class Wait(BaseModel):
        action: Literal["wait", "sleep"] = "wait"

    union = Annotated[Go | Wait, Field(discriminator="action")]
    strict = strict_schema(schema_of(u=(union, ...)), dialect)
    for branch, constants in (("Go", {"const": "go"}), ("Wait", {"enum": ["wait", "sleep"]})):
        found = strict["$defs"][branch]
        assert "action" in found["required"]
        about = found["properties"]["action"]
        assert {key: about.get(key) for key in ("type", *constants)} == {
            "type": "string",
            **constants,
        }


def test_recursion_is_for_openai_only_D5() -> None:
    schema = schema_of(root=(Node, ...), other=(Annotated[Node, Field(description="Beside.")], ...))
    strict = strict_schema(schema, OPENAI_STRICT)
    assert strict["properties"]["other"] == {
        "anyOf": [{"$ref": "#/$defs/Node"}],
        "description": "Beside.",
    }
    with pytest.raises(DeclarationError, match=r"/\$defs/Node.*refers to itself"):
        strict_schema(schema, ANTHROPIC_STRICT)


@pytest.mark.parametrize("references", [1, 2, 3])
def test_recursion_is_found_however_many_references_lead_to_it_D5(references: int) -> None:
    held: Any = Family
    for level in range(1, references):
        held = create_model(f"Level{level}", held=(held, Field(description="Held.")))
    schema = schema_of(held=(held, ...))

    strict = strict_schema(schema, OPENAI_STRICT)
    assert strict["$defs"]["Family"]["properties"]["parent"] == {
        "anyOf": [{"$ref": "#/$defs/Family"}, {"type": "null"}],
        "description": "The one above.",
    }
    with pytest.raises(DeclarationError, match=r"/\$defs/Family: the definition refers to itself"):
        strict_schema(schema, ANTHROPIC_STRICT)


@BOTH
def test_recursion_of_a_definition_that_nothing_uses_is_none_D5(dialect: Dialect) -> None:
    definitions = {**schema_of(f=(Family, ...))["$defs"], "Unused": {"$ref": "#/$defs/Family"}}
    schema = by_hand({"type": "string"}, **{"$defs": definitions})
    assert "$defs" not in strict_schema(schema, dialect)


@BOTH
@pytest.mark.parametrize("required", [["b"], ["a", "b"]], ids=str)
def test_a_required_property_without_a_schema_has_no_strict_form_D5(
    dialect: Dialect, required: list[str]
) -> None:
    """A closed object can't have it, and without it no call would fit the schema."""
    held = {"type": "object", "properties": {"a": {"type": "string"}}, "required": required}
    with pytest.raises(DeclarationError, match=r"at /properties/f/items: 'b' is required, and"):
        strict_schema(by_hand({"type": "array", "items": held}), dialect)


@BOTH
def test_a_reference_that_leads_nowhere_is_refused_where_it_stands_D5(dialect: Dialect) -> None:
    definitions = {"A": by_hand({"$ref": "#/$defs/B"}), "B": by_hand({"$ref": "#/$defs/C"})}
    schema = by_hand({"$ref": "#/$defs/A"}, **{"$defs": definitions})
    with pytest.raises(DeclarationError, match=r"at /\$defs/B/properties/f: .*leads nowhere"):
        strict_schema(schema, dialect)


@BOTH
def test_a_tuple_of_one_type_is_an_array_D5(dialect: Dialect) -> None:
    pair = strict_schema(schema_of(p=(tuple[float, float], ...)), dialect)["properties"]["p"]
    assert pair["items"] == {"type": "number"}
    assert "prefixItems" not in pair


class Keyword(BaseModel):
    title: str
    description: int
    default: Point
    properties: list[str]
    required: bool = False


@BOTH
def test_properties_named_like_keywords_are_properties_D5(dialect: Dialect) -> None:
    strict = strict_schema(Keyword.model_json_schema(), dialect)
    assert list(strict["properties"]) == [
        "title",
        "description",
        "default",
        "properties",
        "required",
    ]
    assert strict["properties"]["default"] == {"$ref": "#/$defs/Point"}


NO_FORM = {
    "an open dictionary": (dict[str, int], "/properties/f"),
    "any value": (Any, "/properties/f"),
    "an array of anything": (list[Any], "/properties/f/items"),
    "a bare dict": (dict, "/properties/f"),
    "a mixed tuple": (tuple[int, str], "/properties/f/prefixItems"),
    "inside a union": (int | dict[str, int], "/properties/f/anyOf/1"),
}


@BOTH
@pytest.mark.parametrize(("annotation", "path"), NO_FORM.values(), ids=NO_FORM.keys())
def test_what_has_no_strict_form_is_refused_with_its_path_D5(
    dialect: Dialect, annotation: Any, path: str
) -> None:
    with pytest.raises(DeclarationError) as refused:
        strict_schema(schema_of(f=(annotation, ...)), dialect)
    assert f"{path}:" in str(refused.value)
    assert dialect.name in str(refused.value)


@pytest.mark.parametrize(
    "field",
    [
        {"not": {"type": "string"}, "type": "string"},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "object", "properties": {}, "patternProperties": {"a": {"type": "string"}}},
        {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {}, "dependencies": {"a": ["b"]}},
        {"type": "array"},
        {"$ref": "https://example.com/schema"},
        {"$ref": "#/$defs/Nowhere"},
        {"enum": [{"a": 1}]},
        {"$ref": "#/$defs/S", "minLength": 3},
        {"$ref": "#/properties/f/items"},
        {"anyOf": [{"type": "string"}], "oneOf": [{"type": "string"}]},
        {"type": "array", "prefixItems": [], "minItems": 0, "maxItems": 0},
        {"type": "array", "prefixItems": [{"type": "string"}] * 2, "minItems": 1, "maxItems": 2},
        {"type": "array", "prefixItems": [{"type": "string"}] * 2, "minItems": 2, "maxItems": 3},
        {"type": "array", "prefixItems": [{"type": "string"}] * 2, "minItems": 3, "maxItems": 3},
        {
            "type": "array",
            "prefixItems": [{"type": "string"}],
            "minItems": 1,
            "maxItems": 1,
            "items": {"type": "null"},
        },
        True,
    ],
    ids=str,
)
def test_schemas_by_hand_are_refused_as_well_D5(field: Any) -> None:
    schema = {
        "type": "object",
        "properties": {"f": field},
        "required": ["f"],
        "$defs": {"S": {"type": "string"}},
    }
    with pytest.raises(DeclarationError, match="no strict form"):
        strict_schema(schema, OPENAI_STRICT)


def by_hand(field: Any, required: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"f": field},
        "required": ["f"] if required else [],
        **more,
    }


@pytest.mark.parametrize(
    ("field", "path", "reason"),
    [
        (True, "/properties/f", "any value is allowed here; give it a type"),
        ({}, "/properties/f", "any value is allowed here; give it a type"),
        (False, "/properties/f", "no value is allowed"),
        (
            {"enum": ["a", {"a": 1}]},
            "/properties/f/enum",
            "only text, numbers, true, false and null can be listed",
        ),
        (
            {"allOf": [{"type": "string"}, {"type": "integer"}]},
            "/properties/f/allOf",
            "more than one schema has to hold at once",
        ),
        (
            {"allOf": [{"$ref": "#/$defs/S"}], "maxLength": 3},
            "/properties/f/allOf",
            "'maxLength' stands beside a reference and would have to be merged with it",
        ),
        (
            {"anyOf": [{"type": "string"}], "oneOf": []},
            "/properties/f",
            "both 'anyOf' and 'oneOf' have to hold",
        ),
        (
            {
                "type": "array",
                "prefixItems": [{"type": "string"}, {"type": "integer"}],
                "minItems": 2,
                "maxItems": 2,
            },
            "/properties/f/prefixItems",
            "a tuple of several types can't be expressed; use an object",
        ),
        ({"type": "object"}, "/properties/f", "the object takes properties that are not named"),
        (
            {"$ref": "#/other/S"},
            "/properties/f",
            "the reference '#/other/S' is not to a definition of this schema",
        ),
        ({"$ref": "#/$defs/T"}, "/properties/f", "the reference '#/$defs/T' leads nowhere"),
    ],
    ids=str,
)
def test_a_refusal_says_where_and_why_D5(field: Any, path: str, reason: str) -> None:
    schema = by_hand(field, **{"$defs": {"S": {"type": "string"}}})
    with pytest.raises(DeclarationError) as refused:
        strict_schema(schema, OPENAI_STRICT)
    assert (
        str(refused.value)
        == f"the schema has no strict form for {OPENAI_STRICT.name} at {path}: {reason}"
    )


@pytest.mark.parametrize(
    ("field", "strict"),
    [
        ({"enum": ["a", "b"]}, {"enum": ["a", "b"]}),
        ({"const": "a"}, {"const": "a"}),
        (
            {"properties": {"x": {"type": "string"}}, "required": ["x"]},
            {
                "type": "object",
                "properties": {"x": {"type": "string"}},
                "required": ["x"],
                "additionalProperties": False,
            },
        ),
        ({"$ref": "#/definitions/S"}, {"$ref": "#/definitions/S"}),
    ],
    ids=str,
)
@BOTH
def test_a_type_may_be_said_in_other_words_D5(dialect: Dialect, field: Any, strict: Any) -> None:
    schema = by_hand(field, definitions={"S": {"type": "string"}})
    made = strict_schema(schema, dialect)["properties"]["f"]
    if dialect is ANTHROPIC_STRICT and "type" in strict:
        made = {**made, "required": ["x"]}
    assert made == strict


def test_what_may_be_left_out_may_be_null_D5() -> None:
    def nullable(field: Any) -> Any:
        return strict_schema(by_hand(field, required=False), OPENAI_STRICT)["properties"]["f"]

    assert nullable({"anyOf": [{"type": "string"}, {"type": "integer"}]}) == {
        "anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]
    }
    assert nullable({"type": "string", "enum": ["a"]}) == {
        "type": ["string", "null"],
        "enum": ["a", None],
    }
    assert nullable({"type": "string", "const": "a"}) == {
        "anyOf": [{"type": "string", "const": "a"}, {"type": "null"}]
    }
    assert nullable({"type": ["string", "null"]}) == {"type": ["string", "null"]}
    assert nullable({"enum": ["a", None]}) == {"enum": ["a", None]}
    assert nullable({"type": "array", "items": {"type": "string"}, "title": "Tags"}) == {
        "title": "Tags",
        "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
    }


def test_a_definition_says_whether_null_is_taken_D5() -> None:
    definitions = {
        "Text": {"type": "string"},
        "Maybe": {"oneOf": [{"type": "string"}, {"$ref": "#/$defs/Nothing"}]},
        "Nothing": {"type": "null"},
        "Endless": {"anyOf": [{"$ref": "#/$defs/Endless"}, {"type": "string"}]},
        "a/b~c": {"type": "string"},
    }

    def nullable(name: str) -> Any:
        schema = by_hand({"$ref": f"#/$defs/{name}"}, required=False, **{"$defs": definitions})
        return strict_schema(schema, OPENAI_STRICT)["properties"]["f"]

    assert nullable("Maybe") == {"$ref": "#/$defs/Maybe"}
    assert nullable("Nothing") == {"$ref": "#/$defs/Nothing"}
    for name in ("Text", "Endless", "a~1b~0c"):
        assert nullable(name) == {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"type": "null"}]}


def test_null_goes_around_what_it_can_not_join_D5() -> None:
    def nullable(field: Any) -> Any:
        return strict_schema(by_hand(field, required=False), OPENAI_STRICT)["properties"]["f"]

    both = {"type": "string", "anyOf": [{"type": "string"}]}
    assert nullable(both) == {"anyOf": [both, {"type": "null"}]}
    tags = {"type": "array", "items": {"type": "string"}}
    assert nullable({**tags, "description": "Tags."}) == {
        "description": "Tags.",
        "anyOf": [tags, {"type": "null"}],
    }
    one = {"oneOf": [{"type": "string"}, {"type": "null"}]}
    assert nullable(one) == {"anyOf": [{"type": "string"}, {"type": "null"}]}


def test_a_reference_without_definitions_leads_nowhere_D5() -> None:
    with pytest.raises(DeclarationError, match="leads nowhere"):
        strict_schema(by_hand({"$ref": "#/$defs/T"}), OPENAI_STRICT)


@pytest.mark.parametrize(
    "root",
    [
        {"type": "array", "items": {}},
        {"type": "object", "anyOf": []},
        {"type": "object", "properties": {}, "enum": [{}]},
        {"type": "object", "properties": {}, "const": {}},
        {"type": "object", "properties": {}, "not": {}},
        {},
    ],
    ids=str,
)
def test_the_root_has_to_be_an_object_D5(root: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match=r"at /: the root must be a plain object$"):
        strict_schema(root, OPENAI_STRICT)


def test_optional_and_union_parameters_are_counted_for_anthropic_C9() -> None:
    schema = schema_of(a=(int | None, None), b=(Point, ...), c=(list[int | str], []), d=(str, ...))
    assert strict_counts(strict_schema(schema, ANTHROPIC_STRICT)) == (3, 2)
    assert strict_counts(strict_schema(schema, OPENAI_STRICT))[0] == 0


def nested_objects(levels: int) -> dict[str, Any]:
    """One optional property and one union on each level."""
    schema: dict[str, Any] = {"type": ["object", "null"], "properties": {}}
    for _ in range(levels - 1):
        schema = {"type": ["object", "null"], "properties": {"inner": schema}}
    return schema


@pytest.mark.pure
@pytest.mark.slow
def test_parameters_are_counted_however_deep_the_schema_is_C9() -> None:
    deep = nested_objects(3_000)
    assert strict_counts(deep) == (2_999, 3_000)
    tool = {"name": "deep", "input_schema": {**deep, "type": "object"}, "strict": True}
    refused = {problem.rule for problem in check_tools([tool])}
    assert {"anthropic.strict_optional", "anthropic.strict_unions"} <= refused


@pytest.mark.parametrize(
    ("schema", "counts"),
    [
        # "type arrays or anyOf" [recorded]: nothing united by an empty list, one type in a list is
        # a list.
        ({"anyOf": []}, (0, 0)),
        ({"anyOf": [{"type": "null"}]}, (0, 1)),
        ({"type": ["string"]}, (0, 1)),
        ({"type": ["string", "null"], "anyOf": [{}]}, (0, 1)),
        # Whatever holds a schema counts, `contains` and `propertyNames` too.
        ({"contains": {"properties": {"a": {"type": ["string", "null"]}}}}, (1, 1)),
        ({"propertyNames": {"anyOf": [{"minLength": 1}, {"enum": [""]}]}}, (0, 1)),
        # A name that isn't text requires nothing, and what isn't a schema counts for nothing.
        ({"properties": {"a": True, "b": {}}, "required": ["a", 1, ["b"]]}, (1, 0)),
        ({"properties": ["a"], "required": "a", "anyOf": {}}, (0, 0)),
        (True, (0, 0)),
        ([{"anyOf": [{}]}], (0, 0)),
    ],
    ids=str,
)
def test_what_counts_as_an_optional_or_a_union_parameter_C9(
    schema: Any, counts: tuple[int, int]
) -> None:
    assert strict_counts(schema) == counts
