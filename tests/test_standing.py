"""What a store keeps of a session: items that are appended, and a bounded state (rules P3, P22)."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from every_api import ADAPTERS
from hypothesis import given
from hypothesis import strategies as st
from toolkit import LookTools

from lutumpy import Finished, NeedsTools, Session, TranscriptError
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.models import Head, Transcript
from lutumpy.testing import Call, Reply, ScriptedModel, render

STEPS = ["user", "ephemeral", "calls", "signed calls", "failing calls", "answer", "signed answer"]


class Kept:
    """A store in small: items that were appended, and the last state."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.state: Any = None
        self.head = Head(0, Session().head.digest)

    def save(self, session: Session) -> None:
        self.items += json.loads(json.dumps(session.items_since(self.head)))
        self.head = session.head
        self.state = json.loads(json.dumps(session.state()))

    def build(self) -> Session:
        return Session.build(self.items, self.state)


def take(session: Session, step: str, number: int, api: str) -> None:
    """One step of a conversation, on whatever stands there."""
    if step == "user":
        session.push_user(f"say {number}")
        return
    if step == "ephemeral":
        session.push_ephemeral_user(f"note {number}")
        return
    if session.answered or not len(session.transcript):
        session.push_user(f"go {number}")
    reasoning = f"thought {number}" if step.startswith("signed") else None
    calls = (Call("look", {"n": number % 3}, id=f"c{number}"),) if step.endswith("calls") else ()
    reply = Reply(text=f"text {number}", calls=calls, reasoning=reasoning)
    model = ScriptedModel([reply], api=api)
    outcome = session.text_turn(model, tools=LookTools).collect_sync()
    if isinstance(outcome, NeedsTools):
        call = outcome.round.calls[0]
        result = call.fail("no") if step.startswith("failing") else call.complete("yes")
        outcome.round.commit(session, [result])


def sent(session: Session) -> list[str]:
    return [json.dumps(adapter.messages(session.transcript)) for adapter in ADAPTERS.values()]


@given(
    steps=st.lists(st.tuples(st.sampled_from(STEPS), st.booleans()), max_size=12),
    api=st.sampled_from([*ADAPTERS]),
)
def test_a_session_is_built_of_what_was_appended_and_its_state(steps: Any, api: str) -> None:
    session, kept = Session(), Kept()
    kept.save(session)
    for number, (step, save) in enumerate(steps):
        take(session, step, number, api)
        if save:
            kept.save(session)
            # What goes on is the built one, as in another process.
            again = kept.build()
            assert sent(again) == sent(session)
            session = again
    kept.save(session)
    built = kept.build()
    assert sent(built) == sent(session)
    assert built.head == session.head
    assert built.usage == session.usage
    assert built.state() == session.state()
    assert [dict(item) for item in built.dump()["items"]] == session.dump()["items"]


def test_a_head_is_of_committed_content_alone() -> None:
    one, other = Session(), Session()
    for session in (one, other):
        session.push_user("hello")
    other.push_ephemeral_user("note")
    assert one.head == other.head == Head(1, one.head.digest)
    other.push_user("and")
    assert other.head.items == 2
    assert one.head != other.head


def test_only_what_is_new_is_given() -> None:
    session = Session()
    session.push_user("one")
    head = session.head
    session.push_user("two")
    assert [item["parts"] for item in session.items_since(head)] == [
        [{"part": "text", "text": "two"}]
    ]
    assert session.items_since(session.head) == []


@pytest.mark.parametrize("head", [Head(3, "x"), Head(-1, "x"), Head(1, "x"), Head(0, "x")], ids=str)
def test_a_head_of_another_conversation_is_refused(head: Head) -> None:
    session = Session()
    session.push_user("one")
    with pytest.raises(TranscriptError, match="doesn't begin"):
        session.items_since(head)


@pytest.mark.parametrize(
    ("step", "answered"),
    [("answer", True), ("calls", False), ("user", False), ("ephemeral", False)],
)
def test_answered_says_whether_something_is_left_to_ask(step: str, answered: bool) -> None:
    session = Session()
    assert not session.answered
    take(session, step, 1, "openai_chat")
    assert session.answered is answered


def test_a_paused_answer_is_not_answered() -> None:
    session = Session()
    session.push_user("go")
    body = render(Reply(text="wait"), "anthropic_messages", number=1, model="m")
    turn = AnthropicMessages.response({**body, "stop_reason": "pause_turn"})
    outcome = LookTools.offer().read(turn, session)
    assert isinstance(outcome, Finished)
    assert not session.answered


@pytest.mark.pure
@pytest.mark.slow
def test_the_state_is_bounded_P22() -> None:
    session = Session()
    sizes: list[int] = []
    for number in range(60):
        for step in ("ephemeral", "signed calls", "failing calls", "answer"):
            take(session, step, number, "anthropic_messages")
        sizes.append(len(json.dumps(session.state())))
    assert max(sizes[30:]) < 1.05 * max(sizes[10:30])


def test_of_failures_the_latest_are_kept_P22() -> None:
    session = Session()
    session.push_user("go")
    for number in range(40):
        call = Call("look", {"n": number}, id=f"c{number}")
        model = ScriptedModel([Reply(calls=[call])])
        outcome = session.text_turn(model, tools=LookTools).collect_sync()
        assert isinstance(outcome, NeedsTools)
        outcome.round.commit(session, [outcome.round.calls[0].fail("no")])
    built = Session.build(session.items_since(Head(0, Session().head.digest)), session.state())
    assert built.transcript.failures("look", '{"n":39}') == 1
    assert built.transcript.failures("look", '{"n":0}') == 0


def whole() -> tuple[list[Any], dict[str, Any]]:
    session, kept = Session(), Kept()
    for number, step in enumerate(["ephemeral", "signed calls", "ephemeral", "failing calls"]):
        take(session, step, number, "anthropic_messages")
    kept.save(session)
    return kept.items, kept.state


@pytest.mark.parametrize("junk", [None, 7, -1, "x", [], {}, [[1]], [[0, 99]], True])
def test_a_state_that_is_none_is_refused(junk: Any) -> None:
    items, state = whole()
    for name in state:
        broken = {**deepcopy(state), name: junk}
        try:
            built = Session.build(deepcopy(items), broken)
        except TranscriptError:
            continue
        json.dumps(built.dump())  # it says the same in another way
    for name in state:
        without = {key: value for key, value in state.items() if key != name}
        with pytest.raises(TranscriptError, match="invalid"):
            Session.build(items, without)


def test_turns_whose_reasoning_was_dropped_stay_so() -> None:
    """They are ranges in the state: what a store has appended isn't written again."""
    session, kept = Session(), Kept()
    session.push_user("go")
    for number, is_dropped in enumerate([True, True, False, True]):
        call = Call("look", {"n": number}, id=f"c{number}")
        model = ScriptedModel([Reply(calls=[call], reasoning="hm")], api="anthropic_messages")
        outcome = session.text_turn(model, tools=LookTools).collect_sync()
        assert isinstance(outcome, NeedsTools)
        if is_dropped:
            session.push_user("in between")
        results = [outcome.round.calls[0].complete("yes")]
        outcome.round.commit(session, results, rebase=is_dropped)
    kept.save(session)
    assert [turn.reasoning_dropped for turn in session.turns()] == [True, True, False, True]
    assert len(kept.state["reasoning_dropped"]) == 2
    assert kept.build().turns() == session.turns()


@pytest.mark.parametrize(
    ("ephemeral", "words"),
    [
        ([99, {"item": "message"}], "an ephemeral message stands at 99 of"),
        ([-1, {"item": "message"}], "an ephemeral message stands at -1 of"),
        ([0, {"item": "message", "ephemeral": False}], "a message among the ephemerals is none"),
    ],
)
def test_an_ephemeral_of_a_state_is_one_and_has_a_place(ephemeral: Any, words: str) -> None:
    items, state = whole()
    with pytest.raises(TranscriptError, match=words):
        Session.build(items, {**state, "ephemerals": [ephemeral]})


def test_an_item_that_was_changed_is_noticed() -> None:
    items, state = whole()
    for index in range(len(items)):
        with pytest.raises(TranscriptError):
            Session.build([*items[:index], *items[index + 1 :]], state)
    changed = deepcopy(items)
    results = next(item for item in changed if item["item"] == "results")
    results["results"][0]["content"] += "!"
    with pytest.raises(TranscriptError, match="are not those of the state"):
        Session.build(changed, state)


def test_a_head_costs_the_same_however_long_the_conversation_is_P22() -> None:
    from lutumpy.core.digests import Digests

    session = Session()
    for number in range(200):
        session.push_user(f"say {number}")
    session.push_ephemeral_user("note")
    copied = session.transcript.digests()
    assert isinstance(copied, Digests)
    assert len(copied._chain) == 0  # shared, not copied
    assert copied.copy().at(200) == copied.at(200)
    assert session.head.items == 200


def test_a_state_looks_at_the_latest_failures_alone_P22(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []

    class Counts(dict[Any, int]):
        """Notes which entries are looked at."""

        def items(self) -> Any:
            entries = list(super().items())

            class Entries:
                def __reversed__(self) -> Any:
                    for entry in reversed(entries):
                        looked.append(entry)
                        yield entry

            return Entries()

    counts = Counts({("look", str(number)): 1 for number in range(5000)})
    monkeypatch.setattr(Transcript, "_failure_counts", lambda self: counts)
    failures = Session().state()["failures"]
    assert failures == [["look", str(number), 1] for number in range(4968, 5000)]
    assert len(looked) <= 33
