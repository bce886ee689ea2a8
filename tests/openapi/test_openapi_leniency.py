"""Patterns that can't be run, names of schemas, large schemas, what can't be called."""

from __future__ import annotations

from typing import Any

from openapi_toolkit import (
    Sent,
    document,
    of_body,
    of_parameter,
    only_tool,
    operation,
    refusal,
    request_of,
    why_skipped,
)

from lutumpy.openapi import tools

LOOKS_AHEAD = "^(?!aws:).{1,5}$"


# --- patterns -------------------------------------------------------------------------------------


def test_a_pattern_that_cannot_run_in_linear_time_is_left_out_with_a_note() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "pattern": LOOKS_AHEAD, "description": "A tag."},
            "b": {"type": "string", "pattern": "^b+$"},
            "pattern": {"$ref": "#/components/schemas/Key"},
            "list": {"allOf": [{"pattern": LOOKS_AHEAD}]},
        },
        "example": {"pattern": LOOKS_AHEAD},
    }
    key = {"type": "string", "pattern": r"(a)\1"}
    source = of_body(schema, schemas={"Key": key}, version="3.0.3")
    found = tools(source, call=Sent())
    (tool,) = found
    assert found.skipped == {}
    assert found.notes == {
        "it": (f"pattern not checked: {LOOKS_AHEAD}", r"pattern not checked: (a)\1")
    }
    body = tool.schema["properties"]["body"]
    assert body["properties"]["a"] == {
        "type": "string",
        "description": f"A tag.\nPattern, not checked here: {LOOKS_AHEAD}",
    }
    assert body["examples"] == [{"pattern": LOOKS_AHEAD}]
    assert refusal(tool, {"body": {"a": "aws:1", "pattern": "zz", "b": "bb"}}) == ""
    assert refusal(tool, {"body": {"b": "c"}}) != ""  # the others are checked


def test_names_that_such_a_pattern_describes_are_taken() -> None:
    schema = {
        "patternProperties": {LOOKS_AHEAD: {"type": "string"}, "^x": {"type": "integer"}},
        "additionalProperties": False,
    }
    source = of_body(schema)
    found = tools(source, call=Sent())
    assert list(found.notes) == ["it"]
    (tool,) = found
    assert refusal(tool, {"body": {"anything": 1, "x1": 1}}) == ""
    assert refusal(tool, {"body": {"x1": "a"}}) != ""


def test_patterns_of_results_are_left_out_too() -> None:
    answer = {"content": {"application/json": {"schema": {"pattern": LOOKS_AHEAD}}}}
    source = operation({"responses": {"200": answer}})
    found = tools(source, call=Sent(), outputs=True)
    assert found.notes == {"it": (f"pattern not checked: {LOOKS_AHEAD}",)}
    assert found[0].definition.output_schema is not None


def test_another_mistake_is_still_a_reason_to_skip() -> None:
    assert "its schema is broken" in why_skipped(of_body({"minLength": "a"}))
    why = why_skipped(of_body({"pattern": LOOKS_AHEAD, "minLength": "a"}))
    assert "its schema is broken" in why


# --- $id and $anchor ------------------------------------------------------------------------------

NODE = {
    "$anchor": "node",
    "type": "object",
    "properties": {"next": {"$ref": "#node"}, "$id": {"type": "integer"}},
    "additionalProperties": False,
}


def test_references_by_anchor_and_address_are_followed() -> None:
    address = {
        "$id": "https://x.test/schemas/address",
        "type": "object",
        "properties": {
            "zip": {"$ref": "#/$defs/zip"},
            "node": {"$ref": "#inner"},
            "tree": {"$ref": "tree"},
        },
        "$defs": {"zip": {"type": "integer"}, "in%ner": {"$anchor": "inner", "type": "boolean"}},
    }
    schemas = {
        "Node": NODE,
        "Address": address,
        "Tree": {"$id": "https://x.test/schemas/tree", "items": {"$ref": "#"}, "type": "array"},
    }
    body = {
        "type": "object",
        "properties": {
            "node": {"$ref": "#node"},
            "address": {"$ref": "https://x.test/schemas/address"},
            "zip": {"$ref": "https://x.test/schemas/address#/$defs/zip"},
            "place": {"$ref": "#/components/schemas/Node"},
        },
    }
    source = of_body(body, schemas=schemas)
    tool = only_tool(source)
    assert source["components"]["schemas"]["Node"] is NODE  # the document is never changed
    assert NODE["properties"] == {"next": {"$ref": "#node"}, "$id": {"type": "integer"}}
    for value, refused in (
        ({"node": {"next": {"next": {}}}}, False),
        ({"node": {"next": {"other": 1}}}, True),
        ({"node": {"$id": 3}}, False),
        ({"node": {"$id": "x"}}, True),
        ({"address": {"zip": 1, "node": True, "tree": [[[]]]}}, False),
        ({"address": {"zip": "x"}}, True),
        ({"address": {"node": 1}}, True),
        ({"address": {"tree": [1]}}, True),
        ({"zip": "x"}, True),
        ({"place": {"next": 1}}, True),
    ):
        assert (refusal(tool, {"body": value}) != "") is refused, value


def test_addresses_that_no_schema_has_are_refused_and_nothing_is_fetched() -> None:
    for reference in ("#other", "https://x.test/none", "http://["):
        schemas: dict[str, Any] = {"Node": {**NODE, "$id": "https://x.test/node"}}
        assert "it refers to" in why_skipped(of_body({"$ref": reference}, schemas=schemas))
        assert "it refers to" in why_skipped(of_body({"$ref": reference}))


def test_to_openapi_3_0_these_are_no_words() -> None:
    source = of_body({"$ref": "#node"}, schemas={"Node": NODE}, version="3.0.3")
    assert "it refers to '#node'" in why_skipped(source)


def test_examples_and_extensions_name_nothing() -> None:
    shadow = {"$anchor": "node", "$id": "urn:x"}
    source = document(
        {"/it": {"post": {"operationId": "it", "x-y": [shadow, 3]}}},
        components={"examples": {"one": {"value": 1}}, "schemas": {"A": {"default": shadow}}},
    )
    assert len(tools(source, call=Sent())) == 1
    schemas = {"A": {"default": shadow, "enum": [shadow]}, "Node": NODE}
    assert refusal(only_tool(of_body({"$ref": "#node"}, schemas=schemas)), {"body": {}}) == ""


# --- large schemas --------------------------------------------------------------------------------


def test_a_schema_of_millions_of_parts_is_a_tool_where_no_value_is_held_against_them_all() -> None:
    # As DocuSign's `Envelopes_PostEnvelopes`: the same tabs and properties at many places.
    schemas: dict[str, Any] = {
        f"D{level}": {
            "type": "object",
            "properties": {
                f"p{n}": {"$ref": f"#/components/schemas/D{level + 1}"} for n in range(9)
            },
        }
        for level in range(7)
    }
    schemas["D7"] = {"type": "string"}
    source = of_body({"$ref": "#/components/schemas/D0"}, schemas=schemas)
    tool = only_tool(source)
    value: Any = "end"
    for _ in range(7):
        value = {"p1": value, "p2": value}
    assert refusal(tool, {"body": value}) == ""
    assert request_of(source, {"body": {}}).content == b"{}"
    assert refusal(tool, {"body": {"p1": {"p8": 3}}}) == 'body.p1.p8: 3 is not of type "object"'


# --- what can't be called -------------------------------------------------------------------------


def test_what_can_never_be_called_is_skipped_with_its_reason() -> None:
    for place, schema, why in (
        ("path", {"enum": ["a/b", "a\\b"]}, "has no value that can be sent: it is one segment"),
        ("path", {"const": ""}, "has no value that can be sent: it is part of the path"),
        ("query", {"type": "array", "minItems": 1, "items": {"type": "object"}}, "can't stand"),
        ("query", {"type": "array", "minItems": 1, "items": {"type": "array"}}, "can't stand"),
        ("header", {"enum": ["é"]}, "it is sent as a header"),
        ("query", {"enum": []}, "takes no value"),
        ("query", False, "takes no value"),
        ("query", {"not": {}}, "takes no value"),
    ):
        path = "/it/{a}" if place == "path" else "/it"
        parameter: Any = {"in": place, "name": "a", "schema": schema, "required": True}
        told = why_skipped(of_parameter(parameter, path=path))
        assert told.startswith(f"its required {place} parameter 'a' "), told
        assert why in told
        if place != "path":
            assert only_tool(of_parameter({**parameter, "required": False}))
    assert why_skipped(of_body(False)) == "its required body takes no value"
    form = "application/x-www-form-urlencoded"
    field: Any = {"type": "array", "minItems": 1, "items": {"type": "array"}}
    whole = {"type": "object", "properties": {"a": field}, "required": ["a"]}
    encoding = {"a": {"style": "pipeDelimited"}}
    told = why_skipped(of_body(whole, media_type=form, encoding=encoding))
    assert told.startswith("the required field 'a' of its form has no value that can be sent: ")


def test_what_has_one_value_that_can_be_sent_is_a_tool() -> None:
    for schema in (
        {"enum": ["a/b", "c"]},
        {"type": "string"},
        {"type": "array"},
        {"type": "array", "minItems": 1, "items": {"type": "string"}},
        True,
    ):
        parameter = {"in": "path", "name": "a", "schema": schema, "required": True}
        assert only_tool(of_parameter(parameter, path="/it/{a}"))
