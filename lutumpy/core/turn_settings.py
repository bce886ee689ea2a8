"""What was in force when a turn was made: tools, output format, effort (rule PB1).

A conversation is a ledger. Its first `TurnSettings` is the base, and each later one says what is
different from then on. Every API spells the differences in its own way, so that a request begins
with the bytes of the one before.
"""

# The way of a change:
#
#   the offer of a turn --difference()--> TurnSettings --the adapter's carrier--> the request
#                             ^                |
#   SettingsInForce ----------+                +--with the answer--> AssistantTurn.settings
#         ^                                                               |
#         +-------------------------apply()-------------------------------+
#
# The record rides on the turn that answered it. So turn and record are one store (K3a), a failed
# request records nothing, and a fork, a dump or a waiting round has it without a word about it.
#
# A turn that changes nothing must cost next to nothing: the offer of a toolset is one object for
# all turns, so whoever makes a request first asks for that very object (`same_as`).

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Literal, TypeAlias

from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.plain.values import dataclass

__all__ = [
    "KEPT",
    "Kept",
    "SettingsInForce",
    "TurnSettings",
    "in_force_after",
    "make_base",
    "new_description",
    "split_off_deferred",
    "step_between",
    "without_deferred",
    "words_of",
]


class Kept(Enum):
    """The type of `KEPT`."""

    KEPT = "kept"

    def __repr__(self) -> str:
        return "KEPT"


KEPT: Literal[Kept.KEPT] = Kept.KEPT
"""In a `TurnSettings`: what it was before."""

MaybeOutput: TypeAlias = "OutputSpec | Kept | None"
MaybeText: TypeAlias = "str | Kept | None"


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """What was in force for a turn, as far as it differs from what was in force before.

    Attributes:
        is_base: Whether it says everything, as the first one of a conversation does.
        defined: Tools with their definitions, in order: in the base all of them, later those that
            are new or defined anew.
        deferred: Names of tools that are kept out of the prompt from here on, until a search has
            found them. One that is added or defined anew without being named here is kept out no
            more.
        added: Names of tools that the model may call from here on, in the order of the offer. All
            of `defined` are among them, but in a base those that are in `removed`.
        removed: Names of tools that it may no longer call, in the order of the base.
        output: The format of the answer; `None` for text.
        effort: How much the model should think, in the provider's word; `None` for its default.
        reminders: System texts for this turn alone, where they stay in the prompt (rule PB14).
        left_out: How many turns right before this one were sent without their signed reasoning, as
            far as it might be sent to who made this one: it is in no later request either
            (rule PB9).
    """

    is_base: bool = False
    defined: tuple[ToolSpec, ...] = ()
    deferred: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    output: MaybeOutput = KEPT
    effort: MaybeText = KEPT
    reminders: tuple[str, ...] = ()
    left_out: int = 0

    @property
    def changes_tools(self) -> bool:
        """Whether it says something of tools."""
        return bool(self.defined or self.added or self.removed or self.deferred)


NO_OFFER = ToolOffering()
"""A turn without tools."""

_NOT_COMPARED = ToolOffering()
"""What no turn offers."""


class SettingsInForce:
    """What is in force at one place of a conversation: all `TurnSettings` so far, added up.

    Attributes:
        base: The tools of the last base, in order; `None` before the first record.
        tools: Every tool that was ever defined since, by name, as it was defined last.
        offered: The names that the model may call, each with `None`: a set in order.
        deferred: The names of tools that are kept out of the prompt until they are found.
        output: The format of the answer.
        effort: The effort, in the provider's word.
        same_as: An offering that was compared, and differs in nothing. Most turns offer the very
            same object, so whoever asks looks here first.
    """

    __slots__ = ("base", "deferred", "effort", "offered", "output", "same_as", "tools")

    def __init__(self) -> None:
        self.base: tuple[ToolSpec, ...] | None = None
        self.tools: dict[str, ToolSpec] = {}
        self.offered: dict[str, None] = {}
        self.deferred: frozenset[str] = frozenset()
        self.output: OutputSpec | None = None
        self.effort: str | None = None
        self.same_as: ToolOffering | None = _NOT_COMPARED

    def copy(self) -> SettingsInForce:
        """An independent copy."""
        twin = SettingsInForce()
        twin.base, twin.deferred = self.base, self.deferred
        twin.tools, twin.offered = self.tools.copy(), self.offered.copy()
        twin.output, twin.effort = self.output, self.effort
        twin.same_as = self.same_as
        return twin

    def apply(self, settings: TurnSettings) -> None:
        """Bring it up to date by the next record."""
        self.same_as = _NOT_COMPARED
        if settings.is_base:
            self.base = settings.defined
            self.tools, self.offered = {}, {}
            self.deferred, self.output, self.effort = frozenset(), None, None
        for spec in settings.defined:
            self.tools[spec.name] = spec
        if self.deferred:
            self.deferred -= {spec.name for spec in settings.defined}.union(settings.added)
        if settings.deferred:
            self.deferred |= frozenset(settings.deferred)
        for name in settings.removed:
            self.offered.pop(name, None)
        self.offered.update(dict.fromkeys(settings.added))
        if settings.output is not KEPT:
            self.output = settings.output
        if settings.effort is not KEPT:
            self.effort = settings.effort

    def declared(self) -> tuple[ToolSpec, ...]:
        """Every tool that was defined, as it was defined last, in the order of definition."""
        return tuple(self.tools.values())

    def difference(
        self,
        offering: ToolOffering | None,
        output: OutputSpec | None = None,
        effort: str | None = None,
        *,
        anew: bool = False,
    ) -> TurnSettings | None:
        """What a turn with these settings changes; `None` for nothing.

        Args:
            offering: The tools of the turn.
            output: The format of its answer.
            effort: Its effort.
            anew: Make a new base of it, if anything is different.
        """
        wanted = NO_OFFER if offering is None else offering
        if self.base is None:
            return make_base(wanted, output, effort)
        is_same = offering is self.same_as
        if is_same and output is self.output and effort == self.effort:
            return None
        tools = None if is_same else self._compare_tools(wanted)
        changed_output = not _equal_outputs(output, self.output)
        if tools is None and not changed_output and effort == self.effort:
            self.same_as = offering
            if output is not None:
                self.output = output  # equal, and found by identity the next time
            return None
        if anew:
            return make_base(wanted, output, effort)
        defined, deferred, added, removed = tools if tools is not None else ((), (), (), ())
        return TurnSettings(
            defined=defined,
            deferred=deferred,
            added=added,
            removed=removed,
            output=output if changed_output else KEPT,
            effort=effort if effort != self.effort else KEPT,
        )

    def _compare_tools(
        self, wanted: ToolOffering
    ) -> tuple[tuple[ToolSpec, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]] | None:
        callable_specs = _callable_specs(wanted)
        names = [spec.name for spec in callable_specs]
        defined = [
            spec
            for spec in callable_specs
            if spec.name not in self.tools or not spec.equals(self.tools[spec.name])
        ]
        added = [name for name in names if name not in self.offered]
        wanted_names = frozenset(names)
        removed = [name for name in self.tools if name in self.offered and name not in wanted_names]
        is_new = {spec.name for spec in defined}.union(added)
        deferred = [
            spec.name
            for spec in wanted.deferred
            if spec.name in is_new or spec.name not in self.deferred
        ]
        if not (defined or added or removed or deferred):
            return None
        return tuple(defined), tuple(deferred), tuple(added), tuple(removed)


def make_base(wanted: ToolOffering, output: OutputSpec | None, effort: str | None) -> TurnSettings:
    """The record of a turn with these settings that says everything, whatever was before."""
    sent = wanted.specs if wanted.stable_specs is None else wanted.stable_specs
    if wanted.deferred:
        late = {spec.name for spec in wanted.deferred}
        sent = (*wanted.deferred, *[spec for spec in sent if spec.name not in late])
    names = tuple([spec.name for spec in sent])
    offered = {spec.name for spec in _callable_specs(wanted)}
    return TurnSettings(
        is_base=True,
        defined=sent,
        deferred=tuple([spec.name for spec in wanted.deferred]),
        added=tuple([name for name in names if name in offered]),
        removed=tuple([name for name in names if name not in offered]),
        output=output,
        effort=effort,
    )


def _callable_specs(wanted: ToolOffering) -> Sequence[ToolSpec]:
    """The tools that the model may call; the API may have loaded any of those that are deferred."""
    if not wanted.deferred:
        return wanted.specs
    late = {spec.name for spec in wanted.deferred}
    return (*wanted.deferred, *[spec for spec in wanted.specs if spec.name not in late])


def _equal_outputs(one: OutputSpec | None, other: OutputSpec | None) -> bool:
    return one is other or one == other


def in_force_after(records: Iterable[TurnSettings | None]) -> SettingsInForce:
    """What is in force after these records, in order; `None` stands for a turn without one."""
    found = SettingsInForce()
    for settings in records:
        if settings is not None:
            found.apply(settings)
    return found


def step_between(before: SettingsInForce, after: SettingsInForce) -> TurnSettings | None:
    """The record that leads from one to the other; `None` where they are the same, or where nothing
    was ever recorded.
    """
    if after.base is None:
        return None
    offered = after.offered
    wanted = ToolOffering(
        tuple([spec for spec in after.declared() if spec.name in offered]),
        stable_specs=after.declared(),
        deferred=tuple([spec for spec in after.declared() if spec.name in after.deferred]),
    )
    return before.difference(wanted, after.output, after.effort)


def new_description(before: ToolSpec, after: ToolSpec) -> str | None:
    """A text for a tool of which only the description is another one; `None` for other changes."""
    same = ToolSpec(
        after.name,
        before.description,
        after.schema,
        after.strict,
        after.provider,
        after.text,
        after.late,
    )
    if not same.equals(before):
        return None
    return f"The tool `{after.name}` from here on: {after.description}"


def words_of(settings: TurnSettings) -> list[str]:
    """A change in words for a report, as `tool_removal send`."""
    words = [f"tool_addition {spec.name}" for spec in settings.defined]
    defined = {spec.name for spec in settings.defined}
    words += [f"tool_addition {name}" for name in settings.added if name not in defined]
    words += [f"tool_removal {name}" for name in settings.removed]
    if settings.output is not KEPT:
        words.append(f"output {'text' if settings.output is None else settings.output.name}")
    if settings.effort is not KEPT:
        words.append(f"effort {settings.effort or 'default'}")
    return words


def split_off_deferred(
    specs: tuple[ToolSpec, ...], late: set[str]
) -> tuple[tuple[ToolSpec, ...], list[ToolSpec]]:
    """The tools of a history, and the deferred ones behind all others: they stay behind them."""
    ends = [index for index, spec in enumerate(specs, 1) if spec.name not in late]
    end = ends[-1] if ends else len(specs)
    return specs[:end], [*specs[end:]]


def without_deferred(settings: TurnSettings) -> TurnSettings:
    """A record where no tool can be deferred: what a search has to find first isn't there."""
    late = frozenset(settings.deferred)
    return replace(
        settings,
        defined=tuple([spec for spec in settings.defined if spec.name not in late]),
        added=tuple([name for name in settings.added if name not in late]),
        removed=tuple([name for name in settings.removed if name not in late]),
        deferred=(),
    )
