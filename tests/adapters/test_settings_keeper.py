"""What adapters without carriers keep of settings, in branches of a conversation (PB1).

The module is tried itself, since no API shows what it keeps before the next change.
"""

from __future__ import annotations

from lutumpy.adapters.settings_keeper import SettingsKeeper
from lutumpy.models import AssistantTurn, Message, TextPart, TurnSettings, Verbatim


def turn_with(effort: str) -> AssistantTurn:
    settings = TurnSettings(is_base=True, effort=effort)
    return AssistantTurn("ollama_chat", (), b"{}", settings=settings)


def test_a_copy_goes_on_by_itself_PB1() -> None:
    keeper = SettingsKeeper()
    keeper.add(Message("user", (TextPart("Hi"),)))
    keeper.add(AssistantTurn("ollama_chat", (), b"{}"))
    assert keeper.in_force.effort is None
    keeper.add(turn_with("low"))
    twin = keeper.copy()
    twin.add(turn_with("high"))
    assert (keeper.in_force.effort, twin.in_force.effort) == ("low", "high")


def test_what_was_read_of_a_history_of_another_api_is_in_force_too_PB18() -> None:
    settings = TurnSettings(is_base=True, effort="max")
    read = Verbatim("anthropic_messages", (b"{}",), settings=((-1, settings),))
    keeper = SettingsKeeper()
    keeper.add(Message("user", (TextPart("Hi"),), verbatim=read))
    assert keeper.in_force.effort == "max"
