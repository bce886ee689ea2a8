"""Tools stay declared where the choice of a request can say which of them may be called, on Gemini
and Chat, and what a request changes is told on every API (rules PB3, PB7, PB20).
"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from ledger_oracle import JudgedModel, signed_reply
from pydantic import BaseModel

from lutumpy import NeedsTools, Session, ToolAvailability, ToolRequirement, Toolset, tool, tool_fn
from lutumpy.adapters.gemini import Gemini
from lutumpy.adapters.narrowing import CHOICE
from lutumpy.adapters.ollama import OllamaChat
from lutumpy.adapters.openai import HostFacts, OpenAIChat, facts_of
from lutumpy.rules.gemini.limits import FOREIGN_SIGNATURE
from lutumpy.rules.openai.models import is_known
from lutumpy.testing import Reply

GEMINI = "gemini-3-flash-preview"
OPENAI = facts_of("api.openai.com")


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


class Choice(BaseModel):
    key: str


NARROW = ToolAvailability.only(Tools.look)
NONE = ToolAvailability.only()
WIDE = ToolAvailability.all()


def conversation() -> Session:
    session = Session()
    session.push_system("Be brief.")
    session.push_user("go")
    return session


def step(llm: JudgedModel, session: Session, call: str | None = None, **options: Any) -> Any:
    llm.play(signed_reply(len(llm.bodies), call, {"key": "x"}))
    tools = options.pop("tools", Tools)
    if tools is not None:
        options["tools"] = tools
    outcome = session.text_turn(llm, **options).collect_sync()
    if isinstance(outcome, NeedsTools):
        found = outcome.round
        found.commit(session, [c.complete("done") for c in found.calls])
        return found
    session.push_user("go on")
    return getattr(outcome, "result", outcome)  # without tools there is nothing else


def declared(body: dict[str, Any]) -> list[str]:
    """The names of the tools of a request."""
    if "contents" in body:
        return [each["name"] for entry in body["tools"] for each in entry["functionDeclarations"]]
    return [entry["function"]["name"] for entry in body["tools"]]


def choice(body: dict[str, Any]) -> list[str] | str | None:
    """The names that the model may call, or the word for it."""
    if "contents" in body:
        config = body.get("toolConfig", {}).get("functionCallingConfig", {})
        found: list[str] | str | None = config.get("allowedFunctionNames") or config.get("mode")
        return found
    given = body.get("tool_choice")
    if not isinstance(given, dict):
        return given
    if given["type"] == "function":
        return [given["function"]["name"]]
    return [entry["function"]["name"] for entry in given["allowed_tools"]["tools"]]


@pytest.mark.parametrize("api", ["gemini", "chat"])
def test_the_tools_stay_and_the_choice_narrows_them_PB7(
    api: str, caplog: pytest.LogCaptureFixture
) -> None:
    nothing = "NONE" if api == "gemini" else "none"
    llm = JudgedModel(Gemini(GEMINI) if api == "gemini" else OpenAIChat("gpt-5.4", host=OPENAI))
    session = conversation()
    wanted: list[tuple[dict[str, Any], Any]] = [
        ({}, None),
        ({"available": NARROW}, ["look"]),
        ({"available": NARROW}, ["look"]),
        ({}, None),
        ({"available": NONE}, nothing),
        ({"tools": None}, nothing),
        ({"available": NARROW, "require": ToolRequirement.specific(Tools.look)}, ["look"]),
        ({"available": NARROW, "require": ToolRequirement.at_least_one()}, ["look"]),
        ({"effort": "low"}, None),
    ]
    with caplog.at_level(logging.WARNING, logger="lutumpy.prefix"):
        for number, (options, names) in enumerate(wanted):
            may_call = number in (1, 6, 7)
            result = step(llm, session, "look" if may_call else None, **options)
            assert declared(llm.bodies[-1]) == ["look", "delete"]
            assert choice(llm.bodies[-1]) == names, options
            assert result.prefix.cache == ("begins" if number else "unknown")
            session = Session.load(json.dumps(session.dump())) if number == 3 else session
            if number == 3:  # what was sent last isn't part of a dump
                step(llm, session)
        assert not caplog.records
    assert not llm.refusals


@pytest.mark.parametrize("api", ["gemini", "chat"])
def test_a_call_of_what_is_declared_but_not_offered_is_not_available_PB3(api: str) -> None:
    llm = JudgedModel(Gemini(GEMINI) if api == "gemini" else OpenAIChat("gpt-5.4", host=OPENAI))
    session = conversation()
    step(llm, session)
    found = step(llm, session, "delete", available=NARROW)
    assert [issue.reason for issue in found.issues] == ["not_available"]


@pytest.mark.parametrize("api", ["gemini", "chat"])
def test_another_tool_or_text_is_a_new_beginning_which_is_told_PB20(
    api: str, caplog: pytest.LogCaptureFixture
) -> None:
    llm = JudgedModel(Gemini(GEMINI) if api == "gemini" else OpenAIChat("gpt-5.4", host=OPENAI))
    session = conversation()
    step(llm, session)
    with caplog.at_level(logging.WARNING, logger="lutumpy.prefix"):
        result = step(llm, session, available=WIDE)
    assert (result.prefix.cache, result.prefix.changed) == ("restarts", ("tools",))
    (record,) = caplog.records
    assert "tools is different" in record.getMessage()
    assert declared(llm.bodies[-1]) == ["look", "delete", "send"]
    assert step(llm, session, available=WIDE).prefix.cache == "begins"
    assert step(llm, session).prefix.cache == "begins"  # narrowed again, with the tools unchanged
    assert choice(llm.bodies[-1]) == ["look", "delete"]
    result = step(llm, session, describe={Tools.look: "Look in the new index."})
    assert result.prefix.cache == "restarts"
    assert declared(llm.bodies[-1]) == ["look", "delete"]
    assert not result.prefix.dropped
    assert not llm.refusals


def test_a_list_that_is_to_stay_is_the_base_on_every_API() -> None:
    for llm in (
        JudgedModel(Gemini(GEMINI)),
        JudgedModel(OpenAIChat("gpt-5.4", host=OPENAI)),
        JudgedModel(OpenAIChat("m", host=facts_of("localhost:9"))),  # it was asked for
    ):
        session = conversation()
        step(llm, session, available=NARROW, prefix_stable=True)
        step(llm, session, prefix_stable=True)
        assert [declared(body) for body in llm.bodies] == [["look", "delete"]] * 2
        assert [choice(body) for body in llm.bodies] == [["look"], None]


def test_where_nothing_is_known_of_model_or_host_the_tools_are_narrowed_in_place_PB12() -> None:
    strangers = [
        OpenAIChat("gpt-5.4", host=facts_of("api.groq.com")),
        OpenAIChat("gpt-5.4", base_url="http://localhost:8000/v1", api_key="k"),
        OpenAIChat("my-own", host=OPENAI),
        OllamaChat("llama3.2"),
        Gemini("my-own"),
        Gemini("gemini-2.0-flash"),
    ]
    for adapter in strangers:
        llm, session = JudgedModel(adapter), conversation()
        step(llm, session)
        result = step(llm, session, available=NARROW)
        assert declared(llm.bodies[-1]) == ["look"]
        assert choice(llm.bodies[-1]) is None
        assert result.prefix.cache == "restarts"
    own = OpenAIChat("m", host=HostFacts(address="llm.example.org", allowed_tools=True))
    llm, session = JudgedModel(own), conversation()
    step(llm, session)
    assert step(llm, session, available=NARROW).prefix.cache == "begins"
    assert is_known("o4-mini")
    assert not is_known(None)


def test_a_reminder_breaks_the_beginning_where_it_stood_PB20() -> None:
    for adapter in (Gemini(GEMINI), OllamaChat("llama3.2"), OpenAIChat("gpt-5.4", host=OPENAI)):
        llm, session = JudgedModel(adapter), conversation()
        step(llm, session)
        session.push_ephemeral_system("It is Monday.")
        assert step(llm, session).prefix.cache == "begins"
        result = step(llm, session)
        assert result.prefix.cache == "restarts"
        assert result.prefix.changed[0].startswith("messages.")


def test_json_beside_tools_is_never_asked_of_models_that_refuse_it_C9() -> None:
    llm, session = JudgedModel(Gemini("gemini-2.5-flash")), conversation()
    step(llm, session)
    llm.play(Reply(text='{"key": "yes"}'))
    session.structured_turn(llm, Choice).collect_sync()
    assert "tools" not in llm.bodies[-1]
    session.push_user("go on")
    step(llm, session, available=NARROW)
    assert declared(llm.bodies[-1]) == ["look", "delete"]


def test_signatures_of_gemini_stay_with_model_and_host_OR3() -> None:
    first = JudgedModel(Gemini(GEMINI, base_url="https://one.example.org", api_key="k"))
    session = conversation()
    step(first, session, "look")
    step(first, session)
    kept = [part for content in first.bodies[-1]["contents"] for part in content["parts"]]
    (signed,) = [part for part in kept if part.get("thoughtSignature")]
    for adapter in (
        Gemini("gemini-3-pro-preview", base_url="https://one.example.org", api_key="k"),
        Gemini(GEMINI, base_url="https://two.example.org", api_key="k"),
    ):
        other, branch = JudgedModel(adapter), session.fork()
        result = step(other, branch)
        parts = [part for content in other.bodies[-1]["contents"] for part in content["parts"]]
        assert signed["thoughtSignature"] not in json.dumps(parts)
        calls = [part for part in parts if "functionCall" in part]
        assert calls[0]["thoughtSignature"] == FOREIGN_SIGNATURE
        assert {left.what for left in result.prefix.left_out} == {"thought signatures"}
        assert not result.prefix.dropped  # nothing is marked: moved back, it goes as it came
        step(first, branch)
        back = [part for content in first.bodies[-1]["contents"] for part in content["parts"]]
        assert signed in back
    assert not first.refusals


def test_where_the_choice_narrows_no_reasoning_is_bound_and_nothing_is_said_in_between() -> None:
    entry = b'{"role":"assistant","content":"x"}'
    assert CHOICE.bound_form(entry) == entry
    assert not CHOICE.needs_record("any")
    assert CHOICE.may_read("any")
    assert CHOICE.withdraw(("look",)).entry == b""
