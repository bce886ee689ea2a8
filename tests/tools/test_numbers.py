"""NaN and infinities are not JSON (rules C2b, R3).

They are malformed in arguments, and a wrong output unless the type says how they are written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, PlainSerializer, field_serializer

from lutumpy import (
    CommitError,
    MalformedArgumentsError,
    NeedsTools,
    Session,
    ToolCall,
    ToolMetadata,
    ToolResult,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.plain import json_values
from lutumpy.rules.anthropic import messages as anthropic
from lutumpy.rules.openai.chat import messages as chat
from lutumpy.rules.openai.responses import items as responses
from lutumpy.rules.problem import is_json, is_json_object

NAN, INFINITY = float("nan"), float("inf")
RULES: dict[Any, Any] = {OpenAIChat: chat, OpenAIResponses: responses, AnthropicMessages: anthropic}


@tool_fn
def measure(x: float = 0, xs: list[Any] | None = None, note: str = "") -> Any:
    """Measure."""
    return x


class Tools(Toolset):
    measure = tool(measure)


NO_JSON = [
    '{"x": NaN}',
    '{"x": Infinity}',
    ' {"x":-Infinity}',
    '{"xs": [1, {"y": NaN}]}',
    "NaN",
    "[Infinity]",
]
JSON = ['{"note": "NaN"}', '{"note": "Infinity, -Infinity"}', '{"xs": ["NaN"]}']


def chat_reply(text: str) -> Any:
    call = {"id": "c1", "type": "function", "function": {"name": "measure", "arguments": text}}
    return OpenAIChat.response(
        {"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [call]}}]}
    )


def responses_reply(text: str) -> Any:
    item = {"type": "function_call", "call_id": "c1", "name": "measure", "arguments": text}
    return OpenAIResponses.response({"status": "completed", "output": [item]})


def messages_reply(text: str) -> Any:
    block = {"type": "tool_use", "id": "c1", "name": "measure", "input": json.loads(text)}
    return AnthropicMessages.response(
        {"role": "assistant", "stop_reason": "tool_use", "content": [block]}
    )


REPLIES = {"chat": chat_reply, "responses": responses_reply, "messages": messages_reply}


def read(turn: Any) -> tuple[Session, Any]:
    session = Session()
    session.push_user("go")
    outcome = Tools.offer().read(turn, session)
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


@pytest.mark.parametrize("text", NO_JSON)
@pytest.mark.parametrize("api", REPLIES)
def test_c2b_arguments_that_json_has_no_word_for_are_malformed_and_replayed_to_every_api(
    api: str, text: str
) -> None:
    session, round = read(REPLIES[api](text))
    assert [(i.reason, round.calls) for i in round.issues] == [("malformed_arguments", ())]
    round.commit(session, [])
    for adapter, rules in RULES.items():
        body = adapter.request(session.transcript)
        json.dumps(body, allow_nan=False)
        assert [
            p for p in rules.check_request({"model": "m", **body}) if p.certainty == "refused"
        ] == []


@pytest.mark.parametrize("text", JSON)
@pytest.mark.parametrize("api", REPLIES)
def test_c2b_a_text_that_says_nan_is_a_text(api: str, text: str) -> None:
    session, round = read(REPLIES[api](text))
    assert [c.arguments for c in round.calls] == [
        {"x": 0, "xs": None, "note": "", **json.loads(text)}
    ]
    round.commit(session, [round.calls[0].complete(1)])


@pytest.mark.parametrize("text", NO_JSON)
def test_c2b_parse_refuses_them_too(text: str) -> None:
    with pytest.raises(MalformedArgumentsError):
        Tools.parse(ToolMetadata("c1", "measure", text))


def test_c2b_a_text_within_a_string_is_held_to_json_as_well() -> None:
    _, round = read(chat_reply('{"xs": "[NaN]"}'))
    assert [i.reason for i in round.issues] == ["invalid_arguments"]
    round.discard()
    _, round = read(chat_reply('{"xs": "[1]"}'))
    assert round.calls[0].input.xs == [1]
    round.discard()


def test_c2b_streams_find_the_same() -> None:
    session = Session()
    session.push_user("go")
    reader = Tools.offer().reader(AnthropicMessages.stream_decoder(), session)
    block = {"type": "tool_use", "id": "c1", "name": "measure", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": '{"x": NaN}'}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    for event in events:
        reader.feed(event)
    outcome = reader.finish()
    assert isinstance(outcome, NeedsTools)
    assert [i.reason for i in outcome.round.issues] == ["malformed_arguments"]
    outcome.round.commit(session, [])
    json.dumps(AnthropicMessages.request(session.transcript), allow_nan=False)


def test_c2b_arguments_that_arrive_as_an_object_keep_what_stood_there() -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "measure", "arguments": {"x": NAN}},
    }
    _, round = read(OpenAIChat.response({"choices": [{"message": {"tool_calls": [call]}}]}))
    assert [(i.reason, i.metadata.arguments) for i in round.issues] == [
        ("malformed_arguments", '{"x":NaN}')
    ]
    round.discard()


def test_r3_a_number_that_overflows_goes_to_anthropic_as_text() -> None:
    session, round = read(chat_reply('{"x": 1e400}'))
    round.commit(session, [round.calls[0].complete(1)])
    content = AnthropicMessages.request(session.transcript)["messages"][1]["content"]
    assert content[0]["input"] == {"INVALID_JSON": '{"x": 1e400}'}


def test_the_rules_call_no_such_text_json() -> None:
    assert [is_json(t) or is_json_object(t) for t in NO_JSON] == [False] * len(NO_JSON)
    assert not json_values.equal_arguments('{"x":NaN}', '{"x": NaN}')
    assert json_values.as_written({"x": [NAN, {1: "\ud800"}]}) == '{"x":[NaN,{"1":"\ufffd"}]}'
    assert json_values.as_written({"x": object}).startswith('{"x":"<class')


# --- outputs ------------------------------------------------------------------------------------


class Plain(BaseModel):
    x: float = NAN
    y: int | None = None


class Strings(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="strings")
    x: float = NAN
    y: Any = INFINITY


class Outer(Strings):
    inner: Plain = Plain()


class Null(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="null")
    x: float = NAN


class Own(BaseModel):
    x: float = NAN

    @field_serializer("x")
    def write_x(self, x: float) -> str | None:
        return None


class ForJson(BaseModel):
    x: float = NAN

    @field_serializer("x", when_used="json")
    def write_x(self, x: float) -> str | None:
        return None


@dataclass
class Named:
    name: str
    x: float | None = None


Rounded = Annotated[float, PlainSerializer(lambda x: "none" if x != x else x)]


def result_of(output_type: Any, output: Any) -> ToolResult:
    def run() -> Any: ...

    run.__annotations__["return"] = output_type
    declared = tool_fn(run, description="Run.")

    class One(Toolset):
        run = tool(declared)

    call: ToolCall[Any, Any] = One.parse(ToolMetadata("c1", "run", "{}"))
    return call.complete(output)


@pytest.mark.parametrize(
    ("output_type", "output", "where"),
    [
        (float, NAN, "NaN is"),
        (float, -INFINITY, "-Infinity is"),
        (list[float], [1.0, NAN], r"NaN at \[1\]"),
        (set[float], {NAN}, r"NaN at \[0\]"),
        (Any, {"x": [{"y": INFINITY}]}, r"Infinity at x\[0\].y"),
        (dict[str, Any], {"x": NAN, "y": None}, "NaN at x"),
        (Plain, Plain(), "NaN at x"),
        (Outer, Outer(), "NaN at inner.x"),
        (Named, Named("\ud800", NAN), "NaN at x"),
    ],
)
def test_c2b_a_number_that_json_lacks_is_a_wrong_output(
    output_type: Any, output: Any, where: str
) -> None:
    import re

    result = result_of(output_type, output)
    assert result.output_error is not None
    assert re.search(where, result.output_error)


@pytest.mark.parametrize(
    ("output_type", "output", "text"),
    [
        (Strings, Strings(), '{"x":"NaN","y":"Infinity"}'),
        (Null, Null(), '{"x":null}'),
        (Own, Own(), '{"x":null}'),
        (ForJson, ForJson(), '{"x":null}'),
        (Rounded, NAN, '"none"'),
        (Plain, Plain(x=1), '{"x":1.0,"y":null}'),
        (Any, {"NaN": None, "x": "Infinity"}, '{"NaN":null,"x":"Infinity"}'),
        (Named, Named("NaN"), '{"name":"NaN","x":null}'),
        (Named, Named("\ud800"), '{"name":"\ufffd","x":null}'),
        (dict[float, int], {NAN: 1}, '{"nan":1}'),
    ],
)
def test_c2b_an_output_type_that_says_how_is_written_so(
    output_type: Any, output: Any, text: str
) -> None:
    result = result_of(output_type, output)
    assert (result.output_error, result.content) == (None, text)


def test_c2b_commit_reports_it() -> None:
    session, round = read(chat_reply("{}"))
    with pytest.raises(CommitError, match="NaN is a number") as refused:
        round.commit(session, [round.calls[0].complete(NAN)])
    assert [p.kind for p in refused.value.problems] == ["wrong_output"]
    round.commit(session, [round.calls[0].handled(1.0)])
