"""A window of a history that was read says what was in force there (rules PB15, PB18)."""

from __future__ import annotations

from lutumpy.core.settings_records import records_of
from lutumpy.core.turn_settings import in_force_after
from lutumpy.core.window_settings import with_settings
from lutumpy.models import AssistantTurn, Message, TextPart, TurnSettings, Verbatim


def said(text: str, *settings: tuple[int, TurnSettings]) -> Message:
    entry = b'{"role":"user","content":"%b"}' % text.encode()
    return Message("user", (TextPart(text),), verbatim=Verbatim("a", (entry,), settings=settings))


def turn(*settings: tuple[int, TurnSettings]) -> AssistantTurn:
    return AssistantTurn("a", (), b"{}", verbatim=Verbatim("a", (b"{}",), settings=settings))


BASE = TurnSettings(is_base=True, effort="low")
HIGH, LOW = TurnSettings(effort="high"), TurnSettings(effort="low")


def test_what_is_before_an_items_entries_is_said_first_PB15_PB18() -> None:
    items = [said("a", (-1, BASE)), turn(), said("b", (-1, HIGH), (0, LOW)), turn()]
    window = with_settings(items, items[2:], [3])
    assert window[0].verbatim is not None
    first = TurnSettings(is_base=True, output=None, effort="high")
    assert window[0].verbatim.settings == ((-1, first), (0, LOW))
    assert in_force_after(records_of(window)).effort == "low"


def test_a_turn_whose_entries_change_something_has_a_record_of_it_PB15_PB18() -> None:
    items = [said("a", (-1, BASE)), turn(), said("b"), turn((0, HIGH))]
    window = with_settings(items, items[2:], [3])
    last = window[-1]
    assert isinstance(last, AssistantTurn)
    assert last.verbatim is not None
    assert last.verbatim.settings == ()
    assert last.settings == TurnSettings(is_base=True, output=None, effort="high")
