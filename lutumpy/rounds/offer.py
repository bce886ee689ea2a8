"""The offer: the tools of one turn as one value, which renders to each API and reads an answer back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, cast

from typing_extensions import TypeVar

from lutumpy.core.items import AssistantTurn
from lutumpy.core.safe_text import safe_repr
from lutumpy.core.tool_specs import ToolMode, ToolOffering
from lutumpy.errors import EmptyToolsetError, InvalidToolConstraints
from lutumpy.rounds.availability import ToolAvailability, ToolRequirement
from lutumpy.rounds.outcome import Finished, NeedsTools, TurnResult
from lutumpy.rounds.read import read_answer
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.selectors import (
    BaseToolset,
    ByTool,
    EmptyToolset,
    Selector,
    ToolsetTable,
    own,
)

if TYPE_CHECKING:
    from lutumpy.core.streaming import StreamDecoder
    from lutumpy.rounds.reader import Reader
    from lutumpy.rounds.target import Target

TS = TypeVar("TS", bound=BaseToolset)
C_co = TypeVar("C_co", bound=BaseToolCall, default=BaseToolCall, covariant=True)

_MODES: dict[str, ToolMode] = {
    "optional": "auto",
    "at_least_one": "required",
    "specific": "specific",
}


class Offer(ToolOffering, Generic[C_co]):
    """The tools of one turn. May be used for any number of turns; equal offers give equal bytes (rule A4).

    Attributes:
        toolset: The toolset class.
        selectors: The offered tools, in order.
        offered: Their names.
    """

    __slots__ = ("offered", "selectors", "toolset")

    def __init__(
        self,
        toolset: type[BaseToolset],
        selectors: tuple[Selector[Any, Any, Any], ...],
        requirement: ToolRequirement[Any],
        descriptions: Mapping[Selector[Any, Any, Any], str],
        parallel: bool,
    ) -> None:
        super().__init__(
            tuple(
                [s.spec(descriptions.get(s)) for s in selectors]
                if descriptions
                else [s.spec() for s in selectors]
            ),
            _MODES[requirement.mode],
            requirement.selector.name if requirement.selector is not None else None,
            parallel,
        )
        self.toolset: type[BaseToolset] = toolset
        self.selectors: tuple[Selector[Any, Any, Any], ...] = selectors
        self.offered: frozenset[str] = frozenset([s.name for s in selectors])

    def read(self, turn: AssistantTurn, target: Target) -> NeedsTools[C_co] | Finished[None]:
        """Take a decoded answer apart. Never raises because of what the model wrote.

        Args:
            turn: What the adapter's `response` gave.
            target: The session or transcript that the request was made from. A finished answer is written into it;
                one with calls is not, until its round is committed. Ephemeral messages have served and leave it.
        """
        if not isinstance(turn, AssistantTurn):
            raise TypeError(
                f"a decoded answer is needed, as adapter.response(reply) gives it, not {type(turn).__name__}"
            )
        return read_answer(self, turn, target)

    def reader(self, decoder: StreamDecoder, target: Target) -> Reader[C_co]:
        """A reader for an answer that arrives in pieces, from a stream of your own.

        Args:
            decoder: The adapter's `stream_decoder()`.
            target: As for `read`; it is stale when items are added after this call.
        """
        if not hasattr(decoder, "feed"):
            raise TypeError(
                f"a decoder is needed, as adapter.stream_decoder() gives it, not {type(decoder).__name__}"
            )
        from lutumpy.rounds.reader import Reader  # not every program streams

        return Reader(self, decoder, target, TurnResult)

    def __repr__(self) -> str:
        names = ", ".join([s.name for s in self.selectors])
        return f"<Offer of {self.toolset.__name__}: {names or 'no tools'}; {self.mode}>"


def make_offer(
    toolset: type[TS],
    available: ToolAvailability[TS] | None,
    require: ToolRequirement[TS] | None,
    describe: ByTool[Selector[TS, Any, Any], str] | None,
    parallel: bool,
) -> Offer[Any]:
    """The offer of these constraints.

    Raises:
        InvalidToolConstraints: They can't hold.
        EmptyToolsetError: The toolset has no tools, and doesn't say that it means that (rule D11).
    """
    table: ToolsetTable | None = getattr(toolset, "__lutumpy_table__", None)
    if table is None:
        raise TypeError(
            f"{toolset.__name__} is the base of toolsets; offer a class that derives from it"
        )
    cache = table.cache
    plain = available is None and require is None and not describe and parallel is True
    if plain and (kept := cache.get("offer")) is not None:
        offer: Offer[Any] = kept
        return offer
    if not table.selectors and not issubclass(toolset, EmptyToolset):
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
    selectors = toolset.default_selectors() if available is None else available.resolve(toolset)
    requirement: ToolRequirement[TS] = ToolRequirement("optional") if require is None else require
    requirement.check(toolset, selectors)
    if describe is not None and not isinstance(describe, Mapping):
        raise InvalidToolConstraints(
            f"describe= takes texts by selector, not {type(describe).__name__}"
        )
    if not isinstance(cast("object", parallel), bool):
        raise InvalidToolConstraints(f"parallel= takes True or False, not {parallel!r}")
    descriptions = {own(toolset, s): text for s, text in describe.items()} if describe else {}
    for selector, text in descriptions.items():
        if not isinstance(text, str):
            raise InvalidToolConstraints(
                f"the description of {selector.name!r} is {type(text).__name__}, not str"
            )
    offer = Offer(toolset, selectors, requirement, descriptions, parallel)
    if plain:
        cache["offer"] = offer
    return offer
