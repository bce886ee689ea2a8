"""What a request says anew of tools, output format and effort, for the record of its turn (PB1)."""

from __future__ import annotations

from lutumpy.adapters.request_record import RequestRecord
from lutumpy.core.items import AssistantTurn, Item
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.turn_settings import SettingsInForce

__all__ = ["SettingsKeeper", "record_settings"]


class SettingsKeeper:
    """An `ItemEncoder` that adds up what turns have recorded, for adapters whose own encoders
    don't.
    """

    __slots__ = ("in_force",)

    def __init__(self) -> None:
        self.in_force: SettingsInForce = SettingsInForce()

    def add(self, item: Item) -> None:
        if isinstance(item, AssistantTurn) and item.settings is not None:
            self.in_force.apply(item.settings)
        if item.verbatim is not None:
            for _, settings in item.verbatim.settings:
                self.in_force.apply(settings)

    def copy(self) -> SettingsKeeper:
        twin = SettingsKeeper()
        twin.in_force = self.in_force.copy()
        return twin


def record_settings(
    record: RequestRecord, in_force: SettingsInForce, offering: ToolOffering | None
) -> None:
    """Note in the record what the request changes of what is in force."""
    record.settings = in_force.difference(
        offering, record.output, record.effort, anew=record.policy == "drop"
    )
