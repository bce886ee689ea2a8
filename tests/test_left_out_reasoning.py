"""Reasoning that a request had to leave out is in no later request of that branch, and no other
reasoning goes with it, wherever the conversation goes on (rules PB8, PB9, PB15, PB20, OR3).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from ledger_oracle import JudgedModel

from lutumpy import NeedsTools, Session, ToolAvailability, Toolset, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.openai import OpenAIResponses, facts_of
from lutumpy.models import PrefixReport
from lutumpy.testing import Call, Reply

VENDOR, VERTEX = facts_of("api.anthropic.com"), facts_of("aiplatform.googleapis.com")
OPENAI, AZURE = facts_of("api.openai.com"), facts_of("openai.azure.com")
FABLE, OPUS, ASTRA = "claude-fable-5-2", "claude-opus-4-8", "gpt-6.2-astra"
BINDING: dict[str, Callable[[], Any]] = {
    "messages": lambda: AnthropicMessages(FABLE, host=VENDOR),
    "converse": lambda: BedrockConverse(f"us.anthropic.{FABLE}-v1:0"),
    "responses": lambda: OpenAIResponses(ASTRA, host=OPENAI),
}


@tool_fn
def look(key: str) -> str:
    """Look something up."""
    return key


@tool_fn
def send(key: str) -> str:
    """Send a text."""
    return key


class Tools(Toolset):
    look, send = tool(look), tool(send)


ONE_TOOL: dict[str, Any] = {
    "available": ToolAvailability.only(Tools.look),
    "on_prefix_change": "drop",
}
"""A beginning in place of the one before, so that no reasoning fits behind it."""


class Move(NamedTuple):
    """Two places of one API.

    Attributes:
        first: Where the conversation begins, and comes back to.
        other: Where it is in between; this model binds its reasoning.
        goes: Whether reasoning of the first place may be sent to the other one.
    """

    first: Callable[[], Any]
    other: Callable[[], Any]


MOVES: dict[str, Move] = {
    "hosts of messages": Move(
        lambda: AnthropicMessages(OPUS, host=VERTEX), lambda: AnthropicMessages(FABLE, host=VENDOR)
    ),
    "models of messages": Move(
        lambda: AnthropicMessages(OPUS, host=VENDOR), lambda: AnthropicMessages(FABLE, host=VENDOR)
    ),
    "models of converse": Move(
        lambda: BedrockConverse("us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        lambda: BedrockConverse(f"us.anthropic.{FABLE}-v1:0"),
    ),
    "hosts of responses": Move(
        lambda: OpenAIResponses(ASTRA, host=AZURE), lambda: OpenAIResponses(ASTRA, host=OPENAI)
    ),
}


def ask(session: Session, llm: JudgedModel, **options: Any) -> PrefixReport:
    """A turn that thinks and answers; its report."""
    llm.play(Reply(text="Yes.", reasoning=f"thought {len(session.turns())}"))
    outcome: Any = session.text_turn(llm, tools=Tools, **options).collect_sync()
    session.push_user("go on")
    assert not llm.refusals
    report: PrefixReport = outcome.result.prefix
    return report


def sent_thoughts(llm: JudgedModel, turns: int) -> list[int]:
    """The turns whose reasoning is in the last request."""
    body = json.dumps(llm.bodies[-1])
    return [turn for turn in range(turns) if f'"thought {turn}"' in body]


@pytest.mark.parametrize("is_loaded", [False, True], ids=["", "loaded"])
@pytest.mark.parametrize("name", MOVES)
def test_what_one_place_left_out_takes_nothing_from_another_PB9_OR3(
    name: str, is_loaded: bool
) -> None:
    first, other = JudgedModel(MOVES[name].first()), JudgedModel(MOVES[name].other())
    session = Session()
    session.push_user("go")
    ask(session, other)
    ask(session, first)
    ask(session, first)
    told = ask(session, other, **ONE_TOOL)
    assert [each.turn for each in told.dropped] == [0]
    assert [each.turn for each in told.left_out] == [1, 2]
    if is_loaded:
        session = Session.load(json.dumps(session.dump()))
    back = ask(session, first)
    # What was left out for where it went comes back, and what was dropped doesn't.
    assert {1, 2}.issubset(sent_thoughts(first, 4))
    assert 0 not in sent_thoughts(first, 4)
    assert not back.dropped
    again = ask(session, other, **ONE_TOOL)
    assert sent_thoughts(other, 5) == [3]
    assert not again.dropped


@pytest.mark.parametrize("name", BINDING)
def test_a_window_knows_what_was_left_out_in_what_it_keeps_PB9_PB15(name: str) -> None:
    llm, session = JudgedModel(BINDING[name]()), Session()
    session.push_user("go")
    ask(session, llm)
    ask(session, llm)
    assert [each.turn for each in ask(session, llm, **ONE_TOOL).dropped] == [0, 1]
    ask(session, llm, **ONE_TOOL)
    ask(session, llm, **ONE_TOOL)
    *kept, _, last = session.transcript.rounds()
    window = Session(session.transcript.select([*kept, last]))
    assert window.transcript.settings == session.transcript.settings
    report = ask(window, llm, **ONE_TOOL)
    assert sent_thoughts(llm, 5) == [2, 3]
    assert not report.dropped


@pytest.mark.parametrize("name", BINDING)
def test_what_nobody_was_sent_yet_changes_no_beginning_PB20(name: str) -> None:
    llm, session = JudgedModel(BINDING[name]()), Session()
    session.push_user("go")
    ask(session, llm)
    llm.play(Reply(calls=[Call("look", {"key": "x"})], reasoning="thought 1"))
    outcome: Any = session.text_turn(llm, tools=Tools).collect_sync()
    assert isinstance(outcome, NeedsTools)
    session.push_user("Quick!")  # while the tools run, so that the answer stands behind it
    results = [call.complete("x") for call in outcome.round.calls]
    outcome.round.commit(session, results, rebase=True)
    report = ask(session, llm)
    assert sent_thoughts(llm, 2) == [0]
    assert [each.turn for each in report.dropped] == [1]
    assert (report.cache, report.changed) == ("begins", ())


@pytest.mark.parametrize("is_loaded", [False, True], ids=["", "loaded"])
@pytest.mark.parametrize("model", ["gpt-5.4", "gpt-5.6"])
def test_what_was_dropped_is_sent_to_no_model_that_binds_nothing_PB9(
    model: str, is_loaded: bool
) -> None:
    binding = JudgedModel(OpenAIResponses(ASTRA, host=OPENAI))
    other = JudgedModel(OpenAIResponses(model, host=OPENAI))
    session = Session()
    session.push_user("go")
    ask(session, binding)
    # One whose name has to be written in another way, so that the turn is written item by item.
    binding.play(Reply(calls=[Call("look it up", {})], reasoning="thought 1"))
    outcome: Any = session.text_turn(binding, tools=Tools).collect_sync()
    outcome.round.commit(session, [])
    ask(session, other)
    assert sent_thoughts(other, 3) == [0, 1]
    assert [each.turn for each in ask(session, binding, **ONE_TOOL).dropped] == [0, 1, 2]
    if is_loaded:
        session = Session.load(json.dumps(session.dump()))
    report = ask(session, other)
    assert sent_thoughts(other, 4) == [3]
    assert not report.dropped
    # It has its words, and all that follows stays where it was.
    body = json.dumps(other.bodies[-1])
    assert body.count("Yes.") == 3
    assert body.count("function_call_output") == 1
    again = ask(session, other)
    assert sent_thoughts(other, 5) == [3, 4]
    assert again.cache == "begins" or is_loaded
    assert ask(session, binding, **ONE_TOOL).dropped == ()
    assert sent_thoughts(binding, 6) == [3, 4, 5]
    assert ask(session.fork(), other).dropped == ()
    assert sent_thoughts(other, 7) == [3, 4, 5, 6]
