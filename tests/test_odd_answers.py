"""The whole way of an odd answer: whatever a host answers, the turn is read or refused, its round
committed, the session dumped and loaded, and every other API takes the conversation.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from every_api import ADAPTERS, APIS, CHECKS
from profiles import examples
from test_odd_fields import recorded_replies, recorded_streams, spoilt

from lutumpy import AdapterError, NeedsTools, Session, Toolset, TranscriptError, tool, tool_fn
from lutumpy.testing import Call, Reply, ScriptedModel


@tool_fn
async def get_weather(city: str, days: int = 1) -> str:
    """The weather of a city."""
    return f"{city}: rain for {days} days"


class Tools(Toolset):
    get_weather = tool(get_weather)


HOOKS = Tools.hooks()
CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"


def damaged(rng: random.Random, events: list[Any]) -> list[Any]:
    """A stream with an odd field, or with an event that is lost, told twice or too late."""
    events, at = list(events), rng.randrange(len(events))
    match rng.choice(["field", "field", "lost", "twice", "late"]):
        case "field":
            events[at] = spoilt(rng, events[at])
        case "lost":
            del events[at]
        case "twice":
            events.insert(at, events[at])
        case _:
            events.append(events.pop(at))
    return events


async def turn_of(session: Session, answer: Any, api: Any) -> Any:
    """What comes of the turn; `None` where the answer was refused."""
    turn = session.text_turn(ScriptedModel([answer], api=api), tools=Tools)
    try:
        if not isinstance(answer, list):
            return await turn.collect()
        async with turn.stream() as stream:
            return await stream.collect()
    except AdapterError:
        return None


@pytest.mark.parametrize("api", APIS)
async def test_an_odd_answer_ends_in_a_session_that_every_other_api_takes_K5_R4_C8(
    api: Any,
) -> None:
    rng = random.Random(f"answer {api}")
    replies, streams = recorded_replies(api), recorded_streams(api)
    for _ in range(examples(60)):
        for answer in (spoilt(rng, rng.choice(replies)), damaged(rng, rng.choice(streams))):
            session = Session()
            session.push_user("And now?")
            outcome = await turn_of(session, answer, api)
            if isinstance(outcome, NeedsTools):
                plan = await outcome.round.apply_hooks(HOOKS)
                if plan.approvals:  # a person decides
                    plan.discard()
                    continue
                outputs = [call.complete(await call.call()) for call in plan.pending]
                plan.commit(session, outputs)
            dump = session.dump()
            assert Session.load(dump).dump() == dump
            for other in APIS:
                if other == api and outcome is not None:
                    continue  # what it has said goes back as it came, odd as it is
                loaded = Session.load(dump)
                try:
                    loaded.push_user("And then?")
                except TranscriptError:  # a tool of the provider is still running
                    assert outcome is not None
                model = ScriptedModel([Reply("Well.")], api=other)
                await loaded.text_turn(model, tools=Tools).collect()


@pytest.mark.parametrize("other", APIS)
@pytest.mark.parametrize("api", APIS)
async def test_an_answer_of_white_space_alone_is_no_danger_K5(api: Any, other: str) -> None:
    """Models write it, and Messages and Converse don't take it back [reported]."""
    session = Session()
    session.push_user("go")
    await turn_of(session, Reply(" \n"), api)
    assert session.transcript.turns()[0].text == " \n"
    session.push_user("go on")
    for transcript in (session.transcript, Session.load(session.dump()).transcript):
        options = {"model": CLAUDE} if other == "bedrock_converse" else {}
        body = ADAPTERS[other].request(transcript, **options)
        assert [
            p for p in CHECKS[other]({**body, "model": "m"}) if p.rule.endswith("blank_text")
        ] == []


@pytest.mark.parametrize("api", ["anthropic_messages", "bedrock_converse"])
async def test_white_space_beside_a_call_goes_back_as_it_came_R1(api: Any) -> None:
    session = Session()
    session.push_user("go")
    outcome = await turn_of(
        session, Reply("\n", calls=[Call("get_weather", {"city": "Oslo"})]), api
    )
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [call.complete("rain") for call in outcome.round.calls])
    options = {"model": CLAUDE} if api == "bedrock_converse" else {}
    body = ADAPTERS[api].request(session.transcript, **options)
    assert body["messages"][1]["content"][0]["text"] == "\n"
