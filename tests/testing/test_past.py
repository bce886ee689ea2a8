"""Time travel: recorded conversations judged with other tools and policies, and continued from an
earlier round. Nothing that has an effect is done again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from cassette_toolkit import model_of, no_network
from each_case import each
from every_api import APIS
from pydantic import Field

from lutumpy import (
    Complete,
    Hold,
    HookError,
    Later,
    Reject,
    RunNormally,
    Session,
    ToolInput,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.demo import SCRIPT
from lutumpy.demo.shop import SHOP, Parcel
from lutumpy.demo.shop import _HelpDesk as HelpDesk
from lutumpy.durable import MemoryStore
from lutumpy.errors import CassetteError
from lutumpy.execution import Dispatcher
from lutumpy.loops import run_tools_sync
from lutumpy.testing import (
    Call,
    Cassette,
    PastConversation,
    Reply,
    ScriptedModel,
    transcript_snapshot,
)

FOLDER = Path(__file__).parent.parent / "fixtures" / "cassettes"


def past(api: str = "openai_chat", *, streamed: bool = False) -> PastConversation:
    (found,) = PastConversation.from_cassette(
        FOLDER / f"demo_{api}{'_stream' if streamed else ''}.jsonl"
    )
    return found


@tool_fn(effect="read")
def get_order(order_id: int) -> str:
    """Look an order up."""
    return "found"


@tool_input(name="track_parcel", effect="read")
class TrackParcel(ToolInput[str]):
    """Find out where a parcel is."""

    carrier: Literal["north", "south", "North Post"]
    number: str


@tool_input(name="refund")
class Refund(ToolInput[str]):
    """Pay a part of the price back."""

    order_id: int
    percent: Annotated[int, Field(ge=1, le=10)]


class OtherDesk(Toolset):
    """Knows a carrier more, and refunds less."""

    get_order, track_parcel, refund = tool(get_order), tool(TrackParcel), tool(Refund)


@each("api", APIS)
def test_a_recorded_conversation_is_judged_with_other_tools_without_a_network(api: str) -> None:
    for streamed in (False, True):
        with no_network():
            conversation = past(api, streamed=streamed)
            assert len(conversation.rounds) == 5
            assert conversation.judge_sync(HelpDesk) == []
            differences = conversation.judge_sync(OtherDesk)
        assert [(d.round, d.name, d.was, d.now) for d in differences] == [
            (2, "track_parcel", "refused", "run"),
            (4, "refund", "run", "refused"),
        ]
        refund = str(differences[1])
        assert refund.startswith("round 4: refund({")
        assert "was run, would be refused: percent: Input should be less than or equal" in refund
    assert conversation.judge_sync(OtherDesk, at=3) == differences[1:]


def test_a_policy_says_what_would_become_of_each_call() -> None:
    def policy(call: Any) -> Any:
        if call.metadata.name == "refund":
            return Reject("ask a person first")
        if HelpDesk.get_order.matches(call) and call.input.order_id == 1043:
            return Hold("which one?")
        if HelpDesk.get_order.matches(call):
            return Complete(SHOP[1042])  # what it gave, too
        if HelpDesk.track_parcel.matches(call) and call.input.carrier == "south":
            return RunNormally.edited(number="SX-13")
        if HelpDesk.track_parcel.matches(call):
            return Complete(Parcel(status="lost", place="nowhere"))
        return RunNormally()

    lines = [str(found) for found in past().judge_sync(HelpDesk, policy)]
    assert [line.partition(" was ")[2] for line in lines] == [
        "run, would wait for a person: which one?",
        'run, would run with {"carrier":"south","number":"SX-13"}',
        'run, would be answered with {"status":"lost","place":"nowhere"}',
        "run, would be refused: ask a person first",
    ]


async def test_hooks_of_a_registry_may_be_async_and_a_failing_one_leaves_no_round_open() -> None:
    hooks = HelpDesk.hooks()

    @hooks.on(HelpDesk.refund)
    async def refuse(metadata: Any, input: Any) -> Any:
        return Reject("no")

    (found,) = await past().judge(HelpDesk, hooks)
    assert (found.round, found.now, found.detail) == (4, "refused", "no")

    def fail(call: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(HookError):
        await past().judge(HelpDesk, fail)
    with pytest.raises(HookError):
        past().judge_sync(HelpDesk, fail)


def rest(percent: int = 20, more: int = 0) -> list[Reply]:
    """What another model says from the fourth answer on."""
    calls = [Call("refund", {"order_id": 1042, "percent": percent})] * (1 + more)
    return [Reply(calls=calls), Reply(text="Sorry.")]


def test_a_fork_from_any_round_takes_results_from_the_record() -> None:
    ran: list[Any] = []
    conversation = past()
    before = transcript_snapshot(conversation.session)
    for at in range(1, 6):
        llm = ScriptedModel([*SCRIPT[at - 1 :]])
        forked = conversation.fork_sync(llm, HelpDesk, at=at)
        assert forked.finished
        assert not forked.differs
        assert str(forked) == "the same calls"
        assert transcript_snapshot(forked.session) == before
        assert len(llm.requests) == 6 - at
    assert ran == []
    assert transcript_snapshot(conversation.session) == before


@each("api", APIS)
def test_a_fork_with_the_recorded_model_makes_the_recorded_requests(api: str) -> None:
    """So a fork of a cassette is a test without a network."""
    cassette = Cassette(FOLDER / f"demo_{api}.jsonl", match="any")
    with no_network():
        forked = past(api).fork_sync(model_of(cassette, api), HelpDesk, at=3)
    assert forked.finished
    assert not forked.differs
    assert cassette.unused == (1, 2)


async def test_a_fork_ends_before_an_effect_that_wasnt_recorded() -> None:
    conversation = past()
    forked = await conversation.fork(ScriptedModel(rest(15)), HelpDesk, at=4)
    assert not forked.finished
    assert forked.missing == ('refund({"order_id":1042,"percent":15})',)
    assert forked.removed == ('refund({"order_id":1042,"percent":20})',)
    assert forked.added == forked.missing
    assert str(forked).splitlines()[-1].startswith("ends before refund(")
    assert len(forked.session.transcript.turns()) == 3
    # What was done once has one result, however often it is called.
    twice = await conversation.fork(ScriptedModel(rest(20, more=1)), HelpDesk, at=4)
    assert twice.missing == ('refund({"order_id":1042,"percent":20})',)
    # A person would have to decide.
    held = await conversation.fork(
        ScriptedModel(rest()), HelpDesk, at=4, hooks=lambda call: Hold("may I?")
    )
    assert held.missing == ('refund({"order_id":1042,"percent":20})',)
    refused = await conversation.fork(
        ScriptedModel(rest(15)), HelpDesk, at=4, hooks=lambda call: Reject("too much")
    )
    assert refused.finished
    assert refused.differs


@tool_fn(effect="read")
def look(item: str) -> str:
    """Look."""
    return f"looked at {item}"


@tool_fn
def break_it(item: str) -> str:
    """Break it."""
    raise AssertionError("it was broken")


class Bench(Toolset):
    look, break_it = tool(look), tool(break_it)


@pytest.mark.parametrize("api", APIS)
def test_a_fork_goes_on_with_late_results_of_the_record(api: Any) -> None:
    @tool_fn(late=True)
    async def paint(wall: str) -> str:
        """Paint a wall."""
        raise Later

    class Painters(Toolset):
        paint_it = tool(paint)

    north, south = Call("paint", {"wall": "north"}), Call("paint", {"wall": "south"})
    script = [Reply(calls=[north, south]), Reply(text="It is white.")]
    session = Session()
    session.push_user("Paint all.")
    run_tools_sync(session, ScriptedModel(script, api=api), tools=Painters)
    for open_call in session.open_calls:
        if "north" in open_call.arguments:
            session.deliver([open_call.complete("white")])
    record = PastConversation(Session.load(session.dump()))
    forked = record.fork_sync(ScriptedModel(script, api=api), Painters)
    assert (forked.finished, forked.missing) == (True, ())
    assert "(late: delivered):\n  [Late result of paint]\n  white" in transcript_snapshot(
        forked.session
    )
    # Nothing came for this one in the record, so the fork goes no further.
    alone = record.fork_sync(ScriptedModel([Reply(calls=[south])], api=api), Painters)
    assert (alone.finished, len(alone.session.open_calls)) == (False, 1)


def test_reads_that_werent_recorded_may_be_run_and_other_prompts_tried() -> None:
    session = Session()
    session.push_system("Be brief.")
    session.push_user("What is there?")
    llm = ScriptedModel([Reply(calls=[Call("look", {"item": "a"})]), Reply(text="An a.")])
    outcome: Any = session.text_turn(llm, tools=Bench).collect_sync()
    outcome.round.commit(session, [call.complete("an old a") for call in outcome.round.calls])
    session.text_turn(llm, tools=Bench).collect_sync()
    conversation = PastConversation(Session.load(session.dump()))
    llm = ScriptedModel(
        [
            Reply(calls=[Call("look", {"item": "a"}), Call("look", {"item": "b"})]),
            Reply(calls=[Call("look", {"item": "a"})]),
            Reply(calls=[Call("look", {"item": "c"}), Call("break_it", {"item": "a"})]),
        ]
    )
    forked = conversation.fork_sync(
        llm, Bench, system="Be thorough.", reads=Dispatcher(Bench), max_rounds=3
    )
    text = transcript_snapshot(forked.session)
    assert text.startswith("system:\n  Be thorough.\nuser:\n  What is there?\n")
    assert text.count("look ok: an old a") == 2
    assert "look ok: looked at b" in text
    assert forked.missing == ('look({"item":"c"})', 'break_it({"item":"a"})')
    limited = conversation.fork_sync(
        ScriptedModel([Reply(calls=[Call("look", {"item": "a"})])] * 2), Bench, max_rounds=2
    )
    assert not limited.finished
    assert limited.missing == ()
    with pytest.raises(ValueError, match="round is from 1 to 3, not 4"):
        conversation.session_before(4)
    assert transcript_snapshot(conversation.session_before(3)) == transcript_snapshot(session)


async def test_a_conversation_of_a_store_is_looked_at_while_it_goes_on() -> None:
    store = MemoryStore()
    await store.create("desk-1", past().session)
    conversation = await PastConversation.from_store(store, "desk-1")
    assert len(conversation.rounds) == 5
    assert [found.round for found in conversation.judge_sync(OtherDesk)] == [2, 4]


def test_cassettes_with_several_conversations_and_with_none(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    names = ("demo_openai_chat", "demo_bedrock_converse_stream", "demo_ollama_chat")
    path.write_text("".join([(FOLDER / f"{name}.jsonl").read_text() for name in names]))
    found = PastConversation.from_cassette(path)
    assert [len(conversation.rounds) for conversation in found] == [5, 5, 5]
    # The last answer of the model calls a tool, which nobody has run.
    whole = (FOLDER / "demo_anthropic_messages.jsonl").read_text().splitlines()
    path.write_text("\n".join(whole[:2]))
    (cut,) = PastConversation.from_cassette(path)
    assert len(cut.rounds) == 1
    path.write_text('{"request": {"a": 1}, "response": {}, "url": "/files"}')
    with pytest.raises(CassetteError, match="has no conversation"):
        PastConversation.from_cassette(path)
