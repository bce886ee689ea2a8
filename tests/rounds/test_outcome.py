"""A finished answer, which `collect_staged` leaves to be committed or discarded."""

from __future__ import annotations

import pytest
from toolkit import OneTool as Tools

from lutumpy import (
    Finished,
    RoundClosedError,
    Session,
    StaleRoundError,
)
from lutumpy.testing import Reply, ScriptedModel


def asked() -> Session:
    session = Session()
    session.push_user("go")
    return session


def staged(session: Session) -> Finished:
    reply = Reply(text="done", reasoning="hm", model="m-1")
    outcome = session.text_turn(
        ScriptedModel([reply], api="anthropic_messages"), tools=Tools
    ).collect_staged_sync()
    assert isinstance(outcome, Finished)
    return outcome


def test_a_result_shows_what_the_answer_says() -> None:
    result = staged(asked()).result
    assert (result.text, result.reasoning, result.refusal) == ("done", "hm", None)
    assert (result.finish_reason, result.provider_finish_reason, result.model) == (
        "stop",
        "end_turn",
        "m-1",
    )
    assert (result.value, result.value_error) == (None, None)
    assert result.usage == result.turn.usage
    assert result.request_id == result.turn.request_id


def test_an_answer_that_was_not_staged_is_in_the_session_already() -> None:
    session = asked()
    outcome = session.text_turn(ScriptedModel([Reply(text="done")]), tools=Tools).collect_sync()
    assert isinstance(outcome, Finished)
    for end in (lambda: outcome.commit(session), outcome.discard):
        with pytest.raises(
            RoundClosedError,
            match=r"^the answer is in the session already; "
            r"only collect_staged\(\) leaves that to you$",
        ):
            end()
    assert [turn.text for turn in session.turns()] == ["done"]


def test_a_staged_answer_ends_once_and_says_how_K4() -> None:
    session = asked()
    outcome = staged(session)
    assert session.turns() == []
    outcome.commit(session)
    assert [turn.text for turn in session.turns()] == ["done"]
    for end in (lambda: outcome.commit(session), outcome.discard):
        with pytest.raises(RoundClosedError, match="the answer was committed before"):
            end()
    session.push_user("and now?")
    outcome = staged(session)
    outcome.discard()
    for end in (lambda: outcome.commit(session), outcome.discard):
        with pytest.raises(RoundClosedError, match="the answer was discarded before"):
            end()
    assert len(session.turns()) == 1


def test_a_staged_answer_of_a_session_that_moved_on_stays_open_and_is_in_the_error_K4() -> None:
    session = asked()
    outcome = staged(session)
    session.push_user("meanwhile")
    for _ in range(2):
        with pytest.raises(StaleRoundError, match="nothing was written") as caught:
            outcome.commit(session)
        assert caught.value.result is outcome.result
    assert session.turns() == []
    outcome.discard()
