"""Schemas of OpenAPI become JSON Schemas that take what the operation takes."""

from __future__ import annotations

from typing import Any

import pytest
from openapi_toolkit import GITHUB, of_body, only_tool, operation, refusal, why_skipped

from lutumpy.openapi import tools


def body_schema(schema: Any, **more: Any) -> Any:
    """What the schema of a body becomes."""
    return only_tool(of_body(schema, **more)).schema["properties"]["body"]


def accepts(schema: Any, value: Any, **more: Any) -> bool:
    options = {"closed": more.pop("closed", False)}
    tool = only_tool(of_body(schema, **more), **options)
    return refusal(tool, {"body": value}) == ""


PET = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
REF = {"$ref": "#/components/schemas/Pet"}


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"type": "string"}, "a"),
        ({"type": "string", "enum": ["a", "b"]}, "a"),
        ({"enum": ["a", "b"]}, "b"),
        ({"type": "string", "enum": ["a", None]}, "a"),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, {"a": 1}),
        (REF, {"name": "n"}),
        ({**REF, "description": "A pet."}, {"name": "n"}),
        ({"allOf": [REF]}, {"name": "n"}),
        ({"type": "object", "allOf": [REF, {"required": ["b"]}]}, {"name": "n", "b": 1}),
        ({"oneOf": [REF, {"type": "integer"}], "title": "T"}, 3),
        ({"anyOf": [{"type": "array", "items": REF}]}, [{"name": "n"}]),
        ({"type": "number", "not": {"minimum": 3}}, 2),
    ],
)
def test_nullable_takes_null_wherever_it_stands(schema: Any, fits: Any) -> None:
    more: Any = {"version": "3.0.3", "schemas": {"Pet": PET}}
    assert accepts(schema, fits, **more)
    assert not accepts(schema, None, **more) or None in schema.get("enum", [])
    nullable = {**schema, "nullable": True}
    assert accepts(nullable, fits, **more)
    assert accepts(nullable, None, **more)
    assert not accepts(nullable, object.__name__, **more) or fits == "a"
    # In 3.1 the word has no meaning.
    if "$ref" not in schema:
        assert not accepts(nullable, None, schemas={"Pet": PET}) or None in schema.get("enum", [])


def test_nullable_false_and_a_nullable_of_any_type_change_nothing() -> None:
    assert body_schema({"type": "string", "nullable": False}, version="3.0.0") == {"type": "string"}
    assert body_schema({"nullable": True}, version="3.0.0") == {}
    assert body_schema({"type": "string", "nullable": True}, version="3.0.0") == {
        "type": ["string", "null"]
    }


def test_a_description_stays_outside_of_what_nullable_adds() -> None:
    made = body_schema(
        {**REF, "nullable": True, "description": "D"}, version="3.0.0", schemas={"Pet": PET}
    )
    assert made == {"anyOf": [{"$ref": "#/$defs/Pet"}, {"type": "null"}], "description": "D"}


def test_limits_that_exclude_their_number() -> None:
    schema = {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 5}
    schema["exclusiveMaximum"] = False
    assert body_schema(schema, version="3.0.0") == {
        "type": "integer",
        "exclusiveMinimum": 1,
        "maximum": 5,
    }
    assert body_schema({"type": "integer", "exclusiveMaximum": 4}) == {
        "type": "integer",
        "exclusiveMaximum": 4,
    }


def test_words_that_say_nothing_to_a_model_are_left_out() -> None:
    schema = {
        "type": "string",
        "example": "a",
        "xml": {"name": "x"},
        "externalDocs": {"url": "u"},
        "x-order": 1,
        "$comment": "c",
        "format": "date",
    }
    assert body_schema(schema) == {"type": "string", "format": "date", "examples": ["a"]}
    assert body_schema(True) == {}
    assert body_schema({"properties": {"x-a": {"x-b": 1}, "example": {}}}) == {
        "properties": {"x-a": {}, "example": {}}
    }


def test_beside_a_reference_3_0_reads_no_limits_and_3_1_does() -> None:
    schemas = {"Pet": {"type": "string"}}
    limited = {**REF, "maxLength": 1}
    assert accepts(limited, "ab", version="3.0.0", schemas=schemas)
    assert not accepts(limited, "ab", version="3.1.0", schemas=schemas)


def test_what_is_required_beside_a_reference_is_required_in_3_0_too() -> None:
    schemas = {"Pet": {"type": "object", "properties": {"ids": {}}}}
    for version in ("3.0.0", "3.1.0"):
        assert not accepts({**REF, "required": ["ids"]}, {}, version=version, schemas=schemas)
        assert accepts({**REF, "required": ["ids"]}, {"ids": 1}, version=version, schemas=schemas)
    assert accepts({**REF, "required": True}, {}, version="3.0.0", schemas=schemas)


# --- references ---------------------------------------------------------------------------------


def test_recursive_schemas_are_possible() -> None:
    tree = {
        "type": "object",
        "properties": {"leaf": {"type": "integer"}, "below": {"type": "array", "items": REF}},
    }
    tool = only_tool(of_body(REF, schemas={"Pet": tree}))
    assert tool.schema["$defs"].keys() == {"Pet"}
    assert refusal(tool, {"body": {"below": [{"below": [{"leaf": 1}]}]}}) == ""
    assert refusal(tool, {"body": {"below": [{"below": [{"leaf": "x"}]}]}}) == (
        'body.below[0].below[0].leaf: "x" is not of type "integer"'
    )


def test_a_reference_may_lead_to_any_place_of_the_document() -> None:
    schemas = {"Pet": PET, "a b": {"$ref": "#/components/schemas/Pet/properties/name"}}
    tool = only_tool(of_body({"$ref": "#/components/schemas/a%20b"}, schemas=schemas))
    assert refusal(tool, {"body": "x"}) == ""
    assert refusal(tool, {"body": 1}) == 'body: 1 is not of type "string"'
    listed = {"anyOf": [{"type": "integer"}, {"type": "string"}], "prefixItems": [True]}
    second = {"$ref": "#/components/schemas/Pet/anyOf/1"}
    tool = only_tool(of_body(second, schemas={"Pet": listed}))
    assert refusal(tool, {"body": "x"}) == ""
    for wrong in ("2", "x", "1/type/a"):
        reference = {"$ref": f"#/components/schemas/Pet/anyOf/{wrong}"}
        assert "leads nowhere" in why_skipped(of_body(reference, schemas={"Pet": listed}))


@pytest.mark.parametrize(
    "reference",
    [
        "http://127.0.0.1:9/pet.json",
        "file:///etc/passwd",
        "pet.json#/Pet",
        "#Pet",
        "#/components/schemas/Missing",
        3,
    ],
)
def test_a_reference_that_leads_out_of_the_document_or_nowhere_skips_the_operation_Y3(
    reference: Any,
) -> None:
    for place in ("schema", "parameter", "body"):
        entry = {"$ref": reference}
        definition: dict[str, Any] = {
            "schema": of_body(entry)["paths"]["/it"]["post"],
            "parameter": {"parameters": [entry]},
            "body": {"requestBody": entry},
        }[place]
        why = why_skipped(operation(definition))
        assert "leads nowhere" in why or "refer" in why


def test_references_in_a_circle_harm_nobody() -> None:
    why = why_skipped(
        operation(
            {"parameters": [{"$ref": "#/components/parameters/a"}]},
            components={"parameters": {"a": {"$ref": "#/components/parameters/a"}}},
        )
    )
    assert why == "the reference '#/components/parameters/a' leads to itself"
    loop = {"allOf": [REF], "properties": {"a": REF}, "nullable": True}
    for closed in (False, True):
        found = tools(of_body(REF, version="3.0.0", schemas={"Pet": loop}), call=print)
        assert len(found) + len(found.skipped) == 1, closed


@pytest.mark.parametrize("word", ["allOf", "anyOf"])
def test_a_document_that_doubles_itself_costs_nothing(word: str) -> None:
    schemas: dict[str, Any] = {
        f"S{number}": {
            word: [
                {
                    "$ref": f"#/components/schemas/S{number + 1}",
                    "properties": {f"p{number}": {"readOnly": True}},
                },
                {"$ref": f"#/components/schemas/S{number + 1}"},
            ],
            "discriminator": {"propertyName": "p"},
        }
        for number in range(30)
    }
    schemas["S30"] = {"properties": {"p": {"type": "string"}}}
    source = of_body({"$ref": "#/components/schemas/S0"}, schemas=schemas)
    for closed in (False, True):
        found = tools(source, call=print, closed=closed)
        assert len(found) == 0
        assert "schemas" in found.skipped["it"] or "checks" in found.skipped["it"]


def test_schemas_of_other_dialects_are_refused() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    assert "another dialect" in why_skipped(of_body({"$schema": draft}))
    assert "$dynamicRef" in why_skipped(of_body({"$dynamicRef": "#node"}))


# --- what is asked of the model -----------------------------------------------------------------


def test_read_only_properties_are_not_asked_for() -> None:
    identified = {
        "type": "object",
        "properties": {"id": {"type": "integer", "readOnly": True}},
        "required": ["id"],
    }
    schema = {
        "allOf": [
            {"$ref": "#/components/schemas/Identified"},
            PET,
            {"required": ["id", "name", "stamp"]},
        ],
        "properties": {"stamp": {"$ref": "#/components/schemas/Stamp"}},
    }
    schemas = {"Identified": identified, "Stamp": {"type": "string", "readOnly": True}}
    for closed in (False, True):
        tool = only_tool(of_body(schema, schemas=schemas), closed=closed)
        assert refusal(tool, {"body": {"name": "n"}}) == ""
        assert refusal(tool, {"body": {}}) == "body.name: Field required"
        assert "stamp" not in repr(tool.schema)
        taken = refusal(tool, {"body": {"name": "n", "id": 3}})
        assert taken == ("body.id: Extra inputs are not permitted" if closed else "")


GIVEN_ID = {"id": {"type": "integer", "readOnly": True}}
ID_AND_NAME = {"type": "object", "properties": {**GIVEN_ID, "name": {"type": "string"}}}


@pytest.mark.parametrize("closed", [False, True])
def test_a_read_only_property_is_not_asked_for_beside_branches_that_have_it(closed: bool) -> None:
    schemas = {
        "Named": {**ID_AND_NAME, "required": ["id", "name"]},
        "Aged": {"type": "object", "properties": {**GIVEN_ID, "age": {"type": "integer"}}},
        "Plain": {"type": "object", "properties": {"id": {"type": "integer"}}},
    }
    named, aged, plain = ({"$ref": f"#/components/schemas/{name}"} for name in schemas)
    for union in ("oneOf", "anyOf"):
        schema = {"required": ["id"], union: [named, {**aged, "required": ["age"]}]}
        assert accepts(schema, {"name": "n"}, schemas=schemas, closed=closed)
        assert accepts(schema, {"age": 3}, schemas=schemas, closed=closed)
        assert not accepts(schema, {}, schemas=schemas, closed=closed)
        schema = {"required": ["id"], union: [named, plain]}  # a branch asks for it
        assert not accepts(schema, {"name": "n"}, schemas=schemas, closed=closed)


@pytest.mark.parametrize("closed", [False, True])
def test_a_read_only_discriminator_is_not_asked_for(closed: bool) -> None:
    kind = {"type": "string", "readOnly": True}
    schemas: dict[str, Any] = {
        name: {**cat, "properties": {**cat["properties"], "kind": {**kind}}}
        for name, cat in CATS.items()
    }
    schemas["Cat"]["required"] = ["kind", "lives"]
    schemas["Dog"]["required"] = ["kind", "tricks"]
    union = {
        "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
        "discriminator": {"propertyName": "kind"},
    }
    for schema in (union, {"allOf": [{"properties": {"kind": kind}}, union]}):
        tool = only_tool(of_body(schema, schemas=schemas), closed=closed)
        assert "kind" not in repr(tool.schema)
        assert refusal(tool, {"body": {"lives": 9}}) == ""
        assert refusal(tool, {"body": {"tricks": 1}}) == ""
        assert refusal(tool, {"body": {}}) != ""
    del schemas["Dog"]["properties"]["kind"]["readOnly"]
    for value, fits in (({"lives": 9}, True), ({"kind": "Dog", "tricks": 1}, True), ({}, False)):
        assert accepts(union, value, schemas=schemas, closed=closed) == fits
    assert not accepts(union, {"kind": "Cat", "tricks": 1}, schemas=schemas, closed=closed)


def test_a_read_only_property_is_not_asked_for_where_another_one_is_there() -> None:
    depends = {"name": ["id", "age"], "age": ["id"], "id": ["name"]}
    schema = {**ID_AND_NAME, "dependentRequired": depends}
    assert body_schema(schema)["dependentRequired"] == {"name": ["age"]}
    only_id = {**ID_AND_NAME, "dependentRequired": {"name": ["id"]}}
    assert "dependentRequired" not in body_schema(only_id)


@pytest.mark.parametrize("closed", [False, True])
def test_a_condition_asks_for_read_only_properties_as_it_is_written(closed: bool) -> None:
    """Without them it would hold for more values, and refuse what is right."""
    both = {**ID_AND_NAME, "required": ["id", "name"]}
    held = {"properties": {"of": {**both}}, "required": ["of"]}
    for condition in (both, {"required": ["id", "name"]}, {"$ref": "#/components/schemas/Both"}):
        more: Any = {"schemas": {"Both": both}, "closed": closed}
        assert accepts({**ID_AND_NAME, "not": condition}, {"name": "n"}, **more)
        for word in ("then", "else"):
            schema = {**ID_AND_NAME, "if": condition, word: {"required": ["age"]}}
            assert accepts(schema, {"name": "n"}, **more) == (word == "then")
    of = {"type": "object", "properties": {"of": ID_AND_NAME}}
    assert accepts({**of, "not": held}, {"of": {"name": "n"}}, closed=closed)
    assert not accepts({**of, "not": {"required": ["of"]}}, {"of": {}}, closed=closed)


def test_write_only_properties_are_not_expected_of_results() -> None:
    user = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "password": {"type": "string", "writeOnly": True},
            "id": {"type": "integer", "readOnly": True},
        },
        "required": ["name", "password", "id"],
    }
    source = of_body(REF, schemas={"Pet": user})
    source["paths"]["/it"]["post"]["responses"] = {
        "201": {"description": "", "content": {"application/json": {"schema": REF}}},
        204: {"description": ""},
        "404": {"description": "", "content": {"application/json": {"schema": True}}},
    }
    tool = only_tool(source, outputs=True)
    assert tool.schema["$defs"]["Pet"]["required"] == ["name", "password"]
    assert tool.definition.output_schema == {
        "anyOf": [{"$ref": "#/$defs/Pet"}, {"type": "null"}],
        "$defs": {
            "Pet": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "id": {"type": "integer"}},
                "required": ["name", "id"],
            }
        },
    }
    assert only_tool(source).definition.output_schema is None


CATS = {
    "Cat": {
        "type": "object",
        "properties": {"kind": {"type": "string"}, "lives": {"type": "integer"}},
        "required": ["kind"],
    },
    "Dog": {
        "type": "object",
        "properties": {"kind": {"type": "string"}, "tricks": {"type": "integer"}},
        "required": ["kind"],
    },
}


@pytest.mark.parametrize("closed", [False, True])
def test_a_discriminator_tells_the_branches_of_a_union_apart(closed: bool) -> None:
    union = {
        "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
        "discriminator": {
            "propertyName": "kind",
            "mapping": {"hound": "#/components/schemas/Dog", "pug": "Dog"},
        },
    }
    tool = only_tool(of_body(union, schemas=CATS), closed=closed)
    for value in ({"kind": "Cat", "lives": 9}, {"kind": "hound"}, {"kind": "pug", "tricks": 1}):
        assert refusal(tool, {"body": value}) == ""
    assert refusal(tool, {"body": {"kind": "Cat", "lives": "9a"}}) == (
        'body.lives: "9a" is not of type "integer"'
    )
    assert refusal(tool, {"body": {"kind": "Dog"}}) != ""  # the mapping has other names for it


# --- closed -------------------------------------------------------------------------------------


def test_objects_are_open_unless_they_are_closed() -> None:
    value = {"name": "n", "more": 1}
    more: Any = {"schemas": {"Pet": PET}}
    for schema in (PET, REF, {"allOf": [REF]}, {"anyOf": [REF, {"type": "null"}]}):
        assert accepts(schema, value, **more)
        assert not accepts(schema, value, closed=True, **more)
        assert accepts(schema, {"name": "n"}, closed=True, **more)


def test_a_closed_composition_takes_the_properties_of_all_its_parts() -> None:
    schema = {
        "allOf": [REF, {"properties": {"age": {"type": "integer"}}}],
        "properties": {"owner": REF},
    }
    more: Any = {"schemas": {"Pet": PET}, "closed": True}
    assert accepts(schema, {"name": "n", "age": 3, "owner": {"name": "o"}}, **more)
    assert not accepts(schema, {"name": "n", "agee": 3}, **more)
    assert not accepts(schema, {"name": "n", "owner": {"name": "o", "age": 3}}, **more)


def test_a_closed_object_with_alternatives_takes_its_own_properties() -> None:
    schema = {
        "properties": {"a": {}, "b": {}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    assert accepts(schema, {"a": 1}, closed=True)
    assert not accepts(schema, {"a": 1, "c": 1}, closed=True)
    named = {
        "allOf": [{"minProperties": 1}, {"$ref": "#/components/schemas/Either"}],
    }
    either = {"anyOf": [REF, {"allOf": [REF]}, {"$ref": "#/components/schemas/Pet"}]}
    more: Any = {"schemas": {"Pet": PET, "Either": either}, "closed": True}
    assert accepts(named, {"name": "n"}, **more)
    assert not accepts(named, {"name": "n", "more": 1}, **more)
    # Where one of the forms is a map, further properties are its own.
    either["anyOf"].append({"type": "object"})
    assert accepts(named, {"name": "n", "more": 1}, **more)


def test_objects_that_say_what_further_properties_they_take_stay_so() -> None:
    for inner in (True, {}, {"type": "integer"}):
        schema: dict[str, Any] = {"properties": {"a": {}}, "additionalProperties": inner}
        assert accepts(schema, {"a": 1, "b": 2}, closed=True)
    # A map of anything names no properties.
    assert accepts({"type": "object"}, {"b": 2}, closed=True)
    assert accepts({"type": "object", "properties": {}}, {"b": 2}, closed=True)
    assert accepts(
        {"anyOf": [{"type": "object"}, {"required": ["b"]}], "minProperties": 1},
        {"b": 2},
        closed=True,
    )


# --- a document of GitHub's -----------------------------------------------------------------------


def test_a_real_document_is_read() -> None:
    found = tools(GITHUB, call=print, closed=True, outputs=True)
    assert [tool.original_name for tool in found] == [
        "repos/get-content",
        "issues/list-for-repo",
        "issues/create",
        "issues/lock",
        "issues/list-labels-for-repo",
        "issues/delete-label",
        "markdown/render-raw",
        "issues/update",
    ]
    assert found.skipped == {}
    create = found["issues/create"]
    place = {"owner": "o", "repo": "r"}
    body = {"title": "T", "milestone": None, "labels": ["a", {"name": "b", "color": None}]}
    assert refusal(create, {**place, "body": body}) == ""
    assert refusal(create, {**place, "body": {**body, "labels": [3]}}) != ""
    assert refusal(create, {**place, "body": {"body": "no title"}}) == (
        "body.title: Field required"
    )
    lock = found["issues/lock"]
    assert lock.schema["properties"]["body"]["type"] == ["object", "null"]
    assert refusal(lock, {**place, "issue_number": 3}) == ""
