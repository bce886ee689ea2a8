"""What dumps and loads cost, counted: each item is checked against the rules once (rule R4)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest
from counting import PACKAGE, functions_entered, profiled

from lutumpy import Session, Toolset, tool, tool_fn
from lutumpy.models import Api
from lutumpy.testing import Call, Reply, ScriptedModel, render

APIS: list[Api] = ["openai_chat", "openai_responses", "anthropic_messages"]
RULES = os.path.join(PACKAGE, "rules")


@tool_fn
def look(place: str) -> str:
    """Look somewhere."""
    return place


class Tools(Toolset):
    look = tool(look)


def play(session: Session, rounds: int, api: Api) -> Session:
    """Rounds of one call each, added to the session."""
    for _ in range(rounds):
        call = Call("look", {"place": "a"}, id=f"call_{len(session.transcript)}")
        llm = ScriptedModel([Reply(calls=[call])], api=api, check=False)
        round: Any = session.text_turn(llm, tools=Tools).collect_sync().round  # type: ignore[union-attr]
        round.commit(session, [call.complete("seen") for call in round.calls])
    return session


def begun(rounds: int, api: Api) -> Session:
    session = Session()
    session.push_user("Look around.")
    return play(session, rounds, api)


def rules_entered(run: Callable[[], object]) -> int:
    """How many functions of the rules are entered."""
    entered = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal entered
        entered += event == "call" and frame.f_code.co_filename.startswith(RULES)

    profiled(run, count)
    return entered


@pytest.mark.parametrize("api", APIS)
def test_a_dump_asks_the_rules_about_new_items_alone_R4(api: Api) -> None:
    for_one_round = []
    for rounds in (5, 50):
        session = begun(rounds, api)
        assert rules_entered(session.dump) > 0
        assert rules_entered(session.dump) == 0
        play(session, 1, api)
        for_one_round.append(rules_entered(session.dump))
        assert rules_entered(session.fork().dump) == 0
    assert for_one_round[0] == for_one_round[1] > 0


@pytest.mark.parametrize("api", APIS)
def test_a_dump_as_it_was_written_is_loaded_without_asking_the_rules_R4(api: Api) -> None:
    dump = begun(5, api).dump()
    for data in (dump, json.dumps(dump), json.loads(json.dumps(dump, indent=1))):
        assert rules_entered(partial(Session.load, data)) <= 1  # which module they are
        assert rules_entered(Session.load(data).dump) == 0
    edited = json.loads(json.dumps(dump))
    edited["items"][0]["parts"][0]["text"] = "Look again."
    earlier = {name: value for name, value in dump.items() if name != "digest"}
    for data in (edited, earlier, {**dump, "refused": [["toy", "toy.rule"]]}):
        assert rules_entered(partial(Session.load, data)) > 100


@pytest.mark.parametrize("work", ["dump", "load"])
def test_both_grow_with_the_rounds_and_no_faster_R4(work: str) -> None:
    entered = []
    for rounds in (20, 40, 60):
        session = begun(rounds, "openai_chat")
        dump = session.dump()
        run = session.dump if work == "dump" else partial(Session.load, dump)
        entered.append(functions_entered(run).total())
    assert entered[2] - entered[1] == entered[1] - entered[0]
    # Python 3.10 enters a function for each comprehension. The rules would enter 600 more.
    assert (entered[2] - entered[1]) / 20 <= 85


def test_what_is_found_bit_by_bit_is_what_is_found_at_once_K5() -> None:
    """A host that answers with a kind of block which the vendor doesn't know."""
    api = "anthropic_messages"
    reply = render(Reply("Well."), api, number=1, model="m")
    odd = {**reply, "content": [{"type": "memo"}, *reply["content"]]}
    session = begun(2, api)
    assert session.dump()["refused"] == []
    for answer, refused in ((reply, []), (odd, [[api, "anthropic.block"]])):
        session.push_user("And now?")
        session.text_turn(ScriptedModel([answer], api=api, check=False)).collect_sync()
        assert session.dump()["refused"] == refused
        session.push_user("Look once more.")
        play(session, 1, api)
        assert session.dump()["refused"] == refused
        whole = Session(session.transcript.window(max_rounds=100))
        assert whole.dump()["refused"] == refused
    loaded = Session.load(session.dump())
    play(loaded, 1, api)
    assert loaded.dump()["refused"] == refused
