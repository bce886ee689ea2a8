"""What an encoded conversation of Messages says of settings, and which reasoning is bound to it."""

# What is hard here
# -----------------
# The base fills `tools` for good, and each later change is a message right before the turn that
# answered it. But a model, or a host, may have no words for a change. Then the conversation starts
# again from there: `tools` holds what is in force now, the messages that said changes are taken
# out, and whatever reasoning was signed over the old beginning no longer fits (`core/bound_
# reasoning.py` finds out). Both happen in the same way when the history is encoded and when the
# request is made, so that the next request begins with this one.
#
#   | what changed                     | at a host with words for it | elsewhere           |
#   |----------------------------------|-----------------------------|---------------------|
#   | tools withdrawn or offered again | a message                   | starts again        |
#   | a tool that is new               | a message with its          | starts again        |
#   |                                  | definition, or one with a   |                     |
#   |                                  | reference and the tool      |                     |
#   |                                  | deferred behind the others  |                     |
#   | effort                           | a message                   | the field, unbound  |
#   | output format                    | the field, unbound          | the same            |
#
# A message that was taken out leaves an empty place in the list, so that all other places stay.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lutumpy.adapters.anthropic.carriers import (
    Carried,
    Carriers,
    carry_change,
    carry_removals,
)
from lutumpy.adapters.destination import ANYWHERE, Destination, tell_left_out
from lutumpy.core.bound_reasoning import BoundReasoning
from lutumpy.core.items import AssistantTurn, OpaqueBlock, ReasoningBlock
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.core.turn_settings import KEPT, SettingsInForce, TurnSettings
from lutumpy.rules.anthropic.models import binds_reasoning, version

__all__ = ["ELSEWHERE", "SaidSettings"]

ELSEWHERE = "elsewhere"
"""Stands for the API of a turn whose host has sealed parts of it: it is sent like another API's."""


class SaidSettings:
    """What the messages of one encoder say of settings.

    Args:
        carriers: What may be said in the middle of the conversation.
        needs_record: Reasoning of models that bind none is left out.
        render: Spells a tool as an entry of `tools`.
        bound_form: Takes from a message what no reasoning is bound to.
        destination: Who gets the requests.

    Attributes:
        in_force: What turns have recorded.
        base: The tools of the request, as an offering; `None` before the first record.
        declared: Tools that stand behind those of the base, deferred, for references.
        effort: The effort of the request's field.
        headers: The beta names that the messages need.
        pending: Messages that stand before the next answer, each with whether it changes settings.
        places: Which messages change settings.
        reminders: Texts for the next turn alone.
        bound: The signed reasoning.
        turns: How many turns were encoded.
        host: The host of the requests, where being of that host is enough for a turn's reasoning to
            go back.
        unread: What of which turn doesn't go to this host and model, and why.
        rewrites: Which changes of earlier messages there were.
    """

    __slots__ = (
        "_bound_form",
        "_render",
        "base",
        "bound",
        "carriers",
        "declared",
        "destination",
        "effort",
        "headers",
        "host",
        "in_force",
        "needs_record",
        "pending",
        "places",
        "reminders",
        "rewrites",
        "turns",
        "unread",
    )

    def __init__(
        self,
        carriers: Carriers,
        needs_record: bool,
        render: Callable[[ToolSpec], Any],
        bound_form: Callable[[bytes], bytes],
        destination: Destination = ANYWHERE,
    ) -> None:
        self.carriers: Carriers = carriers
        self.needs_record: bool = needs_record
        self._render = render
        self._bound_form = bound_form
        self.in_force: SettingsInForce = SettingsInForce()
        self.base: ToolOffering | None = None
        self.declared: list[ToolSpec] = []
        self.effort: str | None = None
        self.headers: dict[str, None] = {}
        self.pending: list[tuple[bytes, bool]] = []
        self.places: list[int] = []
        self.reminders: list[str] = []
        self.bound: BoundReasoning = BoundReasoning(bound_form)
        self.turns: int = 0
        self.destination: Destination = destination
        self.host: str | None = None if destination.facts.many_makers else destination.host
        self.unread: list[tuple[int, str, str]] = []
        self.rewrites: frozenset[tuple[str, int]] = frozenset()

    def copy(self) -> SaidSettings:
        """An independent copy."""
        twin = SaidSettings(self.carriers, self.needs_record, self._render, self._bound_form)
        twin.destination, twin.host = self.destination, self.host
        twin.in_force = self.in_force.copy()
        twin.base, twin.declared, twin.effort = self.base, self.declared.copy(), self.effort
        twin.headers, twin.pending = self.headers.copy(), self.pending.copy()
        twin.places, twin.reminders = self.places.copy(), self.reminders.copy()
        twin.bound, twin.turns = self.bound.copy(), self.turns
        twin.unread, twin.rewrites = self.unread.copy(), self.rewrites
        return twin

    def carry(self, settings: TurnSettings) -> Carried | None:
        """A change as a message; `None` if there are no words for it, so that the conversation
        starts again.
        """
        if settings.is_base:
            return None
        # An effort that can't be said is a field of the request, which binds nothing.
        if settings.effort is not KEPT and not (self.carriers.effort and settings.effort):
            settings = replace(settings, effort=KEPT)
        return carry_change(settings, self.in_force, self.carriers, self._render)

    def begin(self, settings: TurnSettings) -> Carried:
        """Take the first record: its tools are those of every request.

        Returns:
            What has to be said at once: tools that are declared and not offered.
        """
        self.in_force.apply(settings)
        self.effort = settings.effort if isinstance(settings.effort, str) else None
        specs, removed = settings.defined, settings.removed
        if removed and not self.carriers.tools:
            specs = tuple([spec for spec in specs if spec.name not in removed])
            removed = ()
        late = set(settings.deferred)
        deferred = tuple([spec for spec in specs if spec.name in late])
        self.base = ToolOffering(specs, deferred=deferred)
        return carry_removals(removed) if removed else Carried(b"")

    def start_again(self, settings: TurnSettings, messages: list[bytes]) -> None:
        """Take a change that can't be said: the request's fields say all of it.

        Args:
            settings: The change.
            messages: The encoded messages; those that said changes are taken out.
        """
        self.in_force.apply(settings)
        in_force = self.in_force
        offered = tuple([spec for spec in in_force.declared() if spec.name in in_force.offered])
        late = tuple([spec for spec in offered if spec.name in in_force.deferred])
        self.base = ToolOffering(offered, deferred=late)
        self.declared, self.effort = [], in_force.effort
        self.pending = [entry for entry in self.pending if not entry[1]]
        self.rewrites |= {("start", self.turns)}
        if self.places:
            for place in self.places:
                messages[place] = b""
            self.bound.forget_from(self.places[0])
            self.places = []

    def add(self, carried: Carried, settings: TurnSettings) -> None:
        """Take a change that was said; its message stands before the next answer."""
        self.in_force.apply(settings)
        self.note(carried)
        if not (self.carriers.effort and self.in_force.effort):
            self.effort = self.in_force.effort

    def note(self, carried: Carried) -> None:
        """Note what a message needs."""
        if carried.message:
            self.pending.append((carried.message, True))
        self.declared += carried.declared
        self.headers.update(dict.fromkeys(carried.headers))

    def without_unreadable(self, turn: AssistantTurn) -> AssistantTurn:
        """The turn, without what this host and model can't open or are known to refuse (rules OR3,
        PB13).
        """
        if not self.destination.can_open(turn):
            return self._without_sealed(turn)
        if not self.needs_record or not turn.signed or turn.reasoning_dropped:
            return turn
        by = turn.origin.model if turn.origin is not None else turn.model
        if version(by) is None or binds_reasoning(by):
            return turn
        why = "this model takes only reasoning of models that bind it"
        self._leave_out("signed reasoning", why)
        return replace(turn, reasoning_dropped=True)

    def _without_sealed(self, turn: AssistantTurn) -> AssistantTurn:
        """A turn of another host, of which this one gets what it can read."""
        why = "sealed for the host that said it"
        has_results = any(isinstance(block, OpaqueBlock) for block in turn.blocks)
        if has_results and turn.verbatim is None:
            # What the host has run itself is encrypted as well: texts and calls go, as of any API.
            self._leave_out("reasoning and results of the host's own tools", why)
            return replace(turn, api=ELSEWHERE)
        if not any(isinstance(block, ReasoningBlock) for block in turn.blocks):
            return turn
        self._leave_out("reasoning", why)
        return replace(turn, reasoning_dropped=True)

    def _leave_out(self, what: str, why: str) -> None:
        self.unread.append(tell_left_out(self.destination, self.turns, what, why))
