"""What changes between turns of Responses: items bring tools and settings, the choice narrows, and
reasoning is sent only where it still fits (rules PB1 to PB9, PB14), held against the test server
that takes away what a model's binding doesn't allow.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import openai

from lutumpy import Finished, NeedsTools, Session, ToolAvailability, Toolset, tool, tool_fn
from lutumpy.adapters.openai import HostFacts, OpenAIResponses, facts_of
from lutumpy.models import OutputSpec, PrefixReport
from lutumpy.testing import Call, Reply, WireServer, serve

ASTRA = "gpt-6.2-astra"
VENDOR = facts_of("api.openai.com")
PROXY = facts_of("localhost:4000")
ENCRYPTED = {"include": ["reasoning.encrypted_content"], "store": False}
Json = dict[str, Any]


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


NARROW = ToolAvailability.only(Tools.look)
WIDE = ToolAvailability.all()
CHANGES: list[Json] = [
    {},
    {},
    {"available": NARROW},
    {"available": WIDE},
    {"describe": {Tools.look: "Look in the new index."}},
    {"effort": "low"},
    {"effort": "high", "available": WIDE},
]


def ask(
    server: WireServer, session: Session, host: HostFacts, reply: Reply, **options: Any
) -> tuple[Json, PrefixReport]:
    """One turn of a model at this host: the body of its request, and what it reports."""
    server.play(reply)
    model = options.pop("model", ASTRA)
    with openai.OpenAI(base_url=server.openai_base_url, api_key="k", max_retries=0) as client:
        llm = OpenAIResponses(model, client, host=host, extra=ENCRYPTED)
        outcome = session.text_turn(llm, tools=Tools, **options).collect_sync()
    body = server.requests[-1].body
    if isinstance(outcome, NeedsTools):
        found = outcome.round
        found.commit(session, [call.complete("done") for call in found.calls])
        return body, found.prefix
    assert isinstance(outcome, Finished)
    session.push_user("go on")
    return body, outcome.result.prefix


def reasoned(text: str = "Yes.") -> Reply:
    return Reply(text, reasoning="hm")


def callable_tools(body: Json) -> set[str]:
    """What the model may call: the tools that are declared or brought, as the choice names them."""
    known = {entry["name"] for entry in body.get("tools", [])}
    for item in body["input"]:
        if item.get("type") == "additional_tools":
            known |= {entry["name"] for entry in item["tools"]}
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice["type"] == "allowed_tools":
        return {entry["name"] for entry in choice["tools"]} & known
    return set() if choice == "none" else known


def reasoning_in(body: Json) -> int:
    return sum([item.get("type") == "reasoning" for item in body["input"]])


def test_random_sessions_lose_no_reasoning_and_begin_with_the_last_request_PB2_PB7() -> None:
    for seed in range(4):
        chance = random.Random(seed)
        session = Session()
        session.push_user("go")
        bodies: list[Json] = []
        with serve() as server:
            for number in range(10):
                change = {"effort": "low", **chance.choice(CHANGES)}
                if chance.random() < 0.3:
                    session = Session.load(session.dump())
                if chance.random() < 0.3:
                    session.push_ephemeral_system("It is Monday.")
                if chance.random() < 0.5:
                    reply = Reply(calls=[Call("look", {"key": "a"})], reasoning="hm")
                else:
                    reply = reasoned(f"{number}")
                body, report = ask(server, session, VENDOR, reply, **change)
                assert not report, report
                assert reasoning_in(body) == number
                offered = Tools.offer(available=change.get("available")).selectors
                assert callable_tools(body) == {selector.name for selector in offered}
                bodies.append(body)
            assert all(request.status == 200 for request in server.requests)
        for before, after in itertools.pairwise(bodies):
            assert after["tools"] == before["tools"]
            assert after["input"][: len(before["input"])] == before["input"]
            assert "Monday" not in str(after["input"])


def test_each_change_has_its_item_PB4_PB7() -> None:
    session = Session()
    session.push_user("go")
    answer = OutputSpec("answer", {"type": "object", "properties": {}})
    with serve() as server:
        first, _ = ask(server, session, VENDOR, reasoned(), effort="low")
        assert first["reasoning"]["effort"] == "low"
        second, report = ask(server, session, VENDOR, reasoned(), available=WIDE, effort="high")
        assert [item["type"] for item in second["input"][-2:]] == [
            "additional_tools",
            "configuration_update",
        ]
        assert second["input"][-1]["reasoning"] == {"effort": "high"}
        assert second["reasoning"]["effort"] == "low"
        assert report.appended == ("tool_addition send", "effort high")
        third, report = ask(server, session, VENDOR, reasoned(), available=NARROW, effort="high")
        assert third["tool_choice"]["tools"] == [{"type": "function", "name": "look"}]
        assert (report.appended, report.cache) == ((), "begins")
        # There is no word for the default, so the conversation starts again.
        fourth, report = ask(server, session, VENDOR, reasoned(), available=NARROW)
        assert "effort" not in fourth.get("reasoning", {})
        assert [lost.turn for lost in report.dropped] == [0, 1, 2]
        assert reasoning_in(fourth) == 0
        fifth, report = ask(server, session, VENDOR, reasoned(), available=NARROW)
        assert (report.cache, reasoning_in(fifth)) == ("begins", 1)
    for output in (answer, None):
        offer = Tools.offer(available=NARROW)
        request = OpenAIResponses.request(
            session.transcript, offer, model=ASTRA, host=VENDOR, output=output, **ENCRYPTED
        )
        assert "text" not in request
        updates = [i for i in request["input"] if i.get("type") == "configuration_update"]
        assert len(updates) == (output is not None)


def test_without_words_exactly_what_no_longer_fits_is_left_out_PB8_PB9() -> None:
    for model, host in ((ASTRA, PROXY), ("some-model", PROXY)):
        session = Session()
        session.push_user("go")
        with serve() as server:
            for number in range(8):
                change = CHANGES[(number * 3) % len(CHANGES)]
                body, report = ask(server, session, host, reasoned(), model=model, **change)
                names = {selector.name for selector in Tools.offer(**rest(change)).selectors}
                assert {entry["name"] for entry in body["tools"]} == names
                assert "tool_choice" not in body
                # What was left out is told, and the server finds nothing else to take away.
                assert all(lost.by == "lutumpy" for lost in report.dropped)
            assert any(turn.prefix and turn.prefix.dropped for turn in session.turns())


def rest(change: Json) -> Json:
    return {name: value for name, value in change.items() if name != "effort"}


def test_a_reminder_is_the_instructions_of_its_turn_PB14() -> None:
    session = Session()
    session.push_user("go")
    with serve() as server:
        session.push_ephemeral_system("It is Monday.")
        first, _ = ask(server, session, VENDOR, reasoned())
        assert first["instructions"] == "It is Monday."
        second, report = ask(server, session, VENDOR, reasoned())
        assert "instructions" not in second
        assert (report.cache, reasoning_in(second)) == ("begins", 1)
        assert session.transcript.settings[0].reminders == ("It is Monday.",)


def test_an_older_model_starts_again_where_the_choice_cannot_name_a_tool_PB7() -> None:
    session = Session()
    session.push_user("go")
    with serve() as server:
        ask(server, session, VENDOR, Reply("Yes."), model="gpt-5")
        wide, report = ask(server, session, VENDOR, Reply("Yes."), model="gpt-5", available=WIDE)
        assert wide["input"][-1]["type"] == "additional_tools"
        assert report.cache == "begins"
        narrow, report = ask(
            server, session, VENDOR, Reply("Yes."), model="gpt-5", available=NARROW
        )
        assert [entry["name"] for entry in narrow["tools"]] == ["look"]
        assert "additional_tools" not in str(narrow["input"])
        assert report.changed == ("tools",)


def test_what_the_provider_takes_away_is_told_by_turn_PB11() -> None:
    session = Session()
    session.push_user("go")
    with serve() as server:
        ask(server, session, VENDOR, reasoned())
        data = session.dump()
        for item in data["items"]:
            item.pop("origin", None)
        data["items"][0]["parts"][0]["text"] = "stop"  # somebody has edited it
        edited = Session.load(data)
        _, report = ask(server, edited, VENDOR, reasoned())
        (lost,) = report.dropped
        assert (lost.turn, lost.by, lost.reason) == (0, "provider", "prefix_mismatch")
