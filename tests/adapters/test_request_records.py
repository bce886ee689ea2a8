"""What a request says rides with it to its answer, at every API, also with a client of one's own
and where its opening fails (rules PB1, PB10).
"""

from __future__ import annotations

from typing import Any

import anthropic
import pytest
from every_api import ADAPTERS, APIS
from ledger_oracle import JudgedModel

from lutumpy import (
    AdapterError,
    Session,
    ToolAvailability,
    ToolRequirement,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.gemini import Gemini
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses, facts_of
from lutumpy.models import PrefixReport, ToolOffering, TurnSettings
from lutumpy.testing import Call, Failure, Reply, ScriptedModel, WireServer, render, serve

FABLE = "claude-fable-5-2"
VENDOR = facts_of("api.anthropic.com")
ADAPTIVE = {"type": "adaptive"}


@tool_fn
def look(key: str) -> str:
    """Look something up."""
    return key


@tool_fn
def send(text: str) -> str:
    """Send a text."""
    return text


class Tools(Toolset):
    look, send = tool(look), tool(send)


ONLY_LOOK = ToolAvailability.only(Tools.look)
STEPS: list[dict[str, Any]] = [
    {},
    {},
    {"available": ONLY_LOOK},
    {"available": ONLY_LOOK, "effort": "low"},
    {"effort": "low"},
]
AFTER_THE_BASE = (
    TurnSettings(removed=("send",)),
    TurnSettings(effort="low"),
    TurnSettings(added=("send",)),
)


async def test_every_api_records_what_changes_in_every_way_of_asking_PB1() -> None:
    for api in APIS:
        kept: dict[str, tuple[TurnSettings, ...]] = {}
        ways = ("collect", "collect_sync", "stream", "stream_sync")
        for way in (*ways, "own", "own, an equal offer", "own, read by a fork"):
            session = Session()
            llm = ScriptedModel([Reply("Yes.")] * len(STEPS), api=api)
            for number, step in enumerate(STEPS):
                session.push_user("go")
                if number == 3:
                    session.push_ephemeral_user("quick")
                if way.startswith("own"):
                    session = answer_by_hand(api, session, dict(step), way)
                    continue
                turn = session.text_turn(llm, tools=Tools, **step)
                if way == "collect":
                    await turn.collect()
                elif way == "collect_sync":
                    turn.collect_sync()
                elif way == "stream":
                    async with turn.stream() as stream:
                        await stream.collect()
                else:
                    with turn.stream_sync() as synced:
                        synced.collect()
            kept[way] = session.transcript.settings
        base, *later = kept["collect"]
        assert base.is_base
        assert base.added == ("look", "send")
        assert tuple(later) == AFTER_THE_BASE, api
        assert {*kept.values()} == {kept["collect"]}, api


def answer_by_hand(api: str, session: Session, step: dict[str, Any], way: str) -> Session:
    effort = step.pop("effort", None)
    offer = Tools.offer(**step)
    ADAPTERS[api].request(session.transcript, offer, effort=effort)
    reply = render(Reply("Yes."), api, number=len(session.turns()), model="m")
    if "equal" in way:
        offer = Tools.offer(**step)
    if "fork" in way:
        session = session.fork()
    offer.read(ADAPTERS[api].response(reply), session)
    return session


def test_an_answer_takes_the_record_of_its_own_request_only_PB1() -> None:
    session = Session()
    session.push_user("go")
    offer = Tools.offer()
    transcript = session.transcript
    ADAPTERS["openai_chat"].request(transcript, offer)
    other = AnthropicMessages.response(
        render(Reply("Yes."), "anthropic_messages", number=1, model="m")
    )
    assert transcript.take_note(offer, other).settings is None
    chat = ADAPTERS["openai_chat"]
    reply = render(Reply("Yes."), "openai_chat", number=1, model="m")
    # What was noted is taken once, and by an answer to the same offer.
    chat.request(transcript, offer)
    assert (
        transcript.take_note(Tools.offer(available=ONLY_LOOK), chat.response(reply)).settings
        is None
    )
    assert transcript.take_note(offer, chat.response(reply)).settings is None
    chat.request(transcript, offer)
    stamped = transcript.take_note(offer, chat.response(reply))
    assert stamped.settings is not None
    assert transcript.take_note(offer, stamped) is stamped
    # No offer and an empty one are the same, and so are equal ones.
    chat.request(transcript, None)
    assert transcript.take_note(ToolOffering(), chat.response(reply)).settings is not None
    choices: list[dict[str, Any]] = [
        {"available": ONLY_LOOK},
        {"require": ToolRequirement.at_least_one()},
        {"require": ToolRequirement.specific(Tools.look)},
        {"parallel": False},
        {"prefix_stable": True},
        {"describe": {Tools.look: "Look."}},
    ]
    for asked in choices:
        for read in choices:
            chat.request(transcript, Tools.offer(**asked))
            stamped = transcript.take_note(Tools.offer(**read), chat.response(reply))
            assert (stamped.settings is not None) is (asked is read), (asked, read)


def test_a_fork_takes_the_record_as_well_and_each_takes_it_once_PB1_PB8_PB15() -> None:
    """What either goes on with is accepted, begins with that request, and tells nothing twice."""
    with (
        serve([Reply("Hm.", reasoning="so") for _ in range(5)]) as server,
        anthropic.Anthropic(
            base_url=server.anthropic_base_url, api_key="k", max_retries=0
        ) as client,
    ):

        def ask(session: Session) -> Any:
            body = AnthropicMessages.request(session.transcript, Tools.offer(), model=FABLE)
            return client.messages.create(model=FABLE, **body)

        session = Session()
        session.push_user("go")
        Tools.offer().read(AnthropicMessages.response(ask(session)), session)
        session.push_user("on")
        session.push_ephemeral_user("quick")
        reply = ask(session)
        both = [session, session.fork()]
        for each in both:
            Tools.offer().read(AnthropicMessages.response(reply), each)
            each.push_user("and?")
        one, other = [each.turns()[-1] for each in both]
        assert one == other
        assert one.origin is not None
        assert one.origin.prefix is not None
        assert one.prefix == other.prefix
        for each in both:
            Tools.offer().read(AnthropicMessages.response(ask(each)), each)
        assert both[0].turns()[-1].prefix == both[1].turns()[-1].prefix


def unsigned_past(server: WireServer) -> Session:
    """A session with signed reasoning that an earlier version wrote down, without its prefix, and
    that was edited.
    """
    session = Session()
    session.push_user("go")
    with anthropic.Anthropic(base_url=server.anthropic_base_url, api_key="k") as client:
        llm = AnthropicMessages(FABLE, client, extra={"thinking": ADAPTIVE})
        session.text_turn(llm, tools=Tools).collect_sync()
    data = session.dump()
    for item in data["items"]:
        item.pop("origin", None)
    data["items"][0]["parts"][0]["text"] = "stop"  # somebody has edited it
    session = Session.load(data)
    session.push_user("and again?")
    return session


async def ask_again(
    server: WireServer, session: Session, streamed: bool, options: dict[str, Any], **model: Any
) -> Any:
    client = anthropic.AsyncAnthropic(base_url=server.anthropic_base_url, api_key="k")
    async with client.with_options(max_retries=0) as client:
        llm = AnthropicMessages(FABLE, client, host=VENDOR, **model)
        turn = session.text_turn(llm, tools=Tools, available=ONLY_LOOK, **options)
        if not streamed:
            return await turn.collect()
        async with turn.stream() as stream:
            return await stream.collect()


async def test_a_refused_request_is_sent_once_more_in_an_event_loop_too_PB10() -> None:
    for streamed in (False, True):
        async with serve([Reply("Yes.", reasoning="hm"), Reply("Again.")]) as server:
            session = unsigned_past(server)
            outcome = await ask_again(
                server,
                session,
                streamed,
                {},
                extra={"thinking": ADAPTIVE},
                headers={"Anthropic-Beta": "mine-2026-01-01"},
            )
            (lost,) = outcome.result.prefix.dropped
            assert (lost.turn, lost.by) == (0, "provider")
            assert [request.status for request in server.requests] == [200, 400, 200]
            for request in server.requests[1:]:
                names = request.headers["anthropic-beta"].split(",")
                # The user's names and those of the request stand in one header.
                assert names[0] == "mine-2026-01-01"
                assert "thinking-binding-controls-2026-08-01" in names


async def test_other_refusals_and_those_that_are_to_be_seen_reach_the_user_PB10() -> None:
    binding = {**ADAPTIVE, "block_binding": {"prefix_mismatch_behavior": "error"}}
    told: dict[str, Any] = {"on_prefix_change": "error"}
    for streamed in (False, True):
        for thinking, options in ((ADAPTIVE, told), (binding, {})):
            async with serve([Reply("Yes.", reasoning="hm"), Reply("Again.")]) as server:
                session = unsigned_past(server)
                extra = {"thinking": thinking}
                with pytest.raises(AdapterError, match="bound to a different conversation"):
                    await ask_again(server, session, streamed, options, extra=extra)
                assert len(server.requests) == 2
        async with serve([Failure(400, "no")]) as server:
            session = Session()
            session.push_user("go")
            with pytest.raises(AdapterError, match="400"):
                await ask_again(server, session, streamed, {})
            assert len(server.requests) == 1


def test_a_message_for_one_request_makes_the_next_one_begin_anew_PB20() -> None:
    for api in ("openai_chat", "openai_responses", "anthropic_messages"):
        session = Session()
        llm = ScriptedModel([Reply("Yes.")] * 6, api=api)
        found: list[str] = []
        for number in range(6):
            session.push_user("go")
            if number == 2:
                session.push_ephemeral_user("quick")
            if number == 4:
                session = session.fork()  # as good as the session itself
            outcome = session.text_turn(llm).collect_sync()
            found.append(outcome.prefix.cache)
        assert found == ["unknown", "begins", "begins", "restarts", "begins", "begins"], api


def turns_of(llm: JudgedModel, steps: list[dict[str, Any]]) -> list[PrefixReport]:
    session = Session()
    found: list[PrefixReport] = []
    for step in steps:
        session.push_user("go")
        llm.play(Reply("Yes.", reasoning="hm"))
        outcome: Any = session.text_turn(llm, tools=Tools, **step).collect_sync()
        found.append(outcome.result.prefix)
    return found


def test_a_new_base_with_the_very_tools_of_the_old_one_changes_nothing_PB7_PB20() -> None:
    """Where the choice narrows, no entry has said that, so `drop` takes none out."""
    drop: dict[str, Any] = {"on_prefix_change": "drop"}
    places: list[Any] = [
        Gemini("gemini-3-flash-preview"),
        OpenAIChat("gpt-5.4", host=facts_of("api.openai.com")),
        OpenAIResponses("gpt-5.6", host=facts_of("api.openai.com")),
        OpenAIResponses("gpt-6.2-astra", host=facts_of("api.openai.com")),
    ]
    for adapter in places:
        llm = JudgedModel(adapter)
        found = turns_of(llm, [{}, {"available": ONLY_LOOK}, drop, {}, {"available": ONLY_LOOK}])
        assert [told.cache for told in found] == ["unknown", *["begins"] * 4], llm.model
        assert not any(told.changed or told.dropped for told in found)
        # One with other tools does.
        narrow = {"available": ONLY_LOOK, **drop}
        found = turns_of(JudgedModel(adapter), [{}, narrow, {}, drop, drop])
        assert [told.cache for told in found][:2] == ["unknown", "restarts"], llm.model
        assert found[1].changed[0] == "tools"


def test_a_message_that_has_grown_moves_what_came_behind_it_PB20() -> None:
    """Converse writes what the user says twice as one message."""
    llm = JudgedModel(BedrockConverse(f"us.anthropic.{FABLE}-v1:0"))
    session = Session()
    for step in ({}, {"available": ONLY_LOOK}):
        session.push_user("go")
        llm.play(Reply(calls=[Call("look", {"key": "x"})]))
        outcome: Any = session.text_turn(llm, tools=Tools, **step).collect_sync()
        if step:
            session.push_user("Quick!")  # while the tool runs
        done = [call.complete("x") for call in outcome.round.calls]
        outcome.round.commit(session, done, rebase=True)
    llm.play(Reply("Yes."))
    outcome = session.text_turn(llm, tools=Tools, available=ONLY_LOOK).collect_sync()
    before, after = [body["messages"] for body in llm.bodies[-2:]]
    assert after[: len(before)] != before
    assert outcome.result.prefix.cache == "restarts"
    assert outcome.result.prefix.changed == (f"messages.{len(before) - 2}",)
