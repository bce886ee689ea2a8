"""Structured turns: how a type is asked for, what is read, and the tool that takes the value.

For every API, through the scripted model.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pydantic
import pytest
from each_case import each
from every_api import ADAPTERS, CHECKS, FORCES, choice_of, tool_names, tools_of
from every_client import sync_model_at
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel, field_validator
from toolkit import WeatherTools as Tools
from typing_extensions import TypedDict, assert_type

from lutumpy import (
    DeclarationError,
    Finished,
    InvalidToolConstraints,
    NeedsTools,
    RoundClosedError,
    Session,
    StaleRoundError,
    ToolCallDelta,
    ToolCallIssueFound,
    ToolCallReady,
    ToolInput,
    ToolRequirement,
    Toolset,
    Transcript,
    TurnResult,
    tool,
    tool_input,
)
from lutumpy.testing import Call, Reply, ScriptedModel, serve

every_api = pytest.mark.parametrize("api", ADAPTERS)


class Contact(BaseModel):
    """Somebody to write to."""

    name: str
    age: int | None = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    value: str


Pet = RootModel[Annotated[Cat | Dog, Field(discriminator="kind")]]


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@pydantic.dataclasses.dataclass
class Checked:
    n: Annotated[int, Field(gt=0)]


class Film(TypedDict):
    title: str


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@tool_input(name="answer")
class Answer(ToolInput[str]):
    """Answer the phone."""


class Phone(Toolset):
    answer = tool(Answer)


def asked() -> Session:
    session = Session()
    session.push_user("go")
    return session


def scripted(
    api: str, *replies: Any, structured: str = "native", model: str = "scripted"
) -> ScriptedModel:
    return ScriptedModel(replies, api=api, structured=structured, model=model)  # type: ignore[arg-type]


def check_sendable(session: Session) -> None:
    """No API refuses the transcript, with one more question at its end."""
    fork = session.fork()
    fork.push_user("and now?")
    for api, adapter in ADAPTERS.items():
        body = {"model": "m", **adapter.request(fork.transcript)}
        assert [p for p in CHECKS[api](body) if p.certainty == "refused"] == []


def turn_of(
    value_type: Any, reply: Any, api: str = "openai_chat", structured: str = "native"
) -> TurnResult[Any]:
    session = asked()
    result = session.structured_turn(
        scripted(api, reply, structured=structured), value_type
    ).collect_sync()
    assert result.turn is session.turns()[-1]
    check_sendable(session)
    return result


# --- value types ----------------------------------------------------------------------------------

TYPES: list[tuple[Any, Any, Any, bool]] = [
    (Contact, {"name": "Ada"}, Contact(name="Ada"), False),
    (Point, {"x": 1}, Point(1), False),
    (Checked, {"n": 3}, Checked(3), False),
    (Film, {"title": "M"}, {"title": "M"}, False),
    (RootModel[Contact], {"name": "Ada"}, RootModel[Contact](Contact(name="Ada")), False),
    (Pet, {"kind": "cat", "lives": 9}, Pet(Cat(kind="cat", lives=9)), True),
    (Cat | Dog, {"kind": "dog", "value": "x"}, Dog(kind="dog", value="x"), True),
    (Contact | None, None, None, True),
    (list[Point], [{"x": 1, "y": 2}], [Point(1, 2)], True),
    (Literal["a", "b"], "b", "b", True),
    (Colour, "blue", Colour.BLUE, True),
    (int | str, 5, 5, True),
    (str, "x", "x", True),
    (bool, True, True, True),
    (Annotated[float, Field(le=1)], 0.5, 0.5, True),
]


@every_api
@pytest.mark.parametrize("structured", ["native", "tool"])
@each("value_type, data, value, wrapped", TYPES)
def test_every_value_type_is_read_wrapped_and_bare(
    value_type: Any, data: Any, value: Any, wrapped: bool, structured: str, api: str
) -> None:
    for written in (data, {"value": data}):
        if structured == "native":
            reply = Reply(text=json.dumps(written))
        elif isinstance(written, dict):
            reply = Reply(calls=[Call("answer", written)])
        else:
            continue  # arguments are an object
        result = turn_of(value_type, reply, api, structured)
        assert (result.value, result.value_error) == (value, None)


@pytest.mark.parametrize(("value_type", "data", "value", "wrapped"), TYPES)
def test_what_is_no_object_is_asked_for_as_one(
    value_type: Any, data: Any, value: Any, wrapped: bool
) -> None:
    llm = scripted("openai_chat", Reply(text="x"))
    asked().structured_turn(llm, value_type).collect_sync()
    schema = llm.requests[0]["response_format"]["json_schema"]["schema"]
    assert schema["type"] == "object"
    assert (list(schema["properties"]) == ["value"]) is wrapped


def test_a_wrapped_value_is_never_taken_for_an_empty_one() -> None:
    class Settings(BaseModel):
        size: int = 1

    class Open(BaseModel, extra="allow"):
        size: int = 1

    assert turn_of(Settings, Reply(text='{"value": {"size": 2}}')).value == Settings(size=2)
    wrong = turn_of(Settings, Reply(text='{"value": {"size": "x"}}'))
    assert wrong.value is None
    assert "size: " in str(wrong.value_error)
    kept = turn_of(Open, Reply(text='{"value": {"size": 2}}')).value
    assert kept is not None
    assert kept.model_extra == {"value": {"size": 2}}


def test_dictionaries_go_where_the_provider_takes_them() -> None:
    assert turn_of(dict[str, int], Reply(text='{"a": 1, "value": 2}')).value == {"a": 1, "value": 2}
    assert turn_of(dict[str, int], Reply(text='{"value": {"a": 1}}')).value == {"a": 1}
    with pytest.raises(InvalidToolConstraints, match="can't answer"):
        turn_of(dict[str, int], Reply(text="{}"), "anthropic_messages")
    calls = Reply(calls=[Call("answer", {"a": 1})])
    assert turn_of(dict[str, int], calls, "anthropic_messages", "tool").value == {"a": 1}


def test_a_tuple_goes_where_the_provider_takes_it() -> None:
    assert turn_of(tuple[int, str], Reply(text='{"value": [1, "a"]}')).value == (1, "a")
    with pytest.raises(InvalidToolConstraints, match="tuple"):
        turn_of(tuple[int, str], Reply(text="[]"), "anthropic_messages")


def test_a_type_that_can_not_be_a_key_is_read_as_well() -> None:
    unhashable = Annotated[int, Field(json_schema_extra={"examples": [1]}), ["kept nowhere"]]
    assert turn_of(unhashable, Reply(text='{"value": 5}')).value == 5


def test_a_type_without_a_schema_is_a_declaration_error() -> None:
    class Plain:
        pass

    for value_type in (Plain, list[Plain], Callable[[], int]):
        with pytest.raises(DeclarationError, match="no JSON Schema"):
            asked().structured_turn(scripted("openai_chat"), value_type)


def test_types_as_a_checker_sees_them() -> None:
    llm, session = scripted("openai_chat", *[Reply(text='{"name": "Ada"}')] * 2), asked()
    result = session.structured_turn(llm, Contact).collect_sync()
    assert_type(result.value, Contact | None)
    session.push_user("again")
    outcome = session.structured_turn(llm, Contact | Point, tools=Tools).collect_sync()
    assert isinstance(outcome, Finished)
    assert_type(outcome.result.value, Any | None)


# --- what is read ---------------------------------------------------------------------------------

REFUSED = "refused"


def said_of_a_refusal(api: str) -> str:
    """Where an API has no refusal, a filter of the provider's ends the answer."""
    if api == "ollama_chat":
        return "not JSON"  # a refusal is a text like any other
    return "cut off" if api in ("bedrock_converse", "gemini_generate_content") else REFUSED


@pytest.mark.parametrize(
    "text",
    [
        "``````",
        '```{"name": "Ada"}```',
        '```two words\n{"name": "Ada"}\n```',
        '```json\n{"name": "Ada"}\n',
        'json\n{"name": "Ada"}\n```',
    ],
)
def test_what_is_no_code_fence_is_not_taken_off(text: str) -> None:
    result = turn_of(Contact, Reply(text=text))
    assert result.value is None
    assert result.value_error is not None
    assert "not JSON" in result.value_error


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "Ada"}\n```',
        '  \n```\n{"name": "Ada"}```\n',
        '```JSON\r\n{\n"name": "Ada"}\r\n```  ',
        '\n {"name": "Ada"} ',
    ],
)
def test_one_code_fence_is_read(text: str) -> None:
    assert turn_of(Contact, Reply(text=text)).value == Contact(name="Ada")


@every_api
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(text="Sure! Ada."), "not JSON, but 'Sure! Ada.'"),
        (Reply(text='Sure:\n```json\n{"name": "Ada"}\n```'), "not JSON, but"),
        (
            Reply(text='```json\n{"name": "Ada"}\n```\n```json\n{"name": "Bo"}\n```'),
            "not JSON, but",
        ),
        (Reply(text='{"name": "A', finish="length"), "cut off"),
        (Reply(text='{"name": "Ada"}', finish="length"), "cut off"),
        (Reply(text="", finish="length"), "cut off"),
        (Reply(text=""), "empty"),
        (Reply(text=" \n"), "empty"),
        (Reply(text="```json\n\n```"), "empty"),
        (Reply(text="null"), "JSON object, not 'null'"),
        (Reply(text="[1]"), "JSON object, not '[1]'"),
        (Reply(text='{"age": 3}'), "name: Field required"),
        (Reply(text='{"value": {"age": 3}}'), "name: Field required"),
        (Reply(refusal="I can't."), REFUSED),
        (Reply(text="[" * 100_000), "not JSON"),
        (Reply(text="x" * 1000), "…'"),
    ],
)
def test_what_is_no_value_is_said_and_never_raises(reply: Reply, said: str, api: str) -> None:
    result = turn_of(Contact, reply, api)
    assert result.value is None
    assert result.value_error is not None
    assert (said_of_a_refusal(api) if said == REFUSED else said) in result.value_error
    assert len(result.value_error) < 300
    if api.startswith("openai"):  # elsewhere the words of a refusal are text
        assert result.refusal == reply.refusal


def test_a_number_that_was_cut_off_is_none() -> None:
    assert turn_of(int, Reply(text="42")).value == 42
    assert turn_of(int, Reply(text="42", finish="length")).value is None


@every_api
def test_user_validators_may_raise_anything_C3(api: str) -> None:
    class Odd(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, n: int) -> int:
            raise (ValueError, KeyError, RuntimeError)[n]("secret")

    for n in range(3):
        for structured, reply in (
            ("native", Reply(text=f'{{"n": {n}}}')),
            ("tool", Reply(calls=[Call("answer", {"n": n})])),
        ):
            result = turn_of(Odd, reply, api, structured)
            assert result.value is None
            assert "own check" in str(result.value_error)
            assert "secret" not in str(result.value_error)


def test_the_last_piece_of_text_may_be_the_value() -> None:
    content = [
        {"type": "text", "text": "I looked it up."},
        {"type": "text", "text": '{"name": "Ada"}'},
    ]
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    assert turn_of(Contact, message, "anthropic_messages").value == Contact(name="Ada")
    content[1]["text"] = "42"
    assert turn_of(int, message, "anthropic_messages").value is None


def test_a_paused_answer_has_no_value_yet_C10() -> None:
    result = turn_of(Contact, Reply(text="Looking", finish="paused"), "anthropic_messages")
    assert "paused" in str(result.value_error)


@given(
    text=st.text()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists
    ).map(json.dumps)
)
@example('{"value": ')
@example('1}, {"value": 2')
@example("```")
@example("``````")
@example("\ud800")
@example("NaN")
def test_any_text_is_a_value_or_a_reason(text: str) -> None:
    for value_type in (Contact, int, list[Any], Cat | Dog):
        session = asked()
        message = {"role": "assistant", "content": text}
        answer = {
            "id": "x",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        }
        result = session.structured_turn(scripted("openai_chat", answer), value_type).collect_sync()
        assert (result.value is None) is (result.value_error is not None)


@given(
    value=st.recursive(
        st.integers() | st.text() | st.booleans(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_value_comes_back_wrapped_or_bare(value: Any) -> None:
    value_type = int | list[Any] | dict[str, Any] | str | bool
    for data in (value, {"value": value}):
        if data is value and isinstance(value, dict) and "value" in value:
            continue  # a bare object that looks like the wrapped form is read as that
        assert turn_of(value_type, Reply(text=json.dumps(data))).value == value


# --- the tool that takes the value ----------------------------------------------------------------

Drive = Callable[[Any], Any]


def collect_staged(turn: Any) -> Any:
    return turn.collect_staged_sync()


def collect(turn: Any) -> Any:
    return turn.collect_sync()


def stream(turn: Any) -> Any:
    with turn.stream_sync() as running:
        for _ in running:
            pass
    return running.outcome


@every_api
@pytest.mark.parametrize("drive", [collect, stream])
def test_the_value_is_what_the_tool_is_called_with_K5(api: str, drive: Drive) -> None:
    llm, session = (
        scripted(
            api,
            Reply(calls=[Call("answer", {"name": "Ada"})]),
            Reply(text="Bye."),
            structured="tool",
        ),
        asked(),
    )
    result = drive(session.structured_turn(llm, Contact))
    assert result.value == Contact(name="Ada")
    assert result.value_error is None
    body = llm.requests[0]
    assert tool_names(api, body) == ["answer"]
    assert choice_of(api, body) == ("answer" if FORCES[api] else None)
    assert not body.keys() & {"response_format", "text", "output_config", "outputConfig"}
    assert "generationConfig" not in body
    assert "Somebody to write to." in json.dumps(tools_of(api, body))
    results = session.transcript[2]
    assert [r.content for r in results.results] == ["Answer received."]  # type: ignore[union-attr]
    check_sendable(session)
    session.push_user("bye")
    assert session.text_turn(llm).collect_sync().text == "Bye."


@every_api
async def test_the_same_without_blocking(api: str) -> None:
    call = Reply(text="Here:", calls=[Call("answer", {"value": [1, 2]})])
    llm, session = scripted(api, call, call, call, structured="tool"), asked()
    assert (await session.structured_turn(llm, list[int]).collect()).value == [1, 2]
    session.push_user("again")
    staged = await session.structured_turn(llm, list[int], tools=Tools).collect_staged()
    assert isinstance(staged, Finished)
    assert staged.result.value == [1, 2]
    assert len(session.turns()) == 1
    staged.commit(session)
    with pytest.raises(RoundClosedError):
        staged.commit(session)
    session.push_user("again")
    async with session.structured_turn(llm, list[int], tools=Tools).stream() as stream:
        events = [event async for event in stream]
    assert (
        "".join([e.arguments for e in events if isinstance(e, ToolCallDelta)]).replace(" ", "")
        == '{"value":[1,2]}'
    )
    assert not [e for e in events if isinstance(e, (ToolCallReady, ToolCallIssueFound))]
    assert isinstance(stream.outcome, Finished)
    assert stream.outcome.result.value == [1, 2]
    assert len(session.turns()) == 3
    check_sendable(session)


@every_api
@pytest.mark.parametrize("drive", [collect, stream])
def test_tools_first_then_the_answer(api: str, drive: Drive) -> None:
    llm, session = (
        scripted(
            api,
            Reply(calls=[Call("weather", {"city": "Oslo"}), Call("answer", {"name": "too soon"})]),
            Reply(calls=[Call("answer", {"name": "too soon"})]),
            structured="tool",
        ),
        asked(),
    )
    outcome = drive(session.structured_turn(llm, Contact, tools=Tools))
    assert isinstance(outcome, NeedsTools)
    (issue,) = outcome.round.issues
    assert (issue.metadata.name, issue.reason) == ("answer", "not_available")
    assert "after the results" in issue.detail
    (call,) = outcome.round.calls
    outcome.round.commit(session, [call.complete("sunny")])
    check_sendable(session)
    assert tool_names(api, llm.requests[0]) == ["weather", "answer"]
    assert choice_of(api, llm.requests[0]) == ("required" if FORCES[api] else None)
    again = drive(session.structured_turn(llm, Contact, tools=Tools))
    assert isinstance(again, Finished)
    assert again.result.value == Contact(name="too soon")
    check_sendable(session)


@every_api
@pytest.mark.parametrize("drive", [collect, stream])
def test_an_answer_that_does_not_fit_is_told_C2(api: str, drive: Drive) -> None:
    for call, finish, said in (
        (Call("answer", {"age": 3}), None, "name: Field required"),
        (Call("answer", {"name": "Ada"}), "length", "cut off"),
        (Call("answer", ""), None, "name: Field required"),
    ):
        session = asked()
        llm = scripted(api, Reply(calls=[call], finish=finish), structured="tool")
        result = drive(session.structured_turn(llm, Contact))
        assert result.value is None
        assert said in result.value_error
        told = session.transcript[2].results[0]  # type: ignore[union-attr]
        assert told.status == "rejected"
        assert said in told.text
        check_sendable(session)


@every_api
def test_several_answers_and_strangers_beside_them(api: str) -> None:
    wrong, right = Call("answer", {"age": 1}), Call("answer", {"name": "Ada"})
    session = asked()
    llm = scripted(api, Reply(calls=[wrong, right, right, Call("nope")]), structured="tool")
    result = session.structured_turn(llm, Contact).collect_sync()
    assert (result.value, result.value_error) == (Contact(name="Ada"), None)
    statuses = [r.status for r in session.transcript[2].results]  # type: ignore[union-attr]
    assert statuses == ["rejected", "ok", "rejected", "rejected"]
    check_sendable(session)
    session = asked()
    llm = scripted(api, Reply(calls=[right, Call("nope")]), structured="tool")
    staged = session.structured_turn(llm, Contact).collect_staged_sync()
    assert len(session.transcript) == 1
    staged.commit(session)
    assert [r.status for r in session.transcript[2].results] == ["ok", "rejected"]  # type: ignore[union-attr]
    session = asked()
    llm = scripted(api, Reply(calls=[right, Call("nope")]), structured="tool")
    outcome = session.structured_turn(llm, Contact, tools=Tools).collect_sync()
    assert isinstance(outcome, NeedsTools)  # rule C7: the model has to be told of the other
    assert [i.reason for i in outcome.round.issues] == ["not_available", "unknown_tool"]
    outcome.round.commit(session, [])
    check_sendable(session)


@every_api
@pytest.mark.parametrize("drive", [collect, stream])
def test_text_in_place_of_the_call_is_read(api: str, drive: Drive) -> None:
    for text, value in (('```json\n{"name": "Ada"}\n```', Contact(name="Ada")), ("Sure!", None)):
        session = asked()
        result = drive(
            session.structured_turn(scripted(api, Reply(text=text), structured="tool"), Contact)
        )
        assert result.value == value
        assert (result.value_error is None) is (value is not None)
    session = asked()
    refused = drive(
        session.structured_turn(scripted(api, Reply(refusal="No."), structured="tool"), Contact)
    )
    assert refused.value is None
    assert said_of_a_refusal(api) in refused.value_error
    assert (refused.refusal or refused.text) == "No."


@every_api
def test_another_name_where_the_toolset_has_it(api: str) -> None:
    session = asked()
    llm = scripted(
        api,
        Reply(calls=[Call("answer")]),
        Reply(calls=[Call("answer_2", {"name": "Ada"})]),
        structured="tool",
    )
    outcome = session.structured_turn(llm, Contact, tools=Phone).collect_sync()
    assert isinstance(outcome, NeedsTools)
    assert tool_names(api, llm.requests[0]) == ["answer", "answer_2"]
    outcome.round.commit(session, [outcome.round.expect_one().complete("hello")])
    done = session.structured_turn(llm, Contact, tools=Phone).collect_sync()
    assert isinstance(done, Finished)
    assert done.result.value == Contact(name="Ada")


@every_api
def test_what_the_turn_requires_holds(api: str) -> None:
    call = Reply(calls=[Call("weather", {"city": "Oslo"})])
    llm = scripted(api, call, call, structured="tool")
    for require in (ToolRequirement[Any].at_least_one(), ToolRequirement.specific(Tools.weather)):
        if not FORCES[api]:
            with pytest.raises(InvalidToolConstraints, match="no tool choice"):
                asked().structured_turn(llm, Contact, tools=Tools, require=require).collect_sync()
            continue
        outcome = asked().structured_turn(llm, Contact, tools=Tools, require=require).collect_sync()
        assert isinstance(outcome, NeedsTools)
        outcome.round.discard()
    if FORCES[api]:
        assert tool_names(api, llm.requests[0]) == ["weather"]
        assert choice_of(api, llm.requests[1]) == "weather"


@pytest.mark.parametrize(
    ("model", "extra"),
    [
        ("claude-opus-5-5", {}),
        ("claude-sonnet-4-5", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
    ],
)
def test_a_model_that_takes_no_forced_choice_is_told_C9(model: str, extra: dict[str, Any]) -> None:
    for tools in ({}, {"tools": Tools}):
        reply = Reply(calls=[Call("answer", {"name": "Ada"})])
        llm, session = (
            scripted("anthropic_messages", reply, structured="tool", model=model),
            asked(),
        )
        result: Any = session.structured_turn(llm, Contact, extra=extra, **tools).collect_sync()  # type: ignore[call-overload]
        assert (result.result if tools else result).value == Contact(name="Ada")
        assert "tool_choice" not in llm.requests[0]
        assert "calling this tool" in json.dumps(llm.requests[0]["tools"])


@every_api
def test_a_session_that_moved_on_K4(api: str) -> None:
    session = asked()

    def late(_api: Any, _body: Any) -> Reply:
        session.push_user("meanwhile")
        return Reply(calls=[Call("answer", {"name": "Ada"})])

    with pytest.raises(StaleRoundError) as caught:
        session.structured_turn(scripted(api, late, structured="tool"), Contact).collect_sync()
    assert caught.value.result.value == Contact(name="Ada")


def test_ephemerals_leave_with_the_answer_S4() -> None:
    for arguments, kept in (({"name": "Ada"}, 0), ({"age": 1}, 1)):
        session = asked()
        session.push_ephemeral_user("hint")
        reply = Reply(reasoning="hm", calls=[Call("answer", arguments)])
        session.structured_turn(
            scripted("anthropic_messages", reply, structured="tool"), Contact
        ).collect_sync()
        assert sum([getattr(item, "ephemeral", False) for item in session.transcript]) == kept
        check_sendable(session)


def test_the_same_turn_gives_the_same_bytes_A4() -> None:
    reply = Reply(calls=[Call("answer", {"name": "Ada"})])
    llm = scripted("openai_chat", reply, reply, structured="tool")
    for _ in range(2):
        asked().structured_turn(llm, Contact, tools=Tools).collect_sync()
    assert json.dumps(llm.requests[0]) == json.dumps(llm.requests[1])


def test_the_order_of_a_union_is_kept_A4() -> None:
    for union, first in ((int | str, "integer"), (str | int, "string")):
        llm = scripted("openai_chat", Reply(text="1"))
        asked().structured_turn(llm, union).collect_sync()
        schema = llm.requests[0]["response_format"]["json_schema"]["schema"]
        assert schema["properties"]["value"]["anyOf"][0]["type"] == first


@every_api
def test_the_tool_over_the_wire(api: str) -> None:
    replies = [
        Reply(text="Here:", calls=[Call("answer", {"name": "Ada"})]),
        Reply(calls=[Call("weather", {"city": "Oslo"}), Call("answer", {"name": "Bo"})]),
        Reply(calls=[Call("answer", {"name": "Bo"})]),
    ]
    session = asked()
    with serve(replies) as server:
        with sync_model_at(api, server.url, structured="tool") as llm:
            assert session.structured_turn(llm, Contact).collect_sync().value == Contact(name="Ada")
            session.push_user("again")
            outcome = stream(session.structured_turn(llm, Contact, tools=Tools))
            outcome.round.commit(session, [outcome.round.calls[0].complete("sunny")])
            done = stream(session.structured_turn(llm, Contact, tools=Tools))
        assert done.result.value == Contact(name="Bo")
        assert [request.status for request in server.requests] == [200, 200, 200]
    check_sendable(session)


@pytest.mark.parametrize("adapter", ADAPTERS.values())
def test_the_option_of_the_adapters(adapter: Any) -> None:
    assert adapter("m").structured == "native"
    assert adapter("m", structured="tool").structured == "tool"
    with pytest.raises(ValueError, match="neither"):
        adapter("m", structured="tools")


def test_a_model_without_the_option_is_native() -> None:
    class Wrapper:
        def __init__(self, inner: ScriptedModel) -> None:
            self.inner = inner

        async def respond(self, transcript: Transcript, offering: Any, options: Any) -> Any:
            return await self.inner.respond(transcript, offering, options)

        def respond_sync(self, transcript: Transcript, offering: Any, options: Any) -> Any:
            return self.inner.respond_sync(transcript, offering, options)

    llm = scripted("openai_chat", Reply(text='{"name": "Ada"}'), structured="tool")
    assert asked().structured_turn(Wrapper(llm), Contact).collect_sync().value == Contact(
        name="Ada"
    )
    assert "response_format" in llm.requests[0]


@given(
    calls=st.lists(st.sampled_from(["good", "bad", "tool", "unknown"]), max_size=4),
    text=st.sampled_from(["", "Hm.", '{"name": "Ada"}']),
    finish=st.sampled_from([None, "length"]),
    api=st.sampled_from(list(ADAPTERS)),
    tools=st.booleans(),
)
def test_whatever_stands_together_the_transcript_can_be_sent_and_streams_agree_K5_S1(
    calls: list[str], text: str, finish: str | None, api: str, tools: bool
) -> None:
    made = {
        "good": Call("answer", {"name": "Ada"}),
        "bad": Call("answer", {"age": 1}),
        "tool": Call("weather", {"city": "Oslo"}),
        "unknown": Call("nope"),
    }
    reply = Reply(text=text, calls=[made[c] for c in calls], finish=finish)
    dumps: list[Any] = []
    for drive in (collect, collect_staged, stream):
        session = asked()
        llm = scripted(api, reply, structured="tool")
        turn: Any = (
            session.structured_turn(llm, Contact, tools=Tools)
            if tools
            else session.structured_turn(llm, Contact)
        )
        outcome = drive(turn)
        if isinstance(outcome, NeedsTools):
            assert set(calls) & {"tool", "unknown"}
            assert {c.metadata.name for c in outcome.round.calls} <= {"weather"}
            outcome.round.commit(session, [c.complete("x") for c in outcome.round.calls])
        else:
            if drive is collect_staged:
                assert not session.turns()
                outcome.commit(session)
            result = outcome.result if isinstance(outcome, Finished) else outcome
            assert (result.value is None) is (result.value_error is not None)
            if "good" in calls and finish is None:
                assert result.value == Contact(name="Ada")
        check_sendable(session)
        dumps.append(session.dump())
    assert dumps[0] == dumps[1]
    assert dumps[0] == dumps[2]
