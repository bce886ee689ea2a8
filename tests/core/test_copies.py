"""A copy of a conversation is one of its own, by whatever way it was made (rules K3a, K5, R4)."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from every_api import ADAPTERS, APIS
from toolkit import WeatherTools

from lutumpy import (
    Finished,
    NeedsTools,
    Reject,
    RoundClosedError,
    Session,
    StaleRoundError,
    Transcript,
)
from lutumpy.testing import Call, Reply, ScriptedModel

CALL = Reply("I look.", calls=[Call("weather", {"city": "Oslo"}, id="c1")], reasoning="Hm.")


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickled,
}


def opened(session: Session, api: str) -> Any:
    """A round of this session that is open."""
    outcome = session.text_turn(ScriptedModel([CALL], api=api), tools=WeatherTools).collect_sync()
    assert isinstance(outcome, NeedsTools)
    return outcome.round


def talk(api: str) -> Session:
    """A session right after a commit."""
    session = Session()
    session.push_user("Is it raining in Oslo?")
    round = opened(session, api)
    round.commit(session, [call.fail("the station is down") for call in round.calls])
    return session


def texts(transcript: Transcript) -> list[str]:
    return [getattr(item, "text", "") for item in transcript]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("hint", [None, "It is noon."])
def test_a_copy_and_its_original_go_on_apart(
    hint: str | None, api: str, way: Callable[[Any], Any]
) -> None:
    session = talk(api)
    if hint is not None:
        session.push_ephemeral_user(hint)
    twin = way(session)
    assert twin.dump() == session.dump()
    assert twin.usage == session.usage
    before = ADAPTERS[api].messages(session.transcript)
    assert ADAPTERS[api].messages(twin.transcript) == before

    twin.push_user("there")
    session.push_user("here")
    twin.push_user("there, too")
    hints = [] if hint is None else [hint]
    assert texts(session.transcript)[3:] == [*hints, "here"]
    assert texts(twin.transcript)[3:] == [*hints, "there", "there, too"]
    for one in (session, twin):
        round = opened(one, api)
        assert round.calls[0].metadata.id != "c1"  # that id is used in both (rule C6)
        round.commit(one, [call.complete("rain") for call in round.calls])
        assert Session.load(one.dump()).dump() == one.dump()
    assert len(twin.transcript) == len(session.transcript) + 1
    assert twin.usage == session.usage


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_transcript_is_copied_without_what_comes_later(way: Callable[[Any], Any]) -> None:
    original = talk("openai_chat").transcript
    ADAPTERS["openai_chat"].request(original)
    twin = way(original)
    twin.push_user("there")
    ADAPTERS["openai_chat"].request(twin)
    original.push_user("here")
    assert texts(twin)[-1] == "there"
    assert texts(original)[-1] == "here"
    for transcript in (original, twin):
        sent = ADAPTERS["openai_chat"].messages(transcript)
        assert sent[-1]["content"] == texts(transcript)[-1]


@pytest.mark.parametrize("way", [copy.deepcopy, pickled], ids=["deepcopy", "pickle"])
def test_a_round_is_copied_with_its_session(way: Callable[[Any], Any]) -> None:
    session = talk("anthropic_messages")
    round = opened(session, "anthropic_messages")
    twin, its_round = way((session, round))
    its_round.commit(twin, [call.complete("rain") for call in its_round.calls])
    assert len(twin.transcript) == len(session.transcript) + 2
    with pytest.raises(StaleRoundError):
        round.commit(twin, [call.complete("rain") for call in round.calls])
    round.commit(session, [call.complete("rain") for call in round.calls])
    assert twin.dump() == session.dump()


def test_a_copied_round_is_the_round() -> None:  # C7a: only one that nobody holds was dropped
    session = talk("openai_chat")
    round = opened(session, "openai_chat")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy.copy(round)
        gc.collect()
    copied = copy.copy(round)
    plan = copied.apply_hooks_sync(lambda call: Reject("not now"))
    with pytest.raises(RoundClosedError):
        round.commit(session, [call.complete("rain") for call in round.calls])
    copy.copy(plan).commit(session, [])
    done = session.text_turn(ScriptedModel([Reply("Done.")]), tools=WeatherTools).collect_sync()
    assert isinstance(done, Finished)
