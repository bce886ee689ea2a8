"""A conversation of Messages made ready for one request: what it says anew, and which reasoning it
leaves out (rules PB1, PB2, PB5, PB8 to PB11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from lutumpy.adapters.anthropic.carriers import (
    Carried,
    Carriers,
    carriers_of,
    carry_removals,
    words_of,
)
from lutumpy.adapters.anthropic.decode import API
from lutumpy.adapters.anthropic.encode import MessagesEncoder
from lutumpy.adapters.destination import Destination, destination_of
from lutumpy.adapters.request_record import RequestRecord
from lutumpy.core.bound_reasoning import SignedTurn
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.core.turn_settings import TurnSettings
from lutumpy.rules.anthropic import models as anthropic_models

__all__ = ["Prepared", "encoder_of", "prepare"]

_NOTHING = Carried(b"")


class Dialect(NamedTuple):
    """What a model takes at a host, worked out once for all requests.

    Attributes:
        carriers: What may be said in the middle of a conversation.
        binds: Its reasoning is bound to what was sent before.
        needs_record: It takes no reasoning of models that bind none.
        prefill: Whether it takes the assistant's as the last message.
        headers: The beta names of each request.
        destination: Who gets the requests.
    """

    carriers: Carriers
    binds: bool
    needs_record: bool
    prefill: bool
    headers: tuple[str, ...]
    destination: Destination

    def key(self, as_blocks: bool) -> str:
        """Under which name a transcript keeps its encoded form."""
        flags = (*self.carriers, as_blocks, self.needs_record)
        return f"{API}:{''.join([str(int(flag)) for flag in flags])}{self.destination.key}"


@lru_cache(maxsize=256)
def dialect_of(model: str | None, host: str | None) -> tuple[Dialect, str, str]:
    """The dialect, and the keys of the encoded forms without and with blocks for texts.

    Where the host isn't known, it is taken for the vendor's; nothing is known of who can open what.
    """
    destination = destination_of(host, model)
    host = host or anthropic_models.HOST
    needs_record = anthropic_models.needs_record(model)
    is_vendor = host == anthropic_models.HOST
    dialect = Dialect(
        carriers_of(model, host),
        anthropic_models.binds_reasoning(model),
        needs_record,
        anthropic_models.takes_prefill(model),
        (anthropic_models.BINDING_CONTROLS,) if is_vendor and needs_record else (),
        destination,
    )
    # Nobody says whether a text equals its one block, so where that matters it is always one.
    return dialect, dialect.key(needs_record), dialect.key(True)


def encoder_of(
    transcript: Transcript,
    model: str | None,
    as_blocks: bool = False,
    host: str | None = None,
) -> MessagesEncoder:
    """The encoded form of a transcript, as a model takes it at a host; see `MessagesEncoder`."""
    dialect, plain, blocks = dialect_of(model, host)
    with_blocks = as_blocks or dialect.needs_record
    return transcript.encoded(
        blocks if as_blocks else plain,
        lambda: MessagesEncoder(
            dialect.carriers, with_blocks, dialect.needs_record, dialect.destination
        ),
    )


class Prepared:
    """An encoder, and what one request says behind it.

    Attributes:
        encoder: The encoded conversation; a copy where this request changes it.
        dialect: What the model takes at its host.
        declared: The tools that the request declares.
        effort: The effort of the request's field.
        closing: The change that is said at the end.
    """

    # Most requests say nothing new.
    closing: Carried = _NOTHING
    dialect: Dialect
    encoder: MessagesEncoder
    declared: ToolOffering | None
    effort: str | None
    _record: RequestRecord
    _transcript: Transcript

    def begin(self, settings: TurnSettings, offering: ToolOffering | None) -> None:
        """Make the settings of this request the base: no turn has recorded any."""
        self.declared = offering
        self.effort = settings.effort if isinstance(settings.effort, str) else None
        if offering is None or offering.stable_specs is None:
            return
        if settings.removed and self.encoder.said.carriers.tools:
            self.declared = ToolOffering(settings.defined, deferred=offering.deferred)
            self.closing = carry_removals(settings.removed)
            self._record.say_appended(*[f"tool_removal {name}" for name in settings.removed])

    def change(self, settings: TurnSettings) -> None:
        """Say what is different from what is in force, or start again where that can't be said."""
        carried = self.encoder.said.carry(settings)
        if carried is not None:
            self.closing = carried
            if carried.message:
                self._record.say_appended(*words_of(settings))
            if not (self.encoder.said.carriers.effort and isinstance(settings.effort, str)):
                in_force = self.encoder.said.in_force
                wanted = settings.effort if isinstance(settings.effort, str) else None
                changed = settings.effort is None or wanted is not None
                self.effort = wanted if changed else in_force.effort or self.effort
            return
        self.encoder = self.encoder.copy()
        self.encoder.start_again(settings)
        self.declared, self.effort = self.encoder.said.base, self.encoder.said.effort
        self._record.say_changed("tools")

    def leave_out_misfits(self, offered: bytes) -> MessagesEncoder:
        """Leave out what reasoning doesn't fit behind this request's beginning (rule PB8).

        Raises:
            PrefixChangedError: There is any, and the record says to send nothing then.
        """
        said = self.encoder.said
        record = self._record
        misfit: int | None = None
        if self.dialect.binds:
            misfit = said.bound.first_misfit(self._beginning(offered), self.encoder.entries)
        refused = record.repeated_without
        if refused is not None:
            places = [i for i, turn in enumerate(said.bound.signed) if turn.turn >= refused]
            misfit = min([place for place in (*places[:1], misfit) if place is not None])
        if misfit is None:
            return self.encoder
        lost = [turn.turn for turn in said.bound.signed[misfit:] if not turn.is_left_out]
        if not lost:
            return self.encoder
        record.drop_reasoning(lost, "prefix_mismatch", "lutumpy" if refused is None else "provider")
        count = len(said.bound.signed) - misfit
        self.encoder = self.encoder.copy()
        self.encoder.leave_out(count)
        record.settings = replace(record.settings or TurnSettings(), left_out=count)
        return self.encoder

    def finish(self, messages: list[bytes], offered: bytes, marked: int | None) -> None:
        """Note in the record what goes out.

        Args:
            messages: The messages of the request; places of those that were taken out are empty.
            offered: The declared tools, without marks.
            marked: Which message has a mark of the cache.
        """
        encoder, record, said = self.encoder, self._record, self.encoder.said
        unmarked = messages
        if marked is not None:
            unmarked = messages.copy()
            unmarked[marked] = encoder.entries[marked]
        head = {"tools": offered, "system": encoder.system.place}
        known = len(encoder.entries)
        kept = known if encoder.stable is None else encoder.stable[1]
        record.compare(self._transcript.sent_requests, head, said.rewrites, unmarked, kept)
        for turn, what, why in said.unread:
            record.leave_out(turn, what, why)
        record.prefix = lambda: said.bound.digest(self._beginning(offered), unmarked, known)
        record.turn_of_entry = lambda index: _turn_of(said.bound.signed, unmarked, index)
        if said.headers or self.closing.headers or said.reminders or self.dialect.headers:
            further = (*self.closing.headers, *self.dialect.headers)
            headers = {**said.headers, **dict.fromkeys(further)}
            if said.reminders:
                headers[anthropic_models.CLEAR_AT] = None
            record.headers = {"anthropic-beta": ",".join(headers)}

    def _beginning(self, offered: bytes) -> bytes:
        return offered + b"\n" + self.encoder.system.write()


def prepare(
    transcript: Transcript,
    offering: ToolOffering | None,
    record: RequestRecord,
    model: str | None,
    *,
    as_blocks: bool,
) -> Prepared:
    """The conversation as this request sends it; what it says anew is noted in the record."""
    dialect, plain, blocks = dialect_of(model, record.host)
    with_blocks = as_blocks or dialect.needs_record
    encoder = transcript.encoded(
        blocks if as_blocks else plain,
        lambda: MessagesEncoder(
            dialect.carriers, with_blocks, dialect.needs_record, dialect.destination
        ),
    )
    prepared = Prepared()
    prepared.dialect, prepared.encoder = dialect, encoder
    prepared._transcript, prepared._record = transcript, record
    base = prepared.declared = encoder.said.base
    prepared.effort = encoder.said.effort
    in_force = encoder.said.in_force
    settings: TurnSettings | None = None
    is_same = offering is in_force.same_as and record.output is in_force.output
    if not is_same or record.effort != in_force.effort:
        settings = in_force.difference(
            offering, record.output, record.effort, anew=record.policy == "drop"
        )
    is_later = settings is not None and encoder.said.base is not None
    if is_later and settings is not None and encoder.is_paused and settings.changes_tools:
        # Right after a paused answer no tool may change, so it waits; what the model may call is
        # held against the offer in any case (PB3, PB5).
        record.say_waiting(*words_of(settings))
        settings = None
    record.settings = settings
    if settings is not None:
        if encoder.said.base is None:
            prepared.begin(settings, offering)
        else:
            prepared.change(settings)
    elif offering is not None and base is not None and not offering.deferred:
        # Where a request declares the very tools of its offering, that has their bytes already.
        prepared.declared = offering if offering.specs is base.specs else base
    reminders = tuple(encoder.said.reminders)
    if reminders:
        record.settings = replace(record.settings or TurnSettings(), reminders=reminders)
    return prepared


def _turn_of(signed: Sequence[SignedTurn], messages: Sequence[bytes], index: int) -> int | None:
    """The turn whose reasoning stands in a message of the request, counted without empty places."""
    place = -1
    for position, message in enumerate(messages):
        place += bool(message)
        if place == index:
            for turn in signed:
                if turn.entry == position:
                    return turn.turn
            return None
    return None
