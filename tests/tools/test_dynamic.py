"""Tools that are declared at run time, by a name, a description and a JSON Schema."""

import gc
import json
import pickle
import warnings
from typing import Any

import pytest
from dynamic_toolkit import CITY, AppTools, DataTools, ReadFile, search, weather_tool
from pydantic import BaseModel

from lutumpy import (
    DeclarationError,
    DynamicInput,
    DynamicOutput,
    DynamicTool,
    InvalidArgumentsError,
    InvalidToolConstraints,
    MalformedArgumentsError,
    Session,
    TextPart,
    ToolAvailability,
    ToolCall,
    ToolError,
    ToolMetadata,
    ToolRequirement,
    Toolset,
    Transcript,
    UnknownToolError,
    dynamic,
    nested,
    tool,
)
from lutumpy.adapters.anthropic import AnthropicMessages


def parse(declared: DynamicTool, arguments: str) -> ToolCall[DynamicInput, DynamicOutput]:
    metadata = ToolMetadata("c1", declared.name, arguments)
    return Toolset.of("One", [declared]).parse(metadata)


def refusal(declared: DynamicTool, arguments: str) -> str:
    with pytest.raises(InvalidArgumentsError) as caught:
        parse(declared, arguments)
    return caught.value.detail


def names(tools: type[Toolset[Any]]) -> list[str]:
    return [selector.name for selector in tools.selectors()]


# --- declaring --------------------------------------------------------------------------------


def test_the_schema_is_sent_as_given_with_type_and_properties_filled_in_Y1() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    given = {"$schema": draft, "required": ["a"]}
    sent = DynamicTool("t", "", given).definition.input_schema
    assert sent == {**given, "type": "object", "properties": {}}
    assert given == {"$schema": draft, "required": ["a"]}


PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "boss": {"$ref": "#/definitions/person"}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("beside", [{}, {"type": "object"}, {"title": "A person."}], ids=str)
@pytest.mark.parametrize("steps", [1, 2])
def test_what_a_reference_at_the_root_names_is_sent_as_the_root_Y1(
    steps: int, beside: dict[str, Any]
) -> None:
    definitions = {"person": PERSON, "named": {"$ref": "#/definitions/person"}}
    name = "person" if steps == 1 else "named"
    given = {"$ref": f"#/definitions/{name}", "definitions": definitions, **beside}
    declared = DynamicTool("t", "", given)
    kept = {"definitions": {"person": PERSON}}  # it holds itself
    assert declared.definition.input_schema == {**PERSON, **kept, **beside}
    assert declared.schema == given
    assert parse(declared, '{"name": "x", "boss": {"name": "y"}}').arguments["name"] == "x"
    assert refusal(declared, "{}") == "name: Field required"
    union = {"anyOf": [{"$ref": "#/definitions/person"}]}
    given = {"$ref": "#/definitions/union", "definitions": {**definitions, "union": union}}
    sent = DynamicTool("t", "", given).definition.input_schema
    assert sent["properties"] == {"input": union}
    assert sent["definitions"] == {"person": PERSON}


@pytest.mark.parametrize(
    "given",
    [
        {"$ref": "#", "properties": {"a": {}}},
        {"$ref": "#/$defs/closed", "properties": {"a": {}}},
        {"$ref": "#/$defs/closed", "required": ["a"], "minProperties": 1},
        {"$ref": "#/$defs/elsewhere"},
    ],
    ids=str,
)
def test_a_reference_at_the_root_stays_where_its_place_would_change_it_Y1(
    given: dict[str, Any],
) -> None:
    closed = {"properties": {"b": {}}, "required": ["b"], "additionalProperties": False}
    elsewhere = {"$id": "https://example.org/x", "properties": {"b": {"$ref": "#/$defs/n"}}}
    elsewhere["$defs"] = {"n": {"type": "integer"}}
    given["$defs"] = {"closed": closed, "elsewhere": elsewhere}
    sent = DynamicTool("t", "", given).definition.input_schema
    assert sent == {"properties": {}, **given, "type": "object"}


def test_the_type_of_the_root_may_be_a_list_of_one_Y1() -> None:
    sent = DynamicTool("t", "", {"type": ["object"], "properties": {"a": {}}})
    assert sent.definition.input_schema == {"type": "object", "properties": {"a": {}}}


def test_what_the_user_changes_afterwards_changes_no_tool() -> None:
    given: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    declared = DynamicTool("t", "", given)
    given["properties"]["a"]["type"] = "integer"
    assert parse(declared, '{"a": "x"}').arguments == {"a": "x"}
    assert declared.schema["properties"] == {"a": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "array"}, "always an object"),
        ({"type": ["object", "null"]}, "always an object"),
        ({"$ref": "#/$defs/s", "$defs": {"s": {"type": "string"}}}, "type 'string'"),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/s"}, "s": {"type": "array"}}},
            "type 'array'",
        ),
        ({"type": "objekt"}, "its schema is broken"),
        ({"properties": {"a": {"minLength": "x"}}}, "minLength"),
        ({"properties": {"a": {"$ref": "#/$defs/nope"}}}, "nope"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "nothing was fetched"),
        ({"$schema": "http://example.com/mine", "type": "object"}, "http://example.com/mine"),
        ({"properties": {"a": {"pattern": r"(a)\1"}}}, "linear time"),
        ({"properties": {"a": {"default": {1, 2}}}}, "not JSON"),
        ({"properties": {"a": {"default": float("nan")}}}, "not JSON"),
        (True, "a mapping"),
        ("{}", "a mapping"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_by_name_Y1_Y3(schema: Any, words: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        DynamicTool("broken", "", schema)
    assert "'broken'" in str(caught.value)
    assert words in str(caught.value)
    with pytest.raises(DeclarationError, match="output_schema") as caught:
        DynamicTool("broken", "", CITY, output_schema={"$ref": "http://127.0.0.1:9/x"})
    assert "nothing was fetched" in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "a.b", "a\n", 3, None])
def test_names_are_those_of_tools_D1(name: Any) -> None:
    with pytest.raises(DeclarationError, match="not a tool name"):
        DynamicTool(name, "", CITY)
    assert DynamicTool("x" * 64, "", CITY).name == "x" * 64


def test_settings_of_a_wrong_kind_are_refused() -> None:
    async def later(arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

    def one_by_one(arguments: dict[str, Any]) -> Any:
        yield arguments

    async def one_by_one_later(arguments: dict[str, Any]) -> Any:
        yield arguments

    wrong: list[dict[str, Any]] = [
        {"run": "code"},
        {"run": lambda: None},
        {"run": one_by_one},
        {"run": one_by_one_later},
        {"validate": 3},
        {"validate": later},
        {"validate": one_by_one},
        {"timeout": 0},
        {"effect": "twice"},
        {"strict": "yes"},
        {"output_schema": True},
    ]
    for settings in wrong:
        with pytest.raises(DeclarationError):
            DynamicTool("t", "", CITY, **settings)
    with pytest.raises(DeclarationError, match="description"):
        DynamicTool("t", None, CITY)  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="'t'"):
        DynamicTool("t", "", {"type": "object"} | {"additionalProperties": True}, strict=True)


def test_equal_tools_are_equal_and_a_renamed_one_keeps_its_first_name_Y5() -> None:
    assert weather_tool() == weather_tool()
    assert len({weather_tool(), weather_tool()}) == 1
    assert weather_tool() != weather_tool(effect="read")
    assert weather_tool() != "get-weather"
    renamed = weather_tool().renamed("gh_weather").renamed("x")
    assert (renamed.name, renamed.original_name) == ("x", "get-weather")
    assert parse(renamed, '{"city": "Oslo"}').metadata.name == "x"
    with pytest.raises(DeclarationError):
        renamed.renamed("a b")


# --- reading calls ----------------------------------------------------------------------------


def test_arguments_are_the_values_of_the_json() -> None:
    call = parse(weather_tool(), '{"city": "Oslo", "days": 2}')
    assert call.input.values == {"city": "Oslo", "days": 2}
    assert call.arguments == {"city": "Oslo", "days": 2}
    assert isinstance(call.input, BaseModel)
    assert call.input == DynamicInput({"city": "Oslo", "days": 2})
    assert call.input.model_dump() == {"city": "Oslo", "days": 2}


def test_names_that_python_or_pydantic_use_arrive() -> None:
    declared = DynamicTool("t", "", {"type": "object"})
    text = '{"self": 1, "class": 2, "model_config": 3, "user-id": 4, "values": 5, "": 6}'
    call = parse(declared, text)
    wanted = {"self": 1, "class": 2, "model_config": 3, "user-id": 4, "values": 5, "": 6}
    assert call.arguments == wanted
    assert call.input.values == wanted


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ("{}", ["city: Field required"]),
        ('{"city": "x", "zz": 1, "aa": 2}', ["zz: Extra inputs are not permitted"] * 1),
        ('{"city": 3}', ['city: 3 is not of type "string"']),
        ('{"city": "x", "tags": ["a", 1]}', ['tags[1]: 1 is not of type "string"']),
        ('{"days": 1.5}', ["city: Field required", 'days: 1.5 is not of type "integer"']),
    ],
)
def test_what_does_not_fit_is_told_field_by_field_Y2_Y4(arguments: str, lines: list[str]) -> None:
    told = refusal(weather_tool(), arguments).splitlines()
    for line in lines:
        assert line in told


def test_extra_names_are_told_in_the_order_of_the_model_Y4() -> None:
    told = refusal(weather_tool(), '{"city": "x", "zz": 1, "aa": 2, "mm": 3}')
    assert [line.partition(":")[0] for line in told.splitlines()] == ["zz", "aa", "mm"]


def test_long_values_are_cut_and_at_most_ten_fields_are_told_C3() -> None:
    told = refusal(weather_tool(), '{"city": [' + ", ".join(['"' + "x" * 50 + '"'] * 50) + "]}")
    assert len(told) < 300
    many = "{" + ", ".join([f'"f{n}": 1' for n in range(30)]) + "}"
    assert refusal(weather_tool(), many).splitlines()[-1].startswith("… and ")


UNION = {
    "type": "object",
    "properties": {
        "o": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"k": {"const": "a"}, "x": {"type": "integer"}},
                    "required": ["k", "x"],
                },
                {
                    "type": "object",
                    "properties": {"k": {"const": "b"}, "y": {"type": "string"}},
                    "required": ["k", "y"],
                },
            ]
        },
        "u": {"anyOf": [{"type": "string", "minLength": 3}, {"type": "null"}]},
        "v": {"anyOf": [{"type": "integer"}, {"type": "array"}]},
    },
}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"o": {"k": "a", "x": "s"}}', 'o.x: "s" is not of type "integer"'),
        ('{"o": {"k": "b"}}', "o.y: Field required"),
        ('{"u": "ab"}', 'u: "ab" is shorter than 3 characters'),
        ('{"v": true}', 'v: true is not of type "integer" or: true is not of type "array"'),
    ],
)
def test_the_branch_that_was_meant_is_told_alone_Y4(arguments: str, told: str) -> None:
    assert refusal(DynamicTool("t", "", UNION), arguments) == told


def test_a_json_text_in_a_string_is_decoded_once_with_a_receipt_C5() -> None:
    call = parse(weather_tool(), '{"city": "x", "days": "3", "tags": "[\\"a\\"]"}')
    assert call.arguments == {"city": "x", "days": 3, "tags": ["a"]}
    assert [repair.path for repair in call.repairs] == ["days", "tags"]
    assert "days" in refusal(weather_tool(), '{"city": "x", "days": "three"}')


def test_null_for_an_optional_field_that_takes_none_means_that_it_was_left_out_D5() -> None:
    call = parse(weather_tool(), '{"city": "x", "days": null}')
    assert call.arguments == {"city": "x"}
    assert call.repairs == ()
    assert "city" in refusal(weather_tool(), '{"city": null}')


ONE_OF_TWO: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "name": {"type": "string"},
        "n": {"type": "integer", "anyOf": [{"minimum": 0}, {"const": -1}]},
    },
}
UNION_BESIDE = {
    "required": {"anyOf": [{"required": ["id"]}, {"required": ["name"]}]},
    "properties": {"oneOf": [{"properties": {"n": {"minimum": 1}}}, {"required": ["name"]}]},
    "together": {"allOf": [{"properties": {"n": {"minimum": 1}}}, {"required": ["id"]}]},
    "reference": {"allOf": [{"$ref": "#/$defs/more"}]},
}


@pytest.mark.parametrize("beside", UNION_BESIDE.values(), ids=UNION_BESIDE)
def test_what_stands_beside_a_union_holds_as_well_C5_D5(beside: dict[str, Any]) -> None:
    schema = {**ONE_OF_TWO, **beside}
    more = {"more": {"properties": {"n": {"maximum": 9}}}}
    declared = DynamicTool("t", "", {"properties": {"by": schema}, "$defs": more})
    call = parse(declared, '{"by": {"id": "x", "name": null, "n": "3"}}')
    assert call.arguments == {"by": {"id": "x", "n": 3}}
    assert call.repairs == (("by.n", "json_string"),)
    assert "by.n" in refusal(declared, '{"by": {"id": "x", "n": "three"}}')


def test_null_is_left_out_of_a_union_of_required_names_where_one_is_left_D5() -> None:
    either = {**ONE_OF_TWO, **UNION_BESIDE["required"]}
    declared = DynamicTool("t", "", {"properties": {"by": either}})
    assert parse(declared, '{"by": {"id": null, "name": "x"}}').arguments == {"by": {"name": "x"}}
    assert "by.id" in refusal(declared, '{"by": {"id": null}}')


def test_the_branch_that_a_constant_names_says_what_its_properties_take_C5_D5() -> None:
    card = {"kind": {"const": "card"}, "note": {"type": "string"}, "n": {"type": "integer"}}
    cash = {"kind": {"enum": ["cash"]}, "note": {"type": ["string", "null"]}, "n": {}}
    branches = [
        {"type": "object", "properties": card, "required": ["kind"]},
        {"type": "object", "properties": cash, "required": ["kind"]},
    ]
    declared = DynamicTool("t", "", {"properties": {"by": {"oneOf": branches}}})
    call = parse(declared, '{"by": {"kind": "card", "note": null, "n": "3"}}')
    assert call.arguments == {"by": {"kind": "card", "n": 3}}
    as_it_is = {"by": {"kind": "cash", "note": None, "n": "3"}}
    assert parse(declared, json.dumps(as_it_is)).arguments == as_it_is
    assert "by.note" in refusal(declared, '{"by": {"kind": "card", "note": 3}}')


def test_the_places_of_a_tuple_of_older_drafts_are_looked_up_C5() -> None:
    pair = {"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "object"}}
    draft = "http://json-schema.org/draft-07/schema#"
    declared = DynamicTool("t", "", {"$schema": draft, "properties": {"pair": pair}})
    assert parse(declared, '{"pair": ["1", "{}"]}').arguments == {"pair": [1, {}]}


@pytest.mark.parametrize(
    "arguments", ["[]", "3", '"x"', "{", '{"city": NaN}', '{"city": "\\ud800"}']
)
def test_what_is_not_a_json_object_is_malformed_C2(arguments: str) -> None:
    with pytest.raises(MalformedArgumentsError):
        parse(weather_tool(), arguments)


@pytest.mark.parametrize("arguments", ["", " ", "null"])
def test_nothing_means_no_arguments_C4(arguments: str) -> None:
    assert parse(DynamicTool("t", "", {"type": "object"}), arguments).arguments == {}


ROOT_UNION = {
    "anyOf": [
        {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]},
        {"type": "object", "properties": {"r": {"$ref": "#"}}, "required": ["r"]},
    ],
    "$defs": {"n": {"type": "integer"}},
}


def test_a_union_at_the_root_is_wrapped_and_both_forms_are_read_D6_Y1() -> None:
    declared = DynamicTool("t", "", ROOT_UNION)
    sent = declared.definition.input_schema
    assert sent["required"] == ["input"]
    assert sent["$defs"] == ROOT_UNION["$defs"]
    first, second = sent["properties"]["input"]["anyOf"]
    assert first["properties"]["n"] == {"$ref": "#/$defs/n"}
    assert second["properties"]["r"] == {"$ref": "#/properties/input"}
    assert parse(declared, '{"input": {"n": 1}}').arguments == {"n": 1}
    assert parse(declared, '{"r": {"n": 1}}').arguments == {"r": {"n": 1}}
    call = parse(declared, '{"input": {"n": "1"}}')
    assert call.arguments == {"n": 1}
    assert call.repairs[0].path == "input.n"
    assert refusal(declared, '{"input": 3}') == "input: Input should be an object"
    assert "n" in refusal(declared, '{"n": "x"}')


def test_formats_are_checked_and_the_draft_is_the_declared_one_Y2() -> None:
    dated = {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}}
    assert 'day: "x" is not a "date"' in refusal(DynamicTool("t", "", dated), '{"day": "x"}')
    # A reference hides what stands beside it in draft 7, and doesn't in 2020-12.
    beside: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/s", "maxLength": 1}},
        "definitions": {"s": {"type": "string"}},
    }
    old = {"$schema": "http://json-schema.org/draft-07/schema#", **beside}
    assert parse(DynamicTool("t", "", old), '{"a": "long"}').arguments == {"a": "long"}
    assert "a" in refusal(DynamicTool("t", "", beside), '{"a": "long"}')


def test_a_check_of_the_tool_cleans_the_arguments_Y8a() -> None:
    def strip(arguments: dict[str, Any]) -> dict[str, Any]:
        return {**arguments, "city": arguments["city"].strip()}

    declared = weather_tool(validate=strip)
    assert parse(declared, '{"city": " Oslo "}').arguments == {"city": "Oslo"}
    assert parse(declared, '{"city": " Oslo ", "days": "2"}').arguments["days"] == 2
    assert "Field required" in refusal(declared, "{}")


def test_what_the_check_raises_reads_like_any_other_issue_Y8a(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(error: Any) -> Any:
        def check(arguments: dict[str, Any]) -> dict[str, Any]:
            if isinstance(error, Exception):
                raise error
            return error  # type: ignore[no-any-return]

        return check

    told = refusal(weather_tool(validate=refuse(ToolError("Unknown city."))), '{"city": "x"}')
    assert told == "Unknown city."
    for broken in (ValueError("secret"), RuntimeError("secret"), None, [1]):
        told = refusal(weather_tool(validate=refuse(broken)), '{"city": "x"}')
        assert "own check" in told
        assert "secret" not in told


# --- toolsets ---------------------------------------------------------------------------------


def test_static_tools_come_first_whatever_fills_the_places_Y6() -> None:
    offered = AppTools.with_dynamic_tools(
        {
            AppTools.more: [weather_tool()],
            AppTools.data[DataTools.plugins]: [weather_tool("plugin")],
        }
    )
    assert names(AppTools) == ["search", "read_file"]
    assert names(offered) == ["search", "read_file", "get-weather", "plugin"]
    assert offered.default_selectors() == offered.selectors()
    assert [s.name for s in offered.more] == ["get-weather"]
    assert [s.name for s in offered.data[DataTools.plugins]] == ["plugin"]
    assert offered.data.plugins == offered.data[DataTools.plugins]


def test_a_place_is_a_collection_of_selectors() -> None:
    offered = AppTools.with_dynamic_tools({AppTools.more: [weather_tool(), weather_tool("b")]})
    assert len(offered.more) == 2
    assert "b" in offered.more
    assert "search" not in offered.more
    assert offered.more["b"] == offered.selector("b")
    assert offered.more.selectors() == tuple(offered.more)
    with pytest.raises(UnknownToolError, match="get-weather"):
        offered.more["get_weather"]
    assert len(AppTools.more) == 0
    assert AppTools.more != offered.more
    assert repr(AppTools.more) == "<AppTools.more: no tools>"


def test_a_call_is_recognised_by_the_place_of_every_class_that_has_it() -> None:
    offered = AppTools.with_dynamic_tools({AppTools.more: [weather_tool()]})
    call = offered.parse(ToolMetadata("c1", "get-weather", '{"city": "x"}'))
    assert AppTools.more.matches(call)
    assert offered.more.matches(call)
    assert offered.more["get-weather"].matches(call)
    assert not AppTools.search.matches(call)
    assert not AppTools.data[DataTools.plugins].matches(call)
    handled = call.handled({"t": 1})
    assert AppTools.more.matches(handled)
    found = offered.parse(ToolMetadata("c2", "search", '{"query": "x"}'))
    assert AppTools.search.matches(found)
    assert not AppTools.more.matches(found)


def test_selectors_of_the_declared_class_are_good_for_what_is_made_of_it() -> None:
    offered = AppTools.with_dynamic_tools({AppTools.more: [weather_tool()]})
    offer = offered.offer(
        available=ToolAvailability.only(AppTools.search),
        require=ToolRequirement.specific(AppTools.search),
        describe={AppTools.search: "Look."},
    )
    assert [spec.name for spec in offer.specs] == ["search"]
    assert offer.specs[0].description == "Look."
    with pytest.raises(InvalidToolConstraints):
        AppTools.offer(available=ToolAvailability.only(offered.more["get-weather"]))


def test_a_set_of_tools_replaces_the_one_before_and_others_stay() -> None:
    first = AppTools.with_dynamic_tools({AppTools.more: [weather_tool()]})
    second = first.with_dynamic_tools({AppTools.data[DataTools.plugins]: [weather_tool("p")]})
    third = second.with_dynamic_tools({AppTools.more: []})
    assert names(second) == ["search", "read_file", "get-weather", "p"]
    assert names(third) == ["search", "read_file", "p"]
    assert names(first) == ["search", "read_file", "get-weather"]
    assert issubclass(third, AppTools)
    assert len(third.__mro__) == len(first.__mro__)  # each set is made of the declared class


def test_names_are_unique_at_build_time_Y5() -> None:
    with pytest.raises(DeclarationError, match="D1"):
        AppTools.with_dynamic_tools({AppTools.more: [weather_tool("search")]})
    with pytest.raises(DeclarationError, match="D1"):
        Toolset.of("Two", [weather_tool(), weather_tool()])
    with pytest.raises(DeclarationError, match="D1"):
        AppTools.extended(other=search)


@pytest.mark.parametrize("wrong", [[search], search, "x", None, [1]])
def test_a_place_takes_dynamic_tools_only(wrong: Any) -> None:
    with pytest.raises(DeclarationError, match="DynamicTools"):
        AppTools.with_dynamic_tools({AppTools.more: wrong})
    with pytest.raises(DeclarationError, match="DynamicTools"):
        Toolset.of("Wrong", wrong)
    with pytest.raises(DeclarationError):
        AppTools.with_dynamic_tools(wrong)


def test_a_place_of_another_toolset_is_refused() -> None:
    class Other(Toolset):
        more = dynamic()

    with pytest.raises(DeclarationError, match="is not a dynamic"):
        AppTools.with_dynamic_tools({Other.more: []})  # type: ignore[dict-item]
    with pytest.raises(DeclarationError, match="is not a dynamic"):
        AppTools.with_dynamic_tools({AppTools.search: []})  # type: ignore[dict-item]


def test_places_and_groups_that_are_off_are_not_offered_by_default_A1() -> None:
    class Hidden(Toolset):
        search = tool(search)
        more = dynamic(off=True)

    offered = Hidden.with_dynamic_tools({Hidden.more: [weather_tool()]})
    assert [s.name for s in offered.default_selectors()] == ["search"]
    assert names(offered) == ["search", "get-weather"]

    class Outer(Toolset):
        data = nested(DataTools, off=True)

    offered2 = Outer.with_dynamic_tools({Outer.data[DataTools.plugins]: [weather_tool()]})
    assert offered2.default_selectors() == ()
    assert names(offered2) == ["read_file", "get-weather"]


def test_a_toolset_of_tools_alone_has_them_under_a_prefix() -> None:
    github = Toolset.of("Github", [weather_tool("issue_list"), weather_tool("get")], prefix="gh_")
    assert github.__name__ == "Github"
    assert names(github) == ["gh_issue_list", "gh_get"]
    with pytest.raises(DeclarationError, match="not a tool name"):
        Toolset.of("Github", [weather_tool("x" * 62)], prefix="gh_")


def test_tools_may_have_names_of_methods_and_slots_Y8b() -> None:
    named = ["parse", "hooks", "any_tool", "of", "a-b", "a_b", "class"]
    tools = Toolset.of("Odd", [weather_tool(name) for name in named])
    assert names(tools) == named
    tools.hooks()


def test_an_extended_toolset_has_more_members_and_keeps_what_filled_its_places() -> None:
    github = Toolset.of("Github", [weather_tool("issues")], prefix="gh_")
    offered = AppTools.with_dynamic_tools({AppTools.more: [weather_tool()]})
    more = offered.extended(gh=github, extra=weather_tool("extra"))
    assert names(more) == ["search", "read_file", "extra", "get-weather", "gh_issues"]
    assert more.gh[github.selector("gh_issues")].name == "gh_issues"  # type: ignore[attr-defined]
    assert more.more["get-weather"].name == "get-weather"
    offer = more.offer(available=ToolAvailability.only(AppTools.search))
    assert offer.offered == {"search"}
    filled = more.with_dynamic_tools({more.more: []})
    assert names(filled) == ["search", "read_file", "extra", "gh_issues"]


def test_a_subclass_has_what_fills_the_places_of_its_bases_D11() -> None:
    github = Toolset.of("Github", [weather_tool("issues")], prefix="gh_")
    filled = DataTools.with_dynamic_tools({DataTools.plugins: [weather_tool("inner")]})

    class More(github):  # type: ignore[misc, valid-type]
        extra = tool(weather_tool("extra"))

    class App(Toolset):
        data = nested(DataTools)
        more = dynamic()

    offered = App.with_dynamic_tools(
        {App.more: [weather_tool()], App.data[DataTools.plugins]: [weather_tool("outer")]}
    )

    class Sub(offered):  # type: ignore[misc, valid-type]
        more2 = dynamic()

    class Other(offered):  # type: ignore[misc, valid-type]
        data = nested(filled)

    assert names(More) == ["extra", "gh_issues"]
    assert names(Sub) == ["read_file", "outer", "get-weather"]
    assert names(Other) == ["read_file", "inner", "get-weather"]
    again = Sub.with_dynamic_tools({Sub.more2: [weather_tool("last")]})
    assert names(again) == ["read_file", "outer", "get-weather", "last"]


def test_a_member_is_not_replaced_by_extending() -> None:
    with pytest.raises(DeclarationError, match="already"):
        AppTools.extended(search=weather_tool())
    with pytest.raises(DeclarationError, match="taken by a method"):
        AppTools.extended(parse=weather_tool())
    with pytest.raises(DeclarationError):
        AppTools.extended(x=3)


def test_members_named_like_the_new_methods_are_refused_D8() -> None:
    for name in ("of", "extended", "with_dynamic_tools"):
        with pytest.raises(DeclarationError, match="taken by a method"):
            type("Bad", (Toolset,), {name: tool(search)})


def test_a_toolset_with_a_place_may_be_empty_D11() -> None:
    class Later(Toolset):
        more = dynamic()

    assert Later.offer().specs == ()
    assert Toolset.of("None", []).offer().specs == ()


def test_all_dynamic_tools_are_one_branch_of_a_union_D9() -> None:
    class Typed(
        Toolset[ToolCall[ReadFile, str] | ToolCall[DynamicInput, DynamicOutput]],
    ):
        read_file = tool(ReadFile)
        weather = tool(weather_tool())
        more = dynamic()
        others = dynamic()

    assert names(Typed.with_dynamic_tools({Typed.more: [weather_tool("w")]})) == [
        "read_file",
        "get-weather",
        "w",
    ]
    with pytest.raises(DeclarationError, match=r"no ToolCall for Untyped\.more"):

        class Untyped(Toolset[ToolCall[ReadFile, str]]):
            read_file = tool(ReadFile)
            more = dynamic()

    with pytest.raises(DeclarationError, match="no member for"):

        class Without(Toolset[ToolCall[ReadFile, str] | ToolCall[DynamicInput, DynamicOutput]]):
            read_file = tool(ReadFile)

    class Closed(Toolset[ToolCall[ReadFile, str]]):
        read_file = tool(ReadFile)

    with pytest.raises(DeclarationError, match="no ToolCall for"):
        Closed.extended(gh=Toolset.of("Github", [weather_tool()]))


def test_selectors_of_a_class_made_at_run_time_say_that_they_cannot_be_pickled() -> None:
    offered = AppTools.with_dynamic_tools({AppTools.more: [weather_tool()]})
    for selector in offered.selectors():
        with pytest.raises(pickle.PicklingError, match="made at run time"):
            pickle.dumps(selector)
    github = Toolset.of("Github", [weather_tool()])
    with pytest.raises(pickle.PicklingError, match="made at run time"):
        pickle.dumps(github.selector("get-weather"))
    assert pickle.loads(pickle.dumps(AppTools.search)) == AppTools.search


def test_what_was_rendered_of_a_tool_is_kept_over_new_sets_Y6() -> None:
    declared = weather_tool()
    first = AppTools.with_dynamic_tools({AppTools.more: [declared]})
    second = AppTools.with_dynamic_tools({AppTools.more: [declared]})
    for name in names(first):
        assert first.selector(name).spec() is second.selector(name).spec()


@pytest.mark.slow
def test_sets_that_nobody_uses_any_more_are_collected() -> None:
    declared = weather_tool()

    def alive() -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what tests before have left behind
            gc.collect()
        return len([c for c in AppTools.__subclasses__() if c.__name__ == "AppTools"])

    before = alive()
    for _ in range(50):
        AppTools.with_dynamic_tools({AppTools.more: [declared]}).offer()
    assert alive() == before


# --- inputs and outputs that a program makes ---------------------------------------------------


def test_an_edited_input_is_validated_again() -> None:
    call = parse(weather_tool(), '{"city": "Oslo"}')
    assert call.edited(days=3).arguments == {"city": "Oslo", "days": 3}
    assert call.arguments == {"city": "Oslo"}
    assert call.with_input(DynamicInput(city="Bergen")).arguments == {"city": "Bergen"}
    for wrong in ({"days": "three"}, {"zz": 1}, {"city": object()}, {"days": float("nan")}):
        with pytest.raises(InvalidArgumentsError):
            call.edited(**wrong)
        with pytest.raises(InvalidArgumentsError):
            call.with_input(DynamicInput({"city": "Oslo", **wrong}))
    with pytest.raises(TypeError, match="DynamicInput"):
        call.with_input({"city": "Oslo"})  # type: ignore[arg-type]


async def run(arguments: dict[str, Any], *, unit: str = "C") -> dict[str, Any]:
    return {"city": arguments["city"], "unit": unit}


def test_a_call_runs_the_code_of_its_tool() -> None:
    import asyncio

    call = parse(weather_tool(run=run), '{"city": "Oslo"}')
    assert asyncio.run(call.call()) == {"city": "Oslo", "unit": "C"}
    assert asyncio.run(call.call(unit="F")) == {"city": "Oslo", "unit": "F"}
    with pytest.raises(TypeError, match="is async"):
        call.call_sync()
    plain = parse(weather_tool(run=lambda arguments: len(arguments)), '{"city": "Oslo"}')
    assert plain.call_sync() == 1
    with pytest.raises(TypeError, match="without run="):
        parse(weather_tool(), '{"city": "Oslo"}').call_sync()


@pytest.mark.parametrize(
    ("output", "content"),
    [
        ("text", "text"),
        ({"a": [1, None, 2.5, True]}, '{"a":[1,null,2.5,true]}'),
        (None, "null"),
        ([], "[]"),
        (3, "3"),
        ((1, 2), "[1,2]"),
        ("\ud800", "\ud800"),
    ],
)
def test_an_output_is_a_json_value_Y7(output: Any, content: str) -> None:
    result = parse(weather_tool(), '{"city": "x"}').complete(output)
    assert (result.content, result.output_error) == (content, None)


def test_an_output_may_be_content_parts_Y7() -> None:
    call = parse(weather_tool(), '{"city": "x"}')
    assert call.complete(TextPart("x")).content == (TextPart("x"),)
    assert call.complete([TextPart("x"), TextPart("y")]).content == (TextPart("x"), TextPart("y"))


@pytest.mark.parametrize(
    "output", [{1, 2}, object(), float("nan"), {"a": [float("inf")]}, {1: 2}, b"x"]
)
def test_an_output_that_is_not_json_is_a_wrong_output_C2b_Y7(output: Any) -> None:
    assert parse(weather_tool(), '{"city": "x"}').complete(output).output_error


def test_an_output_that_holds_itself_is_a_wrong_output() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert parse(weather_tool(), '{"city": "x"}').complete(loop).output_error
    shared = [1]
    result = parse(weather_tool(), '{"city": "x"}').complete([shared, shared])
    assert result.content == "[[1],[1]]"


def test_an_output_schema_is_held_against_results_Y7() -> None:
    schema = {"type": "object", "properties": {"t": {"type": "number"}}, "required": ["t"]}
    declared = weather_tool(output_schema=schema)
    assert declared.definition.output_schema == schema
    call = parse(declared, '{"city": "x"}')
    assert call.complete({"t": 1.5}).output_error is None
    assert "t: Field required" in str(call.complete({}).output_error)
    assert "output schema" in str(call.complete("text").output_error)
    assert "content parts" in str(call.complete(TextPart("x")).output_error)


# --- what single APIs are told -------------------------------------------------------------------


def test_settings_for_one_api_and_hints_belong_to_the_declaration() -> None:
    settings = {"anthropic_messages": {"input_examples": [{"city": "Oslo"}]}}
    declared = weather_tool(provider=settings, annotations={"readOnlyHint": True})
    assert declared.options.provider == settings
    assert declared.options.annotations == {"readOnlyHint": True}
    assert declared != weather_tool()
    offered = AppTools.with_dynamic_tools({AppTools.more: [declared, weather_tool("plain")]})
    sent = AnthropicMessages.request(asked(), offered.offer())["tools"]
    assert sent[2]["input_examples"] == [{"city": "Oslo"}]
    assert "input_examples" not in sent[3]
    with pytest.raises(DeclarationError, match="input_examples"):
        weather_tool(provider={"anthropic_messages": {"input_examples": [{"city": 3}]}})
    with pytest.raises(DeclarationError, match="annotations"):
        weather_tool(annotations={"x": object()})


def test_a_member_and_a_turn_say_more_of_a_dynamic_tool() -> None:
    class Typed(Toolset):
        weather = tool(weather_tool(), provider={"anthropic_messages": {"defer_loading": True}})
        search = tool(search)

    sent = AnthropicMessages.request(asked(), Typed.offer())["tools"]
    assert sent[0]["defer_loading"] is True
    filled = AppTools.with_dynamic_tools({AppTools.more: [weather_tool()]})
    place = filled.more["get-weather"]
    offer = filled.offer(provider={place: {"anthropic_messages": {"defer_loading": True}}})
    assert AnthropicMessages.request(asked(), offer)["tools"][2]["defer_loading"] is True
    assert "defer_loading" not in AnthropicMessages.request(asked(), filled.offer())["tools"][2]


def asked() -> Transcript:
    session = Session()
    session.push_user("Go.")
    return session.transcript
