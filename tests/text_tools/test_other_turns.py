"""What isn't said in text by the conversation itself: late results, changes of native tools, and
histories that were read. The inner model is sent all that is said, and no tool (rules K5, LR4, R2).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from every_api import messages_of, tool_names
from text_toolkit import Tools, call, every_api

from lutumpy import NeedsTools, Session, ToolAvailability, Toolset, Transcript, tool, tool_fn
from lutumpy.testing import Call, Reply, ScriptedModel
from lutumpy.text_tools import TextTools

# Models that are told of changed tools by messages.
MODELS = {"anthropic_messages": "claude-fable-5-1", "openai_responses": "gpt-6.2-astra"}


@tool_fn(late=True)
def film(scene: str) -> str:
    """Make a film."""
    return scene


class Studio(Toolset):
    film = tool(film)


def model(api: str, *replies: Reply) -> ScriptedModel:
    return ScriptedModel(replies, api=api, model=MODELS.get(api, "scripted"))


def sent_to(session: Session, api: str, tools: type[Toolset] = Tools) -> dict[str, Any]:
    """The request of a text model behind this API, which has been taken."""
    inner = model(api, Reply("So."))
    session.text_turn(TextTools(inner), tools=tools).collect_sync()
    return inner.requests[-1]


def written(api: str, body: dict[str, Any]) -> str:
    return json.dumps(messages_of(api, body), ensure_ascii=False)


@pytest.mark.parametrize("native", [False, True])
@every_api
def test_a_late_result_is_told_in_text(api: str, native: bool) -> None:
    session = Session()
    session.push_user("Make a film.")
    if native:
        llm: Any = model(api, Reply(calls=[Call("film", {"scene": "dawn"}, id="c1")]))
    else:
        llm = TextTools(model(api, Reply(call("film", {"scene": "dawn"}))))
    outcome = session.text_turn(llm, tools=Studio).collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [c.later("an hour") for c in outcome.round.calls])
    session.push_user("Go on.")
    assert "the film is ready" not in written(api, sent_to(session, api, Studio))
    session.deliver([session.open_calls[0].complete("the film is ready")])
    for branch in (session.fork(), session, Session.load(session.dump())):
        said = written(api, sent_to(branch, api, Studio))
        assert said.count("the film is ready") == 1
        assert said.count("[Late result of call ") == 1


@every_api
def test_a_text_model_is_told_of_no_change_of_native_tools(api: str) -> None:
    session = Session()
    session.push_user("Hi.")
    sent_to(session, api)
    session.push_user("And the weather?")
    look = Reply(calls=[Call("weather", {"city": "Oslo"})])
    outcome = session.text_turn(model(api, look), tools=Tools).collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [c.complete("sunny") for c in outcome.round.calls])
    for available in (ToolAvailability.only(Tools.write), ToolAvailability.all()):
        llm = model(api, Reply("Fine."))
        session.text_turn(llm, tools=Tools, available=available).collect_sync()
        session.push_user("Really?")
    for branch in (session.fork(), session, Session.load(session.dump())):
        body = sent_to(branch, api)  # a model without native calls takes no tools
        assert tool_names(api, body) == []
        assert not {"tool_removal", "tool_addition", "additional_tools"} & set(
            written(api, body).split('"')
        )


@pytest.mark.parametrize("first", ["user", "assistant"])
@pytest.mark.parametrize("api", ["anthropic_messages", "openai_responses"])
def test_nor_of_one_that_a_history_says(api: str, first: str) -> None:
    tools: list[Any]
    history: list[Any] = [{"role": first, "content": "Hi."}, {"role": "user", "content": "So?"}]
    if api == "anthropic_messages":
        tools = [{"name": "look", "description": "Look.", "input_schema": {"type": "object"}}]
        gone = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "look"}}
        history.append({"role": "system", "content": [gone]})
    else:
        tools = [{"type": "function", "name": "look", "parameters": None, "strict": False}]
        more = {"type": "function", "name": "see", "parameters": None, "strict": False}
        history.append({"type": "additional_tools", "role": "developer", "tools": [more]})
    history.append({"role": "assistant", "content": "Hello."})
    session = Session(Transcript.from_messages(api, history, tools=tools))
    session.push_user("Well?")
    body = sent_to(session, api)
    assert tool_names(api, body) == []
    assert not {"tool_removal", "additional_tools"} & set(written(api, body).split('"'))
    for text in ("Hi.", "So?", "Hello.", "Well?"):
        assert written(api, body).count(text) == 1


@pytest.mark.parametrize("api", ["anthropic_messages", "bedrock_converse"])
def test_what_the_user_said_beside_results_is_sent_as_well(api: str) -> None:
    history: list[Any]
    if api == "anthropic_messages":
        history = [
            {"role": "user", "content": "Is it raining in Oslo?"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "no"},
                    {"type": "text", "text": "Try Bergen."},
                ],
            },
        ]
    else:
        history = [
            {"role": "user", "content": [{"text": "Is it raining in Oslo?"}]},
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "c1", "name": "look", "input": {}}}],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "c1", "content": [{"text": "no"}]}},
                    {"text": "Try Bergen."},
                ],
            },
        ]
    session = Session(Transcript.from_messages(api, history))
    said = written(api, sent_to(session, api))
    assert said.count("Try Bergen.") == 1
    assert said.count("Is it raining in Oslo?") == 1
