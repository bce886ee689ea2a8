"""Structured turns whose value is JSON of a schema that is known at run time: `OutputSchema`."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import anthropic as anthropic_sdk
import openai as openai_sdk
import pytest
from each_case import each
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from toolkit import WeatherTools as Tools

from lutumpy import (
    DeclarationError,
    Finished,
    InvalidToolConstraints,
    NeedsTools,
    OutputSchema,
    Session,
    ToolCallDelta,
    ToolCallReady,
    ToolRequirement,
    TurnResult,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.rules.anthropic import messages as anthropic
from lutumpy.rules.openai.chat import messages as chat
from lutumpy.rules.openai.responses import items as responses
from lutumpy.testing import Call, Reply, ScriptedModel, serve
from lutumpy.text_tools import TextTools

CHECKS: dict[str, Any] = {
    "openai_chat": chat.check_request,
    "openai_responses": responses.check_request,
    "anthropic_messages": anthropic.check_request,
}
ADAPTERS: dict[str, Any] = {
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "anthropic_messages": AnthropicMessages,
}
every_api = pytest.mark.parametrize("api", CHECKS)
every_way = pytest.mark.parametrize("structured", ["native", "tool"])

CONTACT = OutputSchema(
    "contact",
    {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    description="Somebody to write to.",
)
NODE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
    "required": ["name", "children"],
    "additionalProperties": False,
}

SHAPES: list[tuple[dict[str, Any], Any, bool]] = [
    (CONTACT.schema, {"name": "Ada", "age": 36}, False),
    ({"properties": {"a": {"type": "integer"}}, "additionalProperties": False}, {"a": 1}, False),
    ({"type": "array", "items": {"type": "integer"}}, [1, 2], True),
    ({"type": "string", "enum": ["high", "low"]}, "low", True),
    ({"enum": ["high", 3, None]}, None, True),
    ({"type": "boolean"}, False, True),
    ({"type": "number"}, 0.5, True),
    ({"type": ["object", "null"], "additionalProperties": {"type": "integer"}}, None, True),
    ({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}, ["a"], True),
    ({"$ref": "#/$defs/node", "$defs": {"node": NODE}}, {"name": "a", "children": []}, True),
    ({"type": "array", "items": {"$ref": "#"}}, [[], [[]]], True),
]


def asked() -> Session:
    session = Session()
    session.push_user("go")
    return session


def scripted(api: str, *replies: Any, structured: str = "native") -> ScriptedModel:
    return ScriptedModel(replies, api=api, structured=structured)  # type: ignore[arg-type]


def answer(value: Any, structured: str) -> Reply:
    if structured == "native":
        return Reply(text=json.dumps(value))
    return Reply(calls=[Call("answer", value)])


def turn_of(
    output: OutputSchema, reply: Any, api: str = "openai_chat", structured: str = "native"
) -> TurnResult[Any]:
    session = asked()
    llm = scripted(api, reply, structured=structured)
    result = session.structured_turn(llm, output).collect_sync()
    assert result.turn is session.turns()[-1]
    # What is in the session can be sent to every API, also by a program that has no schema.
    loaded = Session.load(json.dumps(session.dump()))
    loaded.push_user("and now?")
    for name, adapter in ADAPTERS.items():
        body = {"model": "m", **adapter.request(loaded.transcript)}
        assert [p for p in CHECKS[name](body) if p.certainty == "refused"] == []
    return result


# --- declaring ------------------------------------------------------------------------------------


def test_an_output_schema_is_a_value() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    output = OutputSchema("a-b_1", schema, description="About it.", strict=False)
    schema["properties"] = {}
    assert output.schema["properties"] == {"a": {"type": "integer"}}
    assert (output.name, output.description, output.strict) == ("a-b_1", "About it.", False)
    assert repr(output) == "<OutputSchema a-b_1>"
    twin = OutputSchema("a-b_1", output.schema, description="About it.", strict=False)
    assert (twin, hash(twin)) == (output, hash(output))
    for copied in (copy.copy(output), copy.deepcopy(output), pickle.loads(pickle.dumps(output))):
        assert copied == output
    assert output != OutputSchema("a-b_1", output.schema)
    assert output != "a-b_1"
    with pytest.raises(AttributeError):
        output.name = "b"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("", {}), "is not a name"),
        (("a.b", {}), "is not a name"),
        (("a" * 65, {}), "is not a name"),
        ((3, {}), "is not a name"),
        (("a", True), "must be a JSON Schema, a mapping"),
        (("a", {"type": "text"}), "its schema is broken"),
        (("a", {"$ref": "#/$defs/b"}), "its schema is broken"),
        (("a", {"$ref": "http://127.0.0.1:9/s.json"}), "another document"),
        (("a", {"$ref": "file:///etc/passwd"}), "another document"),
        (("a", {"pattern": "(?=a)b"}), "linear time"),
        (("a", {"enum": [{1, 2}]}), "not JSON"),
        (("a", {"$schema": "draft-07"}), "isn't known"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_by_name_Y1_Y3(arguments: Any, words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        OutputSchema(*arguments)


@pytest.mark.parametrize("named", [{"description": None}, {"strict": 1}])
def test_settings_of_a_wrong_kind_are_refused(named: Any) -> None:
    with pytest.raises(DeclarationError, match=r"'a': (description|strict) must be"):
        OutputSchema("a", {"type": "string"}, **named)


def test_strict_needs_a_strict_form_D5() -> None:
    open_object = {"type": "object", "additionalProperties": {"type": "integer"}}
    with pytest.raises(DeclarationError, match="'a': the schema has no strict form"):
        OutputSchema("a", open_object, strict=True)
    assert OutputSchema("a", NODE | {"properties": {}, "required": []}, strict=True).strict is True


# --- asking ---------------------------------------------------------------------------------------


def test_each_api_is_asked_in_its_own_way() -> None:
    strict = {**CONTACT.schema, "required": ["name", "age", "tags"]}
    properties = CONTACT.schema["properties"]
    strict["properties"] = {
        "name": properties["name"],
        "age": {"type": ["integer", "null"]},
        "tags": {"anyOf": [properties["tags"], {"type": "null"}]},
    }
    named = {"name": "contact", "description": "Somebody to write to."}
    bodies: dict[str, Any] = {}
    for api, check in CHECKS.items():
        llm = scripted(api, Reply(text="{}"))
        asked().structured_turn(llm, CONTACT).collect_sync()
        bodies[api] = llm.requests[0]
        assert [p for p in check(bodies[api]) if p.certainty == "refused"] == []
    assert bodies["openai_chat"]["response_format"] == {
        "type": "json_schema",
        "json_schema": {**named, "schema": strict, "strict": True},
    }
    assert bodies["openai_responses"]["text"]["format"] == {
        "type": "json_schema",
        **named,
        "schema": strict,
        "strict": True,
    }
    assert bodies["anthropic_messages"]["output_config"]["format"] == {
        "type": "json_schema",
        "schema": {**CONTACT.schema, "description": "Somebody to write to."},
    }


@pytest.mark.parametrize(("schema", "value", "wrapped"), SHAPES)
def test_every_api_is_asked_for_an_object(
    schema: dict[str, Any], value: Any, wrapped: bool
) -> None:
    output = OutputSchema("it", schema)
    for api, check in CHECKS.items():
        llm = scripted(api, Reply(text="x"))
        try:
            asked().structured_turn(llm, output).collect_sync()
        except InvalidToolConstraints:
            # The Messages API takes strict schemas only: all types named, nothing recursive.
            assert api == "anthropic_messages"
            continue
        body = llm.requests[0]
        assert [p for p in check(body) if p.certainty == "refused"] == []
        if api == "openai_chat":
            sent = body["response_format"]["json_schema"]["schema"]
            assert sent["type"] == "object"
            assert ("value" in sent["properties"]) is wrapped


def test_the_strict_form_may_be_declined() -> None:
    output = OutputSchema("it", CONTACT.schema, strict=False)
    for api, path in (("openai_chat", "response_format"), ("openai_responses", "text")):
        llm = scripted(api, Reply(text="{}"))
        asked().structured_turn(llm, output).collect_sync()
        asked_for = llm.requests[0][path]
        asked_for = asked_for.get("json_schema") or asked_for["format"]
        assert (asked_for["strict"], asked_for["schema"]) == (False, CONTACT.schema)


def test_equal_schemas_send_equal_bytes_A4() -> None:
    def bodies(structured: str) -> list[bytes]:
        sent = []
        for _ in range(2):
            llm = scripted("openai_chat", Reply(text="{}"), structured=structured)
            output = OutputSchema("contact", CONTACT.schema, description=CONTACT.description)
            asked().structured_turn(llm, output).collect_sync()
            sent.append(json.dumps(llm.requests[0]).encode())
        return sent

    for structured in ("native", "tool"):
        first, second = bodies(structured)
        assert first == second


# --- reading --------------------------------------------------------------------------------------


@every_api
@every_way
@each("schema, value, wrapped", SHAPES)
def test_every_shape_is_read_wrapped_and_bare(
    schema: dict[str, Any], value: Any, wrapped: bool, structured: str, api: str
) -> None:
    if api == "anthropic_messages" and structured == "native":
        api = "openai_responses"  # the Messages API refuses some of them before anything is sent
    for written in (value, {"value": value}):
        if structured == "tool" and not isinstance(written, dict):
            continue  # arguments are an object
        if written is not value and not wrapped and "additionalProperties" not in schema:
            continue  # it is an object with a property `value`
        result = turn_of(OutputSchema("it", schema), answer(written, structured), api, structured)
        assert (result.value, result.value_error) == (value, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the answer is empty"),
        ("Sure! Ada.", "the answer is not JSON"),
        ("[1]", "the answer has to be a JSON object"),
        ('{"age": "x"}', 'doesn\'t fit contact: age: "x" is not of type "integer"\n'),
        ('{"age": 3}', "doesn't fit contact: name: Field required"),
        ('{"name": "a", "b": 1}', "doesn't fit contact: b: Extra inputs are not permitted"),
        ('{"name": NaN}', "the answer is not JSON"),
        ('{"name": "\\ud800"}', "it can't be read"),
        ('{"name": ' + "[" * 300 + "]" * 300 + "}", "it can't be read"),
    ],
)
def test_what_does_not_fit_is_said_and_nothing_is_raised(text: str, words: str) -> None:
    result = turn_of(CONTACT, Reply(text=text))
    assert result.value is None
    assert words in str(result.value_error)


def test_places_in_a_wrapped_value_are_those_that_were_asked_for() -> None:
    output = OutputSchema("numbers", {"type": "array", "items": {"type": "integer"}})
    result = turn_of(output, Reply(text='{"value": [1, "b"]}'))
    assert result.value_error == (
        'the answer doesn\'t fit numbers: value[1]: "b" is not of type "integer"'
    )
    result = turn_of(output, Reply(text='{"values": [1]}'))
    assert result.value_error == (
        'the answer doesn\'t fit numbers: value: {"values":[1]} is not of type "array"'
    )


def test_null_for_an_optional_field_means_that_it_was_left_out_D5() -> None:
    result = turn_of(CONTACT, Reply(text='{"name": "Ada", "age": null, "tags": "[\\"a\\"]"}'))
    assert (result.value, result.value_error) == ({"name": "Ada", "tags": ["a"]}, None)
    result = turn_of(CONTACT, Reply(text='{"name": 1, "age": null}'))
    assert result.value_error is not None
    assert result.value_error.endswith(': name: 1 is not of type "string"')


def test_an_object_that_takes_any_property_may_have_one_called_value() -> None:
    output = OutputSchema("it", {"type": "object"})
    assert turn_of(output, Reply(text='{"value": {"a": 1}}')).value == {"value": {"a": 1}}
    assert turn_of(CONTACT, Reply(text='{"value": {"name": "a"}}')).value == {"name": "a"}


def test_a_value_may_be_null_or_false_and_has_no_error_then() -> None:
    values: list[Any] = [None, False, 0, "", []]
    for value in values:
        result = turn_of(OutputSchema("it", {}), Reply(text=json.dumps({"value": value})))
        assert (result.value, result.value_error) == (value, None)


@every_api
def test_a_refusal_and_a_cut_answer_have_no_value(api: str) -> None:
    refused = turn_of(CONTACT, Reply(refusal="No."), api)
    assert (refused.value, refused.value_error) == (None, "the model refused to answer")
    if api != "anthropic_messages":
        assert refused.refusal == "No."
    cut = turn_of(CONTACT, Reply(text='{"name": "A', finish="length"), api)
    assert cut.value is None
    assert "cut off" in str(cut.value_error)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.sampled_from([CONTACT, *[OutputSchema("it", row[0]) for row in SHAPES]]), st.data())
@settings(max_examples=examples(150))
def test_a_value_always_fits_its_schema_whatever_the_model_wrote(
    output: OutputSchema, data: st.DataObject
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    text = data.draw(st.text(max_size=20) | JSON.map(json.dumps))
    structured = data.draw(st.sampled_from(["native", "tool"]))
    if structured == "tool":
        reply = Reply(calls=[Call("answer", text)])
    else:
        reply = Reply(text=text)
    result = turn_of(output, reply, structured=structured)
    if result.value_error is None:
        jsonschema.Draft202012Validator(output.schema).validate(result.value)
    else:
        assert result.value is None


# --- turns ----------------------------------------------------------------------------------------


@every_api
@every_way
def test_with_tools_a_round_comes_first_and_the_value_afterwards(api: str, structured: str) -> None:
    session = asked()
    llm = scripted(
        api,
        Reply(calls=[Call("weather", {"city": "Bonn"})]),
        answer({"name": "Ada"}, structured),
        structured=structured,
    )
    outcome = session.structured_turn(llm, CONTACT, tools=Tools).collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [call.complete("dry") for call in outcome.round.calls])
    outcome = session.structured_turn(llm, CONTACT, tools=Tools).collect_sync()
    assert isinstance(outcome, Finished)
    assert outcome.result.value == {"name": "Ada"}
    for body in llm.requests:
        assert [p for p in CHECKS[api](body) if p.certainty == "refused"] == []


@every_api
def test_the_tool_that_takes_the_value_is_described_and_strict_where_asked(api: str) -> None:
    output = OutputSchema("it", CONTACT.schema, description="Somebody.", strict=True)
    llm = scripted(api, answer({"name": "Ada"}, "tool"), structured="tool")
    result = asked().structured_turn(llm, output).collect_sync()
    assert result.value == {"name": "Ada"}
    told = json.dumps(llm.requests[0]["tools"])
    assert "Somebody." in told
    assert '"strict": true' in told


@every_way
async def test_a_staged_answer_and_a_stream_have_the_value_too(structured: str) -> None:
    reply = answer({"name": "Ada"}, structured)
    session = asked()
    llm = scripted("openai_chat", reply, reply, reply, structured=structured)
    staged = await session.structured_turn(llm, CONTACT).collect_staged()
    assert (staged.result.value, session.turns()) == ({"name": "Ada"}, [])
    staged.commit(session)
    session.push_user("again")
    async with session.structured_turn(llm, CONTACT).stream() as stream:
        events = [event async for event in stream]
    assert stream.outcome.value == {"name": "Ada"}
    assert not any(isinstance(event, ToolCallReady) for event in events)
    assert any(isinstance(event, ToolCallDelta) for event in events) is (structured == "tool")
    session.push_user("again")
    with session.structured_turn(llm, CONTACT).stream_sync() as sync:
        for _ in sync:
            pass
    assert sync.outcome.value == {"name": "Ada"}
    assert len(session.turns()) == 3


def test_a_value_that_did_not_fit_can_be_asked_for_again_by_the_tool() -> None:
    session = asked()
    llm = scripted(
        "openai_chat",
        answer({"age": 3}, "tool"),
        answer({"name": "Ada"}, "tool"),
        structured="tool",
    )
    first = session.structured_turn(llm, CONTACT).collect_sync()
    assert (first.value, first.value_error) == (
        None,
        "the answer doesn't fit contact: name: Field required",
    )
    session.push_user("Again?")
    assert session.structured_turn(llm, CONTACT).collect_sync().value == {"name": "Ada"}
    assert "name: Field required" in json.dumps(llm.requests[1]["messages"])


def test_a_required_tool_leaves_the_answer_out() -> None:
    llm = scripted("openai_chat", Reply(calls=[Call("weather", {"city": "a"})]), structured="tool")
    turn = asked().structured_turn(
        llm, CONTACT, tools=Tools, require=ToolRequirement.at_least_one()
    )
    outcome = turn.collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.discard()
    assert [tool["function"]["name"] for tool in llm.requests[0]["tools"]] == ["weather"]


@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize(("schema", "value", "wrapped"), SHAPES)
def test_text_models_give_values_beside_text_tools(
    schema: dict[str, Any], value: Any, wrapped: bool, guided: bool
) -> None:
    written = {"value": value} if wrapped else value
    text = json.dumps({"answer": written} if guided else written)
    inner = scripted("openai_chat", Reply(text=text))
    llm = TextTools(inner, guided=guided)
    output = OutputSchema("it", schema)
    outcome = asked().structured_turn(llm, output, tools=Tools).collect_sync()
    assert isinstance(outcome, Finished)
    assert (outcome.result.value, outcome.result.value_error) == (value, None)
    body = inner.requests[0]
    assert [p for p in CHECKS["openai_chat"](body) if p.certainty == "refused"] == []
    if guided:
        check_references(body["response_format"]["json_schema"]["schema"])


def check_references(schema: Any) -> None:
    """Every reference leads somewhere."""
    jsonschema_rs = pytest.importorskip("jsonschema_rs")
    jsonschema_rs.validator_for(schema)


@every_api
@every_way
def test_the_official_clients_send_it(api: str, structured: str) -> None:
    with serve([answer({"name": "Ada"}, structured)]) as server:
        if api == "anthropic_messages":
            client: Any = anthropic_sdk.Anthropic(base_url=server.url, api_key="any", max_retries=0)
        else:
            client = openai_sdk.OpenAI(
                base_url=server.openai_base_url, api_key="any", max_retries=0
            )
        with client:
            llm = ADAPTERS[api]("m", client, structured=structured)
            result = asked().structured_turn(llm, CONTACT).collect_sync()
        assert [request.status for request in server.requests] == [200]
    assert result.value == {"name": "Ada"}
