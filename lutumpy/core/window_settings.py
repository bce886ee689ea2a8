"""What was in force in a window of a transcript (rule PB15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lutumpy.core.items import AssistantTurn, Item, Message, ToolResults
from lutumpy.core.settings_records import records_of
from lutumpy.core.turn_settings import SettingsInForce, TurnSettings, step_between

__all__ = ["with_settings"]


def with_settings(
    items: Sequence[Item], chosen: list[Item], kept_turns: Sequence[int]
) -> list[Item]:
    """The chosen items, each turn with the record of what is in force as it follows in them.

    A window begins with all that is in force at its first turn (rule PB15). As far as it is the
    transcript itself, its records are: they say as well what was left out by then (rule PB9).

    Args:
        items: The transcript.
        chosen: The items of the window.
        kept_turns: Which of `items` its turns are, in order.
    """
    if not records_of(items):
        return chosen
    everything, kept = SettingsInForce(), SettingsInForce()
    begun = 0
    while begun < min(len(chosen), len(items)) and chosen[begun] is items[begun]:
        begun += 1
    for settings in records_of(items[:begun]):
        everything.apply(settings)
        kept.apply(settings)
    followed: list[Item] = chosen[:begun]
    indexes = iter([index for index in kept_turns if index >= begun])
    for item in chosen[begun:]:
        if not isinstance(item, AssistantTurn):
            if item.verbatim is not None and item.verbatim.settings:
                end = begun
                while end < len(items) and items[end] is not item:
                    end += 1
                if end < len(items):
                    item = _with_read(item, records_of(items[begun:end]), everything, kept)
                    begun = end + 1
        else:
            end = next(indexes) + 1
            for settings in records_of(items[begun:end]):
                everything.apply(settings)
            begun = end
            if item.verbatim is not None and item.verbatim.settings:
                item = replace(item, verbatim=replace(item.verbatim, settings=()))
            step = step_between(kept, everything)
            if step is not None:
                kept.apply(step)
            if item.settings is not None and item.settings.reminders:
                step = replace(step or TurnSettings(), reminders=item.settings.reminders)
            item = replace(item, settings=step)
        followed.append(item)
    return followed


def _with_read(
    item: Message | ToolResults,
    passed: Sequence[TurnSettings],
    everything: SettingsInForce,
    kept: SettingsInForce,
) -> Message | ToolResults:
    """An item whose entries change settings: what was left out before it is said first (PB18).

    Args:
        item: The item.
        passed: The records before it since the last item of the window.
        everything: What is in force in the transcript; it is brought up to date.
        kept: The same in the window.
    """
    assert item.verbatim is not None
    for settings in passed:
        everything.apply(settings)
    own: list[tuple[int, TurnSettings]] = []
    for place, settings in item.verbatim.settings:
        if place < 0:
            everything.apply(settings)
        else:
            own.append((place, settings))
    step = step_between(kept, everything)
    if step is not None:
        kept.apply(step)
    for _, settings in own:
        everything.apply(settings)
        kept.apply(settings)
    recorded = own if step is None else [(-1, step), *own]
    return replace(item, verbatim=replace(item.verbatim, settings=tuple(recorded)))
