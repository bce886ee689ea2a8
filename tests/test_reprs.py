"""What values look like in a console: what they are and their state, in at most 120 characters.

Nothing that a provider sent, no key, no long input.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
from typing import Any

import pytest
from every_api import ADAPTERS
from pydantic import BaseModel

from lutumpy import (
    AssistantTurn,
    NeedsTools,
    RunNormally,
    Session,
    Signer,
    Toolset,
    TurnResult,
    tool,
    tool_fn,
)
from lutumpy.execution import Dispatcher
from lutumpy.loops import LoopResult, run_tools_sync
from lutumpy.models import (
    CallBlock,
    Message,
    TextBlock,
    ToolOffering,
    ToolResults,
    ToolSpec,
    Usage,
)
from lutumpy.plain.brief_repr import MOST, brief, brief_list
from lutumpy.testing import Call, Reply, ScriptedModel, serve

MODULES = [
    "lutumpy",
    "lutumpy.hooks",
    "lutumpy.doctor",
    "lutumpy.streaming",
    "lutumpy.models",
    "lutumpy.execution",
    "lutumpy.loops",
    "lutumpy.durable",
    "lutumpy.testing",
    "lutumpy.text_tools",
]
LONG = "0123456789" * 400
SECRET = "sk-live-1234567890"


@tool_fn(effect="read")
def look(word: str) -> str:
    """Look a word up."""
    return word


class Desk(Toolset):
    look = tool(look)


class Contact(BaseModel):
    name: str


def test_a_repr_says_what_it_is_and_its_state() -> None:
    session = Session()
    session.push_user("Hi")
    llm = ScriptedModel(
        [Reply(text="Hi!", usage=(15, 6)), Reply(calls=[Call("look", {"word": "a"})])]
    )
    turn = session.text_turn(llm)
    assert repr(turn) == "<TextTurn on openai_chat 'scripted', not sent>"
    assert repr(turn.collect_sync()) == "<TurnResult stop 'Hi!' 21 tokens>"
    assert [repr(item) for item in session.transcript] == [
        "<Message user 'Hi'>",
        "<AssistantTurn on openai_chat stop 'Hi!' 21 tokens>",
    ]
    session.push_user("And a?")
    with_tools = session.text_turn(llm, tools=Desk)
    assert repr(with_tools) == "<ToolTurn on openai_chat 'scripted' with [look], not sent>"
    outcome = with_tools.collect_sync()
    assert isinstance(outcome, NeedsTools)
    assert repr(outcome.round) == "<ToolRound open: calls [look], 0 issues>"
    (call,) = outcome.round.calls
    assert repr(call).startswith("<ToolCall look ")
    outcome.round.commit(session, [call.complete("a")])
    assert repr(session.transcript[-1]) == "<ToolResults [look ok]>"


def test_a_loop_says_how_it_ended() -> None:
    session = Session()
    session.push_user("Hi")
    llm = ScriptedModel(
        [Reply(text='{"name": "Ada"}', usage=(1, 2)), Reply(text="No", usage=(1, 2))]
    )
    done = run_tools_sync(session, llm, tools=Desk, output=Contact)
    assert repr(done) == (
        """<LoopResult answer '{"name": "Ada"}' 0 rounds 3 tokens value=Contact(name='Ada')>"""
    )
    session.push_user("Again")
    failed = repr(run_tools_sync(session, llm, tools=Desk, output=Contact))
    assert failed.startswith("<LoopResult no_value 'No' 0 rounds 3 tokens no value: ")


def test_streams_and_servers_say_where_they_are() -> None:
    session = Session()
    session.push_user("Hi")
    turn = session.text_turn(ScriptedModel([Reply(text="Hi!")] * 2))
    stream = turn.stream_sync()
    assert repr(stream) == "<TurnStreamSync not entered>"
    with stream:
        next(iter(stream))
        assert repr(stream) == "<TurnStreamSync open>"
        list(stream)
    assert repr(stream) == "<TurnStreamSync read to its end>"
    session.push_user("Hi")
    with turn.stream_sync() as left:
        next(iter(left))
    assert repr(left) == "<TurnStreamSync left early>"
    server = serve()
    assert repr(server) == "<WireServer not running, 0 requests>"
    with server:
        assert repr(server) == f"<WireServer at {server.url}, 0 requests>"


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.parametrize("api", ADAPTERS)
def test_no_provider_item_and_no_long_input_is_shown(api: Any) -> None:
    session = Session()
    session.push_user(LONG)
    llm = ScriptedModel(
        [
            Reply(text=LONG, calls=[Call("look", {"word": LONG})] * 9, reasoning=LONG),
            Reply(text=LONG),
        ],
        api=api,
    )
    turn = session.text_turn(llm, tools=Desk)
    outcome = turn.collect_sync()
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.apply_hooks_sync(lambda call: RunNormally())
    results = [call.complete(LONG) for call in plan.pending]
    seen: list[Any] = [turn, outcome, plan, *plan.pending, *results]
    plan.commit(session, results)
    finished = session.text_turn(llm, tools=Desk).collect_sync()
    seen += [finished, session, session.transcript, *session.transcript, Dispatcher(Desk)]
    for item in session.transcript:
        for block in getattr(item, "blocks", ()):
            seen.append(block)
    for value in seen:
        text = repr(value)
        assert len(text) <= MOST, text
        assert LONG[:61] not in text, text
        assert " at 0x" not in text, text


def test_every_public_value_has_a_short_repr() -> None:
    """Whatever its fields hold: each class is made without its own checks, of hostile values."""
    checked = 0
    for name in MODULES:
        module = importlib.import_module(name)
        for public in module.__all__:
            cls = getattr(module, public)
            if not inspect.isclass(cls) or not dataclasses.is_dataclass(cls):
                continue
            for held in (LONG, LONG.encode(), {"key": LONG}, [LONG] * 99, None):
                value = object.__new__(cls)
                for field in dataclasses.fields(cls):
                    object.__setattr__(value, field.name, held)
                try:
                    text = repr(value)
                except (AttributeError, KeyError, TypeError, ValueError):
                    continue  # a class whose own repr reads typed fields; the tests above have it
                assert len(text) <= MOST, text
                assert LONG[:61] not in text, text
                checked += 1
    assert checked > 200


def test_a_key_is_not_shown() -> None:
    assert SECRET not in repr(Signer("k1", SECRET.encode()))


def test_values_show_what_is_not_as_usual() -> None:
    assert repr(TextBlock("Hi")) == "TextBlock(text='Hi')"
    assert repr(CallBlock("c1", "look", "{}")) == "CallBlock(id='c1', name='look', arguments='{}')"
    assert repr(Usage(1, 2, 3)) == "Usage(input_tokens=1, output_tokens=2, total_tokens=3)"
    assert repr(Message("user", (), ephemeral=True)) == "<Message user '' ephemeral>"
    assert repr(ToolResults(())) == "<ToolResults []>"
    turn = AssistantTurn("openai_chat", (), json.dumps({"secret": SECRET}).encode())
    assert repr(TurnResult(turn)) == "<TurnResult stop '' 0 tokens>"
    assert repr(LoopResult("", 0, Usage(), "budget")) == "<LoopResult budget '' 0 rounds 0 tokens>"


def test_what_is_offered_is_named() -> None:
    spec = ToolSpec("look", "Look a word up.", {"type": "object"})
    assert repr(spec) == "<ToolSpec look>"
    assert repr(ToolOffering((spec,))) == "<ToolOffering auto: look>"
    assert repr(ToolOffering()) == "<ToolOffering auto: no tools>"


def test_texts_are_cut_and_containers_counted() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise ValueError

    assert brief("a" * 100, 10) == "'aaaaaaa…'"
    assert len(brief("\x00" * 100, 20)) <= 20
    assert brief("\x00", 3) == "'…'"
    assert brief(b"abc") == "<3 bytes>"
    assert brief([1, 2]) == "[1, 2]"
    assert brief(["a" * 99]) == "<1 entry>"
    assert brief({str(k): k for k in range(9)}) == "<9 entries>"
    assert brief(Broken()) == "<Broken whose __repr__ raised>"
    assert brief_list(["look", "b", "c", "d"], 12) == "look, 3 more"
    assert brief_list([], 6) == ""
