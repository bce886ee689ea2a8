"""What a budget has counted, and what is left of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal

from lutumpy import Usage
from lutumpy.models import Unsettled
from lutumpy.plain.values import dataclass

__all__ = ["Left", "Spent"]


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent.

    Attributes:
        usd: What is known, in dollars; `None` where the budget has no prices.
        usage: The tokens that are known.
        requests: Requests that were sent, those that failed and those that only count tokens
            included.
        calls: Calls of tools that have a limit, by the tool's name.
        unsettled: Requests whose cost is not, or not wholly, known.
        estimated_usd: Roughly what those cost besides, in dollars; `None` without prices. It
            counts for the limit.
        estimated_tokens: The same in tokens.
        reserved_usd: What is set aside for requests under way, in dollars.
    """

    usd: Decimal | None
    usage: Usage
    requests: int
    calls: Mapping[str, int] = field(default_factory=dict)
    unsettled: tuple[Unsettled, ...] = ()
    estimated_usd: Decimal | None = None
    estimated_tokens: int = 0
    reserved_usd: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Left:
    """What is left; below 0 where a limit was passed. `None` stands for no limit.

    Attributes:
        usd: In dollars.
        tokens: In tokens.
        requests: Requests.
        calls: Calls by the tool's name.
    """

    usd: Decimal | None
    tokens: int | None
    requests: int | None
    calls: Mapping[str, int] = field(default_factory=dict)
