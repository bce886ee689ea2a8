"""A history with signed reasoning and changes of tools is read, goes back as it came, and goes on
(rules PB6, PB8, PB18).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from ledger_oracle import JudgedModel

from lutumpy import Session, ToolAvailability, Toolset, Transcript, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.openai import OpenAIResponses, facts_of
from lutumpy.models import PrefixReport
from lutumpy.testing import Reply

FABLE, ASTRA = "claude-fable-5-2", "gpt-6.2-astra"
ADAPTERS: dict[str, Callable[[], Any]] = {
    "messages": lambda: AnthropicMessages(FABLE, cache=None, host=facts_of("api.anthropic.com")),
    "messages by reference": lambda: AnthropicMessages(
        FABLE, cache=None, host=facts_of("aiplatform.googleapis.com")
    ),
    "converse": lambda: BedrockConverse(f"us.anthropic.{FABLE}-v1:0"),
    "responses": lambda: OpenAIResponses(ASTRA, host=facts_of("api.openai.com")),
}
# Where the messages and the tools of a body are.
PLACES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "anthropic_messages": ("messages", lambda body: body.get("tools")),
    "bedrock_converse": ("messages", lambda body: body.get("toolConfig", {}).get("tools")),
    "openai_responses": ("input", lambda body: body.get("tools")),
}


@tool_fn
def look(key: str) -> str:
    """Look something up."""
    return key


@tool_fn(name="look")
def look_far(key: str, pages: int = 1) -> str:
    """Look something up."""
    return key


@tool_fn
def send(key: str) -> str:
    """Send a text."""
    return key


class First(Toolset):
    look = tool(look)


class Tools(Toolset):
    look, send = tool(look), tool(send)


class Redefined(Toolset):
    look, send = tool(look_far), tool(send)


ONLY_SEND = {"tools": Tools, "available": ToolAvailability.only(Tools.send)}


def ask(session: Session, llm: JudgedModel, **options: Any) -> PrefixReport:
    llm.play(Reply(text="Yes.", reasoning=f"thought {len(llm.bodies)}"))
    outcome: Any = session.text_turn(llm, **options).collect_sync()
    session.push_user("go on")
    assert not llm.refusals
    report: PrefixReport = outcome.result.prefix
    return report


def read_again(body: dict[str, Any], llm: JudgedModel) -> Session:
    """The session of a request's own history."""
    key, tools_of = PLACES[llm.api]
    body = json.loads(json.dumps(body))
    host = llm.adapter.host
    return Session(
        Transcript.from_messages(
            llm.api, body[key], tools=tools_of(body), model=llm.model, host=host
        )
    )


@pytest.mark.parametrize("is_loaded", [False, True], ids=["", "loaded"])
@pytest.mark.parametrize("name", ADAPTERS)
def test_a_history_with_changes_goes_back_as_it_came_and_on_PB6_PB18(
    name: str, is_loaded: bool
) -> None:
    """Also where a new tool stands deferred behind the others, for a reference."""
    llm, session = JudgedModel(ADAPTERS[name]()), Session()
    session.push_user("go")
    for options in ({"tools": First}, {"tools": Tools}, ONLY_SEND):
        ask(session, llm, **options)
    ask(session, llm, tools=Tools)
    key, tools_of = PLACES[llm.api]
    before = json.loads(json.dumps(llm.bodies[-1]))
    session = read_again(before, llm)
    if is_loaded:
        session = Session.load(json.dumps(session.dump()))
    report = ask(session, llm, tools=Tools)
    assert not report.dropped
    assert report.unverified
    assert llm.bodies[-1][key] == before[key]
    assert tools_of(llm.bodies[-1]) == tools_of(before)
    assert not ask(session, llm, **ONLY_SEND).dropped
    assert not ask(session, llm, tools=Tools).dropped
    assert llm.transformed == 0


@pytest.mark.parametrize("name", ADAPTERS)
def test_unverified_reasoning_is_sent_behind_unchanged_entries_alone_PB8_PB18(name: str) -> None:
    """A conversation that starts again sends none of it, and says so."""
    llm, session = JudgedModel(ADAPTERS[name]()), Session()
    session.push_user("go")
    ask(session, llm, tools=Tools)
    ask(session, llm, **ONLY_SEND)
    ask(session, llm, tools=Tools)
    session = read_again(llm.bodies[-1], llm)
    assert ask(session, llm, tools=Tools).unverified == (0, 1)
    report = ask(session, llm, tools=Redefined, on_prefix_change="drop")
    assert [gone.turn for gone in report.dropped] == [0, 1, 2]
    assert {gone.by for gone in report.dropped} == {"lutumpy"}
    assert report.unverified == ()
    for _ in range(2):
        report = ask(session, llm, tools=Redefined)
        assert (report.dropped, report.unverified) == ((), ())
    assert llm.transformed == 0
    assert "thought 3" not in json.dumps(llm.bodies[-1])
    assert "thought 4" in json.dumps(llm.bodies[-1])


def test_a_change_that_is_taken_out_spoils_what_comes_behind_it_PB18() -> None:
    for name in ("messages", "converse"):
        llm, session = JudgedModel(ADAPTERS[name]()), Session()
        session.push_user("go")
        ask(session, llm, tools=Tools)
        ask(session, llm, **ONLY_SEND)
        ask(session, llm, tools=Tools)
        session = read_again(llm.bodies[-1], llm)
        report = ask(session, llm, tools=Tools, on_prefix_change="drop")
        assert (report.dropped, report.unverified) == ((), (0, 1))
        # The list of tools is the one that was read, and the first turn is behind nothing else.
        ask(session, llm, **ONLY_SEND)
        report = ask(session, llm, tools=Tools, on_prefix_change="drop")
        assert [gone.turn for gone in report.dropped] == [1, 2, 3]
        assert report.unverified == (0,)
        assert llm.transformed == 0
