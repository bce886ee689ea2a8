"""The derived conversation that is kept equals one that is made anew (rules A4, R5, S4)."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from text_toolkit import Tools, answers, call

from lutumpy import NeedsTools, Session, Transcript
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Call, Reply, ScriptedModel
from lutumpy.text_tools import TextTools
from lutumpy.text_tools.derived import DerivedItems

STEPS = (
    "system",
    "user",
    "ephemeral",
    "ephemeral system",
    "text call",
    "native call",
    "answer",
    "fork",
    "dump",
    "ask",
    "ask otherwise",
)


def spell(calls: Any) -> str:
    return " ".join([f"{name}({arguments})" for name, arguments in calls])


def asked_of(session: Session, instruction: str) -> Any:
    """The request for a conversation, from what is kept with the transcript."""
    derived = session.transcript.encoded("text_tools test", lambda: DerivedItems(spell))
    return OpenAIChat.request(derived.transcript(instruction))


def anew(session: Session, instruction: str) -> Any:
    items = DerivedItems(spell)
    for item in session.transcript:
        items.add(item)
    return OpenAIChat.request(items.transcript(instruction))


def turn(session: Session, reply: Reply, *, text: bool) -> None:
    inner = ScriptedModel([reply])
    outcome = session.text_turn(TextTools(inner) if text else inner, tools=Tools).collect_sync()
    if isinstance(outcome, NeedsTools):
        outcome.round.commit(session, answers(outcome.round))


@given(steps=st.lists(st.sampled_from(STEPS), max_size=14), system_first=st.booleans())
@settings(max_examples=examples(80))
def test_what_is_kept_equals_what_is_made_anew(steps: list[str], system_first: bool) -> None:
    session = Session()
    if system_first:
        session.push_system("Be brief.")
    session.push_user("Hi")
    for step in steps:
        if step == "system":
            session.push_system("More.")
        elif step == "user":
            session.push_user("Well?")
        elif step == "ephemeral":
            session.push_ephemeral_user("It is noon.")
        elif step == "ephemeral system":
            session.push_ephemeral_system("Hurry.")
        elif step == "text call":
            session.push_user("Go.")
            turn(
                session,
                Reply(text=call("weather", {"city": "Oslo"}) + call("weather", "oops")),
                text=True,
            )
        elif step == "native call":
            session.push_user("Go.")
            turn(session, Reply(text="So.", calls=[Call("weather", {"city": "Rome"})]), text=False)
        elif step == "answer":
            session.push_user("And?")
            turn(session, Reply(text="Yes."), text=True)
            session.push_user("Well?")
        elif step == "fork":
            session, other = session.fork(), session
            other.push_user("elsewhere")
            asked_of(other, "one")
        elif step == "dump":
            session = Session.load(session.dump())
        else:
            instruction = "one" if step == "ask" else "two"
            assert asked_of(session, instruction) == anew(session, instruction)
    assert asked_of(session, "one") == anew(session, "one")
    assert asked_of(session, "") == anew(session, "")


def test_a_tail_for_one_request_leaves_the_transcript_as_it_was_and_its_encodings_there() -> None:
    transcript = Transcript()
    transcript.push_user("Hi")
    other = Transcript()
    other.push_user("Now")
    longer = transcript.with_tail([*other])  # type: ignore[list-item]  # a message
    assert [message["content"] for message in OpenAIChat.request(longer)["messages"]] == [
        "Hi",
        "Now",
    ]
    assert [message["content"] for message in OpenAIChat.request(transcript)["messages"]] == ["Hi"]
    assert (len(transcript), len(longer)) == (1, 2)
    transcript.push_user("Then")
    assert [message["content"] for message in OpenAIChat.request(transcript)["messages"]] == [
        "Hi",
        "Then",
    ]
