"""What was in force when a turn was made rides on the turn: through dumps, windows, forks and moves
(rules PB1, PB15, PB16).
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from lutumpy import (
    Lark,
    NeedsTools,
    Session,
    Toolset,
    Transcript,
    TranscriptError,
    tool,
    tool_fn,
)
from lutumpy.adapters.writing import SettingsInForce
from lutumpy.models import (
    KEPT,
    AssistantTurn,
    OutputSpec,
    TextInput,
    ToolOffering,
    ToolSpec,
    TurnOrigin,
    TurnSettings,
)
from lutumpy.testing import Call, Reply, ScriptedModel

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
LOOK = ToolSpec("look", "Look.", SCHEMA)
SEND = ToolSpec("send", "Send.", SCHEMA, strict=True, provider={"openai_chat": {"x": 1}})
NOTE = ToolSpec("note", "Note.", SCHEMA, text=TextInput(Lark("start: WORD"), "A word."))
FREE = ToolSpec("free", "Free.", SCHEMA, text=TextInput(description="Anything."))
FORMAT = OutputSpec("answer", SCHEMA, "The answer.", strict=True)

BASE = TurnSettings(
    is_base=True,
    defined=(LOOK, SEND, NOTE, FREE),
    deferred=("note",),
    added=("look", "note", "free"),
    removed=("send",),
    output=FORMAT,
    effort="low",
)
LATER = TurnSettings(added=("send",), removed=("look",), output=None, reminders=("Now.",))
LAST = TurnSettings(defined=(ToolSpec("look", "Look again.", SCHEMA),), left_out=2, effort=None)


@tool_fn
def look_up(key: str) -> str:
    """Look something up."""
    return key


class Tools(Toolset):
    look_up = tool(look_up)


def told(*records: TurnSettings | None) -> Session:
    """A session with one turn for each record."""
    session = Session()
    llm = ScriptedModel([Reply(f"{number}") for number, _ in enumerate(records)])
    for record in records:
        session.push_user("go")
        turn = answer(llm)
        session.transcript.append_turn(replace(turn, settings=record))
    return session


def answer(llm: ScriptedModel) -> AssistantTurn:
    session = Session()
    session.push_user("go")
    return session.text_turn(llm).collect_sync().turn


def test_a_dump_has_every_record_and_origin_PB16() -> None:
    session = told(BASE, None, LATER, LAST)
    data = json.loads(json.dumps(session.dump()))
    loaded = Session.load(data)
    assert loaded.transcript.settings == (BASE, LATER, LAST)
    assert loaded.dump() == session.dump()
    assert repr(loaded.turns()[2].settings.effort) == "KEPT"  # type: ignore[union-attr]
    assert copy.deepcopy(loaded.turns()[2]).settings.effort is KEPT  # type: ignore[union-attr]


BREACHES: list[tuple[str, Any, str]] = [
    ("settings", [], "settings is list"),
    ("settings.is_base", 1, "is_base is int"),
    ("settings.defined", {}, "defined is dict"),
    ("settings.added", ["look", 1], "an entry of settings.added is int"),
    ("settings.left_out", -1, "left_out is -1"),
    ("settings.left_out", True, "left_out is True"),
    ("settings.effort", 3, "effort is int"),
    ("settings.further", 1, "unknown fields: further"),
    ("settings.added", ["send"], "add and remove the same tool"),
    ("settings.defined.1.name", "look", "define a tool twice"),
    ("settings.defined.0", 1, "a tool of the settings is int"),
    ("settings.defined.0.name", None, "the name of a tool is NoneType"),
    ("settings.defined.1.strict", "yes", "strict is str"),
    ("settings.defined.1.provider", {"openai_chat": 1}, "provider.openai_chat is int"),
    ("settings.defined.2.text.syntax", "yacc", "text.syntax is 'yacc'"),
    ("settings.defined.2.text.definition", None, "text.definition is NoneType"),
    ("settings.output", "text", "settings.output is str"),
    ("settings.output.schema", None, "output.schema is NoneType"),
    ("settings.output.strict", 1, "output.strict is int"),
    ("origin", "here", "origin is str"),
    ("origin.host", 1, "host is int"),
    ("origin.further", 1, "unknown fields: further"),
]


def test_a_damaged_record_is_refused_PB16() -> None:
    good = told(BASE).dump()
    for path, value, reason in BREACHES:
        data: Any = copy.deepcopy(good)
        *steps, last = path.split(".")
        node = data["items"][1]
        for step in steps:
            node = node[int(step)] if step.isdigit() else node[step]
        node[int(last) if last.isdigit() else last] = value
        with pytest.raises(TranscriptError) as caught:
            Session.load(data)
        assert reason in str(caught.value), path


def test_a_dump_of_an_earlier_version_has_no_records_PB16() -> None:
    data = told(BASE).dump()
    for item in data["items"]:
        item.pop("settings", None)
        item.pop("origin", None)
    loaded = Session.load({**data, "version": 2})
    assert loaded.transcript.settings == ()
    assert loaded.turns()[0].origin is None


def test_records_add_up_to_what_is_in_force_PB1() -> None:
    in_force = SettingsInForce()
    for record in (BASE, LATER):
        in_force.apply(record)
    assert [*in_force.offered] == ["note", "free", "send"]
    assert (in_force.output, in_force.effort) == (None, "low")
    assert in_force.deferred == {"note"}
    twin = in_force.copy()
    twin.apply(LAST)
    assert (twin.tools["look"].description, twin.effort) == ("Look again.", None)
    assert in_force.tools["look"] == LOOK
    # A tool that is offered again without being deferred is deferred no more.
    twin.apply(TurnSettings(added=("note",)))
    assert not twin.deferred
    # A new base says everything.
    twin.apply(TurnSettings(is_base=True, defined=(SEND,), added=("send",), output=None))
    assert ([*twin.offered], [*twin.tools]) == (["send"], ["send"])


def test_what_changes_is_the_least_that_leads_there_PB4() -> None:
    in_force = SettingsInForce()
    whole = ToolOffering((LOOK, SEND), stable_specs=(LOOK, SEND, NOTE), deferred=(NOTE,))
    base = in_force.difference(whole)
    assert base is not None
    assert (base.is_base, base.deferred, base.removed) == (True, ("note",), ())
    assert sorted(base.added) == ["look", "note", "send"]
    in_force.apply(base)
    assert in_force.difference(whole) is None
    assert in_force.same_as is whole  # found by identity the next time
    twin = ToolOffering(whole.specs, stable_specs=whole.stable_specs, deferred=whole.deferred)
    assert in_force.difference(twin) is None
    equal = replace(FORMAT)
    in_force.apply(TurnSettings(output=FORMAT))
    assert in_force.difference(whole, equal) is None
    assert in_force.output is equal
    narrowed = in_force.difference(ToolOffering((SEND,), deferred=(NOTE,)), equal, "high")
    assert narrowed == TurnSettings(removed=("look",), effort="high")
    loaded = in_force.difference(ToolOffering((LOOK, NOTE)), equal)
    assert loaded is not None
    assert loaded.removed == ("send",)
    again = in_force.difference(ToolOffering((LOOK,), deferred=(NOTE, SEND)), equal)
    assert again == TurnSettings(deferred=("send",))
    assert in_force.difference(None, equal, anew=True) == TurnSettings(
        is_base=True, output=equal, effort=None
    )


def test_a_window_begins_with_all_that_is_in_force_PB15() -> None:
    session = told(BASE, LATER, None, LAST)
    whole = session.transcript
    for rounds in (1, 2, 3, 4):
        window = whole.window(max_rounds=rounds)
        first, *rest = window.turns()
        assert first.settings is not None
        assert first.settings.is_base
        in_force = SettingsInForce()
        for turn in (first, *rest):
            if turn.settings is not None:
                in_force.apply(turn.settings)
        wanted = SettingsInForce()
        for record in whole.settings:
            wanted.apply(record)
        assert {*in_force.offered} == {*wanted.offered}
        assert in_force.effort == wanted.effort
        if rounds == 3:
            assert first.settings.reminders == ("Now.",)


def test_a_turn_that_is_written_behind_more_has_its_record_as_it_follows_there_PB15() -> None:
    call = Reply(calls=[Call("look_up", {"key": "a"})])
    llm = ScriptedModel([call, Reply("Two."), call])
    session = Session()
    session.push_user("go")
    opened = session.text_turn(llm, tools=Tools, effort="low").collect_sync()
    assert isinstance(opened, NeedsTools)
    session.text_turn(llm, effort="high").collect_sync()
    results = [call.complete("done") for call in opened.round.calls]
    opened.round.commit(session, results, rebase=True)
    first, second = session.transcript.settings
    assert (first.is_base, first.defined, first.effort) == (True, (), "high")
    assert (second.added, second.effort) == (("look_up",), "low")


def test_a_failed_request_records_nothing_PB1() -> None:
    session = told(None)
    session.push_user("again")
    with pytest.raises(Exception, match="script"):
        session.text_turn(ScriptedModel([])).collect_sync()
    assert session.transcript.settings == ()


def test_an_origin_says_where_a_turn_came_from_OR1() -> None:
    session = told(None)
    (turn,) = session.turns()
    assert turn.origin == TurnOrigin("openai_chat", turn.origin and turn.origin.host, "scripted")
    assert isinstance(session.transcript, Transcript)
