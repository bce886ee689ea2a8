"""All that a transcript says of what was in force, as one list (rules PB1, PB18)."""

from __future__ import annotations

from collections.abc import Iterable

from lutumpy.core.items import Item
from lutumpy.core.turn_settings import TurnSettings

__all__ = ["records_of"]


def records_of(items: Iterable[Item]) -> list[TurnSettings]:
    """All records of these items, in order: those of turns, and those that were read (PB18)."""
    found: list[TurnSettings] = []
    for item in items:
        settings = getattr(item, "settings", None)
        if settings is not None:
            found.append(settings)
        if item.verbatim is not None and item.verbatim.settings:
            found += [settings for _, settings in item.verbatim.settings]
    return found
