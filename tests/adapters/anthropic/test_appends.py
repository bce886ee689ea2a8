"""What changes between turns is said behind the conversation, and reasoning is sent only where it
still fits (rules PB1 to PB16), held against a provider that signs and checks as documented.
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import random
from typing import Any

import pytest

from lutumpy import (
    Finished,
    NeedsTools,
    PrefixChangedError,
    Session,
    ToolAvailability,
    Toolset,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import facts_of
from lutumpy.core.turn_settings import in_force_after
from lutumpy.models import OnPrefixChange
from lutumpy.testing import Reply, ScriptedModel, serve

FABLE = "claude-fable-5-1"
Json = dict[str, Any]
ADAPTIVE = {"type": "adaptive"}


@tool_fn
def look(key: str) -> str:
    """Look something up."""
    return key


@tool_fn
def send(text: str) -> str:
    """Send a text."""
    return text


@tool_fn
def delete(key: str) -> str:
    """Delete something."""
    return key


class Tools(Toolset):
    look, send, delete = tool(look), tool(send, off=True), tool(delete)


class Provider:
    """Signs each thinking block over all that stands before it, and refuses it anywhere else."""

    def __init__(self) -> None:
        self.bodies: list[Json] = []
        self.refused: list[str] = []
        self.signed = 0
        self.kept = 0

    def __call__(self, api: str, body: Json) -> Json:
        self.bodies.append(copy.deepcopy(body))
        unread = 0
        for place, message in enumerate(body["messages"]):
            for block in message["content"] if isinstance(message["content"], list) else ():
                if block["type"] == "thinking":
                    unread += 1
                    if block["signature"] != sign(body, place):
                        self.refused.append(f"messages.{place}")
        self.kept += unread
        self.signed += 1
        number = len(self.bodies)
        offered = offered_by(body)
        content: list[Json] = [
            {"type": "thinking", "thinking": "hm", "signature": sign(body, len(body["messages"]))}
        ]
        if offered and number % 3:
            name = sorted(offered)[number % len(offered)]
            key = "text" if name == "send" else "key"
            call = {"type": "tool_use", "id": f"toolu_{number}", "name": name}
            content.append({**call, "input": {key: "x"}})
        else:
            content.append({"type": "text", "text": f"answer {number}"})
        stop = "tool_use" if content[-1]["type"] == "tool_use" else "end_turn"
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": FABLE,
            "content": content,
            "stop_reason": stop,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }


def sign(body: Json, place: int) -> str:
    """A signature over what is bound: system, tools that are in the prompt, and all before."""
    tools = [entry for entry in body.get("tools", []) if not entry.get("defer_loading")]
    messages = []
    for message in body["messages"][:place]:
        content = message["content"]
        if isinstance(content, list):
            content = [block for block in content if block["type"] != "thinking"]
        messages.append({**message, "content": content})
    bound = unmarked([body.get("system"), tools, messages])
    return hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest()


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unmarked(v) for key, v in value.items() if key != "cache_control"}
    return [unmarked(v) for v in value] if isinstance(value, list) else value


def offered_by(body: Json) -> set[str]:
    """What the model may call: the tools in order, as messages add and remove them."""
    offered = {entry["name"] for entry in body.get("tools", []) if not entry.get("defer_loading")}
    for message in body["messages"]:
        if message["role"] != "system" or isinstance(message["content"], str):
            continue
        for block in message["content"]:
            if block["type"] not in ("tool_addition", "tool_removal"):
                continue
            changed = block["tool"]
            name = changed.get("name") or changed["definition"]["name"]
            (offered.add if block["type"] == "tool_addition" else offered.discard)(name)
    return offered


def conversation(provider: Provider, model: str = FABLE, **options: Any) -> ScriptedModel:
    llm = ScriptedModel([], api="anthropic_messages", model=model, check=False)
    llm._sender = AnthropicMessages(model, host=facts_of("api.anthropic.com"), **options)
    llm.play(*[provider] * 200)
    return llm


def step(session: Session, llm: ScriptedModel, **options: Any) -> Any:
    outcome = session.text_turn(llm, tools=Tools, **options).collect_sync()
    if isinstance(outcome, NeedsTools):
        found = outcome.round
        found.commit(session, [call.complete("done") for call in found.calls])
        return found
    session.push_user("go on")
    return outcome.result


NARROW = ToolAvailability.only(Tools.look)
WIDE = ToolAvailability.all()
CHANGES: list[dict[str, Any]] = [
    {},
    {},
    {"available": NARROW},
    {"available": WIDE},
    {"describe": {Tools.look: "Look in the new index."}},
    {"effort": "low"},
    {"available": ToolAvailability.only(Tools.delete, Tools.look)},
]


@pytest.mark.pure
@pytest.mark.slow
def test_random_sessions_are_never_refused_and_lose_no_reasoning_PB2_PB8() -> None:
    for seed in range(30):
        provider, chance = Provider(), random.Random(seed)
        llm, session = conversation(provider), Session()
        session.push_system("Be brief.")
        session.push_user("go")
        turns = 0
        for _ in range(14):
            change = chance.choice(CHANGES)
            if chance.random() < 0.2:
                session.push_ephemeral_system("Remember: today is Monday.")
            if chance.random() < 0.2:
                session = Session.load(json.dumps(session.dump()))
            result = step(session, llm, **change)
            turns += 1
            assert not result.prefix, result.prefix
            wanted = {s.name for s in Tools.offer(available=change.get("available")).selectors}
            assert offered_by(provider.bodies[-1]) == wanted
        assert provider.refused == []
        assert provider.kept == sum(range(turns))  # every block, in every later request
        for before, after in zip(provider.bodies, provider.bodies[1:], strict=False):
            old, new = unmarked(before), unmarked(after)
            assert new.get("system") == old.get("system")
            assert new["tools"] == old["tools"]
            assert new["messages"][: len(old["messages"])] == old["messages"]


def test_without_words_for_a_change_exactly_the_bound_reasoning_is_left_out_PB8_PB9() -> None:
    for seed in range(20):
        provider, chance = Provider(), random.Random(seed)
        llm, session = conversation(provider), Session()
        llm._sender = AnthropicMessages(FABLE, host=facts_of("localhost:4000"))
        session.push_user("go")
        for _ in range(10):
            result = step(session, llm, **chance.choice(CHANGES))
            for lost in result.prefix.dropped:
                assert (lost.by, lost.reason) == ("lutumpy", "prefix_mismatch")
        assert provider.refused == []


def test_what_changed_is_in_dumps_forks_and_windows_PB1_PB15() -> None:
    provider = Provider()
    llm, session = conversation(provider), Session()
    session.push_user("go")
    step(session, llm)
    step(session, llm)
    step(session, llm, available=NARROW)
    base, change = session.transcript.settings
    assert base.is_base
    assert base.added == ("look", "delete")
    assert (change.removed, change.defined) == (("delete",), ())
    origin = session.turns()[0].origin
    assert origin is not None
    assert (origin.api, origin.host, origin.model) == (
        "anthropic_messages",
        "api.anthropic.com",
        FABLE,
    )
    assert origin.prefix
    loaded = Session.load(session.dump())
    assert loaded.transcript.settings == session.fork().transcript.settings == (base, change)
    assert [turn.origin for turn in loaded.turns()] == [turn.origin for turn in session.turns()]
    for rounds in (1, 2, 3):
        window = session.transcript.window(max_rounds=rounds)
        if window.settings:
            assert window.settings[0].is_base
            last = in_force_after(window.settings)
            assert [*last.offered] == ["look"]


def test_an_error_policy_sends_nothing_when_reasoning_would_go_PB8() -> None:
    provider = Provider()
    llm, session = conversation(provider), Session()
    llm._sender = AnthropicMessages(FABLE, host=facts_of("localhost:4000"))
    session.push_user("go")
    step(session, llm)
    sent = len(provider.bodies)
    with pytest.raises(PrefixChangedError) as error:
        step(session, llm, available=NARROW, on_prefix_change="error")
    assert error.value.would_drop == (0,)
    assert len(provider.bodies) == sent
    assert len(session.turns()) == 1
    assert not session.unsettled


def test_the_policy_to_drop_changes_the_request_in_place_PB3() -> None:
    provider = Provider()
    llm, session = conversation(provider), Session()
    session.push_user("go")
    step(session, llm)
    policy: OnPrefixChange = "drop"
    result = step(session, llm, available=NARROW, on_prefix_change=policy)
    body = provider.bodies[-1]
    assert [entry["name"] for entry in body["tools"]] == ["look"]
    assert all(message["role"] != "system" for message in body["messages"])
    assert [lost.turn for lost in result.prefix.dropped] == [0]
    assert provider.refused == []
    step(session, llm, available=NARROW, on_prefix_change=policy)
    assert provider.refused == []


def test_a_request_that_does_not_begin_with_the_last_one_is_told_PB20(
    caplog: pytest.LogCaptureFixture,
) -> None:
    provider = Provider()
    llm, session = conversation(provider), Session()
    llm._sender = AnthropicMessages(FABLE, host=facts_of("localhost:4000"))
    session.push_user("go")
    with caplog.at_level(logging.WARNING, logger="lutumpy.prefix"):
        step(session, llm)
        assert step(session, llm).prefix.cache == "begins"
        assert not caplog.records
        result = step(session, llm, available=NARROW)
    (record,) = caplog.records
    assert "tools is different" in record.getMessage()
    assert (result.prefix.cache, result.prefix.changed) == ("restarts", ("tools",))


def test_own_io_says_and_records_the_same_PB1() -> None:
    provider, other = Provider(), Provider()
    llm, session, own = conversation(provider), Session(), Session()
    session.push_user("go")
    own.push_user("go")
    facts = facts_of("api.anthropic.com")
    for change in CHANGES:
        effort = change.get("effort")
        rest = {name: value for name, value in change.items() if name != "effort"}
        step(session, llm, **change)
        offer = Tools.offer(**rest)
        body = AnthropicMessages.request(
            own.transcript, offer, model=FABLE, host=facts, cache="auto", effort=effort
        )
        outcome = offer.read(AnthropicMessages.response(other("", body)), own)
        if isinstance(outcome, NeedsTools):
            outcome.round.commit(own, [call.complete("done") for call in outcome.round.calls])
        else:
            own.push_user("go on")
        sent = {**provider.bodies[-1]}
        del sent["model"]
        assert other.bodies[-1] == sent
    assert own.transcript.settings == session.transcript.settings
    assert other.refused == provider.refused == []


@pytest.mark.parametrize("streamed", [False, True])
def test_what_is_refused_all_the_same_is_sent_once_more_without_it_PB10(streamed: bool) -> None:
    anthropic = pytest.importorskip("anthropic")
    script = [Reply(text="Yes.", reasoning="hm"), Reply(text="Again.", reasoning="hm")]
    with (
        serve(script) as server,
        anthropic.Anthropic(
            base_url=server.anthropic_base_url, api_key="k", max_retries=0
        ) as client,
    ):
        llm = AnthropicMessages("claude-fable-5-2", client, extra={"thinking": ADAPTIVE})
        first = Session()
        first.push_user("go")
        first.text_turn(llm, tools=Tools).collect_sync()
        data = first.dump()
        for item in data["items"]:
            item.pop("origin", None)  # as an earlier version wrote it: nobody knows its prefix
        session = Session.load(data)
        session.push_user("and again?")
        turn = session.text_turn(llm, tools=Tools, available=NARROW)
        if streamed:
            with turn.stream_sync() as stream:
                outcome = stream.collect()
        else:
            outcome = turn.collect_sync()
        assert isinstance(outcome, Finished)
        (lost,) = outcome.result.prefix.dropped
        assert (lost.turn, lost.by) == (0, "provider")
        assert [request.status for request in server.requests] == [200, 400, 200]
        session.push_user("more?")
        server.play(Reply(text="More."))
        session.text_turn(llm, tools=Tools, available=NARROW).collect_sync()
        assert server.requests[-1].status == 200
