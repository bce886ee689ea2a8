"""What an encoded conversation says of settings, and which reasoning is bound to it: the same for
every API, each of which spells changes in its own way (rules PB2 to PB9).
"""

# What is hard here
# -----------------
# The base fills the request's fields for good, and each later change is an entry right before the
# turn that answered it. But a model, or a host, may have no words for a change. Then the
# conversation starts again from there: the fields hold what is in force now, the entries that said
# changes are taken out, and whatever reasoning was signed over the old beginning no longer fits
# (`core/bound_reasoning.py` finds out). Both happen in the same way when the history is encoded and
# when the request is made, so that the next request begins with this one.
#
#   | what changed                     | at a host with words for it | elsewhere           |
#   |----------------------------------|-----------------------------|---------------------|
#   | tools withdrawn or offered again | an entry, or the choice     | starts again        |
#   | a tool that is new               | an entry                    | starts again        |
#   | one whose call is required       | an entry, or starts again   | starts again        |
#   | effort                           | an entry                    | the field, unbound  |
#   | output format                    | an entry                    | the field           |
#
# An entry that was taken out leaves an empty place in the list, so that all other places stay.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Protocol, TypeAlias

from lutumpy.adapters.destination import ANYWHERE, Destination, destination_of, tell_left_out
from lutumpy.adapters.request_record import STARTED_AGAIN
from lutumpy.core.bound_reasoning import BoundReasoning, SignedTurn
from lutumpy.core.items import AssistantTurn, OpaqueBlock, ReasoningBlock, Verbatim
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.core.turn_settings import (
    KEPT,
    SettingsInForce,
    TurnSettings,
    split_off_deferred,
    without_deferred,
    words_of,
)

__all__ = [
    "ELSEWHERE",
    "NOTHING_TO_SAY",
    "Carried",
    "EncodedSettings",
    "Spelling",
]


ELSEWHERE = "elsewhere"
"""Stands for the API of a turn whose host has sealed parts of it: it is sent like another API's."""


Remainder: TypeAlias = Callable[[bytes], "bytes | None"]
"""What is left of an entry without the changes in it: `b""` for nothing; `None` if it has none."""


class Carried(NamedTuple):
    """A change as the API says it.

    Attributes:
        entry: What is in the conversation, as JSON bytes; empty where nothing has to be said.
        declared: Tools that have to be declared behind the others, deferred, since an entry can
            only refer to them.
        headers: The beta names that it needs.
        words: What it says, for a report.
    """

    entry: bytes
    declared: tuple[ToolSpec, ...] = ()
    headers: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


NOTHING_TO_SAY = Carried(b"")


class Spelling(Protocol):
    """How an API says changes between turns, by one model at one host."""

    @property
    def says_effort(self) -> bool:
        """Whether an entry can set the effort; else it is a field, which binds nothing."""
        ...

    @property
    def default_effort(self) -> str | None:
        """The effort, as the API spells it, of a request that names none; `None` where no word says
        that.
        """
        ...

    @property
    def says_output(self) -> bool:
        """Whether an entry can set the output format; else it is a field."""
        ...

    @property
    def keeps_withdrawn(self) -> bool:
        """Whether tools that aren't offered may stay declared."""
        ...

    @property
    def defers(self) -> bool:
        """Whether declared tools may be kept out of the prompt until a search has found them."""
        ...

    @property
    def appends_deferred(self) -> bool:
        """Whether deferred tools may be declared behind the others."""
        ...

    @property
    def chooses_appended(self) -> bool:
        """Whether a choice may name a tool that an entry brings, and no field declares."""
        ...

    def carry(self, settings: TurnSettings, state: EncodedSettings) -> Carried | None:
        """A change as an entry; `None` where there are no words for it."""
        ...

    def withdraw(self, names: tuple[str, ...]) -> Carried:
        """An entry that withdraws tools: they are declared only so that the list of tools stays the
        same.
        """
        ...

    def bound_form(self, entry: bytes) -> bytes:
        """As much of an entry as reasoning is bound to."""
        ...

    def needs_record(self, model: str | None) -> bool:
        """Whether this model refuses reasoning of some others, which `may_read` tells."""
        ...

    def may_read(self, model: str | None) -> bool:
        """Whether reasoning that this model signed may be sent to one that needs a record."""
        ...


class EncodedSettings:
    """What the entries of one encoder say of settings.

    Args:
        spelling: How changes are said.
        destination: Who gets the requests.

    Attributes:
        in_force: What turns have recorded.
        base: The tools of the request's field, as an offering; `None` before the first record.
        declared: Tools that come after those of the base, deferred, for references.
        appended: The names of tools that entries have defined, and the base hasn't.
        called: The names that calls have, as far as that matters to the API.
        effort: The effort of the request's field.
        output: The output format of the request's field.
        headers: The beta names that the entries need.
        has_read: Whether some of the tools were read from a history, as a request spelt them.
        pending: Entries that come before the next answer, each with whether it changes settings.
        places: Which entries change settings.
        remains: What stays of such an entry where it is taken out, by its place.
        reminders: Texts for the next turn alone.
        bound: The signed reasoning.
        turns: How many turns were encoded.
        host: The host of the requests, where being of that host is enough for a turn's reasoning to
            go back.
        unread: What doesn't go to this host and model: the turn, what of it, and why.
        rewrites: How entries were changed after they had been written.
        ends_with_answer: The last item that stays is an answer, where the API takes no change right
            behind one. What is sent for one request may be between them, but it leaves.
    """

    __slots__ = (
        "_effort_is_encoded",
        "appended",
        "base",
        "bound",
        "called",
        "declared",
        "destination",
        "effort",
        "ends_with_answer",
        "has_read",
        "headers",
        "host",
        "in_force",
        "output",
        "pending",
        "places",
        "remains",
        "reminders",
        "rewrites",
        "spelling",
        "turns",
        "unread",
    )

    def __init__(self, spelling: Spelling, destination: Destination = ANYWHERE) -> None:
        self.spelling: Spelling = spelling
        self.destination: Destination = destination
        self.host: str | None = None if destination.facts.many_makers else destination.host
        self.in_force: SettingsInForce = SettingsInForce()
        self.base: ToolOffering | None = None
        self.declared: list[ToolSpec] = []
        self.appended: dict[str, None] = {}
        self.called: set[str] = set()
        self.effort: str | None = None
        self.output: OutputSpec | None = None
        self.headers: dict[str, None] = {}
        self.pending: list[tuple[bytes, bool]] = []
        self.places: list[int] = []
        self.remains: dict[int, bytes] = {}
        self.reminders: list[str] = []
        self.bound: BoundReasoning = BoundReasoning(spelling.bound_form)
        self.turns: int = 0
        self.unread: list[tuple[int, str, str]] = []
        self.rewrites: frozenset[tuple[str, int]] = frozenset()
        self._effort_is_encoded = False
        self.has_read: bool = False
        self.ends_with_answer: bool = False

    def copy(self) -> EncodedSettings:
        """An independent copy."""
        twin = EncodedSettings(self.spelling, self.destination)
        twin.in_force = self.in_force.copy()
        twin.base, twin.declared, twin.effort = self.base, self.declared.copy(), self.effort
        twin.appended, twin.output = self.appended.copy(), self.output
        twin.called = self.called.copy()
        twin.headers, twin.pending = self.headers.copy(), self.pending.copy()
        twin.places, twin.reminders = self.places.copy(), self.reminders.copy()
        twin.remains = self.remains.copy()
        twin.bound, twin.turns = self.bound.copy(), self.turns
        twin.unread, twin.rewrites = self.unread.copy(), self.rewrites
        twin._effort_is_encoded, twin.has_read = self._effort_is_encoded, self.has_read
        twin.ends_with_answer = self.ends_with_answer
        return twin

    def carry(self, settings: TurnSettings) -> Carried | None:
        """A change as an entry; `None` if there are no words for it, or no place, so that the
        conversation starts again.
        """
        carried = self._find_words(settings)
        if carried is not None and carried.entry and self.ends_with_answer:
            return None  # what is between would leave again
        return carried

    def needs_place(self, settings: TurnSettings) -> bool:
        """Whether a change is said by an entry: fields of the request don't say all of it."""
        carried = self._find_words(settings)
        return carried is not None and bool(carried.entry)

    def _find_words(self, settings: TurnSettings) -> Carried | None:
        """A change as an entry, wherever that may stand; `None` if there are no words for it."""
        if settings.is_base:
            return None
        if settings.effort is None and self._effort_is_encoded:
            if self.spelling.default_effort is None:
                return None  # there is no word for the default
            settings = replace(settings, effort=self.spelling.default_effort)
        # An effort or a format that can't be said is a field of the request.
        if settings.effort is not KEPT and not (self.spelling.says_effort and settings.effort):
            settings = replace(settings, effort=KEPT)
        if settings.output is not KEPT and not self.spelling.says_output:
            settings = replace(settings, output=KEPT)
        carried = self.spelling.carry(settings, self)
        if carried is None or not carried.entry:
            return carried
        return carried._replace(words=tuple(words_of(settings)))

    def take(self, settings: TurnSettings, entries: list[bytes]) -> None:
        """Take what a turn has recorded: it is said before that turn, or the conversation starts
        again.

        Args:
            settings: The record.
            entries: The encoded entries.
        """
        if settings.deferred and not self.spelling.defers:
            settings = without_deferred(settings)
        if self.base is None:
            if settings.is_base:
                self.note(self.begin(settings))
            return
        carried = self.carry(settings)
        if carried is None:
            self.start_again(settings, entries)
        else:
            self.add(carried, settings)

    def begin(self, settings: TurnSettings) -> Carried:
        """Take the first record: its tools are those of every request.

        Returns:
            What has to be said at once: tools that are declared and not offered.
        """
        self.in_force.apply(settings)
        self.effort, self.output = self.in_force.effort, self.in_force.output
        specs, removed = settings.defined, settings.removed
        if removed and not self.spelling.keeps_withdrawn:
            specs = tuple([spec for spec in specs if spec.name not in removed])
            removed = ()
        late = set(settings.deferred)
        if late and self.has_read and self.spelling.appends_deferred:
            specs, self.declared = split_off_deferred(specs, late)
        deferred = tuple([spec for spec in specs if spec.name in late])
        self.base = ToolOffering(specs, deferred=deferred)
        return self.spelling.withdraw(removed) if removed else NOTHING_TO_SAY

    def start_again(
        self, settings: TurnSettings, entries: list[bytes], offering: ToolOffering | None = None
    ) -> None:
        """Take a change that can't be said: the request's fields say all of it.

        Args:
            settings: The change.
            entries: The encoded entries; those that said changes are taken out.
            offering: What is offered from here on, where that is at hand: if its tools are those
                of the new base, that has their bytes already.
        """
        self.in_force.apply(settings)
        in_force = self.in_force
        offered = tuple([spec for spec in in_force.declared() if spec.name in in_force.offered])
        late = tuple([spec for spec in offered if spec.name in in_force.deferred])
        before, self.base = self.base, ToolOffering(offered, deferred=late)
        is_same = before is not None and (before.specs, before.deferred) == (offered, late)
        if self.has_read and (self.places or not is_same):
            self.bound.spoil_unknown(self.places[0] if is_same else 0)  # rule PB18
        if offering is not None and offering.has_tools_of(self.base):
            self.base = offering
        self.declared, self.appended = [], {}
        self.effort, self.output = in_force.effort, in_force.output
        self._effort_is_encoded = False
        if self.places or self.pending:  # else all entries stay as they are
            self.rewrites |= {(STARTED_AGAIN, self.turns)}
        self.pending = [entry for entry in self.pending if not entry[1]]
        if self.places:
            for place in self.places:
                entries[place] = self.remains.get(place, b"")
            self.bound.forget_from(self.places[0])
            self.places = []

    def add(self, carried: Carried, settings: TurnSettings) -> None:
        """Take a change that was said; its entry comes before the next answer."""
        new = [spec.name for spec in self.undeclared(settings)]
        self.appended.update(dict.fromkeys(new))
        self.in_force.apply(settings)
        self.note(carried)
        if not (self.spelling.says_effort and self.in_force.effort):
            self.effort = self.in_force.effort
        elif settings.effort is not KEPT:
            self._effort_is_encoded = True
        if not self.spelling.says_output:
            self.output = self.in_force.output

    def take_read(
        self, original: Verbatim, entries: list[bytes], remainder: Remainder | None
    ) -> None:
        """Take what entries of a history say of settings; they are encoded next (rule PB18).

        Args:
            original: The entries.
            entries: What is encoded so far.
            remainder: Gives what is left of an entry without its changes; `None` where the entries
                are another API's, so that the changes have to be said.
        """
        self.has_read = True
        for place, settings in original.settings:
            if place < 0 or remainder is None:
                self.take(settings, entries)
                if remainder is not None and self.pending:
                    self.say_pending(entries)
                continue
            if self.base is None:
                continue
            self.add(NOTHING_TO_SAY, settings)
            rest = remainder(original.entries[place])
            if rest is not None:
                self.places.append(len(entries) + place)
                self.remains[len(entries) + place] = rest

    def adopt(self, offering: ToolOffering) -> None:
        """Take the tools of an offer for those of a history that are spelt like them: of a strict
        tool, a history has the strict form of the schema alone.
        """
        from lutumpy.adapters.read_settings import is_spelt_alike  # few were read

        known = self.in_force.tools
        for spec in offering.specs:
            before = known.get(spec.name)
            if before is not None and is_spelt_alike(spec, before):
                known[spec.name] = spec

    def say_pending(self, entries: list[bytes]) -> None:
        """Put the changes that wait among the entries."""
        for entry, changes in self.pending:
            if changes:
                self.places.append(len(entries))
            entries.append(entry)
        self.pending = []

    def undeclared(self, settings: TurnSettings) -> list[ToolSpec]:
        """The tools that a change offers and that no request has declared yet, or none since the
        conversation started again; each as the change defines it.
        """
        defined = {spec.name: spec for spec in settings.defined}
        if not defined and not settings.added:
            return []
        declared = {*self.appended, *[spec.name for spec in self.declared]}
        if self.base is not None:
            declared.update([spec.name for spec in (*self.base.specs, *self.base.deferred)])
        known = self.in_force.tools
        return [
            defined[name] if name in defined else known[name]
            for name in dict.fromkeys([*defined, *settings.added])
            if name not in declared and (name in defined or name in known)
        ]

    def note(self, carried: Carried) -> None:
        """Note what an entry needs."""
        if carried.entry:
            self.pending.append((carried.entry, True))
        self.declared += carried.declared
        self.headers.update(dict.fromkeys(carried.headers))

    def left_out_by(self, turn: AssistantTurn, count: int) -> list[SignedTurn]:
        """The turns whose reasoning leaves all later requests, since the request of the next turn
        had left it out (rules PB9, OR3).

        Where that request went to another host or model, only reasoning counts that it could have
        held: the rest was missing there in any case, and stays for this host and model.

        Args:
            turn: The next turn.
            count: Its record says that this many turns before it went without their reasoning.
        """
        origin, here = turn.origin, self.destination
        first = self.turns - count
        if origin is None or (
            origin.host == here.host and (here.model is None or origin.model == here.model)
        ):
            return self.leave_out_from(first)
        there = destination_of(origin.host, origin.model)
        needs_record = self.spelling.needs_record(origin.model)

        def might_have(said: AssistantTurn) -> bool:
            model = said.model if said.origin is None else said.origin.model
            return there.can_open(said) and (not needs_record or self.spelling.may_read(model))

        return self.leave_out_from(first, might_have)

    def leave_out_from(
        self, turn: int, might_have: Callable[[AssistantTurn], bool] | None = None
    ) -> list[SignedTurn]:
        """As `BoundReasoning.leave_out_from`: the entries of the turns that it gives are to be
        written without their reasoning.
        """
        found = self.bound.leave_out_from(turn, might_have)
        self.rewrites |= {(f"reasoning of turn {each.turn}", each.entry) for each in found}
        return found

    def without_unreadable(self, turn: AssistantTurn, needs_record: bool) -> AssistantTurn:
        """The turn, without what this host and model can't open or are known to refuse (rules OR3,
        PB13).

        Args:
            turn: The turn.
            needs_record: Reasoning of models that bind none is refused.
        """
        if not self.destination.can_open(turn):
            return self._without_sealed(turn)
        if not needs_record or not turn.signed or turn.reasoning_dropped:
            return turn
        if self.spelling.may_read(turn.origin.model if turn.origin is not None else turn.model):
            return turn
        why = "this model takes only reasoning of models that bind it"
        self._leave_out("signed reasoning", why)
        return replace(turn, reasoning_dropped=True)

    def _without_sealed(self, turn: AssistantTurn) -> AssistantTurn:
        """A turn of another host, as far as this one can read it."""
        why = "sealed for the host that said it"
        has_results = any(isinstance(block, OpaqueBlock) for block in turn.blocks)
        if has_results:
            # What the host has run itself is encrypted as well: texts and calls go, as of any API.
            self._leave_out("reasoning and results of the host's own tools", why)
            return replace(turn, api=ELSEWHERE)
        if not any(isinstance(block, ReasoningBlock) for block in turn.blocks):
            return turn
        self._leave_out("reasoning", why)
        return replace(turn, reasoning_dropped=True)

    def _leave_out(self, what: str, why: str) -> None:
        self.unread.append(tell_left_out(self.destination, self.turns, what, why))
