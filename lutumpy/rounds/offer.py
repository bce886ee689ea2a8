"""The offer: the tools of one turn as one value, which renders to each API and reads answers."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import TypeVar

from lutumpy.core.items import AssistantTurn
from lutumpy.core.tool_specs import ToolMode, ToolSpec
from lutumpy.errors import EmptyToolsetError, InvalidToolConstraints
from lutumpy.plain.safe_text import safe_repr
from lutumpy.rounds.availability import SearchAvailability, ToolAvailability, ToolRequirement
from lutumpy.rounds.offered import OfferedTools
from lutumpy.rounds.outcome import Finished, NeedsTools, TurnResult
from lutumpy.rounds.read import read_answer
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.definition import ProviderSettings
from lutumpy.tools.provider_settings import copy_turn_settings
from lutumpy.tools.selectors import (
    BaseToolset,
    ByTool,
    EmptyToolset,
    Selector,
    ToolsetTable,
    as_member_of,
)

if TYPE_CHECKING:
    from lutumpy.core.streaming import StreamDecoder
    from lutumpy.rounds.reader import Reader
    from lutumpy.rounds.target import Target

__all__ = ["Offer", "make_offer"]

TS = TypeVar("TS", bound=BaseToolset)
C_co = TypeVar("C_co", bound=BaseToolCall, default=BaseToolCall, covariant=True)

# The words of `ToolRequirement`, and those that the adapters know.
_MODES: dict[str, ToolMode] = {
    "optional": "auto",
    "at_least_one": "required",
    "specific": "specific",
}


class Offer(OfferedTools[C_co]):
    """The tools of one turn.

    It may be used for any number of turns; equal offers give equal bytes (rule A4).

    Attributes:
        toolset: The toolset class.
        selectors: The offered tools, in order.
        offered: Their names.
    """

    __slots__ = ("_deferrable", "toolset")

    def __init__(
        self,
        toolset: type[BaseToolset],
        selectors: tuple[Selector[Any, Any, Any], ...],
        requirement: ToolRequirement[Any],
        descriptions: Mapping[Selector[Any, Any, Any], str],
        parallel: bool,
        settings: Mapping[Selector[Any, Any, Any], dict[str, dict[str, Any]]],
        prefix_stable: bool = False,
        search: SearchAvailability[Any] | None = None,
    ) -> None:
        if descriptions or settings:
            specs = [s.spec(descriptions.get(s), settings.get(s)) for s in selectors]
        else:
            specs = [s.spec() for s in selectors]
        stable: tuple[ToolSpec, ...] | None = None
        if prefix_stable:
            listed = _stable_list(toolset, selectors)
            stable = tuple([s.spec(descriptions.get(s), settings.get(s)) for s in listed])
        forced = requirement.selector.name if requirement.selector is not None else None
        super().__init__(
            selectors,
            toolset.__lutumpy_table__.by_name,
            tuple(specs),
            _MODES[requirement.mode],
            forced,
            parallel,
            stable,
            None if search is None else search.finder.name,
        )
        self.toolset: type[BaseToolset] = toolset
        # What an API that loads tools on demand may keep out of the prompt.
        self._deferrable: tuple[ToolSpec, ...] = ()
        if search is not None:
            members = [as_member_of(toolset, s) for s in search.deferred]
            self._deferrable = tuple([s.spec(descriptions.get(s)) for s in members])

    def deferring(self) -> Offer[C_co]:
        """The offer for an API that loads tools on demand.

        Turns ask the model whether its API does. For a request of your own, it is yours to know.
        Where nothing can be deferred, it is this offer.
        """
        if not self._deferrable:
            return self
        twin = copy(self)
        twin.deferred = self._deferrable
        takes_text = [spec.text is not None for spec in self._deferrable]
        twin.has_text_tools = self.has_text_tools or any(takes_text)
        # The API may have loaded any of them.
        twin.offered = self.offered | {spec.name for spec in self._deferrable}
        late = [spec.late for spec in self._deferrable]
        twin.has_late_tools = self.has_late_tools or any(late)
        twin._waiting = None
        twin.rendered = {}
        twin.listed = {}
        return twin

    def read(self, turn: AssistantTurn, target: Target) -> NeedsTools[C_co] | Finished[None]:
        """Read a decoded answer. Never raises because of what the model wrote.

        Args:
            turn: What the adapter's `response` gave.
            target: The session or transcript that the request was made from. A finished answer is
                written into it; one with calls is not, until its round is committed. Ephemeral
                messages have been sent, and leave it.

        Raises:
            StaleRoundError: the answer is finished, and can't be written into this target.
        """
        if not isinstance(turn, AssistantTurn):
            raise TypeError(
                "a decoded answer is needed, as adapter.response(reply) gives it, "
                f"not {type(turn).__name__}"
            )
        return read_answer(self, turn, target)

    def reader(self, decoder: StreamDecoder, target: Target) -> Reader[C_co]:
        """A reader for an answer that arrives in pieces, from a stream of your own.

        Args:
            decoder: The adapter's `stream_decoder()`.
            target: As for `read`; it is stale if items are added after this call.
        """
        if not hasattr(decoder, "feed"):
            raise TypeError(
                "a decoder is needed, as adapter.stream_decoder() gives it, "
                f"not {type(decoder).__name__}"
            )
        from lutumpy.rounds.reader import Reader  # not every program streams

        return Reader(self, decoder, target, TurnResult)

    def __repr__(self) -> str:
        from lutumpy.plain.brief_repr import brief_line, brief_list

        names = brief_list([selector.name for selector in self.selectors], 60) or "no tools"
        return brief_line("Offer of", f"{self.toolset.__name__}: {names}; {self.mode}")


def make_offer(
    toolset: type[TS],
    available: ToolAvailability[TS] | None = None,
    require: ToolRequirement[TS] | None = None,
    describe: ByTool[Selector[TS, Any, Any], str] | None = None,
    parallel: bool = True,
    provider: ByTool[Selector[TS, Any, Any], ProviderSettings] | None = None,
    prefix_stable: bool = False,
) -> Offer[Any]:
    """The offer of these constraints.

    Raises:
        InvalidToolConstraints: They can't hold.
        EmptyToolsetError: The toolset has no tools, and doesn't say that this is meant (rule D11).
    """
    table: ToolsetTable | None = getattr(toolset, "__lutumpy_table__", None)
    if table is None:
        raise TypeError(
            f"{toolset.__name__} is the base of toolsets; offer a class that derives from it"
        )
    # Most turns offer a toolset as it is. That offer is made once, and its bytes with it.
    is_plain = (
        available is None
        and require is None
        and parallel is True
        and prefix_stable is False
        and not describe
        and not provider
    )
    if is_plain:
        kept: Offer[Any] | None = table.cache.get("offer")
        if kept is not None:
            return kept
    # A toolset without tools is nearly always a mistake: members that aren't made by `tool()`.
    may_be_empty = bool(table.groups) or issubclass(toolset, EmptyToolset)
    if not table.selectors and not may_be_empty:
        raise EmptyToolsetError(
            f"{toolset.__name__} has no tools to offer: write <name> = tool(...) in its body, "
            "or offer NoTools where none are meant; nothing was sent"
        )
    if available is not None and not isinstance(available, ToolAvailability):
        raise InvalidToolConstraints(
            f"available= takes a ToolAvailability, not {safe_repr(available)}"
        )
    if require is not None and not isinstance(require, ToolRequirement):
        raise InvalidToolConstraints(f"require= takes a ToolRequirement, not {safe_repr(require)}")
    # Availability first: a requirement is checked against the tools that are left.
    selectors = toolset.default_selectors() if available is None else available.resolve(toolset)
    requirement: ToolRequirement[TS] = ToolRequirement("optional") if require is None else require
    requirement.check(toolset, selectors)
    if not isinstance(cast("object", parallel), bool):
        raise InvalidToolConstraints(f"parallel= takes True or False, not {parallel!r}")
    if not isinstance(cast("object", prefix_stable), bool):
        raise InvalidToolConstraints(f"prefix_stable= takes True or False, not {prefix_stable!r}")
    descriptions = _check_descriptions(toolset, describe)
    settings = _check_settings(toolset, provider)
    search = available if isinstance(available, SearchAvailability) else None
    offer = Offer(
        toolset, selectors, requirement, descriptions, parallel, settings, prefix_stable, search
    )
    if is_plain:
        table.cache["offer"] = offer
    return offer


def _stable_list(
    toolset: type[BaseToolset], available: tuple[Selector[Any, Any, Any], ...]
) -> list[Selector[Any, Any, Any]]:
    """The tools that are sent whatever is available: the default ones, in declaration order.

    Those of `available` that are off follow, in declaration order too: a turn that offers one costs
    the cached prefix from there on, and all turns with the same ones share theirs.
    """
    table = toolset.__lutumpy_table__
    defaults, offered = set(table.defaults), set(available)
    added = [s for s in table.selectors if s in offered and s not in defaults]
    return [*table.defaults, *added]


def _check_descriptions(
    toolset: type[TS], describe: ByTool[Selector[TS, Any, Any], str] | None
) -> dict[Selector[TS, Any, Any], str]:
    if describe is not None and not isinstance(describe, Mapping):
        raise InvalidToolConstraints(
            f"describe= takes texts by selector, not {type(describe).__name__}"
        )
    if not describe:
        return {}
    # Entries for tools that aren't offered are fine: the same texts serve every turn.
    descriptions = {as_member_of(toolset, selector): text for selector, text in describe.items()}
    for selector, text in descriptions.items():
        if not isinstance(text, str):
            raise InvalidToolConstraints(
                f"the description of {selector.name!r} is {type(text).__name__}, not str"
            )
    return descriptions


def _check_settings(
    toolset: type[TS], provider: ByTool[Selector[TS, Any, Any], ProviderSettings] | None
) -> dict[Selector[TS, Any, Any], dict[str, dict[str, Any]]]:
    if provider is not None and not isinstance(provider, Mapping):
        raise InvalidToolConstraints(
            f"provider= takes settings by selector, not {type(provider).__name__}"
        )
    if not provider:
        return {}
    settings: dict[Selector[TS, Any, Any], dict[str, dict[str, Any]]] = {}
    # Here too, entries for tools that aren't offered are fine. Their form is checked all the same.
    for selector, one in provider.items():
        member = as_member_of(toolset, selector)
        copied = copy_turn_settings(member.name, one)
        if copied is not None:
            settings[member] = copied
    return settings
