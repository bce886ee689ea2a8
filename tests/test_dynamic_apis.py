"""Tools that are known at run time, through every API: offered, called, streamed, kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dynamic_toolkit import AppTools, weather_tool
from every_api import ADAPTERS, CHECKS

from lutumpy import (
    DynamicTool,
    Finished,
    InvalidToolConstraints,
    NeedsTools,
    Session,
    ToolAvailability,
    ToolCallReady,
    ToolRequirement,
    Toolset,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Call, Reply, ScriptedModel
from lutumpy.text_tools import TagToolParser, TextTools

every_api = pytest.mark.parametrize("api", ADAPTERS)

NODE = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "empty": {},
    "plain": NODE,
    "open": {"type": "object", "additionalProperties": {"type": "integer"}},
    "draft-7": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"of": {"$ref": "#/definitions/node"}, "n": {"type": "integer"}},
        "required": ["of"],
        "additionalProperties": False,
        "definitions": {"node": NODE},
    },
    "union": {
        "oneOf": [{"$ref": "#/$defs/a"}, NODE],
        "$defs": {"a": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    },
    "list": {"type": "object", "properties": {"of": {"type": "array", "prefixItems": [NODE]}}},
}
STRANGE = [DynamicTool(name, "A tool.", schema) for name, schema in SCHEMAS.items()]


def asked() -> Session:
    session = Session()
    session.push_user("go")
    return session


def refused(api: str, body: dict[str, Any]) -> list[Any]:
    return [p for p in CHECKS[api]({"model": "m", **body}) if p.certainty == "refused"]


@every_api
@pytest.mark.parametrize("strict", [False, True])
def test_every_schema_is_offered_in_a_form_that_the_api_takes(api: str, strict: bool) -> None:
    offer = Toolset.of("Strange", STRANGE).offer()
    body = ADAPTERS[api].request(asked().transcript, offer, strict=strict)
    assert refused(api, body) == []


def test_definitions_of_draft_7_have_a_strict_form() -> None:
    tool = DynamicTool("of", "A tool.", SCHEMAS["draft-7"], strict=True)
    (sent,) = OpenAIChat.tools(Toolset.of("One", [tool]).offer())
    function = sent["function"]
    assert function["strict"] is True
    assert function["parameters"]["definitions"] == {"node": NODE}
    assert function["parameters"]["required"] == ["of", "n"]
    assert "$schema" not in function["parameters"]


@every_api
def test_equal_sets_are_sent_as_equal_bytes_A4(api: str) -> None:
    def tools() -> str:
        made = [DynamicTool(tool.name, "A tool.", tool.schema) for tool in STRANGE]
        filled = AppTools.with_dynamic_tools({AppTools.more: made})
        return json.dumps(ADAPTERS[api].tools(filled.offer()))

    assert tools() == tools()


@every_api
def test_two_turns_with_different_sets_and_a_round_open_across_the_change_Y6(api: str) -> None:
    session = asked()
    rain, snow = weather_tool("rain"), weather_tool("snow")
    first = AppTools.with_dynamic_tools({AppTools.more: [rain]})
    second = AppTools.with_dynamic_tools({AppTools.more: [snow]})
    llm = ScriptedModel(
        [
            Reply(calls=[Call("rain", {"city": "Oslo"}), Call("search", {"query": "a"})]),
            Reply(calls=[Call("snow", {"city": "Rome"}), Call("rain", {"city": "Rome"})]),
            Reply(text="Done."),
        ],
        api=api,  # type: ignore[arg-type]
    )
    outcome = session.text_turn(llm, tools=first).collect_sync()
    assert isinstance(outcome, NeedsTools)
    second.offer()  # the set changes while the round is open
    assert all(AppTools.more.matches(call) for call in outcome.round.calls[:1])
    outcome.round.commit(session, [call.complete("dry") for call in outcome.round.calls])
    outcome = session.text_turn(llm, tools=second).collect_sync()
    assert isinstance(outcome, NeedsTools)
    assert [call.metadata.name for call in outcome.round.calls] == ["snow"]
    assert [issue.reason for issue in outcome.round.issues] == ["unknown_tool"]
    outcome.round.commit(session, [call.complete({"cm": 3}) for call in outcome.round.calls])
    # A dump holds no toolset, so it is loaded where nobody knows these tools.
    session = Session.load(json.dumps(session.dump()))
    finished = session.text_turn(llm).collect_sync()
    assert finished.text == "Done."
    assert [refused(api, body) for body in llm.requests] == [[], [], []]
    for other, adapter in ADAPTERS.items():
        session.push_user("and now?")
        assert refused(other, adapter.request(session.transcript)) == []


@every_api
async def test_a_stream_has_them_ready_like_any_other(api: str) -> None:
    filled = AppTools.with_dynamic_tools({AppTools.more: [weather_tool()]})
    arguments = '{"city": "Oslo", "days": null, "tags": "[\\"a\\"]"}'
    llm = ScriptedModel([Reply(calls=[Call("get-weather", arguments)])], api=api)  # type: ignore[arg-type]
    session = asked()
    async with session.text_turn(llm, tools=filled).stream() as stream:
        ready = [event.call async for event in stream if isinstance(event, ToolCallReady)]
    (call,) = ready
    assert AppTools.more.matches(call)
    assert call.arguments == {"city": "Oslo", "tags": ["a"]}
    assert [repair.path for repair in call.repairs] == ["tags"]
    assert isinstance(stream.outcome, NeedsTools)
    stream.outcome.round.discard()


def test_availability_requirement_and_descriptions_name_them_by_selector() -> None:
    filled = AppTools.with_dynamic_tools(
        {AppTools.more: [weather_tool("rain"), weather_tool("sun")]}
    )
    rain = filled.more["rain"]
    offer = filled.offer(
        available=ToolAvailability.only(rain),
        require=ToolRequirement.specific(rain),
        describe={rain: "Rain alone."},
    )
    assert [(spec.name, spec.description) for spec in offer.specs] == [("rain", "Rain alone.")]
    with pytest.raises(InvalidToolConstraints):
        AppTools.offer(available=ToolAvailability.only(rain))


@pytest.mark.parametrize("guided", [False, True])
def test_a_text_model_calls_them(guided: bool) -> None:
    filled = AppTools.with_dynamic_tools({AppTools.more: [weather_tool(), *STRANGE]})
    call = '{"name": "get-weather", "args": {"city": "Oslo"}}'
    text = f'{{"answer": [{call}]}}'
    if not guided:
        text = '<tool_call>{"name": "get-weather", "arguments": {"city": "Oslo"}}</tool_call>'
    inner = ScriptedModel(
        [Reply(text=text), Reply(text='{"answer": "Dry."}' if guided else "Dry.")]
    )
    session = asked()
    llm = TextTools(inner, TagToolParser.hermes(), guided=guided)
    outcome = session.text_turn(llm, tools=filled).collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [call.complete("dry") for call in outcome.round.calls])
    outcome = session.text_turn(llm, tools=filled).collect_sync()
    assert isinstance(outcome, Finished)
    assert outcome.result.text == "Dry."
    assert [refused("openai_chat", body) for body in inner.requests] == [[], []]
