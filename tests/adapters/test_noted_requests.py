"""A session that is dumped, copied or pickled between `request` and `read` still gives the answer
the record of its request (rules PB1, PB8, PB16).
"""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import anthropic
import pytest
from every_api import ADAPTERS, APIS

from lutumpy import (
    AssistantTurn,
    Session,
    ToolAvailability,
    ToolFinder,
    Toolset,
    TranscriptError,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIResponses, facts_of
from lutumpy.testing import Reply, render, serve

FABLE, ASTRA = "claude-fable-5-2", "gpt-6.2-astra"
VENDOR, OPENAI = facts_of("api.anthropic.com"), facts_of("api.openai.com")


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


FINDER = ToolFinder(Tools, always=[Tools.look])


def searching() -> Any:
    """An offer whose tools are searched, as the one before."""
    return FINDER.toolset.offer(available=FINDER.available(Session()))


ONLY_LOOK = ToolAvailability.only(Tools.look)


def load_dump(session: Session) -> Session:
    return Session.load(json.dumps(session.dump()))


def build_parts(session: Session) -> Session:
    items = session.items_since(Session().transcript.head)
    return Session.build(items, json.loads(json.dumps(session.state())))


WAYS: dict[str, Callable[[Session], Session]] = {
    "dump": load_dump,
    "dump of a dump": lambda session: load_dump(load_dump(session)),
    "state": build_parts,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda session: pickle.loads(pickle.dumps(session)),
    "fork of a dump": lambda session: load_dump(session).fork(),
}


def read(session: Session, api: str, offer: Any, *, number: int, text: str = "Yes.") -> Any:
    reply = render(Reply(text, reasoning="hm"), api, number=number, model="m")
    return offer.read(ADAPTERS[api].response(reply), session)


def record_of(session: Session) -> tuple[Any, Any]:
    turn = session.turns()[-1]
    return turn.origin, turn.settings


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("api", APIS)
def test_an_answer_has_the_record_of_a_request_from_before_PB1_PB16(api: str, way: str) -> None:
    options: list[dict[str, Any]] = [{}, {"available": ONLY_LOOK}, {"prefix_stable": True}]
    for first in options:
        session = Session()
        session.push_user("go")
        body_of = ADAPTERS[api].request
        body_of(session.transcript, Tools.offer(**first), effort="low")
        twin = WAYS[way](session)
        for number, later in enumerate(options):
            # The offers are equal, and not the same objects.
            for each in (session, twin):
                read(
                    each,
                    api,
                    Tools.offer(**(first if number == 0 else options[number - 1])),
                    number=number,
                )
                each.push_user("on")
            assert record_of(twin) == record_of(session)
            assert session.turns()[-1].origin is not None
            bodies = [
                body_of(each.transcript, Tools.offer(**later), effort="high")
                for each in (session, twin)
            ]
            assert bodies[0] == bodies[1]
            twin = WAYS[way](twin)


def test_a_request_after_a_load_is_accepted_PB8() -> None:
    with (
        serve([Reply("Hm.", reasoning="so") for _ in range(8)], new_account=True) as server,
        anthropic.Anthropic(
            base_url=server.anthropic_base_url, api_key="k", max_retries=0
        ) as client,
    ):
        session = Session()
        for number in range(6):
            session.push_user("go")
            narrow: dict[str, Any] = {"available": ONLY_LOOK} if number % 2 else {}
            body = AnthropicMessages.request(
                session.transcript, Tools.offer(**narrow), model=FABLE, host=VENDOR
            )
            saved = session.dump()
            reply = client.beta.messages.create(
                model=FABLE, betas=AnthropicMessages.betas(body), **body
            )
            session = Session.load(json.dumps(saved))
            Tools.offer(**narrow).read(AnthropicMessages.response(reply), session)
            last = session.turns()[-1]
            assert last.prefix is not None
            assert not last.prefix.dropped
        assert [request.status for request in server.requests] == [200] * 6
        sent = json.dumps(server.requests[-1].body)
        assert sent.count('"thinking": "so"') == 5


def test_an_offer_is_known_again_by_what_it_says_PB1() -> None:
    offers: list[Any] = [
        None,
        Tools.offer(),
        Tools.offer(available=ONLY_LOOK),
        Tools.offer(parallel=False),
        Tools.offer(prefix_stable=True),
        Tools.offer(describe={Tools.look: "Look."}),
        searching(),
    ]
    chat = ADAPTERS["openai_chat"]
    answer = chat.response(render(Reply("Yes."), "openai_chat", number=1, model="m"))
    for asked in offers:
        session = Session()
        session.push_user("go")
        chat.request(session.transcript, asked)
        saved = session.dump()
        for given in offers:
            twin = Session.load(saved)
            stamped = twin.transcript.take_note(given, answer)
            assert (stamped.settings is not None) is (asked is given), (asked, given)


def test_what_is_deferred_makes_no_difference_PB1_PB17() -> None:
    session = Session()
    session.push_user("go")
    chat = ADAPTERS["openai_chat"]
    chat.request(session.transcript, searching().deferring())
    session = load_dump(session)
    read(session, "openai_chat", searching(), number=1)
    assert session.turns()[-1].settings is not None


def test_another_api_or_a_second_answer_takes_nothing_PB1() -> None:
    session = Session()
    session.push_user("go")
    ADAPTERS["openai_chat"].request(session.transcript, None)
    twin = load_dump(session)
    other = AnthropicMessages.response(
        render(Reply("Yes."), "anthropic_messages", number=1, model="m")
    )
    assert twin.transcript.take_note(None, other) is other
    answer: AssistantTurn = ADAPTERS["openai_chat"].response(
        render(Reply("Yes."), "openai_chat", number=1, model="m")
    )
    assert twin.transcript.take_note(None, answer) is answer


def test_the_report_and_the_providers_words_come_along_OR5_PB11() -> None:
    """What was changed, dropped and left out is told by the outcome, and which turn the provider
    means by an entry or an id.
    """
    for api, model, host in (
        ("anthropic_messages", FABLE, VENDOR),
        ("openai_responses", ASTRA, OPENAI),
    ):
        session, offer = Session(), Tools.offer()
        for number in range(2):
            session.push_user("go")
            ADAPTERS[api].request(session.transcript, offer, model=model, host=host)
            read(session, api, offer, number=number)
        session.push_user("go")
        narrow = Tools.offer(available=ONLY_LOOK)
        body = ADAPTERS[api].request(session.transcript, narrow, model=model, host=host)
        if api == "anthropic_messages":
            words = {"path": "messages.3.content.0", "reason": "prefix_binding_mismatch"}
        else:
            (_, item) = [item for item in body["input"] if item.get("type") == "reasoning"]
            words = {"id": item["id"], "reason": "prefix_mismatch"}
        reply = render(Reply("Yes."), api, number=3, model="m")
        reply["input_transformations"] = [words, {"reason": "model_mismatch"}]
        twin = load_dump(session)
        for each in (session, twin):
            narrow.read(ADAPTERS[api].response(reply), each)
        told: list[Any] = [each.turns()[-1].prefix for each in (session, twin)]
        assert told[0] == told[1]
        assert [gone.turn for gone in told[1].dropped] == [1, -1]


def test_what_a_request_left_out_is_told_after_a_load_OR5() -> None:
    session = Session()
    session.push_user("go")
    for facts in (VENDOR, facts_of("api.deepseek.com")):
        AnthropicMessages.request(session.transcript, None, model=FABLE, host=facts)
        session = load_dump(session)
        turn = session.transcript.take_note(
            None,
            AnthropicMessages.response(
                render(Reply("Yes.", reasoning="hm"), "anthropic_messages", number=1, model="m")
            ),
        )
        session.transcript.append_turn(turn)
        session.push_user("on")
    assert turn.prefix is not None
    (left,) = turn.prefix.left_out
    assert left.turn == 0


def noted_dump() -> dict[str, Any]:
    session = Session()
    session.push_user("go")
    OpenAIResponses.request(session.transcript, Tools.offer(), model=ASTRA, host=OPENAI)
    found: dict[str, Any] = json.loads(json.dumps(session.dump()))
    return found


def test_a_dump_without_an_open_request_says_nothing_of_it_PB16() -> None:
    session = Session()
    session.push_user("go")
    assert "request" not in session.dump()
    assert "request" not in session.state()
    noted = noted_dump()
    assert "request" in noted
    answered = Session.load(noted)
    read(answered, "openai_responses", Tools.offer(), number=1)
    assert "request" not in answered.dump()
    assert "request" not in answered.state()
    # An older dump has none, and none is taken.
    del noted["request"]
    loaded = Session.load(noted)
    read(loaded, "openai_responses", Tools.offer(), number=1)
    assert record_of(loaded) == (None, None)


WRONG: list[dict[str, Any]] = [
    {"api": None},
    {"api": 3},
    {"host": 3},
    {"model": []},
    {"offer": 1},
    {"prefix": {}},
    {"seal": 0},
    {"settings": 3},
    {"settings": {"added": 3}},
    {"turns": 3},
    {"turns": [3]},
    {"turns": [[0, 0]]},
    {"turns": [[None, 0]]},
    {"turns": [[True, 0]]},
    {"report": []},
    {"report": {}},
    {"report": {"cache": "full"}},
    {"report": {"cache": []}},
    {"report": {"cache": "begins", "appended": "x"}},
    {"report": {"cache": "begins", "changed": [3]}},
    {"report": {"cache": "begins", "dropped": [[0, "r", "lutumpy"]]}},
    {"report": {"cache": "begins", "dropped": [[-1, "r", "lutumpy"]]}},
    {"report": {"cache": "begins", "dropped": [[-1, "r", "me"]]}},
    {"report": {"cache": "begins", "dropped": [[-1, 3, "provider"]]}},
    {"report": {"cache": "begins", "dropped": [[True, "r", "provider"]]}},
    {"report": {"cache": "begins", "dropped": [3]}},
    {"report": {"cache": "begins", "left_out": [[0, "what", "why"]]}},
    {"report": {"cache": "begins", "unverified": [0]}},
    {"report": {"cache": "begins", "unverified": ["0"]}},
    {"report": {"cache": "begins", "more": []}},
    {"more": 1},
]


def test_a_spoilt_request_of_a_dump_is_refused_R4() -> None:
    for wrong in WRONG:
        data = noted_dump()
        data["request"].update(wrong)
        with pytest.raises(TranscriptError, match=r"request: .*; nothing was loaded"):
            Session.load(data)
    values: list[Any] = [None, 3, [], "x"]
    for value in values:
        with pytest.raises(TranscriptError, match=r"request: .*; nothing was loaded"):
            Session.load({**noted_dump(), "request": value})
