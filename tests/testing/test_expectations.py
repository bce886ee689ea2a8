"""What a test may expect of a conversation, and the conversation as text."""

from __future__ import annotations

from typing import Any

import pytest
from every_api import APIS

from lutumpy import FilePart, NeedsTools, Session, Toolset, tool, tool_fn
from lutumpy.testing import (
    Call,
    Reply,
    ScriptedModel,
    called,
    calls,
    expect,
    never_called,
    transcript_snapshot,
)


@tool_fn
def look(item: str) -> dict[str, int]:
    """How many there are."""
    return {"count": 2, "age": 1}


@tool_fn
def order(item: str, count: int = 1) -> str:
    """Order some."""
    return "two\nlines"


@tool_fn
def ask(text: str) -> str:
    """Ask somebody."""
    return text


class Desk(Toolset):
    look, order, ask = tool(look), tool(order), tool(ask)


SCRIPT = [
    Reply(
        text="Let me see.\nOne moment.",
        calls=[Call("look", '{"item":  "lamp"}'), Call("look", {"thing": "x"})],
        reasoning="They want a lamp.",
    ),
    Reply(calls=[Call("order", {"item": "lamp", "count": 2}), Call("lock", "{")]),
    Reply(text="Done.", finish="length"),
]


def conversation(script: list[Any] = SCRIPT, api: str = "anthropic_messages") -> Session:
    llm, session = ScriptedModel(script, api=api), Session()
    session.push_user("A lamp?")
    for _ in script[:-1]:
        outcome: Any = session.text_turn(llm, tools=Desk).collect_sync()
        round = outcome.round
        round.commit(session, [call.complete(call.call_sync()) for call in round.calls])
    session.text_turn(llm, tools=Desk).collect_sync()
    return session


def test_a_conversation_as_text() -> None:
    text = transcript_snapshot(conversation())
    before, issue, behind = text.partition(
        "  look rejected: Tool call rejected: item: Field required\n"
        "    thing: Extra inputs are not permitted\n"
    )
    assert issue, text
    assert (
        before
        == """user:
  A lamp?
assistant:
  Let me see.
  One moment.
  -> look {"item":"lamp"}
  -> look {"thing":"x"}
results:
  look ok: {"age":1,"count":2}
"""
    )
    assert behind.startswith(
        """assistant:
  -> order {"count":2,"item":"lamp"}
  -> lock"""
    )
    assert "\n  order ok: two\n    lines\n" in behind
    assert text.endswith("assistant (length):\n  Done.\n")
    assert "They want a lamp." not in text
    assert "  thinking:\n    They want a lamp.\n" in transcript_snapshot(
        conversation(), reasoning=True
    )
    whole = [SCRIPT[0], Reply(text="Yes.")]
    same = {transcript_snapshot(conversation(whole, api)) for api in APIS}
    assert len(same) == 1, same


@pytest.mark.parametrize("api", APIS)
def test_a_late_result_is_told_whatever_the_id_of_its_call(api: Any) -> None:
    @tool_fn(late=True)
    async def paint(wall: str) -> str:
        """Paint a wall."""
        raise NotImplementedError

    class Painters(Toolset):
        paint_it = tool(paint)

    session = Session()
    session.push_user("Paint all.")
    walls = [Call("paint", {"wall": wall}) for wall in ("north", "south")]
    llm = ScriptedModel([Reply(calls=walls)], api=api)
    outcome = session.text_turn(llm, tools=Painters).collect_sync()
    assert isinstance(outcome, NeedsTools)
    north, south = outcome.round.calls
    outcome.round.commit(session, [north.later("an hour\nor two"), south.later()])
    assert {call.status for call in calls(session)} == {"promised"}
    done, failed = session.open_calls
    results = [done.complete("white"), failed.fail("it rains")]
    session.deliver(results, tools=Painters)
    assert transcript_snapshot(session) == (
        "user:\n  Paint all.\n"
        'assistant:\n  -> paint {"wall":"north"}\n  -> paint {"wall":"south"}\n'
        "results:\n  paint promised: an hour\n    or two\n  paint promised:\n"
        "user (late: delivered):\n  [Late result of paint]\n  white\n"
        "user (late: delivered):\n  [Late result of paint, which failed]\n  it rains\n"
    )
    loaded = Session.load(session.dump())
    became = [(call.status, call.result) for call in calls(loaded, Painters.paint_it)]
    assert became == [("ok", "white"), ("error", "it rains")]


def test_messages_of_other_kinds_are_said_to_be_so() -> None:
    session = Session()
    session.push_developer("Be kind.")
    session.push_ephemeral_user(["Look:", FilePart(b"1", "text/plain")])
    assert transcript_snapshot(session.transcript) == (
        "developer:\n  Be kind.\nuser (ephemeral):\n"
        "  Look:\n  [file left out: text/plain, 1 bytes]\n"
    )
    llm = ScriptedModel([Reply(refusal="I'd rather not.")])
    session = Session()
    session.push_user("Sell the shop.")
    session.text_turn(llm).collect_sync()
    assert transcript_snapshot(session).endswith(
        "assistant (refusal):\n  refusal: I'd rather not.\n"
    )


def test_the_calls_of_a_conversation_with_their_inputs() -> None:
    session = conversation()
    every = calls(session)
    assert [(call.round, call.name, call.status) for call in every] == [
        (1, "look", "ok"),
        (1, "look", "rejected"),
        (2, "order", "ok"),
        (2, "lock", "rejected"),
    ]
    assert [call.input for call in every] == [None] * 4
    assert every[0].value == {"count": 2, "age": 1}
    assert every[2].value == "two\nlines"
    first, second = calls(session.transcript, Desk.look)
    assert first.input is not None
    assert first.input.item == "lamp"
    assert second.input is None  # the arguments don't fit
    (ordered,) = calls(session, Desk.order)
    assert ordered.input is not None
    assert ordered.input.count == 2
    assert str(ordered).startswith('2. order({"item":"lamp","count":2}) ok: two')
    assert calls(Session()) == ()


def test_what_isnt_as_expected_is_all_said_at_once() -> None:
    session = conversation()
    expect(
        session,
        called(Desk.look),
        called(Desk.look, times=2, before=Desk.order),
        called(Desk.look, times=1, status="ok"),
        called(Desk.order, where=lambda order: order.count == 2),
        never_called(Desk.order, where=lambda order: order.count > 2),
        never_called(Desk.ask),
    )
    with pytest.raises(AssertionError) as caught:
        expect(
            session,
            called(Desk.ask),
            called(Desk.look, times=1),
            called(Desk.order, before=Desk.look),
            called(Desk.order, before=Desk.ask),
            called(Desk.order, times=3, status="ok", where=lambda order: True),
            never_called(Desk.look, where=lambda look: look.item == "lamp"),
            called(Desk.look),
        )
    said = [line for line in str(caught.value).splitlines() if not line.startswith("  ")]
    assert said == [
        "ask was not called; the calls were:",
        "look was called 2 times, not once; the calls were:",
        "order was not called before look; the calls were:",
        "order was not called before ask; the calls were:",
        "order with status 'ok' and with such an input was called once, not 3 times; "
        "the calls were:",
        "look with such an input was called once, not 0 times; the calls were:",
    ]
    with pytest.raises(AssertionError, match="look was not called; there were no calls"):
        expect(Session(), called(Desk.look))
