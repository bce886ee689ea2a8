"""What the tool doctor finds in a toolset, for each API, strict and not."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, Literal

import pytest
from every_api import ADAPTERS, APIS
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel

from lutumpy import (
    DeclarationError,
    InvalidToolConstraints,
    ToolDef,
    ToolInput,
    ToolOptions,
    Toolset,
    Transcript,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.apis import serving
from lutumpy.models import ToolOffering, ToolSpec
from lutumpy.plain import json_values
from lutumpy.rules.schema_walk import walk
from lutumpy.rules.strict import (
    ANTHROPIC_STRICT,
    OPENAI_STRICT,
    Dialect,
    strict_changes,
    strict_schema,
)
from lutumpy.tool_doctor import Finding, ToolReport, check_tools

OPENAI = ("openai_chat", "openai_responses")
CLAUDES = ("anthropic_messages", "bedrock_converse")
"""The APIs that take strict tools as Anthropic does."""
STRICT = tuple([api for api in APIS if hasattr(serving(api, "rules"), "STRICT")])
"""The APIs that have strict tools."""
SHORT = (*OPENAI, "gemini_generate_content", "bedrock_converse")
"""The APIs whose names have at most 64 characters."""


def definition(
    name: str = "t", schema: dict[str, Any] | None = None, strict: bool | None = None
) -> ToolDef:
    whole = {"type": "object", "properties": {}, **(schema or {})}
    return ToolDef(name, "A tool.", whole, None, ToolOptions(strict=strict))


def parameter(kind: Any, description: str = "About it.") -> dict[str, Any]:
    return {"description": description, **({"type": kind} if isinstance(kind, str) else kind)}


def found(report: ToolReport, rule: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.rule == rule]


class Point(BaseModel):
    """A place."""

    x: Annotated[int, Field(description="Across.")]
    y: int


with warnings.catch_warnings():
    warnings.simplefilter(
        "ignore"
    )  # a tool without description, a docstring that documents what isn't there

    @tool_input(name="go")
    class Go(ToolInput[None]):
        point: Point
        speed: Annotated[int, Field(description="How fast.", ge=1)] = 1

    @tool_fn
    def look(direction: Literal["up", "down"]) -> str:
        """Look.

        Args:
            directoin: Where to look.
        """
        return direction


class Tools(Toolset):
    go = tool(Go)
    look = tool(look)


def test_a_toolset_in_order_has_nothing_to_say() -> None:
    @tool_fn
    def add(left: int, right: int) -> int:
        """Add two numbers.

        Args:
            left: The first.
            right: The second.
        """
        return left + right

    class Sums(Toolset):
        add_up = tool(add)

    report = check_tools(Sums)
    assert report.findings == ()
    assert report.tools == ("add",)
    assert report.name == "Sums"


def test_missing_descriptions_are_found_in_nested_models_too() -> None:
    report = check_tools(Tools)
    assert [f.tool for f in found(report, "tool.description")] == ["go"]
    missing = {(f.tool, f.path) for f in found(report, "tool.parameter_description")}
    # The point has its class's docstring; its x says what it is.
    assert missing == {("look", "/properties/direction"), ("go", "/$defs/Point/properties/y")}
    assert {f.severity for f in report.findings} == {"warning", "info"}


def test_a_docstring_entry_that_matches_nothing_is_found_again_after_the_import() -> None:
    """D3: the decorator has warned when the module was imported; the doctor says it whenever it is
    asked.
    """
    (finding,) = found(check_tools(Tools), "tool.docstring")
    assert finding.tool == "look"
    assert "'directoin'" in finding.message
    assert finding.apis == APIS


def test_the_docstring_of_an_input_class_is_looked_at_too() -> None:
    with pytest.warns(UserWarning, match="'heigth'"):

        @tool_input(name="draw", output=None)
        class Draw(BaseModel):
            """Draw.

            Args:
                width: In pixels.
                heigth: In pixels.
            """

            width: int
            height: int

    class Drawing(Toolset):
        draw = tool(Draw)

    report = check_tools(Drawing)
    assert ["heigth" in f.message for f in found(report, "tool.docstring")] == [True]
    assert [f.path for f in found(report, "tool.parameter_description")] == ["/properties/height"]


def test_a_property_named_properties_is_a_parameter_like_any_other() -> None:
    schema = {
        "properties": {
            "properties": parameter({"type": "object", "properties": {"a": {"type": "string"}}})
        }
    }
    report = check_tools([definition("t", {**schema, "additionalProperties": False})])
    assert [f.path for f in found(report, "tool.parameter_description")] == [
        "/properties/properties/properties/a"
    ]


@pytest.mark.parametrize(("strict", "severity"), [(None, "warning"), (True, "error")])
def test_open_dictionaries_have_no_strict_form_and_every_one_is_named(
    strict: bool | None, severity: str
) -> None:
    """D5: refused when strict was asked for, sent without it when it was left open."""
    properties = {
        "a": parameter({"type": "object", "additionalProperties": {"type": "string"}}),
        "b": parameter(
            {"type": "array", "items": {"type": "object", "additionalProperties": True}}
        ),
        "c": parameter("string"),
    }
    report = check_tools([definition("t", {"properties": properties}, strict)])
    openings = found(report, "strict.open_object")
    assert {f.path for f in openings} == {"/properties/a", "/properties/b/items"}
    assert {f.severity for f in openings} == {severity}
    assert {f.apis for f in openings} == {STRICT}
    assert bool(found(report, "tool.refused")) == (strict is True)
    assert found(report, "strict.none") == []


def test_what_else_has_no_strict_form_is_said_with_its_path() -> None:
    report = check_tools([definition("t", {"properties": {"a": parameter({})}})])
    for_openai, for_anthropic = found(report, "strict.none")
    assert "no strict form for OpenAI at /properties/a" in for_openai.message
    assert "no strict form for Anthropic at /properties/a" in for_anthropic.message
    assert {for_openai.severity, for_anthropic.severity} == {"warning"}


@pytest.mark.parametrize(("strict", "severity"), [(None, "info"), (True, "warning")])
def test_a_keyword_that_strict_moves_into_the_description_is_not_enforced(
    strict: bool | None, severity: str
) -> None:
    properties = {
        "a": parameter({"type": "string", "minLength": 2}),
        "b": parameter({"type": "integer", "minimum": 1}),
    }
    schema = {"properties": properties, "required": ["a", "b"], "additionalProperties": False}
    moved = found(check_tools([definition("t", schema, strict)]), "strict.keyword")
    assert {(f.path, f.message.split()[0], f.apis) for f in moved} == {
        ("/properties/a", "'minLength'", STRICT),
        ("/properties/b", "'minimum'", CLAUDES),
    }
    assert {f.severity for f in moved} == {severity}
    assert all(f.strict for f in moved)


def test_an_optional_parameter_becomes_required_for_openai_only() -> None:
    schema = {"properties": {"a": parameter("string")}, "additionalProperties": False}
    (finding,) = found(check_tools([definition("t", schema)]), "strict.nullable")
    assert (finding.path, finding.apis, finding.severity) == ("/properties/a", OPENAI, "info")


def test_a_recursive_schema_has_a_strict_form_for_openai_only() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/N"}},
        "additionalProperties": False,
    }
    schema = {
        "properties": {"first": {"$ref": "#/$defs/N"}},
        "$defs": {"N": {**node, "description": "One."}},
    }
    report = check_tools([definition("t", schema, True)])
    assert {f.apis for f in report.errors} == {CLAUDES}


def test_a_union_input_is_said_to_be_wrapped() -> None:
    """D6"""

    @tool_input(name="either", output=None)
    class Either(RootModel[Point | Literal["home"]]):
        """One or the other."""

    class Tools(Toolset):
        either = tool(Either)

    report = check_tools(Tools)
    assert [f.severity for f in found(report, "tool.wrapped")] == ["info"]
    assert "/properties/input" not in {f.path for f in found(report, "tool.parameter_description")}


def test_a_default_that_is_no_json_is_not_told() -> None:
    @tool_input(name="t", output=None)
    class Odd(BaseModel):
        """Do."""

        at: Annotated[float, Field(description="When.")] = float("nan")
        kind: Annotated[str, Field(description="What.")] = "a"
        what: Annotated[Any, Field(description="Anything.")] = object()

    class Tools(Toolset):
        odd = tool(Odd)

    assert [f.path for f in found(check_tools(Tools), "tool.default")] == ["/properties/what"]


@pytest.mark.parametrize(
    ("length", "apis"),
    # Ollama takes names of any length.
    [(64, ()), (65, SHORT), (128, SHORT), (129, (*SHORT, "anthropic_messages"))],
)
def test_names_that_are_too_long_are_refused_by_each_api_at_its_own_length(
    length: int, apis: tuple[str, ...]
) -> None:
    report = check_tools([definition("n" * length)])
    assert {api for f in report.errors for api in f.apis} == set(apis)


def many(count: int, parameters: dict[str, Any], strict: bool | None) -> list[ToolDef]:
    schema = {"properties": parameters, "additionalProperties": False}
    return [definition(f"t{index}", schema, strict) for index in range(count)]


UNION = parameter({"anyOf": [{"type": "string"}, {"type": "integer"}]})
LIMITS = [
    ("anthropic.strict_tools", 20, {}),
    ("anthropic.strict_optional", 12, {"a": parameter("string"), "b": parameter("string")}),
    ("anthropic.strict_unions", 16, {"a": UNION}),
]


@pytest.mark.pure
@pytest.mark.parametrize(("rule", "most", "parameters"), LIMITS)
@pytest.mark.parametrize("strict", [True, None])
def test_the_strict_limits_of_anthropic_are_held_over_the_list(
    rule: str, most: int, parameters: dict[str, Any], strict: bool | None
) -> None:
    """C9: 20 strict tools, 24 optional parameters, 16 unions; an error where the tools themselves
    ask for strict.
    """
    assert found(check_tools(many(most, parameters, strict)), rule) == []
    report = check_tools(many(most + 1, parameters, strict))
    (finding,) = found(report, rule)
    assert finding.tool is None
    assert finding.apis == ("anthropic_messages",)
    assert finding.severity == ("error" if strict else "warning")
    assert finding.strict
    assert bool(report.errors) == bool(strict)


def test_what_only_strict_adapters_would_send_is_an_error_when_they_are_strict() -> None:
    tools = many(21, {}, None)
    assert check_tools(tools, strict=False).findings == ()
    assert [f.rule for f in check_tools(tools, strict=True).errors] == ["anthropic.strict_tools"]


def test_tools_that_are_off_count_only_in_the_list_of_all() -> None:
    class Many(Toolset):
        pass

    members: dict[str, Any] = {}
    for index in range(21):

        @tool_input(name=f"t{index}", output=None, strict=True)
        class Nothing(BaseModel):
            """Do nothing."""

        members[f"t{index}"] = tool(Nothing, off=index > 10)
    many: Any = type("Many", (Toolset,), members)
    report = check_tools(many)
    (finding,) = found(report, "anthropic.strict_tools")
    assert finding.severity == "warning"
    assert "off by default" in finding.message
    assert {(s.offer, s.tools) for s in report.sizes} == {("default", 11), ("all", 21)}


def test_nested_tools_are_looked_at_like_their_neighbours() -> None:
    class Outer(Toolset):
        inner = nested(Tools)

    assert check_tools(Outer).findings == check_tools(Tools).findings


def test_only_the_apis_that_were_asked_for_are_looked_at() -> None:
    report = check_tools([definition("n" * 70)], apis=("anthropic_messages",))
    assert report.findings == ()
    assert {size.api for size in report.sizes} == {"anthropic_messages"}


def test_no_tools_cost_nothing() -> None:
    report = check_tools([])
    assert report.findings == ()
    assert {(s.bytes, s.tokens) for s in report.sizes} == {(2, 0)}


BEFORE = {"bedrock_converse": ',"toolConfig":'}
"""What stands before the tools of a request, where it isn't the member `tools`."""


def test_the_size_is_that_of_the_request() -> None:
    transcript = Transcript()
    transcript.push_user("?")
    without = {api: len(_body(api, transcript, None)) for api in APIS}
    for size in check_tools(Tools, strict=False).sizes:
        whole = len(_body(size.api, transcript, Tools.offer()))
        before = len(BEFORE.get(size.api, ',"tools":'))
        assert size.bytes + before == whole - without[size.api], size.api
        assert 0 < size.tokens < size.bytes + 1000


def _body(api: str, transcript: Transcript, offer: Any) -> bytes:
    return json_values.encode(ADAPTERS[api].request(transcript, offer))


names = st.sampled_from(["a", "b", "c"])
scalars = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "maxLength": 3},
        {"type": "integer", "minimum": 1},
        {"type": ["string", "null"]},
        {"enum": ["x", "y"]},
        {"type": "string", "format": "uri"},
        {"type": "string", "pattern": "^a"},
        {"type": "array", "items": {"type": "string"}, "minItems": 2},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "additionalProperties": True},
        {"not": {"type": "string"}},
        {},
        True,
    ]
)
schemas = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
        st.builds(lambda a: {"type": "array", "items": a}, inner),
        st.builds(
            lambda p: {"type": "object", "properties": p}, st.dictionaries(names, inner, max_size=3)
        ),
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(names, schemas, max_size=3), st.sampled_from([None, True, False]), st.booleans()
)
def test_a_tool_without_an_error_is_offered_without_an_error(
    properties: dict[str, Any], asks: bool | None, adapter: bool
) -> None:
    """The doctor and the adapters agree: what it lets pass they send, and what they refuse it has
    called an error.
    """
    one = definition("t", {"properties": properties, "additionalProperties": False}, asks)
    for api in APIS:
        report = check_tools([one], apis=(api,), strict=adapter)
        transcript = Transcript()
        transcript.push_user("?")
        spec = ToolSpec("t", "A tool.", one.input_schema, asks)
        try:
            ADAPTERS[api].request(transcript, ToolOffering((spec,)), strict=adapter)
        except (DeclarationError, InvalidToolConstraints):
            assert report.errors
        else:
            assert not found(report, "tool.refused")


@given(
    st.dictionaries(names, schemas, max_size=3), st.sampled_from([OPENAI_STRICT, ANTHROPIC_STRICT])
)
def test_the_changes_of_a_strict_form_are_told_beside_the_very_same_form(
    properties: dict[str, Any], dialect: Dialect
) -> None:
    """D5: nothing goes into a description, and nothing becomes required, that isn't told."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": ["a"],
        "additionalProperties": False,
    }
    try:
        form = strict_schema(schema, dialect)
    except DeclarationError:
        with pytest.raises(DeclarationError):
            strict_changes(schema, dialect)
        return
    again, changes = strict_changes(schema, dialect)
    assert again == form
    described = {change.path for change in changes if change.kind == "described"}
    assert len(described) == sum(
        "description" in node for _, _, node in walk(form) if isinstance(node, dict)
    )
    assert len(set(changes)) == len(changes)
