"""The whole way of an odd answer: whatever a host answers, the turn is read or refused, its round
committed, the session dumped and loaded, and every other API takes the conversation.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from every_api import APIS
from profiles import examples
from test_odd_fields import recorded_replies, recorded_streams, spoilt

from lutumpy import AdapterError, NeedsTools, Session, Toolset, TranscriptError, tool, tool_fn
from lutumpy.testing import Reply, ScriptedModel


@tool_fn
async def get_weather(city: str, days: int = 1) -> str:
    """The weather of a city."""
    return f"{city}: rain for {days} days"


class Tools(Toolset):
    get_weather = tool(get_weather)


HOOKS = Tools.hooks()


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
