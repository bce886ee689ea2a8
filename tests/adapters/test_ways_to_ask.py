"""A change of settings is said alike with an event loop and without, streamed and whole, and by a
request of one's own (section 5.5 of the contract of appends).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from profiles import examples
from test_interruptions import places, run_until

from lutumpy import NeedsTools, Session, ToolAvailability, Toolset, Transcript, tool, tool_fn
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.gemini import Gemini
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses, facts_of
from lutumpy.testing import Call, Reply, ScriptedModel, render

Json = dict[str, Any]
OPENAI, ANTHROPIC = facts_of("api.openai.com"), facts_of("api.anthropic.com")
ADAPTERS: Mapping[str, Any] = {
    "anthropic_messages": AnthropicMessages("claude-fable-5-2", host=ANTHROPIC),
    "bedrock_converse": BedrockConverse("us.anthropic.claude-fable-5-2-v1:0"),
    "openai_responses": OpenAIResponses("gpt-6.2-astra", host=OPENAI),
    "openai_chat": OpenAIChat("gpt-5.4", host=OPENAI),
    "gemini_generate_content": Gemini("gemini-3-flash-preview"),
}


@tool_fn
def look(key: str) -> str:
    """Look something up."""
    return key


@tool_fn
def delete(key: str) -> str:
    """Delete something."""
    return key


class Tools(Toolset):
    look, delete = tool(look), tool(delete)


CHANGES: list[Json] = [
    {},
    {"available": ToolAvailability.only(Tools.look)},
    {"available": ToolAvailability.only(Tools.look)},
    {"describe": {Tools.look: "Look in the new index."}},
    {},
]
REPLIES = [
    Reply(calls=[Call("look", {"key": "x"})], reasoning="hm") if number % 2 else Reply(text="Yes.")
    for number in range(len(CHANGES))
]


def asked(api: str) -> tuple[ScriptedModel, Session]:
    llm = ScriptedModel(REPLIES, api=api, model=ADAPTERS[api].model)
    llm._sender = ADAPTERS[api]
    session = Session()
    session.push_system("Be brief.")
    session.push_user("go")
    return llm, session


def settle(session: Session, outcome: Any) -> None:
    if isinstance(outcome, NeedsTools):
        calls = outcome.round.calls
        outcome.round.commit(session, [call.complete("done") for call in calls])
    else:
        session.push_user("go on")


def sync(api: str) -> tuple[list[Json], Any]:
    llm, session = asked(api)
    for change in CHANGES:
        settle(session, session.text_turn(llm, tools=Tools, **change).collect_sync())
    return llm.requests, session.transcript.settings


def streamed(api: str) -> tuple[list[Json], Any]:
    llm, session = asked(api)
    for change in CHANGES:
        with session.text_turn(llm, tools=Tools, **change).stream_sync() as stream:
            outcome = stream.collect()
        settle(session, outcome)
    return llm.requests, session.transcript.settings


async def in_loop(api: str) -> tuple[list[Json], Any]:
    llm, session = asked(api)
    for number, change in enumerate(CHANGES):
        turn = session.text_turn(llm, tools=Tools, **change)
        if number % 2:
            settle(session, await turn.collect())
            continue
        async with turn.stream() as stream:
            outcome = await stream.collect()
        settle(session, outcome)
    return llm.requests, session.transcript.settings


def by_hand(api: str) -> tuple[list[Json], Any]:
    llm, session = asked(api)
    adapter = type(ADAPTERS[api])
    options: Json = {"model": llm.model}
    if "openai" in api or "anthropic" in api:
        options["host"] = ANTHROPIC if "anthropic" in api else OPENAI
    if "anthropic" in api:
        options["cache"] = "auto"
    bodies: list[Json] = []
    for number, change in enumerate(CHANGES):
        offer = Tools.offer(**change)
        bodies.append({**adapter.request(session.transcript, offer, **options), "model": llm.model})
        answer = render(REPLIES[number], api, number=number + 1, model=llm.model, body=bodies[-1])
        settle(session, offer.read(adapter.response(answer), session))
    return bodies, session.transcript.settings


@pytest.mark.parametrize("api", ADAPTERS)
def test_every_way_sends_and_records_the_same(api: str) -> None:
    bodies, settings = sync(api)
    assert len(settings) > 2
    for others, recorded in (streamed(api), asyncio.run(in_loop(api)), by_hand(api)):
        assert [unstreamed(body) for body in others] == [unstreamed(body) for body in bodies]
        assert recorded == settings


def unstreamed(body: Json) -> Json:
    return {key: value for key, value in body.items() if key not in ("stream", "stream_options")}


@pytest.mark.scaled
@pytest.mark.filterwarnings("ignore:a tool round:ResourceWarning")
@pytest.mark.parametrize("api", ["bedrock_converse", "gemini_generate_content", "openai_chat"])
def test_settings_and_turn_are_there_together_or_not_at_all_K3a(api: str) -> None:
    """Interrupted at any line or byte code, a turn whose settings changed has its record or isn't
    there, and the next request says what is in force.
    """

    def make() -> tuple[Session, Any]:
        llm, session = asked(api)
        settle(session, session.text_turn(llm, tools=Tools).collect_sync())
        llm.play(*REPLIES)
        llm._script.popleft()
        llm._script.appendleft(Reply(text="Yes."))
        return session, llm

    def ask(session: Session, llm: Any) -> Any:
        return session.text_turn(llm, tools=Tools, **CHANGES[1]).collect_sync()

    whole, llm = make()
    ask(whole, llm)
    wanted = whole.transcript.settings
    assert len(wanted) == 2
    seen: set[int] = set()

    def interrupt(place: int, event: str) -> bool:
        session, llm = make()
        reached = run_until(lambda: ask(session, llm), place, event)
        turns = session.turns()
        seen.add(len(turns))
        assert session.transcript.settings == wanted[: len(turns)]
        if len(turns) == 1:
            llm.play(Reply(text="Yes."))
            ask(session, llm)
        session.push_user("go on")
        llm._script.clear()
        llm.play(Reply(text="Yes."))
        outcome: Any = ask(session, llm)
        assert outcome.result.prefix.appended == ()
        assert session.transcript.settings == wanted
        return reached

    for _ in places(interrupt, most=examples(20)):
        pass
    assert seen == {1, 2}


def test_reasoning_of_a_history_is_sent_as_it_came_and_named_PB18() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    history = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "Yes."}]},
        {"role": "user", "content": "and now?"},
    ]
    model = "claude-fable-5-2"
    transcript = Transcript.from_messages("anthropic_messages", history, model=model)
    session = Session(transcript)
    llm = ScriptedModel([Reply(text="Now.")] * 2, api="anthropic_messages", model=model)
    llm._sender = ADAPTERS["anthropic_messages"]
    outcome: Any = session.text_turn(llm, tools=Tools).collect_sync()
    assert llm.requests[0]["messages"][1] == history[1]
    assert outcome.result.prefix.unverified == (0,)
    assert not outcome.result.prefix.dropped
    session.push_user("go on")
    outcome = session.text_turn(llm, tools=Tools).collect_sync()
    assert outcome.result.prefix.unverified == (0,)
