"""A conversation made ready for one request: what it says anew, and which reasoning it leaves out
(rules PB1, PB2, PB5, PB8 to PB11); the same for every API that says changes in its entries.
"""

# The tools, the output format and the effort of the first request are the base: later requests send
# them again in the same fields, so that they begin with the same bytes. `prepare` compares what the
# request wants with what is in force:
#
#   the request wants                         what is done
#   ----------------------------------------  ----------------------------------------------------
#   the same                                  nothing
#   anything, before there is a base          it becomes the base (`begin`)
#   something else that an entry can say      the entry comes last, and the fields stay (`change`)
#   something else that no entry can say      the conversation starts again, with a new base
#   a change, right behind a paused answer    it waits for the next request, if it needs an entry
#   a forced call of a tool the base lacks    the conversation starts again
#
# Each of them is noted in the record of the request. Where earlier entries become others, that is
# done in a copy of the encoder: the transcript keeps its own.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

from lutumpy.adapters.encoded_settings import (
    NOTHING_TO_SAY,
    Carried,
    EncodedSettings,
)
from lutumpy.adapters.request_record import RequestRecord
from lutumpy.core.bound_reasoning import SignedTurn
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.core.turn_settings import TurnSettings, make_base, words_of

__all__ = ["Prepared", "SettingsEncoder", "in_place", "note_reminders", "prepare"]

E = TypeVar("E", bound="SettingsEncoder")


class SettingsEncoder(Protocol):
    """An encoder whose entries say changes of settings."""

    state: EncodedSettings
    entries: list[bytes]

    @property
    def is_paused(self) -> bool:
        """Whether the last answer wants to go on, so that no change may be said now."""
        ...

    def leave_out(self, turns: Iterable[SignedTurn]) -> None:
        """Take the reasoning of these turns out of their entries (rule PB9)."""
        ...

    def copy(self: E) -> E: ...


class Prepared(Generic[E]):
    """An encoder, and what one request says behind it.

    Attributes:
        encoder: The encoded conversation; a copy where this request changes it.
        declared: The tools that the request declares.
        effort: The effort of the request's field.
        output: The output format of the request's field.
        closing: The change that is said at the end.
    """

    # Most requests say nothing new.
    closing: Carried = NOTHING_TO_SAY
    encoder: E
    declared: ToolOffering | None
    effort: str | None
    output: OutputSpec | None
    _record: RequestRecord
    _transcript: Transcript

    def begin(self, settings: TurnSettings, offering: ToolOffering | None) -> None:
        """Make the settings of this request the base: no turn has recorded any."""
        self.declared = offering
        self.effort, self.output = self._record.effort, self._record.output
        if offering is None or offering.stable_specs is None:
            return
        if settings.removed and self.encoder.state.spelling.keeps_withdrawn:
            self.declared = ToolOffering(settings.defined, deferred=offering.deferred)
            self.closing = self.encoder.state.spelling.withdraw(settings.removed)
            if self.closing.entry:
                words = [f"tool_removal {name}" for name in settings.removed]
                self._record.say_appended(*words)

    def change(self, settings: TurnSettings, offering: ToolOffering | None) -> None:
        """Say what is different from what is in force, or start again where that can't be said."""
        state = self.encoder.state
        carried = state.carry(settings)
        if carried is None:
            before = state
            self.encoder = self.encoder.copy()
            state = self.encoder.state
            state.start_again(settings, self.encoder.entries, offering)
            self.declared, self.effort, self.output = state.base, state.effort, state.output
            if state.rewrites != before.rewrites or not _declare_alike(state.base, before.base):
                self._record.say_changed("tools")
            return
        self.closing = carried
        self._record.say_appended(*carried.words)
        effort = self._record.effort
        if not (state.spelling.says_effort and effort):
            self.effort = effort
        if not state.spelling.says_output:
            self.output = self._record.output

    def leave_out_misfits(self, beginning: bytes, *, binds: bool) -> E:
        """Leave out what reasoning doesn't fit behind this request's beginning (rule PB8).

        Args:
            beginning: What the request holds before its entries, of what is bound.
            binds: The model binds its reasoning to that.

        Raises:
            PrefixChangedError: There is any, and the record says to send nothing then.
        """
        state, record = self.encoder.state, self._record
        gone: list[SignedTurn] = []
        if state.bound.signed and state.bound.signed[-1].is_left_out:
            gone = state.bound.newly_left_out()
        if gone:
            record.tell_dropped([turn.turn for turn in gone])
            self._record_left_out(gone[0])
        misfit: int | None = None
        if binds:
            misfit = state.bound.first_misfit(beginning, self.encoder.entries)
        refused = record.repeated_without
        if refused is not None:
            places = [i for i, turn in enumerate(state.bound.signed) if turn.turn >= refused]
            misfit = min([place for place in (*places[:1], misfit) if place is not None])
        if binds and state.bound.has_unknown:
            sent = state.bound.signed[:misfit]
            unknown = [t.turn for t in sent if t.prefix is None and not t.is_left_out]
            if unknown:
                record.say_unverified(unknown)
        if misfit is None:
            return self.encoder
        lost = [turn.turn for turn in state.bound.signed[misfit:] if not turn.is_left_out]
        if not lost:
            return self.encoder
        record.drop_reasoning(lost, "prefix_mismatch", "lutumpy" if refused is None else "provider")
        first = min([*gone[:1], state.bound.signed[misfit]], key=lambda turn: turn.turn)
        self._record_left_out(first)
        self.encoder = self.encoder.copy()
        self.encoder.leave_out(self.encoder.state.leave_out_from(first.turn))
        return self.encoder

    def _record_left_out(self, first: SignedTurn) -> None:
        """Note that the reasoning of a turn and all later ones is in no later request either."""
        record = self._record
        count = self.encoder.state.turns - first.turn
        record.settings = replace(record.settings or TurnSettings(), left_out=count)

    def finish(
        self,
        entries: Sequence[bytes],
        permanent: int | None,
        head: Mapping[str, Any],
        beginning: Callable[[], bytes],
    ) -> None:
        """Note in the record what goes out.

        Args:
            entries: The entries of the request, without marks of the cache; places of those that
                were taken out are empty.
            permanent: How many of them come before the first item that is for one request; `None`
                for all that the encoder has.
            head: What comes before the entries, by field.
            beginning: Gives the part of that which reasoning is bound to.
        """
        record, state = self._record, self.encoder.state
        known = len(self.encoder.entries)
        kept = known if permanent is None else permanent
        record.compare(self._transcript.sent_requests, head, state.rewrites, entries, kept)
        for turn, what, why in state.unread:
            record.leave_out(turn, what, why)
        record.prefix = lambda: state.bound.digest(beginning(), entries, known)
        record.turns = lambda: _turns_by_entry(state.bound.signed, entries)


def _declare_alike(one: ToolOffering | None, other: ToolOffering | None) -> bool:
    """Whether two bases declare equal tools, in the same order."""
    if one is None or other is None:
        return one is other
    return (one.specs, one.deferred) == (other.specs, other.deferred)


def prepare(
    encoder: E, transcript: Transcript, offering: ToolOffering | None, record: RequestRecord
) -> Prepared[E]:
    """The conversation as this request sends it; what it says anew is noted in the record.

    Args:
        encoder: The encoded conversation.
        transcript: What it is of.
        offering: The tools of the request.
        record: What the request says anew; it is filled in.
    """
    prepared: Prepared[E] = Prepared()
    prepared.encoder, prepared._transcript, prepared._record = encoder, transcript, record
    state = encoder.state
    in_force = state.in_force
    if state.has_read and offering is not None:
        state.adopt(offering)
    base = prepared.declared = state.base
    prepared.effort, prepared.output = state.effort, state.output
    settings: TurnSettings | None = None
    is_same = offering is in_force.same_as and record.output is in_force.output
    if not is_same or record.effort != in_force.effort:
        settings = in_force.difference(
            offering, record.output, record.effort, anew=record.policy == "drop"
        )
    if base is not None:
        if offering is not None and offering.mode != "auto":
            settings = _with_required_tools(settings, encoder, offering, record)
        if settings is not None and encoder.is_paused and state.needs_place(settings):
            # Nothing may come right after a paused answer, so it waits; what the model may call is
            # held against the offer in any case (PB3, PB5).
            record.say_waiting(*words_of(settings))
            settings = None
    record.settings = settings
    if settings is not None:
        if base is None:
            prepared.begin(settings, offering)
        else:
            prepared.change(settings, offering)
    elif offering is not None and base is not None and not offering.deferred:
        # Where a request declares the very tools of its offering, that has their bytes already.
        if offering.specs is not base.specs and offering.has_tools_of(base):
            state.base = base = offering
        prepared.declared = offering if offering.specs is base.specs else base
    if encoder.state.reminders:
        note_reminders(record, encoder.state)
    return prepared


def _with_required_tools(
    settings: TurnSettings | None,
    encoder: SettingsEncoder,
    offering: ToolOffering,
    record: RequestRecord,
) -> TurnSettings | None:
    """A change of a request that requires a call: where the choice would find no tool for it, the
    conversation starts again (rule C9).
    """
    state = encoder.state
    is_late = settings is not None and encoder.is_paused and state.needs_place(settings)
    if not _is_undeclared(offering, state) and not (is_late and _is_unknown(offering, state)):
        return settings
    if settings is not None and not is_late and state.carry(settings) is None:
        return settings  # it starts again in any case
    # A base in the record as well: so later requests begin with this one.
    return make_base(offering, record.output, record.effort)


def _is_undeclared(offering: ToolOffering, state: EncodedSettings) -> bool:
    """Whether the choice is of a tool that the request's field doesn't declare: APIs take none
    without tools, and most know by name only those of the field.
    """
    specs = () if state.base is None else state.base.specs
    if not specs:
        return bool(offering.specs)
    if offering.mode != "specific" or state.spelling.chooses_appended:
        return False
    return offering.forced not in [spec.name for spec in specs]


def _is_unknown(offering: ToolOffering, state: EncodedSettings) -> bool:
    """Whether the choice is of tools that the conversation lets the model call none of so far."""
    offered = state.in_force.offered
    if offering.mode == "specific":
        return offering.forced not in offered
    return offered.keys().isdisjoint([spec.name for spec in offering.specs])


def in_place(encoder: E, transcript: Transcript, record: RequestRecord) -> Prepared[E]:
    """The same where nothing is said in the conversation, and the fields of the request say all of
    it (the careful fall-back of rule PB12): the record is filled in already.
    """
    prepared: Prepared[E] = Prepared()
    prepared.encoder, prepared._transcript, prepared._record = encoder, transcript, record
    prepared.effort, prepared.output = record.effort, record.output
    return prepared


def note_reminders(record: RequestRecord, state: EncodedSettings) -> None:
    """Note the texts for this turn alone that the request says."""
    reminders = tuple(state.reminders)
    record.settings = replace(record.settings or TurnSettings(), reminders=reminders)


def _turns_by_entry(signed: Sequence[SignedTurn], entries: Sequence[bytes]) -> dict[int | str, int]:
    """The turns with signed reasoning, by the index of their entry in the request, which has no
    empty places.
    """
    turns = {turn.entry: turn.turn for turn in reversed(signed)}
    found: dict[int | str, int] = {}
    sent = [position for position, entry in enumerate(entries) if entry]
    for place, position in enumerate(sent):
        if position in turns:
            found[place] = turns[position]
    return found
