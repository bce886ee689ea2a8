"""A finished answer, which `collect_staged` leaves to be committed or discarded."""

from __future__ import annotations

from typing import Any

import pytest
from toolkit import OneTool as Tools

from lutumpy import (
    Finished,
    RoundClosedError,
    Session,
    StaleRoundError,
    Transcript,
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


def test_an_end_inside_of_another_one_is_refused_K4(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = staged(asked())
    drop = Transcript.turn_discarded

    def discard_again(transcript: Transcript, receipt: Any = None) -> None:
        with pytest.raises(RoundClosedError, match="another thread"):
            answer.discard()
        drop(transcript, receipt)

    monkeypatch.setattr(Transcript, "turn_discarded", discard_again)
    answer.discard()
    with pytest.raises(RoundClosedError, match="discarded before"):
        answer.discard()


def test_an_end_that_was_cut_off_can_be_made_again_K3a(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = staged(asked())

    def interrupt(transcript: Transcript, receipt: Any = None) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Transcript, "turn_discarded", interrupt)
        with pytest.raises(KeyboardInterrupt):
            answer.discard()
    answer.discard()
    with pytest.raises(RoundClosedError, match="discarded before"):
        answer.discard()


class Overtaken(dict[int, object]):
    """Steps of an answer to which another thread always adds one just before."""

    def setdefault(self, number: int, step: object = None) -> object:
        super().setdefault(number, object())
        return super().setdefault(number, step)


def test_who_is_overtaken_neither_hands_over_nor_ends_an_answer_K4() -> None:
    answer = staged(asked())._staged
    assert answer is not None
    holder = object()
    answer.steps = {0: holder}
    with pytest.raises(RoundClosedError, match="handed over before"):
        answer.hand_over(object(), object())
    answer.steps = Overtaken(answer.steps)
    for end in (lambda: answer.hand_over(holder, object()), lambda: answer.discard(holder)):
        with pytest.raises(RoundClosedError, match="another thread"):
            end()
        answer.steps = Overtaken({0: holder})
    assert answer.how_closed() is None
    answer.steps = {}
    answer.discard()


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
