"""The figures of one budget, each change of them under one lock (rule B5)."""

# A request goes through here in two steps:
#
#   open(...)   refuses it, or counts it as sent and sets its reservation aside
#   close(...)  takes the reservation back, and counts what is known and what is not
#
# Between the two, others may open. So without reservations a budget is passed by what is under way
# at most, and with them by what the estimates miss.

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from threading import Lock
from typing import NamedTuple

from lutumpy import Usage
from lutumpy.budget.prices import ModelName, Prices
from lutumpy.budget.spent import Left, Spent
from lutumpy.errors import BudgetExceeded
from lutumpy.models import Unsettled

__all__ = ["Account", "Reservation", "Unknown", "tokens_of"]


class Reservation:
    """What one request has set aside.

    Attributes:
        usd: In dollars.
        tokens: In tokens.
    """

    __slots__ = ("tokens", "usd")

    def __init__(self, usd: Decimal, tokens: int) -> None:
        self.usd: Decimal = usd
        self.tokens: int = tokens


class Unknown(NamedTuple):
    """A request whose cost isn't known.

    Attributes:
        request: The request.
        usd: The dollars of its estimate.
        names: The names that its model may have a price under.
    """

    request: Unsettled
    usd: Decimal
    names: tuple[ModelName, ...]


class Account:
    """What was spent, set aside and allowed.

    Args:
        usd: The limit in dollars, or `None`.
        tokens: The limit in tokens, or `None`.
        requests: The limit of requests, or `None`.
        calls: The limits of calls by the tool's name.
        prices: What tokens cost; `None` where dollars aren't counted.
    """

    def __init__(
        self,
        usd: Decimal | None,
        tokens: int | None,
        requests: int | None,
        calls: Mapping[str, int],
        prices: Prices | None,
    ) -> None:
        self._limits = Left(usd, tokens, requests, calls)
        self._prices = prices
        self._lock = Lock()
        self._usd = Decimal(0)
        self._usage = Usage()
        self._requests = 0
        self._calls: Counter[str] = Counter()
        self._unsettled: dict[Unsettled, list[Unknown]] = {}
        self._estimated_usd = Decimal(0)
        self._estimated_tokens = 0
        self._reserved_usd = Decimal(0)
        self._reserved_tokens = 0

    def price(self, usage: Usage, *names: ModelName) -> Decimal:
        """What a usage costs; 0 where dollars aren't counted. Raises `UnknownPriceError`."""
        return Decimal(0) if self._prices is None else self._prices.of(usage, *names)

    def unknown(self, request: Unsettled, *names: ModelName) -> Unknown:
        """A request whose cost isn't known, with the price of its estimate. Raises
        `UnknownPriceError`.
        """
        return Unknown(request, self.price(request.estimate or Usage(), *names), names)

    def refusal(self, usd: Decimal = Decimal(0), tokens: int = 0) -> BudgetExceeded | None:
        """Why no further request may be sent; `None` if one may.

        Args:
            usd: What it would set aside.
            tokens: The same in tokens.
        """
        with self._lock:
            return self._find_refusal(usd, tokens)

    def open(self, usd: Decimal = Decimal(0), tokens: int = 0) -> Reservation:
        """Count a request that is about to be sent, and set something aside for it.

        Raises:
            BudgetExceeded: it may not be sent; nothing was counted.
        """
        with self._lock:
            refused = self._find_refusal(usd, tokens)
            if refused is not None:
                raise refused
            self._requests += 1
            self._reserved_usd += usd
            self._reserved_tokens += tokens
        return Reservation(usd, tokens)

    def count_requests(self, count: int) -> None:
        """Count requests that nobody asked about; a negative number takes some back."""
        with self._lock:
            self._requests += count

    def close(
        self,
        reservation: Reservation | None,
        usage: Usage,
        usd: Decimal,
        unknown: Sequence[Unknown] = (),
    ) -> None:
        """Count what a request cost.

        Args:
            reservation: What it has set aside, which is given back.
            usage: What is known.
            usd: What that costs.
            unknown: What isn't known.
        """
        with self._lock:
            if reservation is not None:
                self._reserved_usd -= reservation.usd
                self._reserved_tokens -= reservation.tokens
            self._usage += usage
            self._usd += usd
            for each in unknown:
                self._unsettled.setdefault(each.request, []).append(each)
                self._estimated_usd += each.usd
                self._estimated_tokens += tokens_of(each.request.estimate)

    def settle(self, request: Unsettled, usage: Usage) -> None:
        """Count what an unsettled request has cost, in place of its estimate.

        Raises:
            ValueError: it is not on the list; nothing was counted.
            UnknownPriceError: nobody knows what its model costs; nothing was counted.
        """
        with self._lock:
            listed = self._unsettled.get(request)
            if not listed:
                raise ValueError(
                    f"{request!r} is not among the unsettled requests; nothing was counted"
                )
            usd = self.price(usage, *listed[-1].names)
            self._estimated_usd -= listed.pop().usd
            self._estimated_tokens -= tokens_of(request.estimate)
            if not listed:
                del self._unsettled[request]
            self._usage += usage
            self._usd += usd

    def count_call(self, tool: str) -> bool:
        """Count a call of a tool; `False` if its limit is used up, and nothing was counted then."""
        limit = self._limits.calls.get(tool)
        if limit is None:
            return True
        with self._lock:
            if self._calls[tool] >= limit:
                return False
            self._calls[tool] += 1
            return True

    def used_up(self) -> list[str]:
        """The tools whose limits are used up."""
        with self._lock:
            return [
                name for name, limit in self._limits.calls.items() if self._calls[name] >= limit
            ]

    def spent(self) -> Spent:
        """What was spent so far."""
        with self._lock:
            has_prices = self._prices is not None
            listed = [request for request, times in self._unsettled.items() for _ in times]
            return Spent(
                self._usd if has_prices else None,
                self._usage,
                self._requests,
                {name: self._calls[name] for name in self._limits.calls},
                tuple(listed),
                self._estimated_usd if has_prices else None,
                self._estimated_tokens,
                self._reserved_usd,
            )

    def left(self) -> Left:
        """What is left of each limit."""
        limits = self._limits
        with self._lock:
            return Left(
                None if limits.usd is None else limits.usd - self._paid_usd(),
                None if limits.tokens is None else limits.tokens - self._paid_tokens(),
                None if limits.requests is None else limits.requests - self._requests,
                {name: limit - self._calls[name] for name, limit in limits.calls.items()},
            )

    def _paid_usd(self) -> Decimal:
        return self._usd + self._estimated_usd + self._reserved_usd

    def _paid_tokens(self) -> int:
        return tokens_of(self._usage) + self._estimated_tokens + self._reserved_tokens

    def _find_refusal(self, usd: Decimal, tokens: int) -> BudgetExceeded | None:
        limits, found = self._limits, ""
        if limits.requests is not None and self._requests >= limits.requests:
            return _refuse("requests", f"{limits.requests} requests were sent")
        if limits.usd is not None:
            paid = self._paid_usd()
            if paid >= limits.usd or paid + usd > limits.usd:
                found = f"{paid.normalize():f} of {limits.usd:f} dollars are spent or set aside"
                return _refuse("usd", found + (f", and this may cost {usd:f}" if usd else ""))
        if limits.tokens is not None:
            count = self._paid_tokens()
            if count >= limits.tokens or count + tokens > limits.tokens:
                found = f"{count} of {limits.tokens} tokens are spent or set aside"
                return _refuse(
                    "tokens", found + (f", and this may take {tokens}" if tokens else "")
                )
        return None


def _refuse(limit: str, why: str) -> BudgetExceeded:
    return BudgetExceeded(f"the budget is used up: {why}; nothing was sent", limit)


def tokens_of(usage: Usage | None) -> int:
    """All tokens of a usage, also where the provider gives no total."""
    return 0 if usage is None else usage.all_input_tokens + usage.output_tokens
