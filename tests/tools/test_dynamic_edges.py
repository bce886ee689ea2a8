"""Corners of tools that are known at run time: odd checks, odd forms of arguments, odd schemas."""

from __future__ import annotations

import base64
import json
import pickle
import sys
from typing import Any

import jsonschema_rs
import pytest
from dynamic_toolkit import CITY, AppTools, DataTools, weather_tool

from lutumpy import (
    DeclarationError,
    DynamicInput,
    DynamicOutput,
    DynamicTool,
    HandledTool,
    InvalidArgumentsError,
    ToolCall,
    ToolError,
    ToolMetadata,
    Toolset,
)

OWN_CHECK = "The arguments could not be checked: this tool's own check failed on them."

UNION: dict[str, Any] = {
    "anyOf": [
        {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        {"type": "object", "properties": {"r": {"type": "string"}}, "required": ["r"]},
    ]
}


def parse(declared: DynamicTool, arguments: str) -> ToolCall[DynamicInput, DynamicOutput]:
    metadata = ToolMetadata("c1", declared.name, arguments)
    return Toolset.of("One", [declared]).parse(metadata)


def refusal(declared: DynamicTool, arguments: str) -> str:
    with pytest.raises(InvalidArgumentsError) as caught:
        parse(declared, arguments)
    return caught.value.detail


def test_a_null_that_is_read_as_left_out_is_not_among_what_is_wrong_C3_D5() -> None:
    assert refusal(weather_tool(), '{"city": 1, "days": null}') == 'city: 1 is not of type "string"'
    two = DynamicTool("t", "", {**CITY, "minProperties": 2})
    assert refusal(two, '{"city": "x", "days": null}').endswith("has less than 2 properties")
    wrapped = DynamicTool("t", "", {"anyOf": [CITY]})
    told = refusal(wrapped, '{"input": {"city": 1, "days": null}}')
    assert told == 'input.city: 1 is not of type "string"'


BY_NUMBER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "7": {"type": "boolean"},
        "007": {"type": "integer"},
        "list": {"type": "array", "items": {"properties": {"0": {"type": "string"}}}},
        "union": {
            "anyOf": [
                {"type": "object", "properties": {"0": {"const": "x"}, "1": {"type": "string"}}},
                {"type": "object", "properties": {"0": {"const": "y"}, "1": {"type": "integer"}}},
            ]
        },
    },
}


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"7": null}', {}),
        ('{"007": null}', {}),
        ('{"list": [{"0": null}]}', {"list": [{}]}),
        ('{"union": {"0": "y", "1": null}}', {"union": {"0": "y"}}),
        ('{"007": "5"}', {"007": 5}),
    ],
)
def test_a_name_of_digits_is_edited_as_any_other_C3_C5(arguments: str, read: Any) -> None:
    """The validator tells such a place as a position in a list."""
    call = parse(DynamicTool("t", "", BY_NUMBER), arguments)
    assert call.arguments == read


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"7": "no"}', '["7"]: "no" is not of type "boolean"'),
        ('{"007": true}', '["007"]: true is not of type "integer"'),
        ('{"list": [{"0": 1}]}', 'list[0]["0"]: 1 is not of type "string"'),
        ('{"union": {"0": "y", "1": "q"}}', 'union["1"]: "q" is not of type "integer"'),
    ],
)
def test_a_name_of_digits_is_told_with_its_value_Y4(arguments: str, told: str) -> None:
    assert refusal(DynamicTool("t", "", BY_NUMBER), arguments) == told


def test_a_value_that_fits_several_of_oneOf_is_told_so_and_not_what_the_others_want_Y4() -> None:
    branches = [{"enum": [1]}, {"type": "integer"}, {"type": "number"}]
    declared = DynamicTool("t", "", {"properties": {"n": {"oneOf": branches}}})
    told = refusal(declared, '{"n": 4}')
    assert told == "n: 4 is valid under more than one of the schemas listed in the 'oneOf' keyword"
    assert refusal(declared, '{"n": "x"}').startswith('n: "x" is not one of 1')


# --- the tool's own check -----------------------------------------------------------------------


def raise_for_bergen(arguments: dict[str, Any]) -> dict[str, Any]:
    """A check that knows no Bergen, and breaks at the third day."""
    if arguments["city"] == "Bergen":
        raise ToolError("No such city.")
    if arguments.get("days") == 3:
        raise RuntimeError("secret")
    return arguments


def test_a_check_that_gives_a_coroutine_is_refused_and_leaves_none_waiting_Y8a(
    caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    async def later(arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

    hidden: Any = lambda arguments: later(arguments)  # noqa: E731 - not seen to be async
    assert refusal(weather_tool(validate=hidden), '{"city": "x"}') == OWN_CHECK
    assert "validate= gave coroutine, not a dict" in caplog.text
    assert not [one for one in recwarn if "never awaited" in str(one.message)]


def test_a_check_that_gives_a_name_that_is_no_text_is_refused_Y8a(
    caplog: pytest.LogCaptureFixture,
) -> None:
    odd: Any = lambda arguments: {**arguments, 3: "three"}  # noqa: E731
    assert refusal(weather_tool(validate=odd), '{"city": "x"}') == OWN_CHECK
    assert "validate= gave a dict with a name that is not a text" in caplog.text


def test_arguments_that_fit_after_an_edit_are_still_checked_by_the_tool_C5_Y8a() -> None:
    declared = weather_tool(validate=raise_for_bergen)
    assert parse(declared, '{"city": "Oslo", "days": "2"}').arguments["days"] == 2
    assert refusal(declared, '{"city": "Bergen", "days": "2"}') == "No such city."
    assert refusal(declared, '{"city": "Oslo", "days": "3"}') == OWN_CHECK


def test_an_edit_by_the_program_is_checked_by_the_tool_and_quotes_only_its_ToolError_Y8() -> None:
    call = parse(weather_tool(validate=raise_for_bergen), '{"city": "Oslo"}')
    assert call.edited(days=2).arguments == {"city": "Oslo", "days": 2}
    with pytest.raises(InvalidArgumentsError) as caught:
        call.edited(city="Bergen")
    assert caught.value.detail == "No such city."
    with pytest.raises(InvalidArgumentsError) as caught:
        call.edited(days=3)
    assert caught.value.detail == "they were refused by this tool's own check"
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert call.arguments == {"city": "Oslo"}


def decode_city(arguments: dict[str, Any]) -> dict[str, Any]:
    """A check that can't be done twice: it decodes a value, and adds what the schema refuses."""
    city = base64.b64decode(arguments["city"], validate=True).decode()
    return {**arguments, "city": city, "seen": True}


OSLO, BERGEN = "T3Nsbw==", "QmVyZ2Vu"


def test_whichever_way_a_call_is_edited_its_values_are_cleaned_once_Y8_Y8a() -> None:
    declared = weather_tool(validate=decode_city)
    call = parse(declared, json.dumps({"city": OSLO, "days": "2"}))
    cleaned = {"city": "Oslo", "days": 2, "seen": True}
    assert call.arguments == cleaned
    for edited, changed in (
        (call.edited(days=3), {"days": 3}),
        (call.edited(city=BERGEN), {"city": "Bergen"}),
        (call.edited(days=1).edited(days=3), {"days": 3}),
        (call.edited(city=BERGEN).edited(days=3), {"city": "Bergen", "days": 3}),
        (call.with_input(DynamicInput({**call.input.values, "days": 3})), {"days": 3}),
        (call.with_input(DynamicInput(city=BERGEN, days=2)), {"city": "Bergen"}),
        (call.with_input(call.edited(days=3).input), {"days": 3}),
        (call.with_input(DynamicInput(cleaned)), {}),
    ):
        assert edited.arguments == {**cleaned, **changed}
    assert call.with_input(DynamicInput(city=OSLO)).arguments == {"city": "Oslo", "seen": True}
    without = DynamicInput({"city": "Oslo", "seen": True})
    assert call.with_input(without).arguments == {"city": "Oslo", "seen": True}
    for refused in ({"city": "no Base64"}, {"city": BERGEN, "seen": False}, {"days": 3}):
        with pytest.raises(InvalidArgumentsError):
            call.with_input(DynamicInput(refused))


def test_what_a_check_took_away_is_given_to_it_again_Y8a() -> None:
    def give_days(arguments: dict[str, Any]) -> dict[str, Any]:
        tags = arguments.pop("tags", [])
        tags.append("changed in place")
        return {**arguments, "days": len(tags)}

    call = parse(weather_tool(validate=give_days), '{"city": "Oslo", "tags": ["a", "b"]}')
    assert call.arguments == {"city": "Oslo", "days": 3}
    edited = call.edited(city="Bergen")
    assert edited.arguments == {"city": "Bergen", "days": 3}
    assert edited.edited(city="Moss").arguments == {"city": "Moss", "days": 3}


def test_what_an_edited_input_carries_is_not_seen_Y8a() -> None:
    call = parse(weather_tool(validate=decode_city), json.dumps({"city": OSLO}))
    edited, made = call.edited(city=BERGEN), DynamicInput(city="Bergen", seen=True)
    for input in (edited.input, edited.input.model_copy(deep=True)):
        assert input == made
        assert (repr(input), dict(input)) == (repr(made), dict(made))
        assert input.model_dump() == made.model_dump()
        assert input.model_dump_json() == made.model_dump_json()
    assert pickle.loads(pickle.dumps(edited.input)) == made
    # The check of another tool has seen nothing of it.
    other = parse(weather_tool("other", validate=decode_city), json.dumps({"city": OSLO}))
    with pytest.raises(InvalidArgumentsError):
        other.with_input(edited.input)


def test_another_input_is_validated_where_the_text_of_the_call_fits_no_more_Y8() -> None:
    declared = weather_tool()
    selector = Toolset.of("One", [declared]).selector(declared.name)
    broken = ToolMetadata("c1", declared.name, '{"days": []}')
    call: ToolCall[Any, Any] = ToolCall(broken, DynamicInput(city="Oslo"), selector)
    assert call.with_input(DynamicInput(city="Bergen")).arguments == {"city": "Bergen"}
    with pytest.raises(InvalidArgumentsError, match="Field required"):
        call.with_input(DynamicInput(days=2))


# --- a union that is offered under `input` ------------------------------------------------------


def test_an_object_as_a_text_under_input_is_decoded_with_a_receipt_C5_D6() -> None:
    call = parse(DynamicTool("t", "", UNION), '{"input": "{\\"n\\": 1}"}')
    assert call.arguments == {"n": 1}
    assert call.repairs == (("input", "json_string"),)


@pytest.mark.parametrize(
    "text",
    ["no JSON", "[1]", '{\\"n\\": true}', "[" * 500],
    ids=["no JSON", "a list", "what doesn't fit", "nested too deeply"],
)
def test_any_other_text_under_input_is_no_object_D6(text: str) -> None:
    told = refusal(DynamicTool("t", "", UNION), f'{{"input": "{text}"}}')
    assert told == "input: Input should be an object"


def test_what_is_wrong_under_input_is_no_property_of_an_open_schema_C5_D6_Y2() -> None:
    # As servers write it: a condition, nothing required, and any further property is taken.
    path = {"path": {"type": "string"}, "limit": {"type": "integer"}}
    condition = {"if": {"required": ["limit"]}, "then": {"required": ["path"]}}
    declared = DynamicTool("t", "", {"properties": path, "allOf": [condition]})
    call = parse(declared, '{"input": {"path": "/etc", "limit": "1"}}')
    assert call.arguments == {"path": "/etc", "limit": 1}
    assert call.repairs == (("input.limit", "json_string"),)
    assert "input.limit" in refusal(declared, '{"input": {"path": "/etc", "limit": "x"}}')
    for wrong in ("3", "null", "[]", '"x"'):
        told = refusal(declared, f'{{"input": {wrong}}}')
        assert told == "input: Input should be an object"
    assert parse(declared, '{"path": "/etc"}').arguments == {"path": "/etc"}
    assert parse(declared, '{"path": "/etc", "input": 3}').arguments["input"] == 3


@pytest.mark.parametrize("place", ["beside", "in a branch", "in a reference"])
def test_a_property_of_the_name_input_is_read_without_being_wrapped_D6(place: str) -> None:
    named = {"properties": {"input": {"type": "string"}}}
    schema = {
        "beside": {**named, "allOf": [{}]},
        "in a branch": {"anyOf": [{"required": ["n"]}, named]},
        "in a reference": {"allOf": [{"$ref": "#/$defs/named"}], "$defs": {"named": named}},
    }[place]
    declared = DynamicTool("t", "", schema)
    assert parse(declared, '{"input": "x"}').arguments == {"input": "x"}
    assert parse(declared, '{"input": {"input": "x"}}').arguments == {"input": "x"}


def test_a_reference_by_the_own_address_leads_to_where_its_part_is_sent_D6() -> None:
    address = "https://example.org/schema"
    schema = {
        "$id": address,
        "anyOf": [
            {
                "type": "object",
                "properties": {"n": {"$ref": f"{address}#/$defs/n"}},
                "required": ["n"],
            },
            {"type": "object", "properties": {"r": {"$ref": f"{address}#"}}, "required": ["r"]},
        ],
        "$defs": {"n": {"type": "integer"}},
    }
    declared = DynamicTool("t", "", schema)
    first, second = declared.definition.input_schema["properties"]["input"]["anyOf"]
    assert first["properties"]["n"] == {"$ref": "#/$defs/n"}
    assert second["properties"]["r"] == {"$ref": "#/properties/input"}
    assert parse(declared, '{"input": {"r": {"n": 1}}}').arguments == {"r": {"n": 1}}


DRAFT_7 = "http://json-schema.org/draft-07/schema#"
NUMBER = {"$ref": "#/properties/n"}


@pytest.mark.parametrize(
    ("draft", "holder", "fits", "does_not"),
    [
        (DRAFT_7, {"items": [NUMBER]}, [1], ["x"]),
        (DRAFT_7, {"items": [{}], "additionalItems": NUMBER}, [0, 1], [0, "x"]),
        (
            DRAFT_7,
            {"dependencies": {"a": {"properties": {"b": NUMBER}}}},
            {"a": 0, "b": 1},
            {"a": 0, "b": "x"},
        ),
        (None, {"prefixItems": [{}], "unevaluatedItems": NUMBER}, [0, 1], [0, "x"]),
        (None, {"unevaluatedProperties": NUMBER}, {"a": 1}, {"a": "x"}),
        (None, {"properties": {"const": NUMBER}}, {"const": 1}, {"const": "x"}),
    ],
    ids=["items", "additionalItems", "dependencies", "unevaluatedItems", "more", "properties"],
)
def test_references_lead_to_the_moved_parts_wherever_they_stand_D6(
    draft: str | None, holder: dict[str, Any], fits: Any, does_not: Any
) -> None:
    schema = {
        "properties": {"n": {"type": "integer"}, "held": holder},
        "anyOf": [{"required": ["held"]}],
        **({} if draft is None else {"$schema": draft}),
    }
    sent = DynamicTool("t", "", schema).definition.input_schema
    read = DynamicTool("sent", "", sent)  # refuses a reference that leads nowhere
    assert parse(read, json.dumps({"input": {"held": fits}})).arguments["input"] == {"held": fits}
    assert refusal(read, json.dumps({"input": {"held": does_not}}))


def test_a_value_that_looks_like_a_reference_stays_as_it_is_D6() -> None:
    looks = {"$ref": "#/properties/n"}
    schema = {
        "properties": {"n": {"$ref": "#/$defs/n"}, "v": {"const": looks, "default": looks}},
        "anyOf": [{"required": ["v"]}],
        "$defs": {"n": {"type": "integer"}},
    }
    sent = DynamicTool("t", "", schema).definition.input_schema
    assert sent["properties"]["input"]["properties"] == schema["properties"]


def test_references_are_read_against_the_address_of_the_part_around_them_D6() -> None:
    held = {
        "$id": "held.json",
        "type": "object",
        "properties": {
            "again": {"$ref": "#"},
            "count": {"$ref": "#/$defs/count"},
            "whole": {"$ref": "root.json"},
            "name": {"$ref": "https://example.org/root.json#/properties/name"},
        },
        "$defs": {"count": {"type": "integer"}},
        "additionalProperties": False,
    }
    schema = {
        "$id": "https://example.org/root.json",
        "properties": {
            "held": held,
            "name": {"type": "string"},
            "whole": {"$ref": "https://example.org/root.json"},
            "near": {"$ref": "root.json#/$defs/near"},
        },
        "$defs": {"near": {"type": "boolean"}},
        "anyOf": [{"additionalProperties": True}],
        "additionalProperties": False,
    }
    sent = DynamicTool("t", "", schema).definition.input_schema
    moved = sent["properties"]["input"]["properties"]
    assert moved["whole"] == {"$ref": "#/properties/input"}
    assert moved["near"] == {"$ref": "#/$defs/near"}
    assert moved["held"]["properties"]["again"] == {"$ref": "#"}
    read = DynamicTool("sent", "", sent)
    fits = {
        "near": True,
        "whole": {"name": "x"},
        "held": {"again": {"count": 1}, "whole": {"near": False}, "name": "x"},
    }
    assert parse(read, json.dumps({"input": fits})).arguments == {"input": fits}
    for wrong in (
        {"near": 1},
        {"whole": {"near": 1}},
        {"held": {"again": {"near": True}}},
        {"held": {"whole": {"count": 1}}},
        {"held": {"name": 1}},
    ):
        assert refusal(read, json.dumps({"input": wrong}))


# --- edits of large values, and where nothing is edited -----------------------------------------


def test_a_value_that_fails_in_very_many_places_is_told_and_not_edited_C5() -> None:
    schema = {
        "type": "object",
        "properties": {"ns": {"type": "array", "items": {"type": "integer"}}},
    }
    declared = DynamicTool("t", "", schema)
    few = ", ".join(['"1"'] * 100)
    assert parse(declared, f'{{"ns": [{few}]}}').arguments == {"ns": [1] * 100}
    many = ", ".join(['"1"'] * 1001)
    assert 'ns[0]: "1" is not of type "integer"' in refusal(declared, f'{{"ns": [{many}]}}')


def test_unions_nested_beyond_the_stack_edit_nothing_and_do_not_raise_C5(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def overflow(*given: Any) -> Any:
        raise RecursionError

    declared = weather_tool()
    monkeypatch.setattr("lutumpy.tools.schema_failures.find_edits", overflow)
    assert refusal(declared, '{"city": "x", "days": "2"}') == 'days: "2" is not of type "integer"'


def test_a_json_text_nested_beyond_the_stack_is_said_to_be_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lutumpy.tools import schema_failures

    def overflow(*given: Any, **settings: Any) -> Any:
        raise RecursionError

    monkeypatch.setattr(schema_failures, "from_json", overflow)
    with pytest.raises(ValueError, match="nested too deeply"):
        schema_failures.read_value("[]")


# --- schemas that cannot be used ----------------------------------------------------------------


def test_a_schema_nested_deeper_than_it_can_be_copied_is_refused_Y3() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(300):
        schema = {"not": schema}
    with pytest.raises(DeclarationError, match="nested too deeply"):
        DynamicTool("deep", "", {"type": "object", "properties": {"a": schema}})


def test_a_schema_that_holds_itself_is_not_json_Y1() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["a"] = schema
    with pytest.raises(DeclarationError, match="not JSON"):
        DynamicTool("round", "", schema)


def test_half_of_a_surrogate_pair_in_a_schema_is_not_json_Y1() -> None:
    with pytest.raises(DeclarationError, match="not JSON"):
        DynamicTool("half", "", {"properties": {"a": {"const": "\ud800"}}})


def test_a_schema_of_very_many_brackets_is_counted_by_its_checks_Y3(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The real bound takes seconds to reach.
    monkeypatch.setattr("lutumpy.tools.json_schema._MOST_CHECKS", 1000)
    # Constants are no schemas, so the brackets in them cost nothing.
    constants = {"type": "object", "properties": {"a": {"enum": [[]] * 1001}}}
    assert parse(DynamicTool("t", "", constants), '{"a": []}').arguments == {"a": []}
    schemas = {"type": "object", "properties": {"a": {"anyOf": [{}] * 1001}}}
    with pytest.raises(DeclarationError, match="can't be declared"):
        DynamicTool("t", "", schemas)


def test_without_the_validator_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(ImportError, match=r"need jsonschema-rs; install it with: .*\[schema\]"):
        DynamicTool("t", "", CITY)


def test_a_metaschema_that_nobody_knows_is_refused_Y3() -> None:
    unknown = "https://json-schema.org/draft/2099-01/schema"
    with pytest.raises(DeclarationError, match="2099-01"):
        DynamicTool("t", "", {"properties": {"a": {"$ref": unknown}}})


def test_a_validator_that_asks_for_another_document_gets_none_Y3(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make = jsonschema_rs.validator_for

    def make_asking(document: Any, **settings: Any) -> Any:
        with pytest.raises(ValueError, match="not followed"):
            settings["retriever"]("https://example.org/other")
        return make({"$ref": "#/nowhere"}, **settings)

    monkeypatch.setattr(jsonschema_rs, "validator_for", make_asking)
    with pytest.raises(DeclarationError, match=r"example\.org/other'.* nothing was fetched"):
        DynamicTool("t", "", CITY)


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (ValueError("Recursion limit reached"), "its schema is nested too deeply"),
        (ValueError("a keyword is odd"), "its schema can't be used: a keyword is odd"),
        (TypeError("unsupported type"), "its schema can't be used: unsupported type"),
    ],
)
def test_whatever_the_validator_refuses_is_a_declaration_error_Y1(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, words: str
) -> None:
    def refuse(document: Any, **settings: Any) -> Any:
        raise raised

    monkeypatch.setattr(jsonschema_rs, "validator_for", refuse)
    with pytest.raises(DeclarationError) as caught:
        DynamicTool("odd", "", CITY)
    assert str(caught.value) == f"tool 'odd' can't be declared: {words}"


# --- places -------------------------------------------------------------------------------------


def test_what_was_made_by_hand_without_a_selector_goes_by_its_name() -> None:
    offered = AppTools.with_dynamic_tools({AppTools.more: [weather_tool()]})
    metadata = ToolMetadata("c1", "get-weather", '{"city": "x"}')
    by_hand: HandledTool[Any, Any] = HandledTool(metadata, DynamicInput(city="x"), "sunny")
    assert by_hand.selector is None
    assert offered.more.matches(by_hand)
    assert not AppTools.more.matches(by_hand)
    assert not AppTools.data[DataTools.plugins].matches(by_hand)


def test_a_place_equals_places_alone() -> None:
    assert AppTools.more == AppTools.more
    assert AppTools.more != "more"
    assert AppTools.more != AppTools.search
    assert hash(AppTools.more) == hash(AppTools.more)
