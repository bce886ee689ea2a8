"""What changes between turns is said in system messages of Converse, by reference, and reasoning is
sent only where it still fits (rules PB2 to PB9, PB20).
"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from ledger_oracle import JudgedModel, signed_reply

from lutumpy import (
    NeedsTools,
    PrefixChangedError,
    Session,
    ToolAvailability,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.bedrock.carriers import without_reasoning
from lutumpy.testing import Failure

FABLE = "us.anthropic.claude-fable-5-2-v1:0"


@tool_fn
def look(key: str) -> str:
    """Look something up."""
    return key


@tool_fn
def send(key: str) -> str:
    """Send a text."""
    return key


@tool_fn
def delete(key: str) -> str:
    """Delete something."""
    return key


class Tools(Toolset):
    look, send, delete = tool(look), tool(send, off=True), tool(delete)


NARROW = ToolAvailability.only(Tools.look)
WIDE = ToolAvailability.all()


def conversation(model: str = FABLE, **options: Any) -> tuple[JudgedModel, Session]:
    session = Session()
    session.push_system("Be brief.")
    session.push_user("go")
    return JudgedModel(BedrockConverse(model, **options)), session


def step(llm: JudgedModel, session: Session, call: str | None = None, **options: Any) -> Any:
    llm.play(signed_reply(len(llm.bodies), call, {"key": "x"}))
    outcome = session.text_turn(llm, tools=Tools, **options).collect_sync()
    if isinstance(outcome, NeedsTools):
        found = outcome.round
        found.commit(session, [c.complete("done") for c in found.calls])
        return found
    session.push_user("go on")
    return outcome.result


def declared(body: dict[str, Any]) -> list[str]:
    tools = body["toolConfig"]["tools"]
    return [entry["toolSpec"]["name"] for entry in tools if "toolSpec" in entry]


@pytest.mark.parametrize("cache", [None, "auto"])
def test_tools_are_withdrawn_and_offered_again_by_reference_PB2_PB6(cache: Any) -> None:
    llm, session = conversation(cache=cache)
    step(llm, session, "look")
    step(llm, session, available=NARROW)
    (removal,) = llm.bodies[-1]["messages"][-1:]
    assert removal == {
        "role": "system",
        "content": [{"toolRemoval": {"tool": {"name": "delete"}}}],
    }
    result = step(llm, session, "look", available=NARROW)
    assert result.prefix.appended == ()
    result = step(llm, session)
    assert result.prefix.appended == ("tool_addition delete",)
    assert llm.bodies[-1]["messages"][-1]["content"] == [
        {"toolAddition": {"tool": {"name": "delete"}}}
    ]
    result = step(llm, session, describe={Tools.look: "Look in the new index."})
    assert llm.bodies[-1]["messages"][-1]["content"] == [
        {"text": "The tool `look` from here on: Look in the new index."}
    ]
    assert (result.prefix.cache, result.prefix.dropped) == ("begins", ())
    assert {tuple(declared(body)) for body in llm.bodies} == {("look", "delete")}
    assert llm.shown() == 4  # all reasoning before it
    assert not llm.refusals


def test_what_is_declared_so_that_the_list_stays_is_withdrawn_at_once_PB2() -> None:
    llm, session = conversation()
    result = step(llm, session, available=NARROW, prefix_stable=True)
    assert result.prefix.appended == ("tool_removal delete",)
    assert declared(llm.bodies[-1]) == ["look", "delete"]
    assert llm.bodies[-1]["messages"][-1]["content"] == [
        {"toolRemoval": {"tool": {"name": "delete"}}}
    ]
    assert not llm.refusals


def test_a_tool_with_other_parameters_has_no_words_either_PB8() -> None:
    @tool_fn(name="look")
    def look_twice(key: str, times: int = 2) -> str:
        """Look something up."""
        return key

    class Others(Toolset):
        look, delete = tool(look_twice), tool(delete)

    llm, session = conversation()
    step(llm, session)
    llm.play(signed_reply(len(llm.bodies), None, {}))
    outcome = session.text_turn(llm, tools=Others).collect_sync()
    assert outcome.result.prefix.changed == ("tools",)
    assert [lost.turn for lost in outcome.result.prefix.dropped] == [0]
    assert not llm.refusals


def test_a_new_tool_has_no_words_so_exactly_what_is_bound_stays_out_PB8_PB9() -> None:
    llm, session = conversation()
    step(llm, session, "look")
    step(llm, session, available=NARROW)
    result = step(llm, session, available=WIDE)
    assert declared(llm.bodies[-1]) == ["look", "delete", "send"]
    assert [(lost.turn, lost.by) for lost in result.prefix.dropped] == [
        (0, "lutumpy"),
        (1, "lutumpy"),
    ]
    assert result.prefix.changed == ("tools",)
    assert all(message["role"] != "system" for message in llm.bodies[-1]["messages"])
    session = Session.load(json.dumps(session.dump()))
    result = step(llm, session, available=WIDE)
    assert not result.prefix.dropped
    assert llm.shown() == 1  # what was said since
    step(llm, session)
    assert llm.bodies[-1]["messages"][-1]["content"] == [
        {"toolRemoval": {"tool": {"name": "send"}}}
    ]
    assert not llm.refusals


def test_an_error_policy_sends_nothing_when_reasoning_would_go_PB8() -> None:
    llm, session = conversation()
    step(llm, session)
    sent = len(llm.bodies)
    with pytest.raises(PrefixChangedError) as error:
        step(llm, session, available=WIDE, on_prefix_change="error")
    assert error.value.would_drop == (0,)
    assert (len(llm.bodies), len(session.turns())) == (sent, 1)


def test_a_message_that_grows_after_a_failure_is_hashed_again_PB8() -> None:
    llm, session = conversation()
    step(llm, session, "look")
    llm.play(Failure(503, "busy"))
    with pytest.raises(Exception, match="busy"):
        session.text_turn(llm, tools=Tools).collect_sync()
    session.push_user("are you there?")
    step(llm, session)
    result = step(llm, session, available=NARROW)
    assert not result.prefix.dropped
    assert llm.shown() == 2
    assert not llm.refusals


def test_an_answer_behind_other_words_of_the_assistants_keeps_no_reasoning_PB8_PB15() -> None:
    llm, session = conversation()
    llm.play(signed_reply(1, "look", {"key": "x"}))
    outcome = session.text_turn(llm, tools=Tools).collect_sync()
    assert isinstance(outcome, NeedsTools)
    session.push_assistant("One moment.")
    results = [call.complete("done") for call in outcome.round.calls]
    outcome.round.commit(session, results, rebase=True)
    step(llm, session)
    assert llm.shown() == 0
    assert not llm.refusals


def test_models_that_bind_nothing_get_the_tools_in_place_PB12(
    caplog: pytest.LogCaptureFixture,
) -> None:
    llm, session = conversation("us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    with caplog.at_level(logging.WARNING, logger="lutumpy.prefix"):
        step(llm, session)
        assert step(llm, session).prefix.cache == "begins"
        assert not caplog.records
        result = step(llm, session, available=NARROW)
    (record,) = caplog.records
    assert "tools is different" in record.getMessage()  # PB20
    assert (result.prefix.cache, result.prefix.dropped) == ("restarts", ())
    assert declared(llm.bodies[-1]) == ["look"]


def test_a_reminder_leaves_with_a_receipt_PB14() -> None:
    llm, session = conversation()
    step(llm, session)
    session.push_ephemeral_system("It is Monday.")
    step(llm, session)
    result = step(llm, session)
    assert [lost.turn for lost in result.prefix.dropped] == [1]
    assert result.prefix.cache == "restarts"
    assert llm.shown() == 1
    assert not llm.refusals


def test_own_io_says_and_records_the_same_PB1() -> None:
    llm, session = conversation()
    other, own = conversation()
    changes: list[dict[str, Any]] = [{}, {"available": NARROW}, {}, {"available": WIDE}]
    for number, change in enumerate(changes):
        step(llm, session, **change)
        offer = Tools.offer(**change)
        body = BedrockConverse.request(own.transcript, offer, model=FABLE)
        assert {**body, "model": FABLE} == llm.bodies[-1]
        answer = other.judge.render_reply(
            signed_reply(number), number=number + 1, model=FABLE, body=body
        )
        outcome = offer.read(BedrockConverse.response(answer), own)
        assert not isinstance(outcome, NeedsTools)
        own.push_user("go on")
    assert own.transcript.settings == session.transcript.settings


def test_a_message_whose_content_is_no_list_has_no_reasoning_to_lose_PB8() -> None:
    entry = b'{"role":"assistant","content":"text"}'
    assert without_reasoning(entry) == entry
